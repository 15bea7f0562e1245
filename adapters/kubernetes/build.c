/* build.c - the objects of a cluster as one model (objects.h; names: interfaces.md 1.9 rule 13). */
#include "adapters/kubernetes/build.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/identity.h"
#include "adapters/kubernetes/scope.h"
#include "adapters/kubernetes/selector.h"
#include "model/base/mem.h"

/* --- objects in order --- */

static int by_name(const void *left, const void *right)
{
    const struct kube_meta *a = *(const void *const *)left, *b = *(const void *const *)right;
    int order = strcmp(a->space ? a->space : "", b->space ? b->space : "");
    return order ? order : strcmp(a->name, b->name);
}

/* Of up to two kinds together, by name. Caller frees the array. */
static const void **sorted(const struct kube_objects *objects, enum kube_kind kind,
                           enum kube_kind second, size_t *n)
{
    size_t places = kube_places(objects, kind) + kube_places(objects, second);
    const void **list = mem_array(places + 1, sizeof *list);
    *n = 0;
    for (size_t i = 0; i < kube_places(objects, kind); i++)
        if (kube_at(objects, kind, i))
            list[(*n)++] = kube_at(objects, kind, i);
    for (size_t i = 0; second != kind && i < kube_places(objects, second); i++)
        if (kube_at(objects, second, i))
            list[(*n)++] = kube_at(objects, second, i);
    if (*n > 1)
        qsort(list, *n, sizeof *list, by_name);
    return list;
}

static char *plain_name(const char *space, const char *name)
{
    return mem_printf("%s%s%s", space ? space : "", space ? "/" : "", name);
}

char *kube_full_name(const struct kube_meta *meta)
{
    return plain_name(meta->space, meta->name);
}

/* --- scope --- */

static bool space_in_scope(const struct kube_choice *choice, const char *space)
{
    return !(space && scope_lists(choice->excluded, space)) && scope_has_space(choice->app, space);
}

static bool pod_in_scope(const struct kube_choice *choice, const struct kube_pod *pod)
{
    return !pod->meta.ending && space_in_scope(choice, pod->meta.space) &&
           (!choice->selector || selector_matches(choice->selector, pod->spec->labels));
}

/* --- owners --- */

static const struct kube_workload *find_workload(const struct kube_objects *objects,
                                                 const char *uid)
{
    static const enum kube_kind kinds[] = {KUBE_REPLICA_SET, KUBE_DEPLOYMENT, KUBE_STATEFUL_SET,
                                           KUBE_DAEMON_SET};
    const struct kube_workload *found = NULL;
    for (size_t k = 0; k < ARRAY_LEN(kinds) && uid && !found; k++)
        found = table_find(&objects->tables[kinds[k]], uid);
    return found;
}

/* Up the controller references, by uid; chains are short, circles end. */
static struct kube_top find_top(const struct kube_objects *objects, const struct kube_pod *pod)
{
    struct kube_top top = {NULL, pod->meta.owner.kind, pod->meta.owner.name};
    const char *uid = pod->meta.owner.uid;
    for (int steps = 0; steps < 8; steps++) {
        const struct kube_workload *workload = find_workload(objects, uid);
        if (!workload)
            break;
        top = (struct kube_top){workload, workload->kind, workload->meta.name};
        /* A ReplicaSet belongs to its Deployment, or to what its operator has instead. */
        const struct kube_owner *owner = &workload->meta.owner;
        if (!owner->uid || strcmp(workload->kind, "ReplicaSet") != 0)
            break;
        if (!find_workload(objects, owner->uid)) {
            top = (struct kube_top){NULL, owner->kind, owner->name};
            break;
        }
        uid = owner->uid;
    }
    return top;
}

/* A pod that nothing steers is a service of its own. */
static struct kube_top service_top(const struct kube_top *top, const struct kube_pod *pod)
{
    if (top->kind && top->name && strcmp(top->kind, "Node") != 0)
        return *top;
    return (struct kube_top){NULL, "Pod", pod->meta.name};
}

