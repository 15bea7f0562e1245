# Recorded parts of a small cluster (its own, written here): spans, kubectl's objects, samples.
. "$(dirname "$0")/lib.sh"

json() { sqlite3 :memory: "SELECT $1 FROM (SELECT readfile('document.json') AS d)"; }
# edge SRC DST: its count
edge() { sqlite3 :memory: "SELECT json_extract(value, '\$.count') FROM json_each(readfile('document.json'), '\$.messages') WHERE json_extract(value, '\$.src') = '$1' AND json_extract(value, '\$.dst') = '$2'"; }
take() { run remap import "$@"; printf '%s\n' "$out" >document.json; }

pod() # name, ReplicaSet, node, address
{
    printf '{"kind":"Pod","metadata":{"namespace":"shop","name":"%s","uid":"%s","ownerReferences":[{"kind":"ReplicaSet","name":"%s","uid":"%s","controller":true}]},"spec":{"nodeName":"%s","containers":[{"name":"c","resources":{"requests":{"cpu":"100m","memory":"64Mi"}}}]},"status":{"phase":"Running","podIP":"%s"}}' "$1" "$1" "$2" "$2" "$3" "$4"
}
deployment() # name
{
    printf '{"kind":"Deployment","metadata":{"namespace":"shop","name":"%s","uid":"d-%s"},"spec":{"replicas":1}},{"kind":"ReplicaSet","metadata":{"namespace":"shop","name":"%s-7","uid":"%s-7","ownerReferences":[{"kind":"Deployment","name":"%s","uid":"d-%s","controller":true}]}}' "$1" "$1" "$1" "$1" "$1" "$1"
}
node() # name
{
    printf '{"kind":"Node","metadata":{"name":"%s"},"spec":{},"status":{"allocatable":{"cpu":"3920m","memory":"7Gi","pods":"110"},"conditions":[{"type":"Ready","status":"True"}]}}' "$1"
}
{
    printf '{"apiVersion":"v1","kind":"List","items":['
    node n1; printf ','; node n2; printf ','
    deployment front; printf ','; deployment cart; printf ','; deployment db; printf ','
    pod front-7-a front-7 n1 10.0.0.1; printf ','
    pod cart-7-a cart-7 n1 10.0.0.2; printf ','; pod cart-7-b cart-7 n2 10.0.0.3; printf ','
    pod db-7-a db-7 n2 10.0.0.4
    printf ']}'
} >cluster.json

# front (named "web-ui" by its tracer, known by its address) → cart's second pod → db, and a cache
# that the cluster does not hold.
cat >spans.json <<'END'
[{"traceId":"1","id":"1","kind":"SERVER","localEndpoint":{"serviceName":"web-ui","ipv4":"10.0.0.1"},"timestamp":1661140374000000,"duration":900},
 {"traceId":"1","id":"2","parentId":"1","kind":"CLIENT","localEndpoint":{"serviceName":"web-ui","ipv4":"10.0.0.1"},"duration":700,"tags":{"http.request.size":"10"}},
 {"traceId":"1","id":"2","parentId":"1","kind":"SERVER","shared":true,"localEndpoint":{"serviceName":"cart.shop","ipv4":"10.0.0.9"},"tags":{"pod":"cart-7-b","http.request.size":"12","http.response.size":"30"}},
 {"traceId":"1","id":"3","parentId":"2","kind":"CLIENT","localEndpoint":{"serviceName":"cart.shop"},"remoteEndpoint":{"serviceName":"db"},"duration":50,"tags":{"pod":"cart-7-b"}},
 {"traceId":"1","id":"4","parentId":"2","kind":"CLIENT","localEndpoint":{"serviceName":"cart.shop"},"remoteEndpoint":{"serviceName":"redis"},"tags":{"pod":"cart-7-b"}}]
END
echo '{"pods":[{"pod":"cart-7-b","cpu_m_mean":12.5,"memory_mi_mean":2},{"pod":"gone-1","cpu_m_mean":1,"memory_mi_mean":1}]}' >samples.json

