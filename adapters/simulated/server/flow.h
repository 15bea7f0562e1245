/* flow.h - the steady state of a cluster at one moment: who calls whom how often, what that costs,
 * and how long it takes. Pure; no noise in it.
 *
 * Rates. A service gets λ = entry_rate · load factor + all calls into it, per second. Of a call
 * with per_request p its callee gets p · λ(caller), of one with an absolute rate that rate (times
 * the mean load factor of the entries). A service without a ready replica answers nothing: calls to
 * it fail, are not counted, and it calls nobody.
 *
 * Balancing. Every ready replica of a service takes the same share of its requests and makes the
 * same share of its calls; calls prefer a replica on their own host as far as those shares allow
 * (like topology-aware routing). With x of d replicas on a host, the host can emit x_a/d_a of the
 * calls and take x_b/d_b of them, so min(x_a/d_a, x_b/d_b) stays on it: the score of design.md 7.
 * What is left over of the emitting hosts goes to what is left over of the taking ones, in
 * proportion.
 *
 * CPU. A replica uses cpu_base + λ/d · work (1 ms of CPU a second is 1 millicore). Where the demand
 * of a host (replicas and foreign use) is above its capacity, each gets its share: measured usage
 * is demand · capacity / demand of the host.
 *
 * Time. A host is a processor-sharing queue with c = capacity / 1000 cores (at least 1): a request
 * with `work` ms of CPU stays work · f(ρ) ms, ρ = demand / capacity, f(ρ) = 1 / (1 - ρ^c). (That is
 * M/M/1-PS for one core, exact for two, Gunther's approximation of M/M/c for more: a second core
 * does not make a request faster, it makes the host slow later.) Above ρ = 0.95 its tangent goes
 * on, so that an overloaded host is slow beyond use but not infinitely; ρ counts up to 4 (f = 1240
 * on one core). A replica answers after R = work · f(ρ) + delay + for each of its calls, one after
 * the other, p · (round trip to the callee's host + R of the callee), averaged over the callees by
 * the rates above. A call that fails costs failed_call_ms. The response time of an entry is the
 * mean R over its replicas, that of the cluster the mean over entries by their rate. */
#ifndef REMAP_SIMULATED_FLOW_H
#define REMAP_SIMULATED_FLOW_H

#include "adapters/simulated/server/cluster.h"

#define FLOW_KNEE 0.95 /* of utilisation, above it the tangent; one core: f = 20, f' = 400 */
#define FLOW_RHO_MAX 4.0
#define FLOW_LONGEST_MS 1e12 /* 31 years stand for never */

struct flow_edge { /* between two replicas */
    int call;      /* of the scenario */
    int src, dst;  /* replicas */
    double per_s;
    double mean_ms; /* what the caller sees: round trip + R of the callee */
};

struct flow {
    double *arrivals;        /* requests per second, by service */
    double *cpu_millis;      /* measured usage, by position in `ready` */
    double *response_ms;     /* R, by position in `ready` */
    double load;             /* factor on absolute rates */
    double *host_demand;     /* millicores asked of each host, foreign use included */
    int *ready;              /* the replicas that serve, grouped by service */
    int *first, *count;      /* where a service's replicas are in `ready`, and how many */
    int *position;           /* of a replica in `ready`, by replica; -1 */
    struct flow_edge *edges; /* grouped by call */
    size_t n_edges, n_ready;
};

/* The flow at `at_ms` of the cluster's history: of the replicas that were ready then. */
struct flow *flow_new(const struct cluster *cluster, int64_t at_ms);
void flow_free(struct flow *flow);
AUTO_DEFINE(flow)

/* f(ρ) on a host of that capacity. */
double flow_slowdown(double utilisation, int64_t cpu_millis);

/* Mean response time of an entry service, or of all entries for -1; < 0 when nobody answers or
 * nothing comes in. */
double flow_entry_ms(const struct flow *flow, const struct cluster *cluster, int64_t at_ms,
                     int service);

/* The load factor of a service at a time. */
double flow_load(const struct cluster *cluster, int64_t at_ms, int service);

#endif
