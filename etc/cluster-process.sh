# cluster-process.sh - sourced by etc/cluster: programs in the background, each known by its name.
#
# $dir/run/NAME.command holds its argument vector, $dir/run/NAME.pid its pid and when that began
# (field 22 of /proc/PID/stat): a pid that was given to somebody else since is never stopped.

process_began()
{
    local stat
    { stat=$(<"/proc/$1/stat"); } 2>/dev/null || return 1
    # shellcheck disable=SC2086
    set -- "$1" ${stat##*) }
    # A zombie whose threads still run holds its sockets; one that nobody waits for is no process.
    [ "$2" != Z ] || [ "$(ls "/proc/$1/task" 2>/dev/null | wc -l)" -gt 1 ] || return 1
    echo "${21}"
}

process_pid() { cut -d' ' -f1 "$dir/run/$1.pid"; }

process_runs()
{
    local pid began
    read -r pid began 2>/dev/null <"$dir/run/$1.pid" || return 1
    [ "$(process_began "$pid")" = "$began" ]
}

# process_start NAME COMMAND… : in a session of its own, so that Ctrl-C is ours alone.
process_start()
{
    local name=$1
    shift
    printf '%s\0' "$@" >"$dir/run/$name.command"
    process_start_again "$name"
}

process_start_again()
{
    local argv
    mapfile -d '' argv <"$dir/run/$1.command"
    ! process_runs "$1" || return 0
    setsid "${argv[@]}" </dev/null >>"$dir/log/$1.log" 2>&1 &
    echo "$! $(process_began $!)" >"$dir/run/$1.pid"
    disown $!
}

# process_start_child NAME COMMAND… : for a command that does its work in its one child, which is the
# process that we mean.
process_start_child()
{
    local pid children= until=$((SECONDS + 30))
    process_start "$@"
    pid=$(process_pid "$1")
    while :; do
        read -r children _ 2>/dev/null <"/proc/$pid/task/$pid/children" || true
        [ -z "$children" ] || break
        if ! process_runs "$1" || [ $SECONDS -ge $until ]; then
            tail -n 5 "$dir/log/$1.log" >&2
            fail "$1 did not start"
        fi
        sleep 0.02
    done
    echo "$children $(process_began "$children")" >"$dir/run/$1.pid"
}

# process_stop NAME SIGNAL : and waits for its end; after 10 s nobody is asked any more.
process_stop()
{
    local pid signal=$2 until=$((SECONDS + 10))
    process_runs "$1" || return 0
    pid=$(process_pid "$1")
    kill -s "$signal" "$pid" 2>/dev/null || true
    while process_runs "$1"; do
        if [ $SECONDS -ge $until ]; then
            kill -s KILL "$pid" 2>/dev/null || true
            until=$((SECONDS + 10))
        fi
        sleep 0.05
    done
}
