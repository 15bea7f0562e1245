/* rollout.c - see rollout.h; the steps are those of kubernetes/kubectl:pkg/polymorphichelpers/
 * rollout_status.go. */
#include "adapters/kubernetes/rollout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/kubernetes/kube.h"
#include "model/base/mem.h"

static bool is(const char *text, const char *wanted)
{
    return text && strcmp(text, wanted) == 0;
}

int64_t rollout_replicas(const json_t *workload)
{
    return kube_number(kube_get(workload, "spec"), "replicas", 1);
}

static int64_t status_of(const json_t *workload, const char *key)
{
    return kube_number(kube_get(workload, "status"), key, 0);
}

static enum rollout_state wait_for(char *why, size_t size, const char *what, int64_t have,
                                   int64_t want)
{
    snprintf(why, size, "%lld of %lld pods %s", (long long)have, (long long)want, what);
    return ROLLOUT_WAITING;
}

static enum rollout_state deployment_state(const json_t *workload, char *why, size_t size)
{
    const json_t *progressing = kube_condition_of(workload, "Progressing");
    int64_t replicas = rollout_replicas(workload), all = status_of(workload, "replicas");
    int64_t updated = status_of(workload, "updatedReplicas");
    int64_t available = status_of(workload, "availableReplicas");
    if (is(kube_text(progressing, "reason"), "ProgressDeadlineExceeded")) {
        const char *text = kube_text(progressing, "message");
        snprintf(why, size, "%s", text && text[0] ? text : "progress deadline exceeded");
        return ROLLOUT_FAILED;
    }
    if (updated < replicas)
        return wait_for(why, size, "updated", updated, replicas);
    if (all > updated)
        return wait_for(why, size, "of the old revision are still there", all - updated, all);
    if (available < updated)
        return wait_for(why, size, "available", available, updated);
    return ROLLOUT_DONE;
}

static enum rollout_state stateful_state(const json_t *workload, char *why, size_t size)
{
    const json_t *spec = kube_get(workload, "spec"), *status = kube_get(workload, "status");
    const json_t *strategy = kube_get(spec, "updateStrategy");
    int64_t replicas = rollout_replicas(workload), ready = status_of(workload, "readyReplicas");
    int64_t partition = kube_number(kube_get(strategy, "rollingUpdate"), "partition", 0);
    int64_t updated = status_of(workload, "updatedReplicas");
    if (is(kube_text(strategy, "type"), "OnDelete")) {
        snprintf(why, size, "updateStrategy OnDelete never progresses by itself");
        return ROLLOUT_FAILED;
    }
    if (ready < replicas)
        return wait_for(why, size, "ready", ready, replicas);
    if (partition > 0)
        return updated >= replicas - partition
                   ? ROLLOUT_DONE
                   : wait_for(why, size, "updated", updated, replicas - partition);
    const char *update = kube_text(status, "updateRevision");
    if (update && !is(kube_text(status, "currentRevision"), update))
        return wait_for(why, size, "updated", updated, replicas);
    return ROLLOUT_DONE;
}

bool rollout_seen(const json_t *workload)
{
    int64_t generation = kube_number(kube_get(workload, "metadata"), "generation", 0);
    return status_of(workload, "observedGeneration") >= generation;
}

enum rollout_state rollout_state(const json_t *workload, char *why, size_t size)
{
    if (!rollout_seen(workload)) {
        snprintf(why, size, "the controller has not seen the change yet");
        return ROLLOUT_WAITING;
    }
    return is(kube_text(workload, "kind"), "StatefulSet") ? stateful_state(workload, why, size)
                                                          : deployment_state(workload, why, size);
}

/* --- the pace --- */

/* An integer, or a percentage of the replicas as text. */
static int64_t share_of(const json_t *value, int64_t replicas, int64_t fallback, bool up)
{
    const char *text = json_string_value(value);
    int64_t percent = fallback;
    if (json_is_integer(value))
        return (int64_t)json_integer_value(value);
    if (text)
        percent = strtoll(text, NULL, 10);
    if (percent < 0 || percent > 1000000 || replicas > MODEL_MAX_INSTANCES)
        return 0;
    return (percent * replicas + (up ? 99 : 0)) / 100;
}

struct rollout_pace rollout_pace(const json_t *workload)
{
    int64_t replicas = rollout_replicas(workload);
    const json_t *strategy = kube_path(workload, "spec", "strategy");
    const json_t *rolling = kube_get(strategy, "rollingUpdate");
    if (is(kube_text(workload, "kind"), "StatefulSet"))
        return (struct rollout_pace){0, 1};
    if (is(kube_text(strategy, "type"), "Recreate"))
        return (struct rollout_pace){0, replicas};
    struct rollout_pace pace = {share_of(kube_get(rolling, "maxSurge"), replicas, 25, true),
                                share_of(kube_get(rolling, "maxUnavailable"), replicas, 25, false)};
    if (pace.surge == 0 && pace.unavailable == 0)
        pace.unavailable = 1;
    return pace;
}

/* --- the pods --- */

static const char *controller_uid(const json_t *object)
{
    size_t i;
    const json_t *owner;
    json_array_foreach(kube_path(object, "metadata", "ownerReferences"), i, owner)
        if (json_is_true(json_object_get(owner, "controller")))
            return kube_text(owner, "uid");
    return NULL;
}

