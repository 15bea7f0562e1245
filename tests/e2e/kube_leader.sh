# Two daemons on one real API server: one moves, the other may not. The leader is killed in the middle
# of a move and its volume is lost: the other takes over and puts back what cannot come to its end;
# another time it adopts what did. Paused by kubectl alone; a release by kubectl is seen.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_kube.sh"

command -v curl >/dev/null || skip "leader: curl is not installed"
cluster_up leader --fake 4
take_down()
{
    for pid in "${started_pids[@]}"; do
        kill -9 "$pid" 2>/dev/null
    done
    cluster_down
}
trap take_down EXIT
k() { "$kubectl" --namespace shop "$@"; }

# --- a shop of four services, one after the other calls the next ---
k create namespace shop >/dev/null
n=0
for name in front cart user mail; do
    n=$((n + 1))
    cat <<END
apiVersion: apps/v1
kind: Deployment
metadata: {name: $name, namespace: shop}
spec:
  replicas: 1
  selector: {matchLabels: {app: $name}}
  template:
    metadata: {labels: {app: $name}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
        - name: c
          image: c
          resources: {requests: {cpu: 100m, memory: 64Mi}}
---
END
done >shop.yaml
wait_for "the namespace's account" 30 k get serviceaccount default
k apply -f shop.yaml >/dev/null
for name in front cart user mail; do
    ok "$name is ready" k rollout status "deployment/$name" --timeout=300s >/dev/null
done

# daemon NAME: configuration NAME.yaml with store and run folder of its own
daemon()
{
    mkdir -p "$1"
    cat >"$1.yaml" <<END
store: $dir/$1/store.db
run_dir: $dir/$1/run
http_listen: 127.0.0.1:0
sources:
  - name: cluster
    type: kubernetes
    options:
      - {name: kubeconfig, value: $KUBECONFIG}
      - {name: lease_namespace, value: shop}
      - {name: lease_duration, value: 20s}
      - {name: any_probe, value: "true"}
      - {name: soak, value: 0s}
      - {name: scaling_quiet, value: 0s}
      - {name: min_node_age, value: 0s}
      - {name: unschedulable_after, value: 1s}
  - name: spans
    type: otlp
    options:
      - {name: listen, value: "127.0.0.1:0"}
apps:
  - name: shop
    mode: act
    namespaces: [shop]
    cluster: cluster
    messages: [spans]
    interval: 1h
    window: 10m
    grace: 0s
    settle: 1s
    soak: 0s
    cooldown: 0s
    min_coverage: 0
END
}
# Where the spans of a running one go.
listener() { sed -n 's/.* receiver .*port=\([0-9]*\) .*/127.0.0.1:\1/p' "$dir/$1.log" | tail -n 1; }
listens() { [ -n "$(listener "$1")" ]; }
r() { local which=$1; shift; run remap "$@" -c "$dir/$which.yaml"; }
up()
{
    remap run -c "$dir/$1.yaml" 2>"$1.log" &
    started=$!
    started_pids+=("$started")
    wait_for "$1 is up" 30 remap status -c "$dir/$1.yaml"
    wait_for "$1 listens for spans" 30 listens "$1"
}
template() { k get deployment -o jsonpath='{range .items[*]}{.metadata.name} {.spec.template.spec}{"\n"}{end}'; }
marks() { k get deployment -o jsonpath='{range .items[*]}{.metadata.annotations.remap/intent}{"\n"}{end}' | grep -c cycle; }
holder() { k get lease remap -o jsonpath='{.spec.holderIdentity}'; }
# state NAME CYCLE, moved NAME CYCLE: of its store
state() { sql "$dir/$1/store.db" "SELECT state FROM v_cycles WHERE cycle_id = $2"; }
moved() { sql "$dir/$1/store.db" "SELECT count(*) FROM v_moves WHERE cycle_id = $2 AND intended_ms IS NOT NULL"; }
state_is() { [ "$(state "$1" "$2")" = "$3" ]; }
says() { sql "$dir/$1/store.db" "SELECT text FROM v_events WHERE kind = '$2'" | grep -q "$3"; }
before=$(template)

daemon a
daemon b
up a
pid_a=$started
wait_for "a leads" 30 says a lease "lease shop/remap is ours"
up b
wait_for "b sees who leads" 30 says b lease "is held by"
sleep 1 # spans of the second in which the receiver opened count as unknown
spans "$(listener a)" shop "" front:cart cart:user user:mail
spans "$(listener b)" shop "" front:cart cart:user user:mail
leader=$(holder)
r b check
has "check says who holds the lease" "$out$err" "lease shop/remap is held by $leader"
has "and that nobody has paused it" "$out" "not paused: no configmap shop/remap-pause"

# --- paused by kubectl ---
k create configmap remap-pause >/dev/null
wait_for "a sees the pause" 30 says a lease "paused by configmap shop/remap-pause"
r a status
has "status says who paused it" "$out" "paused by configmap shop/remap-pause"
has "and the app is paused" "$out" "act, paused"
r a status -o json
has "for programs too" "$out" '"paused_by":"configmap shop/remap-pause"'
r a trigger shop
has "trigger says that nothing will move" "$out" "started, and will make no move: paused by configmap shop/remap-pause"
wait_for "the cycle ends" 60 sh -c "[ -n \"\$(sqlite3 -readonly '$dir/a/store.db' 'SELECT ended_ms FROM v_cycles WHERE cycle_id = 1 AND ended_ms IS NOT NULL')\" ]"
is "nothing is moved while paused" "$(moved a 1) $(marks)" "0 0"
has "and the store says why" "$(sql "$dir/a/store.db" 'SELECT reason FROM v_cycles WHERE cycle_id = 1')" "paused by configmap shop/remap-pause"
waiting() { sql "$dir/a/store.db" "SELECT count(*) FROM v_moves WHERE cycle_id = 1 AND state = 'planned'"; }
planned=$(waiting)
ok "the plan is there" [ "$planned" -gt 0 ]
r a apply 1
is "apply is refused" "$status" 1
has "and says who paused it" "$err" "shop: paused by configmap shop/remap-pause (delete it to go on); nothing was changed"
is "nothing was changed" "$(waiting) $(marks)" "$planned 0"
r a check
has "check says it too" "$out" "paused by configmap shop/remap-pause, no move is begun until it is deleted"
k delete configmap remap-pause >/dev/null
goes_on() { remap status -o json -c "$dir/a.yaml" | grep -q '"paused_by":null'; }
wait_for "it goes on, and status says so" 30 goes_on

# --- a new revision, by somebody else and without a webhook: a's timer starts again ---
k patch deployment mail --patch '{"spec":{"template":{"metadata":{"annotations":{"released":"2"}}}}}' >/dev/null
wait_for "a sees the release" 60 says a deploy "Deployment shop/mail has a new template, by kubectl"
again() { [ "$(sql "$dir/a/store.db" "SELECT a.next_due_ms >= e.at_ms + 3600000 FROM apps a, v_events e WHERE a.app = 'shop' AND e.kind = 'deploy'")" = 1 ]; }
wait_for "its timer starts again" 30 again
ok "the release is there" k rollout status deployment/mail --timeout=120s >/dev/null

# --- the other one may not ---
r b trigger shop
wait_for "b's cycle fails" 60 state_is b 1 failed
has "because a leads" "$(sql "$dir/b/store.db" 'SELECT reason FROM v_cycles WHERE cycle_id = 1')" "held by $leader"
is "b has moved nothing" "$(moved b 1) $(marks)" "0 0"

# --- the leader dies in the middle of a move, and its volume is lost ---
cluster stop kube-scheduler
r a trigger shop
wait_for "moves are under way" 60 sh -c "[ \"\$('$kubectl' -n shop get deployment -o yaml | grep -c 'remap/intent')\" -gt 0 ]"
kill -9 "$pid_a" && wait "$pid_a" 2>/dev/null
rm -rf "$dir/a"
wait_for "b leads" 60 says b lease "lease shop/remap is ours"
ok "the lease is b's" [ "$(holder)" != "$leader" ]
r b trigger shop
for node in 1 2 3 4; do
    k cordon fake-$node >/dev/null
done
cluster start kube-scheduler
wait_for "what cannot come to its end is put back" 120 says b adopted "put back: it failed"
wait_for "all of it" 120 sh -c "[ \"\$('$kubectl' -n shop get deployment -o yaml | grep -c 'remap/intent: ')\" -eq 0 ]"
is "the templates are as they were, byte for byte" "$(template)" "$before"
has "an Event says so" "$(k get events.events.k8s.io -o jsonpath='{range .items[*]}{.reason}{"\n"}{end}')" PlacementUndone
for node in 1 2 3 4; do
    k uncordon fake-$node >/dev/null
done

# --- the new leader works, and a third one adopts what came to its end ---
wait_for "b's second cycle ends" 120 sh -c "[ -n \"\$(sqlite3 -readonly '$dir/b/store.db' 'SELECT ended_ms FROM v_cycles WHERE cycle_id = 2 AND ended_ms IS NOT NULL')\" ]"
for name in front cart user mail; do
    k rollout status "deployment/$name" --timeout=300s >/dev/null
done
spans "$(listener b)" shop "" front:cart cart:user user:mail
r b trigger shop
wait_for "b moves" 120 state_is b 3 done
ok "b has moved" [ "$(moved b 3)" -gt 0 ]
after=$(template)
count=$(marks)
kill -9 "$started" && wait "$started" 2>/dev/null
rm -rf "$dir/b"
up b
wait_for "b, with an empty store, adopts what it finds" 60 says b adopted "$count moves of an earlier daemon are done"
is "and changes nothing" "$(template)" "$after"
finish
