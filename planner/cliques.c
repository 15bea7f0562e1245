/* cliques.c - Bron and Kerbosch's enumeration, with a pivot. */
#include "planner/cliques.h"

#include "model/base/mem.h"

struct search {
    const bool *pairs;
    int n;
    int64_t steps;
    bool (*see)(void *ctx, const int *members, int n_members);
    void *ctx;
    int *members, n_members;
};

static bool paired(const struct search *search, int a, int b)
{
    return search->pairs[(size_t)a * (size_t)search->n + (size_t)b];
}

/* Of what may come next or came before, the one that is paired with most of what may come. */
static int pivot_of(const struct search *search, const int *next, int n_next, int n_all)
{
    int best = -1, most = -1;
    for (int k = 0; k < n_all; k++) {
        int n = 0;
        for (int m = 0; m < n_next; m++)
            n += paired(search, next[k], next[m]);
        if (n > most) {
            most = n;
            best = next[k];
        }
    }
    return best;
}

/* next[0 … n_next - 1] may come, next[n_next … n_all - 1] came before; all are paired with the members. */
static bool extend(struct search *search, int *next, int n_next, int n_all)
{
    if (n_all == 0)
        return search->see(search->ctx, search->members, search->n_members);
    int pivot = pivot_of(search, next, n_next, n_all);
    AUTO_FREE int *inner = mem_array((size_t)n_all, sizeof *inner);
    for (int k = n_next - 1; k >= 0; k--) {
        int one = next[k], n = 0, n_inner;
        if (paired(search, pivot, one))
            continue;
        if (--search->steps < 0)
            return false;
        for (int m = 0; m < n_next; m++)
            if (paired(search, one, next[m]))
                inner[n++] = next[m];
        n_inner = n;
        for (int m = n_next; m < n_all; m++)
            if (paired(search, one, next[m]))
                inner[n++] = next[m];
        search->members[search->n_members++] = one;
        bool end = extend(search, inner, n_inner, n);
        search->n_members--;
        if (end)
            return true;
        n_next--; /* it came: to the others */
        next[k] = next[n_next];
        next[n_next] = one;
    }
    return false;
}

bool cliques_until(const bool *pairs, int n, int64_t steps,
                   bool (*see)(void *ctx, const int *members, int n_members), void *ctx)
{
    AUTO_FREE int *next = mem_array((size_t)n, sizeof *next);
    AUTO_FREE int *members = mem_array((size_t)n, sizeof *members);
    struct search search = {pairs, n, steps, see, ctx, members, 0};
    for (int k = 0; k < n; k++)
        next[k] = k;
    return n > 0 && extend(&search, next, n, n);
}