static const char *uid_of(const json_t *object)
{
    return kube_text(kube_get(object, "metadata"), "uid");
}

static bool is_owned(const json_t *workload, const json_t *replica_sets, const json_t *pod)
{
    const char *owner = controller_uid(pod), *uid = uid_of(workload);
    const json_t *set;
    size_t i;
    if (!owner || !uid)
        return false;
    if (strcmp(owner, uid) == 0)
        return true;
    json_array_foreach(replica_sets, i, set)
        if (is(uid_of(set), owner))
            return is(controller_uid(set), uid);
    return false;
}

json_t *rollout_pods(const json_t *workload, const json_t *replica_sets, const json_t *pods)
{
    json_t *own = json_array();
    json_t *pod;
    size_t i;
    json_array_foreach((json_t *)pods, i, pod)
    {
        const char *phase = kube_text(kube_get(pod, "status"), "phase");
        if (is_owned(workload, replica_sets, pod) && !is(phase, "Succeeded") &&
            !is(phase, "Failed") && !kube_path(pod, "metadata", "deletionTimestamp"))
            json_array_append(own, pod);
    }
    return own;
}

const char *rollout_unschedulable(const json_t *pods, const char **message)
{
    const json_t *pod;
    size_t i;
    json_array_foreach(pods, i, pod)
    {
        const json_t *scheduled = kube_condition_of(pod, "PodScheduled");
        if (is(kube_text(scheduled, "status"), "False") &&
            is(kube_text(scheduled, "reason"), "Unschedulable")) {
            const char *text = kube_text(scheduled, "message");
            *message = text ? text : "unschedulable";
            return kube_text(kube_get(pod, "metadata"), "name");
        }
    }
    return NULL;
}

const char *rollout_refused(const json_t *workload)
{
    const json_t *failure = kube_condition_of(workload, "ReplicaFailure");
    const char *text = kube_text(failure, "message");
    return is(kube_text(failure, "status"), "True") ? text ? text : "pods are not made" : NULL;
}

const json_t *rollout_blocking(const json_t *workload, const json_t *pods)
{
    const char *update = kube_text(kube_get(workload, "status"), "updateRevision");
    int64_t generation = kube_number(kube_get(workload, "metadata"), "generation", 0);
    const json_t *pod;
    size_t i;
    if (!is(kube_text(workload, "kind"), "StatefulSet") || !update ||
        status_of(workload, "observedGeneration") < generation)
        return NULL;
    json_array_foreach(pods, i, pod)
    {
        const char *revision =
            kube_text(kube_path(pod, "metadata", "labels"), "controller-revision-hash");
        if (revision && !is(revision, update) &&
            !is(kube_text(kube_condition_of(pod, "Ready"), "status"), "True"))
            return pod;
    }
    return NULL;
}

static const char *node_of(const json_t *pod)
{
    return kube_text(kube_get(pod, "spec"), "nodeName");
}

static int64_t count_on(const json_t *pods, const char *node)
{
    const json_t *pod;
    size_t i;
    int64_t n = 0;
    json_array_foreach(pods, i, pod)
        n += is(node_of(pod), node);
    return n;
}

/* "node-4, node-7 and 3 more": where those are that are not on a wanted host. */
static void tell_others(const struct pin *pin, const json_t *pods, char *out, size_t size)
{
    const json_t *pod;
    size_t i, told = 0, more = 0, at = 0;
    out[0] = '\0';
    json_array_foreach(pods, i, pod)
    {
        const char *node = node_of(pod);
        if (!node || pin_has_host(pin, node) || strstr(out, node))
            continue;
        if (told == 3 || at + strlen(node) + 20 > size) {
            more++;
            continue;
        }
        at += (size_t)snprintf(out + at, size - at, "%s%s", told++ ? ", " : "", node);
    }
    if (more)
        snprintf(out + at, size - at, " and %zu more", more);
}

bool rollout_disrupted(const json_t *workload, const json_t *replica_sets, const json_t *pods)
{
    const json_t *pod;
    size_t i;
    json_array_foreach(pods, i, pod)
        if (is_owned(workload, replica_sets, pod) &&
            is(kube_text(kube_condition_of(pod, "DisruptionTarget"), "status"), "True"))
            return true;
    return false;
}

void rollout_outcome(const struct pin *pin, const json_t *pods, bool taken,
                     struct settle_report *out)
{
    int64_t running = (int64_t)json_array_size(pods), wanted = 0, there = 0;
    char others[120];
    *out = (struct settle_report){.state = SETTLE_APPLIED};
    for (size_t h = 0; h < pin->n_hosts; h++) {
        int64_t on = count_on(pods, pin->hosts[h].node);
        wanted += pin->hosts[h].count;
        there += on < pin->hosts[h].count ? on : pin->hosts[h].count;
    }
    int64_t all = running < wanted ? running : wanted;
    if (there >= all && there > 0)
        return;
    tell_others(pin, pods, others, sizeof others);
    out->state = taken ? SETTLE_DISPLACED : there > 0 ? SETTLE_PARTIAL : SETTLE_MISSED;
    snprintf(out->detail, sizeof out->detail, "%lld of %lld replicas are where they were sent%s%s",
             (long long)there, (long long)all, others[0] ? "; others on " : "", others);
}
