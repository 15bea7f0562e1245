/* drive.c - see drive.h. Every change of the cluster is asked for behind a committed intent, and
 * asking again is decided by what the cluster shows, never by memory (design.md 3). */
#include "executor/drive.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "executor/resume.h"
#include "executor/validate.h"
#include "model/base/clock.h"

#define INSPECT_TRIES 3 /* before the request fails; the engine repeats it three times as well */
/* An orchestrator that knows marks is asked again this often within the time to get ready: one that
 * forgot gets a second chance, the others lose nothing. */
#define ASK_SHARES 4

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
    if (d->orchestrator->open(&request->orchestrator, &d->orchestrator_ctx, err) < 0) {
        d->cluster->close(d->cluster_ctx);
        return -1;
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
        if (why.kind != ERR_UNREACHABLE || try == INSPECT_TRIES) {
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
    *ARRAY_PUSH(d->told.list, d->told.n) = outcome;
    if (outcome.instance && outcome.instance_now && outcome.instance_now[0]) {
        lineage_rename(&d->lineage, outcome.instance, outcome.instance_now);
    }
    (void)stage_progress(d->stage, ++d->work, members.data, &stopped); /* the plan asks for stop */
}

static struct outcome outcome_of(const struct step *step, enum outcome_state state,
                                 const char *fmt, va_list args)
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

/* --- asking and waiting --- */

static struct placement placement_of(const struct drive *d, const struct step *step,
                                     struct placement_count *counts)
{
    for (size_t i = 0; i < step->n_targets; i++) {
        counts[i] = (struct placement_count){step->targets[i].host, step->targets[i].count};
    }
    return (struct placement){.cycle = d->request->cycle,
                              .seq = step->seq,
                              .service = step->service,
                              .instance = step->instance,
                              .source = step->source,
                              .target = step->target,
                              .targets = counts,
                              .n_targets = step->n_targets};
}

/* Sends the intent and keeps it. -1: stopped, or *err of another kind. */
static int intent_commit(struct drive *d, const struct intent *intent, struct err *err)
{
    AUTO_BUF struct buf body = BUF_INIT;
    intent_encode(intent, &body);
    return stage_intent(d->stage, intent->seq, body.data, body.size, err);
}

/* What the undo needs is known only now: the intent is committed once more with it. */
static int intent_save(struct drive *d, int64_t seq, char *saved, struct err *err)
{
    for (size_t i = 0; saved && i < d->request->n_base; i++) {
        struct intent *intent = d->request->base[i];
        if (intent->seq == seq) {
            free(intent->saved);
            intent->saved = saved;
            return intent_commit(d, intent, err);
        }
    }
    free(saved);
    return 0;
}

/* May the call have had an effect although it failed? */
static bool unsure(const struct err *err)
{
    return err->kind == ERR_UNREACHABLE || err->kind == ERR_TIMEOUT || err->kind == ERR_IO;
}

/* Somebody was faster: nothing was changed, the move is invalid and the plan goes on. */
static bool overtaken(const struct err *err)
{
    return err->kind == ERR_CONFLICT || err->kind == ERR_NOT_FOUND;
}

static int place_once(struct drive *d, const struct step *step, struct err *err)
{
    char *saved = NULL;
    AUTO_FREE struct placement_count *counts = mem_array(step->n_targets + 1, sizeof *counts);
    struct placement placement = placement_of(d, step, counts);
    if (d->orchestrator->place(d->orchestrator_ctx, &placement, &saved, err) < 0) {
        free(saved);
        return -1;
    }
    struct err unsaved = ERR_INIT; /* `stop`: the move is finished all the same, saved or not */
    (void)intent_save(d, step->seq, saved, &unsaved);
    return 0;
}

static int report_once(struct drive *d, const struct step *step, struct settle_report *out,
                       struct err *err)
{
    AUTO_FREE struct placement_count *counts = mem_array(step->n_targets + 1, sizeof *counts);
    struct placement placement = placement_of(d, step, counts);
    *out = (struct settle_report){.state = SETTLE_WAITING};
    return d->orchestrator->settled(d->orchestrator_ctx, &placement, out, err);
}

static void drive_beat(struct drive *d)
{
    struct err stopped = ERR_INIT;
    (void)stage_progress(d->stage, d->work, NULL, &stopped);
    stage_wait_through(d->stage, d->request->poll_ms);
}

/* Looks until the orchestrator says something final or the time is over (SETTLE_WAITING or
 * SETTLE_PARTIAL then). *err: why the last look failed, if it did. */
static struct settle_report settle(struct drive *d, const struct step *step, struct err *err)
{
    int64_t start = clock_mono_ms(), timeout = d->request->ready_timeout_ms;
    int64_t ask_ms = start + timeout / ASK_SHARES;
    struct settle_report report;
    for (;;) {
        struct err why = ERR_INIT;
        if (report_once(d, step, &report, &why) < 0) {
            report = (struct settle_report){.state = SETTLE_WAITING};
        }
        *err = why;
        bool waiting = report.state == SETTLE_WAITING || report.state == SETTLE_PARTIAL;
        int64_t now = clock_mono_ms();
        if (!waiting || now - start >= timeout) {
            return report;
        }
        if (d->orchestrator->marks && report.state == SETTLE_WAITING && now >= ask_ms) {
            struct err ignored = ERR_INIT; /* the next look tells more */
            (void)place_once(d, step, &ignored);
            ask_ms = now + timeout / ASK_SHARES;
        }
        drive_beat(d);
    }
}

/* --- the end of a step --- */

static enum driven step_fail(struct drive *d, const struct step *step, int64_t intended_ms,
                             const char *why, struct err *err)
{
    const struct intent *intent = request_intent(d->request, step->seq);
    enum driven undone = drive_undo(d, intent, err);
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
              undone == DRIVEN_ON ? "" : undo ? undo->reason : "stopped");
    return DRIVEN_FAILED;
}

