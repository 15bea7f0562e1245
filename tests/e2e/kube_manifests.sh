# etc/kubernetes on a real API server: every overlay is accepted, each gives the account the rights it
# names and no others, and whoever steals its token can move workloads and nothing else.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_kube.sh"

manifests=$REMAP_SOURCE/etc/kubernetes
cluster_up manifests --fake 2

account=system:serviceaccount:remap:remap
# may VERB RESOURCE[:SUBRESOURCE] NAMESPACE: yes or no
may()
{
    local sub=()
    case $2 in *:*) sub=(--subresource "${2#*:}") ;; esac
    k auth can-i "$1" "${2%:*}" "${sub[@]}" --namespace "$3" --as "$account" 2>/dev/null
}

# grants WHAT VERB RESOURCE NAMESPACE: yes, as soon as the API server knows the roles
grants() { wait_for "$1" 30 is_yes "${@:2}"; }
is_yes() { [ "$(may "$@")" = yes ]; }

# --- observe ---
run k apply -k "$manifests/base"
is "base is accepted" "$status: $err" "0: "
run k apply -k "$manifests/base"
is "a second time it changes nothing" "$(echo "$out" | grep -cv unchanged)" 0
for resource in nodes pods services persistentvolumes deployments.apps statefulsets.apps jobs.batch \
    horizontalpodautoscalers.autoscaling poddisruptionbudgets.policy; do
    grants "base may list $resource" list "$resource" default
done
for resource in secrets configmaps; do
    is "base may not read $resource" "$(may get "$resource" remap)" no
done
for verb in create update patch delete deletecollection; do
    for resource in pods deployments.apps statefulsets.apps nodes configmaps secrets events.events.k8s.io \
        leases.coordination.k8s.io pods:eviction pods:exec pods:binding serviceaccounts:token \
        deployments.apps:scale; do
        answer=$(may "$verb" "$resource" default)
        [ "$answer" = no ] || is "base may not $verb $resource" "$answer" no
    done
done
is "all of that" "$(may '*' '*' default)" no

# A cycle of a daemon with these rights, as its pod would see the cluster.
mkdir account
k create token remap --namespace remap >account/token
k config view --raw -o jsonpath='{.clusters[0].cluster.certificate-authority-data}' | base64 -d >account/ca.crt
[ -s account/ca.crt ] || cp "$(k config view -o jsonpath='{.clusters[0].cluster.certificate-authority}')" account/ca.crt
printf remap >account/namespace
server=$(k config view -o jsonpath='{.clusters[0].cluster.server}')
server=${server#https://}
cat >observe.yaml <<END
store: $dir/store.db
run_dir: $dir/run
http_listen: off
sources: [{name: cluster, type: kubernetes, options: [{name: service_account, value: $dir/account}]}]
apps: [{name: shop, mode: observe, cluster: cluster, namespaces: [default]}]
END
observe() { run env -u KUBECONFIG KUBERNETES_SERVICE_HOST="${server%:*}" KUBERNETES_SERVICE_PORT="${server##*:}" remap "$@" -c observe.yaml; }
observe check
is "observing needs no more rights than these" "$status" 0
has "it sees the nodes" "$out" "2 nodes"
observe once
is "a cycle" "$status: $(sql store.db "SELECT state || coalesce(': ' || reason, '') FROM v_cycles")" "0: done: no traffic in the window"
is "it has asked for no lease" "$(k get lease --namespace remap -o name)" ""

# --- act ---
run k apply -k "$manifests/act"
is "act is accepted" "$status: $err" "0: "
grants "act may patch deployments in its namespace" patch deployments.apps default
is "and in no other" "$(may patch deployments.apps kube-system)" no
is "act may not make workloads" "$(may create deployments.apps default)" no
is "act may not scale" "$(may patch deployments.apps:scale default)" no
is "act may not delete pods" "$(may delete pods default)" no
is "act may not evict" "$(may create pods:eviction default)" no
grants "act may write its lease" update leases.coordination.k8s.io/remap remap
is "and no other" "$(may update leases.coordination.k8s.io/other remap)" no

run k create deployment shop --image=shop
run k annotate deployment shop note=mine remap/weight=3
is "a workload of somebody" "$status" 0
token=$(k create token remap --namespace remap)
# as_remap TYPE PATCH: with the stolen token
as_remap() { run k --token "$token" patch deployment shop --type "$1" --patch "$2"; }
# refused WHAT WHY TYPE PATCH
refused()
{
    as_remap "$3" "$4"
    is "$1 is refused" "$status" 1
    has "$1 is refused by the policy" "$err" "ValidatingAdmissionPolicy 'remap'"
    has "$1 is refused for what it is" "$err" "$2"
}
# allowed WHAT TYPE PATCH
allowed()
{
    as_remap "$2" "$3"
    is "$1 is allowed" "$status: $err" "0: "
}
# The policy is enforced a moment after it was made.
wait_for "the policy" 30 sh -c "! '$kubectl' --token '$token' patch deployment shop --type merge \
    --dry-run=server --patch '{\"spec\":{\"paused\":true}}'"
pod() { echo "{\"spec\":{\"template\":{\"spec\":{$1}}}}"; }
refused "an image" "nothing of a pod" strategic "$(pod '"containers":[{"name":"shop","image":"evil"}]')"
refused "a second container" "nothing of a pod" strategic "$(pod '"containers":[{"name":"b","image":"evil"}]')"
refused "an init container" "nothing of a pod" merge "$(pod '"initContainers":[{"name":"b","image":"evil"}]')"
refused "hostPID" "nothing of a pod" merge "$(pod '"hostPID":true')"
refused "hostNetwork" "nothing of a pod" merge "$(pod '"hostNetwork":true')"
refused "another account" "nothing of a pod" merge "$(pod '"serviceAccountName":"default"')"
refused "a volume" "nothing of a pod" strategic "$(pod '"volumes":[{"name":"v","hostPath":{"path":"/"}}]')"
refused "tolerations" "nothing of a pod" merge "$(pod '"tolerations":[{"operator":"Exists"}]')"
refused "nodeName" "nothing of a pod" merge "$(pod '"nodeName":"fake-1"')"
refused "pod affinity" "pod affinity" merge "$(pod '"affinity":{"podAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,"podAffinityTerm":{"topologyKey":"x"}}]}}')"
refused "replicas" "outside of the template" merge '{"spec":{"replicas":9}}'
refused "the strategy" "outside of the template" merge '{"spec":{"strategy":{"type":"Recreate","rollingUpdate":null}}}'
refused "a label of the template" "metadata of the template" merge '{"spec":{"template":{"metadata":{"labels":{"a":"b"}}}}}'
refused "a label" "labels" merge '{"metadata":{"labels":{"a":"b"}}}'
refused "a finalizer" "finalizers" merge '{"metadata":{"finalizers":["a/b"]}}'
refused "somebody's annotation" "annotations of others" merge '{"metadata":{"annotations":{"note":null}}}'
refused "the user's word to us" "annotations of others" merge '{"metadata":{"annotations":{"remap/weight":"9"}}}'
prefer='"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":100,"preference":{"matchExpressions":[{"key":"kubernetes.io/hostname","operator":"In","values":["fake-1"]}]}}]'
allowed "a preferred host" merge "$(pod '"affinity":{"nodeAffinity":{'"$prefer"'}}')"
allowed "its mark" merge '{"metadata":{"annotations":{"remap/intent":"{}"}}}'
allowed "a spread constraint" merge "$(pod '"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"kubernetes.io/hostname","whenUnsatisfiable":"ScheduleAnyway","labelSelector":{"matchLabels":{"app":"shop"}}}]')"
allowed "taking it all back" merge '{"metadata":{"annotations":{"remap/intent":null}},"spec":{"template":{"spec":{"affinity":null,"topologySpreadConstraints":null}}}}'
run k --token "$token" create deployment mine --image=evil
is "making a workload is refused" "$status" 1
run k patch deployment shop --type merge --patch '{"spec":{"replicas":2}}'
is "others are not held to it" "$status" 0

