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

pause_s=1
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
[[ -S $socket ]] || refuse "$socket: no such socket; is the service running?"

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

# Prints one response as lines: `event JSON`, `position ID` after the events of each record, and
# `caught_up`, `end REASON` or `refused REASON`.
records() {
  local position='' after=()
  if [[ -e $cursor ]]; then
    position=$(< "$cursor")
    after=(--data-urlencode "after=$position")
  fi
  { [[ -z $token_file ]] || printf 'Authorization: Bearer %s\n' "$(< "$token_file")"; } |
    curl --silent --show-error --no-buffer --get --header @- --unix-socket "$socket" \
      --data follow=true "${after[@]}" "${filters[@]}" http://localhost/v1/events |
    jq --unbuffered -rc --arg after "$position" '
      if .error then "refused \(.error): \(.message)"
      elif .type == "end" then "end \(.detail // .reason)"
      elif ($after != "" and (.snapshot_through_event_id // "") < $after) then
        "refused the log ends at \(.snapshot_through_event_id), before the cursor \($after)"
      else
        (.events[]? | "event \(tojson)"),
        (.next_after // empty | "position \(.)"),
        (if .type == "caught_up" then "caught_up" else empty end)
      end'
}

while true; do
  reason='the connection was lost'
  records > "$scratch/records" &
  job=$!
  disown
  while read -r kind rest; do
    case $kind in
      event) printf '%s\n' "$rest" ;;
      position)
        printf '%s\n' "$rest" > "$cursor.new"
        sync "$cursor.new"
        mv "$cursor.new" "$cursor" ;;
      caught_up) [[ -z $once ]] || exit 0 ;;
      end) reason=$rest ;;
      refused) refuse "$rest" ;;
    esac
  done < "$scratch/records"
  end_job
  echo "follow: $reason; reconnecting" >&2
  sleep "$pause_s"
done
