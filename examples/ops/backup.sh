#!/usr/bin/env bash
# Adds a verified copy of a deployment to a directory and keeps the last seven. Run it as the
# service's user, even while the service runs, for example daily from cron or a systemd timer.
# The variable PROGRAM names the program, if not eventlog.
set -euo pipefail
[[ ${1:-} != --help ]] || { echo "usage: backup.sh [DEPLOYMENT [DIR]]"; exit 0; }
deployment=${1:-/srv/log} to=${2:-/backup/log}
exec "${PROGRAM:-eventlog}" backup "$to" --config "$deployment/service.toml" --keep 7
