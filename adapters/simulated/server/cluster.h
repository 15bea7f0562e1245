/* cluster.h - the state of the embedded cluster and everything that changes it.
 *
 * State changes only by cluster_apply() of a `struct change`, live and when a journal is replayed,
 * so both end in the same state. Deciding (schedule.h) is apart from applying. Replicas are never
 * removed from the array: those that ended are the history that windows look into. Time is
 * simulated ms; it begins at 0, the cluster starts at scenario->warm_ms. */
#ifndef REMAP_SIMULATED_CLUSTER_H
#define REMAP_SIMULATED_CLUSTER_H

#include "adapters/simulated/server/scenario.h"
#include "model/base/buf.h"
#include "model/base/json.h"

/* About 200 bytes each with its name: 40 MB at most, after 200,000 moves on one journal. */
#define CLUSTER_MAX_REPLICAS 200000
#define CLUSTER_MAX_FAULTS 10000

enum replica_state { REPLICA_PENDING, REPLICA_STARTING, REPLICA_READY, REPLICA_ENDED };
extern const char *const replica_state_names[]; /* "pending", "starting", "ready", "ended", NULL */

struct mark { /* of a move; cycle -1: none */
    int64_t cycle, seq;
};
#define MARK_NONE ((struct mark){-1, -1})

struct replica {
    char *name;
    int service;
    int host; /* -1 while pending */
    enum replica_state state;
    int64_t created_ms;
    int64_t due_ms;   /* when it gets ready; -1 never */
    int64_t ready_ms; /* -1 not yet */
    int64_t ended_ms; /* -1 not yet */
    int replaces;     /* replica that leaves when this one is ready; -1 none */
    int revision;     /* of its service's template */
    bool vanishes;    /* lose-effect: it will be taken back once ready */
    struct mark mark; /* the label on the object; removed by release */
};

struct placed { /* what became of one mark; stays for good, so that asking twice is harmless */
    struct mark mark;
    int asked;  /* the replica the move was for */
    int now;    /* its successor on the target */
    int source; /* host */
    int target; /* host that was asked for */
    bool undone;
    int back; /* the replica that undo started on the source; -1 undo only stopped the move */
};

struct service_state {
    int64_t wanted;  /* replicas */
    int64_t staying; /* those that will stay: alive and not beside a live predecessor */
    int64_t ever;    /* replicas started so far: the next ordinal of a stateful set */
    int revision;
    double load;            /* factor on entry_per_s */
    int64_t short_since_ms; /* replicas are missing since; -1 none is */
};

struct host_state {
    bool up;
    int64_t changed_ms;
    int64_t back_ms; /* when a dead host is up again; -1 never */
};

struct load_step { /* history of load factors */
    int64_t at_ms;
    int service; /* -1 all */
    double factor;
};

struct clock_step { /* simulated = sim_ms + (wall - wall_ms) · speed, from wall_ms on */
    int64_t wall_ms, sim_ms;
    double speed;
};

struct cluster {
    const struct scenario *scenario; /* borrowed */
    struct replica *replicas;
    size_t n_replicas;
    int *live; /* those not ended, oldest first */
    size_t n_live;
    struct service_state *services;
    struct host_state *hosts;
    struct placed *placed;
    size_t n_placed;
    struct fault *faults;
    size_t n_faults;
    struct load_step *loads;
    size_t n_loads;
    struct clock_step *clock;
    size_t n_clock;
    struct names names; /* of all replicas ever */
    int64_t last_ms;    /* time of the newest change */
    uint64_t n_changes; /* a version number of the state */
};

struct cluster *cluster_new(const struct scenario *scenario);
void cluster_free(struct cluster *cluster);
AUTO_DEFINE(cluster)