static const char *or_text(const char *text, const char *otherwise)
{
    return text[0] ? text : otherwise;
}

/* Waits and tells what came of it. */
static enum driven step_finish(struct drive *d, const struct step *step, int64_t intended_ms,
                               struct err *err)
{
    struct err look = ERR_INIT;
    char why[800];
    struct settle_report r = settle(d, step, &look);
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
                 look.kind ? look.text : or_text(r.detail, "no sign of it"));
    }
    return step_fail(d, step, intended_ms, why, err);
}

/* What the cluster shows of an intent; *view is the caller's to wipe. */
static int examine(struct drive *d, const struct step *step, const struct intent *intent,
                   enum resume *out, bool *arrived, struct view *view, struct err *err)
{
    struct settle_report report = {.state = SETTLE_WAITING};
    if (drive_inspect(d, view, err) < 0) {
        return -1;
    }
    if (d->orchestrator->marks && report_once(d, step, &report, err) < 0) {
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

/* Asks until it is certain that the orchestrator has heard. `ask`: nothing has happened yet. */
static enum driven step_ask(struct drive *d, const struct step *step, const struct intent *intent,
                            int64_t intended_ms, struct err *err)
{
    int64_t until = clock_mono_ms() + d->request->ready_timeout_ms;
    for (bool ask = true;;) {
        struct err why = ERR_INIT;
        if (ask && place_once(d, step, &why) == 0) {
            return step_finish(d, step, intended_ms, err);
        }
        if (ask && overtaken(&why)) {
            step_tell(d, step, OUTCOME_DISCARDED, intended_ms, NULL, "%s", why.text);
            return DRIVEN_ON;
        }
        if ((ask && !unsure(&why)) || clock_mono_ms() >= until) {
            return step_fail(d, step, intended_ms, why.text, err);
        }
        drive_beat(d);
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
            return step_finish(d, step, intended_ms, err);
        }
    }
}

/* A new intent of a step, kept in the base. */
static struct intent *intent_new(struct drive *d, const struct step *step)
{
    struct intent *intent = mem_alloc(sizeof *intent);
    *ARRAY_PUSH(d->request->base, d->request->n_base) = intent;
    *intent = (struct intent){.seq = step->seq,
                              .service = mem_strdup(step->service),
                              .instance = mem_strdup(step->instance),
                              .source = mem_strdup(step->source),
                              .target = mem_strdup(step->target),
                              .undo_of = -1,
                              .detour = step->detour};
    return intent;
}

void drive_assume(struct drive *d, const struct step *step)
{
    intent_new(d, step);
}

enum driven drive_step(struct drive *d, const struct step *step, const struct view *view,
                       struct err *err)
{
    struct err stopped = ERR_INIT;
    int64_t now = clock_wall_ms();
    struct intent *intent = intent_new(d, step);
    intent_count(intent, view->model, model_service(view->model, step->service));
    if (intent_commit(d, intent, &stopped) < 0) {
        if (!stage_leaving(d->stage)) { /* the intent may be committed; nothing was asked for */
            drive_discard(d, step, "plan stopped: stopped on request");
        }
        return DRIVEN_STOPPED;
    }
    return step_ask(d, step, intent, now, err);
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
    if (d->orchestrator->marks && report_once(d, &step, &r, &unknown) == 0 &&
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
    return step_ask(d, step, intent, -1, err);
}

static enum driven resume_by(struct drive *d, const struct step *step,
                             const struct intent *intent, const struct view *view,
                             enum resume resume, bool arrived, bool again, struct err *err)
{
    switch (resume) {
    case RESUME_SETTLED:
    case RESUME_WAIT:
        return step_finish(d, step, -1, err);
    case RESUME_APPLIED:
        step_tell(d, step, OUTCOME_APPLIED, -1, arrived_name(view, intent), NULL);
        return DRIVEN_ON;
    case RESUME_ASK:
        return arrived ? step_ask(d, step, intent, -1, err)
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

/* --- undo --- */

static int undo_once(struct drive *d, const struct intent *intent, struct err *err)
{
    struct placement placement = {.cycle = d->request->cycle,
                                  .seq = intent->seq,
                                  .service = intent->service,
                                  .instance = intent->instance,
                                  .source = intent->source,
                                  .target = intent->target};
    return d->orchestrator->undo(d->orchestrator_ctx, &placement, intent->saved, err);
}

/* 1: it is back (and where its name is known, *now); 0: not yet. */
static int undo_look(struct drive *d, const struct intent *intent, char **now, struct err *err)
{
    const struct step step = {.seq = intent->seq,
                              .service = intent->service,
                              .instance = intent->instance,
                              .source = intent->source,
                              .target = intent->target};
    struct settle_report report;
    struct view view;
    if (report_once(d, &step, &report, err) == 0 && d->orchestrator->marks &&
        report.state == SETTLE_APPLIED) {
        *now = report.instance_now[0] ? mem_strdup(report.instance_now) : NULL;
        return 1;
    }
    if (drive_inspect(d, &view, err) < 0) {
        return 0;
    }
    int back = resume_is_back(intent, view.model);
    if (back && intent->instance && model_instance(view.model, intent->instance) >= 0) {
        *now = mem_strdup(intent->instance);
    }
    view_wipe(&view);
    return back;
}

/* 0: back. -1: refused, or not back in time. */
static int undo_wait(struct drive *d, const struct intent *intent, char **now, struct err *err)
{
    int64_t until = clock_mono_ms() + d->request->ready_timeout_ms;
    char limit[CLOCK_TEXT_SIZE];
    for (bool asked = false;;) {
        struct err why = ERR_INIT;
        if (!asked && undo_once(d, intent, &why) < 0 && !unsure(&why)) {
            *err = why;
            return -1;
        }
        asked |= why.kind == ERR_NONE;
        if (asked && undo_look(d, intent, now, &why) == 1) {
            return 0;
        }
        if (clock_mono_ms() >= until) {
            return err_set(err, ERR_TIMEOUT, "not back within %s%s%s",
                           duration_text(d->request->ready_timeout_ms, limit),
                           why.kind ? ": " : "", why.kind ? why.text : "");
        }
        drive_beat(d);
    }
}

/* The replica that the orchestrator would put back has moved on since (a detour, or somebody else):
 * what it has become is moved to where it was, as any other move. */
static int undo_by_move(struct drive *d, const struct step *back, char **now, struct err *err)
{
    int64_t until = clock_mono_ms() + d->request->ready_timeout_ms;
    while (place_once(d, back, err) < 0) {
        if (!unsure(err) || clock_mono_ms() >= until) {
            return -1;
        }
        drive_beat(d);
    }
    struct err look = ERR_INIT;
    struct settle_report r = settle(d, back, &look);
    if (r.state != SETTLE_APPLIED) {
        return err_set(err, ERR_TIMEOUT, "%s", r.detail[0] ? r.detail : "not back in time");
    }
    *now = r.instance_now[0] ? mem_strdup(r.instance_now) : NULL;
    return 0;
}

/* The undo of an earlier attempt that has no outcome keeps its seq. */
static int64_t undo_seq(struct drive *d, int64_t of)
{
    for (size_t i = 0; i < d->request->n_base; i++) {
        const struct intent *intent = d->request->base[i];
        if (intent->undo_of == of && !outcomes_find(&d->request->done, intent->seq) &&
            !outcomes_find(&d->told, intent->seq)) {
            return intent->seq;
        }
    }
    return d->next_seq++;
}

static const char *renamed(const struct outcomes *outcomes, const char *name)
{
    for (size_t i = outcomes->n; i > 0; i--) {
        const struct outcome *o = &outcomes->list[i - 1];
        if (o->instance && o->instance_now && strcmp(o->instance, name) == 0 &&
            strcmp(o->instance_now, name) != 0) {
            return o->instance_now;
        }
    }
    return NULL;
}

/* What the moved replica is called now, after all its moves. */
static const char *moved_name(const struct drive *d, const struct intent *intent)
{
    const char *name = intent->instance;
    for (size_t left = d->told.n + d->request->done.n; name && left > 0; left--) {
        const char *next = renamed(&d->told, name);
        next = next ? next : renamed(&d->request->done, name);
        if (!next) {
            break;
        }
        name = next;
    }
    return name;
}

enum driven drive_undo(struct drive *d, const struct intent *intent, struct err *err)
{
    AUTO_FREE char *name = mem_strdup(moved_name(d, intent));
    const struct step back = {.seq = undo_seq(d, intent->seq),
                              .service = intent->service,
                              .instance = name,
                              .source = intent->target,
                              .target = intent->source};
    struct view view;
    struct err why = ERR_INIT;
    int64_t now = clock_wall_ms();
    if (drive_inspect(d, &view, err) < 0) {
        return DRIVEN_ERROR;
    }
    struct intent *undo = intent_new(d, &back);
    undo->undo_of = intent->seq;
    intent_count(undo, view.model, model_service(view.model, back.service));
    view_wipe(&view);
    if (intent_commit(d, undo, &why) < 0) {
        return DRIVEN_STOPPED;
    }
    char *instance_now = NULL;
    int done = undo_wait(d, intent, &instance_now, &why);
    if (done < 0 && overtaken(&why) && name && intent->source && d->orchestrator->marks) {
        why = (struct err)ERR_INIT;
        done = undo_by_move(d, &back, &instance_now, &why);
    }
    struct outcome o = {.seq = back.seq,
                        .state = done < 0 ? OUTCOME_FAILED : OUTCOME_APPLIED,
                        .reason = done < 0 ? mem_strdup(why.text) : NULL,
                        .service = mem_strdup(intent->service),
                        .instance = steal(name),
                        .instance_now = instance_now,
                        .source = mem_strdup(intent->target),
                        .target = mem_strdup(intent->source),
                        .intended_ms = now,
                        .settled_ms = clock_wall_ms(),
                        .undo_of = intent->seq};
    drive_tell(d, o);
    return done < 0 ? DRIVEN_FAILED : DRIVEN_ON;
}
