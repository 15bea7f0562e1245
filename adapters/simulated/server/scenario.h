/* scenario.h - what an embedded cluster is made of, as read from a scenario file (etc/scenarios).
 *
 * A scenario never changes after it was read; what happens to the cluster is in cluster.h. Units:
 * simulated time in ms, latencies as round trip in µs, CPU in millicores, memory in bytes. */
#ifndef REMAP_SIMULATED_SCENARIO_H
#define REMAP_SIMULATED_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "adapters/simulated/server/fault.h"
#include "model/base/err.h"
#include "model/base/mem.h"
#include "model/base/names.h"

#define SCENARIO_MAX_HOSTS 10000 /* ten times the paper's largest */
#define SCENARIO_MAX_SERVICES 10000
#define SCENARIO_MAX_REPLICAS 20000 /* wanted, all services together */
#define SCENARIO_MAX_CALLS 200000
#define SCENARIO_MAX_MESSAGES INT64_C(1000000000000) /* generated; counts stay exact in doubles */
#define SCENARIO_MAX_SPEED 100000                    /* a day in a second */

struct sim_host {
    char *name;
    int64_t cpu_millis, mem_bytes, pods; /* pods -1: unlimited */
    char *region, *zone;                 /* NULL when not given */
    /* Taken by things that are not of the scenario: */
    int64_t cpu_used_millis, mem_used_bytes, cpu_requested_millis, mem_requested_bytes, pods_used;
    bool schedulable;
};

struct sim_service {
    char *name, *namespace, *version; /* version may be NULL */
    int64_t replicas;
    int *hosts; /* of the first replicas, one each; the scheduler places the rest */
    size_t n_hosts;
    int64_t cpu_base_millis, mem_bytes;            /* of each replica, without load */
    int64_t cpu_request_millis, mem_request_bytes; /* 0: asks for nothing */
    double work_ms;                                /* CPU time per request */
    double delay_ms;                               /* other time per request: disk, sleep */
    int64_t start_up_ms;
    double entry_per_s; /* requests from outside */
    bool stateful, movable;
    size_t first_call, n_calls; /* its outgoing calls in scenario.calls */
};

struct sim_call {
    int from, to;
    double per_request; /* calls of `to` per request at `from`; < 0: per_s counts */
    double per_s;       /* absolute rate */
    int64_t bytes;      /* request and answer of one call; -1 unknown */
};

struct sim_link { /* between two hosts */
    int a, b;
    int64_t rtt_us;
};
struct sim_zone_link { /* between two zones or two regions, by name */
    char *a, *b;
    int64_t rtt_us;
};

struct scenario {
    char *name;
    uint64_t seed;
    double noise;           /* relative amplitude of usage and times: 0.02 = ±2 % */
    double speed;           /* simulated per real second, unless --speed says otherwise */
    int64_t warm_ms;        /* how long the cluster is taken to have run at its start */
    int64_t reschedule_ms;  /* from a death to its replacement */
    int64_t failed_call_ms; /* what a caller waits when nobody answers */
    int64_t same_zone_us, same_region_us, other_region_us; /* default round trips */
    struct sim_host *hosts;
    size_t n_hosts;
    struct sim_service *services;
    size_t n_services;
    struct sim_call *calls; /* grouped by `from`, in the order of the file */
    size_t n_calls;
    int *order; /* services, callers before callees */
    struct sim_link *links;
    size_t n_links;
    struct sim_zone_link *zone_links, *region_links;
    size_t n_zone_links, n_region_links;
    struct fault *faults;
    size_t n_faults;
    struct names host_names, service_names;
    uint64_t digest; /* of everything above but speed: a journal belongs to one scenario */
};

/* ERR_CONFIG "sock-shop.yaml:12: hosts[0].cpuu: unknown key; did you mean "cpu"?". A `seed` of 0
 * or more stands for the one in the file. */
struct scenario *scenario_read(const char *path, int64_t seed, struct err *err);
struct scenario *scenario_parse(const char *text, size_t size, const char *name, int64_t seed,
                                struct err *err);
void scenario_free(struct scenario *scenario);
AUTO_DEFINE(scenario)

/* Groups calls, checks references and numbers, finds the order. ERR_CONFIG names the thing; a cycle
 * of calls is refused and named, because a call tree that never ends has no response time. The
 * parser calls this; tests that build a scenario by hand do too. */
int scenario_finish(struct scenario *scenario, struct err *err);
struct scenario *scenario_new(void);                                     /* with the defaults */
int scenario_host(const struct scenario *scenario, const char *name);    /* -1: none */
int scenario_service(const struct scenario *scenario, const char *name); /* -1: none */

/* Round trip between two hosts: an explicit link, else the zone pair, else the region pair, else
 * the default for same zone, same region, other region. 0 on the same host. Hosts without a zone
 * count as in one zone. */
int64_t scenario_rtt_us(const struct scenario *scenario, int a, int b);

/* The paper's mock topologies (algorithms.md 6.5): Barabási–Albert with m = n-1 (star: an API
 * gateway) or m = 2 (p2p), `services` services with CPU 1…500 millicores and memory 10…500 MiB,
 * hosts of 4000 millicores and 8 GiB, one service on each, `messages` messages per `per_ms` over
 * the edges. A request takes at most work_ms of CPU, or what its service's CPU allows; the rest of
 * the drawn CPU is there without load. Appends to hosts, services and calls. */
struct generator {
    bool star;
    int64_t services, messages, per_ms;
    double work_ms; /* most CPU time of one request */
    uint64_t seed;
};
void scenario_generate(struct scenario *scenario, const struct generator *generator);

#endif