/* --- names that two kinds share --- */

struct kinds {
    struct names names; /* "space/name" → index in of */
    const char **of;    /* the kind of that name; NULL when several */
    char **owned;
    size_t n;
};

static void kinds_count(struct kinds *kinds, const char *space, const char *kind, const char *name)
{
    AUTO_FREE char *full = plain_name(space, name);
    int at = names_get(&kinds->names, full);
    if (at >= 0) {
        if (kinds->of[at] && strcmp(kinds->of[at], kind) != 0)
            kinds->of[at] = NULL;
        return;
    }
    size_t n = kinds->n;
    char **owned = ARRAY_PUSH(kinds->owned, kinds->n);
    kinds->of = mem_resize(kinds->of, n + 1, sizeof *kinds->of);
    *owned = steal(full);
    kinds->of[n] = kind;
    names_add(&kinds->names, *owned, (int)n);
}

static void kinds_wipe(struct kinds *kinds)
{
    for (size_t i = 0; i < kinds->n; i++)
        free(kinds->owned[i]);
    free(kinds->owned);
    free(kinds->of);
    names_wipe(&kinds->names);
}

/* "namespace/name", or "namespace/kind/name" where two kinds share it. */
static char *service_name(const struct kinds *kinds, const char *space, const char *kind,
                          const char *name)
{
    char *full = plain_name(space, name);
    int at = names_get(&kinds->names, full);
    if (at < 0 || kinds->of[at])
        return full;
    free(full);
    AUTO_FREE char *lower = mem_strdup(kind);
    for (char *c = lower; *c; c++)
        *c = (char)(*c >= 'A' && *c <= 'Z' ? *c + 32 : *c);
    return mem_printf("%s%s%s/%s", space ? space : "", space ? "/" : "", lower, name);
}

/* --- hosts --- */

/* A hostname label that two nodes bear says of neither where a pod would land (rule 13). */
static void close_doubled(struct kube_build *build)
{
    struct names hostnames = NAMES_INIT;
    for (size_t i = 0; i < build->model->n_hosts; i++) {
        const char *hostname = build->nodes[i]->hostname;
        int other = hostname ? names_add(&hostnames, hostname, (int)i) : -1;
        if (other < 0)
            continue;
        build->model->hosts[i].schedulable = build->model->hosts[other].schedulable = false;
        inspection_note(build->in, "node", 1,
                        "nodes %s and %s receive nothing: both bear the label "
                        "kubernetes.io/hostname=%s",
                        build->model->hosts[other].name, build->model->hosts[i].name, hostname);
    }
    names_wipe(&hostnames);
}

static bool is_young(const struct kube_build *build, const struct kube_node *node)
{
    return node->meta.created_ms >= 0 && build->choice->min_node_age_ms > 0 &&
           build->choice->now_ms - node->meta.created_ms < build->choice->min_node_age_ms;
}

static void copy_labels(const struct kube_node *node, struct host *host)
{
    host->labels = mem_array(node->n_labels + 1, sizeof *host->labels);
    host->n_labels = node->n_labels;
    for (size_t i = 0; i < node->n_labels; i++)
        host->labels[i] =
            (struct label){mem_strdup(node->labels[i].name), mem_strdup(node->labels[i].value)};
}

static void fill_host(struct kube_build *build, const struct kube_node *node, struct host *host)
{
    host->cpu_cap_millis = node->cpu_cap_millis;
    host->mem_cap_bytes = node->mem_cap_bytes;
    host->pods_cap = node->pods_cap;
    host->schedulable = node->schedulable && !node->leaving && !is_young(build, node);
    host->region = mem_strdup(node->region);
    host->zone = mem_strdup(node->zone);
    copy_labels(node, host);
    if (build->in->identity && node->address)
        identity_add(build->in->identity, IDENTITY_HOST, node->address, host->name);
    if (build->in->identity && node->hostname)
        identity_add(build->in->identity, IDENTITY_HOST, node->hostname, host->name);
}

