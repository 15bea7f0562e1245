/* drive.c - see drive.h. Every change of the cluster is asked for behind a committed intent, and
 * asking again is decided by what the cluster shows, never by memory (design.md 3). */
#include "executor/drive.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "executor/ask.h"
#include "executor/resume.h"
#include "executor/validate.h"
#include "model/base/clock.h"

/* What the cluster tells by itself to be on its way is looked at this often, for signs that it will not
 * arrive. */
#define ROLLING_MS 1000
#define INSPECT_TRIES 3 /* before the request fails; the engine repeats it three times as well */

int drive_open(struct drive *d, struct stage *stage, struct request *request, struct err *err)
{
    *d = (struct drive){.stage = stage, .request = request};
    d->cluster = cluster_adapter_find(request->cluster.type);
    d->orchestrator = orchestrator_find(request->orchestrator.type);
    if (!d->cluster || !d->orchestrator) {
        return err_set(err, ERR_CONFIG, "source %s: no adapter %s",
                       d->cluster ? request->orchestrator.name : request->cluster.name,
                       d->cluster ? request->orchestrator.type : request->cluster.type);
    }
    if (source_check(&request->cluster, d->cluster->options, err) < 0 ||
        source_check(&request->orchestrator, d->orchestrator->options, err) < 0 ||
        d->cluster->open(&request->cluster, &d->cluster_ctx, err) < 0) {
        return -1;
    }
    if (kept_join(stage, d->orchestrator, &request->orchestrator, &d->kept, err) < 0 ||
        d->orchestrator->open(&request->orchestrator, &d->orchestrator_ctx, err) < 0) {
        kept_leave(d->kept);
        d->cluster->close(d->cluster_ctx);
        return -1;
    }
    if (d->kept && d->orchestrator->attach) {
        d->orchestrator->attach(d->orchestrator_ctx, kept_ctx(d->kept));
    }
    lineage_init(&d->lineage, request->model);
    lineage_follow(&d->lineage, &request->done);
    d->next_seq = request_free_seq(request);
    d->total = (int64_t)request->plan->n_moves;
    return 0;
}

void drive_close(struct drive *d)
{
    d->orchestrator->close(d->orchestrator_ctx);
    kept_leave(d->kept);
    d->cluster->close(d->cluster_ctx);
    lineage_wipe(&d->lineage);
    outcomes_wipe(&d->told);
}

int drive_inspect(struct drive *d, struct view *out, struct err *err)
{
    for (int try = 1;; try++) {
        struct inspection in = {.model = model_new()};
        struct err why = ERR_INIT;
        int done = d->cluster->inspect(d->cluster_ctx, &d->request->app, &in, &why);
        AUTO(model) struct model *fresh = steal(in.model);
        inspection_wipe(&in);
        if (done == 0) {
            view_init(out, steal(fresh), d->request->model, &d->lineage);
            return 0;
        }
        if (!ask_unsure(&why) || try == INSPECT_TRIES) {
            *err = why;
            return err_prefix(err, "%s", d->request->cluster.name);
        }
        stage_wait_through(d->stage, d->request->poll_ms);
    }
}

/* --- telling --- */

void drive_tell(struct drive *d, struct outcome outcome)
{
    AUTO_BUF struct buf members = BUF_INIT;
    struct err stopped = ERR_INIT;
    if (outcome.settled_ms <= d->last_ms) {
        outcome.settled_ms = d->last_ms + 1; /* an undo goes by the order of these */
    }
    d->last_ms = outcome.settled_ms;
    buf_printf(&members, "\"total\":%lld,\"outcome\":", (long long)d->total);
    outcome_encode(&outcome, &members);
    kept_announce(d->kept, d->request->cycle, &outcome);
    *ARRAY_PUSH(d->told.list, d->told.n) = outcome;
    if (outcome.instance && outcome.instance_now && outcome.instance_now[0]) {
        lineage_rename(&d->lineage, outcome.instance, outcome.instance_now);
    }
    (void)stage_progress(d->stage, ++d->work, members.data, &stopped); /* the plan asks for stop */
}

