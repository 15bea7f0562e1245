/* manager_result.c - what stages say: decoded strictly, checked before it is believed, committed in
 * one transaction with the step that it causes (design.md 3, 4). */
#include "model/manager/manager.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/clock.h"
#include "model/base/json.h"
#include "model/base/log.h"
#include "model/manager/calm.h"
#include "model/manager/verify.h"
#include "model/model_json.h"
#include "model/wire/failure.h"

struct engine_event result_event(enum engine_event_type type, enum party stage,
                                 const struct envelope *env)
{
    return (struct engine_event){
        .type = type, .stage = stage, .cycle = env->cycle, .attempt = env->attempt};
}

/* The result cannot be used: the cycle fails with this text. */
void result_bad(struct manager *m, enum party stage, const struct envelope *env, const char *text)
{
    char reason[ENGINE_REASON_SIZE];
    snprintf(reason, sizeof reason, "%s: %.450s", party_name(stage), text);
    struct engine_event ev = result_event(EV_FAILURE, stage, env);
    ev.reason = reason;
    manager_answer(m, ev, NULL, NULL);
}

/* --- collect --- */

static int rows_base(struct manager *m, struct engine_event *ev, void *ctx, struct err *err)
{
    (void)ctx;
    const struct docs *d = &m->docs;
    return store_snapshot_save(m->store, ev->cycle, "base", d->model, d->model_text.data,
                               d->model_text.size, err);
}

static void collected_base(struct manager *m, const struct envelope *env, const char *body,
                           size_t size)
{
    struct err err = ERR_INIT;
    struct docs *d = &m->docs;
    docs_wipe(d);
    d->cycle = env->cycle;
    d->model = model_decode(body, size, &err);
    if (!d->model) {
        result_bad(m, PARTY_MONITOR, env, err.text);
        return;
    }
    buf_add(&d->model_text, body, size);
    const char *app = m->engine.apps[engine_cycle(&m->engine, env->cycle)->app].name;
    metrics_model_taken(m->metrics, app,
                        d->model->taken_ms >= 0 ? d->model->taken_ms : clock_wall_ms());
    metrics_coverage(m->metrics, app, model_coverage(d->model));
    manager_answer(m, result_event(EV_RESULT, PARTY_MONITOR, env), rows_base, NULL);
}

static int rows_verify(struct manager *m, struct engine_event *ev, void *ctx, struct err *err)
{
    return store_snapshot_save(m->store, ev->cycle, "verify", ctx, m->verify_text.data,
                               m->verify_text.size, err);
}

static void collected_verify(struct manager *m, const struct envelope *env, const char *body,
                             size_t size)
{
    struct err err = ERR_INIT;
    AUTO(model) struct model *model = model_decode(body, size, &err);
    if (!model) {
        result_bad(m, PARTY_MONITOR, env, err.text);
        return;
    }
    buf_clear(&m->verify_text);
    buf_add(&m->verify_text, body, size);
    m->verify_cycle = env->cycle;
    manager_answer(m, result_event(EV_RESULT, PARTY_MONITOR, env), rows_verify, model);
}

/* --- does the base of a stored plan still hold? --- */

/* The stored documents of cycle `from`, read against the model collected just now. */
struct rebase {
    int64_t from;
    struct docs docs;
    int64_t n_moves;
};

