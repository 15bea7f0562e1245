/* orchestrator.c - moves in the embedded cluster: one replica at a time, the new one ready before
 * the old one leaves, known by its mark CYCLE/SEQ (POST /v1/place, GET /v1/settled, …). */
#include "adapters/simulated/simulated.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put_mark(struct buf *body, const struct placement *p)
{
    buf_printf(body, "{\"cycle\":%lld,\"seq\":%lld", (long long)p->cycle, (long long)p->seq);
}

static void put_name(struct buf *body, const char *key, const char *name)
{
    buf_printf(body, ",\"%s\":", key);
    json_put_text(body, name);
}

static int place(void *ctx, const struct placement *p, char **saved, struct err *err)
{
    AUTO_BUF struct buf body = BUF_INIT;
    if (!p->instance || !p->target)
        return err_set(err, ERR_REFUSED, "the embedded cluster moves single instances to one host");
    put_mark(&body, p);
    put_name(&body, "service", p->service);
    put_name(&body, "instance", p->instance);
    put_name(&body, "source", p->source);
    put_name(&body, "target", p->target);
    buf_puts(&body, "}");
    AUTO_JSON json_t *answer = simulated_post(ctx, "/v1/place", &body, err);
    if (!answer)
        return -1;
    *saved = NULL; /* the cluster itself remembers what a mark did */
    return 0;
}

static enum settle_state state_of(const char *name)
{
    static const struct {
        const char *name;
        enum settle_state state;
    } states[] = {{"applied", SETTLE_APPLIED},
                  {"missed", SETTLE_MISSED},
                  {"displaced", SETTLE_DISPLACED},
                  {"failed", SETTLE_FAILED}};
    for (size_t i = 0; i < ARRAY_LEN(states); i++)
        if (!strcmp(states[i].name, name))
            return states[i].state;
    return SETTLE_WAITING; /* "waiting"; "unknown": no object bears the mark (yet) */
}

static int settled(void *ctx, const struct placement *p, struct settle_report *out, struct err *err)
{
    AUTO_FREE char *path =
        mem_printf("/v1/settled?cycle=%lld&seq=%lld", (long long)p->cycle, (long long)p->seq);
    AUTO_JSON json_t *answer = simulated_get(ctx, path, err);
    if (!answer)
        return -1;
    const char *state = simulated_text(answer, "state"),
               *now = simulated_text(answer, "instance_now");
    const char *detail = simulated_text(answer, "detail");
    if (!state)
        return err_set(err, ERR_INPUT, "remap-simulated answered a move without a state");
    *out = (struct settle_report){.state = state_of(state)};
    snprintf(out->instance_now, sizeof out->instance_now, "%s", now ? now : "");
    snprintf(out->detail, sizeof out->detail, "%s", detail ? detail : "");
    return 0;
}

static int undo(void *ctx, const struct placement *p, const char *saved, struct err *err)
{
    (void)saved;
    AUTO_BUF struct buf body = BUF_INIT;
    put_mark(&body, p);
    buf_puts(&body, "}");
    AUTO_JSON json_t *answer = simulated_post(ctx, "/v1/undo", &body, err);
    return answer ? 0 : -1;
}

static int release_one(struct simulated *sim, const char *service, bool dry_run, int64_t *restarts,
                       struct err *err)
{
    AUTO_BUF struct buf body = BUF_INIT;
    buf_puts(&body, "{\"service\":");
    json_put_text(&body, service);
    buf_printf(&body, ",\"dry_run\":%s}", dry_run ? "true" : "false");
    AUTO_JSON json_t *answer = simulated_post(sim, "/v1/release", &body, err);
    if (!answer)
        return -1;
    *restarts += simulated_int(answer, "restarts", 0);
    return 0;
}

/* Only services of the app: others may have marks of their own. */
static int release(void *ctx, const struct app_scope *app, const char *service, bool dry_run,
                   int64_t *restarts, struct err *err)
{
    *restarts = 0;
    if (service)
        return release_one(ctx, service, dry_run, restarts, err);
    AUTO_JSON json_t *tree = simulated_get(ctx, "/v1/cluster", err);
    size_t i;
    json_t *row;
    if (!tree)
        return -1;
    json_array_foreach(json_object_get(tree, "services"), i, row)
    {
        const char *name = simulated_text(row, "name"), *space = simulated_text(row, "namespace");
        if (name && space && simulated_in_scope(app, name, space) &&
            release_one(ctx, name, dry_run, restarts, err))
            return -1;
    }
    return 0;
}

const struct orchestrator simulated_orchestrator = {
    .name = "simulated",
    .summary = "moves replicas in the embedded cluster of remap-simulated",
    .options = simulated_options,
    .granularity = PER_INSTANCE,
    .start_first = true,
    .marks = true,
    .open = simulated_open,
    .place = place,
    .settled = settled,
    .undo = undo,
    .release = release,
    .close = simulated_close,
};
