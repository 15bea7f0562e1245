# cmake --install: the tree, and that programs find each other in it.
. "$(dirname "$0")/lib.sh"

command -v cmake >/dev/null || skip "install: cmake is not installed"
ok "install" cmake --install "$REMAP_BUILD" --prefix "$dir/usr" >install.log
for file in bin/remap libexec/remap/remap-monitor libexec/remap/remap-analyzer \
            libexec/remap/remap-planner libexec/remap/remap-executor \
            libexec/remap/remap-simulated share/remap/scenarios/sock-shop.yaml \
            share/doc/remap/README.md share/doc/remap/LICENSE \
            share/doc/remap/examples/remap.yaml share/doc/remap/examples/remap-minimal.yaml \
            lib/systemd/system/remap.service share/bash-completion/completions/remap; do
    found=$(find "$dir/usr" "${DESTDIR:-/nonexistent}" -path "*/$file" 2>/dev/null | head -1)
    is "$file" "${found:+there}" there
done
ok "runs" "$dir/usr/bin/remap" --version >/dev/null
finish
