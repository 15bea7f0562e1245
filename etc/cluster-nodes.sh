# cluster-nodes.sh - sourced by etc/cluster: real nodes, each a network, mount and process namespace
# of its own with containerd, kubelet and kube-proxy in it. The node is its first process: when that
# ends, the kernel takes everything of it, mounts and links too, and all that is left to remove are
# one link, the cgroups and a folder.
#
#   host      link $slot (remap0, remap1, …)   10.B.0.1    API server, metrics-server
#   switch    a network namespace with a bridge that joins the host and the nodes
#   node-N    eth0                             10.B.0.1N   pods 10.B.N.0/24, routed
#
# B = 200 + the slot's number. Services have 10.B.128.0/20.

slots=50 # as many clusters side by side as there are networks from 10.200 to 10.249

nodes_missing()
{
    local name
    [ "$(id -u)" -eq 0 ] || { echo "real nodes need root"; return; }
    for name in ip nft unshare nsenter busybox tar; do
        command -v $name >/dev/null || echo "$name is not installed"
    done
    cni_folder >/dev/null || echo "no CNI plugins (Debian's containernetworking-plugins)"
    unshare --net --mount --pid --ipc --uts --fork true 2>/dev/null ||
        echo "no namespaces can be made here"
}

cni_folder()
{
    local folder
    for folder in /usr/lib/cni /opt/cni/bin; do
        [ -x $folder/ptp ] && [ -x $folder/host-local ] && { echo $folder; return; }
    done
    return 1
}

node_address() { echo "$network.0.$((10 + $1))"; }
node_pid() { process_pid "node-$1"; }
# in_node N COMMAND…
in_node() { nsenter -t "$(node_pid "$1")" --net --mount --pid --uts --ipc --cgroup "${@:2}"; }
in_switch() { nsenter -t "$(process_pid switch)" --net "$@"; }

# Takes the first slot whose link and network are free; a link's name is given only once.
nodes_claim()
{
    local i
    for ((i = 0; i < slots; i++)); do
        slot=remap$i network=10.$((200 + i))
        [ -z "$(ip -4 route show root $network.0.0/16)" ] || continue
        [ -z "$(ip -4 route show match $network.0.0/16 | grep -v ^default)" ] || continue
        ip link add $slot type veth peer name ${slot}p 2>/dev/null && break
    done
    [ $i -lt $slots ] || fail "no network from 10.200.0.0/16 to 10.$((199 + slots)).0.0/16 is free"
    api_address=$network.0.1 services=$network.128.0/20
    ip addr add $api_address/24 dev $slot
    ip link set $slot up
    echo "# makes: link $slot ($network.0.0/16), $((nodes + 1)) network namespaces, cgroups /$slot-*;" \
        "\`down\` removes them" >&2
}

# --- a node ----------------------------------------------------------------------------------------

# The first process of a node: node_init CGROUP FOLDER KEPT-FOLDER…
# Joins the node's cgroups, which become the root of all that it sees, and goes on in node_inside.
node_init()
{
    local at cgroup=$1
    shift
    for at in $(cgroup_hierarchies); do
        echo 0 >"$at/$cgroup/cgroup.procs"
    done
    exec unshare --cgroup bash -ec "$(declare -f node_inside); node_inside \"\$@\"" "$cgroup" "$@"
}

# node_inside FOLDER KEPT-FOLDER…
# Hides what kubelet and containerd would share with the host, so that nothing of theirs stays there;
# the folders to keep are seen as before, also where they are below a hidden one.
node_inside()
{
    local folder=$1 at fd kind options setting fds=()
    for at in "$@"; do
        exec {fd}<"$at"
        fds+=("$fd")
    done
    while read -r _ at kind options _ <&3; do
        case $kind in
        cgroup)
            options=$(tr , '\n' <<<"$options" | grep -vxE 'rw|ro|relatime|nosuid|nodev|noexec' | paste -sd ,)
            umount "$at"
            mount -t cgroup -o "none,$options" cgroup "$at" 2>/dev/null ||
                mount -t cgroup -o "$options" cgroup "$at"
            ;;
        cgroup2)
            umount "$at"
            mount -t cgroup2 cgroup2 "$at"
            # A group with controllers for its children has no processes of its own.
            mkdir -p "$at/init"
            echo 0 >"$at/init/cgroup.procs"
            for setting in $(<"$at/cgroup.controllers"); do
                echo "+$setting" >"$at/cgroup.subtree_control"
            done
            ;;
        esac
    done 3< <(grep ' cgroup2\? ' /proc/mounts)
    mount -t proc proc /proc
    mount -t tmpfs -o mode=755 run /run
    mount -t tmpfs -o mode=755 lib /var/lib
    for at in "$@"; do
        if [ ! -d "$at" ]; then
            mkdir -p "$at"
            mount --no-canonicalize --bind "/proc/self/fd/${fds[0]}" "$at"
        fi
        exec {fds[0]}<&-
        fds=("${fds[@]:1}")
    done
    mkdir -p "$folder/log"
    mount --bind "$folder/log" /var/log
    # kubelet wants these values and would write them for the whole machine.
    for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
        kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
        at=${setting%%=*}
        [ -e "/proc/sys/$at" ] || continue
        echo "${setting#*=}" >"/run/${at//\//-}"
        mount --bind "/run/${at//\//-}" "/proc/sys/$at"
    done
    echo 1 >/proc/sys/net/ipv4/ip_forward
    touch "$folder/ready"
    while :; do # and reaps whatever lost its parent
        sleep 3600 &
        wait $!
    done
}

