/* conduct.c - the rules, one function each, in the order of interfaces.md 1.9; a table ends the
 * file. Each says why not, in words for the person whose workload stays where it is. */
#include "adapters/kubernetes/conduct.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "adapters/kubernetes/kube.h"
#include "adapters/kubernetes/owners.h"
#include "adapters/kubernetes/rollout.h"
#include "adapters/kubernetes/selector.h"
#include "model/base/clock.h"
#include "model/base/week.h"

#define HOSTNAME "kubernetes.io/hostname"
#define MIN_REVISIONS 3 /* rule 9: our move uses one up, and its undo another */

static bool is(const char *text, const char *wanted)
{
    return text && strcmp(text, wanted) == 0;
}

static const json_t *spec_of(const json_t *workload)
{
    return kube_get(workload, "spec");
}

static const json_t *template_of(const struct conduct *c)
{
    return kube_get(spec_of(c->workload), "template");
}

static const json_t *labels_of(const struct conduct *c)
{
    return kube_path(template_of(c), "metadata", "labels");
}

static const char *name_of(const json_t *object)
{
    const char *name = kube_text(kube_get(object, "metadata"), "name");
    return name ? name : "(unnamed)";
}

static bool is_stateful(const struct conduct *c)
{
    return is(kube_text(c->workload, "kind"), "StatefulSet");
}

