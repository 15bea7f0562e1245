/* neighbours.c - what pods ask of each other, as rules of the model (interfaces.md 1.2; 1.9 rules 10
 * and 14): (anti-)affinity, which is symmetric where it is required, spread constraints, ports of the
 * host (kubernetes/kubernetes:pkg/scheduler/framework/plugins/{interpodaffinity,podtopologyspread}).
 *
 * Where the model has no rule that says just the same, the stricter one is taken: a move that is not
 * made costs less than one that leaves a pod Pending. */
#include "adapters/kubernetes/build.h"

#include <stdlib.h>
#include <string.h>

#include "adapters/kubernetes/neighbours.h"
#include "adapters/kubernetes/selector.h"
#include "model/base/mem.h"
#include "model/base/pairs.h"
#include "model/rules.h"

#define HOSTNAME "kubernetes.io/hostname"
#define ZONE "topology.kubernetes.io/zone"

struct work {
    struct kube_build *build;
    struct model *model;
    int *replicas;    /* of each service */
    struct pairs done; /* (a, b) with a <= b: they have a rule `apart` of one */
    int64_t n_hosts, n_zones; /* that receive pods */
};

/* --- topology --- */

/* The value of the node label, NULL where the host has none: it is in no domain then. */
static const char *domain_of(const struct work *work, int host, const char *key)
{
    const struct host *at = &work->model->hosts[host];
    for (size_t i = 0; i < at->n_labels; i++)
        if (strcmp(at->labels[i].name, key) == 0)
            return at->labels[i].value;
    return strcmp(key, HOSTNAME) == 0 ? at->name : NULL;
}

static bool same_domain(const struct work *work, int a, int b, const char *key)
{
    if (a == b)
        return true;
    const char *left = domain_of(work, a, key), *right = domain_of(work, b, key);
    return left && right && strcmp(left, right) == 0;
}

/* --- terms --- */

bool kube_term_selects(const json_t *term, const char *own_space, const char *space,
                       const json_t *labels)
{
    size_t i;
    const json_t *name, *names = kube_get(term, "namespaces");
    bool there = json_is_object(kube_get(term, "namespaceSelector")); /* any of them, to be safe */
    if (!there && json_array_size(names) == 0)
        there = space && own_space && strcmp(space, own_space) == 0;
    json_array_foreach(names, i, name)
        there |= space && json_is_string(name) && strcmp(json_string_value(name), space) == 0;
    return there && selector_matches(kube_get(term, "labelSelector"), labels);
}

static bool selects_service(const struct work *work, const json_t *term, const char *own_space,
                            int service)
{
    const struct kube_spec *spec = work->build->specs[service];
    return spec && kube_term_selects(term, own_space, work->build->spaces[service], spec->labels);
}

static const char *key_of(const json_t *term)
{
    const char *key = kube_text(term, "topologyKey");
    return key ? key : "";
}

/* --- rules --- */

static struct rule *add_rule(struct work *work, enum rule_kind kind, int first, int second)
{
    struct rule *rule = ARRAY_PUSH(work->model->rules, work->model->n_rules);
    rule->kind = kind;
    rule->services = mem_array(2, sizeof *rule->services);
    rule->services[0] = first;
    rule->n_services = 1;
    if (second >= 0 && second != first)
        rule->services[rule->n_services++] = second;
    return rule;
}

static void keep_apart(struct work *work, int a, int b, int64_t max)
{
    int64_t *seen = pairs_at(&work->done, a < b ? a : b, a < b ? b : a);
    if (*seen && *seen <= max)
        return;
    *seen = max;
    add_rule(work, RULE_APART, a, b)->max_per_host = max;
}

static void keep_spread(struct work *work, int service, int64_t max, bool per_zone)
{
    int replicas = work->replicas[service];
    if (replicas < 2 || max >= replicas)
        return;
    struct rule *rule = add_rule(work, RULE_SPREAD, service, -1);
    rule->max_share = (double)(max > 1 ? max : 1) / replicas;
    rule->per_zone = per_zone;
}

/* Forbids a service every host in a domain of `host`, but those where it is already. */
static void keep_out(struct work *work, int service, int host, const char *key)
{
    for (size_t h = 0; h < work->model->n_hosts; h++)
        if (same_domain(work, (int)h, host, key))
            kube_forbid(work->build, service, (int)h);
}

/* Lets a service only into the domains that are marked. */
static void keep_within(struct work *work, int service, const bool *hosts, const char *key)
{
    struct names inside = NAMES_INIT;
    for (size_t h = 0; h < work->model->n_hosts; h++)
        if (hosts[h] && domain_of(work, (int)h, key))
            names_add(&inside, domain_of(work, (int)h, key), 0);
    for (size_t h = 0; h < work->model->n_hosts; h++) {
        const char *domain = domain_of(work, (int)h, key);
        if (!hosts[h] && (!domain || names_get(&inside, domain) < 0))
            kube_forbid(work->build, service, (int)h);
    }
    names_wipe(&inside);
}