# node_program NAME N COMMAND… : starts it inside node N, and in its cgroups.
node_program()
{
    local name=$1-$2 node=$2 at groups=()
    shift 2
    for at in $(cgroup_hierarchies); do
        at=$at/$slot-$node
        [ ! -d "$at/init" ] || at=$at/init
        groups+=("$at/cgroup.procs")
    done
    # Builtins alone before nsenter: its child is the only one.
    process_start_child "$name" bash -ec \
        'for ((n = $1; n > 0; n--)); do shift; echo 0 >"$1"; done; shift; exec nsenter "$@"' \
        "$name" ${#groups[@]} "${groups[@]}" -t "$(node_pid "$node")" \
        --net --mount --pid --uts --ipc --cgroup "$@"
}

node_configure()
{
    local node=$1 folder=$dir/node-$1 millis mebis all_millis all_mebis
    mkdir -p "$folder/cni" "$folder/containerd" "$folder/kubelet"
    cat >"$folder/containerd.toml" <<END
version = 2
root = "$folder/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.devmapper"]
[grpc]
  address = "/run/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "$folder/containerd/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "remap.local/pause:1"
  disable_hugetlb_controller = true
  disable_apparmor = true
  restrict_oom_score_adj = true
  stream_server_address = "127.0.0.1"
[plugins."io.containerd.grpc.v1.cri".containerd]
  snapshotter = "$(node_snapshotter "$folder")"
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "$(cni_folder)"
  conf_dir = "$folder/cni"
END
    cat >"$folder/cni/10-remap.conflist" <<END
{"cniVersion": "0.4.0", "name": "remap", "plugins": [{"type": "ptp", "mtu": 1500, "ipam": {
  "type": "host-local", "dataDir": "/run/cni",
  "ranges": [[{"subnet": "$network.$node.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
END
    # Every kubelet sees the whole machine; what is not this node's is said to be the system's.
    case ${cpu:-1} in *m) millis=${cpu%m} ;; *) millis=$((${cpu:-1} * 1000)) ;; esac
    mebis=${memory:-2Gi}
    case $mebis in *Mi) mebis=${mebis%Mi} ;; *) mebis=$((1024 * ${mebis%Gi})) ;; esac
    all_millis=$(($(nproc) * 1000))
    all_mebis=$(awk '/^MemTotal/ {print int($2 / 1024)}' /proc/meminfo)
    cat >"$folder/kubelet.yaml" <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $(node_address "$node")
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $dir/tls/ca.crt}}
authorization: {mode: Webhook}
tlsCertFile: $dir/tls/node-$node.crt
tlsPrivateKeyFile: $dir/tls/node-$node.key
containerRuntimeEndpoint: unix:///run/containerd.sock
cgroupDriver: cgroupfs
cgroupRoot: /
cgroupsPerQOS: true
enforceNodeAllocatable: []
failSwapOn: false
failCgroupV1: false
localStorageCapacityIsolation: false
resolvConf: ""
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
evictionHard: {memory.available: 50Mi, nodefs.available: 1%, imagefs.available: 1%, nodefs.inodesFree: 1%}
maxPods: $pods
systemReserved: {cpu: $(reserve "$all_millis" "$millis")m, memory: $(reserve "$all_mebis" $((mebis + 50)))Mi}
registerNode: true
END
}

# reserve ALL WANTED : what is to be left out of it.
reserve() { echo $(($1 > $2 ? $1 - $2 : 0)); }

# overlayfs does not stack on every file system (on itself, as in a container, it does not).
node_snapshotter()
{
    local at=$1/probe kind=native
    mkdir -p "$at/lower" "$at/upper" "$at/work" "$at/all"
    if unshare --mount mount -t overlay overlay \
        -o "lowerdir=$at/lower,upperdir=$at/upper,workdir=$at/work" "$at/all" 2>/dev/null; then
        kind=overlayfs
    fi
    rm -rf "$at"
    echo $kind
}

# One folder for each controller on cgroup v1, one for all on v2, both kinds where they are mixed.
cgroup_hierarchies() { awk '$3 == "cgroup" || $3 == "cgroup2" {print $2}' /proc/mounts; }

node_make_cgroups()
{
    local at name
    for at in $(cgroup_hierarchies); do
        if [ -e "$at/cgroup.subtree_control" ]; then
            for name in cpu cpuset memory pids io; do
                echo +$name >"$at/cgroup.subtree_control" 2>/dev/null || true
            done
        fi
        mkdir -p "$at/$slot-$1"
        for name in cpuset.cpus cpuset.mems; do # empty on v1, and then nothing may run there
            [ ! -e "$at/$slot-$1/$name" ] || [ ! -e "$at/tasks" ] ||
                cat "$at/$name" >"$at/$slot-$1/$name"
        done
    done
}

node_remove_cgroups()
{
    local at until=$((SECONDS + 10))
    for at in $(cgroup_hierarchies); do
        while [ -d "$at/$slot-$1" ]; do
            find "$at/$slot-$1" -depth -type d -exec rmdir {} + 2>/dev/null || true
            [ -d "$at/$slot-$1" ] || break
            [ $SECONDS -lt $until ] || { echo "etc/cluster: $at/$slot-$1 stays" >&2; break; }
            sleep 0.05
        done
    done
}

# node_network N PID : joins the namespace of that process to the switch.
node_network()
{
    local i inside=(nsenter -t "$2" --net ip)
    in_switch ip link add "up$1" type veth peer name eth0 netns "$2"
    in_switch ip link set "up$1" master br0 up
    "${inside[@]}" link set lo up
    "${inside[@]}" addr add "$(node_address "$1")/24" dev eth0
    "${inside[@]}" link set eth0 up
    "${inside[@]}" route add default via "$api_address"
    for ((i = 1; i <= nodes; i++)); do
        [ "$i" -eq "$1" ] ||
            "${inside[@]}" route add "$network.$i.0/24" via "$(node_address "$i")"
    done
}

# node_start N : its namespaces, its network, its programs.
node_start()
{
    local node=$1 folder=$dir/node-$1
    mkdir -p "$folder"
    rm -f "$folder/ready"
    node_make_cgroups "$node"
    process_start_child "node-$node" unshare --net --mount --pid --uts --ipc --fork \
        --kill-child=KILL bash -ec \
        "$(declare -f cgroup_hierarchies node_init node_inside); node_init \"\$@\"" "$slot-$node" \
        "$slot-$node" "$folder" "$dir" "$(dirname "$(program kubelet)")"
    node_network "$node" "$(node_pid "$node")"
    wait_until "node $node had its namespaces" 30 "node-$node" test -e "$folder/ready"
    node_configure "$node"
    node_start_programs "$node"
}

node_start_programs()
{
    local node=$1 folder=$dir/node-$1
    node_program containerd "$node" "$(program containerd)" -c "$folder/containerd.toml" --log-level warn
    wait_until "containerd of node $node answered" 60 "containerd-$node" \
        in_node "$node" ctr -a /run/containerd.sock version
    [ -e "$folder/loaded" ] || node_load "$node" "$dir"/images/*.tar
    touch "$folder/loaded"
    # --containerd is deprecated and yet what makes cAdvisor name the containers in /metrics/cadvisor.
    node_program kubelet "$node" "$(program kubelet)" --config="$folder/kubelet.yaml" \
        --kubeconfig="$dir/users/system:node:node-$node" --root-dir="$folder/kubelet" \
        --cert-dir="$folder/kubelet/pki" --hostname-override="node-$node" \
        --node-ip="$(node_address "$node")" --containerd=/run/containerd.sock \
        --node-labels="topology.kubernetes.io/region=local,topology.kubernetes.io/zone=$(zone_of "$node")" \
        $(flags_of kubelet)
    node_program kube-proxy "$node" "$(program kube-proxy)" --proxy-mode=nftables \
        --kubeconfig="$dir/users/kube-proxy-$node" --hostname-override="node-$node" \
        --cluster-cidr="$network.0.0/17" --conntrack-max-per-core=0 --conntrack-min=0 \
        $(flags_of kube-proxy)
}

# node_load N ARCHIVE… : puts images into its containerd.
node_load()
{
    local archive
    for archive in "${@:2}"; do
        in_node "$1" ctr -a /run/containerd.sock -n k8s.io images import "$archive" >/dev/null
    done
}

nodes_ready() { [ "$(kubectl get nodes -l type!=kwok --no-headers | grep -c ' Ready ')" -eq "$nodes" ]; }

nodes_start()
{
    local i
    image_pack remap.local/busybox:1 '["/bin/sh"]' busybox
    image_pack remap.local/pause:1 '["/bin/sleep", "2147483647"]' busybox
    process_start switch unshare --net sleep infinity
    until in_switch ip link show lo 2>/dev/null | grep -q lo: &&
        [ "$(readlink /proc/self/ns/net)" != "$(readlink "/proc/$(process_pid switch)/ns/net")" ]; do
        process_runs switch || fail "no network namespace could be made"
        sleep 0.02
    done
    ip link set "${slot}p" netns "$(process_pid switch)"
    in_switch ip link add br0 type bridge
    in_switch ip link set "${slot}p" master br0 up
    in_switch ip link set br0 up
    for ((i = 1; i <= nodes; i++)); do
        ip route add "$network.$i.0/24" via "$(node_address $i)" dev "$slot"
    done
    for ((i = 1; i <= nodes; i++)); do
        node_start $i
    done
    wait_until "the nodes were ready" 120 kubelet-1 nodes_ready
}

# Everything of a node ends with its first process.
node_stop()
{
    local name
    process_stop "node-$1" KILL
    for name in containerd kubelet kube-proxy; do
        process_stop "$name-$1" KILL
    done
    node_remove_cgroups "$1"
}

nodes_stop()
{
    local i
    for ((i = 1; i <= nodes; i++)); do
        node_stop $i
    done
    process_stop switch KILL
}

nodes_remove() { ip link del "$slot" 2>/dev/null || true; }

# --- images ----------------------------------------------------------------------------------------

# image_pack IMAGE COMMAND PROGRAM… : an archive as `docker save` writes it, of programs and the
# libraries they load, or of a folder, in $dir/images. COMMAND is what it runs, a JSON array.
image_pack()
{
    local image=$1 command=$2 at=$dir/images/.pack root name program file sum
    root=$at/root
    shift 2
    mkdir -p "$root/bin" "$root/tmp" "$root/etc"
    chmod 1777 "$root/tmp"
    [ -d "$1" ] || echo 'nobody:x:65534:65534::/:/bin/false' >"$root/etc/passwd"
    for program in "$@"; do
        if [ -d "$program" ]; then
            cp -a "$program/." "$root/"
            continue
        fi
        name=${program##*/} program=$(command -v "$program") || fail "no program $name for $image"
        cp -L "$program" "$root/bin/$name"
        for file in $(ldd "$program" 2>/dev/null | grep -oE '/[^ ]+'); do
            mkdir -p "$root${file%/*}"
            cp -L "$file" "$root$file"
        done
    done
    if [ -e "$root/bin/busybox" ]; then
        for name in $("$root/bin/busybox" --list); do
            [ -e "$root/bin/$name" ] || ln -s busybox "$root/bin/$name"
        done
    fi
    tar -C "$root" --sort=name --owner=0 --group=0 --numeric-owner -cf "$at/layer.tar" .
    sum=$(sha256sum "$at/layer.tar")
    cat >"$at/config.json" <<END
{"architecture": "$(image_architecture)", "os": "linux",
 "config": {"Entrypoint": $command, "Env": ["PATH=/bin"]},
 "rootfs": {"type": "layers", "diff_ids": ["sha256:${sum%% *}"]}}
END
    echo "[{\"Config\": \"config.json\", \"RepoTags\": [\"$image\"], \"Layers\": [\"layer.tar\"]}]" \
        >"$at/manifest.json"
    name=${image//[\/:]/-}
    tar -C "$at" -cf "$dir/images/$name.tar" config.json manifest.json layer.tar
    rm -rf "$at"
}

# image_load IMAGE-OR-ARCHIVE… : onto every node, also those that start later.
image_load()
{
    local i
    for ((i = 1; i <= nodes; i++)); do
        if process_runs "containerd-$i"; then
            node_load $i "$@"
        else
            rm -f "$dir/node-$i/loaded"
        fi
    done
}

image_architecture()
{
    case $(uname -m) in
    x86_64) echo amd64 ;;
    aarch64) echo arm64 ;;
    *) uname -m ;;
    esac
}