static struct outcome outcome_of(const struct step *step, enum outcome_state state, const char *fmt,
                                 va_list args)
{
    struct buf reason = BUF_INIT;
    char text[1000] = "";
    if (fmt) {
        vsnprintf(text, sizeof text, fmt, args);
        buf_puts(&reason, text);
    }
    return (struct outcome){.seq = step->seq,
                            .state = state,
                            .reason = fmt ? buf_take(&reason) : NULL,
                            .service = mem_strdup(step->service),
                            .instance = mem_strdup(step->instance),
                            .source = mem_strdup(step->source),
                            .target = mem_strdup(step->target),
                            .intended_ms = -1,
                            .settled_ms = clock_wall_ms(),
                            .undo_of = -1,
                            .detour = step->detour};
}

/* Tells the outcome of a step; fmt NULL: no reason. */
static void step_tell(struct drive *d, const struct step *step, enum outcome_state state,
                      int64_t intended_ms, const char *instance_now, const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));

static void step_tell(struct drive *d, const struct step *step, enum outcome_state state,
                      int64_t intended_ms, const char *instance_now, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    struct outcome o = outcome_of(step, state, fmt, args);
    va_end(args);
    o.intended_ms = intended_ms;
    o.instance_now = instance_now && instance_now[0] ? mem_strdup(instance_now) : NULL;
    drive_tell(d, o);
}

void drive_discard(struct drive *d, const struct step *step, const char *reason)
{
    step_tell(d, step, OUTCOME_DISCARDED, -1, NULL, "%s", reason);
}

/* --- the end of a step --- */

static enum driven step_fail(struct drive *d, const struct step *step, int64_t intended_ms,
                             const char *why, struct err *err)
{
    const struct intent *intent = request_intent(d->request, step->seq);
    enum driven undone = drive_undo(d, intent, false, err);
    if (undone == DRIVEN_ERROR) {
        return DRIVEN_ERROR;
    }
    if (undone == DRIVEN_STOPPED && stage_leaving(d->stage)) {
        return DRIVEN_STOPPED; /* the next attempt finds the intent, and the same failure */
    }
    const struct outcome *undo =
        undone != DRIVEN_STOPPED && d->told.n ? &d->told.list[d->told.n - 1] : NULL;
    step_tell(d, step, OUTCOME_FAILED, intended_ms, NULL, "%s; %s%s", why,
              undone == DRIVEN_ON ? "undone" : "not undone: ",
              undone == DRIVEN_ON ? ""
              : undo              ? undo->reason
                                  : "stopped");
    return DRIVEN_FAILED;
}

static const char *or_text(const char *text, const char *otherwise)
{
    return text[0] ? text : otherwise;
}

/* Tells what the last look has shown; `look`: why that failed, if it did. */
static enum driven step_conclude(struct drive *d, const struct step *step, int64_t intended_ms,
                                 const struct settle_report *report, const struct err *look,
                                 struct err *err)
{
    const struct settle_report r = *report;
    char why[800];
    switch (r.state) {
    case SETTLE_APPLIED:
        step_tell(d, step, OUTCOME_APPLIED, intended_ms, r.instance_now, NULL);
        return DRIVEN_ON;
    case SETTLE_PARTIAL:
        step_tell(d, step, OUTCOME_PARTIAL, intended_ms, r.instance_now, "%s",
                  or_text(r.detail, "some replicas are elsewhere"));
        return DRIVEN_ON;
    case SETTLE_MISSED:
        step_tell(d, step, OUTCOME_MISSED, intended_ms, r.instance_now, "%s",
                  or_text(r.detail, "ready on another host"));
        return DRIVEN_ON;
    case SETTLE_DISPLACED:
        step_tell(d, step, OUTCOME_DISPLACED, intended_ms, r.instance_now, "%s",
                  or_text(r.detail, "taken away again"));
        return DRIVEN_ON;
    case SETTLE_WAITING:
    case SETTLE_FAILED:
        break;
    }
    char limit[CLOCK_TEXT_SIZE];
    if (r.state == SETTLE_FAILED) {
        snprintf(why, sizeof why, "%s", or_text(r.detail, "did not get ready"));
    } else {
        snprintf(why, sizeof why, "not ready within %s: %s",
                 duration_text(d->request->ready_timeout_ms, limit),
                 look->kind ? look->text : or_text(r.detail, "no sign of it"));
    }
    return step_fail(d, step, intended_ms, why, err);
}

