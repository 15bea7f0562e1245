/* view.c - joining a fresh inspection with the plan's model (§5.6). */
#include "executor/view.h"

#include <stdlib.h>
#include <string.h>

void lineage_init(struct lineage *lineage, const struct model *planned)
{
    *lineage = (struct lineage){.n_now = planned->n_instances};
    lineage->now = mem_array(planned->n_instances + 1, sizeof *lineage->now);
    for (size_t i = 0; i < planned->n_instances; i++) {
        lineage->now[i] = mem_strdup(planned->instances[i].name);
    }
}

void lineage_wipe(struct lineage *lineage)
{
    for (size_t i = 0; i < lineage->n_now; i++) {
        free(lineage->now[i]);
    }
    for (size_t i = 0; i < lineage->n_others; i++) {
        free(lineage->others[i]);
    }
    free(lineage->now);
    free(lineage->others);
    *lineage = (struct lineage){0};
}

static char **lineage_slot(char **names, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(names[i], name) == 0) {
            return &names[i];
        }
    }
    return NULL;
}

static char **lineage_known(const struct lineage *lineage, const char *name)
{
    char **slot = lineage_slot(lineage->now, lineage->n_now, name);
    return slot ? slot : lineage_slot(lineage->others, lineage->n_others, name);
}

void lineage_rename(struct lineage *lineage, const char *from, const char *to)
{
    char **slot = lineage_known(lineage, from);
    if (!slot) {
        slot = ARRAY_PUSH(lineage->others, lineage->n_others);
    }
    char *name = mem_strdup(to);
    free(*slot);
    *slot = name;
}

static bool outcome_renames(const struct outcome *o)
{
    return o->instance && o->instance_now && o->instance_now[0] &&
           strcmp(o->instance, o->instance_now) != 0;
}

/* A name is the first link of a chain when nobody was renamed to it; links are taken one by one
 * until none is left, so the order of the outcomes does not matter. Names are never used twice. */
void lineage_follow(struct lineage *lineage, const struct outcomes *done)
{
    AUTO_FREE bool *taken = mem_array(done->n + 1, sizeof *taken);
    bool strangers = false;
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < done->n; i++) {
            const struct outcome *o = &done->list[i];
            if (!taken[i] && outcome_renames(o) &&
                (strangers || lineage_known(lineage, o->instance))) {
                lineage_rename(lineage, o->instance, o->instance_now);
                taken[i] = more = true;
            }
        }
        if (!more && !strangers) { /* what is left are replicas that the plan's model lacks */
            strangers = more = true;
        }
    }
}

/* --- the view --- */

static int64_t max_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void host_fill(struct host *here, const struct host *planned)
{
    here->cpu_used_millis = max_of(here->cpu_used_millis, planned->cpu_used_millis);
    here->mem_used_bytes = max_of(here->mem_used_bytes, planned->mem_used_bytes);
    here->reserve_cpu_millis = max_of(here->reserve_cpu_millis, planned->reserve_cpu_millis);
    here->reserve_mem_bytes = max_of(here->reserve_mem_bytes, planned->reserve_mem_bytes);
}

static void usage_of_service(const struct model *planned, int service, int64_t *cpu, int64_t *mem)
{
    int64_t n = 0;
    *cpu = *mem = 0;
    for (size_t i = 0; i < planned->n_instances; i++) {
        if (planned->instances[i].service == service) {
            *cpu += planned->instances[i].cpu_used_millis;
            *mem += planned->instances[i].mem_used_bytes;
            n++;
        }
    }
    *cpu /= max_of(n, 1);
    *mem /= max_of(n, 1);
}

static void instance_fill(struct view *view, size_t i)
{
    struct instance *here = &view->model->instances[i];
    const struct model *planned = view->planned;
    int64_t cpu = 0, mem = 0;
    if (view->planned_of[i] >= 0) {
        cpu = planned->instances[view->planned_of[i]].cpu_used_millis;
        mem = planned->instances[view->planned_of[i]].mem_used_bytes;
    } else {
        int service = model_service(planned, view->model->services[here->service].name);
        if (service >= 0) {
            usage_of_service(planned, service, &cpu, &mem);
        }
    }
    here->cpu_used_millis = max_of(here->cpu_used_millis, cpu);
    here->mem_used_bytes = max_of(here->mem_used_bytes, mem);
}