static int rebase_check(struct manager *m, const struct config_app *app, struct rebase *r,
                        const char *body, size_t size, struct err *err)
{
    struct docs *d = &r->docs;
    d->model = model_decode(body, size, err);
    if (!d->model || store_analysis_load(m->store, r->from, &d->analysis_text, err) < 0 ||
        store_plan_load(m->store, r->from, &d->options_text, &d->plan_text, err) < 0)
        return -1;
    buf_add(&d->model_text, body, size);
    AUTO_JSON json_t *at =
        json_parse(d->analysis_text.data, d->analysis_text.size, &json_limits_document, err);
    AUTO_JSON json_t *pt =
        at ? json_parse(d->plan_text.data, d->plan_text.size, &json_limits_document, err) : NULL;
    if (!pt)
        return -1;
    struct jval a = jval_root(at), p = jval_root(pt);
    d->analysis = analysis_decode_value(&a, d->model, err);
    d->plan = d->analysis ? plan_decode_value(&p, d->model, err) : NULL;
    if (!d->plan || plan_check(d->plan, d->model, app->move_stateful, err) < 0)
        return -1;
    struct move_count count;
    if (moves_count(m, r->from, &count, err) < 0)
        return -1;
    r->n_moves = count.planned;
    if (r->n_moves == 0)
        return err_set(err, ERR_CONFLICT, "cycle %lld has no moves left to make",
                       (long long)r->from);
    return 0;
}

/* The new cycle gets the documents of the old one, and what was left out there stays out. */
static int rows_rebase(struct manager *m, struct engine_event *ev, void *ctx, struct err *err)
{
    int64_t cycle = ev->cycle;
    struct rebase *r = ctx;
    const struct docs *d = &r->docs;
    if (store_snapshot_save(m->store, cycle, "base", d->model, d->model_text.data,
                            d->model_text.size, err) < 0 ||
        store_analysis_save(m->store, cycle, d->analysis, d->model, d->analysis_text.data,
                            d->analysis_text.size, err) < 0 ||
        store_plan_save(m->store, cycle, d->plan, d->model, d->options_text.data, d->plan_text.data,
                        d->plan_text.size, err) < 0)
        return -1;
    struct move_row *rows = NULL;
    size_t n = 0;
    int rc = store_moves_load(m->store, r->from, &rows, &n, err);
    for (size_t i = 0; i < n; i++) {
        if (rc == 0 && strcmp(rows[i].state, "discarded") == 0 && rows[i].undo_of < 0)
            rc = store_move_discard(m->store, cycle, rows[i].seq, rows[i].reason, err);
        move_row_wipe(&rows[i]);
    }
    free(rows);
    return rc;
}

static void collected_rebase(struct manager *m, const struct envelope *env, const char *body,
                             size_t size)
{
    struct err err = ERR_INIT;
    const struct engine_cycle *c = engine_cycle(&m->engine, env->cycle);
    const struct config_app *app = manager_app_times(m, m->engine.apps[c->app].name);
    struct rebase r = {.from = c->state == CYCLE_PROPOSED ? c->id : c->base};
    struct engine_event ev = result_event(EV_RESULT, PARTY_MONITOR, env);
    char reason[ENGINE_REASON_SIZE];
    docs_wipe(&m->docs);
    bool holds = app && rebase_check(m, app, &r, body, size, &err) == 0;
    bool copy = holds && c->state == CYCLE_COLLECTING;
    snprintf(reason, sizeof reason, "the plan's base has changed: %.400s", err.text);
    ev.verdict = holds ? VERDICT_OK : VERDICT_BAD;
    ev.value = r.n_moves;
    ev.reason = holds ? NULL : reason;
    manager_answer(m, ev, copy ? rows_rebase : NULL, &r);
    docs_wipe(&r.docs);
}

static void collected(struct manager *m, const struct envelope *env, const char *body, size_t size)
{
    const struct engine_cycle *c = engine_cycle(&m->engine, env->cycle);
    if (c->state == CYCLE_VERIFYING)
        collected_verify(m, env, body, size);
    else if (c->state == CYCLE_PROPOSED || c->base >= 0)
        collected_rebase(m, env, body, size);
    else
        collected_base(m, env, body, size);
}

/* --- analyze --- */

/* Where no size is known, messages alone count, whatever w is configured; that is said. */
static int rows_weight(struct manager *m, int64_t cycle, struct err *err)
{
    const char *name = m->engine.apps[engine_cycle(&m->engine, cycle)->app].name;
    const struct config_app *app = manager_app_times(m, name);
    const struct analysis *a = m->docs.analysis;
    char text[120];
    if (!app || a->count == 0 || a->weight_used == app->weight)
        return 0;
    snprintf(text, sizeof text, "no message has a known size: w is %g in this cycle, not %g",
             a->weight_used, app->weight);
    return store_event_add(m->store, name, "weight", cycle, text, clock_wall_ms(), NULL, err);
}

