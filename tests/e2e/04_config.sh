# Configurations: the shipped ones are read, bad ones are refused with file, line and key.
. "$(dirname "$0")/lib.sh"

# Line 1 and 2 are always these.
head='sources: [{name: cluster, type: simulated, options: [{name: socket, value: /nowhere/sock}]}]
apps: [{name: shop, cluster: cluster}]'

# refused WHAT PART TEXT
refused()
{
    printf '%s\n' "$3" >bad.yaml
    run remap check -c bad.yaml
    is "$1: exit code" "$status" 2
    has "$1" "$err" "$2"
    is "$1: stdout" "$out" ""
}

refused "unknown key" 'bad.yaml:3: stoer: unknown key; did you mean "store"?' "$head
stoer: /x"
refused "wrong type" 'bad.yaml:3: log_level: must be a single value' "$head
log_level: [info]"
refused "second document" 'bad.yaml:3: a second document' "$head
---
store: /x"
refused "alias" 'bad.yaml:3: aliases' "$head
store: *x"
refused "tab" 'bad.yaml:4: a tab' "$head
http_listen:
	127.0.0.1:1"
refused "empty" 'bad.yaml: is empty' ""
refused "no such source" 'bad.yaml:2: apps[0].cluster: there is no source "clutser"; did you mean "cluster"?' "${head/cluster: cluster/cluster: clutser}"
refused "secret in the file" 'must not stand in this file' "${head/name: socket/name: token}"
refused "open to the world" 'bad.yaml:3: http_listen: is reachable from outside' "$head
http_listen: 0.0.0.0:9470"

head -c 2000000 /dev/zero | tr '\0' '#' >big.yaml
run remap check -c big.yaml
is "too large" "$status" 2
run remap check -c nowhere.yaml
is "absent" "$status" 2
has "absent" "$err" "nowhere.yaml"

# A sound configuration whose cluster is not there: 1, with a remedy.
printf '%s\n' "$head" >down.yaml
run remap check -c down.yaml
is "unreachable source" "$status" 1
has "says so" "$out" "down.yaml is valid"
has "names the source" "$out" "cluster"
run remap check -c down.yaml -o json
is "unreachable source, json" "$status" 1
is "json says not ok" "$(sql :memory: "SELECT json_extract('${out//\'/\'\'}', '\$.ok')")" 0
# A source that is configured wrongly: 2, and the table says which and what helps.
printf '%s\n' "${head/socket, value: \/nowhere\/sock/speed, value: none}" >wrong.yaml
run remap check -c wrong.yaml
is "source configured wrongly" "$status" 2
has "source configured wrongly" "$out" "FAILS"
has "source configured wrongly, remedy" "$out" "what helps"
run env REMAP_CONFIG="$dir/down.yaml" remap check --app nobody
is "no such app" "$status" 2

run remap check --keys
is "the list of keys" "$status" 0
has "the list of keys" "$out" "apps[].interval        10m"

finish