/* The planned rule in terms of the fresh model; names that are gone drop out. */
static void rule_translate(struct model *to, const struct model *from, const struct rule *rule)
{
    struct rule *copy = ARRAY_PUSH(to->rules, to->n_rules);
    *copy = *rule;
    copy->services = NULL;
    copy->hosts = NULL;
    copy->n_services = copy->n_hosts = 0;
    for (size_t i = 0; i < rule->n_services; i++) {
        int service = model_service(to, from->services[rule->services[i]].name);
        if (service >= 0) {
            *ARRAY_PUSH(copy->services, copy->n_services) = service;
        }
    }
    for (size_t i = 0; i < rule->n_hosts; i++) {
        int host = model_host(to, from->hosts[rule->hosts[i]].name);
        if (host >= 0) {
            *ARRAY_PUSH(copy->hosts, copy->n_hosts) = host;
        }
    }
    if (copy->n_services == 0) { /* it limits nobody who is still here */
        free(copy->services);
        free(copy->hosts);
        to->n_rules--;
    }
}

void view_init(struct view *view, struct model *fresh, const struct model *planned,
               const struct lineage *lineage)
{
    bool own_rules = fresh->n_rules > 0;
    *view = (struct view){.model = fresh, .planned = planned};
    view->planned_of = mem_array(fresh->n_instances + 1, sizeof *view->planned_of);
    view->here_of = mem_array(planned->n_instances + 1, sizeof *view->here_of);
    for (size_t i = 0; i < fresh->n_instances; i++) {
        view->planned_of[i] = -1;
    }
    for (size_t i = 0; i < planned->n_instances; i++) {
        view->here_of[i] = model_instance(fresh, lineage->now[i]);
        if (view->here_of[i] >= 0) {
            view->planned_of[view->here_of[i]] = (int)i;
        }
    }
    for (size_t i = 0; i < fresh->n_instances; i++) {
        instance_fill(view, i);
    }
    for (size_t h = 0; h < fresh->n_hosts; h++) {
        int host = model_host(planned, fresh->hosts[h].name);
        if (host >= 0) {
            host_fill(&fresh->hosts[h], &planned->hosts[host]);
        }
    }
    for (size_t i = 0; !own_rules && i < planned->n_rules; i++) {
        rule_translate(fresh, planned, &planned->rules[i]);
    }
}

void view_wipe(struct view *view)
{
    model_free(view->model);
    free(view->planned_of);
    free(view->here_of);
    *view = (struct view){0};
}

static bool view_unknown(const struct view *view, const struct lineage *lineage, size_t i)
{
    return view->planned_of[i] < 0 &&
           !lineage_slot(lineage->others, lineage->n_others, view->model->instances[i].name);
}

/* The service here of an instance of the plan's model. */
static int view_service(const struct view *view, int planned)
{
    const struct model *p = view->planned;
    return model_service(view->model, p->services[p->instances[planned].service].name);
}

int view_find(struct view *view, struct lineage *lineage, int planned, const char *host)
{
    if (view->here_of[planned] >= 0) {
        return view->here_of[planned];
    }
    int service = view_service(view, planned), best = -1;
    int on = host ? model_host(view->model, host) : -1;
    for (size_t i = 0; i < view->model->n_instances; i++) {
        const struct instance *x = &view->model->instances[i];
        if (x->service == service && x->host == on && view_unknown(view, lineage, i) &&
            (best < 0 || strcmp(x->name, view->model->instances[best].name) < 0)) {
            best = (int)i;
        }
    }
    if (best >= 0) {
        view->here_of[planned] = best;
        view->planned_of[best] = planned;
        lineage_rename(lineage, lineage->now[planned], view->model->instances[best].name);
    }
    return best;
}

size_t view_newborn(const struct view *view, const struct lineage *lineage, int **out)
{
    const struct model *here = view->model;
    AUTO_FREE int *now = model_replicas(here), *before = model_replicas(view->planned);
    size_t n = 0;
    *out = mem_array(here->n_instances + 1, sizeof **out);
    /* How many more of each service there are; those that this cycle steered are counted off. */
    for (size_t s = 0; s < here->n_services; s++) {
        int planned = model_service(view->planned, here->services[s].name);
        now[s] -= planned >= 0 ? before[planned] : 0;
    }
    for (size_t i = 0; i < here->n_instances; i++) {
        if (view->planned_of[i] < 0 && !view_unknown(view, lineage, i)) {
            now[here->instances[i].service]--;
        }
    }
    for (size_t i = 0; i < here->n_instances; i++) {
        if (view_unknown(view, lineage, i) && now[here->instances[i].service] > 0) {
            now[here->instances[i].service]--;
            (*out)[n++] = (int)i;
        }
    }
    return n;
}
