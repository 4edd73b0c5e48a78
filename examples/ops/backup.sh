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

copy_segments() {
  local paths path
  paths=$(jq -r '.segments[].path' "$log/manifest.json")
  while read -r path; do
    [[ -n $path && ! -e $copy/data/log/$path ]] || continue
    ln "$last/data/log/$path" "$copy/data/log/$path" 2> /dev/null ||
      cp --preserve=timestamps "$log/$path" "$copy/data/log/$path"
  done <<< "$paths"
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
