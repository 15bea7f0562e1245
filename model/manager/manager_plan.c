/* manager_plan.c - plans between planner and executor: the options they are made with, what of them
 * is left to do, and the facts that calm.h asks for. */
#include "model/manager/manager.h"

#include <stdlib.h>
#include <string.h>

#include "model/base/json.h"
#include "model/manager/calm.h"
#include "model/model_json.h"
#include "model/plan_worth.h"

/* Where replicas of a service cannot be steered one by one (design.md 7 "Granularity"). */
static enum granularity own_granularity(const struct config *config, const struct config_app *app)
{
    static const char *const per_service[] = {"kubernetes", "swarm"};
    const struct config_source *s =
        config_source(config, app->orchestrator ? app->orchestrator : app->cluster);
    for (size_t i = 0; s && i < ARRAY_LEN(per_service); i++)
        if (strcmp(s->type, per_service[i]) == 0)
            return PER_SERVICE;
    return PER_INSTANCE;
}

void plan_options(const struct manager *m, const struct config_app *app, struct buf *out)
{
    enum granularity granularity =
        app->granularity < 0 ? own_granularity(m->config, app) : (enum granularity)app->granularity;
    buf_puts(out, "{\"planner\":");
    json_put_text(out, app->planner);
    buf_printf(out,
               ",\"objective\":\"%s\",\"granularity\":\"%s\",\"time_limit_ms\":%lld,"
               "\"max_moves\":null,\"move_stateful\":%s,\"frontier\":false,\"seed\":1,"
               "\"iterations\":null,\"min_gain\":",
               objective_name(app->objective), granularity_name(granularity),
               (long long)app->time_limit_ms, app->move_stateful ? "true" : "false");
    json_put_real(out, app->planner_min_gain);
    /* A rule that cannot be kept is no reason to leave all else as it is. */
    buf_puts(out, ",\"leave_broken\":true}");
}

/* --- what is left of a plan --- */

struct wanted {
    const struct move_row *rows;
    size_t n;
    bool undo;
    bool clear_up; /* only what has been intended */
};

static bool is_one_of(const char *state, const char *const *states)
{
    for (; *states; states++)
        if (strcmp(state, *states) == 0)
            return true;
    return false;
}

/* States of a move that has changed the cluster, and can be put back. */
static const char *const moved[] = {"applied", "partial", "missed", NULL};

static bool wanted(void *ctx, const struct move *move)
{
    static const char *const left_out[] = {"discarded", NULL};
    static const char *const untouched[] = {"planned", "discarded", NULL};
    const struct wanted *w = ctx;
    for (size_t i = 0; i < w->n; i++) {
        const struct move_row *r = &w->rows[i];
        if (r->seq != move->seq)
            continue;
        if (w->undo)
            return is_one_of(r->state, moved) || strcmp(r->state, "undone") == 0;
        return !is_one_of(r->state, w->clear_up ? untouched : left_out);
    }
    return false;
}

int plan_remaining(struct manager *m, const struct engine_cycle *cycle, bool undo,
                   struct plan **out, struct err *err)
{
    struct move_row *rows = NULL;
    size_t n = 0;
    if (store_moves_load(m->store, cycle->id, &rows, &n, err) < 0)
        return -1;
    struct wanted w = {rows, n, undo, cycle->stop != STOP_NO};
    const struct docs *d = &m->docs;
    *out = plan_subset(d->plan, d->model, d->analysis->rows, d->analysis->n_rows, wanted, &w);
    for (size_t i = 0; i < n; i++)
        move_row_wipe(&rows[i]);
    free(rows);
    return 0;
}