/* Waits and tells what came of it. */
static enum driven step_finish(struct drive *d, const struct step *step, int64_t intended_ms,
                               struct err *err)
{
    struct err look = ERR_INIT;
    struct settle_report r = ask_settle(d, step, &look);
    return step_conclude(d, step, intended_ms, &r, &look, err);
}

/* What the cluster shows of an intent; *view is the caller's to wipe. */
static int examine(struct drive *d, const struct step *step, const struct intent *intent,
                   enum resume *out, bool *arrived, struct view *view, struct err *err)
{
    struct settle_report report = {.state = SETTLE_WAITING};
    if (drive_inspect(d, view, err) < 0) {
        return -1;
    }
    if (d->orchestrator->marks && ask_report(d, step, &report, err) < 0) {
        view_wipe(view);
        return -1;
    }
    if (!step->instance) {
        *out = resume_service(d->orchestrator->marks, report.state, view->model,
                              model_service(view->model, step->service), step->targets,
                              step->n_targets);
        *arrived = *out == RESUME_APPLIED;
        return 0;
    }
    struct resume_facts facts = {.marks = d->orchestrator->marks, .report = report.state};
    int here = model_instance(view->model, intent->instance);
    const struct instance *x = here < 0 ? NULL : &view->model->instances[here];
    const char *on = x && x->host >= 0 ? view->model->hosts[x->host].name : NULL;
    facts.on_source = x && (intent->source ? on && strcmp(on, intent->source) == 0 : !on);
    resume_count(&facts, intent, view->model);
    *arrived = facts.target_now > facts.target_before;
    *out = resume_instance(&facts);
    return 0;
}

/* Asks until it is certain that the orchestrator has heard: DRIVEN_FLYING then. `ask`: nothing has
 * happened yet. */
static enum driven step_ask(struct drive *d, const struct step *step, const struct intent *intent,
                            int64_t intended_ms, struct err *err)
{
    int64_t start = clock_mono_ms(), until = start + d->request->ready_timeout_ms;
    for (bool ask = true;;) {
        struct err why = ERR_INIT;
        if (ask && ask_place(d, step, &why) == 0) {
            return DRIVEN_FLYING;
        }
        if (ask && ask_overtaken(&why)) {
            step_tell(d, step, OUTCOME_DISCARDED, intended_ms, NULL, "%s", why.text);
            return DRIVEN_ON;
        }
        if ((ask && !ask_unsure(&why)) || clock_mono_ms() >= until) {
            return step_fail(d, step, intended_ms, why.text, err);
        }
        ask_wait_for(d, ask_pause_ms(d, start));
        struct view view;
        enum resume resume;
        bool arrived;
        if (examine(d, step, intent, &resume, &arrived, &view, &why) < 0) {
            ask = false;
            continue;
        }
        view_wipe(&view);
        ask = resume == RESUME_ASK;
        if (!ask) {
            return DRIVEN_FLYING;
        }
    }
}

static enum driven step_ask_and_finish(struct drive *d, const struct step *step,
                                       const struct intent *intent, int64_t intended_ms,
                                       struct err *err)
{
    enum driven driven = step_ask(d, step, intent, intended_ms, err);
    return driven == DRIVEN_FLYING ? step_finish(d, step, intended_ms, err) : driven;
}

