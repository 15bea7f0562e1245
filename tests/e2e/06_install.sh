# cmake --install: the tree, and that programs find each other in it.
. "$(dirname "$0")/lib.sh"

command -v cmake >/dev/null || skip "install: cmake is not installed"
export DESTDIR=$dir
ok "install" cmake --install "$REMAP_BUILD" --prefix /usr >install.log
for file in bin/remap libexec/remap/remap-monitor libexec/remap/remap-analyzer \
            libexec/remap/remap-planner libexec/remap/remap-executor \
            libexec/remap/remap-simulated share/remap/scenarios/sock-shop.yaml \
            share/doc/remap/README.md share/doc/remap/LICENSE \
            share/doc/remap/examples/remap.yaml share/doc/remap/examples/remap-minimal.yaml \
            lib/systemd/system/remap.service share/bash-completion/completions/remap; do
    ok "$file is installed" test -f "usr/$file"
done
unset DESTDIR

# Nothing but these: no headers, no libraries, no tests.
is "other things" "$(cd usr && find . -type f | grep -vE '^./(bin/remap$|libexec/remap/remap-[a-z]+$|share/(remap/scenarios|doc/remap|bash-completion)/|lib/systemd/)')" ""

# The moved tree works: stages and scenarios are found from where remap is.
export PATH="$dir/usr/bin:/usr/bin:/bin"
run remap --version
is "runs" "$status" 0
cat >model.json <<'END'
{"v":1,"hosts":[{"name":"h","cpu_cap_millis":1,"mem_cap_bytes":1}],"services":[{"name":"s"}],
 "instances":[{"name":"i","service":"s","host":"h","cpu_used_millis":1,"mem_used_bytes":1}],"messages":[]}
END
run remap plan --model model.json
is "plans with installed stages" "$status" 0
run remap demo --scenario nonsense
has "scenarios are found" "$err" "sock-shop"
if command -v systemd-analyze >/dev/null; then
    sed "s#^ExecStart=[^ ]*#ExecStart=$dir/usr/bin/remap#" usr/lib/systemd/system/remap.service >remap.service
    run systemd-analyze verify "$dir/remap.service"
    is "the unit is valid" "$status: $err" "0: "
fi
finish
