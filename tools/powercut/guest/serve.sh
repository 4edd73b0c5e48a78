# Serves the log on the disk under test, and forwards connections from the host to it.
export PATH=/bin:/usr/bin HOME=/tmp NODE_COMPILE_CACHE=/cache NODE_COMPILE_CACHE_PORTABLE=1
cd /product
config=/disk/deployment/service.toml
[ -e "$config" ] || node cli.ts init /disk/deployment
socat TCP-LISTEN:7000,fork,reuseaddr,backlog=64 UNIX-CONNECT:/disk/deployment/data/ground.sock &
socat TCP-LISTEN:7001,fork,reuseaddr SYSTEM:"node cli.ts --config $config verify --chain 2>&1; echo exit \$?" &
LD_PRELOAD=$serve_preload node tools/serve_rotating.ts "$config" "$rotate_bytes"
echo "powercut: serve exited with status $?"
poweroff -f
