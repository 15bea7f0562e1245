# Two applications on 15 fake nodes, spread by the real scheduler: remap as the daemon packs what talks
# together, and undo puts everything back.
. "$(dirname "$0")/../e2e/lib.sh"
. "$(dirname "$0")/kube_lib.sh" || exit 1

cluster_up --fake 15 --metrics

# Sock Shop: the calls of orders are as recorded, the others as in etc/scenarios/sock-shop.yaml.
cat >sock-shop.calls <<'END'
edge-router front-end 400
front-end catalogue 560
catalogue catalogue-db 890
front-end carts 240
carts carts-db 430
front-end user 100
user user-db 120
front-end orders 32
orders user 96
orders carts 32
orders payment 32
orders shipping 29
orders orders-db 64
shipping rabbitmq 29
rabbitmq queue-master 29
END
# Online Boutique: one minute of it, recorded on Kubernetes.
boutique=${REMAP_TEST_DATA-}/traces/online-boutique/calls.json
if [ -f "$boutique" ]; then
    sqlite3 -separator ' ' :memory: "
        SELECT json_extract(value, '\$.a'), json_extract(value, '\$.b'), json_extract(value, '\$.calls')
        FROM json_each(readfile('$boutique'), '\$.calls')" >boutique.calls
else
    echo "frontend cartservice 900" >boutique.calls
    echo "frontend productcatalogservice 2700" >>boutique.calls
    echo "recommendationservice productcatalogservice 400" >>boutique.calls
fi

for space in sock-shop boutique; do
    k create namespace $space >/dev/null
    tr ' ' '\n' <$space.calls | grep '[a-z]' | sort -u >$space.services
    while read -r name; do
        case $name in
        # An affinity of its own that is there and empty: not the same as none.
        payment) deployment $space "$name" 1 30m 64Mi 'affinity: {}' ;;
        # One that somebody applied: it is theirs, and never fought.
        shipping) deployment $space "$name" 1 60m 300Mi 'affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: topology.kubernetes.io/zone, operator: Exists}]}}]}}' ;;
        front-end | frontend) deployment $space "$name" 2 200m 200Mi ;;
        *) deployment $space "$name" 1 100m 256Mi ;;
        esac
    done <$space.services | k apply --server-side --field-manager=owner -f - >/dev/null
done
for space in sock-shop boutique; do
    ok "$space is ready" k -n $space rollout status deployment --timeout=300s >/dev/null
    where $space >$space.where
    affinities $space >$space.affinities
done

port=$(free_port)
configure "$port" sock-shop boutique
run remap check -c remap.yaml
is "check: $out" "$status" 0
background remap run -c remap.yaml 2>run.log
daemon=$started
wait_for "it listens" 30 bash -c "exec 3<>/dev/tcp/127.0.0.1/$port"
background send_spans "$port" sock-shop sock-shop.calls
background send_spans "$port" boutique boutique.calls

sleep 16 # the window
for space in sock-shop boutique; do
    propose $space || { tail -n 20 run.log; finish; }
    run remap apply "$cycle" -c remap.yaml
    is "$space: apply" "$status" 0
    wait_for "$space: cycle $cycle is done" 200 is_state "$cycle" 'done'
    is "$space: all moves were applied" "$(sums "SELECT service || ' ' || state || ' ' || reason FROM v_moves
        WHERE cycle_id = $cycle AND state <> 'applied' AND service <> 'sock-shop/shipping'")" ""
    ok "$space: and that was some" test "$(sums "SELECT moves_applied FROM v_cycles WHERE cycle_id = $cycle")" -gt 4
    echo "$space: $(sums "SELECT hosts_before, hosts_predicted, hosts_realised, local_before, local_predicted, local_realised FROM v_savings WHERE cycle_id = $cycle")"
    is "$space: more traffic stays, as measured" "$(sums "SELECT local_realised > local_before + 0.3 FROM v_savings WHERE cycle_id = $cycle")" 1
    is "$space: fewer hosts" "$(sums "SELECT hosts_realised < hosts_before FROM v_savings WHERE cycle_id = $cycle")" 1
    # Every replica is ready where the plan says.
    where $space >now
    ok "$space: it is another placement" test "$(diff $space.where now | wc -l)" -gt 0
    is "$space: hosts in use, asked of the API" \
        "$(cut -d' ' -f2 now | sort -u | wc -l)" "$(sums "SELECT hosts_realised FROM v_savings WHERE cycle_id = $cycle")"
    echo "$cycle" >$space.cycle
    # (a target reads "fake-3=1 fake-4=2")
    is "$space: every replica is ready on its planned node" "$(
        sums "SELECT service || ' ' || target FROM v_moves WHERE cycle_id = $cycle AND state = 'applied'" |
            while read -r name targets; do
                for target in $targets; do
                    [ "$(grep -cx "${name#*/} ${target%=*}" now)" = "${target#*=}" ] ||
                        echo "$name is not $target"
                done
            done)" ""
    is "$space: who owns its affinity keeps it" \
        "$(affinities $space | grep -P '^shipping\t')" "$(grep -P '^shipping\t' $space.affinities)"
done

# Each move is told once when it is meant, and where to.
is "no move is told twice" "$(grep -o 'cycle=[0-9]* move=[0-9]* .*state=intended' run.log | sort | uniq -d)" ""
is "each is told with its targets" "$(grep 'state=intended' run.log | grep -cv 'to="fake-')" 0

# Undo: the templates are what they were, to the byte.
for space in sock-shop boutique; do
    ok "$space: pins are there" test "$(affinities $space | diff $space.affinities - | wc -l)" -gt 0
    run remap undo "$(<$space.cycle)" -c remap.yaml
    is "$space: undo" "$status" 0
    wait_for "$space: undone" 120 is_state "$(<$space.cycle)" undone
    is "$space: affinities as they were" "$(affinities $space | diff $space.affinities -)" ""
    is "$space: no mark of ours" "$(k -n $space get deployments -o yaml | grep -c 'remap/')" 0
done
finish