take --traces spans.json --cluster cluster.json --resources samples.json
is "import" "$status" 0
is "hosts" "$(json "json_array_length(d, '\$.hosts')")" 2
is "services" "$(json "json_array_length(d, '\$.services')")" 3
is "instances" "$(json "json_array_length(d, '\$.instances')")" 4
is "by address and by pod" "$(edge shop/front-7-a shop/cart-7-b)" 1
is "by the only pod of a service" "$(edge shop/cart-7-b shop/db-7-a)" 1
is "server's size" "$(sqlite3 :memory: "SELECT sum(json_extract(value, '\$.bytes')) FROM json_each(readfile('document.json'), '\$.messages')")" 42
is "unmapped" "$(json "json_extract(d, '\$.traffic.unmapped_count')")" 1
is "unmapped names" "$(json "json_extract(d, '\$.traffic.unseen_services')")" '["redis"]'
is "usage" "$(sqlite3 :memory: "SELECT json_extract(value, '\$.cpu_used_millis') || ' ' || json_extract(value, '\$.mem_used_bytes') FROM json_each(readfile('document.json'), '\$.instances') WHERE json_extract(value, '\$.name') = 'shop/cart-7-b'")" "13 2097152"
has "what it could not map" "$err" "redis: 1 messages"
has "what it could not map" "$err" "resource sample of gone-1"
has "what it could not map" "$err" "3 instances without a resource sample"
cp document.json all.json
run remap plan --model all.json
is "the document plans" "$status" 0

# The same in pieces: stdin, gzip, several files, in another order.
gzip -c spans.json >spans.json.gz
take --traces spans.json.gz --cluster cluster.json --resources samples.json
ok "gzip gives the same" cmp -s document.json all.json
remap import --traces - --cluster cluster.json --resources samples.json <spans.json >document.json 2>/dev/null
ok "stdin gives the same" cmp -s document.json all.json
{ echo '['; sed -n '4,5p' spans.json; } >b.json
{ sed -n '1,3p' spans.json | sed '$s/,$//'; echo ']'; } >a.json
take --traces b.json a.json --cluster cluster.json --resources samples.json
ok "a trace in two files gives the same" cmp -s document.json all.json

# Aliases, and no cluster at all.
take --traces spans.json --cluster cluster.json --alias redis=shop/db
is "alias" "$(edge shop/cart-7-b shop/db-7-a)" 2
take --traces spans.json
is "without a cluster: services" "$(sqlite3 :memory: "SELECT group_concat(json_extract(value, '\$.name'), ' ') FROM json_each(readfile('document.json'), '\$.services')")" "cart.shop db redis web-ui"
is "without a cluster: a database" "$(edge cart-7-b db)" 1
is "without a cluster: hosts" "$(json "json_array_length(d, '\$.hosts')")" 0
is "without a cluster: placement" "$(json "json_extract(d, '\$.instances[0].host') IS NULL")" 1
is "without a cluster: pods" "$(edge web-ui cart-7-b)" 1

# Refused: exit 2, the file and the place, nothing on stdout.
refuse() # WHAT PART ARGS…
{
    run remap import "${@:3}"
    is "$1: status" "$status" 2
    is "$1: stdout" "$out" ""
    has "$1" "$err" "$2"
}
echo '[{"traceId":"1","id":"zz"}]' >bad.json
refuse "bad id" "bad.json: line 1, byte " --traces spans.json bad.json
head -c 300 spans.json >cut.json
refuse "cut" "cut.json: " --traces cut.json
head -c 40 spans.json.gz >cut.json.gz
refuse "cut gzip" "cut.json.gz: " --traces cut.json.gz
: >empty.json
refuse "empty" "empty.json: holds no JSON document" --traces empty.json
refuse "absent" "none.json: No such file" --traces none.json
refuse "a folder" "directory" --traces .
refuse "not spans" "cluster.json: " --traces cluster.json
refuse "not a cluster" "samples.json: kind must be a text" --traces spans.json --cluster samples.json
sed 's/3920m/3920K/' cluster.json >bad-cluster.json
refuse "bad quantity" 'items[0]: Node n1: status.allocatable: cpu: "3920K" is no quantity' --traces spans.json --cluster bad-cluster.json
echo '{"pods":[{"pod":"cart-7-b","cpu_m_mean":-1,"memory_mi_mean":2}]}' >bad-samples.json
refuse "bad sample" "bad-samples.json: pods[0].cpu_m_mean" --traces spans.json --cluster cluster.json --resources bad-samples.json
refuse "bad alias" "FOREIGN=SERVICE" --traces spans.json --alias redis
printf '[%s' "$(printf '[%.0s' $(seq 100))" >deep.json
refuse "deep" "deep.json: line 1, byte " --traces deep.json

finish
