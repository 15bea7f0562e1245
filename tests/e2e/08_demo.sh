# The demo: one command, the whole loop, and an application that is better off, as measured.
. "$(dirname "$0")/lib.sh"

run remap demo --keep "$dir/demo"
is "demo" "$status" 0
is "demo: stderr" "$err" ""
for state in collecting analyzing planning executing settling verifying; do
    has "shows $state" "$out" " $state"
done
has "drawing" "$out" "┌ node-1"
has "after" "$out" "After"
has "table" "$out" "traffic that crosses hosts"
has "hints" "$out" "sqlite3 -readonly"
is "no colour into a pipe" "${out/$'\033'/ESC}" "$out"

store=$dir/demo/store.db
is "the store is whole" "$(sql "$store" 'PRAGMA integrity_check')" ok
is "the cycle" "$(sql "$store" 'SELECT state FROM v_cycles WHERE cycle_id = 1')" done
is "moves" "$(sql "$store" 'SELECT moves_applied > 0 AND moves_applied = moves_planned FROM v_cycles WHERE cycle_id = 1')" 1
is "more traffic stays" "$(sql "$store" 'SELECT local_realised > local_before + 0.2 FROM v_savings WHERE cycle_id = 1')" 1
is "answers come sooner" "$(sql "$store" 'SELECT response_realised_ms < response_before_ms FROM v_savings WHERE cycle_id = 1')" 1
is "no more hosts" "$(sql "$store" 'SELECT hosts_realised <= hosts_before FROM v_savings WHERE cycle_id = 1')" 1

# Its sqlite3 lines work as printed.
while IFS= read -r line; do
    ok "hint: $line" bash -c "$line" >/dev/null 2>hint.err
done < <(grep -oE 'sqlite3 -readonly .*' <<<"$out")
# And its remap lines.
while IFS= read -r line; do
    run bash -c "$line"
    is "hint: $line" "$status" 0
done < <(sed -n 's/^  \(remap .*\)/\1/p' <<<"$out")

# In a clone, where the shell does not find remap, they name its path.
program=$(readlink -f "$(command -v remap)")
run env PATH=/usr/bin:/bin "$program" demo --keep "$dir/path" --planner hba
is "demo by its path" "$status" 0
has "hint by path" "$out" "  $program history --store $dir/path/store.db"

# Nothing is left running, and a second run does not touch the first one's store.
is "no process left" "$(grep -lF "$dir/demo" /proc/[0-9]*/cmdline 2>/dev/null)" ""
run remap demo --keep "$dir/demo"
is "same folder again" "$status" 1
has "same folder again" "$err" "store.db is there already"

run remap demo --keep "$dir/json" -o json
is "json" "$status" 0
printf '%s' "$out" >doc.json
is "json: measured" "$(sqlite3 :memory: "SELECT json_extract(readfile('doc.json'), '\$.savings.local_realised') > json_extract(readfile('doc.json'), '\$.savings.local_before')")" 1

# Ctrl-C ends all of it.
env --default-signal=INT remap demo --keep "$dir/stop" --speed 10 >stop.out 2>&1 &
demo=$!
wait_for "the demo moves" 20 grep -q executing stop.out
kill -INT "$demo"
wait "$demo"
is "interrupted" "$?" 1
is "no process left after Ctrl-C" "$(grep -lF "$dir/stop" /proc/[0-9]*/cmdline 2>/dev/null)" ""
is "the store is whole after Ctrl-C" "$(sql "$dir/stop/store.db" 'PRAGMA integrity_check')" ok

# Other planners, other shapes.
run remap demo --keep "$dir/hubs" --planner hubs
is "demo with hubs" "$status" 0
is "auto, which proves the optimum here, is no worse than hubs" "$(sqlite3 -readonly "$store" "ATTACH '$dir/hubs/store.db' AS h; SELECT (SELECT round(local_predicted, 6) FROM v_savings WHERE cycle_id = 1) >= (SELECT round(local_predicted, 6) FROM h.v_savings WHERE cycle_id = 1)")" 1
run remap demo --keep "$dir/bad" --planner nonsense
is "demo without such a planner" "$status" 2
has "it says so" "$out" "nonsense"

run remap demo --scenario nonsense
is "no such scenario" "$status" 2
has "the names" "$err" "sock-shop"
echo 'name: [' >bad.yaml
run remap demo --scenario ./bad.yaml
is "a bad scenario" "$status" 2
has "a bad scenario" "$err" "bad.yaml:"

finish