/* The intent, committed: DRIVEN_FLYING. */
static enum driven step_intend(struct drive *d, const struct step *step, const struct view *view,
                               const struct intent **out)
{
    struct err stopped = ERR_INIT;
    struct intent *intent = ask_intent_new(d, step);
    intent_count(intent, view->model, model_service(view->model, step->service));
    if (ask_intent(d, intent, &stopped) < 0) {
        if (!stage_leaving(d->stage)) { /* the intent may be committed; nothing was asked for */
            drive_discard(d, step, "plan stopped: stopped on request");
        }
        return DRIVEN_STOPPED;
    }
    *out = intent;
    return DRIVEN_FLYING;
}

enum driven drive_step(struct drive *d, const struct step *step, const struct view *view,
                       struct err *err)
{
    int64_t now = clock_wall_ms();
    const struct intent *intent;
    enum driven driven = step_intend(d, step, view, &intent);
    return driven == DRIVEN_FLYING ? step_ask_and_finish(d, step, intent, now, err) : driven;
}

/* --- moves side by side --- */

static struct replica_count *counts_copy(const struct replica_count *counts, size_t n)
{
    struct replica_count *copy = mem_array(n + 1, sizeof *copy);
    for (size_t i = 0; i < n; i++) {
        copy[i] = (struct replica_count){mem_strdup(counts[i].host), counts[i].count};
    }
    return copy;
}

static void counts_free(struct replica_count *counts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(counts[i].host);
    }
    free(counts);
}

/* Where the service's replicas are to be: its targets, or one more on the target. */
static void flight_after(struct flight *flight, const struct step *step,
                         const struct intent *intent)
{
    if (!step->instance) {
        flight->after = counts_copy(step->targets, step->n_targets);
        flight->n_after = step->n_targets;
        return;
    }
    struct replica_count one = {flight->step.target ? (char *)flight->step.target : NULL, 1};
    one.count += one.host ? intent_count_on(intent, one.host) : 0;
    flight->n_after = one.host ? 1 : 0;
    flight->after = counts_copy(&one, flight->n_after);
}

enum driven drive_intend(struct drive *d, const struct step *step, const struct view *view,
                         struct flight *out)
{
    int64_t now = clock_wall_ms();
    const struct intent *intent;
    enum driven driven = step_intend(d, step, view, &intent);
    if (driven != DRIVEN_FLYING) {
        return driven;
    }
    *out = (struct flight){.step = *step,
                           .intended_ms = now,
                           .before = counts_copy(intent->counts, intent->n_counts),
                           .n_before = intent->n_counts};
    out->step.service = mem_strdup(step->service);
    out->step.instance = mem_strdup(step->instance);
    out->step.source = mem_strdup(step->source);
    out->step.target = mem_strdup(step->target);
    flight_after(out, step, intent);
    out->step.targets = step->instance ? NULL : out->after;
    return DRIVEN_FLYING;
}