static int add_hosts(struct kube_build *build, struct err *err)
{
    size_t n, n_young = 0, n_leaving = 0;
    build->nodes = (const struct kube_node **)sorted(build->objects, KUBE_NODE, KUBE_NODE, &n);
    for (size_t i = 0; i < n; i++) {
        int host = model_add_host(build->model, build->nodes[i]->meta.name, err);
        if (host < 0)
            return -1;
        fill_host(build, build->nodes[i], &build->model->hosts[host]);
        n_young += is_young(build, build->nodes[i]);
        n_leaving += build->nodes[i]->leaving;
    }
    if (n_young)
        inspection_note(build->in, "node", (int64_t)n_young,
                        "%zu nodes receive nothing yet: they are too young", n_young);
    if (n_leaving)
        inspection_note(build->in, "node", (int64_t)n_leaving,
                        "%zu nodes receive nothing: an autoscaler is about to take them away",
                        n_leaving);
    close_doubled(build);
    return 0;
}

/* --- services --- */

/* Quiet while its replicas change (interfaces.md 1.9 rule 4). */
static bool is_scaled(const struct kube_build *build, const struct kube_top *top, const char *space)
{
    for (size_t i = 0; i < kube_places(build->objects, KUBE_SCALER); i++) {
        const struct kube_scaler *scaler = kube_at(build->objects, KUBE_SCALER, i);
        if (scaler && scaler->target && scaler->kind && space && scaler->meta.space &&
            strcmp(scaler->meta.space, space) == 0 && strcmp(scaler->target, top->name) == 0 &&
            strcmp(scaler->kind, top->kind) == 0 && scaler->desired > 0 &&
            scaler->desired != scaler->current)
            return true;
    }
    return false;
}

/* Index; -1 and ERR_INPUT; -2 when the service is not in scope. */
static int need_service(struct kube_build *build, const struct kinds *kinds, const char *space,
                        const struct kube_top *top, struct err *err)
{
    struct model *model = build->model;
    AUTO_FREE char *name = service_name(kinds, space, top->kind, top->name);
    int service = model_service(model, name);
    if (service >= 0)
        return service;
    if (!scope_has_service(build->choice->app, name))
        return -2;
    service = model_add_service(model, name, err);
    if (service < 0)
        return -1;
    *ARRAY_PUSH(build->tops, build->n_services) = *top;
    struct service *added = &model->services[service];
    added->app = mem_strdup(build->choice->app ? build->choice->app->name : space);
    if (top->workload) {
        added->version = mem_strdup(top->workload->meta.version);
        added->rollout = top->workload->rollout || is_scaled(build, top, space);
        added->movable = !top->workload->meta.never;
    }
    added->stateful = strcmp(top->kind, "StatefulSet") == 0;
    return service;
}

/* Deployments and StatefulSets are services even while they have no pod. */
static int add_services(struct kube_build *build, const struct kinds *kinds, struct err *err)
{
    size_t n;
    int rc = 0;
    const void **list = sorted(build->objects, KUBE_DEPLOYMENT, KUBE_STATEFUL_SET, &n);
    for (size_t i = 0; i < n && rc == 0; i++) {
        const struct kube_workload *workload = list[i];
        struct kube_top top = {workload, workload->kind, workload->meta.name};
        if (!build->choice->selector && space_in_scope(build->choice, workload->meta.space) &&
            need_service(build, kinds, workload->meta.space, &top, err) == -1)
            rc = -1;
    }
    free(list);
    return rc;
}

/* --- instances --- */

static void add_foreign(struct kube_build *build, const struct kube_pod *pod, int host)
{
    if (host < 0)
        return;
    struct host *to = &build->model->hosts[host];
    to->cpu_requested_millis += pod->cpu_request_millis;
    to->mem_requested_bytes += pod->mem_request_bytes;
    to->pods_used++;
    to->ending += pod->meta.ending;
    *ARRAY_PUSH(build->foreign, build->n_foreign) = (struct kube_foreign){pod, host};
}