static int rows_analysis(struct manager *m, struct engine_event *ev, void *ctx, struct err *err)
{
    (void)ctx;
    const struct docs *d = &m->docs;
    if (store_analysis_save(m->store, ev->cycle, d->analysis, d->model, d->analysis_text.data,
                            d->analysis_text.size, err) < 0)
        return -1;
    return rows_weight(m, ev->cycle, err);
}

static struct analysis *read_analysis(const char *body, size_t size, const struct model *model,
                                      struct err *err)
{
    AUTO_JSON json_t *tree = json_parse(body, size, &json_limits_document, err);
    struct jval root = jval_root(tree);
    return tree ? analysis_decode_value(&root, model, err) : NULL;
}

static void analyzed_base(struct manager *m, const struct envelope *env, const char *body,
                          size_t size)
{
    struct err err = ERR_INIT;
    struct docs *d = &m->docs;
    if (docs_load(m, env->cycle, &err) == 0) {
        analysis_free(steal(d->analysis));
        d->analysis = read_analysis(body, size, d->model, &err);
    }
    if (!d->analysis) {
        result_bad(m, PARTY_ANALYZER, env, err.text);
        return;
    }
    buf_clear(&d->analysis_text);
    buf_add(&d->analysis_text, body, size);
    int *placement = model_placement(d->model);
    metrics_local_ratio(
        m->metrics, m->engine.apps[engine_cycle(&m->engine, env->cycle)->app].name,
        placement_local_share(d->model, d->analysis->rows, d->analysis->n_rows, placement));
    free(placement);
    manager_answer(m, result_event(EV_RESULT, PARTY_ANALYZER, env), rows_analysis, NULL);
}

static int rows_savings(struct manager *m, struct engine_event *ev, void *ctx, struct err *err)
{
    return store_savings_save(m->store, ev->cycle, ctx, err);
}

/* Predicted against realised: the moves that were made, on the model they were planned on, and what
 * was collected since. */
static int compare(struct manager *m, const struct engine_cycle *c, const char *body, size_t size,
                   struct savings *savings, struct engine_event *ev, char *why, size_t why_size,
                   struct err *err)
{
    const struct config_app *app = manager_app_times(m, m->engine.apps[c->app].name);
    AUTO(model) struct model *now = model_decode(m->verify_text.data, m->verify_text.size, err);
    AUTO(analysis) struct analysis *analysis = now ? read_analysis(body, size, now, err) : NULL;
    AUTO(plan) struct plan *made = NULL;
    if (!app || !analysis || docs_load(m, c->id, err) < 0)
        return -1;
    const struct docs *d = &m->docs;
    if (!d->plan || !d->analysis)
        return err_set(err, ERR_NOT_FOUND, "cycle %lld: no plan", (long long)c->id);
    if (plan_remaining(m, c, true, &made, err) < 0)
        return -1;
    verify_predict(d->model, d->analysis, made, savings);
    verify_measure(now, analysis, savings);
    if (savings->local_realised >= 0)
        metrics_local_ratio(m->metrics, app->name, savings->local_realised);
    AUTO_FREE int *before = model_placement(d->model);
    AUTO_FREE bool *mended = model_rules_mended(d->model, before, made->placement);
    switch (verify_judge(savings, app->objective, app->worse_tolerance,
                         affinity_messages(now, analysis->rows, analysis->n_rows), mended != NULL,
                         why, why_size)) {
    case VERIFY_KEEP:
        ev->verdict = VERDICT_OK;
        break;
    case VERIFY_WORSE:
        ev->verdict = VERDICT_WORSE;
        break;
    case VERIFY_UNKNOWN:
        ev->verdict = VERDICT_NOTHING;
        break;
    }
    return 0;
}

