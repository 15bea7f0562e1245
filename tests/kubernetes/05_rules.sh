# Rules of conduct as a user of a real cluster sees them: a rule that comes later is mended although it
# costs affinity, what may not move now is not planned and says why, tenants keep apart.
. "$(dirname "$0")/../e2e/lib.sh"
. "$(dirname "$0")/kube_lib.sh" || exit 1

cluster_up --fake 4 --metrics

# web and cache talk most, so they come together; bank/ledger is of another tenant.
cat >shop.calls <<'END'
web cache 400
cache store 100
END
k create namespace shop >/dev/null
for name in web cache store; do
    deployment shop $name 1 100m 64Mi
done | k apply --server-side --field-manager=owner -f - >/dev/null
ok "shop is ready" k -n shop rollout status deployment --timeout=300s >/dev/null

port=$(free_port)
configure "$port" shop
# No verification in between: who moves next is what is looked at.
sed -i -e 's/settle: 20s/settle: 0/' remap.yaml
background remap run -c remap.yaml 2>run.log
wait_for "it listens" 30 bash -c "exec 3<>/dev/tcp/127.0.0.1/$port"
background send_spans "$port" shop shop.calls
ended() { [[ $(state_of "$cycle") == @(done|undone|failed|superseded) ]]; }
node_of() { where shop | awk -v name="$1" '$1 == name {print $2}'; }
together() { [ -n "$(node_of web)" ] && [ "$(node_of web)" = "$(node_of cache)" ]; }
apart() { [ -n "$(node_of web)" ] && [ -n "$(node_of cache)" ] && [ "$(node_of web)" != "$(node_of cache)" ]; }

# apply_newest : the proposed plan, to its end.
apply_newest()
{
    run remap apply "$cycle" -c remap.yaml
    is "apply of cycle $cycle" "$status" 0
    wait_for "cycle $cycle ends" 200 ended
}

sleep 16 # the window
if ! together; then
    propose shop || { tail -n 20 run.log; finish; }
    apply_newest
fi
wait_for "what talks is together" 30 together

# --- a rule that is broken as the cluster is ---
k -n shop annotate deployment web remap/keep-apart=cache >/dev/null
propose shop || { tail -n 20 run.log; finish; }
is "the plan says why it is made" "$(sums "SELECT affinity_after < affinity_before FROM v_plans WHERE cycle_id = $cycle")" 1
apply_newest
is "the rule is mended, and stays so" "$(state_of "$cycle")" 'done'
wait_for "they are apart" 30 apart

# --- what may not move now is not planned, with the words of the rule ---
k -n shop annotate deployment web remap/keep-apart- 'remap/window=Mon 00:00-00:01; Tue 00:00-00:01' >/dev/null
# reasons : why the instances of the newest snapshot stay, in a cycle of their own.
reasons()
{
    remap trigger shop -c remap.yaml >/dev/null 2>&1
    sleep 1
    sums "SELECT DISTINCT pinned_why FROM instances WHERE snapshot_id = (SELECT max(snapshot_id) FROM snapshots)"
}
says() { reasons | grep -qF "$1"; }
wait_for "a closed window keeps web" 60 says "annotated remap/window: Mon 00:00-00:01; Tue 00:00-00:01 (UTC): not now"
k -n shop create quota tight --hard=pods=3 >/dev/null
wait_for "a full quota keeps all" 60 says "ResourceQuota tight has no room for the surge: pods"
finish