static bool no(char *why, size_t size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static bool no(char *why, size_t size, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(why, size, fmt, args);
    va_end(args);
    return false;
}

/* --- 1: ownership --- */

static bool keeps_ownership(const struct conduct *c, char *why, size_t size)
{
    const owners_path path = {"spec",         "template", "spec", "affinity",
                              "nodeAffinity", pin_leaf_name(c->pin->kind), NULL};
    struct owner owner;
    if (!owners_of(c->workload, path, &owner)) {
        AUTO_PIN_FIELDS struct pin_fields now = pin_fields_of(c->workload);
        bool ours = owners_own(c->workload, path) || !pin_leaf_get(now.affinity, c->pin->kind) ||
                    (c->mark && mark_holds(c->mark, c->workload));
        return ours || c->options.merge_foreign ||
               no(why, size, "affinity owned by somebody who left no name");
    }
    if (c->options.merge_foreign && !owner.apply)
        return true;
    return no(why, size, "affinity owned by %s", owner.manager);
}

/* --- 4: availability, and quiet while it is scaled --- */

static const json_t *autoscaler_of(const struct conduct *c)
{
    size_t i;
    const json_t *item;
    json_array_foreach(c->autoscalers, i, item)
    {
        const json_t *ref = kube_path(item, "spec", "scaleTargetRef");
        if (is(kube_text(ref, "kind"), kube_text(c->workload, "kind")) &&
            is(kube_text(ref, "name"), name_of(c->workload)))
            return item;
    }
    return NULL;
}

static bool keeps_scaling(const struct conduct *c, char *why, size_t size)
{
    const json_t *scaler = autoscaler_of(c), *status = kube_get(scaler, "status");
    if (!scaler)
        return true;
    if (c->pin && c->pin->n_hosts < 2)
        return no(why, size, "%s scales it: it would be pinned to a single host",
                  name_of(scaler));
    int64_t replicas = rollout_replicas(c->workload);
    int64_t desired = kube_number(status, "desiredReplicas", replicas);
    if (desired == 0 && replicas > 0) /* as long as it has no metrics it says 0 */
        return no(why, size, "%s does not know yet how many replicas it wants", name_of(scaler));
    if (desired != replicas)
        return no(why, size, "%s is scaling it to %lld replicas", name_of(scaler),
                  (long long)desired);
    const char *last = kube_text(status, "lastScaleTime");
    int64_t at = last ? owners_time_ms(last) : -1;
    char text[CLOCK_TEXT_SIZE], rest[CLOCK_TEXT_SIZE];
    if (at >= 0 && c->now_ms - at < c->options.scaling_ms)
        return no(why, size, "%s scaled it at %s, quiet for %s", name_of(scaler),
                  clock_iso(at, text), duration_text(c->options.scaling_ms, rest));
    return true;
}

/* --- 7: before a rollout starts --- */

static bool keeps_quiet(const struct conduct *c, char *why, size_t size)
{
    char what[150];
    if (rollout_state(c->workload, what, sizeof what) != ROLLOUT_DONE)
        return no(why, size, "a rollout is in progress: %s", what);
    return true;
}

static bool keeps_budgets(const struct conduct *c, char *why, size_t size)
{
    size_t i;
    const json_t *budget;
    int64_t unavailable = rollout_pace(c->workload).unavailable;
    json_array_foreach(c->budgets, i, budget)
    {
        if (!selector_matches(kube_path(budget, "spec", "selector"), labels_of(c)))
            continue;
        int64_t allowed = kube_number(kube_get(budget, "status"), "disruptionsAllowed", 0);
        if (allowed < unavailable)
            return no(why, size, "PodDisruptionBudget %s allows %lld pods to be down, a rollout may "
                                 "take %lld",
                      name_of(budget), (long long)allowed, (long long)unavailable);
    }
    return true;
}

static bool has_surge(const struct conduct *c, char *why, size_t size)
{
    struct rollout_pace pace = rollout_pace(c->workload);
    if (is_stateful(c)) {
        int64_t ready = kube_number(kube_get(c->workload, "status"), "readyReplicas", 0);
        return ready >= 2 || no(why, size, "a StatefulSet stops its pods before it starts new ones, "
                                           "and has %lld ready",
                                (long long)ready);
    }
    if (pace.surge < 1)
        return no(why, size, "its strategy stops pods before it starts new ones");
    if (rollout_replicas(c->workload) == 1 && pace.unavailable > 0)
        return no(why, size, "its only replica may go down during a rollout (maxUnavailable %lld)",
                  (long long)pace.unavailable);
    return true;
}

/* A claim that one node at a time may use: its pod cannot run on two for the moment of a move. */
static bool keeps_volumes(const struct conduct *c, char *why, size_t size)
{
    size_t i, j;
    const json_t *volume, *claim;
    if (is_stateful(c))
        return true;
    json_array_foreach(kube_path(template_of(c), "spec", "volumes"), i, volume)
    {
        const char *name = kube_text(kube_get(volume, "persistentVolumeClaim"), "claimName");
        bool shared = false;
        json_array_foreach(c->claims, j, claim)
        {
            const json_t *modes = kube_path(claim, "spec", "accessModes");
            for (size_t m = 0; name && is(name_of(claim), name) && m < json_array_size(modes); m++)
                shared |= is(json_string_value(json_array_get(modes, m)), "ReadWriteMany") ||
                          is(json_string_value(json_array_get(modes, m)), "ReadOnlyMany");
        }
        if (name && !shared)
            return no(why, size, "volume claim %s can be used on one node at a time", name);
    }
    return true;
}

static bool is_served(const struct conduct *c)
{
    size_t i;
    const json_t *service;
    json_array_foreach(c->services, i, service)
        if (selector_map_matches(kube_path(service, "spec", "selector"), labels_of(c)))
            return true;
    return false;
}

/* Containers that declare ports serve; where none does, all do if a Service leads to them. */
static bool has_probes(const struct conduct *c, char *why, size_t size)
{
    size_t i;
    const json_t *container, *containers = kube_path(template_of(c), "spec", "containers");
    bool declared = false;
    if (c->options.any_probe)
        return true;
    json_array_foreach(containers, i, container)
        declared |= json_array_size(kube_get(container, "ports")) > 0;
    if (!declared && !is_served(c))
        return true;
    json_array_foreach(containers, i, container)
    {
        const char *name = kube_text(container, "name");
        bool serves = !declared || json_array_size(kube_get(container, "ports")) > 0;
        if (serves && !kube_get(container, "readinessProbe"))
            return no(why, size, "container %s has no readiness probe: traffic would reach it too "
                                 "early",
                      name ? name : "(unnamed)");
    }
    return true;
}

/* New pods that may not be beside old ones of the same workload wait for room that the old ones
 * hold: with a surge, for ever (kubernetes/kubernetes#116891). */
static bool keeps_apart(const struct conduct *c, char *why, size_t size)
{
    size_t i, j;
    const json_t *term, *pod;
    const json_t *anti = kube_path(kube_path(template_of(c), "spec", "affinity"), "podAntiAffinity",
                                   "requiredDuringSchedulingIgnoredDuringExecution");
    bool alone = false;
    json_array_foreach(anti, i, term)
        alone |= is(kube_text(term, "topologyKey"), HOSTNAME) &&
                 selector_matches(kube_get(term, "labelSelector"), labels_of(c));
    for (j = 0; alone && j < c->pin->n_hosts; j++) {
        if (c->pin->hosts[j].count > 1)
            return no(why, size, "its anti-affinity allows one replica on %s",
                      c->pin->hosts[j].node);
        json_array_foreach(c->pods, i, pod)
            if (is(kube_text(kube_get(pod, "spec"), "nodeName"), c->pin->hosts[j].node))
                return no(why, size, "its anti-affinity keeps new pods off %s as long as an old one "
                                     "runs there",
                          c->pin->hosts[j].node);
    }
    return true;
}

/* --- 9: soak, history, a pin taken out by others --- */

static bool keeps_soak(const struct conduct *c, char *why, size_t size)
{
    const owners_path path = {"spec", "template", NULL};
    struct owner owner;
    char at[CLOCK_TEXT_SIZE], rest[CLOCK_TEXT_SIZE];
    if (owners_newest(c->workload, path, &owner) &&
        c->now_ms - owner.time_ms < c->options.soak_ms)
        return no(why, size, "%s changed its template at %s, quiet for %s", owner.manager,
                  clock_iso(owner.time_ms, at), duration_text(c->options.soak_ms, rest));
    return true;
}

static bool keeps_history(const struct conduct *c, char *why, size_t size)
{
    int64_t limit = kube_number(spec_of(c->workload), "revisionHistoryLimit", 10);
    if (limit < MIN_REVISIONS)
        return no(why, size, "revisionHistoryLimit %lld: a move would push its releases out",
                  (long long)limit);
    return true;
}

static bool accepts_pins(const struct conduct *c, char *why, size_t size)
{
    if (!c->mark)
        return true;
    if (c->mark->reverted)
        return no(why, size, "reverted by %s: rests until the annotation " MARK_ANNOTATION
                             " is removed",
                  c->mark->reverted);
    AUTO_FREE char *template = mark_template(c->workload);
    if (!mark_holds(c->mark, c->workload) && strcmp(template, c->mark->template) == 0)
        return no(why, size, "its pin was taken out by another hand: rests until the next release");
    return true;
}

/* --- annotation remap/window --- */

static bool keeps_window(const struct conduct *c, char *why, size_t size)
{
    const char *list =
        kube_text(kube_path(c->workload, "metadata", "annotations"), "remap/window");
    bool open = false;
    return !list || (week_list_open(list, c->now_ms, &open) == 0 && open) ||
           no(why, size, "annotated remap/window: %.100s (UTC): not now", list);
}

/* --- 11: not ours to touch --- */

static bool is_ours_to_touch(const struct conduct *c, char *why, size_t size)
{
    size_t i;
    const json_t *owner, *rollout;
    const json_t *meta = kube_get(c->workload, "metadata");
    json_array_foreach(kube_get(meta, "ownerReferences"), i, owner)
    {
        const char *kind = kube_text(owner, "kind"), *name = kube_text(owner, "name");
        if (json_is_true(json_object_get(owner, "controller")))
            return no(why, size, "controlled by %s %s", kind ? kind : "?", name ? name : "?");
    }
    if (kube_get(meta, "deletionTimestamp"))
        return no(why, size, "is being deleted");
    if (is(kube_text(kube_get(meta, "annotations"), "remap/move"), "never"))
        return no(why, size, "annotation remap/move: never");
    if (rollout_replicas(c->workload) == 0)
        return no(why, size, "scaled to 0");
    if (json_is_true(json_object_get(spec_of(c->workload), "paused")))
        return no(why, size, "its rollouts are paused");
    json_array_foreach(c->rollouts, i, rollout)
    {
        const json_t *ref = kube_path(rollout, "spec", "workloadRef");
        if (is(kube_text(ref, "kind"), kube_text(c->workload, "kind")) &&
            is(kube_text(ref, "name"), name_of(c->workload)))
            return no(why, size, "belongs to the Argo Rollout %s", name_of(rollout));
    }
    return true;
}

/* --- 12: autoscalers of nodes --- */

static bool outranks(const struct conduct *c)
{
    size_t i;
    const json_t *pod;
    int64_t own = kube_number(kube_get(json_array_get(c->pods, 0), "spec"), "priority", 0);
    json_array_foreach(c->target_pods, i, pod)
        if (kube_number(kube_get(pod, "spec"), "priority", 0) < own)
            return true;
    return false;
}

static bool keeps_required(const struct conduct *c, char *why, size_t size)
{
    if (c->pin->kind != PIN_REQUIRED || c->options.force_required)
        return true;
    if (c->scaler)
        return no(why, size, "pin: required is refused where %s provides the nodes", c->scaler);
    if (outranks(c))
        return no(why, size, "pin: required is refused: its priority could drive others off the "
                             "target");
    return true;
}

static bool node_is_leaving(const json_t *node, const char **taint)
{
    static const char *const keys[] = {"karpenter.sh/disrupted", "ToBeDeletedByClusterAutoscaler",
                                       "DeletionCandidateOfClusterAutoscaler"};
    size_t i;
    const json_t *item;
    json_array_foreach(kube_path(node, "spec", "taints"), i, item)
        for (size_t k = 0; k < ARRAY_LEN(keys); k++)
            if (is(kube_text(item, "key"), keys[k])) {
                *taint = keys[k];
                return true;
            }
    return false;
}

bool conduct_node_leaves(const json_t *node)
{
    const char *taint;
    return node_is_leaving(node, &taint);
}

/* Labels that tell one kind of node from another; the well-known ones and those of the clouds. */
static const char *const kinds_of_node[] = {
    "kubernetes.io/arch",           "kubernetes.io/os",
    "karpenter.sh/nodepool",        "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",  "kubernetes.azure.com/agentpool",
    "karpenter.sh/capacity-type",   "eks.amazonaws.com/capacityType",
    "cloud.google.com/gke-spot",    "kubernetes.azure.com/scalesetpriority"};

static bool is_same(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

/* The label by which the node differs from every node that the workload runs on; NULL: none. */
static const char *other_kind(const struct conduct *c, const json_t *node)
{
    const json_t *labels = kube_path(node, "metadata", "labels"), *source;
    for (size_t k = 0; k < ARRAY_LEN(kinds_of_node); k++) {
        bool known = json_array_size(c->sources) == 0;
        size_t i;
        json_array_foreach(c->sources, i, source)
            known |= is_same(kube_text(labels, kinds_of_node[k]),
                             kube_text(kube_path(source, "metadata", "labels"), kinds_of_node[k]));
        if (!known)
            return kinds_of_node[k];
    }
    return NULL;
}

static bool keeps_off_nodes(const struct conduct *c, char *why, size_t size)
{
    size_t i;
    const json_t *node;
    json_array_foreach(c->targets, i, node)
    {
        const char *created = kube_text(kube_get(node, "metadata"), "creationTimestamp");
        int64_t at = created ? owners_time_ms(created) : -1;
        const char *what = NULL;
        if (node_is_leaving(node, &what))
            return no(why, size, "%s is about to be taken away (%s)", name_of(node), what);
        if (json_is_true(json_object_get(kube_get(node, "spec"), "unschedulable")) ||
            !kube_condition(kube_get(node, "status"), "Ready"))
            return no(why, size, "%s is cordoned or not ready", name_of(node));
        if (at >= 0 && c->now_ms - at < c->options.min_node_age_ms)
            return no(why, size, "%s is too young: created at %s", name_of(node), created);
        what = c->options.any_pool ? NULL : other_kind(c, node);
        if (what)
            return no(why, size, "%s is another kind of node than now: %s", name_of(node), what);
    }
    return true;
}

/* --- all of them --- */

static const struct {
    const char *name;
    bool (*keeps)(const struct conduct *conduct, char *why, size_t size);
    bool pins; /* only where a pin is put in */
} rules[] = {
    {"not ours", is_ours_to_touch, true},
    {"ownership", keeps_ownership, true},
    {"reverted", accepts_pins, true},
    {"soak", keeps_soak, true},
    {"history", keeps_history, true},
    {"rollout", keeps_quiet, false},
    {"scaling", keeps_scaling, false},
    {"budgets", keeps_budgets, false},
    {"surge", has_surge, false},
    {"volumes", keeps_volumes, false},
    {"probes", has_probes, false},
    {"anti-affinity", keeps_apart, true},
    {"required", keeps_required, true},
    {"nodes", keeps_off_nodes, true},
    {"room", room_fits, true},
    {"window", keeps_window, true},
};

const char *conduct_problem(const struct conduct *conduct, char *why, size_t size)
{
    for (size_t i = 0; i < ARRAY_LEN(rules); i++)
        if ((conduct->pin || !rules[i].pins) && !rules[i].keeps(conduct, why, size))
            return rules[i].name;
    return NULL;
}