static void analyzed_verify(struct manager *m, const struct envelope *env, const char *body,
                            size_t size)
{
    struct err err = ERR_INIT;
    struct savings savings;
    char why[ENGINE_REASON_SIZE / 2], reason[ENGINE_REASON_SIZE];
    const struct engine_cycle *c = engine_cycle(&m->engine, env->cycle);
    struct engine_event ev = result_event(EV_RESULT, PARTY_ANALYZER, env);
    if (compare(m, c, body, size, &savings, &ev, why, sizeof why, &err) < 0) {
        result_bad(m, PARTY_ANALYZER, env, err.text);
        return;
    }
    /* what was left out or stopped on the way stays said */
    snprintf(reason, sizeof reason, "%s%s%.200s", why, c->reason[0] ? "; " : "", c->reason);
    ev.reason = reason;
    manager_answer(m, ev, rows_savings, &savings);
}

/* --- plan --- */

struct planned {
    struct calm *calm;
    struct savings savings;
    int64_t proposal; /* of an earlier cycle, waiting; 0: none */
    char same[60];
};

static void count_rejected(struct manager *m, const char *why)
{
    static const struct {
        const char *start, *word;
    } words[] = {{"cool-down", "cooldown"}, {"limit of", "limit"},       {"gains", "gain"},
                 {"does not fit", "room"},  {"a host is under", "busy"}, {"quiet", "soak"},
                 {"outside", "window"},     {"coverage", "coverage"},    {"rollout", "rollout"},
                 {"stateful", "stateful"},  {"paused", "paused"}};
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strncmp(why, words[i].start, strlen(words[i].start)) == 0) {
            metrics_move_rejected(m->metrics, words[i].word);
            return;
        }
    metrics_move_rejected(m->metrics, "other");
}

/* A proposal that the new plan only repeats stays: who has read it need not read it again. */
static int rows_compare(struct manager *m, struct engine_event *ev, struct planned *p,
                        struct err *err)
{
    bool same;
    if (store_moves_same(m->store, ev->cycle, p->proposal, &same, err) < 0)
        return -1;
    if (!same)
        return 0;
    snprintf(p->same, sizeof p->same, "the same moves as cycle %lld proposes",
             (long long)p->proposal);
    ev->verdict = VERDICT_SAME;
    ev->reason = p->same;
    return 0;
}

static int rows_plan(struct manager *m, struct engine_event *ev, void *ctx, struct err *err)
{
    int64_t cycle = ev->cycle;
    struct planned *p = ctx;
    const struct docs *d = &m->docs;
    if (store_plan_save(m->store, cycle, d->plan, d->model, d->options_text.data, d->plan_text.data,
                        d->plan_text.size, err) < 0 ||
        store_savings_save(m->store, cycle, &p->savings, err) < 0)
        return -1;
    for (size_t i = 0; i < p->calm->n_left_out; i++) {
        const char *why = p->calm->left_out[i];
        if (!why)
            continue;
        count_rejected(m, why);
        /* a dry run leaves them planned: somebody may still apply it */
        if (p->calm->answer != CALM_DRY &&
            store_move_discard(m->store, cycle, d->plan->moves[i].seq, why, err) < 0)
            return -1;
    }
    return p->proposal > 0 && ev->verdict == VERDICT_OK ? rows_compare(m, ev, p, err) : 0;
}

/* What calm is told besides the plan. */
static struct calm *calm_of(struct manager *m, const struct engine_cycle *c,
                            const struct config_app *app, struct err *err)
{
    const struct docs *d = &m->docs;
    struct calm_last *last = plan_last_moves(m, app, d->model, d->plan, err);
    if (!last)
        return NULL;
    bool *busy = plan_busy_hosts(m, c->id, d->model);
    struct calm_facts facts = {.wall_ms = clock_wall_ms(),
                               .soak_until_ms = -1,
                               .window_open = config_app_open(app, clock_wall_ms()),
                               .paused_by = manager_paused_by(m, app),
                               .last = last,
                               .busy_hosts = busy};
    for (size_t i = 0; i < m->config->n_apps; i++)
        if (app == &m->apps[i].times)
            facts.soak_until_ms = m->apps[i].soak_until_ms;
    struct calm *calm =
        calm_new(app, &facts, d->model, d->analysis->rows, d->analysis->n_rows, d->plan);
    free(last);
    free(busy);
    return calm;
}

