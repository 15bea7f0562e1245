#!/usr/bin/env bash
# remap-bench-prometheus - what it costs to collect usage from a real Prometheus with many series: the
# monitor, beside curl that asks the very same queries one after the other and drops the answers (the
# server's own time), in the same run.
#
#     remap-bench-prometheus [SERIES]           100000
#
# Needs prometheus, promtool, curl, jq and Python. Nothing is asserted: times are this machine's.
set -euo pipefail

bin=${REMAP_BIN:-@CMAKE_BINARY_DIR@/bin}
name=remap-bench-prometheus
. "@CMAKE_CURRENT_SOURCE_DIR@/lib_collect.sh"

series=${1:-100000}
needs prometheus promtool curl jq python3
port=$(free_port) proxy=$(free_port)
url=http://127.0.0.1:$port

# Pods of two series, a sample a minute for half an hour.
end=$(($(date +%s) / 60 * 60))
python3 - "$series" $end >"$work/samples" <<'END'
import sys
pods, end = int(sys.argv[1]) // 2, int(sys.argv[2])
for name, kind in (("container_cpu_usage_seconds", "counter"), ("container_memory_working_set_bytes", "gauge")):
    print("# TYPE %s %s" % (name, kind))
    suffix = "_total" if kind == "counter" else ""
    for pod in range(pods):
        for t in range(end - 1800, end + 1, 60):
            value = (t - end + 1800) * 0.1 if kind == "counter" else 1e8
            print('%s%s{namespace="shop",pod="pod-%d",container="app"} %g %d' % (name, suffix, pod, value, t))
print("# EOF")
END
promtool tsdb create-blocks-from openmetrics "$work/samples" "$work/data" >"$work/promtool" 2>&1 ||
    fail "$(tail -n 3 "$work/promtool")"
prometheus --config.file=/dev/null --storage.tsdb.path="$work/data" --storage.tsdb.retention.time=10y \
    --web.listen-address="127.0.0.1:$port" 2>"$work/prometheus.log" &
started+=($!)
up "$url/-/ready" Prometheus "$work/prometheus.log"

# A cluster to join the names with, and the request of a collect.
cat >"$work/scenario.yaml" <<END
name: shop
seed: 1
hosts:
  - {name: n, count: 2, cpu: 8, memory: 16Gi}
services:
  - {name: front, hosts: [n-1], entry_rate: 1}
END
cluster
write_request() # URL
{
    cat <<END
{"v":1,"app":{"name":"shop","namespaces":[],"services":[]},"from_ms":$(((end - 600) * 1000)),"to_ms":$((end * 1000)),
"sources":{"cluster":{"name":"cluster","type":"simulated","options":[{"name":"socket","value":"$work/s"}]},
"metrics":[{"name":"prometheus","type":"prometheus","options":[{"name":"url","value":"$1"},{"name":"timeout","value":"60s"},
{"name":"hosts","value":"none"}]}],"messages":[]},"aliases":[]}
END
}
write_request "$url" >"$work/request"
write_request "http://127.0.0.1:$proxy" >"$work/request-proxy"

recorder "$proxy" "$url" "$work/queries"
collect "$work/request-proxy" || fail "$(tail -n 1 "$work/log")"

server()
{
    while read -r at query; do
        curl -sf -o /dev/null -d "$query" "$at"
    done <"$work/queries"
}
ours() { collect "$work/request"; }

echo "$series series of $(prometheus --version 2>&1 | head -n 1 | cut -d ' ' -f 1-3), $(wc -l <"$work/queries") queries"
echo "(the server's time is that of curl with the same queries, answers dropped)"
for round in 1 2 3 4 5; do
    timed server
    read -r server_ms _ <"$work/ms"
    timed ours || fail "$(tail -n 1 "$work/log")"
    read -r ours_ms ours_cpu <"$work/ms"
    printf 'round %d: server %5d ms   remap %5d ms, of its own CPU %4d ms   beyond the server %d ms\n' \
        $round "$server_ms" "$ours_ms" "$ours_cpu" $((ours_ms - server_ms))
done
