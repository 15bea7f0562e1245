# --help on everything, --version, and that help tells the truth about itself.
. "$(dirname "$0")/lib.sh"

run remap --version
is "--version" "$status" 0
has "--version" "$out" "remap "
run remap --help
is "--help" "$status" 0
commands=$(sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' <<<"$out")
has "commands are listed" "$commands" "plan"

for command in $commands; do
    run remap "$command" --help
    is "$command --help" "$status" 0
    is "$command --help: stderr" "$err" ""
    has "$command --help: usage" "$out" "Usage: remap $command"
    has "$command --help: examples" "$out" "Examples:"
    has "$command --help: an example of itself" "${out##*Examples:}" "remap $command"
    # Every long option that an example uses is one of the listed.
    for option in $(sed -n '/^Examples:/,$p' <<<"$out" | grep -E "^  remap $command" |
        sed 's/|.*//' | grep -oE ' --[a-z-]+'); do
        has "$command: $option is known" "${out%%Examples:*}" "$option"
    done
    awk 'length($0) > 110 { long = 1 } END { exit long }' <<<"$out"
    is "$command --help fits a screen" "$?" 0
    run remap help "$command"
    is "help $command" "$status" 0
done

# What is promised for other versions is not listed before it exists.
for command in $commands; do
    run remap "$command" --no-such-option
    is "$command refuses unknown options" "$status" 2
done

for stage in monitor analyzer planner executor simulated; do
    run "remap-$stage" --help
    is "remap-$stage --help" "$status" 0
done

# Completion knows the commands.
complete_words()
{
    bash -c '. "$REMAP_SOURCE/etc/remap.bash-completion"
             COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
             _remap "$1"
             printf "%s\n" "${COMPREPLY[@]}"' _ "$@"
}
has "completion of commands" "$(complete_words remap pla)" "plan"
has "completion of options" "$(complete_words remap plan --mod)" "--model"

finish
