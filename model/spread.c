/* spread.c - replicas per host, as shares of their service. */
#include "model/spread.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/pairs.h"

/* Hosts that a service is or was on, ascending. */
struct on {
    int *hosts;
    size_t n;
};

struct spread {
    const struct model *model;
    int *replicas;
    struct on *on; /* by service */
    struct pairs counts;
};

static int compare_ints(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;

    return (x > y) - (x < y);
}

struct spread *spread_new(const struct model *model, const int *placement)
{
    struct spread *spread = mem_alloc(sizeof *spread);

    spread->model = model;
    spread->replicas = model_replicas(model);
    spread->on = mem_array(model->n_services, sizeof *spread->on);
    for (size_t i = 0; i < model->n_instances; i++) {
        int service = model->instances[i].service;
        if (placement[i] < 0)
            continue;
        int64_t *count = pairs_at(&spread->counts, service, placement[i]);
        if ((*count)++ == 0) {
            struct on *on = &spread->on[service];
            *ARRAY_PUSH(on->hosts, on->n) = placement[i];
        }
    }
    for (size_t s = 0; s < model->n_services; s++)
        if (spread->on[s].n > 1)
            qsort(spread->on[s].hosts, spread->on[s].n, sizeof(int), compare_ints);
    return spread;
}

void spread_free(struct spread *spread)
{
    if (!spread)
        return;
    for (size_t s = 0; s < spread->model->n_services; s++)
        free(spread->on[s].hosts);
    free(spread->on);
    free(spread->replicas);
    pairs_wipe(&spread->counts);
    free(spread);
}

static void on_insert(struct on *on, int host)
{
    size_t i = on->n;

    ARRAY_PUSH(on->hosts, on->n);
    for (; i > 0 && on->hosts[i - 1] > host; i--)
        on->hosts[i] = on->hosts[i - 1];
    on->hosts[i] = host;
}

static void on_remove(struct on *on, int host)
{
    const int *at = bsearch(&host, on->hosts, on->n, sizeof host, compare_ints);

    assert(at);
    size_t i = (size_t)(at - on->hosts);
    memmove(&on->hosts[i], &on->hosts[i + 1], (on->n - i - 1) * sizeof host);
    on->n--;
}

void spread_move(struct spread *spread, int service, int source, int target)
{
    if (source >= 0) {
        int64_t *count = pairs_at(&spread->counts, service, source);
        assert(*count > 0);
        if (--*count == 0)
            on_remove(&spread->on[service], source);
    }
    if (target >= 0) {
        int64_t *count = pairs_at(&spread->counts, service, target);
        if ((*count)++ == 0)
            on_insert(&spread->on[service], target);
    }
}

int64_t spread_count(const struct spread *spread, int service, int host)
{
    return pairs_get(&spread->counts, service, host, 0);
}

int64_t spread_replicas(const struct spread *spread, int service)
{
    return spread->replicas[service];
}

/* Share of the service's replicas that are on the host. */
static double share_on(const struct spread *spread, int service, int host)
{
    int64_t count = spread_count(spread, service, host);

    return count > 0 ? (double)count / (double)spread->replicas[service] : 0;
}

double spread_share_at(const struct spread *spread, int a, int b, int host)
{
    return fmin(share_on(spread, a, host), share_on(spread, b, host));
}

double spread_share(const struct spread *spread, int a, int b)
{
    const struct on *on = &spread->on[spread->on[a].n <= spread->on[b].n ? a : b];
    double share = 0;

    /* Either list gives the same sum: hosts of one only add 0, the order is ascending in both. */
    for (size_t i = 0; i < on->n; i++)
        share += spread_share_at(spread, a, b, on->hosts[i]);
    return share;
}

double spread_rtt_us(const struct spread *spread, int a, int b)
{
    const struct on *from = &spread->on[a], *to = &spread->on[b];
    double sum = 0, rest_a = 0, rest_b = 0;
    double local = spread_share(spread, a, b);

    if (from->n == 0 || to->n == 0)
        return -1;
    for (size_t i = 0; i < from->n; i++)
        rest_a += fmax(0, share_on(spread, a, from->hosts[i]) - share_on(spread, b, from->hosts[i]));
    for (size_t j = 0; j < to->n; j++)
        rest_b += fmax(0, share_on(spread, b, to->hosts[j]) - share_on(spread, a, to->hosts[j]));
    if (rest_a <= 1e-12 || rest_b <= 1e-12)
        return 0;
    for (size_t i = 0; i < from->n; i++) {
        int x = from->hosts[i];
        double sends = share_on(spread, a, x) - share_on(spread, b, x);
        for (size_t j = 0; sends > 0 && j < to->n; j++) {
            int y = to->hosts[j];
            double takes = share_on(spread, b, y) - share_on(spread, a, y);
            if (takes <= 0)
                continue;
            int64_t rtt = model_rtt_us(spread->model, x, y);
            if (rtt < 0)
                return -1;
            sum += sends / rest_a * takes / rest_b * (double)rtt;
        }
    }
    return sum * rest_a / (rest_a + local);
}
