#!/bin/sh
# Installs the program as `eventlog` (Debian has another `service`), with its manual page, its
# completions, the unit of the service and the weekly check of its history.
set -eu

usage() {
  cat << 'END'
usage: install.sh [--prefix DIR] [--destdir DIR] PROGRAM

  PROGRAM        the executable
  --prefix DIR   where it goes (default: /usr/local)
  --destdir DIR  root of a package to build: only writes files below it
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
    *) [ -z "$program" ] || refuse "one program is installed, got $program and $1"; program=$1 ;;
  esac
  shift
done
[ -n "$program" ] || refuse "the program is required; see --help"
[ -x "$program" ] || refuse "$program is no executable"

here=$(dirname "$0")
share=$destdir$prefix/share
units=$destdir/etc/systemd/system
# Its own output below names the program as it is called, so it is called by the new name.
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
for unit in eventlog.service eventlog-verify.service eventlog-verify.timer; do
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
install: installed. Next, as root:
  setpriv --reuid=eventlog --regid=eventlog --clear-groups eventlog init /srv/log
  systemctl enable --now eventlog.service eventlog-verify.timer
END
