/* exhaust.c - depth-first trial of all placements (Eq. 3-5 and the rules as constraints only). */
#include "planner/exhaust.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* About 0.3 µs each: half a second in all, and every document of a dozen instances is decided. */
#define MAX_NODES 1500000
/* Deeper than this the nodes never suffice; it also bounds the stack: 64 frames of 100 bytes. */
#define MAX_DEPTH 64

struct trial {
    struct place *place;
    const struct plan_options *options;
    struct effort *effort;
    int order[MAX_DEPTH]; /* movable instances, largest first */
    int n;
    int64_t nodes;
    bool open; /* given up */
    int *best_at; /* the best so far, when all are wanted; else NULL */
    struct value *best;
    double top; /* highest score seen; *best may be 1e-9 below, with fewer hosts */
};

static int by_size(const void *left, const void *right, void *ctx)
{
    const struct space *space = ctx;
    int i = *(const int *)left, j = *(const int *)right;
    double a = space_size(space, i), b = space_size(space, j);
    return a != b ? (a > b ? -1 : 1) : i - j;
}

/* More instances never mend it: the host is above capacity, and not by its own old ones alone. */
static bool spoiled(const struct place *place, int host)
{
    const struct space *space = place->space;
    bool over = false, came = space->strict;
    for (int d = 0; d < space->dims; d++)
        over |= place->used[host * space->dims + d] > space->cap[host * space->dims + d];
    for (int k = 0; over && !came && k < place->n_residents[host]; k++)
        came = space->start[place->residents[host][k]] != host;
    return over && came;
}

/* True when the search is over. */
static bool leaf(struct trial *t)
{
    struct value value = value_of(t->place, t->options);
    if (!t->best || !value.valid)
        return value.valid;
    value.score = place_score_exact(t->place); /* no drift over a million moves */
    t->top = value.score > t->top ? value.score : t->top;
    if (!t->best->valid || value_better(&value, t->best)) {
        *t->best = value;
        memcpy(t->best_at, t->place->at, sizeof *t->best_at * (size_t)t->place->space->n);
    }
    return false;
}

static bool try_from(struct trial *t, int depth)
{
    struct place *place = t->place;
    const struct space *space = place->space;
    if (depth == t->n)
        return leaf(t);
    int i = t->order[depth];
    for (int h = 0; h < space->n_hosts && !t->open; h++) {
        if (!space->open[h] && space->start[i] != h)
            continue;
        if (++t->nodes > MAX_NODES || effort_spend(t->effort, 1)) {
            t->open = true;
            break;
        }
        place_move(place, i, h);
        bool late = place->n_moved > place_budget(space, t->options);
        if (!late && !spoiled(place, h) && try_from(t, depth + 1))
            return true;
        place_move(place, i, -1);
    }
    return false;
}

/* Nothing movable is placed afterwards; what was at each instance's place goes to `before`. */
static bool trial_open(struct trial *t)
{
    const struct space *space = t->place->space;
    if (space->n_movable > MAX_DEPTH || t->effort->cut)
        return false;
    for (int k = 0; k < space->n_movable; k++)
        t->order[t->n++] = space->movable[k];
    qsort_r(t->order, (size_t)t->n, sizeof *t->order, by_size, (void *)(uintptr_t)space);
    place_set(t->place, space->start);
    for (int k = 0; k < t->n; k++)
        place_move(t->place, t->order[k], -1);
    return true;
}

enum exhaust_verdict exhaust(struct place *place, const struct plan_options *options,
                             struct effort *effort)
{
    struct trial t = {.place = place, .options = options, .effort = effort};
    AUTO_FREE int *before = mem_dup(place->at, sizeof *before * (size_t)place->space->n);
    if (trial_open(&t) && try_from(&t, 0))
        return EXHAUST_FOUND;
    place_set(place, before);
    return t.open || t.n < place->space->n_movable ? EXHAUST_OPEN : EXHAUST_NONE;
}

enum exhaust_verdict exhaust_best(struct place *place, const struct plan_options *options,
                                  struct effort *effort, int *best_at, struct value *best,
                                  double *top)
{
    const struct space *space = place->space;
    struct trial t = {.place = place, .options = options, .effort = effort,
                      .best_at = best_at, .best = best, .top = -INFINITY};
    double all = 1;
    for (int k = 0; k < space->n_movable && all <= MAX_NODES; k++)
        all *= space->n_hosts;
    if (all > MAX_NODES)
        return EXHAUST_OPEN;
    AUTO_FREE int *before = mem_dup(place->at, sizeof *before * (size_t)space->n);
    if (!trial_open(&t))
        return EXHAUST_OPEN;
    try_from(&t, 0);
    place_set(place, before);
    if (t.open)
        return EXHAUST_OPEN;
    *top = t.top;
    return best->valid ? EXHAUST_FOUND : EXHAUST_NONE;
}
