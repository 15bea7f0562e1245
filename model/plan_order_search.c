/* plan_order_search.c - an order for few moves where taking the first possible one each time came to
 * a stop. Taking a move early can fill the room that another needed first; which moves are done
 * decides what fits, so each set of done moves is looked at once, depth first. */
#include <stdlib.h>
#include <string.h>

#include "model/plan_internal.h"

/* 2^20 sets are 128 KiB of marks; at about 0.1 µs per look, 20 · 2^20 looks would take 2 s, hence the
 * bound on looks: a tenth of a second. */
#define MAX_MOVES 20
#define MAX_LOOKS 1000000

struct order_search {
    struct plan_walk *walk;
    const struct move *moves;
    size_t n;
    unsigned char *seen; /* a bit per set of done moves */
    size_t order[MAX_MOVES];
    long looks;
};

static bool first_look(struct order_search *s, unsigned done)
{
    unsigned char bit = (unsigned char)(1u << (done & 7u));

    if (s->seen[done >> 3] & bit)
        return false;
    s->seen[done >> 3] |= bit;
    return true;
}

/* Recursion is at most MAX_MOVES deep. */
static bool search_from(struct order_search *s, unsigned done, size_t depth)
{
    if (depth == s->n)
        return true;
    for (size_t i = 0; i < s->n && s->looks < MAX_LOOKS; i++) {
        const struct move *move = &s->moves[i];
        int refuser;
        if ((done & 1u << i) || !first_look(s, done | 1u << i))
            continue;
        s->looks++;
        if (plan_walk_problem(s->walk, move, &refuser)) {
            s->seen[(done | 1u << i) >> 3] &= (unsigned char)~(1u << ((done | 1u << i) & 7u));
            continue; /* another way may lead to the same set */
        }
        walk_step(s->walk, move->instance, move->target);
        s->order[depth] = i;
        if (search_from(s, done | 1u << i, depth + 1))
            return true;
        walk_step(s->walk, move->instance, move->source);
    }
    return false;
}

void plan_order_search(struct plan *plan, const struct model *model)
{
    size_t n = plan->n_moves;

    if (!plan->unordered || n > MAX_MOVES)
        return;
    AUTO(plan_walk) struct plan_walk *walk = plan_walk_new(model);
    AUTO_FREE unsigned char *seen = mem_alloc(((size_t)1 << n) / 8 + 1);
    struct order_search s = {.walk = walk, .moves = plan->moves, .n = n, .seen = seen};
    if (!search_from(&s, 0, 0))
        return;
    AUTO_FREE struct move *sorted = mem_array(n, sizeof *sorted);
    for (size_t i = 0; i < n; i++) {
        sorted[i] = plan->moves[s.order[i]];
        sorted[i].seq = (int)i + 1;
    }
    memcpy(plan->moves, sorted, n * sizeof *sorted);
    for (size_t i = 0; i < plan->n_cycles; i++)
        free(plan->cycles[i]);
    free(plan->cycles);
    plan->cycles = NULL;
    plan->n_cycles = 0;
    plan->unordered = false;
}
