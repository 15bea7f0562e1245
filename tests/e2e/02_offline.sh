# plan and analyze on a document by hand: results, formats, pipes.
. "$(dirname "$0")/lib.sh"

cat >shop.json <<'END'
{"v": 1,
 "hosts": [{"name": "h1", "cpu_cap_millis": 1000, "mem_cap_bytes": 1000},
           {"name": "h2", "cpu_cap_millis": 1000, "mem_cap_bytes": 1000}],
 "services": [{"name": "front"}, {"name": "carts"}, {"name": "db", "stateful": true}],
 "instances": [
   {"name": "front-1", "service": "front", "host": "h1", "cpu_used_millis": 300, "mem_used_bytes": 100},
   {"name": "carts-1", "service": "carts", "host": "h1", "cpu_used_millis": 300, "mem_used_bytes": 100},
   {"name": "db-1", "service": "db", "host": "h2", "cpu_used_millis": 600, "mem_used_bytes": 100}],
 "messages": [{"src": "front-1", "dst": "carts-1", "count": 10, "bytes": 100},
              {"src": "carts-1", "dst": "db-1", "count": 30, "bytes": 300}]}
END

run remap analyze --model shop.json -o json --weight 1
is "analyze" "$status" 0
is "strongest pair" "$(sql :memory: "SELECT json_extract('$out', '\$.affinities[0].a') || ' ' || json_extract('$out', '\$.affinities[0].degree')")" "carts-1 0.75"
run remap analyze --model shop.json
has "analyze in words" "$out" "0.750000"

# The stateful db stays; carts joins it.
run remap plan --model shop.json -o json
is "plan" "$status" 0
plan=$out
is "one move" "$(sql :memory: "SELECT json_array_length('$plan', '\$.moves')")" 1
is "the move" "$(sql :memory: "SELECT json_extract('$plan', '\$.moves[0].instance') || '>' || json_extract('$plan', '\$.moves[0].target')")" "carts-1>h2"
is "nothing on stderr" "$err" ""
run remap plan --model - -o json
is "no document on stdin" "$status" 2
remap plan --model - -o json <shop.json >from-stdin.json
is "the same from stdin, but for the time" "$(sed 's/"solve_ms":[0-9]*//' from-stdin.json)" \
    "$(echo "$plan" | sed 's/"solve_ms":[0-9]*//')"
run remap plan --model shop.json
is "plan in words" "$status" 0
has "summary" "$out" "optimal plan by oa (asked for: auto)"
has "moves" "$out" "carts-1   h1    h2"
has "no colour into a pipe" "x${out//$'\033'/ESC}" "x${out}"
run remap plan --model shop.json --exit-code
is "--exit-code with moves" "$status" 10

# Where the best placement is reached already there is nothing to do.
sed 's/"carts-1", "service": "carts", "host": "h1"/"carts-1", "service": "carts", "host": "h2"/' \
    shop.json >good.json
run remap plan --model good.json --exit-code
is "--exit-code without moves" "$status" 0
has "no moves in words" "$out" "Nothing to move."

# Given degrees are taken as they are.
sed 's/"messages": .*/"affinities": [{"a": "carts", "b": "db", "degree": 0.5}]}/; /"src": "carts-1"/d' \
    shop.json >degrees.json
run remap plan --model degrees.json -o json
is "plan by given degrees" "$status" 0
is "their sum" "$(sql :memory: "SELECT json_extract('$out', '\$.affinity_after')")" "0.5"
run remap plan --model degrees.json --weight 0.3
is "a weight without messages" "$status" 2
run remap analyze --model degrees.json
is "analyze given degrees" "$status" 2

# Options that the planner cannot use.
run remap plan --model shop.json --planner hba --move-stateful
is "hba never moves stateful" "$status" 2
run remap plan --model shop.json --planner nonsense
is "no such planner" "$status" 2
has "named" "$err" "nonsense"

finish
