#!/usr/bin/env bash
# Reports the state of a log, either to Nagios and similar monitors (a status line and an exit code)
# or to Prometheus (a file for node_exporter's textfile collector). Requires curl and jq.
set -euo pipefail
# Compare ids bytewise.
export LC_ALL=C

usage() {
  cat << 'END'
usage: probe.sh --socket SOCKET --log DIR [--cursor NAME=FILE]... [LIMIT...]
       probe.sh --socket SOCKET --log DIR [--cursor NAME=FILE]... --prometheus FILE

  --socket SOCKET      socket of the service
  --log DIR            directory of the log: data/log in the deployment
  --cursor NAME=FILE   a consumer, and the file with its position (an event id)
  --token-file FILE    file with the bearer token, if the service requires one
  --prometheus FILE    write metrics to FILE instead; - is standard output

limits (low free space and a stopped writer are critical; the others are warnings):
  --age-max SECONDS    age of the last event (default: none); a time in the future is also a warning
  --lag-max SECONDS    how far a consumer may lag behind the last event (default: none)
  --tail-max BYTES     size of the tail, which is sealed at 64 MiB (default: 128 MiB)
  --free-min BYTES     free disk space in excess of the tail's size (default: 200 MiB)

exit status: 0 OK, 1 warning, 2 critical, 3 unknown (the probe itself failed)
END
}

fail() {
  echo "EVENTLOG UNKNOWN - $1"
  exit 3
}

