#!/usr/bin/env bash
# Backs up a deployment to a new directory. The service is stopped for only a few seconds, because
# immutable segments are copied beforehand and hard-linked between backups. It is restarted even if
# the copy fails. Each backup is complete, but uses space only for new data. Requires jq and flock.
set -euo pipefail

usage() {
  cat << 'END'
usage: backup.sh --deployment DIR --to DIR [OPTION...]

  --deployment DIR   directory with service.toml and data/
  --to DIR           directory for backups, named by timestamp; `latest` links to the newest
  --stop COMMAND     command that stops the service (default: systemctl stop eventlog)
  --start COMMAND    command that starts it (default: systemctl start eventlog)
  --program PROGRAM  executable that verifies the backup (default: eventlog)

exit status: 0 the backup is complete and verified, 1 failure, 2 bad arguments
END
}

refuse() {
  echo "backup: $1" >&2
  exit "${2:-1}"
}

lock_timeout_s=600
manifest_bytes_max=$((64 * 1024 * 1024))
entry='^segments/[0-9a-f-]{36}_[0-9a-f-]{36}_[0-9a-f]{64}\.parquet [0-9]+ [0-9a-f]{64}$'
deployment='' to='' stop='systemctl stop eventlog' start='systemctl start eventlog' program=eventlog
while (($# > 0)); do
  case $1 in
    --help | -h) usage; exit 0 ;;
    --deployment | --to | --stop | --start | --program)
      (($# > 1)) || refuse "$1 needs a value" 2
      printf -v "${1#--}" '%s' "$2" ;;
    *) refuse "unknown option $1; see --help" 2 ;;
  esac
  shift 2
done
[[ -n $deployment && -n $to ]] || refuse "--deployment and --to are required" 2
log=$deployment/data/log
[[ -f $log/manifest.json ]] || refuse "no manifest.json in $log" 2
if grep -E '^[[:space:]]*dir[[:space:]]*=' "$deployment/service.toml" | grep -qvE '"(\./)?data/?"'; then
  refuse "data.dir in $deployment/service.toml must be ./data" 2
fi

command -v "$program" > /dev/null || refuse "$program: no such program" 2

# The backup contains all payloads and the token.
umask 077
mkdir -p "$to"
exec 8> "$to/.lock"
flock --nonblock 8 || refuse "another backup to $to is running"
last=$(readlink -f "$to/latest" || true)
copy=$to/.partial
rm -rf "$copy"
mkdir -p "$copy/data/log/segments"

# Copies the segments that the manifest lists and the backup does not have yet. The manifest belongs to
# the service's user, so only `segments/<name that the entry implies>` is copied, only from a regular
# file of the listed size. A file that is linked from the last backup is hashed first, because damage
# to it would spoil this backup and all later ones.
copy_segments() {
  local entries path bytes sha256 from into
  [[ ! -L $log/segments && $(stat --format=%s "$log/manifest.json") -le $manifest_bytes_max ]] ||
    refuse "$log/segments is a symlink, or $log/manifest.json is too large"
  entries=$(jq -r '.segments[] | select(.path ==
    "segments/\(.first_event_id)_\(.last_event_id)_\(.sha256).parquet") |
    [.path, (.bytes | tostring), .sha256] | join(" ")' "$log/manifest.json" | grep -E "$entry" || true)
  [[ $(jq '.segments | length' "$log/manifest.json") -eq $(grep -c . <<< "$entries") ]] ||
    refuse "$log/manifest.json lists a path that is not a segment's"
  while read -r path bytes sha256; do
    [[ -n $path && ! -e $copy/data/log/$path ]] || continue
    into=$copy/data/log/$path
    for from in "$last/data/log/$path" "$log/$path"; do
      [[ -f $from && ! -L $from && $(stat --format=%s "$from") == "$bytes" ]] || continue
      if [[ $from == "$log/$path" ]]; then
        cp --no-dereference --preserve=timestamps "$from" "$into"
      else
        ln "$from" "$into" 2> /dev/null || continue
      fi
      [[ $(sha256sum < "$into") != "$sha256  -" ]] || continue 2
      echo "backup: $from is damaged" >&2
      rm "$into"
    done
    refuse "no undamaged copy of $log/$path"
  done <<< "$entries"
}

# Starts the service without the lock descriptors. Otherwise it would inherit the locks.
start_service() {
  bash -c "$start" 8>&- 9<&- || refuse "the service did not start"
}

copy_segments
# Flush the copied segments now; otherwise the service would be stopped while they are written.
sync --file-system "$to"

stopped_at=$EPOCHREALTIME
trap start_service EXIT
bash -c "$stop" 8>&- || refuse "the service did not stop"
# Hold the writer lock while copying, so that no service can write.
exec 9< "$log/.lock"
flock --timeout "$lock_timeout_s" 9 || refuse "the service still holds $log/.lock"
copy_segments
cp --archive --dereference "$deployment/service.toml" "$copy/"
for name in .lock manifest.json tail.ndjson pending; do
  [[ ! -e $log/$name ]] || cp --archive "$log/$name" "$copy/data/log/"
done
exec 9<&-
trap - EXIT
start_service
stopped_ms=$(((${EPOCHREALTIME/[.,]/} - ${stopped_at/[.,]/}) / 1000))

"$program" --config "$copy/service.toml" verify > "$copy/verify.json" ||
  refuse "the backup in $copy failed verification: $(cat "$copy/verify.json")"
sync --file-system "$to"
name=$(date -u +%Y-%m-%dT%H-%M-%SZ)
while [[ -e $to/$name ]]; do
  sleep 0.1
  name=$(date -u +%Y-%m-%dT%H-%M-%SZ)
done
mv --no-target-directory "$copy" "$to/$name"
ln --symbolic --force --no-dereference "$name" "$to/latest"
sync --file-system "$to"
printf 'backup: %s, stopped for %d.%03d s\n' "$to/$name" $((stopped_ms / 1000)) $((stopped_ms % 1000))