static int add_instance(struct kube_build *build, const struct kube_pod *pod,
                        const struct kube_top *top, int service, int host, struct err *err)
{
    struct model *model = build->model;
    AUTO_FREE char *name = kube_full_name(&pod->meta);
    int index = model_add_instance(model, name, service, host, err);
    if (index < 0)
        return -1;
    *ARRAY_PUSH(build->pods, build->n_pods) = pod;
    struct instance *instance = &model->instances[index];
    instance->cpu_request_millis = pod->cpu_request_millis;
    instance->mem_request_bytes = pod->mem_request_bytes;
    instance->pinned_why = kube_pinned_why(build, pod, top);
    if (pod->n_claims || pod->spec->host_path)
        model->services[service].stateful = true;
    if (build->in->identity && pod->address)
        identity_add(build->in->identity, IDENTITY_INSTANCE, pod->address, name);
    return 0;
}

struct left_out { /* pods */
    int64_t no_node, waiting;
};

static int add_pod(struct kube_build *build, const struct kinds *kinds, const struct kube_pod *pod,
                   struct left_out *n, struct err *err)
{
    int host = pod->node ? model_host(build->model, pod->node) : -1;
    if (pod->finished)
        return 0;
    n->no_node += pod->node && host < 0;
    if (!pod->node && build->choice->placed_only) {
        n->waiting += pod_in_scope(build->choice, pod);
        return 0;
    }
    if (!pod_in_scope(build->choice, pod)) {
        add_foreign(build, pod, host);
        return 0;
    }
    struct kube_top top = find_top(build->objects, pod), own = service_top(&top, pod);
    int service = need_service(build, kinds, pod->meta.space, &own, err);
    if (service == -2)
        add_foreign(build, pod, host);
    if (service < 0)
        return service == -1 ? -1 : 0;
    return add_instance(build, pod, &top, service, host, err);
}

static int add_pods(struct kube_build *build, const struct kinds *kinds, struct err *err)
{
    size_t n;
    int rc = 0;
    struct left_out out = {0, 0};
    const void **pods = sorted(build->objects, KUBE_POD, KUBE_POD, &n);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = add_pod(build, kinds, pods[i], &out, err);
    free(pods);
    if (rc == 0 && out.no_node)
        inspection_note(build->in, "unmapped", out.no_node,
                        "%lld pods run on nodes that are not among the objects",
                        (long long)out.no_node);
    if (rc == 0 && out.waiting)
        inspection_note(build->in, "waiting", out.waiting,
                        "%lld pods have no node: they wait for the scheduler, and plans leave them "
                        "out",
                        (long long)out.waiting);
    return rc;
}

/* What its autoscaler may add again: so much more each of its replicas asks for, as far as there is
 * room where it is now, so that the plan leaves it where they go (rule 4). */
static void reserve_for_scaling(struct kube_build *build)
{
    struct model *model = build->model;
    AUTO_FREE struct load *used = model_host_loads(model);
    AUTO_FREE int *replicas = model_replicas(model);
    for (size_t i = 0; i < model->n_instances; i++) {
        struct instance *instance = &model->instances[i];
        const struct kube_workload *workload = build->tops[instance->service].workload;
        const struct kube_scaler *scaler =
            workload ? kube_scaler_of(build->objects, workload) : NULL;
        int64_t now = replicas[instance->service];
        int64_t most =
            scaler ? kube_scaler_peak(scaler, build->choice->now_ms - build->choice->peak_ms) : 0;
        if (most <= now || instance->host < 0)
            continue;
        most = most < 100 * now ? most : 100 * now; /* of one that was nearly switched off */
        struct load offer = host_offer(&model->hosts[instance->host]);
        struct load more = {
            .cpu_request_millis = instance->cpu_request_millis * (most - now) / now,
            .mem_request_bytes = instance->mem_request_bytes / now * (most - now)};
        if (!load_fits(&offer, &used[instance->host], &more, NULL))
            continue;
        load_add(&used[instance->host], &more);
        instance->cpu_request_millis += more.cpu_request_millis;
        instance->mem_request_bytes += more.mem_request_bytes;
    }
}