timeout_s=5
socket='' log='' token_file='' prometheus='' age_max='' lag_max=''
tail_max=$((128 * 1024 * 1024)) free_min=$((200 * 1024 * 1024))
cursors=()
while (($# > 0)); do
  case $1 in
    --help | -h) usage; exit 0 ;;
    --socket | --log | --cursor | --token-file | --prometheus | --age-max | --lag-max | --tail-max | --free-min)
      (($# > 1)) || fail "$1 needs a value" ;;
    *) fail "unknown option $1; see --help" ;;
  esac
  case $1 in
    --socket) socket=$2 ;;
    --log) log=$2 ;;
    --cursor) [[ $2 == *=* ]] || fail "--cursor must be NAME=FILE, got $2"; cursors+=("$2") ;;
    --token-file) token_file=$2 ;;
    --prometheus) prometheus=$2 ;;
    *)
      [[ $2 =~ ^[0-9]+$ ]] || fail "$1 must be a whole number, got $2"
      name=${1#--}
      printf -v "${name//-/_}" '%s' "$2" ;;
  esac
  shift 2
done
[[ -n $socket && -n $log ]] || fail "--socket and --log are required"
[[ -z $token_file || -r $token_file ]] || fail "cannot read $token_file"

# Timestamp of an event id, in Unix milliseconds.
ms_of() { echo $((16#${1:0:8}${1:9:4})); }

# Prints the authorization header for a pipe, because arguments are visible in the process list.
authorization() { [[ -z $token_file ]] || printf 'Authorization: Bearer %s\n' "$(< "$token_file")"; }

up=1 frontier='' poisoned=0
if [[ ! -S $socket ]]; then
  up=0 answer='no such socket, or no access to its directory'
elif answer=$(authorization | curl --silent --show-error --fail --include --max-time "$timeout_s" \
  --header @- --unix-socket "$socket" 'http://localhost/v1/streams?limit=1' 2>&1); then
  frontier=$(tail -n 1 <<< "$answer" | jq -r '.snapshot_through_event_id // empty')
  # After a failed write, reads go on, but appends fail until a restart.
  if grep -qi '^writer-state: poisoned' <<< "$answer"; then poisoned=1; fi
else
  up=0
fi

[[ -r $log/manifest.json ]] || fail "cannot read $log/manifest.json"
segments=$(jq '.segments | length' "$log/manifest.json")
tail_bytes=$(stat --format=%s "$log/tail.ndjson" 2> /dev/null || echo 0)
free_bytes=$(df --output=avail --block-size=1 "$log" | tail -n 1 | tr -d ' ')

age_s='' beyond='' lags=() beyonds=()
if [[ -n $frontier ]]; then
  frontier_ms=$(ms_of "$frontier")
  age_s=$((($(date +%s%3N) - frontier_ms) / 1000))
fi
for cursor in "${cursors[@]}"; do
  name=${cursor%%=*} file=${cursor#*=}
  [[ $name =~ ^[A-Za-z0-9_.-]+$ ]] || fail "consumer names consist of letters, digits, _ . and -, got $name"
  [[ -r $file ]] || fail "cannot read $file, the cursor file of $name"
  position=$(tr -d '[:space:]' < "$file")
  [[ $position =~ ^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$ ]] || fail "$file does not contain an event id"
  ((up)) || continue
  # After a restore from an older backup, a consumer may be ahead of the log.
  is_beyond=0
  if [[ $position > $frontier ]]; then is_beyond=1 beyond+="${beyond:+, }$name"; fi
  beyonds+=("$name=$is_beyond")
  lag_ms=$((${frontier_ms:-0} - $(ms_of "$position")))
  lags+=("$name=$((lag_ms > 0 ? (lag_ms + 999) / 1000 : 0))")
done

if [[ -n $prometheus ]]; then
  metrics() {
    metric() { printf '# HELP eventlog_%s %s\n# TYPE eventlog_%s gauge\n' "$1" "$2" "$1"; }
    metric up 'Whether the service responds.'
    echo "eventlog_up $up"
    if ((up)); then
      metric writer_poisoned 'Whether appends fail until the service is restarted.'
      echo "eventlog_writer_poisoned $poisoned"
    fi
    if [[ -n $age_s ]]; then
      metric frontier_age_seconds 'Time since the last event was committed.'
      echo "eventlog_frontier_age_seconds $age_s"
    fi
    metric tail_bytes 'Size of the tail, which is sealed at 64 MiB.'
    echo "eventlog_tail_bytes $tail_bytes"
    metric segments 'Number of sealed segments.'
    echo "eventlog_segments $segments"
    metric free_bytes 'Free space on the disk that holds the log.'
    echo "eventlog_free_bytes $free_bytes"
    # consumers NAME HELP NAME=VALUE...: prints a metric for each consumer
    consumers() {
      (($# > 2)) || return 0
      metric "consumer_$1" "$2"
      for pair in "${@:3}"; do echo "eventlog_consumer_$1{consumer=\"${pair%=*}\"} ${pair##*=}"; done
    }
    consumers lag_seconds 'Time between the consumer position and the last event.' "${lags[@]}"
    consumers beyond_log 'Whether the consumer position is beyond the end of the log.' "${beyonds[@]}"
  }
  if [[ $prometheus == - ]]; then
    metrics
  else
    metrics > "$prometheus.new"
    mv "$prometheus.new" "$prometheus"
  fi
  exit 0
fi

status=0 words=(OK WARNING CRITICAL) findings=''
# found STATUS TEXT: adds a finding; the worst status becomes the exit status
found() {
  status=$(($1 > status ? $1 : status))
  findings+="${findings:+, }$2"
}
((up)) || found 2 "cannot read from $socket: ${answer//$'\n'/ }"
if ((poisoned)); then found 2 'the writer stopped, appends fail: restart the service'; fi
[[ -z $beyond ]] || found 2 "the log ends before the cursor of $beyond"
if ((free_bytes < tail_bytes + free_min)); then found 2 "$free_bytes bytes free"; fi
if ((tail_bytes > tail_max)); then found 1 "tail is $tail_bytes bytes"; fi
if [[ -n $age_max && -n $age_s ]] && ((age_s > age_max)); then found 1 "last event $age_s s ago"; fi
if [[ -n $age_s ]] && ((age_s < -60)); then found 1 "last event ${age_s#-} s in the future: check the clock"; fi
for lag in "${lags[@]}"; do
  if [[ -n $lag_max ]] && ((${lag##*=} > lag_max)); then found 1 "${lag%=*} is ${lag##*=} s behind"; fi
done
numbers="tail=${tail_bytes}B segments=$segments free=${free_bytes}B${age_s:+ age=${age_s}s}"
for lag in "${lags[@]}"; do numbers+=" lag_${lag}s"; done
echo "EVENTLOG ${words[status]} - ${findings:-up} | $numbers"
exit "$status"
