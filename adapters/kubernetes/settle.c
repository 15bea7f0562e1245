/* settle.c - struct orchestrator's settled(): what has become of a pin, by the rollout that it started and by
 * where the pods are (interfaces.md 1.7). */
#include "adapters/kubernetes/orchestrator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/kubernetes/evict.h"
#include "adapters/kubernetes/kube.h"
#include "adapters/kubernetes/rollout.h"
#include "model/base/clock.h"
#include "model/base/json.h"

#define PODS_MS 1000 /* between two looks at the pods of a rollout: two lists each */

void settle_ahead(void *ctx, const struct placement *placements, size_t n)
{
    struct kube_orchestrator *o = ctx;
    AUTO_FREE const char **services = mem_array(n + 1, sizeof *services);
    kube_api_ahead_forget(o->api);
    for (size_t i = 0; i < n; i++)
        services[i] = placements[i].service;
    if (n > 1)
        world_looks_ahead(o, services, n);
}

static int settle_look(struct kube_orchestrator *o, const json_t *workload,
                       const struct mark *mark, bool recent, bool *disrupted,
                       struct settle_report *out, struct err *err)
{
    AUTO_JSON json_t *sets = NULL, *pods = NULL;
    if (world_pods(o, workload, recent, &sets, &pods, err))
        return -1;
    AUTO_JSON json_t *own = rollout_pods(workload, sets, pods);
    rollout_outcome(&mark->pin, own, false, out);
    *disrupted = rollout_disrupted(workload, sets, pods);
    return 0;
}

static int settle_by_pods(struct kube_orchestrator *o, const json_t *workload,
                          const struct mark *mark, struct pin_memory *memory,
                          struct settle_report *out, struct err *err)
{
    bool disrupted = false;
    if (settle_look(o, workload, mark, true, &disrupted, out, err))
        return -1;
    /* Pods that were seen where they were sent are there; of others there may be newer news. */
    if (out->state != SETTLE_APPLIED && settle_look(o, workload, mark, false, &disrupted, out, err))
        return -1;
    memory->applied |= out->state == SETTLE_APPLIED;
    if (out->state != SETTLE_APPLIED &&
        (memory->applied || disrupted || world_targets_taken(o, &mark->pin)))
        out->state = SETTLE_DISPLACED;
    return 0;
}

/* For how long now? Long enough, and the move has failed. */
static void settle_stands(const struct kube_orchestrator *o, struct pin_memory *memory,
                          struct settle_report *out)
{
    int64_t now = clock_mono_ms();
    memory->stuck_ms = memory->stuck_ms < 0 ? now : memory->stuck_ms;
    if (now - memory->stuck_ms >= o->unschedulable_ms)
        out->state = SETTLE_FAILED;
}

/* A pod that nobody takes, or that may not even be made: an early sign, unless room is just being
 * made. */
static int settle_stuck(struct kube_orchestrator *o, const json_t *workload,
                        struct pin_memory *memory, struct settle_report *out, struct err *err)
{
    AUTO_JSON json_t *sets = NULL, *pods = NULL;
    const char *message = NULL;
    int64_t now = clock_mono_ms();
    const char *refused = rollout_refused(workload);
    if (refused) {
        settle_stands(o, memory, out);
        snprintf(out->detail, sizeof out->detail, "no pod is made: %s", refused);
        return 0;
    }
    memory->pods_ms = memory->pods_ms < 0 ? now + PODS_MS : memory->pods_ms;
    if (now < memory->pods_ms)
        return 0;
    memory->pods_ms = now + PODS_MS;
    if (world_pods(o, workload, true, &sets, &pods, err))
        return -1;
    AUTO_JSON json_t *own = rollout_pods(workload, sets, pods);
    const char *pod = rollout_unschedulable(own, &message);
    if (!pod) {
        memory->stuck_ms = -1;
        return 0;
    }
    settle_stands(o, memory, out);
    snprintf(out->detail, sizeof out->detail, "%.60s finds no node: %s", pod, message);
    return 0;
}

static int settle_marked(struct kube_orchestrator *o, const json_t *workload, struct mark *mark,
                         struct pin_memory *memory, struct settle_report *out, struct err *err)
{
    char who[150];
    memory->placed = true;
    if (!mark_holds(mark, workload)) {
        orchestrator_note_revert(o, workload, mark, who, sizeof who);
        out->state = SETTLE_MISSED;
        snprintf(out->detail, sizeof out->detail, "reverted by %s", who);
        return 0;
    }
    switch (rollout_state(workload, out->detail, sizeof out->detail)) {
    case ROLLOUT_DONE:
        return settle_by_pods(o, workload, mark, memory, out, err);
    case ROLLOUT_FAILED:
        out->state = SETTLE_FAILED;
        return 0;
    case ROLLOUT_WAITING:
        return settle_stuck(o, workload, memory, out, err);
    }
    return 0;
}

