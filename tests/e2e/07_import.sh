# Recordings of real systems: from files to affinities, with the counts that are known of them.
. "$(dirname "$0")/lib.sh"

traces=$REMAP_TEST_DATA/traces
[ -f "$traces/online-boutique/traces.zipkin.json" ] ||
    skip "recordings: $traces is not there (REMAP_TEST_DATA)"

# json WHAT: one value of the last document
json() { sqlite3 :memory: "SELECT $1 FROM (SELECT readfile('document.json') AS d)"; }

run remap import --traces "$traces/online-boutique/traces.zipkin.json"
is "import" "$status" 0
printf '%s\n' "$out" >document.json
is "services" "$(json "json_array_length(d, '\$.services')")" 10
is "calls" "$(sqlite3 :memory: "SELECT sum(json_extract(value, '\$.count')) FROM json_each(readfile('document.json'), '\$.messages')")" 1164
has "said" "$err" "4873 spans"

# Straight on to affinities and a plan; no sizes are recorded, so only counts weigh.
run remap analyze --model document.json -o json
is "analyze" "$status" 0
printf '%s\n' "$out" >document.json
is "weight without sizes" "$(json "json_extract(d, '\$.weight_used')")" 1
is "pairs of services" "$(json "json_array_length(d, '\$.service_affinities')")" 13

run remap import --traces "$traces/zipkin/smartthings-oauth-authorization.json"
printf '%s\n' "$out" >document.json
is "production trace: services" "$(json "json_array_length(d, '\$.services')")" 8

# Broken recordings: refused with file and place, or their good part with a note; never a crash.
head -c 700000 "$traces/online-boutique/traces.zipkin.json" >cut.json
run remap import --traces cut.json
is "cut in the middle" "$status" 2
has "cut in the middle" "$err" "cut.json"
is "cut in the middle: stdout" "$out" ""
echo '{"no": "spans"}' >other.json
run remap import --traces other.json
is "no recording" "$status" 2
has "no recording" "$err" "other.json"

finish
