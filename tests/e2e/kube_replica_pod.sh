# Single replicas, by remap as a Pod: the manifests of etc/kubernetes/replica, a certificate by
# etc/kubernetes/certificate, the webhook reached through its Service, evictions under a
# PodDisruptionBudget. No template changes, and no pod waits for remap when it is gone.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_kube.sh"
. "$(dirname "$0")/lib_pod.sh"

pod_cluster replica

# --- three services, each with two replicas on node-1 and one on node-2; a budget for one of them ---
all_ready()
{
    for name in front cart mail; do
        ok "$name is ready" k rollout status "deployment/$name" --timeout=300s >/dev/null
    done
}
for name in front cart mail; do
    web "$name" 2
done >shop.yaml
cat >>shop.yaml <<END
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: cart, namespace: default}
spec: {minAvailable: 2, selector: {matchLabels: {app: cart}}}
END
cordon node-2
k apply -f shop.yaml >/dev/null
all_ready
cordon node-1
k uncordon node-2 >/dev/null
k scale deployment --all --replicas=3 >/dev/null
all_ready
k uncordon node-1 >/dev/null

# --- remap, by a kustomization as a user would write one ---
kustomization replica node-1
cat >mine/remap.yaml <<END
probe_listen: 0.0.0.0:9472
sources:
  - name: cluster
    type: kubernetes
    options:
      - {name: moves, value: replicas}
      - {name: min_node_age, value: 0s}
  - name: replicas
    type: kubernetes-replica
    options:
      - {name: tls_cert_file, value: /etc/remap-admission/tls.crt}
      - {name: tls_key_file, value: /etc/remap-admission/tls.key}
  - name: spans
    type: otlp
    options:
      - {name: listen, value: "0.0.0.0:4318"}
      - {name: token_file, value: /etc/remap/otlp.token}
apps:
  - name: shop
    mode: act
    namespaces: [default]
    cluster: cluster
    orchestrator: replicas
    messages: [spans]
    interval: 1h
    window: 10m
    grace: 0s
    settle: 2s
    soak: 0s
    cooldown: 0s
    min_coverage: 0
END
run k apply -k mine
is "the manifests are accepted" "$status: $err" "0: "
mkdir bin && ln -s "$kubectl" bin/kubectl
run env PATH="$dir/bin:$PATH" "$REMAP_SOURCE/etc/kubernetes/certificate"
is "the webhook gets a certificate" "$status: $err" "0: "
ok "the namespace is opted in" k label namespace default remap/replica=enabled >/dev/null
ok "the pod gets ready" k --namespace remap rollout status deploy/remap --timeout=300s >/dev/null
wait_for "it holds the lease" 60 event 'lease remap/remap is ours'
wait_for "it listens for the API server" 180 event 'replicas: listens on 0.0.0.0:9473'
asked() { k get --raw /metrics | awk '/^apiserver_admission_webhook_request_total.*code="200".*pods.remap.admission/ {n += $2} END {exit !n}'; }
asks()
{
    k create --dry-run=server -f - <<END && asked
apiVersion: v1
kind: Pod
metadata: {name: probe, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: none, uid: none}]}
spec: {containers: [{name: c, image: probe}]}
END
}
wait_for "the API server reaches the webhook" 60 asks
in_pod check
has "it sees the cluster by its own account" "$out" "2 nodes, 3 services, 9 pods"
has "its webhook never holds up a pod" "$out" "MutatingWebhookConfiguration remap: failurePolicy Ignore, timeout 1s"
ok "the certificate is verified by caBundle, and has an end" grep -q 'certificate .* ok .*valid until 20' <<<"$out"
has "it is the one that is served" "$out" "0.0.0.0:9473 serves a certificate that caBundle verifies"
has "and the Service leads to it" "$out" "Service remap/remap-admission, port 443, 1 endpoint"

# A busy machine may take longer than the second that users are made to wait at most.
ok "the webhook has time" k patch mutatingwebhookconfiguration remap --type json \
    -p '[{"op": "replace", "path": "/webhooks/0/timeoutSeconds", "value": 30}]' >/dev/null