enum driven drive_ask(struct drive *d, struct flight *flight, struct err *err)
{
    const struct intent *intent = request_intent(d->request, flight->step.seq);
    flight->asked = true;
    enum driven driven = step_ask(d, &flight->step, intent, flight->intended_ms, err);
    struct ask_watch watch = ask_watch_begin(d);
    flight->start_ms = flight->looked_ms = watch.start_ms;
    flight->ask_ms = watch.ask_ms;
    flight->look_ms = watch.start_ms + ask_pause_ms(d, watch.start_ms);
    return driven;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

bool drive_is_due(struct drive *d, struct flight *flight)
{
    int64_t now = clock_mono_ms();
    if (d->cluster->rolls && d->cluster->rolls(d->cluster_ctx, flight->step.service)) {
        flight->rolled = true;
        return now - flight->looked_ms >= larger(d->request->poll_ms, ROLLING_MS) ||
               now - flight->start_ms >= d->request->ready_timeout_ms;
    }
    return flight->rolled || now >= flight->look_ms;
}

enum driven drive_look(struct drive *d, struct flight *flight, struct err *err)
{
    struct ask_watch watch = {flight->start_ms, flight->ask_ms};
    struct settle_report report;
    struct err look = ERR_INIT;
    bool final = ask_look(d, &flight->step, &watch, &report, &look);
    flight->ask_ms = watch.ask_ms;
    flight->rolled = false;
    flight->looked_ms = clock_mono_ms();
    flight->look_ms = flight->looked_ms + ask_pause_ms(d, flight->start_ms);
    return final ? step_conclude(d, &flight->step, flight->intended_ms, &report, &look, err)
                 : DRIVEN_FLYING;
}

void flight_wipe(struct flight *flight)
{
    counts_free(flight->before, flight->n_before);
    counts_free(flight->after, flight->n_after);
    free((void *)flight->step.service);
    free((void *)flight->step.instance);
    free((void *)flight->step.source);
    free((void *)flight->step.target);
    *flight = (struct flight){0};
}

void drive_recheck(struct drive *d, const struct outcome *applied)
{
    struct outcome o = outcome_copy(applied);
    const struct step step = {.seq = o.seq,
                              .service = o.service,
                              .instance = o.instance,
                              .source = o.source,
                              .target = o.target};
    struct settle_report r;
    struct err unknown = ERR_INIT;
    if (d->orchestrator->marks && ask_report(d, &step, &r, &unknown) == 0 &&
        r.state == SETTLE_DISPLACED) {
        step_tell(d, &step, OUTCOME_DISPLACED, o.intended_ms, r.instance_now, "%s",
                  or_text(r.detail, "taken away again"));
    }
    outcome_wipe(&o);
}

/* --- an intent of an earlier attempt --- */

/* The replica that the counts show to have arrived: one on the target that nobody knows. */
static const char *arrived_name(const struct view *view, const struct intent *intent)
{
    int service = model_service(view->model, intent->service);
    int target = intent->target ? model_host(view->model, intent->target) : -1;
    for (size_t i = 0; intent->instance && i < view->model->n_instances; i++) {
        const struct instance *x = &view->model->instances[i];
        if (x->service == service && x->host == target && view->planned_of[i] < 0) {
            return x->name;
        }
    }
    return NULL;
}

static enum driven resume_begin(struct drive *d, const struct step *step,
                                const struct intent *intent, const struct view *view, bool again,
                                struct err *err)
{
    struct verdict v = {MOVE_VALID, "the executor was restarted before it began"};
    if (again && step->instance) {
        v = validate_instance(view->model, model_instance(view->model, step->instance),
                              step->source, step->target, d->request->move_stateful);
    }
    if (!again || v.kind != MOVE_VALID) {
        drive_discard(d, step, v.why);
        return DRIVEN_ON;
    }
    return step_ask_and_finish(d, step, intent, -1, err);
}

static enum driven resume_by(struct drive *d, const struct step *step, const struct intent *intent,
                             const struct view *view, enum resume resume, bool arrived, bool again,
                             struct err *err)
{
    switch (resume) {
    case RESUME_SETTLED:
    case RESUME_WAIT:
        return step_finish(d, step, -1, err);
    case RESUME_APPLIED:
        step_tell(d, step, OUTCOME_APPLIED, -1, arrived_name(view, intent), NULL);
        return DRIVEN_ON;
    case RESUME_ASK:
        return arrived ? step_ask_and_finish(d, step, intent, -1, err)
                       : resume_begin(d, step, intent, view, again, err);
    case RESUME_GONE:
        drive_discard(d, step, "the replica is neither on its source nor on its target");
        return DRIVEN_ON;
    }
    return DRIVEN_ON;
}

enum driven drive_resume(struct drive *d, const struct intent *intent,
                         const struct replica_count *targets, size_t n_targets, bool again,
                         struct err *err)
{
    const struct step step = {.seq = intent->seq,
                              .service = intent->service,
                              .instance = intent->instance,
                              .source = intent->source,
                              .target = intent->target,
                              .targets = targets,
                              .n_targets = n_targets,
                              .detour = intent->detour};
    struct view view;
    enum resume resume;
    bool arrived;
    if (examine(d, &step, intent, &resume, &arrived, &view, err) < 0) {
        return DRIVEN_ERROR;
    }
    enum driven driven = resume_by(d, &step, intent, &view, resume, arrived, again, err);
    view_wipe(&view);
    return driven;
}
