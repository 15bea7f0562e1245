/* rules.c - what the cluster says about where services may run, as rules of the model (interfaces.md
 * 1.2; 1.9 rule 4). */
#include <stdlib.h>

#include "adapters/kubernetes/kube.h"
#include "model/base/mem.h"

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

/* What the movable pods of each service ask of a node; NULL: it has none. Replicas are alike. */
static const struct kube_fit **find_fits(const struct kube_objects *objects,
                                         const struct model *model)
{
    const struct kube_fit **fits = mem_array(model->n_services + 1, sizeof *fits);
    for (size_t i = 0; i < objects->n_pods; i++) {
        const struct kube_pod *pod = &objects->pods[i];
        AUTO_FREE char *name = mem_printf("%s%s%s", pod->meta.space ? pod->meta.space : "",
                                          pod->meta.space ? "/" : "", pod->meta.name);
        int at = model_instance(model, name);
        if (at >= 0 && !model->instances[at].pinned_why)
            fits[model->instances[at].service] = &pod->fit;
    }
    return fits;
}

static bool tolerates_all(const struct kube_fit *fit, const struct kube_taints *taints)
{
    for (size_t i = 0; i < taints->n; i++)
        if (!kube_fit_tolerates(fit, &taints->items[i]))
            return false;
    return true;
}

static bool may_run(const struct kube_fit *fit, const struct kube_node *node,
                    const struct model *model)
{
    const struct host *host = &model->hosts[node->host];
    return tolerates_all(fit, &node->taints) &&
           kube_fit_selects(fit, host->name, host->labels, host->n_labels);
}

/* A tainted node that no movable service tolerates receives nothing at all: that is no rule. */
static void close_tainted(const struct kube_objects *objects, const struct kube_fit **fits,
                          struct model *model)
{
    for (size_t i = 0; i < objects->n_nodes; i++) {
        const struct kube_node *node = &objects->nodes[i];
        bool open = node->taints.n == 0;
        for (size_t s = 0; s < model->n_services && !open; s++)
            open = fits[s] && tolerates_all(fits[s], &node->taints);
        if (!open)
            model->hosts[node->host].schedulable = false;
    }
}

static void pin_all(struct model *model, size_t service, const char *why)
{
    for (size_t i = 0; i < model->n_instances; i++)
        if (model->instances[i].service == (int)service && !model->instances[i].pinned_why)
            model->instances[i].pinned_why = mem_strdup(why);
}

static void add_allowed(const struct kube_objects *objects, const struct kube_fit *fit,
                        size_t service, struct model *model)
{
    AUTO_FREE int *hosts = mem_array(objects->n_nodes + 1, sizeof *hosts);
    size_t n = 0;
    bool all = true; /* of those that may receive something */
    for (size_t i = 0; i < objects->n_nodes; i++) {
        if (may_run(fit, &objects->nodes[i], model))
            hosts[n++] = objects->nodes[i].host;
        else if (model->hosts[objects->nodes[i].host].schedulable)
            all = false;
    }
    if (all)
        return;
    if (n == 0) {
        pin_all(model, service, "its node selector, affinity and tolerations fit no node");
        return;
    }
    struct rule *rule = ARRAY_PUSH(model->rules, model->n_rules);
    rule->kind = RULE_ALLOWED;
    rule->services = mem_array(1, sizeof *rule->services);
    rule->services[0] = (int)service;
    rule->n_services = 1;
    rule->hosts = steal(hosts);
    rule->n_hosts = n;
}

void kube_rules_add(const struct kube_objects *objects, struct model *model)
{
    const struct kube_fit **fits = find_fits(objects, model);
    close_tainted(objects, fits, model);
    for (size_t s = 0; s < model->n_services; s++)
        if (fits[s])
            add_allowed(objects, fits[s], s, model);
    add_spread(model);
    free(fits);
}
