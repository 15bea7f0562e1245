# `etc/demo kubernetes`: remap as a Pod on three real nodes, with the shipped manifests, moves services
# that are called all the time, and no request fails. Then what real nodes tell about usage: kubelet,
# cAdvisor, Prometheus, remap.
. "$(dirname "$0")/../e2e/lib.sh"
. "$(dirname "$0")/kube_lib.sh" || exit 1

why=$("$cluster" check --nodes 3 --metrics) || skip "real nodes: ${why%%$'\n'*}"
trap cluster_end EXIT

run "$REMAP_SOURCE/etc/demo" kubernetes --keep --dir "$dir/kube"
is "etc/demo kubernetes" "$status" 0
[ "$status" -eq 0 ] || { echo "$out"; echo "$err"; finish; }
has "no request failed" "$out" "and no request failed"
has "it shows the table" "$out" "local share"
export KUBECONFIG=$dir/kube/kubeconfig
kubectl=$(<"$dir/kube/kubectl")

in_pod() { k -n remap exec deploy/remap -- remap "$@"; }
document=$(in_pod show 1 -o json)
printf '%s' "$document" >cycle.json
is "most moves were applied" "$(sqlite3 :memory: "
    SELECT sum(json_extract(value, '\$.state') = 'applied') >= 3 FROM json_tree(readfile('cycle.json'))
    WHERE type = 'object' AND json_extract(value, '\$.target') IS NOT NULL")" 1
where shop >now
is "every service runs and is ready" "$(wc -l <now)" 10
ok "one node has most of them now" \
    test "$(cut -d' ' -f2 now | sort | uniq -c | sort -rn | awk '{print $1; exit}')" -ge 6

# It has nothing more than its RBAC, and the policy holds it to that.
can() { k auth can-i --as=system:serviceaccount:remap:remap "$@"; }
is "it may patch what it moves" "$(can patch deployments -n shop 2>/dev/null)" yes
is "and nothing elsewhere" "$(can patch deployments -n visitors 2>/dev/null)" no
is "nor read secrets" "$(can get secrets -n shop 2>/dev/null)" no
run k --as=system:serviceaccount:remap:remap -n shop patch deployment user --type=json \
    -p '[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "evil:1"}]'
ok "nor change an image" test "$status" -ne 0

# A second remap, outside, that reads usage from a Prometheus which scrapes the kubelets.
prometheus=$(command -v prometheus) || { echo "no Prometheus: its part is left out"; finish; }
k create clusterrolebinding scrape --clusterrole=system:kubelet-api-admin \
    --serviceaccount=default:default >/dev/null
k create token default --duration=1h >scrape.token
port=$(free_port)
{
    echo "global: {scrape_interval: 2s}"
    echo "scrape_configs:"
    echo "  - job_name: cadvisor"
    echo "    scheme: https"
    echo "    metrics_path: /metrics/cadvisor"
    echo "    authorization: {credentials_file: $dir/scrape.token}"
    echo "    tls_config: {ca_file: $dir/kube/tls/ca.crt}"
    echo "    static_configs:"
    for node in 1 2 3; do
        address=$(k get node node-$node -o jsonpath='{.status.addresses[?(@.type=="InternalIP")].address}')
        echo "      - {targets: ['$address:10250'], labels: {node: node-$node, instance: node-$node}}"
    done
} >prometheus.yaml
background "$prometheus" --config.file=prometheus.yaml --storage.tsdb.path=tsdb \
    --web.listen-address=127.0.0.1:$port 2>prometheus.log
cat >remap.yaml <<END
store: $dir/store.db
run_dir: $dir/run
http_listen: "off"
sources:
  - name: cluster
    type: kubernetes
    options:
      - {name: kubeconfig, value: $KUBECONFIG}
      - {name: min_node_age, value: 1ms}
  - name: prometheus
    type: prometheus
    options:
      - {name: url, value: "http://127.0.0.1:$port"}
      - {name: preset, value: cadvisor}
      - {name: hosts, value: none}
      - {name: resolution, value: 20s}
apps:
  - name: shop
    mode: observe
    namespaces: [shop]
    cluster: cluster
    metrics: [prometheus]
    messages: []
    window: 40s
    grace: 0
END
used() { sums "SELECT count(*) FROM v_placement WHERE cycle_id = (SELECT max(cycle_id) FROM v_cycles) AND cpu_used_millis > 0 AND mem_used_bytes > 1000000"; }
measured() { remap once --app shop --dry-run -c remap.yaml >once.out 2>&1; [ "$(used)" = 10 ]; }
wait_for "cAdvisor's usage of every pod is in the model" 90 measured
# The windows of the two are not the same: on a busy machine it takes some looks.
agree()
{
    measured
    cpu=$(sums "SELECT sum(cpu_used_millis) FROM v_placement WHERE cycle_id = (SELECT max(cycle_id) FROM v_cycles)")
    top=$(k -n shop top pods --no-headers | awk '{sum += $2} END {print sum}')
    [ "$cpu" -gt $((top / 3)) ] && [ "$cpu" -lt $((top * 3)) ]
}
wait_for "the two agree" 30 agree
echo "CPU of all pods: $cpu m by Prometheus, $top m by metrics.k8s.io"
finish
