# The architecture, proved by what links what (design: one place for each foreign library).
. "$(dirname "$0")/lib.sh"

command -v readelf >/dev/null || skip "link sets: readelf is not installed"

# links PROGRAM LIBRARY: yes or no
links()
{
    readelf -d "$REMAP_BIN/$1" 2>/dev/null | grep -qE "NEEDED.*\[lib$2(3|3-gnutls|-gnutls)?[.-]" &&
        echo yes || echo no
}

# Library, then the programs that may (and do) link it.
while read -r library users; do
    for program in remap remap-monitor remap-analyzer remap-planner remap-executor \
                   remap-simulated; do
        [ -x "$REMAP_BIN/$program" ] || { fails "$program is not built"; continue; }
        case " $users " in
        *" $program "*) is "$program links $library" "$(links "$program" "$library")" yes ;;
        *" ?$program "*) ;; # may, need not
        *) is "$program links $library" "$(links "$program" "$library")" no ;;
        esac
    done
done <<END
sqlite remap
microhttpd remap remap-simulated remap-monitor remap-executor
crypto remap-monitor ?remap-executor
curl ?remap-monitor ?remap-executor
glpk ?remap-planner
cyaml remap remap-simulated ?remap-monitor ?remap-executor
yajl ?remap-monitor ?remap-executor
zmq remap remap-monitor remap-analyzer remap-planner remap-executor
END

# Headers: each foreign library is included in one folder only.
# only HEADER FOLDERS…
only()
{
    local header=$1 found
    shift
    found=$(cd "$REMAP_SOURCE" && grep -rlE "#include <$header" --include='*.[ch]' \
        model adapters monitor analyzer planner executor | grep -vE "^($(IFS='|'; echo "$*"))" || true)
    is "who includes <$header>" "$found" ""
}
only 'sqlite3\.h' model/store/
only 'zmq\.h' model/wire/
only 'glpk\.h' planner/
only 'curl/' adapters/
only 'microhttpd\.h' model/wire/listener adapters/simulated/server/
only 'gnutls/' model/wire/listener
only 'protobuf-c' adapters/otlp/
only 'openssl/' monitor/webhook/ monitor/secret adapters/kubernetes/
only '(cyaml/|yaml\.h)' model/base/yaml model/config adapters/simulated/server/
only 'yajl/' adapters/ monitor/ model/base/

# No stage includes another; analyzers and planners do no input or output of their own.
# never FOLDER PATTERN
never()
{
    local found
    found=$(cd "$REMAP_SOURCE" && grep -rnE "$2" --include='*.[ch]' "$1" || true)
    is "$1 holds no $2" "$found" ""
}
never monitor '#include "(analyzer|planner|executor|model/manager|model/store)/'
never analyzer '#include "(monitor|planner|executor|adapters|model/manager|model/store)/'
never planner '#include "(monitor|executor|adapters|model/manager|model/store)/'
never executor '#include "(monitor|analyzer|planner|model/manager|model/store)/'
never adapters '#include "model/(wire|store|manager)/'
never model '#include "(analyzer|planner|executor)/'

finish
