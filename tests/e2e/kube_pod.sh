# remap as a Pod on real nodes: the image of etc/image, the manifests of etc/kubernetes/act, its own
# service account with nothing more than its RBAC. It moves real containers that answer all the time,
# and goes on with its store after an upgrade.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_kube.sh"
. "$(dirname "$0")/lib_pod.sh"

pod_cluster pod

# --- three services that answer ---
for name in front cart user; do
    web "$name" 1
done >shop.yaml
k apply -f shop.yaml >/dev/null
for name in front cart user; do
    ok "$name is ready" k rollout status "deployment/$name" --timeout=300s >/dev/null
done

# --- remap, by a kustomization as a user would write one ---
kustomization act
cat >mine/remap.yaml <<END
probe_listen: 0.0.0.0:9472
sources:
  - name: cluster
    type: kubernetes
    options:
      - {name: soak, value: 0s}
      - {name: scaling_quiet, value: 0s}
      - {name: min_node_age, value: 0s}
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
ok "the pod gets ready" k --namespace remap rollout status deploy/remap --timeout=300s >/dev/null
is "it is restarted by nobody" "$(k --namespace remap get pods -o jsonpath='{.items[*].status.containerStatuses[0].restartCount}')" 0
in_pod check
has "it sees the cluster by its own account" "$out" "2 nodes, 3 services, 3 pods"
has "and that it may take its lease" "$out" "lease remap/remap is "
is "nothing is refused" "$(echo "$out" | grep -c Forbidden)" 0
wait_for "it holds the lease" 60 event 'lease remap/remap is ours'
run k --namespace remap exec deploy/remap -- /bin/sh -c true
is "there is no shell in it" "$((status != 0))" 1

# --- it moves ---
address=$(k --namespace remap get pods -o jsonpath='{.items[0].status.podIP}')
spread=$(k get pods -o jsonpath='{range .items[*]}{.spec.nodeName}{"\n"}{end}' | sort -u | wc -l)
is "the services are spread" "$spread" 2
template() { k get deployment -o jsonpath='{range .items[*]}{.metadata.name} {.spec.template.spec}{"\n"}{end}'; }
before=$(template)
spans "$address:4318" default secret front:cart cart:user
in_pod trigger shop
is "trigger" "$status: $err" "0: "
done_in_pod() { k --namespace remap exec deploy/remap -- remap history | grep -qE "^ *$1 .* $2 "; }
wait_for "the cycle is done" 120 done_in_pod 1 done
together() { [ "$(k get pods --field-selector=status.phase=Running -o jsonpath='{range .items[*]}{.spec.nodeName}{"\n"}{end}' | sort -u | wc -l)" = 1 ]; }
wait_for "they run on one node" 60 together || { in_pod show 1 && echo "$out" && in_pod events && echo "$out"; }
for name in front cart user; do
    ok "$name is ready" k rollout status "deployment/$name" --timeout=300s >/dev/null
done
told() { k get events.events.k8s.io -o jsonpath='{range .items[*]}{.reason} {end}' | grep -q PlacementChanged; }
wait_for "Events tell it" 30 told

# --- an upgrade goes on with the same store ---
leases() { store "SELECT count(*) FROM v_events WHERE text LIKE '%lease remap/remap is ours%'"; }
before_restart=$(leases)
run k --namespace remap rollout restart deploy/remap
ok "the new pod gets ready" k --namespace remap rollout status deploy/remap --timeout=300s >/dev/null
in_pod history
has "it knows what was done" "$out" "shop"
leads_again() { [ "$(leases)" -gt "$before_restart" ]; }
wait_for "it takes the lease over" 60 leads_again
in_pod undo 1
is "undo" "$status: $err" "0: "
back() { [ "$(template)" = "$before" ]; }
wait_for "the templates are as they were, byte for byte" 120 back
is "no write was refused" "$(k --namespace remap logs deploy/remap | grep -c Forbidden)" 0
finish