int moves_count(struct manager *m, int64_t cycle, struct move_count *out, struct err *err)
{
    struct move_row *rows = NULL;
    size_t n = 0;
    if (store_moves_load(m->store, cycle, &rows, &n, err) < 0)
        return -1;
    *out = (struct move_count){0};
    for (size_t i = 0; i < n; i++) {
        const char *s = rows[i].state;
        bool failed = strcmp(s, "failed") == 0;
        if (strcmp(s, "intended") == 0)
            out->open++;
        else if (rows[i].undo_of >= 0)
            out->undo_failed += failed;
        else if (is_one_of(s, moved))
            out->applied += !rows[i].detour;
        else if (failed)
            out->failed++;
        else if (strcmp(s, "planned") == 0)
            out->planned++;
        else if (strcmp(s, "undone") == 0)
            out->undone++;
        else
            out->discarded++;
        move_row_wipe(&rows[i]);
    }
    free(rows);
    return 0;
}

/* --- facts for calm --- */

static void mark_hosts(struct manager *m, int64_t cycle, const struct model *model, bool *busy)
{
    struct err err = ERR_INIT;
    struct move_row *rows = NULL;
    size_t n = 0;
    if (store_moves_load(m->store, cycle, &rows, &n, &err) < 0)
        return;
    for (size_t i = 0; i < n; i++) {
        const char *ends[] = {rows[i].source, rows[i].target};
        for (int e = 0; e < 2 && rows[i].intended_ms >= 0; e++) {
            int host = ends[e] ? model_host(model, ends[e]) : -1;
            if (host >= 0)
                busy[host] = true;
        }
        move_row_wipe(&rows[i]);
    }
    free(rows);
}

bool *plan_busy_hosts(struct manager *m, int64_t cycle, const struct model *model)
{
    bool *busy = NULL;
    for (size_t i = 0; i < m->engine.n_cycles; i++) {
        const struct engine_cycle *c = &m->engine.cycles[i];
        bool unverified = c->state == CYCLE_EXECUTING || c->state == CYCLE_SETTLING ||
                          c->state == CYCLE_VERIFYING || c->state == CYCLE_UNDOING;
        if (c->id == cycle || !unverified)
            continue;
        if (!busy)
            busy = mem_array(model->n_hosts + 1, sizeof *busy);
        mark_hosts(m, c->id, model, busy);
    }
    return busy;
}

/* What rests longest of all the hosts that a move touches. */
static int later(struct manager *m, const struct config_app *app, const struct model *model,
                 const struct move *move, int host, struct calm_last *last, struct err *err)
{
    struct calm_last here = {.at_ms = -1};
    if (host < 0)
        return 0;
    if (store_last_move_ms(m->store, app->name, model->services[move->service].name,
                           model->hosts[host].name, &here.at_ms, &here.missed,
                           &here.displaced, err) < 0)
        return -1;
    if (here.at_ms >= 0 && here.at_ms + calm_rest_ms(app, &here) >
                               last->at_ms + calm_rest_ms(app, last))
        *last = here;
    return 0;
}

static int last_move(struct manager *m, const struct config_app *app, const struct model *model,
                     const struct move *move, struct calm_last *last, struct err *err)
{
    *last = (struct calm_last){.at_ms = -1};
    int rc = later(m, app, model, move, move->source, last, err);
    if (rc == 0)
        rc = later(m, app, model, move, move->target, last, err);
    for (size_t k = 0; rc == 0 && k < move->n_sources; k++)
        rc = later(m, app, model, move, move->sources[k].host, last, err);
    for (size_t k = 0; rc == 0 && k < move->n_targets; k++)
        rc = later(m, app, model, move, move->targets[k].host, last, err);
    return rc;
}

struct calm_last *plan_last_moves(struct manager *m, const struct config_app *app,
                                  const struct model *model, const struct plan *plan,
                                  struct err *err)
{
    struct calm_last *last = mem_array(plan->n_moves + 1, sizeof *last);
    int rc = store_read_begin(m->store, err);
    for (size_t i = 0; rc == 0 && i < plan->n_moves; i++)
        rc = last_move(m, app, model, &plan->moves[i], &last[i], err);
    store_read_end(m->store);
    if (rc == 0)
        return last;
    free(last);
    return NULL;
}
