/* contain.h - a search in a child process: what it finds is in shared memory as soon as it is found,
 * so that it survives whatever ends the child. */
#ifndef REMAP_PLANNER_CONTAIN_H
#define REMAP_PLANNER_CONTAIN_H

#include <stdatomic.h>
#include "planner/anneal.h"

struct finding; /* in shared memory */

struct finding *finding_new(int n_instances);
void finding_free(struct finding *finding);
AUTO_DEFINE(finding)

/* Child side. Each is complete or not there, whenever the child ends. */
void finding_put(struct finding *finding, const int *at, const struct value *best);
void finding_bound(struct finding *finding, double bound);
/* No placement on at most as many hosts as the best one scores more. */
void finding_within(struct finding *finding, double bound);
void finding_hosts(struct finding *finding, int64_t fewest); /* no placement uses less */
/* Where part `which` of the search ended by the clock (share.h). */
#define FINDING_MARKS 2
void finding_mark(struct finding *finding, int which, int mark);
void finding_done(struct finding *finding, int64_t iterations, bool cut, bool proven,
                  const char *why);
/* For effort.count: what is put bears the count at which it was found, so that a search that was ended
 * from outside can be repeated up to the same count. To be called before the child is; `first`, where
 * valid, is there whatever happens. */
_Atomic int64_t *finding_count(struct finding *finding, const int *at, const struct value *first);

/* Parent side, after contain_run(). */
bool finding_get(const struct finding *finding, int *at, struct value *best);
/* The best that was put before the count was reached, and the bounds then. */
bool finding_get_before(const struct finding *finding, int64_t count, int *at,
                        struct value *best);
double finding_bound_before(const struct finding *finding, int64_t count);
double finding_within_before(const struct finding *finding, int64_t count);
int64_t finding_hosts_before(const struct finding *finding, int64_t count);
int finding_mark_before(const struct finding *finding, int which, int64_t count);
struct finding_end {
    double bound;       /* INFINITY: none */
    double within;      /* as finding_within(); INFINITY: none */
    int64_t hosts;      /* a lower bound; 0: none */
    int64_t iterations;
    bool cut, proven;
    bool killed, failed; /* ended for its time or on request; by its own fault */
    int64_t count;       /* the last one, however it ended */
    int marks[FINDING_MARKS]; /* as finding_mark(); 0: none */
    char why[200];       /* how the search went, one line */
};
struct finding_end finding_end(const struct finding *finding);

/* Forks, runs work(ctx) in the child and waits for its end, at most until deadline_ms (monotonic), sooner
 * where the machine is so busy that what takes `after_ms` of CPU afterwards would be late;
 * then the child is killed. Reports progress meanwhile. ERR_IO when there can be no child. */
int contain_run(void (*work)(void *ctx), void *ctx, struct finding *finding,
                const struct plan_options *options, int64_t deadline_ms, int64_t after_ms,
                struct err *err);

#endif
