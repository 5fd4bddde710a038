#!/usr/bin/env bash
# A Ray cluster of several nodes on this machine, to try out `launch.evaluate --engine=ray` or to test it.
#   bash launch/ray_local.sh [NODES [CPUS_PER_NODE [PORT]]]
# It runs until Ctrl-C, and ends no other Ray but its own. With RAY_LOCAL_DIR=DIR the pid of each node's `ray start` goes
# to DIR/node-N.pid; with RAY_LOCAL_PARENT=PID it ends with that process, however that ends.
set -euo pipefail
nodes="${1:-2}"
cpus="${2:-1}"
port="${3:-6399}"
python="${PYTHON:-python3}"
directory="${RAY_LOCAL_DIR:-$(mktemp -d)}"
# Ray's workers are nice to others unless told not to be, and would wait for whatever else the machine does.
export RAY_USAGE_STATS_ENABLED=0 RAY_DISABLE_DOCKER_CPU_WARNING=1 RAY_worker_niceness=0

if ! "$python" -c 'import ray' 2>/dev/null; then
  echo "error: Ray is not installed for '$python'; pip install '.[cluster]', or name another with PYTHON=" >&2
  exit 1
fi

# Where there is a ~/.ray/auth_token the first node would ask for it, and the others would not send it.
export RAY_AUTH_MODE="${RAY_AUTH_MODE:-disabled}"

pids=()
# The groups of our own processes: `ray stop` would end everybody's.
finish() {
  trap - EXIT INT TERM
  for pid in "${pids[@]}"; do kill -TERM -- "-$pid" 2>/dev/null || true; done
  for _ in $(seq 50); do
    kill -0 "${pids[@]}" 2>/dev/null || break
    sleep 0.1
  done
  for pid in "${pids[@]}"; do kill -KILL -- "-$pid" 2>/dev/null || true; done
}
trap finish EXIT
trap 'exit 0' INT TERM

set -m # each node in a process group of its own
start() {
  "$python" -m ray.scripts.scripts start --block --disable-usage-stats --num-cpus="$cpus" \
    --object-store-memory=100000000 "$@" >"$directory/node-${#pids[@]}.log" 2>&1 &
  echo $! >"$directory/node-${#pids[@]}.pid"
  pids+=($!)
}

start --head --port="$port" --include-dashboard=false --node-ip-address=127.0.0.1
for _ in $(seq 600); do
  if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then break; fi
  kill -0 "${pids[0]}" 2>/dev/null || { cat "$directory/node-0.log" >&2; exit 1; }
  sleep 0.1
done
for _ in $(seq 2 "$nodes"); do
  start --address="127.0.0.1:$port" --node-ip-address=127.0.0.1
done
echo "a Ray cluster of $nodes nodes is starting; use --engine=ray --ray_address=127.0.0.1:$port"
while kill -0 "${pids[0]}" 2>/dev/null; do
  if [ -n "${RAY_LOCAL_PARENT:-}" ] && ! kill -0 "$RAY_LOCAL_PARENT" 2>/dev/null; then exit 0; fi
  sleep 1 &
  wait $!
done