/* Decodes, checks against the model, applies to a copy: nothing is believed before. */
static int read_plan(struct manager *m, int64_t cycle, const struct config_app *app,
                     const char *body, size_t size, struct err *err)
{
    struct docs *d = &m->docs;
    if (docs_load(m, cycle, err) < 0)
        return -1;
    plan_free(steal(d->plan));
    AUTO_JSON json_t *tree = json_parse(body, size, &json_limits_document, err);
    struct jval root = jval_root(tree);
    d->plan = tree ? plan_decode_value(&root, d->model, err) : NULL;
    if (!d->plan || plan_check(d->plan, d->model, app->move_stateful, err) < 0)
        return -1;
    AUTO(model) struct model *copy = model_copy(d->model);
    if (plan_apply(d->plan, copy, SIZE_MAX, err) < 0)
        return -1;
    buf_clear(&d->plan_text);
    buf_add(&d->plan_text, body, size);
    return 0;
}

static enum verdict verdict_of(const struct calm *calm)
{
    switch (calm->answer) {
    case CALM_GO:
        return VERDICT_OK;
    case CALM_NOTHING:
        return VERDICT_NOTHING;
    case CALM_DRY:
        return VERDICT_DRY;
    }
    return VERDICT_NOTHING;
}

/* No placement exists, or none was found in time: stored like any plan, but the cycle failed. */
static void planned_none(struct manager *m, const struct envelope *env)
{
    const struct plan *plan = m->docs.plan;
    char reason[ENGINE_REASON_SIZE];
    bool infeasible = plan->status == PLAN_INFEASIBLE;
    snprintf(reason, sizeof reason, "%s: %.400s",
             infeasible ? "no feasible placement exists" : "no placement found in time",
             plan->why ? plan->why : "");
    struct planned p = {.calm = mem_alloc(sizeof *p.calm)};
    verify_predict(m->docs.model, m->docs.analysis, plan, &p.savings);
    m->exit_code = infeasible ? 3 : 4;
    struct engine_event ev = result_event(EV_FAILURE, PARTY_PLANNER, env);
    ev.reason = reason;
    manager_answer(m, ev, rows_plan, &p);
    calm_free(p.calm);
}

/* Only a cycle that would propose is compared with one that does. */
static int64_t waiting_proposal(const struct manager *m, const struct engine_cycle *by)
{
    if (by->dry_run || m->engine.apps[by->app].config.mode != MODE_PROPOSE)
        return 0;
    for (size_t i = 0; i < m->engine.n_cycles; i++) {
        const struct engine_cycle *c = &m->engine.cycles[i];
        if (c != by && c->app == by->app && c->state == CYCLE_PROPOSED)
            return c->id;
    }
    return 0;
}

