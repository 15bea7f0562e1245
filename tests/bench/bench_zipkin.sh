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
name=remap-bench-zipkin
. "@CMAKE_CURRENT_SOURCE_DIR@/lib_collect.sh"

spans=${1:-100000}
jar=${XDG_CACHE_HOME:-$HOME/.cache}/remap/zipkin-server-3.4.4-exec.jar
[ -f "$jar" ] || fail "no Zipkin in the cache: etc/test-servers zipkin"
needs java curl jq python3
port=$(free_port) proxy=$(free_port)
url=http://127.0.0.1:$port

QUERY_PORT=$port MEM_MAX_SPANS=500000 java -Xmx768m -jar "$jar" >"$work/zipkin.log" 2>&1 &
started+=($!)
up "$url/health" Zipkin "$work/zipkin.log"

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
cluster
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

recorder "$proxy" "$url" "$work/pages"
collect "$work/request-proxy" || fail "$(tail -n 1 "$work/log")"
grep /api/v2/traces "$work/pages" >"$work/urls"

# Neither asks for gzip: the server is on this machine.
peer()
{
    while read -r page; do
        curl -s "$page" | jq 'map(length) | add'
    done <"$work/urls" | awk '{ n += $1 } END { print n }' >"$work/peer"
}
ours() { /usr/bin/env time -f %M -o "$work/kib" "$bin/remap-monitor" --filter collect <"$work/request" >"$work/model" 2>"$work/log"; }
command -v time >/dev/null || ours() { collect "$work/request"; }

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
