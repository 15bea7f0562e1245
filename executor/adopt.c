/* adopt.c - a leader whose store knows nothing deals with what an earlier one left (interfaces.md
 * 1.9 rule 15): the cluster bears a mark of each move with what its undo needs. A move that came to
 * its end stays; one that failed, or does not get ready, is put back. Nothing is begun before. */
#include <stdlib.h>
#include <string.h>

#include "executor/keep_internal.h"
#include "model/base/clock.h"

#define LIST_TRIES 30 /* two seconds apart: an API server that comes up */

struct orphan {                 /* a move that nobody remembers */
    struct placement placement; /* its strings and counts are owned here */
    char *app, *saved;
    int64_t at_ms;
    bool undoing;
};

struct adoption {
    void *orchestrator;
    struct orphan *list;
    size_t n;
    bool listed;
    int tries;
    size_t stay;     /* moves that came to their end */
    const char *app; /* while it lists */
    const struct kept *kept;
};

static void orphan_wipe(struct orphan *o)
{
    struct placement_count *counts = (void *)(uintptr_t)o->placement.targets;
    for (size_t i = 0; i < o->placement.n_targets; i++)
        free((char *)(uintptr_t)counts[i].host);
    free(counts);
    free((char *)(uintptr_t)o->placement.service);
    free((char *)(uintptr_t)o->placement.instance);
    free((char *)(uintptr_t)o->placement.source);
    free((char *)(uintptr_t)o->placement.target);
    free(o->app);
    free(o->saved);
}

void kept_adopt_end(struct kept *kept)
{
    struct adoption *a = kept->adoption;
    kept->adoption = NULL;
    if (!a)
        return;
    if (a->orchestrator)
        kept->orchestrator->close(a->orchestrator);
    for (size_t i = 0; i < a->n; i++)
        orphan_wipe(&a->list[i]);
    free(a->list);
    free(a);
}

static void take_mark(void *arg, const struct keeper_mark *mark)
{
    struct adoption *a = arg;
    if (kept_knows(a->kept, mark))
        return; /* whoever began it goes on with it */
    const struct placement *p = &mark->placement;
    struct placement_count *counts = mem_array(p->n_targets + 1, sizeof *counts);
    for (size_t i = 0; i < p->n_targets; i++)
        counts[i] = (struct placement_count){mem_strdup(p->targets[i].host), p->targets[i].count};
    *ARRAY_PUSH(a->list, a->n) = (struct orphan){.placement = {.cycle = p->cycle,
                                                               .seq = p->seq,
                                                               .service = mem_strdup(p->service),
                                                               .instance = mem_strdup(p->instance),
                                                               .source = mem_strdup(p->source),
                                                               .target = mem_strdup(p->target),
                                                               .targets = counts,
                                                               .n_targets = p->n_targets},
                                                 .app = mem_strdup(a->app),
                                                 .saved = mem_strdup(mark->saved),
                                                 .at_ms = mark->at_ms};
}

/* Tells the people of remap and those of the cluster, and forgets it. */
static void orphan_end(struct kept *kept, size_t at, const char *state, const char *text, bool bad)
{
    struct adoption *a = kept->adoption;
    struct orphan *o = &a->list[at];
    AUTO_FREE char *line =
        mem_printf("%s: move %lld/%lld of an earlier daemon %s", o->placement.service,
                   (long long)o->placement.cycle, (long long)o->placement.seq, text);
    const struct announcement what = {.cycle = o->placement.cycle,
                                      .seq = o->placement.seq,
                                      .service = o->placement.service,
                                      .instance = o->placement.instance,
                                      .target = o->placement.target,
                                      .state = state,
                                      .reason = text,
                                      .bad = bad};
    kept_say(kept, o->app, "adopted", line);
    kept_tell(kept, &what);
    orphan_wipe(o);
    memmove(o, o + 1, (--a->n - at) * sizeof *o);
}

/* It came to its end, wherever: nothing to be done, and nothing that would have to be told of each.
 */
static void orphan_stays(struct adoption *a, size_t at)
{
    orphan_wipe(&a->list[at]);
    memmove(&a->list[at], &a->list[at + 1], (--a->n - at) * sizeof *a->list);
    a->stay++;
}

