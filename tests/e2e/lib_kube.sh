# lib_kube.sh - sourced after lib.sh by scenarios on a real Kubernetes: a cluster in $dir/cluster that
# goes with the scenario, kubectl for it, traffic as a tracer would send it.
#
#   cluster_up WHAT OPTIONS…   etc/cluster up; skips where something is missing
#   cluster COMMAND ARGS…      etc/cluster on it
#   k ARGS…                    kubectl as admin
#   cordon NODE                and until the scheduler knows
#   spans ADDRESS NAMESPACE TOKEN CALLER:CALLEE…
#                              a hundred calls of each pair, both halves, by OTLP; each is a service,
#                              or SERVICE/POD for one replica alone

cluster() { "$REMAP_SOURCE/etc/cluster" "$@" --dir "$dir/cluster"; }

cluster_down()
{
    cluster down >/dev/null 2>&1
    cleanup
}

cluster_up()
{
    local what=$1 path
    shift
    run "$REMAP_SOURCE/etc/cluster" check --no-build "$@" --dir "$dir/cluster"
    [ "$status" -eq 0 ] || skip "$what: ${out%%$'\n'*}${err%%$'\n'*}"
    trap cluster_down EXIT
    run "$REMAP_SOURCE/etc/cluster" up --no-build "$@" --dir "$dir/cluster"
    is "etc/cluster up" "$status" 0
    [ "$status" -eq 0 ] || finish
    export KUBECONFIG=$dir/cluster/users/admin
    for path in "${XDG_CACHE_HOME:-$HOME/.cache}"/remap/kubernetes-* ${KUBEBUILDER_ASSETS:-}; do
        [ ! -x "$path/kubectl" ] || kubectl=$path/kubectl
    done
}

k() { "$kubectl" "$@"; }

# cordon NODE: until the scheduler knows, and a pod for that node alone finds no place
cordon()
{
    k cordon "$1" >/dev/null
    wait_for "$1 takes no pods" 30 takes_none "$1"
}

takes_none()
{
    local state=
    k --namespace default create -f - >/dev/null <<END || return
apiVersion: v1
kind: Pod
metadata: {name: probe}
spec:
  nodeSelector: {kubernetes.io/hostname: $1}
  containers: [{name: c, image: probe, imagePullPolicy: Never}]
END
    while [ -z "$state" ]; do
        state=$(k --namespace default get pod probe -o jsonpath='{.spec.nodeName}{.status.conditions[?(@.type=="PodScheduled")].reason}') || return
    done
    k --namespace default delete pod probe --grace-period=0 --force >/dev/null 2>&1
    [ "$state" = Unschedulable ]
}

# half SERVICE[/POD] NAMESPACE KIND OWN PARENT TRACE: the spans of one side; OWN and PARENT are the first
# digits of their numbers, PARENT - for none
half()
{
    local i now parent= pod=
    now=$(date +%s)
    [ "${1#*/}" = "$1" ] || pod='{"key":"k8s.pod.name","value":{"stringValue":"'"${1#*/}"'"}},'
    echo '{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"'"${1%/*}"'"}},'"$pod"'
        {"key":"k8s.namespace.name","value":{"stringValue":"'"$2"'"}}]},"scopeSpans":[{"spans":['
    for i in $(seq 100); do
        [ "$i" = 1 ] || echo ,
        [ "$5" = - ] || parent=$(printf ',"parentSpanId":"%s%015x"' "$5" "$i")
        printf '{"traceId":"%s%024x","spanId":"%s%015x"%s,"name":"call","kind":%s,' \
            "$6" "$i" "$4" "$i" "$parent" "$3"
        printf '"startTimeUnixNano":"%s000000000","endTimeUnixNano":"%s001000000"}' "$now" "$now"
    done
    echo ']}]}'
}

spans()
{
    local address=$1 space=$2 token=$3 pair trace
    shift 3
    for pair in "$@"; do
        trace=$(printf '%04x%04x' $RANDOM $RANDOM)
        {
            echo '{"resourceSpans":['
            half "${pair%:*}" "$space" 3 a - "$trace"
            echo ,
            half "${pair#*:}" "$space" 2 b a "$trace"
            echo ']}'
        } >spans.json
        curl -sf --retry 60 --retry-all-errors --retry-delay 1 -H 'Content-Type: application/json' -H "Authorization: Bearer $token" \
            --data-binary @spans.json "http://$address/v1/traces" >/dev/null ||
            fails "spans are not taken"
    done
}