# --- traffic between single pods on different nodes ---
# pods SERVICE: "NODE NAME" of those that stay, in order.
pods() { k get pods -l app="$1" -o jsonpath='{range .items[?(@.status.phase=="Running")]}{.spec.nodeName} {.metadata.name} {.metadata.deletionTimestamp}{"\n"}{end}' | awk 'NF == 2' | sort; }
uids() { k get pods -o jsonpath='{range .items[*]}{.metadata.uid}{"\n"}{end}' | sort; }
# Whatever a user would see had something of his been touched. Status comes and goes on its own time.
workloads()
{
    k get deployments -o jsonpath='{range .items[*]}{.metadata.name} {.metadata.generation} {.metadata.annotations} {.spec}{"\n"}{end}'
    k get replicasets -o jsonpath='{range .items[*]}{.metadata.name} {.metadata.uid} {.metadata.generation} {.spec}{"\n"}{end}'
}
mover=$(pods cart | awk '$1 == "node-1" {print $2; exit}')
partner=$(pods front | awk '$1 == "node-2" {print $2}')
before=$(workloads)
old=$(uids)
address=$(k --namespace remap get pods -o jsonpath='{.items[0].status.podIP}')
spans "$address:4318" default secret "front/$partner:cart/$mover"

# --- one replica moves ---
in_pod trigger shop
is "trigger" "$status: $err" "0: "
ended() { [ "$(store "SELECT count(*) FROM v_cycles WHERE cycle_id = $1 AND ended_ms IS NOT NULL")" = 1 ]; }
moves() { store "SELECT group_concat(state, ' ') FROM v_moves WHERE cycle_id = $1 AND undo_of IS NULL"; }
tell() { in_pod show "$1" && echo "$out" && in_pod events && echo "$out" && k get pods -o wide && k --namespace remap logs deploy/remap; }
wait_for "the cycle ends" 180 ended 1
is "one replica was moved" "$(moves 1)" applied
[ "$(moves 1)" = applied ] || tell 1
is "no template, no revision, no ReplicaSet changed, byte for byte" "$(workloads)" "$before"
is "one pod is new" "$(comm -13 <(echo "$old") <(uids) | grep -c .)" 1
marks() { k get pods -o jsonpath='{range .items[?(@.metadata.annotations.remap/intent)]}{.metadata.annotations.remap/intent} {.spec.nodeName}{"\n"}{end}'; }
is "it bears the mark and is beside its partner" "$(marks)" "1/1/$mover node-2"
told() { k get events.events.k8s.io -o jsonpath='{range .items[*]}{.reason} {end}' | grep -q PlacementChanged; }
wait_for "Events tell it" 30 told

# --- and back ---
in_pod undo 1
is "undo" "$status: $err" "0: "
back() { [ "$(marks)" = "1/1/$mover/undo node-1" ]; }
wait_for "a replica is where the moved one was" 120 back || tell 1
is "nor did that change a template" "$(workloads)" "$before"
is "no write was refused" "$(k --namespace remap logs deploy/remap | grep -c Forbidden)" 0

# --- it is gone: pods are made as ever ---
all_ready
fail_opens() { k get --raw /metrics | awk '/^apiserver_admission_webhook_fail_open_count.*pods.remap.admission/ {n += $2} END {print n + 0}'; }
gone() { [ -z "$(k --namespace remap get pods -o name)" ]; }
missed=$(fail_opens)
k --namespace remap scale deploy/remap --replicas=0 >/dev/null
wait_for "remap is gone" 120 gone
k scale deployment/mail --replicas=4 >/dev/null
ok "a new pod starts without it" k rollout status deployment/mail --timeout=300s >/dev/null
ok "the API server has asked in vain" [ "$(fail_opens)" -gt "$missed" ]
k scale deployment/mail --replicas=3 >/dev/null
k --namespace remap scale deploy/remap --replicas=1 >/dev/null
ok "it comes again" k --namespace remap rollout status deploy/remap --timeout=300s >/dev/null
in_pod history
has "and knows what was done" "$out" shop
finish
