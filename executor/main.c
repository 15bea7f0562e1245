/* main.c - remap-executor: applies plans one move at a time, validated before each, recorded before
 * and after (paper §5.6, §6.5). */
#include "executor/execute.h"
#include "executor/keep.h"
#include "executor/release.h"
#include "model/base/mem.h"

static const struct stage_handler handlers[] = {{MSG_EXECUTE, execute_handle},
                                                {MSG_RELEASE, release_handle}};

static const struct stage_program program = {
    .party = PARTY_EXECUTOR,
    .summary = "carries out a plan, move by move",
    .handlers = handlers,
    .n_handlers = ARRAY_LEN(handlers),
    .open = keep_open,
    .close = keep_close,
    .configure = keep_configure,
};

int main(int argc, char **argv)
{
    return stage_main(&program, argc, argv);
}