static void mark_hosts(const struct work *work, int service, bool *hosts)
{
    for (size_t i = 0; i < work->model->n_instances; i++) {
        const struct instance *instance = &work->model->instances[i];
        if (instance->service == service && instance->host >= 0)
            hosts[instance->host] = true;
    }
}

/* --- required anti-affinity --- */

/* Of a domain larger than a host: one stays in the domains where it is, the other out of them. */
static void part_domains(struct work *work, int service, int other, const char *key)
{
    AUTO_FREE bool *hosts = mem_array(work->model->n_hosts + 1, sizeof *hosts);
    mark_hosts(work, service, hosts);
    keep_within(work, service, hosts, key);
    for (size_t h = 0; h < work->model->n_hosts; h++)
        if (hosts[h])
            keep_out(work, other, (int)h, key);
}

static void part_services(struct work *work, int service, int other, const char *key)
{
    if (strcmp(key, HOSTNAME) == 0)
        keep_apart(work, service, other, 1);
    else if (service != other)
        part_domains(work, service, other, key);
    else if (strcmp(key, ZONE) == 0)
        keep_spread(work, service, 1, true);
    else
        kube_pin_service(work->build, service,
                         "its anti-affinity is over %s, of which the model knows nothing", key);
}

static void part_foreign(struct work *work, const json_t *term, int service, const char *space)
{
    for (size_t f = 0; f < work->build->n_foreign; f++) {
        const struct kube_foreign *foreign = &work->build->foreign[f];
        if (!foreign->pod->meta.ending &&
            kube_term_selects(term, space, foreign->pod->meta.space, foreign->pod->spec->labels))
            keep_out(work, service, foreign->host, key_of(term));
    }
}

static const json_t *required_of(const json_t *affinity)
{
    return kube_get(affinity, "requiredDuringSchedulingIgnoredDuringExecution");
}

static void part_required(struct work *work, int service)
{
    size_t i;
    const json_t *term;
    const char *space = work->build->spaces[service];
    json_array_foreach(required_of(work->build->specs[service]->pod_anti_affinity), i, term)
    {
        for (size_t t = 0; t < work->build->n_services; t++)
            if (selects_service(work, term, space, (int)t))
                part_services(work, service, (int)t, key_of(term));
        part_foreign(work, term, service, space);
    }
}

/* Pods that are not ours may keep ours away too. */
static void part_from_foreign(struct work *work)
{
    for (size_t f = 0; f < work->build->n_foreign; f++) {
        const struct kube_foreign *foreign = &work->build->foreign[f];
        size_t i;
        const json_t *term;
        json_array_foreach(required_of(foreign->pod->spec->pod_anti_affinity), i, term)
            for (size_t s = 0; s < work->build->n_services; s++)
                if (selects_service(work, term, foreign->pod->meta.space, (int)s))
                    keep_out(work, (int)s, foreign->host, key_of(term));
    }
}

/* --- required affinity --- */

/* The only service that the term selects; -1: none or several, or pods that are not ours. */
static int only_partner(const struct work *work, const json_t *term, const char *space)
{
    int found = -1;
    for (size_t t = 0; t < work->build->n_services; t++) {
        if (!selects_service(work, term, space, (int)t))
            continue;
        if (found >= 0)
            return -1;
        found = (int)t;
    }
    for (size_t f = 0; f < work->build->n_foreign && found >= 0; f++) {
        const struct kube_pod *pod = work->build->foreign[f].pod;
        if (kube_term_selects(term, space, pod->meta.space, pod->spec->labels))
            found = -1;
    }
    return found;
}

static void join_required(struct work *work, int service)
{
    size_t i;
    const json_t *term;
    const char *space = work->build->spaces[service];
    json_array_foreach(required_of(work->build->specs[service]->pod_affinity), i, term)
    {
        int partner = only_partner(work, term, space);
        if (partner >= 0 && partner != service && strcmp(key_of(term), HOSTNAME) == 0) {
            add_rule(work, RULE_TOGETHER, service, partner);
            continue;
        }
        /* It may be where a pod that it needs is now. */
        AUTO_FREE bool *hosts = mem_array(work->model->n_hosts + 1, sizeof *hosts);
        for (size_t t = 0; t < work->build->n_services; t++)
            if (selects_service(work, term, space, (int)t))
                mark_hosts(work, (int)t, hosts);
        for (size_t f = 0; f < work->build->n_foreign; f++) {
            const struct kube_foreign *foreign = &work->build->foreign[f];
            if (kube_term_selects(term, space, foreign->pod->meta.space,
                                  foreign->pod->spec->labels))
                hosts[foreign->host] = true;
        }
        keep_within(work, service, hosts, key_of(term));
    }
}

