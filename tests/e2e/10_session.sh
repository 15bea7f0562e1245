# A session with the daemon: propose, apply, undo, pause across restarts, questions that are refused.
. "$(dirname "$0")/lib.sh"

cat >remap.yaml <<END
store: $dir/store.db
run_dir: $dir/run
http_listen: off
log_level: warn
sources:
  - name: cluster
    type: simulated
    options: [{name: socket, value: $dir/cluster.sock}, {name: speed, value: "100"}]
apps:
  - {name: shop, mode: propose, cluster: cluster, metrics: [cluster], messages: [cluster],
     interval: 24h, settle: 1m, window: 1m, grace: 1s, cooldown: 0, soak: 0}
END
export REMAP_CONFIG=$dir/remap.yaml
store=$dir/store.db

cycle_is() { [ "$(sql "$store" "SELECT state FROM v_cycles WHERE cycle_id = $1")" = "$2" ]; }
# Where everything is, now: the same before the moves and after they were put back.
hosts_now() { sql "$store" "SELECT group_concat(service || '=' || host, ' ') FROM (SELECT * FROM v_placement ORDER BY service, host)"; }

run remap status
is "status before anything" "$status" 0
has "status before anything" "$out" "down"

background remap-simulated --scenario "$REMAP_SOURCE/etc/scenarios/sock-shop.yaml" \
    --socket cluster.sock --journal journal --speed 100 2>cluster.log
wait_for "the cluster answers" 10 test -S cluster.sock
run remap check
is "check" "$status" 0
has "check" "$out" "14 services"

background remap run 2>>daemon.log
pid=$started
wait_for "the daemon answers" 15 remap resume
run remap run
is "a second daemon on the same folder" "$status" 1
has "a second daemon on the same folder" "$err" "another remap"

run remap trigger shop
is "trigger" "$status" 0
wait_for "a proposal" 15 cycle_is 1 proposed
before=$(hosts_now)
is "nothing moved yet" "$(sql "$store" "SELECT count(*) FROM v_moves WHERE state <> 'planned'")" 0
run remap apply 1
is "apply" "$status" 0
wait_for "it is carried out" 30 cycle_is 1 done
is "all moves" "$(sql "$store" 'SELECT moves_applied = moves_planned AND moves_planned > 3 FROM v_cycles WHERE cycle_id = 1')" 1
run remap replay 1
is "replay" "$status" 0
for command in history "show 1" "explain 1" events status; do
    run remap $command
    is "$command" "$status" 0
    run remap $command -o json
    is "$command -o json" "$status" 0
    printf '%s' "$out" >doc.json
    is "$command -o json is JSON" "$(sql :memory: "SELECT json_valid(readfile('doc.json'))")" 1
done

run remap undo 1
is "undo" "$status" 0
wait_for "it is put back" 30 cycle_is 1 undone
run remap trigger shop
wait_for "the next look" 15 cycle_is 2 proposed
is "everything is where it was" "$(hosts_now)" "$before"

run remap trigger nobody
is "no such app" "$status" 1
run remap apply 99
is "no such cycle" "$status" 1
run remap show 99
is "no such cycle to show" "$status" 1

# A pause survives a restart; a bad configuration keeps the old one.
run remap pause shop
is "pause" "$status" 0
echo 'nonsense: 1' >>remap.yaml
kill -HUP "$pid"
wait_for "it says so" 5 grep -q 'nonsense' daemon.log
sed -i '/^nonsense/d' remap.yaml
kill -TERM "$pid"
wait "$pid"
is "ends on SIGTERM" "$?" 0
run remap status
has "down, and paused" "$out" "paused"
background remap run 2>>daemon.log
pid=$started
wait_for "the daemon is back" 15 remap release shop --dry-run
run remap status
has "still paused" "$out" "paused"
run remap apply 2
is "apply is refused" "$status" 1
has "and says why" "$err" "shop: paused by \`remap pause\`; \`remap resume\` goes on"
run remap resume shop
is "resume" "$status" 0
run remap status
is "no longer paused" "$(grep -c 'shop.*paused' <<<"$out")" 0
is "the store is whole" "$(sql "$store" 'PRAGMA integrity_check')" ok

finish
