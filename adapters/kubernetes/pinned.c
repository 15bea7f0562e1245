/* pinned.c - pods that nobody may move, and why (build.h). */
#include "adapters/kubernetes/build.h"

#include <stdlib.h>
#include <string.h>

#include "adapters/kubernetes/quota.h"
#include "adapters/kubernetes/selector.h"
#include "model/base/clock.h"
#include "model/base/mem.h"
#include "model/base/week.h"

static bool is(const char *text, const char *wanted)
{
    return text && wanted && strcmp(text, wanted) == 0;
}

const struct kube_scaler *kube_scaler_of(const struct kube_objects *objects,
                                         const struct kube_workload *workload)
{
    for (size_t i = 0; i < kube_places(objects, KUBE_SCALER); i++) {
        const struct kube_scaler *scaler = kube_at(objects, KUBE_SCALER, i);
        if (scaler && is(scaler->target, workload->meta.name) &&
            is(scaler->kind, workload->kind) && is(scaler->meta.space, workload->meta.space))
            return scaler;
    }
    return NULL;
}

/* Of Kubernetes itself, or of somebody that is no Deployment or StatefulSet. */
static char *owner_why(const struct kube_pod *pod, const struct kube_top *top)
{
    if (pod->meta.mirror || is(top->kind, "Node"))
        return mem_strdup("static pod of its node");
    if (pod->meta.never)
        return mem_strdup("annotated remap/move: never");
    if (!top->kind)
        return mem_strdup("bare pod");
    if (is(top->kind, "DaemonSet") || is(top->kind, "Job"))
        return mem_printf("pod of a %s", top->kind);
    if (!top->workload || is(top->kind, "ReplicaSet"))
        return mem_printf("owned by %s %s, which remap does not steer", top->kind, top->name);
    return NULL;
}

/* Moved only at times that its owner allows; at none where nobody can read which. */
static char *window_why(const struct kube_build *build, const struct kube_wish *wish)
{
    bool open = false;
    if (!wish || !wish->window)
        return NULL;
    if (week_list_open(wish->window, build->choice->now_ms, &open))
        return mem_printf("annotated remap/window: %.100s, which is no time of the week such as "
                          "Mon-Fri 22:00-06:00",
                          wish->window);
    return open ? NULL
                : mem_printf("annotated remap/window: %.100s (UTC): not now", wish->window);
}

/* A release wants to be watched before anything else changes (interfaces.md 1.9 rule 9). */
static char *soak_why(const struct kube_build *build, const struct kube_workload *workload)
{
    char at[CLOCK_TEXT_SIZE], rest[CLOCK_TEXT_SIZE];
    const struct kube_choice *choice = build->choice;
    if (workload->changed_ms < 0 || choice->now_ms - workload->changed_ms >= choice->soak_ms)
        return NULL;
    return mem_printf("%s changed its template at %s, quiet for %s",
                      workload->changed_by ? workload->changed_by : "somebody",
                      clock_iso(workload->changed_ms, at), duration_text(choice->soak_ms, rest));
}

/* A rollout does not ask the budgets, so we do (rule 7). */
static char *budget_why(const struct kube_build *build, const struct kube_workload *workload,
                        const struct kube_pod *pod)
{
    for (size_t i = 0; i < kube_places(build->objects, KUBE_BUDGET); i++) {
        const struct kube_budget *budget = kube_at(build->objects, KUBE_BUDGET, i);
        if (budget && is(budget->meta.space, pod->meta.space) &&
            budget->allowed < workload->unavailable &&
            selector_matches(budget->selector, pod->spec->labels))
            return mem_printf("PodDisruptionBudget %s allows %lld pods to be down, a rollout may "
                              "take %lld",
                              budget->meta.name, (long long)budget->allowed,
                              (long long)workload->unavailable);
    }
    return NULL;
}

/* A surge that the namespace does not let in, or pods that it would not let in today (rule 7). */
static char *quota_why(const struct kube_build *build, const struct kube_workload *workload,
                       const struct kube_pod *pod)
{
    const struct kube_objects *objects = build->objects;
    const struct quota_need need = {
        .pods = workload->surge,
        .cpu_millis = pod->cpu_request_millis,
        .mem_bytes = pod->mem_request_bytes,
        .limit_cpu_millis = quota_limits(workload->pod_spec, "cpu", 1000),
        .limit_mem_bytes = quota_limits(workload->pod_spec, "memory", 1)};
    char text[80];
    for (size_t i = 0; i < kube_places(objects, KUBE_QUOTA); i++) {
        const struct kube_space_rule *quota = kube_at(objects, KUBE_QUOTA, i);
        const char *what = quota && is(quota->meta.space, pod->meta.space)
                               ? quota_problem(quota->object, &need)
                               : NULL;
        if (what)
            return mem_printf("ResourceQuota %s has no room for the surge: %s", quota->meta.name,
                              what);
    }
    for (size_t i = 0; workload->pod_spec && i < kube_places(objects, KUBE_LIMITS); i++) {
        const struct kube_space_rule *range = kube_at(objects, KUBE_LIMITS, i);
        if (range && is(range->meta.space, pod->meta.space) &&
            quota_range_problem(range->object, workload->pod_spec, text, sizeof text))
            return mem_printf("LimitRange %s would not let its new pods in: %s", range->meta.name,
                              text);
    }
    return NULL;
}