/* --- soft wishes (rule 10) --- */

static int64_t rounded_up(int64_t replicas, int64_t domains)
{
    return domains > 0 ? (replicas + domains - 1) / domains : replicas;
}

/* Evenly, as far as there are domains. */
static void spread_soft(struct work *work, int service, const char *key)
{
    int64_t replicas = work->replicas[service];
    if (strcmp(key, HOSTNAME) == 0)
        keep_spread(work, service, rounded_up(replicas, work->n_hosts), false);
    else if (strcmp(key, ZONE) == 0)
        keep_spread(work, service, rounded_up(replicas, work->n_zones), true);
}

static void part_preferred(struct work *work, int service)
{
    size_t i;
    const json_t *item;
    const char *space = work->build->spaces[service];
    const json_t *preferred = kube_get(work->build->specs[service]->pod_anti_affinity,
                                       "preferredDuringSchedulingIgnoredDuringExecution");
    json_array_foreach(preferred, i, item)
    {
        const json_t *term = kube_get(item, "podAffinityTerm");
        for (size_t t = 0; t < work->build->n_services; t++) {
            if (!selects_service(work, term, space, (int)t))
                continue;
            if ((int)t == service)
                spread_soft(work, service, key_of(term));
            else if (strcmp(key_of(term), HOSTNAME) == 0)
                keep_apart(work, service, (int)t, 1);
        }
    }
}

/* Pods that like to be together and are, on every host, stay so. */
static bool are_together(const struct work *work, int a, int b)
{
    AUTO_FREE bool *left = mem_array(work->model->n_hosts + 1, sizeof *left);
    AUTO_FREE bool *right = mem_array(work->model->n_hosts + 1, sizeof *right);
    mark_hosts(work, a, left);
    mark_hosts(work, b, right);
    return memcmp(left, right, work->model->n_hosts * sizeof *left) == 0;
}

static void join_preferred(struct work *work, int service)
{
    size_t i;
    const json_t *item;
    const char *space = work->build->spaces[service];
    const json_t *preferred = kube_get(work->build->specs[service]->pod_affinity,
                                       "preferredDuringSchedulingIgnoredDuringExecution");
    json_array_foreach(preferred, i, item)
    {
        const json_t *term = kube_get(item, "podAffinityTerm");
        int partner = only_partner(work, term, space);
        if (partner >= 0 && partner != service && strcmp(key_of(term), HOSTNAME) == 0 &&
            are_together(work, service, partner))
            add_rule(work, RULE_TOGETHER, service, partner);
    }
}

/* --- spread constraints --- */

/* Most pods that one of `domains` may hold when all `replicas` run and the fullest has at most
 * `skew` more than the emptiest: m + (domains - 1)(m - skew) <= replicas. */
static int64_t most_of_skew(int64_t replicas, int64_t domains, int64_t skew)
{
    int64_t most = (replicas + (domains - 1) * skew) / (domains > 0 ? domains : 1);
    return most > skew ? most : skew;
}

static void spread_constrained(struct work *work, int service, const json_t *constraint)
{
    const char *key = key_of(constraint), *action = kube_text(constraint, "whenUnsatisfiable");
    bool soft = action && strcmp(action, "ScheduleAnyway") == 0;
    int64_t skew = kube_number(constraint, "maxSkew", 1);
    const struct kube_spec *spec = work->build->specs[service];
    if ((soft && work->build->choice->ignore_soft) ||
        !selector_matches(kube_get(constraint, "labelSelector"), spec->labels))
        return;
    if (strcmp(key, HOSTNAME) == 0)
        keep_spread(work, service, most_of_skew(work->replicas[service], work->n_hosts, skew), false);
    else if (strcmp(key, ZONE) == 0)
        keep_spread(work, service, most_of_skew(work->replicas[service], work->n_zones, skew), true);
    else if (!soft)
        kube_pin_service(work->build, service,
                         "its spread constraint is over %s, of which the model knows nothing", key);
}

/* There can be one constraint of this key and action (the API server sees to it), and the next move
 * replaces it. Its selector is not as it was written: matchLabelKeys are merged into it. */
static bool is_of_pin(const struct kube_workload *workload, const json_t *constraint)
{
    const char *action = kube_text(constraint, "whenUnsatisfiable");
    return workload && workload->pin_spreads && strcmp(key_of(constraint), HOSTNAME) == 0 &&
           action && strcmp(action, "DoNotSchedule") == 0;
}

static void spread_all(struct work *work, int service)
{
    size_t i;
    const json_t *constraint;
    json_array_foreach(work->build->specs[service]->spread, i, constraint)
        if (!is_of_pin(work->build->tops[service].workload, constraint))
            spread_constrained(work, service, constraint);
}

