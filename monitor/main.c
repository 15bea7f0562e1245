/* main.c - remap-monitor, the M of MAPE-K (paper §5.3, §6.1): answers `collect` on the bus, listens
 * for webhooks and for spans beside it, and answers `check` and `import` as a filter. */
#include "adapters/http/http.h"
#include "model/model_json.h"
#include "model/wire/stage.h"
#include "monitor/import.h"
#include "monitor/inspection.h"
#include "monitor/receiver/receiver.h"
#include "monitor/sessions.h"
#include "monitor/webhook/webhook.h"

#include <stdlib.h>

struct monitor {
    void *webhooks;
    struct receivers *receivers;
    struct sessions *sessions;
};

static int monitor_open(struct stage *stage, void **state, struct err *err)
{
    struct monitor *monitor = mem_alloc(sizeof *monitor);
    if (webhook_open(stage, &monitor->webhooks, err)) {
        free(monitor);
        return -1;
    }
    monitor->receivers = receivers_new(stage);
    monitor->sessions = sessions_new(stage);
    *state = monitor;
    return 0;
}

static void monitor_configure(void *state, const char *body, size_t size)
{
    struct monitor *monitor = state;
    webhook_configure(monitor->webhooks, body, size);
    receivers_configure(monitor->receivers, body, size);
}

static void monitor_close(void *state)
{
    struct monitor *monitor = state;
    if (!monitor)
        return;
    sessions_free(monitor->sessions);
    receivers_free(monitor->receivers);
    webhook_close(monitor->webhooks);
    free(monitor);
}

static int report_step(void *arg, int64_t done, struct err *err)
{
    return stage_progress(arg, done, NULL, err);
}

/* The listener answers also while a slow source is waited for. */
static void let_loop_turn(void *stage)
{
    (void)stage_stopping(stage);
}

static int send_notes(struct stage *stage, const struct inspection *in, struct err *err)
{
    for (size_t i = 0; i < in->n_notes; i++)
        if (stage_note(stage, in->notes[i].kind, in->notes[i].text, err))
            return -1;
    return 0;
}

static int handle_collect(struct stage *stage, const struct stage_request *request,
                          struct buf *result, int *exit_code, struct err *err)
{
    (void)exit_code;
    struct collect collect;
    if (collect_decode(request->body, request->size, &collect, err))
        return -1;
    struct inspection in = {0};
    const struct monitor *monitor = stage_state(stage);
    if (monitor) {
        receivers_attach(monitor->receivers, &collect);
        collect.sessions = monitor->sessions;
        sessions_hold(monitor->sessions, true);
    }
    http_idle(let_loop_turn, stage);
    int rc = inspection_run(&collect, report_step, stage, &in, err);
    http_idle(NULL, NULL);
    if (monitor) {
        sessions_hold(monitor->sessions, false);
        receivers_release(monitor->receivers);
    }
    if (rc == 0)
        rc = send_notes(stage, &in, err);
    if (rc == 0)
        model_encode(in.model, result);
    model_free(in.model);
    inspection_wipe(&in);
    collect_wipe(&collect);
    return rc;
}

static int handle_check(struct stage *stage, const struct stage_request *request,
                        struct buf *result, int *exit_code, struct err *err)
{
    struct collect collect;
    if (collect_decode(request->body, request->size, &collect, err))
        return -1;
    int rc = inspection_check(&collect, report_step, stage, result, exit_code, err);
    collect_wipe(&collect);
    return rc;
}

static const struct stage_handler handlers[] = {
    {MSG_COLLECT, handle_collect},
    {MSG_CHECK, handle_check},
    {MSG_IMPORT, import_handle},
    {MSG_CONFIGURE, webhook_check},
};

static const struct stage_program monitor = {
    .party = PARTY_MONITOR,
    .summary = "inspects the cluster, its metrics and its messages",
    .handlers = handlers,
    .n_handlers = ARRAY_LEN(handlers),
    .open = monitor_open,
    .close = monitor_close,
    .configure = monitor_configure,
};

int main(int argc, char **argv)
{
    return stage_main(&monitor, argc, argv);
}
