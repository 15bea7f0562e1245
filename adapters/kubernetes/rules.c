/* rules.c - what the cluster says about where services may run, as rules of the model (interfaces.md
 * 1.2; 1.9 rules 4 and 12). */
#include "adapters/kubernetes/build.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"

void kube_pin_service(struct kube_build *build, int service, const char *fmt, ...)
{
    char why[300];
    va_list args;
    va_start(args, fmt);
    vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    for (size_t i = 0; i < build->model->n_instances; i++) {
        struct instance *instance = &build->model->instances[i];
        if (instance->service == service && !instance->pinned_why)
            instance->pinned_why = mem_strdup(why);
    }
}

void kube_forbid(struct kube_build *build, int service, int host)
{
    if (!build->allowed[service]) {
        build->allowed[service] = mem_array(build->model->n_hosts + 1, sizeof(bool));
        for (size_t h = 0; h < build->model->n_hosts; h++)
            build->allowed[service][h] = true;
    }
    build->allowed[service][host] = false;
}

/* No host holds more than half of a service, rounded up. */
static void add_spread(struct model *model)
{
    AUTO_FREE int *replicas = model_replicas(model);
    for (size_t s = 0; s < model->n_services; s++) {
        if (replicas[s] < 2)
            continue;
        struct rule *rule = ARRAY_PUSH(model->rules, model->n_rules);
        rule->kind = RULE_SPREAD;
        rule->services = mem_array(1, sizeof *rule->services);
        rule->services[0] = (int)s;
        rule->n_services = 1;
        rule->max_share = (double)((replicas[s] + 1) / 2) / replicas[s];
    }
}

/* True for services of which something may move. */
static bool *find_movable(const struct model *model)
{
    bool *movable = mem_array(model->n_services + 1, sizeof *movable);
    for (size_t i = 0; i < model->n_instances; i++)
        if (!model->instances[i].pinned_why)
            movable[model->instances[i].service] = true;
    return movable;
}

static bool tolerates_all(const struct kube_fit *fit, const struct kube_taints *taints)
{
    for (size_t i = 0; i < taints->n; i++)
        if (!kube_fit_tolerates(fit, &taints->items[i]))
            return false;
    return true;
}

/* A tainted node that no movable service tolerates receives nothing at all: that is no rule. */
static void close_tainted(const struct kube_build *build, const bool *movable)
{
    for (size_t h = 0; h < build->model->n_hosts; h++) {
        const struct kube_taints *taints = &build->nodes[h]->taints;
        bool open = taints->n == 0;
        for (size_t s = 0; s < build->n_services && !open; s++)
            open = movable[s] && build->specs[s] && tolerates_all(&build->specs[s]->fit, taints);
        if (!open)
            build->model->hosts[h].schedulable = false;
    }
}

/* Terms that our own pin wrote say where the pods are, not where they may be. */
static struct kube_fit users_fit(const struct kube_build *build, int service)
{
    const struct kube_workload *workload = build->tops[service].workload;
    struct kube_fit fit = build->specs[service]->fit;
    if (workload && workload->pin_terms && json_equal(fit.terms, workload->pin_terms))
        fit.terms = workload->user_terms;
    return fit;
}

/* What the nodes themselves say to the service's pods. */
static void forbid_unfit(struct kube_build *build, int service)
{
    const struct kube_fit users = users_fit(build, service), *fit = &users;
    for (size_t h = 0; h < build->model->n_hosts; h++) {
        const struct host *host = &build->model->hosts[h];
        if (!tolerates_all(fit, &build->nodes[h]->taints) ||
            !kube_fit_selects(fit, host->name, host->labels, host->n_labels))
            kube_forbid(build, service, (int)h);
    }
}

/* --- kinds of nodes (rule 12) --- */

/* Labels that tell one kind of node from another; the well-known ones and those of the clouds. */
static const char *const kinds_of_node[] = {
    "kubernetes.io/arch",          "kubernetes.io/os",
    "karpenter.sh/nodepool",       "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup", "kubernetes.azure.com/agentpool",
    "karpenter.sh/capacity-type",  "eks.amazonaws.com/capacityType",
    "cloud.google.com/gke-spot",   "kubernetes.azure.com/scalesetpriority"};

static const char *label_of(const struct host *host, const char *name)
{
    for (size_t i = 0; i < host->n_labels; i++)
        if (strcmp(host->labels[i].name, name) == 0)
            return host->labels[i].value;
    return "";
}

/* Numbers that are equal where two hosts are of one kind. Caller frees. */
static int *node_kinds(const struct model *model)
{
    int *kinds = mem_array(model->n_hosts + 1, sizeof *kinds);
    for (size_t h = 0; h < model->n_hosts; h++) {
        kinds[h] = (int)h;
        for (size_t g = 0; g < h && kinds[h] == (int)h; g++) {
            bool same = kinds[g] == (int)g; /* the first of its kind */
            for (size_t k = 0; k < ARRAY_LEN(kinds_of_node) && same; k++)
                same = strcmp(label_of(&model->hosts[h], kinds_of_node[k]),
                              label_of(&model->hosts[g], kinds_of_node[k])) == 0;
            if (same)
                kinds[h] = (int)g;
        }
    }
    return kinds;
}

