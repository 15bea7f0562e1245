# Exit codes of bad input: always 2, with the place, on stderr only; never a crash.
. "$(dirname "$0")/lib.sh"

# refused WHAT PART CMD…
refused()
{
    local what=$1 part=$2
    shift 2
    run "$@"
    is "$what: exit code" "$status" 2
    has "$what: message" "$err" "$part"
    is "$what: stdout" "$out" ""
}

good='{"v":1,"hosts":[{"name":"h","cpu_cap_millis":1,"mem_cap_bytes":1}],"services":[{"name":"s"}],"instances":[{"name":"i","service":"s","host":"h","cpu_used_millis":1,"mem_used_bytes":1}],"messages":[]}'
doc() { printf '%s' "$1" >doc.json; }

doc "$good"
run remap plan --model doc.json
is "the document without faults" "$status" 0

while IFS='|' read -r what part from to; do
    doc "${good//"$from"/"$to"}"
    refused "$what" "$part" remap plan --model doc.json
    has "$what: the file" "$err" "doc.json"
done <<'END'
unknown key|hosts[0].cpus|"mem_cap_bytes":1}]|"mem_cap_bytes":1,"cpus":1}]
negative|hosts[0].cpu_cap_millis|"cpu_cap_millis":1|"cpu_cap_millis":-1
fractional|hosts[0].cpu_cap_millis|"cpu_cap_millis":1|"cpu_cap_millis":1.5
text for number|hosts[0].cpu_cap_millis|"cpu_cap_millis":1|"cpu_cap_millis":"1"
too large|hosts[0].cpu_cap_millis|"cpu_cap_millis":1|"cpu_cap_millis":1000000000000001
no such service|instances[0].service|"service":"s"|"service":"t"
no such host|instances[0].host|"host":"h"|"host":"g"
no such end|messages[0]|"messages":[]|"messages":[{"src":"i","dst":"x","count":1,"bytes":1}]
both kinds|affinities|"messages":[]|"messages":[],"affinities":[]
empty name|services[0].name|"services":[{"name":"s"}|"services":[{"name":""}
name twice|services[1]|"services":[{"name":"s"}]|"services":[{"name":"s"},{"name":"s"}]
wrong version|v|"v":1|"v":2
END

doc "$good x"
refused "bytes after it" "doc.json" remap plan --model doc.json
doc "${good%?}"
refused "truncated" "doc.json" remap plan --model doc.json
doc '{"v":1,"v":1}'
refused "doubled key" "doc.json" remap plan --model doc.json
doc ''
refused "empty" "doc.json" remap plan --model doc.json
head -c 100000 /dev/zero | tr '\0' '[' >doc.json
refused "deep" "doc.json" remap plan --model doc.json
head -c 1000 /dev/urandom >doc.json
refused "noise" "doc.json" remap plan --model doc.json
refused "absent file" "nowhere.json" remap plan --model nowhere.json
refused "a folder" "$dir" remap plan --model "$dir"

refused "no command" "Usage" remap
refused "unknown command" 'did you mean "plan"' remap plam
refused "unknown option" "--modell" remap plan --modell x
refused "no --model" "--model" remap plan
refused "no value" "--model" remap plan --model
refused "bad format" "-o" remap plan --model x -o yaml
refused "bad weight" "--weight" remap plan --model x --weight 2
refused "nothing to import" "--traces" remap import
refused "absent recording" "nowhere" remap import --traces nowhere.json
refused "trigger what" "APP" remap trigger
refused "no cycle number" "abc" remap apply abc

# No daemon: an ordinary failure that says what to do.
run remap pause --run-dir "$dir/run"
is "no daemon" "$status" 1
has "no daemon" "$err" "remap run"

# No feasible placement: the document is printed, without moves, also where others overfill a host.
doc '{"v":1,"hosts":[{"name":"a","cpu_cap_millis":409,"mem_cap_bytes":900},{"name":"b","cpu_cap_millis":62,"mem_cap_bytes":900,"cpu_requested_millis":86}],"services":[{"name":"s"},{"name":"t"}],"instances":[{"name":"s-0","service":"s","host":null,"cpu_used_millis":63,"mem_used_bytes":1},{"name":"t-0","service":"t","host":"a","cpu_used_millis":170,"mem_used_bytes":1}],"affinities":[],"rules":[{"kind":"apart","services":["s","t"],"max_per_host":1}]}'
run remap plan --model doc.json --planner oa -o json
is "infeasible" "$status" 3
has "infeasible" "$out" '"status":"infeasible"'
has "infeasible" "$out" '"moves":[]'

# Rules that no placement can keep: the same of every planner, and the rules are named.
doc '{"v":1,"hosts":[{"name":"a","cpu_cap_millis":9,"mem_cap_bytes":9},{"name":"b","cpu_cap_millis":9,"mem_cap_bytes":9}],"services":[{"name":"s"},{"name":"t"}],"instances":[{"name":"s-0","service":"s","host":"a","cpu_used_millis":1,"mem_used_bytes":1},{"name":"t-0","service":"t","host":"a","cpu_used_millis":1,"mem_used_bytes":1}],"affinities":[],"rules":[{"kind":"together","services":["s","t"]},{"kind":"allowed","service":"s","hosts":["a"]},{"kind":"allowed","service":"t","hosts":["b"]}]}'
for planner in auto hba hubs oa oa-modified; do
    run remap plan --model doc.json --planner "$planner" -o json
    is "rules against each other: $planner" "$status" 3
    has "rules against each other: $planner" "$out" "rules[0] (together, of s and t), rules[1] (allowed, of s) and rules[2] (allowed, of t): s and t have no host in common"
done

# Output that cannot be written.
doc "$good"
remap plan --model doc.json >/dev/full 2>full.err
is "disk full" "$?" 1
has "disk full" "$(cat full.err)" "No space left"

finish
