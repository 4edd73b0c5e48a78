#!/usr/bin/env bash
# A connector built with curl and jq: appends events from standard input, one JSON object per line.
#
#     jq -c '{stream: "logs", record_key: .id, kind: "upserted", payload: .}' rows.ndjson |
#       examples/shell/append.sh --socket demo/data/ground.sock --source import --batch 2026-01-31
#
# A second run with the same batch ID and the same lines appends nothing.
set -euo pipefail

usage() {
  cat << 'END'
usage: append.sh --socket SOCKET --source NAME --batch ID < EVENTS

  --socket SOCKET    socket of the service
  --source NAME      source of the events
  --batch ID         prefix of the batch ids, which are ID/0, ID/1000 and so on
  --token-file FILE  file with the bearer token, if the service requires one
END
}

refuse() {
  echo "append: $1" >&2
  exit "${2:-1}"
}

batch_lines=1000 attempts_max=8 socket_wait_s=60
socket='' source='' batch='' token_file=''
while (($# > 0)); do
  case $1 in
    --help | -h) usage; exit 0 ;;
    --socket | --source | --batch | --token-file)
      (($# > 1)) || refuse "$1 needs a value" 2
      name=${1#--}
      printf -v "${name//-/_}" '%s' "$2" ;;
    *) refuse "unknown option $1; see --help" 2 ;;
  esac
  shift 2
done
[[ -n $socket && -n $source && -n $batch ]] || refuse "--socket, --source and --batch are required" 2
(($(printf %s "$socket" | wc -c) <= 107)) || refuse "$socket: longer than 107 bytes"
# At boot, the service may start after this program.
for ((tries = 0; tries < socket_wait_s * 5; tries++)); do [[ ! -e $socket ]] || break; sleep 0.2; done
[[ -e $socket ]] || refuse "$socket: no such socket; is the service running?"
[[ -S $socket ]] || refuse "$socket: not a socket"
[[ -w $socket ]] || refuse "$socket: no write permission"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
{
  echo 'Content-Type: application/json'
  [[ -z $token_file ]] || printf 'Authorization: Bearer %s\n' "$(< "$token_file")"
} > "$scratch/headers"

# Sends the batch in $scratch/body, with retries, until it is committed.
append() {
  local attempt status why
  for ((attempt = 1; attempt <= attempts_max; attempt++)); do
    # 000 means that there was no response. The batch may be committed; resending it is safe.
    status=$(curl --silent --max-time 60 --unix-socket "$socket" --header "@$scratch/headers" \
      --data-binary "@$scratch/body" --output "$scratch/answer" --write-out '%{http_code}' \
      http://localhost/v1/events) || status=000
    case $status in
      200) jq -r '"\(.status) \(.events) events through \(.last_event_id)"' "$scratch/answer"; return ;;
      000) why="no response from $socket" ;;
      *) why=$(jq -r '[([.error, .message] | join(": ")),
          (.errors[]? | "event \(.index): \(.message)")] | join("\n  ")' "$scratch/answer") ||
        why="status $status" ;;
    esac
    # After 429 and 500 storage_full, nothing was written. A 503 persists until a restart.
    [[ $status == 000 || $status == 429 || $status == 5* ]] || refuse "$why"
    echo "append: $why; retrying" >&2
    sleep "$((attempt < 5 ? attempt : 5))"
  done
  refuse "$why; gave up after $attempts_max attempts"
}

for ((first = 0; ; first += batch_lines)); do
  mapfile -n "$batch_lines" -t lines
  ((${#lines[@]} > 0)) || break
  printf '%s\n' "${lines[@]}" |
    jq -cs --arg source "$source" --arg batch "$batch/$first" \
      '{source: $source, batch_id: $batch, events: .}' > "$scratch/body" ||
    refuse "lines $((first + 1)) to $((first + ${#lines[@]})): not one JSON object per line"
  append
done