/* A service stays on the kinds of nodes that it has now. */
static void forbid_other_kinds(struct kube_build *build)
{
    const struct model *model = build->model;
    AUTO_FREE int *kinds = node_kinds(model);
    bool several = false;
    for (size_t h = 0; h < model->n_hosts; h++)
        several |= kinds[h] != 0;
    if (!several || build->choice->any_pool)
        return;
    AUTO_FREE bool *has = mem_array(build->n_services * model->n_hosts + 1, sizeof *has);
    AUTO_FREE bool *placed = mem_array(build->n_services + 1, sizeof *placed);
    for (size_t i = 0; i < model->n_instances; i++) {
        const struct instance *instance = &model->instances[i];
        if (instance->host < 0)
            continue;
        placed[instance->service] = true;
        has[(size_t)instance->service * model->n_hosts + (size_t)kinds[instance->host]] = true;
    }
    for (size_t s = 0; s < build->n_services; s++)
        for (size_t h = 0; placed[s] && h < model->n_hosts; h++)
            if (!has[s * model->n_hosts + (size_t)kinds[h]])
                kube_forbid(build, (int)s, (int)h);
}

/* --- volumes --- */

/* Zonal volumes go where their node affinity lets them. */
static void forbid_by_volume(struct kube_build *build, int service, const struct kube_volume *volume)
{
    const struct kube_fit fit = {.terms = volume->terms};
    for (size_t h = 0; volume->terms && h < build->model->n_hosts; h++) {
        const struct host *host = &build->model->hosts[h];
        if (!kube_fit_selects(&fit, host->name, host->labels, host->n_labels))
            kube_forbid(build, service, (int)h);
    }
}

static struct names index_names(const struct kube_objects *objects, enum kube_kind kind,
                                char ***owned)
{
    struct names names = NAMES_INIT;
    *owned = mem_array(kube_places(objects, kind) + 1, sizeof **owned);
    for (size_t i = 0; i < kube_places(objects, kind); i++) {
        const struct kube_meta *meta = kube_at(objects, kind, i);
        if (!meta)
            continue;
        (*owned)[i] = kube_full_name(meta);
        names_add(&names, (*owned)[i], (int)i);
    }
    return names;
}

static void names_drop(struct names *names, char **owned, size_t n)
{
    names_wipe(names);
    for (size_t i = 0; i < n; i++)
        free(owned[i]);
    free(owned);
}

static void forbid_volumes(struct kube_build *build)
{
    const struct kube_objects *objects = build->objects;
    char **claim_names, **volume_names;
    struct names claims = index_names(objects, KUBE_CLAIM, &claim_names);
    struct names volumes = index_names(objects, KUBE_VOLUME, &volume_names);
    for (size_t i = 0; i < build->n_pods; i++) {
        const struct kube_pod *pod = build->pods[i];
        for (size_t c = 0; c < pod->n_claims; c++) {
            AUTO_FREE char *full = mem_printf("%s/%s", pod->meta.space ? pod->meta.space : "",
                                              pod->claims[c]);
            int at = names_get(&claims, full);
            const struct kube_claim *claim =
                at < 0 ? NULL : kube_at(objects, KUBE_CLAIM, (size_t)at);
            at = claim && claim->volume ? names_get(&volumes, claim->volume) : -1;
            if (at >= 0)
                forbid_by_volume(build, build->model->instances[i].service,
                                 kube_at(objects, KUBE_VOLUME, (size_t)at));
        }
    }
    names_drop(&claims, claim_names, kube_places(objects, KUBE_CLAIM));
    names_drop(&volumes, volume_names, kube_places(objects, KUBE_VOLUME));
}

/* --- the rules themselves --- */

static void add_allowed(struct kube_build *build, int service)
{
    struct model *model = build->model;
    AUTO_FREE int *hosts = mem_array(model->n_hosts + 1, sizeof *hosts);
    size_t n = 0;
    bool all = true; /* of those that may receive something */
    for (size_t h = 0; h < model->n_hosts; h++) {
        if (build->allowed[service][h])
            hosts[n++] = (int)h;
        else if (model->hosts[h].schedulable)
            all = false;
    }
    if (all)
        return;
    if (n == 0) {
        kube_pin_service(build, service, "its node selector, affinity, tolerations and volumes fit "
                                         "no node");
        return;
    }
    struct rule *rule = ARRAY_PUSH(model->rules, model->n_rules);
    rule->kind = RULE_ALLOWED;
    rule->services = mem_array(1, sizeof *rule->services);
    rule->services[0] = service;
    rule->n_services = 1;
    rule->hosts = steal(hosts);
    rule->n_hosts = n;
}

void kube_rules_add(struct kube_build *build)
{
    AUTO_FREE bool *movable = find_movable(build->model);
    close_tainted(build, movable);
    forbid_volumes(build);
    forbid_other_kinds(build);
    for (size_t s = 0; s < build->n_services; s++) {
        if (!movable[s])
            continue;
        if (build->specs[s])
            forbid_unfit(build, (int)s);
        if (build->allowed[s])
            add_allowed(build, (int)s);
    }
    add_spread(build->model);
}
