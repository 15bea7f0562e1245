# kube_lib.sh - sourced by the scenarios of this folder, after ../e2e/lib.sh: a cluster that ends with
# the scenario, workloads, traffic, a daemon.

cluster=$REMAP_SOURCE/etc/cluster

# cluster_up ARGUMENTS… : into $dir/kube; `k` is its kubectl. Skips the scenario where there is none.
cluster_up()
{
    local why
    why=$("$cluster" check "$@") || skip "no Kubernetes: ${why%%$'\n'*}"
    trap 'cluster_end' EXIT
    if ! "$cluster" up --no-build --dir "$dir/kube" "$@" >cluster.out 2>&1; then
        cat cluster.out
        exit 1
    fi
    export KUBECONFIG=$dir/kube/kubeconfig
    kubectl=$(<"$dir/kube/kubectl")
}

cluster_end()
{
    # The daemon first: it would only wait for an API server that has gone.
    local pid
    for pid in ${started_pids[@]+"${started_pids[@]}"}; do
        kill "$pid" 2>/dev/null
    done
    "$cluster" down --dir "$dir/kube" 2>/dev/null
    cleanup
}

k() { "$kubectl" "$@"; }
sums() { sql "$dir/store.db" "$1"; }

# deployment NAMESPACE NAME REPLICAS CPU MEMORY MORE-OF-THE-POD-SPEC : a manifest; CPU and MEMORY are
# what it uses, and what it asks for.
deployment()
{
    cat <<END
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: $2, namespace: $1}
spec:
  replicas: $3
  selector: {matchLabels: {app: $2}}
  template:
    metadata:
      labels: {app: $2}
      annotations: {kwok.x-k8s.io/usage-cpu: $4, kwok.x-k8s.io/usage-memory: $5}
    spec:
      containers:
      - name: $2
        image: $2:1
        ports: [{containerPort: 8080}]
        readinessProbe: {httpGet: {path: /ready, port: 8080}}
        resources: {requests: {cpu: $4, memory: $5}}
      ${6-}
END
}

# spans NAMESPACE <lines "FROM TO CALLS" : an OTLP request with a client and a server span per call,
# all of the second before now.
spans()
{
    awk -v space="$1" -v now="$(date +%s)" '
    function resource(service, kind, edge, calls,    j, comma) {
        printf "{\"resource\":{\"attributes\":[{\"key\":\"service.name\",\"value\":{\"stringValue\":\"%s\"}},", service
        printf "{\"key\":\"k8s.namespace.name\",\"value\":{\"stringValue\":\"%s\"}}]},\"scopeSpans\":[{\"spans\":[", space
        for (j = 0; j < calls; j++) {
            printf "%s{\"traceId\":\"%016x%08x%08x\",\"spanId\":\"%04x%04x%08x\",", comma, now, edge + 1, j + 1, kind, edge + 1, j + 1
            if (kind == 2)
                printf "\"parentSpanId\":\"%04x%04x%08x\",", 3, edge + 1, j + 1
            printf "\"name\":\"call\",\"kind\":%d,\"startTimeUnixNano\":\"%d000000000\",\"endTimeUnixNano\":\"%d005000000\"}", kind, now - 1, now - 1
            comma = ","
        }
        printf "]}]}"
    }
    BEGIN { printf "{\"resourceSpans\":[" }
    {
        if (NR > 1) printf ","
        resource($1, 3, NR, $3)
        printf ","
        resource($2, 2, NR, $3)
    }
    END { print "]}" }'
}

# send_spans PORT NAMESPACE FILE : now, and then every three seconds, in the background.
send_spans()
{
    while :; do
        spans "$2" <"$3" | curl -s -o /dev/null -m 10 --noproxy '*' --data-binary @- \
            -H 'Content-Type: application/json' "http://127.0.0.1:$1/v1/traces"
        sleep 3
    done
}

# where NAMESPACE : "workload node" of each pod that is ready and stays, sorted.
where()
{
    k -n "$1" get pods --no-headers -o custom-columns='A:.metadata.labels.app,N:.spec.nodeName,R:.status.conditions[?(@.type=="Ready")].status,D:.metadata.deletionTimestamp' |
        awk '$3 == "True" && $4 == "<none>" {print $1, $2}' | sort
}

# affinities NAMESPACE : name, generation and affinity of each deployment's template, as bytes.
affinities()
{
    k -n "$1" get deployments -o jsonpath='{range .items[*]}{.metadata.name}{"\t"}{.spec.template.spec.affinity}{"\n"}{end}'
}

free_port()
{
    local port
    while :; do
        port=$((RANDOM % 9000 + 11000)) # below those that the kernel gives to clients
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo $port; return; }
    done
}

# configure PORT NAMESPACE… : remap.yaml, with an app for each namespace, which receives spans at PORT.
configure()
{
    local port=$1 space
    shift
    cat >remap.yaml <<END
store: $dir/store.db
run_dir: $dir/run
http_listen: "off"
sources:
  - name: cluster
    type: kubernetes
    options:
      - {name: kubeconfig, value: $KUBECONFIG}
      - {name: soak, value: 0s}
      - {name: scaling_quiet, value: 0s}
      - {name: min_node_age, value: 1ms}
  - name: usage
    type: kubernetes-metrics
    options:
      - {name: kubeconfig, value: $KUBECONFIG}
  - name: spans
    type: otlp
    options:
      - {name: listen, value: "127.0.0.1:$port"}
      - {name: others, value: ignore} # other applications send here too
apps:
END
    for space in "$@"; do
        cat >>remap.yaml <<END
  - name: $space
    mode: propose
    namespaces: [$space]
    cluster: cluster
    metrics: [usage]
    messages: [spans]
    interval: 1h
    window: 15s
    grace: 0
    settle: 20s
    soak: 0
    cooldown: 0
    ready_timeout: 10m
    min_coverage: 0.5
END
    done
}

state_of() { sums "SELECT state FROM v_cycles WHERE cycle_id = $1"; }
newest() { sums "SELECT max(cycle_id) FROM v_cycles WHERE app = '$1'"; }
is_state() { [ "$(state_of "$1")" = "$2" ]; }

# propose APP : triggers until there is a plan, since the window has to fill, and metrics-server wants
# two samples; its cycle in $cycle. Each cycle comes to rest before the next one, which might replace it.
propose()
{
    local until=$((SECONDS + 600)) before
    while [ $SECONDS -lt $until ]; do
        before=$(newest "$1")
        if remap trigger "$1" -c remap.yaml >/dev/null 2>&1; then
            while [ $SECONDS -lt $until ]; do
                cycle=$(newest "$1")
                [ "${cycle:-0}" -gt "${before:-0}" ] &&
                    [[ $(state_of "$cycle") =~ ^(proposed|done|failed|undone|superseded)$ ]] && break
                sleep 0.1
            done
            is_state "${cycle:-0}" proposed && return
        fi
        sleep 2
    done
    fails "no plan for $1: $(sums "SELECT state || ' ' || reason FROM v_cycles ORDER BY cycle_id DESC LIMIT 3")"
    return 1
}
