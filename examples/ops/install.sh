#!/bin/sh
# Installs the program as `eventlog` (Debian already has a `service` command), with its manual page,
# shell completions, systemd unit, weekly verification timer and optional restart timer.
set -eu

usage() {
  cat << 'END'
usage: install.sh [--prefix DIR] [--destdir DIR] PROGRAM

  PROGRAM        executable to install
  --prefix DIR   installation prefix (default: /usr/local)
  --destdir DIR  staging root for packaging; nothing is written outside it
END
}

refuse() {
  echo "install: $1" >&2
  exit 2
}

prefix=/usr/local destdir='' program=''
while [ $# -gt 0 ]; do
  case $1 in
    --help | -h) usage; exit 0 ;;
    --prefix | --destdir)
      [ $# -gt 1 ] || refuse "$1 needs a value"
      case $1 in --prefix) prefix=$2 ;; *) destdir=$2 ;; esac
      shift ;;
    -*) refuse "unknown option $1; see --help" ;;
    *) [ -z "$program" ] || refuse "expected one program, got $program and $1"; program=$1 ;;
  esac
  shift
done
[ -n "$program" ] || refuse "PROGRAM is required; see --help"
[ -f "$program" ] && [ -x "$program" ] || refuse "$program is not an executable"

here=$(dirname "$0")
share=$destdir$prefix/share
units=$destdir/etc/systemd/system
# Run the installed copy, because the manual page and completions use the name it is invoked by.
installed=$destdir$prefix/bin/eventlog

install -D --mode=0755 "$program" "$installed"
put() {
  mkdir -p "$(dirname "$1")"
  "$installed" "$2" ${3+"$3"} > "$1"
  chmod 0644 "$1"
}
put "$share/man/man1/eventlog.1" --man
put "$share/bash-completion/completions/eventlog" --completions bash
put "$share/zsh/site-functions/_eventlog" --completions zsh
put "$share/fish/vendor_completions.d/eventlog.fish" --completions fish
mkdir -p "$units"
for unit in eventlog.service eventlog-verify.service eventlog-verify.timer \
  eventlog-restart.service eventlog-restart.timer; do
  sed "s|/usr/local/bin/|$prefix/bin/|" "$here/$unit" > "$units/$unit"
  chmod 0644 "$units/$unit"
done
[ -z "$destdir" ] || exit 0

if ! getent passwd eventlog > /dev/null; then
  useradd --system --home-dir /srv/log --shell /usr/sbin/nologin eventlog
fi
install --directory --owner=eventlog --mode=0750 /srv/log
systemctl daemon-reload
cat << 'END'
install: done. Next, as root:
  setpriv --reuid=eventlog --regid=eventlog --clear-groups eventlog init /srv/log
  systemctl enable --now eventlog.service eventlog-verify.timer
END
