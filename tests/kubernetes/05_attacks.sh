# What goes wrong while moves are made, with the daemon live: each stage killed by SIGKILL, a target
# cordoned, a target deleted. Whatever comes of the moves: the store tells it, the pins are those of the
# store, no template was changed twice for one move, and the daemon goes on.
. "$(dirname "$0")/../e2e/lib.sh"
. "$(dirname "$0")/kube_lib.sh" || exit 1

cluster_up --fake 6 --metrics

cat >shop.calls <<'END'
front-end catalogue 500
front-end carts 300
front-end user 200
catalogue catalogue-db 400
carts carts-db 300
user user-db 100
END
tr ' ' '\n' <shop.calls | grep '[a-z]' | sort -u >services
k create namespace shop >/dev/null
all_ready() { k -n shop rollout status deployment --timeout=1s && [ "$(where shop | wc -l)" = 7 ]; }
# The same services, spread anew by the scheduler.
fresh()
{
    k -n shop delete deployments --all --wait >/dev/null 2>&1
    while read -r name; do deployment shop "$name" 1 300m 256Mi; done <services | k apply -f - >/dev/null
    wait_for "the shop is ready" 120 all_ready
}
fresh
port=$(free_port)
configure "$port" shop
sed -i 's/settle: 20s/settle: 2s/' remap.yaml
background remap run -c remap.yaml 2>run.log
daemon=$started
wait_for "it listens" 30 bash -c "exec 3<>/dev/tcp/127.0.0.1/$port"
background send_spans "$port" shop shop.calls
sleep 16 # the window

begun() { [ "$(sums "SELECT count(*) FROM v_moves WHERE cycle_id = $cycle AND state NOT IN ('planned')")" -gt 0 ]; }
ended() { [[ $(state_of "$cycle") =~ ^(done|undone|failed)$ ]]; }
stage() { ps --ppid "$daemon" -o pid=,comm= | awk -v c="remap-$1" '$2 == c {print $1}'; }
kill_stage() { local p; p=$(stage "$1"); [ -n "$p" ] && kill -9 "$p"; }
# Of the last move, which has mostly not begun.
target() { sums "SELECT substr(target, 1, instr(target, '=') - 1) FROM v_moves WHERE cycle_id = $cycle AND undo_of IS NULL ORDER BY seq DESC LIMIT 1"; }
cordon_target() { node=$(target) && k cordon "$node" >/dev/null; }
delete_target() { node=$(target) && k delete node "$node" --wait=false >/dev/null; }

# round WHAT CMD… : a plan is applied, CMD runs when its first move has begun
round()
{
    local what=$1 placed="'applied', 'missed', 'partial', 'displaced'"
    shift
    propose shop || { tail -n 20 run.log; finish; }
    run remap apply "$cycle" -c remap.yaml
    is "$what: apply" "$status" 0
    wait_for "$what: a move has begun" 30 begun
    ok "$what" "$@"
    echo "$what in the midst: $(sums "SELECT group_concat(state) FROM v_moves WHERE cycle_id = $cycle")"
    wait_for "$what: the cycle ends" 200 ended
    echo "$what: $(state_of "$cycle"): $(sums "SELECT group_concat(state || coalesce(' ' || reason, '')) FROM v_moves WHERE cycle_id = $cycle") $(sums "SELECT reason FROM v_cycles WHERE cycle_id = $cycle")"
    wait_for "$what: every service is ready" 90 all_ready
    is "$what: pins are those of the moves that hold" "$(
        affinities shop | awk -F'\t' '$2 != "" {print "shop/" $1}' | sort)" "$(
        sums "SELECT DISTINCT service FROM v_moves WHERE cycle_id = $cycle AND undo_of IS NULL AND state IN ($placed) ORDER BY 1")"
    is "$what: nothing is half done" "$(sums "SELECT count(*) FROM v_moves WHERE cycle_id = $cycle AND state = 'intended'")" 0
    # A new Deployment has generation 1; each move and each undo is one more.
    is "$what: no template was changed twice for a move" "$(
        k -n shop get deployments -o jsonpath='{range .items[*]}shop/{.metadata.name} {.metadata.generation}{"\n"}{end}' |
            awk '$2 > 1 {print $1, $2 - 1}' | sort)" "$(
        sums "SELECT service || ' ' || count(*) FROM v_moves WHERE cycle_id = $cycle
              AND (undo_of IS NULL AND state IN ($placed, 'undone') OR undo_of IS NOT NULL AND state = 'applied')
              GROUP BY service ORDER BY 1")"
    ok "$what: the daemon is there" kill -0 "$daemon"
}

for name in executor planner analyzer monitor; do
    round "kill -9 $name" kill_stage $name
    fresh
done
round "a target is cordoned" cordon_target
k uncordon "$node" >/dev/null
fresh
round "a target is deleted" delete_target
finish