/* --- ports of the host --- */

static bool ports_clash(const struct kube_spec *a, const struct kube_spec *b)
{
    for (size_t i = 0; i < a->n_ports; i++)
        for (size_t j = 0; j < b->n_ports; j++) {
            const struct kube_port *p = &a->ports[i], *q = &b->ports[j];
            bool anywhere = !p->address[0] || !q->address[0] || strcmp(p->address, "0.0.0.0") == 0 ||
                            strcmp(q->address, "0.0.0.0") == 0;
            if (p->port == q->port && strcmp(p->protocol, q->protocol) == 0 &&
                (anywhere || strcmp(p->address, q->address) == 0))
                return true;
        }
    return false;
}

static void part_ports(struct work *work, int service)
{
    const struct kube_build *build = work->build;
    const struct kube_spec *spec = build->specs[service];
    if (spec->n_ports == 0)
        return;
    for (size_t t = (size_t)service; t < build->n_services; t++)
        if (build->specs[t] && ports_clash(spec, build->specs[t]))
            keep_apart(work, service, (int)t, 1);
    for (size_t f = 0; f < build->n_foreign; f++)
        if (ports_clash(spec, build->foreign[f].pod->spec))
            kube_forbid(work->build, service, build->foreign[f].host);
}

/* --- annotations --- */

static void wish_named(struct work *work, int service, const char *name, bool with)
{
    const char *space = work->build->spaces[service], *slash = strchr(name, '/');
    AUTO_FREE char *full = slash ? mem_strdup(name) : mem_printf("%s/%s", space ? space : "", name);
    const char *annotation = with ? "remap/keep-with" : "remap/keep-apart";
    size_t size = space ? strlen(space) : 0;
    const char *own = work->model->services[service].name;
    if (!space || strncmp(full, space, size) != 0 || full[size] != '/') {
        inspection_note(work->build->in, "annotation", 1,
                        "%s of %s names %s, which is of another namespace: not done", annotation,
                        own, full);
        return;
    }
    int other = model_service(work->model, full);
    if (other < 0 || other == service)
        inspection_note(work->build->in, "annotation", 1, "%s of %s names %s, which is not there",
                        annotation, own, full);
    else if (with)
        add_rule(work, RULE_TOGETHER, service, other);
    else
        keep_apart(work, service, other, 1);
}

static void wish_list(struct work *work, int service, const char *list, bool with)
{
    AUTO_FREE char *copy = mem_strdup(list);
    char *rest = copy;
    for (char *name; list && (name = strsep(&rest, ", \t\n"));)
        if (*name)
            wish_named(work, service, name, with);
}

/* How often its traffic counts, against 1 of others: a decimal number. */
static void wish_weight(struct work *work, int service, const char *text)
{
    char *end;
    double weight = strtod(text, &end);
    if (end != text && !*end && strspn(text, "0123456789.") == strlen(text) &&
        weight <= MODEL_MAX_WEIGHT)
        work->model->services[service].weight = weight;
    else
        inspection_note(work->build->in, "annotation", 1,
                        "remap/weight of %s is no number from 0 to %d: %.40s",
                        work->model->services[service].name, MODEL_MAX_WEIGHT, text);
}

static void wish_all(struct work *work, int service)
{
    const struct kube_workload *workload = work->build->tops[service].workload;
    const struct kube_wish *wish = workload ? workload->meta.wish : NULL;
    if (!wish)
        return;
    wish_list(work, service, wish->keep_with, true);
    wish_list(work, service, wish->keep_apart, false);
    if (wish->weight)
        wish_weight(work, service, wish->weight);
}

/* --- all --- */

static void count_domains(struct work *work)
{
    AUTO_FREE int *zones = model_zones(work->model);
    AUTO_FREE bool *seen = mem_array(work->model->n_hosts + 1, sizeof *seen);
    for (size_t h = 0; h < work->model->n_hosts; h++) {
        if (!work->model->hosts[h].schedulable)
            continue;
        work->n_hosts++;
        work->n_zones += !seen[zones[h]];
        seen[zones[h]] = true;
    }
}

void kube_neighbours_add(struct kube_build *build)
{
    struct work work = {.build = build,
                        .model = build->model,
                        .replicas = model_replicas(build->model),
                        .done = PAIRS_INIT};
    count_domains(&work);
    for (size_t s = 0; s < build->n_services; s++) {
        if (!build->specs[s])
            continue;
        part_required(&work, (int)s);
        join_required(&work, (int)s);
        spread_all(&work, (int)s);
        part_ports(&work, (int)s);
        wish_all(&work, (int)s);
        if (!build->choice->ignore_soft) {
            part_preferred(&work, (int)s);
            join_preferred(&work, (int)s);
        }
    }
    part_from_foreign(&work);
    pairs_wipe(&work.done);
    free(work.replicas);
}
