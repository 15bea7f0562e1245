/* commands.c - the table of commands, in the order of `remap --help`. */
#include "model/manager/cli.h"

const struct cli_command *const cli_commands[] = {
    &cmd_run,
    &cmd_once,
    &cmd_check,
    &cmd_plan,
    &cmd_analyze,
    &cmd_import,
    &cmd_status,
    &cmd_history,
    &cmd_show,
    &cmd_events,
    &cmd_explain,
    &cmd_replay,
    &cmd_trigger,
    &cmd_apply,
    &cmd_undo,
    &cmd_pause,
    &cmd_resume,
    &cmd_release,
    &cmd_demo,
    NULL,
};
