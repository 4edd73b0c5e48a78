#!/usr/bin/env bash
# A consumer built with curl and jq: prints each event as one line of JSON, and resumes where it
# stopped.
#
#     examples/shell/follow.sh --socket demo/data/ground.sock --cursor /tmp/cursor 'stream=orders' |
#       jq -r '[.observed_at, .record_key, .payload.total] | @tsv'
#
# The position is written after the events are printed, so a crash in between repeats events but
# never skips any. jq may reformat numbers, so use the TypeScript client to verify hashes.
set -euo pipefail

usage() {
  cat << 'END'
usage: follow.sh --socket SOCKET --cursor FILE [--once] [FILTER...]

  --socket SOCKET    socket of the service
  --cursor FILE      file that stores the position to resume from
  --once             stop at the end of the log
  --token-file FILE  file with the bearer token, if the service requires one
  FILTER             source=NAME, stream=NAME, record_key=KEY or kind=KIND
END
}

refuse() {
  echo "follow: $1" >&2
  exit "${2:-1}"
}

pause_s=1 socket_wait_s=60 read_timeout_s=60
socket='' cursor='' once='' token_file=''
filters=()
while (($# > 0)); do
  case $1 in
    --help | -h) usage; exit 0 ;;
    --once) once=1; shift; continue ;;
    source=* | stream=* | record_key=* | kind=*) filters+=(--data-urlencode "$1"); shift; continue ;;
    --socket | --cursor | --token-file)
      (($# > 1)) || refuse "$1 needs a value" 2
      name=${1#--}
      printf -v "${name//-/_}" '%s' "$2" ;;
    *) refuse "unknown option $1; see --help" 2 ;;
  esac
  shift 2
done
[[ -n $socket && -n $cursor ]] || refuse "--socket and --cursor are required" 2
(($(printf %s "$socket" | wc -c) <= 107)) || refuse "$socket: longer than 107 bytes"
# At boot, the service may start after this program.
for ((tries = 0; tries < socket_wait_s * 5; tries++)); do [[ ! -e $socket ]] || break; sleep 0.2; done
[[ -e $socket ]] || refuse "$socket: no such socket; is the service running?"
[[ -S $socket ]] || refuse "$socket: not a socket"
[[ -w $socket ]] || refuse "$socket: no write permission"

if [[ -e $cursor && ! $(< "$cursor") =~ ^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$ ]]; then
  refuse "$cursor does not contain an event id; delete it to start from the beginning"
fi

scratch=$(mktemp -d)
mkfifo "$scratch/records"
job=
# curl never exits on its own. Job control gives the pipeline a process group, which end_job kills.
set -m
end_job() {
  [[ -z $job ]] || kill -- "-$job" 2> /dev/null || true
  job=
}
trap 'end_job; rm -rf "$scratch"' EXIT

# Sends a GET to the log with the given curl arguments.
get() {
  { [[ -z $token_file ]] || printf 'Authorization: Bearer %s\n' "$(< "$token_file")"; } |
    curl --silent --show-error --no-buffer --get --header @- --unix-socket "$socket" "$@" \
      http://localhost/v1/events
}

# Prints `refused REASON` if the log lost the event $1, in a restore from an older backup. The id
# before it, as `after`, selects it. An id that ends in zeros, one in 2^48, is not checked.
check_position() {
  local digits=$((16#${1: -12}))
  ((digits > 0)) || return 0
  get --max-time "$read_timeout_s" --data limit=1 --data "after=${1:0:24}$(printf %012x $((digits - 1)))" |
    jq -r --arg position "$1" 'select(.events and .events[0].event_id != $position) |
      "refused the cursor \($position) is not in the log, which ends at \(.snapshot_through_event_id)"'
}

# Prints one response as lines: `event JSON`, `position ID` after the events of each record, and
# `caught_up`, `end REASON` or `refused REASON`.
records() {
  local position='' after=()
  if [[ -e $cursor ]]; then
    position=$(< "$cursor")
    after=(--data-urlencode "after=$position")
  fi
  [[ -z $position ]] || check_position "$position"
  get --data follow=true "${after[@]}" "${filters[@]}" |
    jq --unbuffered -rc '
      if .error then "refused \(.error): \(.message)"
      elif .type == "end" then "end \(.detail // .reason)"
      else
        (.events[]? | "event \(tojson)"),
        (.next_after // empty | "position \(.)"),
        (if .type == "caught_up" then "caught_up" else empty end)
      end'
}

silence="the service sent nothing for $read_timeout_s s"
while true; do
  reason='the connection was lost'
  records > "$scratch/records" &
  job=$!
  disown
  # Until it has sent the whole log, the service sends a record every few seconds.
  limit=(-t "$read_timeout_s")
  while read -r "${limit[@]}" kind rest || { (($? <= 128)) || reason=$silence; false; }; do
    case $kind in
      event) printf '%s\n' "$rest" ;;
      position)
        printf '%s\n' "$rest" > "$cursor.new"
        sync "$cursor.new"
        mv "$cursor.new" "$cursor" ;;
      caught_up) limit=(); [[ -z $once ]] || exit 0 ;;
      end) reason=$rest ;;
      refused) refuse "$rest" ;;
    esac
  done < "$scratch/records"
  end_job
  echo "follow: $reason; reconnecting" >&2
  sleep "$pause_s"
done