# --- act everywhere, per replica ---
run k apply -k "$manifests/act-everywhere"
is "act-everywhere is accepted" "$status: $err" "0: "
grants "act-everywhere may patch anywhere" patch deployments.apps elsewhere
run k --namespace kube-system create deployment system --image=system
keeps_off()
{
    run k --token "$token" --namespace kube-system patch deployment system --type merge \
        --patch '{"metadata":{"annotations":{"remap/intent":"{}"}}}' --dry-run=server
    [[ $err == *"own namespaces"* ]]
}
wait_for "but not in the cluster's own namespaces" 30 keeps_off
run k delete -k "$manifests/act-everywhere"
is "it can be removed" "$status" 0
is "and is gone" "$(k get clusterrole,clusterrolebinding,validatingadmissionpolicy -o name | grep -c remap)" 0

run k apply -k "$manifests/replica"
is "replica is accepted" "$status: $err" "0: "
grants "replica may evict in its namespace" create pods:eviction default
is "and in no other" "$(may create pods:eviction kube-system)" no
for verb in create update patch delete; do
    for resource in pods deployments.apps replicasets.apps deployments.apps:scale; do
        answer=$(may "$verb" "$resource" default)
        [ "$answer" = no ] || is "replica may not $verb $resource" "$answer" no
    done
done
PATH=$(dirname "$kubectl"):$PATH run "$manifests/certificate"
is "the webhook gets a certificate" "$status: $err" "0: "
has "which is in the webhook" "$(k get mutatingwebhookconfiguration remap -o jsonpath='{.webhooks[0].clientConfig.caBundle}')" LS0t
k create namespace elsewhere >/dev/null
k label namespace default remap/replica=enabled >/dev/null
run k create deployment open --image=open --replicas=2
wait_for "pods are made although nobody answers the webhook" 60 sh -c \
    "'$kubectl' get deployment open -o jsonpath='{.status.replicas}' | grep -qx 2"

# --- the pod ---
run k --namespace remap get deployment remap -o json
is "one replica, one at a time" "$(k --namespace remap get deployment remap -o jsonpath='{.spec.replicas} {.spec.strategy.type}')" "1 Recreate"
for word in '"runAsNonRoot": true' '"readOnlyRootFilesystem": true' '"allowPrivilegeEscalation": false' \
    '"type": "RuntimeDefault"' livenessProbe readinessProbe startupProbe; do
    has "the pod" "$out" "$word"
done
finish
