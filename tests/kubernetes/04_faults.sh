# The API server goes away in the midst of a plan; a node with pinned replicas dies.
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
k create namespace shop >/dev/null
tr ' ' '\n' <shop.calls | grep '[a-z]' | sort -u >services
while read -r name; do
    deployment shop "$name" 1 300m 256Mi
done <services | k apply -f - >/dev/null
all_ready() { k -n shop rollout status deployment --timeout=1s && [ "$(where shop | wc -l)" = 7 ]; }
wait_for "the shop is ready" 120 all_ready
affinities shop >before.affinities

port=$(free_port)
configure "$port" shop
background remap run -c remap.yaml 2>run.log
wait_for "it listens" 30 bash -c "exec 3<>/dev/tcp/127.0.0.1/$port"
background send_spans "$port" shop shop.calls
sleep 16 # the window
propose shop || { tail -n 20 run.log; finish; }

# A move is under way when the API server is killed; it comes back. Nobody places pods meanwhile, so
# that no move is at its end before.
ok "the scheduler stops" "$cluster" stop kube-scheduler --dir "$dir/kube"
run remap apply "$cycle" -c remap.yaml
is "apply" "$status" 0
begun() { [ "$(sums "SELECT count(*) FROM v_moves WHERE cycle_id = $cycle AND state NOT IN ('planned')")" -gt 0 ]; }
wait_for "a move has begun" 30 begun
ok "the API server is killed" "$cluster" stop kube-apiserver --dir "$dir/kube"
is "in the midst of the plan" "$(sums "SELECT count(*) > 0 FROM v_moves WHERE cycle_id = $cycle AND state IN ('planned', 'intended')")" 1
sleep 5 # long enough that requests fail
ok "it comes back" "$cluster" start kube-apiserver --dir "$dir/kube"
ok "the scheduler too" "$cluster" start kube-scheduler --dir "$dir/kube"
ended() { [[ $(state_of "$cycle") =~ ^(done|undone|failed)$ ]]; }
wait_for "the cycle ends" 200 ended
echo "cycle $cycle: $(state_of "$cycle"): $(sums "SELECT group_concat(state) FROM v_moves WHERE cycle_id = $cycle")"
wait_for "every service is ready" 60 all_ready
# What the store says of each service is what is there: a pin where a move is applied, else none.
is "pins are those of the moves that hold" "$(
    affinities shop | awk -F'\t' '$2 != "" {print "shop/" $1}' | sort)" "$(
    sums "SELECT DISTINCT service FROM v_moves m WHERE cycle_id = $cycle AND state = 'applied' AND undo_of IS NULL
          AND NOT EXISTS (SELECT 1 FROM v_moves u WHERE u.cycle_id = m.cycle_id AND u.undo_of = m.seq AND u.state = 'applied')
          ORDER BY 1")"
is "nothing is half done" "$(sums "SELECT count(*) FROM v_moves WHERE cycle_id = $cycle AND state = 'intended'")" 0

# The node with most of them dies: its pods come back elsewhere, by the pins being preferences; we
# start no rollout, and leave the pins.
where shop >now
node=$(cut -d' ' -f2 now | sort | uniq -c | sort -rn | awk '{print $2; exit}')
affinities shop >pinned.affinities
generations() { k -n shop get deployments -o jsonpath='{range .items[*]}{.metadata.name} {.metadata.generation}{"\n"}{end}'; }
generations >generations
k delete node "$node" >/dev/null # as clouds do with machines that died; the garbage collector follows
elsewhere()
{
    where shop >now
    ! grep -q " $node\$" now && [ "$(cut -d' ' -f1 now | sort -u | wc -l)" = 7 ]
}
wait_for "all run elsewhere" 180 elsewhere
remap trigger shop -c remap.yaml >/dev/null 2>&1 # it looks at what is left
sleep 5
is "no rollout by us" "$(generations | diff generations -)" ""
is "the pins are left" "$(affinities shop | diff pinned.affinities -)" ""
finish
