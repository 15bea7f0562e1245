# lib.sh - sourced by the e2e scenarios: a folder of its own, checks that count, processes that end.
#
#   run CMD…            runs it; $status, $out, $err (texts)
#   is WHAT GOT WANTED  equal?
#   has WHAT TEXT PART  does TEXT contain PART?
#   ok WHAT CMD…        does CMD succeed?
#   background CMD…     started now, ended at the end; its pid in $started
#   finish              the scenario's end: exit 0 when every check held

set -u
export LC_ALL=C TZ=UTC
export PATH="$REMAP_BIN:$PATH"
unset REMAP_CONFIG STATE_DIRECTORY RUNTIME_DIRECTORY REMAP_LOG_LEVEL REMAP_LOG_FORMAT
dir=$(mktemp -d /tmp/remap-e2e-XXXXXX)
checks=0 bad=0 started_pids=()

cleanup()
{
    local pid
    for pid in ${started_pids[@]+"${started_pids[@]}"}; do
        kill "$pid" 2>/dev/null
    done
    for pid in ${started_pids[@]+"${started_pids[@]}"}; do
        wait "$pid" 2>/dev/null
    done
    rm -rf "$dir"
}
trap cleanup EXIT
cd "$dir" || exit 1

skip()
{
    echo "SKIPPED $*"
    exit 0
}

run()
{
    "$@" >"$dir/.out" 2>"$dir/.err" </dev/null
    status=$?
    out=$(<"$dir/.out")
    err=$(<"$dir/.err")
}

background()
{
    "$@" &
    started=$!
    started_pids+=("$started")
}

# wait_for WHAT SECONDS CMD… : until CMD succeeds, looking every 50 ms. A quiet machine needs less than
# SECONDS; a busy one gets ten times as long
wait_for()
{
    local what=$1 until=$((SECONDS + 10 * $2))
    shift 2
    while ! "$@" >/dev/null 2>&1; do
        if [ $SECONDS -ge $until ]; then
            fails "$what: did not happen in time"
            return 1
        fi
        sleep 0.05
    done
}

fails()
{
    bad=$((bad + 1))
    echo "not ok: $*"
}

is()
{
    checks=$((checks + 1))
    [ "$2" = "$3" ] || fails "$1: got \"$2\", wanted \"$3\"; stderr: ${err:-}"
}

has()
{
    checks=$((checks + 1))
    case $2 in
    *"$3"*) ;;
    *) fails "$1: \"$3\" is not in: $2" ;;
    esac
}

ok()
{
    local what=$1
    shift
    checks=$((checks + 1))
    "$@" || fails "$what: $* says no (status $?)"
}

# sql DATABASE QUERY: one value
sql()
{
    sqlite3 -readonly "$1" "$2"
}

finish()
{
    echo "$checks checks, $bad failed"
    [ "$checks" -gt 0 ] && [ "$bad" -eq 0 ]
    exit
}
