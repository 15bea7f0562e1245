# lib_collect.sh - sourced by the benches of collecting from a real server: a folder of its own, free
# ports, the embedded cluster whose names are joined, a proxy that writes down what the monitor asks, and
# the clock. Wants $bin, and $name for messages.

work=$(mktemp -d "${TMPDIR:-/tmp}/remap-bench.XXXXXX")
started=()
trap 'kill "${started[@]}" 2>/dev/null; wait 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

fail() { echo "$name: $1" >&2; exit 1; }

needs() # PROGRAM…
{
    local program
    for program in "$@"; do
        command -v "$program" >/dev/null || fail "$program is not installed"
    done
}

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# up URL WHAT LOG: until it answers, two minutes at most.
up()
{
    for _ in $(seq 600); do
        curl -sf "$1" >/dev/null && return
        sleep 0.2
    done
    fail "$2 does not come up: $(tail -n 3 "$3")"
}

# cluster: that of $work/scenario.yaml, served at $work/s.
cluster()
{
    "$bin/remap-simulated" --scenario "$work/scenario.yaml" --socket "$work/s" --journal "$work/j" 2>"$work/sim.log" &
    started+=($!)
    for _ in $(seq 100); do [ -S "$work/s" ] && break; sleep 0.05; done
}

# recorder PORT URL FILE: a server at PORT that passes requests on to URL, and writes the URL of each and
# the body of a POST to FILE, a line each.
recorder()
{
    python3 - "$@" <<'END' &
import http.server, sys, urllib.request
port, url, asked = int(sys.argv[1]), sys.argv[2], open(sys.argv[3], "a")
class Proxy(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        size = int(self.headers["Content-Length"] or 0)
        question = self.rfile.read(size) if size else None
        body = urllib.request.urlopen(urllib.request.Request(url + self.path, question)).read()
        print(url + self.path, *([question.decode()] if size else []), file=asked, flush=True)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    do_POST = do_GET
    def log_message(self, *args):
        pass
http.server.HTTPServer(("127.0.0.1", port), Proxy).serve_forever()
END
    started+=($!)
    for _ in $(seq 100); do curl -s "http://127.0.0.1:$1/" >/dev/null && break; sleep 0.05; done
    : >"$3"
}

# collect REQUEST: the monitor's filter; the model goes to $work/model.
collect() { "$bin/remap-monitor" --filter collect <"$1" >"$work/model" 2>"$work/log"; }

# timed COMMAND: wall and CPU milliseconds of it and its children to $work/ms.
timed() { local TIMEFORMAT='%R %U %S'; { time "$@" 2>"$work/err"; } 2>"$work/time" && awk '{ printf "%d %d\n", $1 * 1000, ($2 + $3) * 1000 }' "$work/time" >"$work/ms"; }