static void orphan_undo(struct kept *kept, size_t at, const char *why)
{
    struct adoption *a = kept->adoption;
    struct orphan *o = &a->list[at];
    struct err err = ERR_INIT;
    if (kept->orchestrator->undo(a->orchestrator, &o->placement, o->saved, &err) == 0) {
        AUTO_FREE char *text = mem_printf("put back: %s", why);
        orphan_end(kept, at, "undone", text, false);
    } else if (err.kind != ERR_UNREACHABLE && err.kind != ERR_TIMEOUT && err.kind != ERR_IO) {
        AUTO_FREE char *text = mem_printf("left as it is: %s; %s", why, err.text);
        orphan_end(kept, at, "failed", text, true);
    } /* else: the next turn tries again */
}

/* One look at one orphan; it is gone from the list when nothing more is to be done. */
static void orphan_step(struct kept *kept, size_t at)
{
    struct adoption *a = kept->adoption;
    struct orphan *o = &a->list[at];
    struct settle_report report = {.state = SETTLE_WAITING};
    struct err err = ERR_INIT;
    if (kept->orchestrator->settled(a->orchestrator, &o->placement, &report, &err) < 0) {
        if (err.kind == ERR_NOT_FOUND)
            orphan_stays(a, at);
        return;
    }
    char why[240];
    switch (report.state) {
    case SETTLE_APPLIED:
    case SETTLE_PARTIAL:
    case SETTLE_MISSED:
    case SETTLE_DISPLACED:
        orphan_stays(a, at);
        break;
    case SETTLE_FAILED:
        snprintf(why, sizeof why, "it failed: %s", report.detail);
        orphan_undo(kept, at, why);
        break;
    case SETTLE_WAITING:
        if (clock_wall_ms() - o->at_ms >= kept->adopt_ms) {
            snprintf(why, sizeof why, "it did not get ready: %s", report.detail);
            orphan_undo(kept, at, why);
        }
        break;
    }
}

static int list_marks(struct kept *kept, struct err *err)
{
    struct adoption *a = kept->adoption;
    for (size_t i = 0; i < kept->n_apps; i++) {
        a->app = kept->apps[i].scope.name;
        if (kept->orchestrator->keeper->marks(kept->ctx, &kept->apps[i].scope, take_mark, a, err) <
            0)
            return -1;
    }
    return 0;
}

static bool adoption_start(struct kept *kept)
{
    struct adoption *a = kept->adoption;
    struct err err = ERR_INIT;
    for (; a->n > 0; a->n--)
        orphan_wipe(&a->list[a->n - 1]);
    if (list_marks(kept, &err) == 0) {
        a->listed = true;
        if (a->n == 0 || kept->orchestrator->open(&kept->source, &a->orchestrator, &err) == 0) {
            if (a->orchestrator && kept->orchestrator->attach)
                kept->orchestrator->attach(a->orchestrator, kept->ctx);
            return true;
        }
        a->listed = false;
    }
    if (++a->tries >= LIST_TRIES) { /* moves are not held up for ever by what cannot be read */
        AUTO_FREE char *text = mem_printf("marks of earlier daemons were not read: %s", err.text);
        kept_say(kept, NULL, "adopted", text);
        for (; a->n > 0; a->n--)
            orphan_wipe(&a->list[a->n - 1]);
        a->listed = true;
        return true;
    }
    return false;
}

bool kept_adopt(struct kept *kept)
{
    if (!kept->orchestrator->keeper->marks || !kept->configured)
        return true;
    if (!kept->adoption) {
        kept->adoption = mem_alloc(sizeof *kept->adoption);
        kept->adoption->kept = kept;
    }
    struct adoption *a = kept->adoption;
    if (!a->listed && !adoption_start(kept))
        return false;
    for (size_t i = a->n; i-- > 0;)
        orphan_step(kept, i);
    if (a->n > 0)
        return false;
    if (a->stay > 0) {
        AUTO_FREE char *text = mem_printf("%zu moves of an earlier daemon are done", a->stay);
        kept_say(kept, NULL, "adopted", text);
    }
    kept_adopt_end(kept);
    return true;
}
