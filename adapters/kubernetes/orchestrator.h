/* orchestrator.h - pins on a real cluster: the state behind orchestrator `kubernetes`, and what its
 * parts ask of each other. Inside adapters/kubernetes. */
#ifndef REMAP_KUBERNETES_ORCHESTRATOR_H
#define REMAP_KUBERNETES_ORCHESTRATOR_H

#include "adapters/kubernetes/api.h"
#include "adapters/kubernetes/conduct.h"
#include "adapters/kubernetes/mark.h"
#include "adapters/kubernetes/pin.h"

/* Rows of an option_spec array. */
#define KUBE_ORCHESTRATOR_OPTIONS                                                                  \
    {"pin",                                                                                        \
     "preferred: the scheduler weighs it; required: guaranteed, at the price of pods that wait "   \
     "when their hosts are gone",                                                                  \
     "preferred", false},                                                                          \
        {"foreign_affinity",                                                                       \
         "merge: also into lists that others have set by update, never by server-side apply; "     \
         "offer: those only as patch files",                                                       \
         "offer", false},                                                                          \
        {"soak", "no move after somebody changed the pod template", "1h", false},                  \
        {"scaling_quiet", "no move after an autoscaler changed the replicas", "5m", false},        \
        {"min_node_age", "younger nodes are no targets", "10m", false},                            \
        {"unschedulable_after", "pods that nobody takes for so long fail the move", "30s", false}, \
        {"unready_after",                                                                          \
         "a required pin whose nodes were all not ready for so long is taken off", "10m", false},  \
        {"force_required",                                                                         \
         "true: required pins also beside node autoscalers and where priorities differ", "false",  \
         false},                                                                                   \
        {"any_pool",                                                                               \
         "true: targets of another architecture, OS, node pool or capacity type than now",         \
         "false", false},                                                                          \
        {"any_probe", "true: moves also what serves without a readiness probe", "false", false}

/* A move that this process has had to do with. */
struct pin_memory {
    int64_t cycle, seq;
    char *service;
    bool placed, applied, undone;
    int64_t stuck_ms; /* monotonic: since when a pod finds no node; -1 */
    int64_t pods_ms;  /* monotonic: when its pods are to be looked at next; -1: not yet waited for */
};

/* Something read a moment ago that this orchestrator's own moves do not change. */
struct world_known {
    char *path;
    json_t *items;
    int64_t until_ms; /* monotonic */
};

/* A pin all of whose nodes are gone or not ready. */
struct pin_down {
    char *uid;       /* of the workload */
    int64_t seen_ms; /* wall: when it was first found so */
};

/* A pin that is on its way to the server. */
struct pin_sent {
    int64_t cycle, seq;
    char *service, *saved;
    json_t *workload;
    struct write *write;
};

struct kube_orchestrator {
    struct kube_api *api;
    void *keeper; /* NULL: none */
    struct world_known *known;
    size_t n_known;
    enum pin_kind kind;
    struct conduct_options conduct;
    int64_t unschedulable_ms, unready_ms;
    struct pin_down *down; /* relief.c */
    size_t n_down;
    struct pin_sent *sent;
    size_t n_sent;
    struct pin_memory *memories;
    size_t n_memories;
    bool no_rollouts;  /* the cluster knows no Argo Rollouts */
    bool scaler_known; /* looked for already: */
    const char *scaler;
};

/* The options of the source that say how moves are made. ERR_CONFIG. */
int orchestrator_read(const struct source *source, struct kube_orchestrator *o, struct err *err);

struct pin_memory *orchestrator_memory(struct kube_orchestrator *o, const struct placement *p);

/* Was the mark made for this move? A store that was lost begins its numbers anew, so hosts count too
 * where they are known. */
bool orchestrator_marked(const struct mark *mark, const struct placement *p, const struct pin *pin);
/* The pin that the move asks for; pin_wipe(). */
void orchestrator_pin(const struct kube_orchestrator *o, const struct placement *p,
                      struct pin *out);
/* Keeps in the annotation that the pin was taken out soon after it came, without a release, and by whom, which
 * is left in `who`: the workload rests until an operator removes the annotation (rule 11). Best effort:
 * without it the missing pin alone says to keep off until the next release. */
void orchestrator_note_revert(struct kube_orchestrator *o, const json_t *workload,
                              struct mark *mark, char *who, size_t size);

/* --- place.c: struct orchestrator's ahead(), place(), place_all() --- */

