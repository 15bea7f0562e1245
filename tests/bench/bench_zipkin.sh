#!/usr/bin/env bash
# remap-bench-zipkin - what it costs to collect a window of spans from a real Zipkin (etc/test-servers):
# the monitor, beside curl downloading the very same pages and jq counting their spans, in the same run,
# page after page as a person would script it.
#
#     remap-bench-zipkin [SPANS]           100000
#
# Needs Java, curl, jq and Python. Nothing is asserted: times are this machine's, their ratio is not.
set -euo pipefail

bin=${REMAP_BIN:-@CMAKE_BINARY_DIR@/bin}
spans=${1:-100000}
jar=${XDG_CACHE_HOME:-$HOME/.cache}/remap/zipkin-server-3.4.4-exec.jar
work=$(mktemp -d "${TMPDIR:-/tmp}/remap-bench.XXXXXX")
started=()
trap 'kill "${started[@]}" 2>/dev/null; wait 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

fail() { echo "remap-bench-zipkin: $1" >&2; exit 1; }

[ -f "$jar" ] || fail "no Zipkin in the cache: etc/test-servers zipkin"
for program in java curl jq python3; do
    command -v "$program" >/dev/null || fail "$program is not installed"
done

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
port=$(free_port) proxy=$(free_port)
url=http://127.0.0.1:$port

QUERY_PORT=$port MEM_MAX_SPANS=500000 java -Xmx768m -jar "$jar" >"$work/zipkin.log" 2>&1 &
started+=($!)
for _ in $(seq 600); do
    curl -sf "$url/health" >/dev/null && break
    sleep 0.2
done
curl -sf "$url/health" >/dev/null || fail "Zipkin does not come up: $(tail -n 3 "$work/zipkin.log")"

# Calls of ten services, ten spans a trace, evenly over ten minutes.
now=$(($(date +%s) * 1000))
from=$((now - 660000)) to=$((now - 60000))
python3 - "$url/api/v2/spans" "$spans" $from $to <<'END'
import json, sys, urllib.request
url, spans, start, end = sys.argv[1], *map(int, sys.argv[2:5])
traces, batch = spans // 10, []
for t in range(traces):
    at = (start + (end - start) * t // traces) * 1000
    for c in range(5):
        for half, kind in enumerate(("CLIENT", "SERVER")):
            service = "svc-%d" % ((t + c + half) % 10)
            span = {"traceId": "%032x" % (t + 1), "id": "%016x" % (2 * c + half + 1), "kind": kind,
                    "name": "get /", "timestamp": at + 1000 * c, "duration": 900,
                    "localEndpoint": {"serviceName": service, "ipv4": "10.0.0.%d" % (c + 1)},
                    "tags": {"http.method": "GET", "http.path": "/api/v1/things/%d" % t,
                             "http.response.size": "1200"}}
            if 2 * c + half:
                span["parentId"] = "%016x" % (2 * c + half)
            batch.append(span)
    if len(batch) >= 5000 or t == traces - 1:
        request = urllib.request.Request(url, json.dumps(batch).encode(), {"Content-Type": "application/json"})
        urllib.request.urlopen(request).read()
        batch = []
END

# A cluster to join the names with, and the request of a collect.
cat >"$work/scenario.yaml" <<END
name: shop
seed: 1
hosts:
  - {name: n, count: 2, cpu: 8, memory: 16Gi}
services:
$(for i in 0 1 2 3 4 5 6 7 8 9; do echo "  - {name: svc-$i, hosts: [n-1], entry_rate: 1}"; done)
calls:
  - {from: svc-0, to: svc-1, per_request: 1, bytes: 1Ki}
END
"$bin/remap-simulated" --scenario "$work/scenario.yaml" --socket "$work/s" --journal "$work/j" 2>"$work/sim.log" &
started+=($!)
for _ in $(seq 100); do [ -S "$work/s" ] && break; sleep 0.05; done
write_request() # URL
{
    cat <<END
{"v":1,"app":{"name":"shop","namespaces":[],"services":[]},"from_ms":$from,"to_ms":$to,"sources":{"cluster":
{"name":"cluster","type":"simulated","options":[{"name":"socket","value":"$work/s"}]},"metrics":[],
"messages":[{"name":"zipkin","type":"zipkin","options":[{"name":"url","value":"$1"}]}]},"aliases":[]}
END
}
write_request "$url" >"$work/request"
write_request "http://127.0.0.1:$proxy" >"$work/request-proxy"

# Which pages the monitor asks for, by a proxy that writes them down.
python3 - "$proxy" "$url" "$work/pages" <<'END' &
import http.server, sys, urllib.request
port, url, pages = int(sys.argv[1]), sys.argv[2], open(sys.argv[3], "a")
class Proxy(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = urllib.request.urlopen(url + self.path).read()
        print(url + self.path, file=pages, flush=True)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args):
        pass
http.server.HTTPServer(("127.0.0.1", port), Proxy).serve_forever()
END
started+=($!)
for _ in $(seq 100); do curl -sf "http://127.0.0.1:$proxy/health" >/dev/null && break; sleep 0.05; done
: >"$work/pages"
"$bin/remap-monitor" --filter collect <"$work/request-proxy" >/dev/null 2>"$work/log" || fail "$(tail -n 1 "$work/log")"
grep /api/v2/traces "$work/pages" >"$work/urls"

# timed COMMAND: wall and CPU milliseconds of it and its children to $work/ms.
timed() { local TIMEFORMAT='%R %U %S'; { time "$@" 2>"$work/err"; } 2>"$work/time" && awk '{ printf "%d %d\n", $1 * 1000, ($2 + $3) * 1000 }' "$work/time" >"$work/ms"; }
# Neither asks for gzip: the server is on this machine.
peer()
{
    while read -r page; do
        curl -s "$page" | jq 'map(length) | add'
    done <"$work/urls" | awk '{ n += $1 } END { print n }' >"$work/peer"
}
ours() { /usr/bin/env time -f %M -o "$work/kib" "$bin/remap-monitor" --filter collect <"$work/request" >"$work/model" 2>"$work/log"; }
command -v time >/dev/null || ours() { "$bin/remap-monitor" --filter collect <"$work/request" >"$work/model" 2>"$work/log"; }

echo "$spans spans of Zipkin 3.4.4 in $(wc -l <"$work/urls") pages"
echo "(curl and jq one page after the other; wall time holds Zipkin's own, CPU is that of the callers)"
for round in 1 2 3 4 5; do
    timed peer
    read -r peer_ms peer_cpu <"$work/ms"
    timed ours || fail "$(tail -n 1 "$work/log")"
    read -r ours_ms ours_cpu <"$work/ms"
    printf 'round %d: curl and jq %5d ms, CPU %5d ms (%d spans)   remap %5d ms, CPU %4d ms (%d messages)   ratio %s, of CPU %s\n' \
        $round "$peer_ms" "$peer_cpu" "$(cat "$work/peer")" "$ours_ms" "$ours_cpu" \
        "$(jq '[.messages[].count] | add' "$work/model")" \
        $(python3 -c "print('%.1f %.1f' % ($peer_ms / $ours_ms, $peer_cpu / max($ours_cpu, 1)))")
done
[ ! -s "$work/kib" ] || echo "memory of the monitor: $(($(tail -n 1 "$work/kib") / 1024)) MiB at most"
