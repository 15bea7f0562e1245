# packages.sh - sourced by etc/demo and etc/test: the Debian packages that building takes, and how
# to get the missing ones. Does nothing at all where everything is there.

remap_packages="build-essential cmake ninja-build pkg-config
  libzmq3-dev libsqlite3-dev libjansson-dev libcurl4-openssl-dev libssl-dev libmicrohttpd-dev
  libgnutls28-dev libprotobuf-c-dev protobuf-c-compiler
  libsystemd-dev zlib1g-dev libyaml-dev libcyaml-dev libyajl-dev libglpk-dev libcmocka-dev sqlite3"

# What the fuzz preset takes besides.
remap_fuzz_packages="clang libclang-rt-14-dev"

# remap_install PACKAGE… : installs those that are missing, says which, asks nothing.
remap_install()
{
    local missing=() package sudo=
    for package in "$@"; do
        dpkg-query -W -f='${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed ||
            missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    if ! command -v apt-get >/dev/null; then
        echo "missing packages (Debian names): ${missing[*]}; install them and try again" >&2
        return 1
    fi
    if [ "$(id -u)" -ne 0 ]; then
        sudo=sudo
        if ! command -v sudo >/dev/null; then
            echo "missing packages: ${missing[*]}; run this as root, or install them" >&2
            return 1
        fi
    fi
    echo "installing Debian packages: ${missing[*]}" >&2
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 update >&2 &&
        $sudo env DEBIAN_FRONTEND=noninteractive \
            apt-get -qq -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "${missing[@]}" >/dev/null
}

# Servers that the contract tests start themselves (Zipkin's jar comes by Maven and runs in Java, the
# OpenTelemetry SDK lives in a venv), and what the image is built with; tests of those that are not
# there are skipped.
remap_servers="prometheus influxdb openssl openjdk-17-jre-headless maven python3-venv
  buildah debootstrap"

# What etc/cluster starts besides Kubernetes itself (etc/test-servers), and what its real nodes take.
remap_cluster_servers="etcd-server curl openssl"
remap_node_servers="containerd runc containernetworking-plugins busybox-static iproute2 iptables
  nftables kmod"

# remap_install_servers PACKAGE… : the same for servers, none of which is started or will be at boot.
remap_install_servers()
{
    local missing=() package sudo= policy=/usr/sbin/policy-rc.d made=no rc
    for package in "$@"; do
        dpkg-query -W -f='${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed ||
            missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    [ "$(id -u)" -eq 0 ] || sudo=sudo
    if [ ! -e $policy ]; then
        printf '#!/bin/sh\nexit 101\n' | $sudo tee $policy >/dev/null &&
            $sudo chmod 755 $policy && made=yes || return 1
    fi
    remap_install "${missing[@]}"
    rc=$?
    [ $made = no ] || $sudo rm -f $policy
    if [ $rc -eq 0 ] && command -v systemctl >/dev/null; then
        for package in "${missing[@]}"; do
            $sudo systemctl disable "${package%-server}" >/dev/null 2>&1 # openssl has none
        done
    fi
    return $rc
}

# remap_build PRESET [TARGET…] : configures and builds; the log is shown only when it fails.
remap_build()
{
    local preset=$1 log=build/$1.log
    shift
    mkdir -p build
    if [ ! -f "build/$preset/CMakeCache.txt" ]; then
        cmake --preset "$preset" -G Ninja >"$log" 2>&1 || { cat "$log" >&2; return 1; }
    fi
    cmake --build "build/$preset" --parallel ${1:+--target "$@"} >"$log" 2>&1 ||
        { tail -n 60 "$log" >&2; return 1; }
}
