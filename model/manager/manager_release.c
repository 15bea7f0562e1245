/* manager_release.c - `remap release`: what remap left in the cluster is taken off again by the
 * executor, for one app after the other; how many replicas restart is said before any does. */
#include "model/manager/manager.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/json.h"
#include "model/base/log.h"
#include "model/wire/failure.h"

void release_free(struct release *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->n_apps; i++)
        free(r->apps[i]);
    free(r->apps);
    free(r->peer);
    free(r->service);
    free(r);
}

static void end(struct manager *m)
{
    release_free(steal(m->release));
}

static void fail(struct manager *m, const struct err *err)
{
    struct release *r = m->release;
    log_warn("release: %s", err->text);
    manager_note(m, r->next < r->n_apps ? r->apps[r->next] : NULL, "release", 0, err->text);
    if (r->peer) {
        struct buf out = BUF_INIT;
        failure_encode(err, &out);
        bus_answer(m->bus, r->peer, MSG_FAILURE, &out);
        buf_wipe(&out);
    }
    end(m);
}

/* Asks the executor about the next app. */
static int ask_next(struct manager *m, struct err *err)
{
    struct release *r = m->release;
    const struct config_app *app = manager_app_times(m, r->apps[r->next]);
    const struct engine_stage *s = &m->engine.stages[PARTY_EXECUTOR];
    if (!app)
        return err_set(err, ERR_NOT_FOUND, "%s: no such app", r->apps[r->next]);
    if (!s->up || s->cycle || m->engine.stopping)
        return err_set(err, ERR_REFUSED, "moves are in flight; try again when they are made");
    struct buf body = BUF_INIT;
    request_put_app(&body, app);
    buf_puts(&body, ",\"orchestrator\":");
    request_put_source(&body, m->config, app->orchestrator ? app->orchestrator : app->cluster);
    buf_puts(&body, ",\"sources\":{\"cluster\":");
    request_put_source(&body, m->config, app->cluster);
    buf_puts(&body, "},\"service\":");
    json_put_text(&body, r->service);
    buf_printf(&body, ",\"dry_run\":%s,\"ready_timeout_ms\":%" PRId64 ",\"poll_ms\":%" PRId64 "}",
               r->counting ? "true" : "false", app->ready_timeout_ms, request_poll_ms(app));
    r->attempt = ++m->release_attempts;
    struct envelope env = {.type = MSG_RELEASE, .attempt = r->attempt};
    int rc = bus_send(m->bus, PARTY_EXECUTOR, &env, &body, err);
    buf_wipe(&body);
    if (rc == 0)
        manager_event(m, (struct engine_event){.type = EV_LENT,
                                               .stage = PARTY_EXECUTOR,
                                               .attempt = r->attempt,
                                               .value = m->config->stage_deadline_ms +
                                                        app->ready_timeout_ms});
    return rc;
}

int release_begin(struct manager *m, const char *peer, const char *app, const char *service,
                  bool count_only, struct err *err)
{
    if (m->release)
        return err_set(err, ERR_REFUSED, "another release is under way");
    if (app && !manager_app_times(m, app))
        return err_set(err, ERR_NOT_FOUND, "%s: no such app", app);
    struct release *r = m->release = mem_alloc(sizeof *r);
    r->peer = mem_strdup(peer);
    r->service = mem_strdup(service);
    r->counting = true;
    r->count_only = count_only;
    for (size_t i = 0; i < m->config->n_apps; i++)
        if (!app || strcmp(app, m->config->apps[i].name) == 0)
            *ARRAY_PUSH(r->apps, r->n_apps) = mem_strdup(m->config->apps[i].name);
    if (r->n_apps > 0 && ask_next(m, err) == 0)
        return 0;
    if (r->n_apps == 0)
        err_set(err, ERR_NOT_FOUND, "no app is configured");
    end(m);
    return -1;
}

static void tell_count(struct manager *m)
{
    struct release *r = m->release;
    struct buf out = BUF_INIT;
    AUTO_FREE char *text =
        mem_printf("%" PRId64 " replicas restart%s", r->restarts,
                   r->count_only ? " when released" : ", one service after the other");
    buf_puts(&out, "{\"v\":1,\"ok\":true,\"text\":");
    json_put_text(&out, text);
    buf_printf(&out, ",\"restarts\":%" PRId64 "}", r->restarts);
    bus_answer(m->bus, r->peer, MSG_RESULT, &out);
    buf_wipe(&out);
    free(steal(r->peer));
    if (!r->count_only)
        manager_note(m, r->n_apps == 1 ? r->apps[0] : NULL, "release", 0, text);
}

/* All apps are through: counted, or released. */
static void pass_over(struct manager *m, struct err *err)
{
    struct release *r = m->release;
    if (!r->counting) {
        manager_note(m, r->n_apps == 1 ? r->apps[0] : NULL, "release", 0, "released");
        end(m);
        return;
    }
    tell_count(m);
    if (r->count_only) {
        end(m);
        return;
    }
    r->counting = false;
    r->next = 0;
    if (ask_next(m, err) < 0)
        fail(m, err);
}

void release_answered(struct manager *m, const struct envelope *env, const char *body, size_t size,
                      const struct err *failure)
{
    static const char *const keys[] = {"v", "restarts", NULL};
    struct err err = ERR_INIT;
    int64_t restarts = 0;
    struct release *r = m->release;
    struct engine_event ev = {
        .type = EV_RESULT, .stage = PARTY_EXECUTOR, .cycle = ENGINE_LENT, .attempt = env->attempt};
    manager_event(m, ev); /* a cycle that waits for the executor goes first */
    if (!r || r->attempt != env->attempt)
        return;
    AUTO_JSON json_t *tree = failure ? NULL : json_parse(body, size, &json_limits_header, &err);
    struct jval root = jval_root(tree), number = jval_get(&root, "restarts");
    if (failure)
        err = *failure;
    if (!tree || jval_object(&root, keys, &err) < 0 ||
        jval_int(&number, 0, MODEL_MAX_NUMBER, &restarts, &err) < 0) {
        fail(m, &err);
        return;
    }
    r->restarts += r->counting ? restarts : 0;
    if (++r->next == r->n_apps)
        pass_over(m, &err);
    else if (ask_next(m, &err) < 0)
        fail(m, &err);
}

void release_lost(struct manager *m, const char *why)
{
    struct err err = ERR_INIT;
    if (!m->release)
        return;
    err_set(&err, ERR_UNREACHABLE, "%s", why);
    fail(m, &err);
}