static void planned(struct manager *m, const struct envelope *env, const char *body, size_t size)
{
    struct err err = ERR_INIT;
    const struct engine_cycle *c = engine_cycle(&m->engine, env->cycle);
    const struct config_app *app = manager_app_times(m, m->engine.apps[c->app].name);
    if (!app || read_plan(m, env->cycle, app, body, size, &err) < 0) {
        result_bad(m, PARTY_PLANNER, env, app ? err.text : "the app is no longer configured");
        return;
    }
    const struct docs *d = &m->docs;
    if (d->plan->status == PLAN_INFEASIBLE || d->plan->status == PLAN_TIMEOUT) {
        planned_none(m, env);
        return;
    }
    AUTO(calm) struct calm *calm = calm_of(m, c, app, &err);
    if (!calm) {
        result_bad(m, PARTY_PLANNER, env, err.text);
        return;
    }
    struct planned p = {.calm = calm, .proposal = waiting_proposal(m, c)};
    verify_predict(d->model, d->analysis, calm->kept ? calm->kept : d->plan, &p.savings);
    if (d->plan->has_bound)
        metrics_gap(m->metrics, d->plan->planner, plan_gap(d->plan));
    struct engine_event ev = result_event(EV_RESULT, PARTY_PLANNER, env);
    ev.verdict = verdict_of(calm);
    ev.reason = calm->why[0] ? calm->why : NULL;
    ev.value = calm->kept ? (int64_t)calm->kept->n_moves : (int64_t)d->plan->n_moves;
    manager_answer(m, ev, rows_plan, &p);
}

/* --- results and failures --- */

void result_received(struct manager *m, enum party stage, const struct envelope *env,
                     const char *body, size_t size)
{
    if (stage == PARTY_EXECUTOR && env->cycle == 0) {
        release_answered(m, env, body, size, NULL);
        return;
    }
    if (env->cycle == 0) {
        look_answered(m, stage, env, body, size, NULL);
        return;
    }
    if (!engine_awaits(&m->engine, stage, env->cycle, env->attempt)) {
        manager_event(
            m, result_event(EV_RESULT, stage, env)); /* frees the stage, counts for nothing */
        return;
    }
    switch (stage) {
    case PARTY_MONITOR:
        collected(m, env, body, size);
        break;
    case PARTY_ANALYZER:
        if (engine_cycle(&m->engine, env->cycle)->state == CYCLE_VERIFYING)
            analyzed_verify(m, env, body, size);
        else
            analyzed_base(m, env, body, size);
        break;
    case PARTY_PLANNER:
        planned(m, env, body, size);
        break;
    case PARTY_EXECUTOR:
        executed_received(m, env, body, size);
        break;
    case PARTY_MANAGER:
    case PARTY_CLI:
    case PARTY_N:
        break;
    }
}

/* Is it worth asking the same again? What depends on the world may be; what depends on the request
 * alone is not. */
static bool worth_again(enum err_kind kind)
{
    return kind == ERR_UNREACHABLE || kind == ERR_IO || kind == ERR_INTERNAL ||
           kind == ERR_CONFLICT || kind == ERR_TIMEOUT;
}

void failure_received(struct manager *m, enum party stage, const struct envelope *env,
                      const char *body, size_t size)
{
    struct err err = ERR_INIT, store_err = ERR_INIT;
    failure_decode(body, size, &err);
    if (stage == PARTY_EXECUTOR && env->cycle == 0) {
        release_answered(m, env, NULL, 0, &err);
        return;
    }
    if (env->cycle == 0) {
        look_answered(m, stage, env, NULL, 0, &err);
        return;
    }
    struct engine_event ev = result_event(EV_FAILURE, stage, env);
    char reason[ENGINE_REASON_SIZE];
    snprintf(reason, sizeof reason, "%s: %.450s", party_name(stage), err.text);
    ev.reason = reason;
    ev.flag = worth_again(err.kind);
    log_warn("cycle=%lld stage=%s failure kind=%s text=\"%s\"", (long long)env->cycle,
             party_name(stage), err_kind_name(err.kind), err.text);
    if (!engine_awaits(&m->engine, stage, env->cycle, env->attempt)) {
        manager_event(m, ev);
        return;
    }
    struct move_count count;
    if (stage == PARTY_EXECUTOR && m->engine.stages[stage].stop_sent &&
        moves_count(m, env->cycle, &count, &store_err) == 0) {
        ev.type = EV_RESULT; /* stopped before it could say more */
        ev.verdict = VERDICT_STOPPED;
        ev.value = count.applied;
    }
    if (stage == PARTY_PLANNER && !ev.flag)
        m->exit_code = err_exit_code(err.kind);
    manager_answer(m, ev, NULL, NULL);
}
