#!/usr/bin/env bash
# remap-bench-cycle - what a whole cycle without moves costs, beside the paper's numbers: the daemon
# and its four stages on the embedded cluster, mock applications of both topologies, planner hba.
#
#     remap-bench-cycle                    the paper's grid: services 10 … 1000, messages 10^3 … 10^5
#     remap-bench-cycle star 1000 100000   one cell
#
# REMAP_BENCH_CYCLES (10): how many cycles are timed in each cell. Two more follow for the memory,
# because reading it takes time from the cycle. Nothing is asserted: times are this machine's.
set -euo pipefail

bin=${REMAP_BIN:-@CMAKE_BINARY_DIR@/bin}
cycles=${REMAP_BENCH_CYCLES:-10}
parties=(remap monitor analyzer planner executor)
work=$(mktemp -d "${TMPDIR:-/tmp}/remap-bench.XXXXXX")
started=()

stop_all()
{
    local pid
    for pid in "${started[@]}"; do
        kill -TERM "$pid" 2>/dev/null || true
    done
    for pid in "${started[@]}"; do
        wait "$pid" 2>/dev/null || true
    done
    started=()
}
trap 'stop_all; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

fail()
{
    echo "remap-bench-cycle: $1" >&2
    cat "$work"/cell/*.log >&2 2>/dev/null || true
    exit 1
}

# until_true SECONDS COMMAND… : asks every 5 ms.
until_true()
{
    local end=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.005
    done
}

# write_files TOPOLOGY SERVICES MESSAGES
write_files()
{
    cat >"$work/cell/scenario.yaml" <<EOF
name: mock
seed: 1
network: {same_zone: 0.3ms}
generate: {topology: $1, services: $2, messages: $3, per: 10m, work: 50us}
EOF
    cat >"$work/cell/remap.yaml" <<EOF
store: $work/cell/store.db
run_dir: $work/cell/run
http_listen: "off"
sources:
  - name: cluster
    type: simulated
    options: [{name: socket, value: $work/cell/socket}]
apps:
  - name: mock
    mode: observe
    planner: hba
    cluster: cluster
    metrics: [cluster]
    messages: [cluster]
    interval: 1h
    window: 10m
EOF
}

start_cell()
{
    rm -rf "$work/cell"
    mkdir -m 700 "$work/cell" "$work/cell/run"
    write_files "$@"
    "$bin/remap-simulated" --scenario "$work/cell/scenario.yaml" --socket "$work/cell/socket" \
        --journal "$work/cell/journal" >"$work/cell/cluster.log" 2>&1 &
    started+=($!)
    until_true 20 test -S "$work/cell/socket" || fail "the cluster does not start"
    "$bin/remap" run -c "$work/cell/remap.yaml" >"$work/cell/remap.log" 2>&1 &
    daemon=$!
    started+=($daemon)
    until_true 20 grep -q "ready apps=" "$work/cell/remap.log" || fail "remap does not start"
    pids=("$daemon" "" "" "" "")
    until_true 20 find_stages || fail "the stages do not start"
}

# The daemon's children, in the order of `parties`.
find_stages()
{
    local pid name i
    for pid in $(cat "/proc/$daemon/task/$daemon/children"); do
        name=$(tr '\0' '\n' <"/proc/$pid/cmdline" | head -n 1)
        for i in 1 2 3 4; do
            [ "${name##*/}" != "remap-${parties[i]}" ] || pids[i]=$pid
        done
    done
    [ -n "${pids[1]}" ] && [ -n "${pids[2]}" ] && [ -n "${pids[3]}" ] && [ -n "${pids[4]}" ]
}

ask()
{
    sqlite3 -readonly -cmd ".timeout 5000" "$work/cell/store.db" "$1"
}

ended()
{
    [ "$(ask "SELECT count(*) FROM v_cycles WHERE ended_ms IS NOT NULL")" -ge "$1" ]
}

# cycle N : runs cycle N to its end.
cycle()
{
    "$bin/remap" trigger -c "$work/cell/remap.yaml" mock >/dev/null
    until_true 60 ended "$1" || fail "cycle $1 does not end"
    [ "$(ask "SELECT state FROM v_cycles WHERE cycle_id = $1")" = done ] || fail "cycle $1 failed"
}

# Nanoseconds that each party has been on a processor, all its threads.
cpu_times()
{
    local pid task ns sum rest
    for pid in "${pids[@]}"; do
        sum=0
        for task in "/proc/$pid"/task/*/schedstat; do
            read -r ns rest <"$task" && sum=$((sum + ns))
        done
        echo "$sum"
    done
}

# Sum of PSS of the five processes in kB, each time it is a new high, until the file `stop` is there.
watch_memory()
{
    local pid key value unit sum peak=0
    while [ ! -e "$work/cell/stop" ]; do
        sum=0
        for pid in "${pids[@]}"; do
            while read -r key value unit; do
                [ "$key" != Pss: ] || { sum=$((sum + value)); break; }
            done <"/proc/$pid/smaps_rollup"
        done
        [ "$sum" -le "$peak" ] || { peak=$sum; echo "$peak" >"$work/cell/peak"; }
    done
}

# The middle one of the numbers on stdin.
middle()
{
    sort -n | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'
}

cell()
{
    local n i before after watcher wall
    start_cell "$@"
    cycle 1 # the first has pages and caches to fill
    for ((n = 2; n <= cycles + 1; n++)); do
        mapfile -t before < <(cpu_times)
        cycle "$n"
        mapfile -t after < <(cpu_times)
        for i in 0 1 2 3 4; do
            echo $(((after[i] - before[i]) / 100000)) >>"$work/cell/cpu.$i"
        done
    done
    watch_memory &
    watcher=$!
    cycle "$n"
    cycle $((n + 1))
    touch "$work/cell/stop"
    wait "$watcher"
    wall="FROM v_cycles WHERE cycle_id BETWEEN 2 AND $((cycles + 1))"
    printf '%-8s %8d %8d %7d %7d ' "$1" "$2" "$3" "$(ask "SELECT min(ended_ms - started_ms) $wall")" \
        "$(ask "SELECT ended_ms - started_ms $wall" | middle)"
    for i in 0 1 2 3 4; do
        middle <"$work/cell/cpu.$i"
    done | awk '{printf "%9.1f", $1 / 10; sum += $1} END {printf "%8.1f", sum / 10}'
    awk '{printf "%9.1f\n", $1 / 1024}' "$work/cell/peak"
    stop_all
}

echo "paper: HBA alone plans in .03-3.06 s up to 200 services, .21-3.28 s up to 1000; 1.65 GB"
echo "a cycle without moves, $cycles times: wall ms, CPU ms of each process (median), peak sum of PSS"
printf 'topology services messages     min  median ' # wall
printf '%9s' "${parties[@]}"
printf '%8s%9s\n' "all CPU" "MB"
if [ $# -eq 3 ]; then
    cell "$@"
elif [ $# -eq 0 ]; then
    for topology in star p2p; do
        for services in 10 20 50 100 200 500 1000; do
            for messages in 1000 10000 100000; do
                cell "$topology" "$services" "$messages"
            done
        done
    done
else
    echo "usage: remap-bench-cycle [TOPOLOGY SERVICES MESSAGES]" >&2
    exit 2
fi
