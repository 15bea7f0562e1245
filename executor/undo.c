/* undo.c - a move put back (§6.5): by the orchestrator, who knows its mark; or, when the replica
 * has moved on since, by moving what it has become. */
#include <stdlib.h>
#include <string.h>
#include "executor/ask.h"
#include "executor/resume.h"
#include "model/base/clock.h"

void drive_assume(struct drive *d, const struct step *step)
{
    ask_intent_new(d, step);
}

static int undo_once(struct drive *d, const struct intent *intent, struct err *err)
{
    struct placement placement = {.cycle = d->request->cycle,
                                  .seq = intent->seq,
                                  .service = intent->service,
                                  .instance = intent->instance,
                                  .source = intent->source,
                                  .target = intent->target};
    return kept_may_write(d->kept, err) < 0
               ? -1
               : d->orchestrator->undo(d->orchestrator_ctx, &placement, intent->saved, err);
}

/* Does the cluster show it where it was (and under its old name: *now)? `moved` is what the replica
 * became by the move, NULL where unknown: while that one is there, the counts cannot mean this one
 * (another replica of the service may be back before it). */
static bool undo_seen(struct drive *d, const struct intent *intent, const char *moved, char **now,
                      struct err *err)
{
    struct view view;
    if (drive_inspect(d, &view, err) < 0) {
        return false;
    }
    int still = moved && intent->instance && strcmp(moved, intent->instance) != 0
                    ? model_instance(view.model, moved)
                    : -1;
    bool back = still < 0 && resume_is_back(intent, view.model);
    if (back && intent->instance && model_instance(view.model, intent->instance) >= 0) {
        *now = mem_strdup(intent->instance);
    }
    view_wipe(&view);
    return back;
}

/* Is it back (and where its name is known, *now)? */
static bool undo_look(struct drive *d, const struct intent *intent, const char *moved, char **now,
                      struct err *err)
{
    const struct step step = {.seq = intent->seq,
                              .service = intent->service,
                              .instance = intent->instance,
                              .source = intent->source,
                              .target = intent->target};
    struct settle_report report;
    if (ask_report(d, &step, &report, err) == 0 && d->orchestrator->marks &&
        report.state == SETTLE_APPLIED) {
        *now = report.instance_now[0] ? mem_strdup(report.instance_now) : NULL;
        return true;
    }
    return undo_seen(d, intent, moved, now, err);
}

/* 0: back. -1: refused, or not back in time. */
static int undo_wait(struct drive *d, const struct intent *intent, const char *moved, char **now,
                     struct err *err)
{
    int64_t until = clock_mono_ms() + d->request->ready_timeout_ms;
    char limit[CLOCK_TEXT_SIZE];
    for (bool asked = false;;) {
        struct err why = ERR_INIT;
        if (!asked && undo_once(d, intent, &why) < 0 && !ask_unsure(&why)) {
            *err = why;
            return -1;
        }
        asked |= why.kind == ERR_NONE;
        if (asked && undo_look(d, intent, moved, now, &why)) {
            return 0;
        }
        if (clock_mono_ms() >= until) {
            return err_set(err, ERR_TIMEOUT, "not back within %s%s%s",
                           duration_text(d->request->ready_timeout_ms, limit), why.kind ? ": " : "",
                           why.kind ? why.text : "");
        }
        ask_wait(d);
    }
}

/* The replica that the orchestrator would put back has moved on since (a detour, or somebody else):
 * what it has become is moved to where it was, as any other move. */
static int undo_by_move(struct drive *d, const struct step *back, char **now, struct err *err)
{
    int64_t until = clock_mono_ms() + d->request->ready_timeout_ms;
    while (ask_place(d, back, err) < 0) {
        if (!ask_unsure(err) || clock_mono_ms() >= until) {
            return -1;
        }
        ask_wait(d);
    }
    struct err look = ERR_INIT;
    struct settle_report r = ask_settle(d, back, &look);
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

enum driven drive_undo(struct drive *d, const struct intent *intent, bool others_follow,
                       struct err *err)
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
    struct intent *undo = ask_intent_new(d, &back);
    undo->undo_of = intent->seq;
    intent_count(undo, view.model, model_service(view.model, back.service));
    view_wipe(&view);
    if (ask_intent(d, undo, &why) < 0) {
        return DRIVEN_STOPPED;
    }
    char *instance_now = NULL;
    int done = undo_wait(d, intent, name, &instance_now, &why);
    struct err unseen = ERR_INIT;
    if (done < 0 && undo_seen(d, intent, name, &instance_now, &unseen)) {
        done = 0; /* what was refused had nothing to change: the move has not left its source */
    }
    if (done < 0 && ask_overtaken(&why) && name && intent->source && d->orchestrator->marks) {
        why = (struct err)ERR_INIT;
        done = undo_by_move(d, &back, &instance_now, &why);
    }
    if (done < 0 && others_follow && why.kind == ERR_REFUSED) {
        return DRIVEN_LATER;
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
