# Real nodes leave nothing behind: after `down`, after Ctrl-C, after a failure, after the death of
# whoever held them.
. "$(dirname "$0")/../e2e/lib.sh"
cluster=$REMAP_SOURCE/etc/cluster

why=$("$cluster" check --nodes 2) || skip "real nodes: ${why%%$'\n'*}"

# However this ends, also in the midst.
end()
{
    local at
    for at in "$dir"/[a-d]; do
        "$cluster" down --dir "$at" 2>/dev/null
    done
    cleanup
}
trap end EXIT
slot=none members= spaces=none

# What real nodes change on a host where they are not kept from it.
host_state()
{
    ls -d /run/netns /run/containerd /run/cni /run/runc /run/flannel /var/lib/kubelet /var/lib/cni \
        /var/lib/kube-proxy /var/log/pods /var/log/containers /opt/containerd /opt/cni /etc/cni/net.d \
        /etc/kubernetes 2>/dev/null
    (cd /proc/sys && grep -H . vm/overcommit_memory vm/panic_on_oom kernel/panic \
        kernel/panic_on_oops kernel/keys/root_maxkeys net/ipv4/ip_forward)
    nft list ruleset
}

# What there is of the cluster in $1, found without its help. After it has gone, $slot, $members (pid
# and start) and $spaces (identities of namespaces) still say what to look for.
remains()
{
    local pid began argv
    [ ! -e "$1" ] || echo "folder $1"
    ip link show "$slot" >/dev/null 2>&1 && echo "link $slot"
    ip -4 route | grep -w "dev $slot"
    find /sys/fs/cgroup -type d -name "$slot-*"
    grep -F "$1" /proc/self/mountinfo
    for pid in /proc/[0-9]*; do
        mapfile -d '' argv 2>/dev/null <"$pid/cmdline" && [[ ${argv[*]} == *"$1"* ]] && echo "$pid"
    done
    while read -r pid began; do # a zombie is its parent's, and that is not us
        [ "$(awk '$3 != "Z" {print $22}' "/proc/$pid/stat" 2>/dev/null)" = "${began:-none}" ] &&
            echo "process $pid"
    done <<<"$members"
    readlink /proc/[0-9]*/ns/* 2>/dev/null | grep -xF "$spaces"
    grep -F nsfs /proc/self/mountinfo | grep -F "$spaces"
}

# Every process in the cgroups of the nodes, and every namespace they have to themselves.
look()
{
    local pid
    . "$1/cluster"
    members=$(for pid in $(cat $(find /sys/fs/cgroup -path "*/$slot-*" -name cgroup.procs) | sort -u); do
        echo "$pid $(cut -d' ' -f22 "/proc/$pid/stat")"
    done 2>/dev/null)
    spaces=$(for pid in $(cut -d' ' -f1 <<<"$members"); do
        readlink "/proc/$pid"/ns/*
    done 2>/dev/null | sort -u | grep -vxF "$(readlink /proc/self/ns/*)")
}

gone() { [ -z "$(remains "$1")" ]; }

host_state >before

# down, with containers that run, one of which has children of its own and ignores SIGTERM.
run "$cluster" up --no-build --nodes 2 --dir "$dir/a"
is "up" "$status" 0
has "it says what it makes" "$err" "cgroups"
export KUBECONFIG=$dir/a/kubeconfig
kubectl=$(<"$dir/a/kubectl")
"$kubectl" create -f - >/dev/null <<'END'
apiVersion: apps/v1
kind: Deployment
metadata: {name: stubborn}
spec:
  replicas: 4
  selector: {matchLabels: {app: stubborn}}
  template:
    metadata: {labels: {app: stubborn}}
    spec:
      containers:
      - name: sh
        image: remap.local/busybox:1
        imagePullPolicy: Never
        command: [/bin/sh, -c, "trap '' TERM; setsid sleep 100000 & while :; do sleep 1; done"]
        volumeMounts: [{name: scratch, mountPath: /scratch}]
      volumes: [{name: scratch, emptyDir: {medium: Memory}}]
END
ok "pods run" "$kubectl" rollout status deployment/stubborn --timeout=300s >/dev/null
look "$dir/a"
ok "their processes are found" test "$(wc -l <<<"$members")" -gt 15
ok "their namespaces are found" test "$(wc -l <<<"$spaces")" -gt 15
ok "and much else" test "$(remains "$dir/a" | wc -l)" -gt 50
run "$cluster" down --dir "$dir/a"
is "down" "$status" 0
is "nothing is left after down" "$(remains "$dir/a")" ""
is "the host is as it was" "$(host_state | diff before -)" ""
run "$cluster" down --dir "$dir/a"
is "down again" "$status" 0

# Ctrl-C while it starts: wherever it is just then.
for moment in run/etcd.pid run/node-1.pid run/kubelet-2.pid; do
    env --default-signal=INT setsid "$cluster" up --no-build --nodes 2 --dir "$dir/b" >up.out 2>&1 &
    up=$!
    started_pids+=($up)
    wait_for "$moment" 60 test -s "$dir/b/$moment"
    look "$dir/b"
    kill -INT -- -$up # as a terminal does: to all of its process group
    wait $up
    is "interrupted at $moment" "$?" 130
    is "nothing is left of it" "$(remains "$dir/b")" ""
done

# A program that does not start.
run "$cluster" up --no-build --nodes 1 --dir "$dir/c" --flag kubelet=--no-such-flag
is "no kubelet" "$status" 1
has "it says so" "$err" "no-such-flag"
slot=$(sed -n 's/^# makes: link \([a-z0-9]*\).*/\1/p' <<<"$err")
is "nothing is left of it" "$(remains "$dir/c")" ""

# Whoever holds it is killed: its standard input ends.
mkfifo hold
sleep 100000 >hold &
holder=$!
started_pids+=($holder)
setsid --fork "$cluster" up --no-build --hold --nodes 1 --dir "$dir/d" <hold >held.out 2>&1
wait_for "held" 60 grep -q KUBECONFIG held.out
look "$dir/d"
kill -KILL $holder
wait $holder 2>/dev/null
wait_for "nothing is left when its holder is killed" 30 gone "$dir/d"

is "the host is as it was, after all" "$(host_state | diff before -)" ""
finish