/* Every name of a service that might be needed, so that two kinds of one name are told apart. */
static void count_kinds(const struct kube_build *build, struct kinds *kinds)
{
    static const enum kube_kind of[] = {KUBE_DEPLOYMENT, KUBE_STATEFUL_SET, KUBE_DAEMON_SET};
    const struct kube_objects *objects = build->objects;
    for (size_t k = 0; k < ARRAY_LEN(of); k++)
        for (size_t i = 0; i < kube_places(objects, of[k]); i++) {
            const struct kube_workload *w = kube_at(objects, of[k], i);
            if (w)
                kinds_count(kinds, w->meta.space, w->kind, w->meta.name);
        }
    for (size_t i = 0; i < kube_places(objects, KUBE_POD); i++) {
        const struct kube_pod *pod = kube_at(objects, KUBE_POD, i);
        if (!pod)
            continue;
        struct kube_top top = find_top(objects, pod), own = service_top(&top, pod);
        kinds_count(kinds, pod->meta.space, own.kind, own.name);
        /* An instance may bear a service's name only as its only one (contract.md 2). */
        if (strcmp(own.kind, "Pod") != 0)
            kinds_count(kinds, pod->meta.space, "Pod", pod->meta.name);
    }
}

static void find_specs(struct kube_build *build)
{
    build->specs = mem_array(build->n_services + 1, sizeof *build->specs);
    build->spaces = mem_array(build->n_services + 1, sizeof *build->spaces);
    int64_t *newest = mem_array(build->n_services + 1, sizeof *newest);
    for (size_t i = 0; i < build->n_pods; i++) {
        int s = build->model->instances[i].service;
        int64_t created = build->pods[i]->meta.created_ms + 1;
        if (build->specs[s] && created <= newest[s])
            continue;
        build->specs[s] = build->pods[i]->spec;
        build->spaces[s] = build->pods[i]->meta.space;
        newest[s] = created;
    }
    free(newest);
}

static void build_wipe(struct kube_build *build)
{
    for (size_t s = 0; build->allowed && s < build->n_services; s++)
        free(build->allowed[s]);
    free(build->allowed);
    free(build->nodes);
    free(build->pods);
    free(build->tops);
    free(build->specs);
    free(build->spaces);
    free(build->foreign);
}

static int run(struct kube_build *build, struct err *err)
{
    struct kinds kinds = {.names = NAMES_INIT};
    count_kinds(build, &kinds);
    int rc = add_hosts(build, err);
    if (rc == 0)
        rc = add_services(build, &kinds, err);
    if (rc == 0)
        rc = add_pods(build, &kinds, err);
    kinds_wipe(&kinds);
    return rc;
}

int kube_objects_model(const struct kube_objects *objects, const struct kube_choice *choice,
                       struct inspection *in, struct err *err)
{
    assert(in->model->n_hosts == 0 && in->model->n_services == 0);
    struct kube_build build = {.objects = objects, .choice = choice, .in = in, .model = in->model};
    int rc = run(&build, err);
    if (rc == 0) {
        build.allowed = mem_array(build.n_services + 1, sizeof *build.allowed);
        find_specs(&build);
        reserve_for_scaling(&build);
        kube_neighbours_add(&build);
        kube_rules_add(&build);
        if (objects->n_refused)
            inspection_note(in, "refused", objects->n_refused,
                            "%lld objects were not understood and are left out, the first: %s",
                            (long long)objects->n_refused, objects->refused);
    }
    build_wipe(&build);
    return rc;
}
