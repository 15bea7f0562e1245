/* standing.c - see standing.h. */
#include "adapters/kubernetes/standing.h"

#include <string.h>

#include "adapters/kubernetes/owners.h"
#include "adapters/kubernetes/rollout.h"
#include "model/base/json.h"

/* Rules that need more than the workload, or have a place of their own in the model. */
static bool is_judged_elsewhere(const char *rule)
{
    static const char *const names[] = {"rollout", "scaling", "budgets", "volumes", "window"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(names[i], rule) == 0)
            return true;
    return false;
}

static char *find_problem(const struct standing *standing, const json_t *workload,
                          const struct mark *mark)
{
    char why[200];
    const struct pin pin = {.kind = standing->pin}; /* wherever it leads */
    /* After every quiet time: those end by themselves, without a change that would be seen here. */
    const struct conduct conduct = {.workload = workload,
                                    .mark = mark,
                                    .pin = &pin,
                                    .now_ms = INT64_MAX / 2,
                                    .options = standing->options};
    const char *rule = conduct_problem(&conduct, why, sizeof why);
    return rule && !is_judged_elsewhere(rule) ? mem_strdup(why) : NULL;
}

static json_t *copy_terms(const json_t *leaf)
{
    const json_t *terms = kube_get(leaf, "nodeSelectorTerms");
    return terms ? json_deep_copy(terms) : NULL;
}

/* Of the containers only what they take: that is all that quotas ask. */
static json_t *resources_of(const json_t *spec)
{
    size_t i;
    const json_t *container;
    json_t *containers = json_array();
    json_array_foreach(kube_get(spec, "containers"), i, container)
        json_array_append_new(containers, json_pack("{s:O?}", "resources",
                                                    json_object_get(container, "resources")));
    return json_pack("{s:o}", "containers", containers);
}

static void note_pin(const json_t *workload, const struct mark *mark, struct kube_workload *out)
{
    if (!mark || mark->pin.kind != PIN_REQUIRED || !mark_holds(mark, workload))
        return;
    out->pin_terms = copy_terms(mark->leaf);
    out->user_terms = copy_terms(pin_leaf_get(mark->original.affinity, PIN_REQUIRED));
    out->pin_spreads = mark->constraint != NULL;
}

void standing_judge(const struct standing *standing, const char *kind, const json_t *object,
                    struct kube_workload *out)
{
    const owners_path template = {"spec", "template", NULL};
    struct owner owner;
    AUTO_JSON json_t *workload = json_copy((json_t *)(uintptr_t)object); /* items bear no kind */
    json_object_set_new(workload, "kind", json_string(kind));
    out->digest = mark_template(workload);
    if (standing->replicas)
        return;
    struct err unreadable = ERR_INIT;
    AUTO(mark) struct mark *mark = mark_of(workload, &unreadable);
    struct rollout_pace pace = rollout_pace(workload);
    out->unavailable = pace.unavailable;
    out->surges = pace.surge > 0;
    out->surge = pace.surge;
    out->pod_spec = resources_of(kube_get(kube_path(workload, "spec", "template"), "spec"));
    out->why = find_problem(standing, workload, mark);
    note_pin(workload, mark, out);
    if (owners_newest(workload, template, &owner) && owner.time_ms >= 0) {
        out->changed_by = mem_strdup(owner.manager);
        out->changed_ms = owner.time_ms;
    }
}