/* Is our rollout still on its way, by what the server had in its cache, or at its end with all pods where
 * they were sent? Most looks end here; whatever else it shows is read anew. */
static bool is_clear(struct kube_orchestrator *o, const struct placement *p,
                     struct pin_memory *memory, struct settle_report *out)
{
    bool disrupted;
    AUTO_JSON json_t *workload = NULL;
    struct err odd = ERR_INIT;
    AUTO_PIN struct pin pin = {.kind = o->kind};
    if (memory->undone || world_workload(o, p->service, true, &workload, &odd))
        return false;
    orchestrator_pin(o, p, &pin);
    AUTO(mark) struct mark *mark = mark_of(workload, &odd);
    if (!orchestrator_marked(mark, p, &pin) || !mark_holds(mark, workload))
        return false;
    memory->placed = true;
    switch (rollout_state(workload, out->detail, sizeof out->detail)) {
    case ROLLOUT_WAITING:
        return settle_stuck(o, workload, memory, out, &odd) == 0;
    case ROLLOUT_DONE:
        world_pods_ahead(o, workload, true);
        if (settle_look(o, workload, mark, true, &disrupted, out, &odd) ||
            out->state != SETTLE_APPLIED)
            return false;
        memory->applied = true;
        return true;
    case ROLLOUT_FAILED:
        return false;
    }
    return false;
}

/* A StatefulSet goes back only when the pod that cannot get ready has gone; its template's own revision
 * comes in its place. */
static void settle_unblock(struct kube_orchestrator *o, const json_t *workload,
                           struct settle_report *out)
{
    AUTO_JSON json_t *sets = NULL, *pods = NULL;
    struct kube_status status;
    struct err why = ERR_INIT;
    const char *kind = kube_text(workload, "kind");
    if (!kind || strcmp(kind, "StatefulSet") != 0 ||
        world_pods(o, workload, false, &sets, &pods, &why))
        return;
    AUTO_JSON json_t *own = rollout_pods(workload, sets, pods);
    const json_t *pod = rollout_blocking(workload, own);
    if (!pod || kube_evict(o->api, pod, &status, &why) == 0)
        return;
    snprintf(out->detail, sizeof out->detail, "%.60s, which cannot get ready, %s",
             kube_text(kube_get(pod, "metadata"), "name"),
             status.code == 403 ? "is in the way: delete it (we may not evict it)"
                                : "is in the way and cannot be evicted yet");
}

static int settle(struct kube_orchestrator *o, const struct placement *p, struct settle_report *out,
                  struct err *err)
{
    struct pin_memory *memory = orchestrator_memory(o, p);
    AUTO_JSON json_t *workload = NULL;
    struct err odd = ERR_INIT;
    AUTO_PIN struct pin pin = {.kind = o->kind};
    *out = (struct settle_report){.state = SETTLE_WAITING};
    if (is_clear(o, p, memory, out))
        return 0;
    *out = (struct settle_report){.state = SETTLE_WAITING};
    if (world_workload(o, p->service, false, &workload, err)) {
        if (err->kind != ERR_NOT_FOUND)
            return -1;
        out->state = memory->undone ? SETTLE_APPLIED : SETTLE_MISSED;
        snprintf(out->detail, sizeof out->detail, "%.199s", err->text);
        *err = (struct err)ERR_INIT;
        return 0;
    }
    orchestrator_pin(o, p, &pin);
    AUTO(mark) struct mark *mark = mark_of(workload, &odd);
    if (memory->undone) { /* back is where the template says, wherever the scheduler puts the pods */
        if (rollout_state(workload, out->detail, sizeof out->detail) == ROLLOUT_DONE)
            out->state = SETTLE_APPLIED;
        else
            settle_unblock(o, workload, out);
        return 0;
    }
    if (orchestrator_marked(mark, p, &pin))
        return settle_marked(o, workload, mark, memory, out, err);
    if (memory->placed) {
        out->state = SETTLE_MISSED;
        snprintf(out->detail, sizeof out->detail, "another hand took the pin and its mark out");
    }
    return 0;
}

int settle_run(void *ctx, const struct placement *p, struct settle_report *out, struct err *err)
{
    struct kube_orchestrator *o = ctx;
    int rc = settle(o, p, out, err);
    kube_api_ahead_end(o->api);
    return rc;
}