/* What is scaled is left alone while that goes on, and is never on a single host (rule 4). */
static char *scaling_why(const struct kube_build *build, const struct kube_workload *workload)
{
    char at[CLOCK_TEXT_SIZE], rest[CLOCK_TEXT_SIZE];
    const struct kube_choice *choice = build->choice;
    const struct kube_scaler *scaler = kube_scaler_of(build->objects, workload);
    if (!scaler)
        return NULL;
    if (scaler->desired == 0 && workload->replicas > 0)
        return mem_printf("%s does not know yet how many replicas it wants", scaler->meta.name);
    if (scaler->scaled_ms >= 0 && choice->now_ms - scaler->scaled_ms < choice->scaling_ms)
        return mem_printf("%s scaled it at %s, quiet for %s", scaler->meta.name,
                          clock_iso(scaler->scaled_ms, at),
                          duration_text(choice->scaling_ms, rest));
    return workload->replicas < 2 && workload->pod_spec /* a template is to be pinned */
               ? mem_printf("%s scales it: it would be pinned to a single host", scaler->meta.name)
               : NULL;
}

static char *workload_why(const struct kube_build *build, const struct kube_workload *workload)
{
    const struct kube_owner *owner = &workload->meta.owner;
    if (owner->kind)
        return mem_printf("its %s is owned by %s %s", workload->kind, owner->kind,
                          owner->name ? owner->name : "?");
    if (workload->paused)
        return mem_printf("its %s is paused", workload->kind);
    for (size_t i = 0; i < kube_places(build->objects, KUBE_ROLLOUT); i++) {
        const struct kube_reference *rollout = kube_at(build->objects, KUBE_ROLLOUT, i);
        if (rollout && is(rollout->target, workload->meta.name) &&
            is(rollout->kind, workload->kind) && is(rollout->meta.space, workload->meta.space))
            return mem_printf("its %s belongs to the Argo Rollout %s", workload->kind,
                              rollout->meta.name);
    }
    /* As it is: `remap show -o patch` knows by these words what it may offer. */
    return workload->why ? mem_strdup(workload->why) : soak_why(build, workload);
}

static const void *find_named(const struct kube_objects *objects, enum kube_kind kind,
                              const char *space, const char *name)
{
    for (size_t i = 0; i < kube_places(objects, kind); i++) {
        const struct kube_meta *meta = kube_at(objects, kind, i);
        if (meta && is(meta->name, name) && (!space || is(meta->space, space)))
            return meta;
    }
    return NULL;
}

/* A volume that exists on the pod's node only goes nowhere, whatever the user allows; one that a single
 * node may use at a time cannot be where the old pod is and where the new one starts. */
static char *volume_why(const struct kube_build *build, const struct kube_workload *workload,
                        const struct kube_pod *pod)
{
    for (size_t i = 0; i < pod->n_claims; i++) {
        const struct kube_claim *claim =
            find_named(build->objects, KUBE_CLAIM, pod->meta.space, pod->claims[i]);
        const struct kube_volume *volume =
            claim && claim->volume ? find_named(build->objects, KUBE_VOLUME, NULL, claim->volume)
                                   : NULL;
        if (volume && volume->local)
            return mem_printf("volume %s of claim %s is on its node only", volume->meta.name,
                              claim->meta.name);
        if (workload->surges && (!claim || !claim->shared))
            return mem_printf("volume claim %s can be used on one node at a time", pod->claims[i]);
    }
    return NULL;
}

char *kube_pinned_why(const struct kube_build *build, const struct kube_pod *pod,
                      const struct kube_top *top)
{
    char *why = owner_why(pod, top);
    if (!why)
        why = workload_why(build, top->workload);
    if (!why)
        why = volume_why(build, top->workload, pod);
    if (!why)
        why = scaling_why(build, top->workload);
    if (!why)
        why = quota_why(build, top->workload, pod);
    if (!why)
        why = window_why(build, top->workload->meta.wish);
    return why ? why : budget_why(build, top->workload, pod);
}
