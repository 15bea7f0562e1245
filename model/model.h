/* model.h - the model at run time (paper §5.2, Fig. 5): hosts, services, instances, messages,
 * latencies and rules, as one graph of arrays that point into each other by index.
 *
 * Units: CPU in millicores, memory in bytes, time in ms, latency as round trip in µs. Numbers are
 * 0 … 10^15; -1 stands for "not given" only in the fields that say so. The JSON form is
 * contract.md 2 (model_json.h). */
#ifndef REMAP_MODEL_H
#define REMAP_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "model/base/err.h"
#include "model/base/mem.h"
#include "model/base/names.h"

#define MODEL_MAX_NUMBER INT64_C(1000000000000000) /* 10^15, contract.md 2 */
#define MODEL_MAX_INSTANCES 1000000                /* contract.md 2 */
#define MODEL_MAX_WEIGHT 1000                     /* of a service, against the default of 1 */
#define MODEL_MAX_ROWS 10000000                    /* contract.md 2: messages, affinities */

struct label {
    char *name, *value;
};

/* What an instance takes or a host has, in every dimension that limits placement. */
struct load {
    int64_t cpu_millis;         /* usage over the window */
    int64_t mem_bytes;
    int64_t cpu_request_millis; /* what the scheduler admits by */
    int64_t mem_request_bytes;
    int64_t pods;
};

struct host {
    char *name;
    int64_t cpu_cap_millis, mem_cap_bytes;
    /* Taken by things that are not instances of this model: */
    int64_t cpu_used_millis, mem_used_bytes, cpu_requested_millis, mem_requested_bytes;
    int64_t pods_cap; /* -1: unlimited */
    int64_t pods_used;
    int64_t ending; /* of these, pods that leave and hold room till they are gone (in no document) */
    int64_t reserve_cpu_millis, reserve_mem_bytes;
    bool schedulable; /* false: keeps what it has, receives nothing */
    char *region, *zone; /* NULL when not given */
    struct label *labels;
    size_t n_labels;
};

struct dependency {
    char *service;            /* a service of the model */
    int64_t max_network_cost; /* -1: not given */
    int64_t min_bandwidth;    /* bit/s; -1: not given */
};

struct service {
    char *name;
    char *app, *version; /* NULL when not given */
    bool stateful;
    bool movable;
    bool rollout; /* a rollout or scaling is in progress: no moves now (extension, default false) */
    char *tenant;  /* traffic with services of another one places nothing (extension); NULL: none */
    double weight; /* its messages and bytes count so often (extension, default 1) */
    struct dependency *depends_on;
    size_t n_depends_on;
};

struct instance {
    char *name;
    int service;
    int host; /* -1: unplaced */
    int64_t cpu_used_millis, mem_used_bytes;
    int64_t cpu_request_millis, mem_request_bytes; /* 0 when not given: asks for nothing */
    char *pinned_why; /* NULL: not pinned */
    int64_t start_ms; /* measured start-up time; -1 unknown */
};

enum level { LEVEL_INSTANCE, LEVEL_SERVICE };

/* Directed traffic between two instances, or between two services (level). */
struct message {
    enum level level;
    int src, dst;
    int64_t count;
    int64_t bytes;  /* -1: unknown */
    double mean_ms; /* < 0: unknown */
};

/* Undirected affinity (Eq. 1); a < b by strcmp of the names. */
struct affinity {
    enum level level;
    int a, b;
    double degree;
    int64_t count;
    int64_t bytes; /* -1: unknown */
};

struct latency {
    int a, b; /* hosts; looked up both ways */
    int64_t rtt_us;
};

struct channel {
    int a, b;           /* services */
    char *type;         /* NULL when not given; algorithms.md 1 */
    double priority;    /* < 0: by type */
    double bytes_per_s; /* < 0: not given */
};

struct network_cost {
    char *origin, *destination;
    int64_t cost;
    int64_t bandwidth; /* -1: not given */
};

enum rule_kind { RULE_APART, RULE_TOGETHER, RULE_ALLOWED, RULE_SPREAD };

struct rule {
    enum rule_kind kind;
    int *services; /* one for allowed and spread */
    size_t n_services;
    int64_t max_per_host; /* apart */
    int *hosts;           /* allowed */
    size_t n_hosts;
    double max_share; /* spread: 0 … 1 */
    bool per_zone;    /* spread: per zone instead of per host */
};

struct traffic { /* what could not be joined to this model */
    bool given;
    int64_t unmapped_count;
    int64_t unmapped_bytes; /* -1: unknown */
    char **unseen_services;
    size_t n_unseen_services;
};

