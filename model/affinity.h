/* affinity.h - the result of an analysis (the form of `remap analyze -o json`), and the score of a
 * placement. The computation of Eq. 1 itself is the analyzer's (analyzer/affinity.c). */
#ifndef REMAP_MODEL_AFFINITY_H
#define REMAP_MODEL_AFFINITY_H

#include "model/model.h"

struct analysis {
    double weight_used; /* 1 when no row had known bytes */
    int64_t count;      /* m of Eq. 1 */
    int64_t bytes;      /* d of Eq. 1; -1: nothing known */
    int64_t ignored;    /* self messages left out */
    struct affinity *rows; /* at the level of the document's rows; degree desc, then names */
    size_t n_rows;
    struct affinity *service_rows; /* sums over instance pairs; never scored beside rows */
    size_t n_service_rows;
};

struct analysis *analysis_new(void);
void analysis_free(struct analysis *analysis);
AUTO_DEFINE(analysis)

/* Given degrees of a model document (model->affinities) as an analysis; never renormalised; rows of
 * the same pair in either order add up. */
struct analysis *analysis_from_given(const struct model *model);

/* Fills rows and service_rows of `out` from rows that may repeat pairs in either order, and counts
 * self rows in `ignored`. */
void affinity_add_up(const struct model *model, const struct affinity *rows, size_t n,
                     struct analysis *out);
/* Puts the smaller name first. */
void affinity_order(const struct model *model, struct affinity *row);

/* Sorts by degree desc (key llround(degree·1e12)), then smaller name, larger name (strcmp). */
void affinity_sort(const struct model *model, struct affinity *rows, size_t n);

/* Score of a placement (host of each instance, -1 unplaced): Eq. 2 for instance rows, and for
 * service rows degree · Σ_host min(x_a/d_a, x_b/d_b) (design.md 7). Summation in row order. */
double placement_score(const struct model *model, const struct affinity *rows, size_t n,
                       const int *placement);
/* Share of all messages that count (affinity_messages) whose ends are on one host under the
 * placement, by the same form; NaN never: 0 when nothing is counted. */
double placement_local_share(const struct model *model, const struct affinity *rows, size_t n,
                             const int *placement);
/* Messages of the rows whose traffic counts: not those between tenants (interfaces.md 1.9 rule 14: by
 * them anybody who may post spans could have a plan of others put back), nor those of weight 0. */
int64_t affinity_messages(const struct model *model, const struct affinity *rows, size_t n);
/* Hosts with at least one placed instance. */
int placement_hosts_used(const struct model *model, const int *placement);
/* The model's own placement, n_instances long; caller frees. */
int *model_placement(const struct model *model);

/* Mean response time per message in ms that the model predicts under `placement`: each directed
 * message row's mean_ms with the round trip between its ends' present hosts taken out and that
 * between the new hosts put in (never below 0). A row whose latencies are unknown keeps its mean_ms,
 * so that figures of two placements speak of the same messages; rows without mean_ms, and those that
 * do not count (affinity_messages), count nothing.
 * Between services with replicas the round trip is the mean over what a load balancer that prefers
 * its own host sends. < 0 when nothing is known. */
double placement_response_ms(const struct model *model, const int *placement);

#endif
