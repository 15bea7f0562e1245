/* deploy_monitor.c - a monitor whose first act in every `collect` is to announce a deployment, as
 * the webhook of the real one does, and to wait until the manager has committed it. */
#include "model/wire/stage.h"

static void on_stored(void *ctx, int64_t row, bool duplicate)
{
    (void)duplicate;
    *(int64_t *)ctx = row;
}

static int collect(struct stage *stage, const struct stage_request *request, struct buf *result,
                   int *exit_code, struct err *err)
{
    static const char event[] =
        "{\"v\":1,\"app\":\"rig\",\"kind\":\"deploy\",\"text\":\"release 7\","
        "\"interval_ms\":1800000,\"delivery\":null}";
    int64_t row = 0;
    (void)request;
    (void)exit_code;
    stage_event(stage, event, sizeof event - 1, on_stored, &row);
    while (row == 0)
        if (stage_wait(stage, 10))
            return err_set(err, ERR_REFUSED, "stopped");
    buf_puts(result, "{\"v\":1,\"hosts\":[],\"services\":[],\"instances\":[],\"messages\":[]}");
    return 0;
}

static const struct stage_handler handlers[] = {{MSG_COLLECT, collect}};

static const struct stage_program program = {.party = PARTY_MONITOR,
                                             .summary = "announces deployments",
                                             .handlers = handlers,
                                             .n_handlers = 1};

int main(int argc, char **argv)
{
    return stage_main(&program, argc, argv);
}