struct model {
    struct host *hosts;
    size_t n_hosts;
    struct service *services;
    size_t n_services;
    struct instance *instances;
    size_t n_instances;
    struct message *messages;
    size_t n_messages;
    struct affinity *affinities; /* given degrees; never together with messages */
    size_t n_affinities;
    bool has_messages, has_affinities; /* the key was present, even if empty */
    struct channel *channels;
    size_t n_channels;
    struct latency *latencies;
    size_t n_latencies;
    struct network_cost *region_costs, *zone_costs;
    size_t n_region_costs, n_zone_costs;
    struct rule *rules;
    size_t n_rules;
    struct traffic traffic;
    int64_t from_ms, to_ms, taken_ms; /* -1: not given */

    struct names host_names, service_names, instance_names; /* kept by model_add_* */
    struct model_index *index; /* latencies by pair, built at the first lookup */
};

struct model *model_new(void);
void model_free(struct model *model);
AUTO_DEFINE(model)
struct model *model_copy(const struct model *model);

/* Each adds a named thing with defaults (schedulable, movable, -1 where "not given") and returns
 * its index, or -1 and ERR_INPUT when the name is invalid or taken. */
int model_add_host(struct model *model, const char *name, struct err *err);
int model_add_service(struct model *model, const char *name, struct err *err);
int model_add_instance(struct model *model, const char *name, int service, int host,
                       struct err *err);

/* Index, or -1 when there is none of that name. */
int model_host(const struct model *model, const char *name);
int model_service(const struct model *model, const char *name);
int model_instance(const struct model *model, const char *name);

/* Resolves an end of a traffic row: the instance of that name, else the service. -1 if neither. */
int model_end(const struct model *model, const char *name, enum level *level);
/* Resolves both; a row with one end of each kind counts at service level. -1 if either is none. */
int model_ends(const struct model *model, const char *src, const char *dst, enum level *level,
               int *src_index, int *dst_index);
/* How often the traffic of two ends counts: the product of their services' weights, 0 between
 * tenants. */
double model_pair_weight(const struct model *model, enum level level, int a, int b);
/* The name of an end. */
const char *model_end_name(const struct model *model, enum level level, int index);

/* Invariants that hold for every model that leaves a parser or a stage: indices in range, numbers
 * in range, sums within int64, messages and affinities not both, an instance that bears a
 * service's name is that service's only one. ERR_INPUT names the thing. */
int model_check(const struct model *model, struct err *err);

/* Number of instances of each service, n_services long; caller frees. */
int *model_replicas(const struct model *model);

/* The instances of each service: those of service s are `of[first[s]] … of[first[s + 1] - 1]`, in
 * index order. */
struct members {
    int *first; /* n_services + 1 */
    int *of;    /* n_instances */
};
struct members model_members(const struct model *model);
void members_wipe(struct members *members);
#define AUTO_MEMBERS __attribute__((cleanup(members_wipe)))

/* What an instance takes (pods = 1), and what a host offers to instances of this model: capacity
 * less foreign use less reserve, in each dimension (may be negative; pods INT64_MAX/4 when
 * unlimited). Requests are limited by the same capacity less what others requested. */
struct load instance_load(const struct instance *instance);
struct load host_offer(const struct host *host);
void load_add(struct load *to, const struct load *what);
void load_sub(struct load *from, const struct load *what);
/* True when used + need <= offer in every dimension; *why (may be NULL) gets a static text such as
 * "cpu", "memory", "cpu requests", "memory requests", "pod slots" when not. */
bool load_fits(const struct load *offer, const struct load *used, const struct load *need,
               const char **why);
/* Used load per host by the model's own instances, n_hosts long; caller frees. */
struct load *model_host_loads(const struct model *model);

/* NULL when the rules allow one more instance of `service` on `host`, given `counts` (instances per
 * host × service, indexed host * n_services + service, or NULL to count the model); else a static
 * text. Checks apart, allowed, spread; `together` is a property of whole placements:
 * model_rules_hold. An instance that moves must not be counted where it was. For many questions
 * about large models: struct rule_tally (rules.h). */
const char *model_rule_problem(const struct model *model, const int *counts, int service,
                               int host);
/* All rules of a whole placement (host of each instance); ERR_INFEASIBLE names the rule. */
int model_rules_hold(const struct model *model, const int *placement, struct err *err);
/* The same of what is worse than under `before`: a rule that was broken on a host already may stay
 * broken there, as much as it was. */
int model_rules_kept(const struct model *model, const int *before, const int *placement,
                     struct err *err);
/* The services of rules that are broken less under `placement` than under `before`, n_services long;
 * NULL: no rule is. Caller frees. */
bool *model_rules_mended(const struct model *model, const int *before, const int *placement);

/* NULL when the instance may move, else why not: pinned_why, "service is not movable", "stateful"
 * (unless move_stateful), "rollout in progress". */
const char *instance_fixed_why(const struct model *model, int instance, bool move_stateful);

/* Round trip between two hosts in µs; 0 on the same host, -1 when unknown. A latency given in the
 * other direction only counts for both. O(1): an index is built at the first lookup and again when
 * latencies were added since; after editing them in place call model_index_drop. */
int64_t model_rtt_us(const struct model *model, int host_a, int host_b);
void model_index_drop(struct model *model);

#endif