enum change_kind {
    CHANGE_CLOCK,   /* wall_ms, speed: simulated time at `at_ms` from here on */
    CHANGE_START,   /* a replica appears: service, host (-1 pending), due_ms, replaces, mark, why */
    CHANGE_BIND,    /* a pending replica gets its host: replica, host, due_ms */
    CHANGE_READY,   /* replica */
    CHANGE_END,     /* replica, why; mark: an undo that stopped a move */
    CHANGE_HOST,    /* host, up, back_ms */
    CHANGE_SCALE,   /* service, value */
    CHANGE_DEPLOY,  /* service */
    CHANGE_LOAD,    /* service (-1 all), factor */
    CHANGE_FAULT,   /* fault: armed or planned */
    CHANGE_USED,    /* nothing but `uses` */
    CHANGE_CLEAR,   /* all faults are cleared */
    CHANGE_RELEASE, /* service (-1 all): marks are taken off */
    CHANGE_KINDS
};

struct change {
    enum change_kind kind;
    int64_t at_ms;
    int replica, service, host, replaces; /* -1 where without meaning */
    int target;                           /* the host a move asked for, if not `host` */
    int uses;                             /* index of the fault that this change uses up; -1 */
    int64_t due_ms, wall_ms, value;
    double speed, factor;
    bool up, vanishes;
    struct mark mark;
    const char *name; /* start: borrowed; NULL: cluster_next_name() */
    const char *why;  /* borrowed; what caused it, for people: "move", "undo", "host died", … */
    struct fault fault;
};

struct change change_new(enum change_kind kind, int64_t at_ms);

/* Applies a change. ERR_INPUT when it does not fit the state: a journal that was altered. */
int cluster_apply(struct cluster *cluster, const struct change *change, struct err *err);

/* One JSON line with names instead of numbers, without the newline; and back. */
void change_encode(const struct cluster *cluster, const struct change *change, struct buf *out);
int change_decode(const struct cluster *cluster, const struct jval *line, struct change *out,
                  struct err *err);
/* A fault as in the journal and in requests: {"kind", "service", "host", "at_ms", …}. */
int fault_decode(const struct scenario *scenario, const struct jval *value, struct fault *out,
                 struct err *err);
void fault_encode(const struct scenario *scenario, const struct fault *fault, struct buf *out);

/* --- looking --- */

int cluster_replica(const struct cluster *cluster, const char *name); /* live one; -1 none */
const struct placed *cluster_placed(const struct cluster *cluster, struct mark mark);
/* The live replica that will take the place of this one, or -1. */
int cluster_successor(const struct cluster *cluster, int replica);
/* The replicas of every service, counted in one pass. */
struct survey {
    int64_t in_flight; /* pending or starting */
    int64_t old;       /* of a revision before the service's own */
};
struct survey *cluster_survey(const struct cluster *cluster); /* n_services; caller frees */
/* A rollout or scaling is in progress: old replicas, too few, or too many. */
bool cluster_rolling(const struct cluster *cluster, int service, const struct survey *survey);
/* NULL when one more replica of the service has room by requests and pod slots, else a static text:
 * "cpu requests", "memory requests", "pod slots", "unschedulable", "down". */
const char *cluster_room(const struct cluster *cluster, int service, int host);
/* The same against what is on the hosts already: requests and pods of the live replicas of each. */
struct host_load {
    int64_t cpu_millis, mem_bytes, pods;
};
struct host_load *cluster_host_loads(const struct cluster *cluster); /* n_hosts; caller frees */
const char *cluster_room_beside(const struct cluster *cluster, const struct host_load *load,
                                int service, int host);
/* The name that the next replica of the service gets; caller frees. */
char *cluster_next_name(const struct cluster *cluster, int service);
/* Wall time to simulated time and back by the steps of the clock; never below 0. */
int64_t cluster_sim_ms(const struct cluster *cluster, int64_t wall_ms);
int64_t cluster_wall_ms(const struct cluster *cluster, int64_t sim_ms);
double cluster_speed(const struct cluster *cluster);

#endif