void place_ahead(void *orchestrator, const struct placement *placements, size_t n);
int place_run(void *orchestrator, const struct placement *p, char **saved, struct err *err);
void place_all(void *orchestrator, const struct placement *placements, size_t n, bool *begun);
/* Waits for what nobody asked about. */
void place_forget(struct kube_orchestrator *o);
/* The fields without a pin of ours that is there already, and what they were before the first. */
struct pin_fields place_base(const json_t *workload, const struct mark *mark, enum pin_kind kind);
/* The rules, as the world is now; `pin` NULL: one is taken out. ERR_CONFLICT names the rule; ERR_TIMEOUT: not
 * now, ask again. */
int place_check(struct kube_orchestrator *o, const json_t *workload, const struct mark *mark,
                struct pin *pin, struct err *err);

/* --- settle.c: struct orchestrator's look_ahead(), settled() --- */

void settle_ahead(void *orchestrator, const struct placement *placements, size_t n);
int settle_run(void *orchestrator, const struct placement *p, struct settle_report *out,
               struct err *err);

/* --- world.c: reading --- */

/* The workload of a service "namespace/name" or "namespace/kind/name", with its kind. ERR_NOT_FOUND
 * when there is none (any more). `recent`: as in world_pods(). Caller json_decref()s. */
int world_workload(struct kube_orchestrator *o, const char *service, bool recent, json_t **out,
                   struct err *err);
/* Its own path in the API; caller frees. */
char *world_path(const json_t *workload);

/* All items behind a path (with its query) as one array; NULL and *err. `optional`: an empty array
 * where the server has no such kind or lets us not see it. */
json_t *world_items(struct kube_orchestrator *o, const char *path, bool optional, struct err *err);

/* Its ReplicaSets (none for a StatefulSet) and the pods its selector finds. `recent`: some
 * milliseconds old will do, which is much cheaper. */
int world_pods(struct kube_orchestrator *o, const json_t *workload, bool recent, json_t **sets,
               json_t **pods, struct err *err);

/* Asks for what world_pods() will read; the caller ends it with kube_api_ahead_end(). */
void world_pods_ahead(struct kube_orchestrator *o, const json_t *workload, bool recent);

/* What conduct.h looks at, read just now; fills the arrays, which world_wipe() frees. */
struct world {
    json_t *sets, *pods, *own, *budgets, *quotas, *autoscalers, *services, *rollouts, *claims;
    json_t *targets, *sources, *target_pods;
};
/* `pin` may be NULL (a pin is taken out). Its hosts get their hostname labels where these tell them
 * apart from all other nodes. ERR_NOT_FOUND names a host that is gone. */
int world_read(struct kube_orchestrator *o, const json_t *workload, struct pin *pin,
               struct world *out, struct err *err);
void world_wipe(struct world *world);
/* Asks for what world_workload() and world_read() will read for each of several moves that are begun one
 * right after the other. It ends with kube_api_ahead_forget(). */
void world_moves_ahead(struct kube_orchestrator *o, const char *const *services,
                       const struct pin *pins, size_t n);
/* The same of the cached world_workload() and, where its rollout has ended, world_pods(). */
void world_looks_ahead(struct kube_orchestrator *o, const char *const *services, size_t n);
void world_forget(struct kube_orchestrator *o);
#define AUTO_WORLD __attribute__((cleanup(world_wipe)))

/* Are targets of the pin gone, or about to be taken away? false also when it cannot be seen. */
bool world_targets_taken(struct kube_orchestrator *o, const struct pin *pin);

/* --- write.c: changing a workload --- */

/* 0: written. 1: somebody was faster, read again. -1: *err. With `later` (NULL before) it is only begun: 0,
 * and write_end() tells the rest, unless *later stays NULL. */
int write_apply(struct kube_orchestrator *o, const json_t *workload, const struct mark *mark,
                struct write **later, struct err *err);
/* Fields as they shall be, and the annotation (NULL: none); what is as wanted already is not
 * written. `locked`: nor anything where the workload changed at all since, as by write_apply(). */
int write_patch(struct kube_orchestrator *o, const json_t *workload, const struct pin_fields *then,
                const char *annotation, bool locked, struct write **later, struct err *err);
/* Waits for what was begun, and frees it. */
int write_end(struct kube_orchestrator *o, struct write *write, struct err *err);

/* --- relief.c: struct orchestrator's relieve() (interfaces.md 1.9 rule 3) --- */

int relief_run(void *orchestrator, const struct app_scope *app, struct relief_budget *budget,
               void (*told)(void *arg, const struct relief *relief), void *arg, struct err *err);
void relief_forget(struct kube_orchestrator *o);

/* How often a write is tried that others were faster than: status updates count as changes too, and
 * come in bursts while pods get ready. */
#define WRITE_TRIES 8

#endif
