# The image: built by etc/image from etc/Containerfile, without a registry. What is in it runs as the
# image's user, on a read-only root, and there is nothing else in it.
. "$(dirname "$0")/lib.sh"

run "$REMAP_SOURCE/etc/image" "$dir/remap.tar"
[ "$status" -ne 3 ] || skip "image: ${err##*$'\n'}"
is "etc/image" "$status" 0
[ "$status" -eq 0 ] || finish

mkdir image root
tar -xf remap.tar -C image
config=$(sed 's/.*"Config":"\([^"]*\)".*/\1/' image/manifest.json)
layers=$(sed 's/.*"Layers":\[\([^]]*\)\].*/\1/' image/manifest.json | tr -d '"' | tr ',' ' ')
for layer in $layers; do
    tar -xf "image/$layer" -C root
done
has "its name" "$(<image/manifest.json)" "remap:$(remap --version | cut -d' ' -f2)"
has "it runs as an account of its own" "$(<"image/$config")" '"User":"9470:9470"'
has "it runs remap" "$(<"image/$config")" '"Entrypoint":["/usr/bin/remap"]'
ok "it is small: $(du -sm root | cut -f1) MiB" [ "$(du -sm root | cut -f1)" -lt 64 ]
is "no shell" "$(find root -name '*sh' -path '*bin/*')" ""
is "nothing runs as somebody else" "$(find root -perm /6000)" ""
is "no device, no socket" "$(find root -type b -o -type c -o -type s -o -type p)" ""

# inside CMD…: in the image, as its user; everything but /tmp is read-only.
mkdir -p root/proc root/dev
inside()
{
    unshare --mount --propagation private bash -c '
        mount --bind root root && mount -t proc proc root/proc && mount -t tmpfs tmpfs root/tmp &&
        mount -t tmpfs dev root/dev && mknod -m 666 root/dev/null c 1 3 &&
        mount -o remount,bind,ro root && exec chroot --userspec=9470:9470 root "$@"' inside "$@"
}
run inside /usr/bin/remap --version
is "it starts" "$status: $out" "0: $(remap --version)"
for stage in monitor analyzer planner executor simulated; do
    run inside "/usr/libexec/remap/remap-$stage" --version
    is "remap-$stage finds its libraries" "$status" 0
done
run inside /usr/bin/remap demo --scenario mock-star
is "the whole loop" "$status" 0
finish
