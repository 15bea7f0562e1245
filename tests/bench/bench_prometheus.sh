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
series=${1:-100000}
work=$(mktemp -d "${TMPDIR:-/tmp}/remap-bench.XXXXXX")
started=()
trap 'kill "${started[@]}" 2>/dev/null; wait 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

fail() { echo "remap-bench-prometheus: $1" >&2; exit 1; }

for program in prometheus promtool curl jq python3; do
    command -v "$program" >/dev/null || fail "$program is not installed"
done

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
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
for _ in $(seq 600); do curl -sf "$url/-/ready" >/dev/null && break; sleep 0.1; done
curl -sf "$url/-/ready" >/dev/null || fail "Prometheus does not come up: $(tail -n 3 "$work/prometheus.log")"

# A cluster to join the names with, and the request of a collect.
cat >"$work/scenario.yaml" <<END
name: shop
seed: 1
hosts:
  - {name: n, count: 2, cpu: 8, memory: 16Gi}
services:
  - {name: front, hosts: [n-1], entry_rate: 1}
END
"$bin/remap-simulated" --scenario "$work/scenario.yaml" --socket "$work/s" --journal "$work/j" 2>"$work/sim.log" &
started+=($!)
for _ in $(seq 100); do [ -S "$work/s" ] && break; sleep 0.05; done
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

# What the monitor asks, by a proxy that writes it down.
python3 - "$proxy" "$url" "$work/queries" <<'END' &
import http.server, sys, urllib.request
port, url, queries = int(sys.argv[1]), sys.argv[2], open(sys.argv[3], "a")
class Proxy(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        asked = self.rfile.read(int(self.headers["Content-Length"]))
        body = urllib.request.urlopen(urllib.request.Request(url + self.path, asked)).read()
        print(url + self.path, asked.decode(), file=queries, flush=True)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args):
        pass
http.server.HTTPServer(("127.0.0.1", port), Proxy).serve_forever()
END
started+=($!)
for _ in $(seq 100); do curl -s "http://127.0.0.1:$proxy/" >/dev/null && break; sleep 0.05; done
"$bin/remap-monitor" --filter collect <"$work/request-proxy" >/dev/null 2>"$work/log" || fail "$(tail -n 1 "$work/log")"

# timed COMMAND: wall and CPU milliseconds of it and its children to $work/ms.
timed() { local TIMEFORMAT='%R %U %S'; { time "$@" 2>"$work/err"; } 2>"$work/time" && awk '{ printf "%d %d\n", $1 * 1000, ($2 + $3) * 1000 }' "$work/time" >"$work/ms"; }
server()
{
    while read -r at query; do
        curl -sf -o /dev/null -d "$query" "$at"
    done <"$work/queries"
}
ours() { "$bin/remap-monitor" --filter collect <"$work/request" >"$work/model" 2>"$work/log"; }

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
