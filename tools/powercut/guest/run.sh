# Starts all programs, waits for a line with the time in seconds, then mounts the disk under test
# and serves from it. The host saves the machine while this script waits, and resumes it after each
# power cut. The variables come from the kernel command line.
export PATH=/bin:/usr/bin HOME=/tmp
cd /product/tools/powercut/guest
deployment=/disk/deployment
config=$deployment/service.toml
node gateway.js "$deployment/data/ground.sock" &
mkfifo /tmp/start
LD_PRELOAD=$serve_preload node serve.js "$config" "$rotate_bytes" < /tmp/start &
server=$!
exec 3> /tmp/start
while [ ! -e /tmp/gateway.loaded ] || [ ! -e /tmp/serve.loaded ]; do sleep 0.1; done
echo "powercut: waiting"
read -r now
date -s "@$now" > /dev/null
if mount -t "$fs_type" -o "$fs_options" /dev/vdb /disk; then
  echo >&3
  # Each further line drops the page cache.
  while read -r _; do
    echo 3 > /proc/sys/vm/drop_caches
    echo "powercut: dropped"
  done < /dev/console &
  wait "$server"
  echo "powercut: serve exited with status $?"
else
  echo "powercut: cannot mount the disk"
fi
poweroff -f
