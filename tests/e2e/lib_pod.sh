# lib_pod.sh - sourced after lib_kube.sh by scenarios with remap as a Pod on real nodes.
#
#   pod_cluster WHAT           the image of remap, and two real nodes that have it; skips where either
#                              cannot be made
#   web NAME REPLICAS          manifest of a Deployment that answers all the time, and its Service
#   kustomization OVERLAY      mine/: that overlay of etc/kubernetes, with mine/remap.yaml, a token for
#                              spans (secret) and a volume on node-1, $dir/volume
#   in_pod COMMAND…            run: `remap COMMAND…` in the pod
#   store QUERY                one value of its store
#   event TEXT                 does `remap events` tell it?

# $image: an archive that somebody has built before ($REMAP_IMAGE), or ours, built anew where a program
# of this build is newer; scenarios that run side by side build it once.
pod_image()
{
    image=${REMAP_IMAGE:-$REMAP_BUILD/image.tar} status=0
    [ -z "${REMAP_IMAGE:-}" ] || return 0
    exec {lock}>"$image.lock"
    flock "$lock"
    if [ ! -e "$image" ] || [ -n "$(find "$REMAP_BIN" "$REMAP_SOURCE"/etc/{Containerfile,image,image-root} \
        -newer "$image" -type f -print -quit)" ]; then
        run "$REMAP_SOURCE/etc/image" "$image"
    fi
    exec {lock}>&-
}

pod_cluster()
{
    command -v curl >/dev/null || skip "$1: curl is not installed"
    run "$REMAP_SOURCE/etc/cluster" check --no-build --nodes 2 --dir "$dir/cluster"
    [ "$status" -eq 0 ] || skip "$1: ${out%%$'\n'*}${err%%$'\n'*}"
    pod_image
    [ "$status" -ne 3 ] || skip "$1: ${err##*$'\n'}"
    is "etc/image" "$status" 0
    [ "$status" -eq 0 ] || finish
    cluster_up "$1" --nodes 2
    run cluster load "$image"
    is "the image is on the nodes" "$status: $err" "0: "
}

web()
{
    cat <<END
apiVersion: apps/v1
kind: Deployment
metadata: {name: $1, namespace: default}
spec:
  replicas: $2
  selector: {matchLabels: {app: $1}}
  template:
    metadata: {labels: {app: $1}}
    spec:
      automountServiceAccountToken: false
      dnsPolicy: None
      dnsConfig: {nameservers: [127.0.0.1]}
      terminationGracePeriodSeconds: 2
      containers:
        - name: web
          image: remap.local/busybox:1
          imagePullPolicy: Never
          command: [/bin/sh, -c, "mkdir /tmp/www; echo $1 >/tmp/www/index.html; trap 'sleep 1; exit' TERM; httpd -f -p 8080 -h /tmp/www & wait"]
          ports: [{containerPort: 8080}]
          readinessProbe: {httpGet: {path: /index.html, port: 8080}, periodSeconds: 1}
          resources: {requests: {cpu: 20m, memory: 16Mi}}
---
apiVersion: v1
kind: Service
metadata: {name: $1, namespace: default}
spec: {selector: {app: $1}, ports: [{port: 80, targetPort: 8080}]}
---
END
}

kustomization()
{
    mkdir -p mine volume
    chmod 777 volume
    echo secret >mine/otlp.token
    cp -r "$REMAP_SOURCE/etc/kubernetes" kubernetes
    cat >mine/kustomization.yaml <<END
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [../kubernetes/$1, volume.yaml]
images: [{name: remap, newName: docker.io/library/remap, newTag: $(remap --version | cut -d' ' -f2)}]
configMapGenerator:
  - {name: remap-config, namespace: remap, behavior: replace, files: [remap.yaml, otlp.token]}
patches:
  - patch: |
      apiVersion: v1
      kind: PersistentVolumeClaim
      metadata: {name: remap, namespace: remap}
      spec: {storageClassName: "", volumeName: remap}
END
    cat >mine/volume.yaml <<END
apiVersion: v1
kind: PersistentVolume
metadata: {name: remap}
spec:
  capacity: {storage: 2Gi}
  accessModes: [ReadWriteOncePod]
  local: {path: $dir/volume}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [node-1]}]}]}}
END
}

in_pod() { run k --namespace remap exec deploy/remap -- remap "$@"; }
store() { sql "$dir/volume/store/store.db" "$1"; }
event() { k --namespace remap exec deploy/remap -- remap events | grep -q "$1"; }
