/* validate.c - the checks before a move, and the choices that rest on them (§5.6, algorithms.md
 * 6.4). Everything is asked of a fresh model; nothing here acts. */
#include "executor/validate.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "model/rules.h"

static struct verdict verdict_of(enum verdict_kind kind, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static struct verdict verdict_of(enum verdict_kind kind, const char *fmt, ...)
{
    struct verdict v = {.kind = kind};
    va_list args;
    va_start(args, fmt);
    vsnprintf(v.why, sizeof v.why, fmt, args);
    va_end(args);
    return v;
}

static const struct verdict valid = {MOVE_VALID, ""};

static const char *host_name(const struct model *model, int host)
{
    return host < 0 ? "no host" : model->hosts[host].name;
}

/* What concerns the target alone: capacity in every dimension, rules. */
static struct verdict target_check(const struct model *model, int instance, int target)
{
    const struct instance *x = &model->instances[instance];
    const char *why = NULL, *name = model->hosts[target].name;
    AUTO_FREE struct load *used = model_host_loads(model);
    struct load offer = host_offer(&model->hosts[target]), need = instance_load(x);
    if (!load_fits(&offer, &used[target], &need, &why)) {
        return verdict_of(MOVE_NO_ROOM, "%s has no room: %s", name, why);
    }
    AUTO(rule_tally) struct rule_tally *tally = rule_tally_new(model, NULL);
    if (x->host >= 0) {
        rule_tally_add(tally, x->service, x->host, -1);
    }
    why = rule_tally_problem(tally, x->service, target);
    return why ? verdict_of(MOVE_NO_ROOM, "%s: %s", name, why) : valid;
}

static struct verdict host_check(const struct model *model, const char *name, int *out)
{
    *out = model_host(model, name);
    if (*out < 0) {
        return verdict_of(MOVE_INVALID, "host %s is gone", name);
    }
    if (!model->hosts[*out].schedulable) {
        return verdict_of(MOVE_INVALID, "%s is not schedulable", name);
    }
    return valid;
}

struct verdict validate_instance(const struct model *model, int instance, const char *source,
                                 const char *target, bool move_stateful)
{
    int to;
    if (instance < 0) {
        return verdict_of(MOVE_INVALID, "the instance is gone");
    }
    const struct instance *x = &model->instances[instance];
    const char *on = x->host < 0 ? NULL : model->hosts[x->host].name;
    if ((source == NULL) != (on == NULL) || (source && strcmp(source, on) != 0)) {
        return verdict_of(MOVE_INVALID, "%s is on %s, not on %s", x->name, on ? on : "no host",
                          source ? source : "no host");
    }
    struct verdict v = host_check(model, target, &to);
    if (v.kind != MOVE_VALID) {
        return v;
    }
    if (to == x->host) {
        return verdict_of(MOVE_INVALID, "%s is on %s already", x->name, target);
    }
    const char *fixed = instance_fixed_why(model, instance, move_stateful);
    if (fixed) {
        return verdict_of(MOVE_INVALID, "%s: %s", x->name, fixed);
    }
    return target_check(model, instance, to);
}

/* --- a whole service --- */

static int64_t count_named(const struct replica_count *counts, size_t n, const char *host)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(counts[i].host, host) == 0) {
            return counts[i].count;
        }
    }
    return 0;
}

static struct verdict sources_check(const struct model *model, int service, const int64_t *on,
                                    const struct replica_count *sources, size_t n_sources)
{
    int64_t total = 0;
    for (size_t i = 0; i < n_sources; i++) {
        if (model_host(model, sources[i].host) < 0 && sources[i].count > 0) {
            return verdict_of(MOVE_INVALID, "host %s is gone", sources[i].host);
        }
        total += sources[i].count;
    }
    int64_t now = 0;
    for (size_t h = 0; h < model->n_hosts; h++) {
        int64_t planned = count_named(sources, n_sources, model->hosts[h].name);
        now += on[h];
        if (on[h] != planned) {
            return verdict_of(MOVE_INVALID, "%s has %lld replicas on %s, not %lld",
                              model->services[service].name, (long long)on[h], model->hosts[h].name,
                              (long long)planned);
        }
    }
    return now == total && total > 0
               ? valid
               : verdict_of(MOVE_INVALID, "%s has no replicas", model->services[service].name);
}

/* Takes replicas one by one from hosts with too many to hosts with too few, as a rollout does: each
 * must fit beside what is there. */
static struct verdict targets_check(const struct model *model, int service, int64_t *on,
                                    const int64_t *wanted)
{
    AUTO_FREE struct load *used = model_host_loads(model);
    AUTO(rule_tally) struct rule_tally *tally = rule_tally_new(model, NULL);
    size_t to = 0;
    for (size_t i = 0; i < model->n_instances; i++) {
        const struct instance *x = &model->instances[i];
        const char *why = NULL;
        if (x->service != service || x->host < 0 || on[x->host] <= wanted[x->host]) {
            continue;
        }
        while (to < model->n_hosts && on[to] >= wanted[to]) {
            to++;
        }
        if (to == model->n_hosts) {
            break;
        }
        struct load offer = host_offer(&model->hosts[to]), need = instance_load(x);
        if (!load_fits(&offer, &used[to], &need, &why)) {
            return verdict_of(MOVE_NO_ROOM, "%s has no room: %s", model->hosts[to].name, why);
        }
        rule_tally_add(tally, service, x->host, -1);
        why = rule_tally_problem(tally, service, (int)to);
        if (why) {
            return verdict_of(MOVE_NO_ROOM, "%s: %s", model->hosts[to].name, why);
        }
        rule_tally_add(tally, service, (int)to, 1);
        load_add(&used[to], &need);
        on[x->host]--;
        on[to]++;
    }
    return valid;
}

static struct verdict service_fixed(const struct model *model, int service, bool move_stateful)
{
    for (size_t i = 0; i < model->n_instances; i++) {
        const char *why = model->instances[i].service == service
                              ? instance_fixed_why(model, (int)i, move_stateful)
                              : NULL;
        if (why) {
            return verdict_of(MOVE_INVALID, "%s: %s", model->instances[i].name, why);
        }
    }
    return valid;
}

struct verdict validate_service(const struct model *model, const char *service,
                                const struct replica_count *sources, size_t n_sources,
                                const struct replica_count *targets, size_t n_targets,
                                bool move_stateful)
{
    int s = model_service(model, service);
    if (s < 0) {
        return verdict_of(MOVE_INVALID, "service %s is gone", service);
    }
    AUTO_FREE int64_t *on = mem_array(model->n_hosts + 1, sizeof *on);
    AUTO_FREE int64_t *wanted = mem_array(model->n_hosts + 1, sizeof *wanted);
    for (size_t i = 0; i < model->n_instances; i++) {
        if (model->instances[i].service == s && model->instances[i].host >= 0) {
            on[model->instances[i].host]++;
        }
    }
    struct verdict v = sources_check(model, s, on, sources, n_sources);
    bool same = true;
    for (size_t i = 0; v.kind == MOVE_VALID && i < n_targets; i++) {
        int host = model_host(model, targets[i].host);
        if (host < 0) {
            return verdict_of(MOVE_INVALID, "host %s is gone", targets[i].host);
        }
        wanted[host] = targets[i].count;
        same &= on[host] == wanted[host];
        if (on[host] < wanted[host] && !model->hosts[host].schedulable) {
            return verdict_of(MOVE_INVALID, "%s is not schedulable", targets[i].host);
        }
    }
    if (v.kind == MOVE_VALID && same) {
        v = verdict_of(MOVE_INVALID, "%s is there already", service);
    }
    if (v.kind == MOVE_VALID) {
        v = service_fixed(model, s, move_stateful);
    }
    return v.kind == MOVE_VALID ? targets_check(model, s, on, wanted) : v;
}

/* --- choices --- */

static bool host_takes(const struct model *model, int instance, int host, bool move_stateful)
{
    const struct instance *x = &model->instances[instance];
    const char *source = x->host < 0 ? NULL : host_name(model, x->host);
    return validate_instance(model, instance, source, model->hosts[host].name, move_stateful)
               .kind == MOVE_VALID;
}

int detour_host(const struct model *model, int instance, int target, const bool *avoid,
                bool move_stateful)
{
    int best = -1;
    for (size_t h = 0; h < model->n_hosts; h++) {
        bool better =
            best < 0 || avoid[h] < avoid[best] ||
            (avoid[h] == avoid[best] && strcmp(model->hosts[h].name, model->hosts[best].name) < 0);
        if ((int)h != target && (int)h != model->instances[instance].host && better &&
            host_takes(model, instance, (int)h, move_stateful)) {
            best = (int)h;
        }
    }
    return best;
}

/* The host of this partner to go to; -1: none takes the replica; -2: it is on one already. */
static int steer_to_partner(const struct model *model, int instance, int partner,
                            bool move_stateful)
{
    const struct instance *x = &model->instances[instance];
    AUTO_FREE int64_t *own = mem_array(model->n_hosts + 1, sizeof *own);
    AUTO_FREE int64_t *theirs = mem_array(model->n_hosts + 1, sizeof *theirs);
    for (size_t i = 0; i < model->n_instances; i++) {
        const struct instance *y = &model->instances[i];
        if (y->host >= 0) {
            own[y->host] += y->service == x->service && (int)i != instance;
            theirs[y->host] += y->service == partner;
        }
    }
    int best = -1;
    for (int h = 0; h < (int)model->n_hosts; h++) {
        bool better = best < 0 || own[h] < own[best] ||
                      (own[h] == own[best] && theirs[h] > theirs[best]) ||
                      (own[h] == own[best] && theirs[h] == theirs[best] &&
                       strcmp(model->hosts[h].name, model->hosts[best].name) < 0);
        if (theirs[h] && better &&
            (h == x->host || host_takes(model, instance, h, move_stateful))) {
            best = h;
        }
    }
    return best >= 0 && best == x->host ? -2 : best;
}

int steer_host(const struct model *model, int instance, const struct model *planned,
               const struct affinity *rows, size_t n, bool move_stateful)
{
    const char *service = model->services[model->instances[instance].service].name;
    int own = model_service(planned, service);
    for (size_t i = 0; own >= 0 && i < n; i++) {
        if (rows[i].level != LEVEL_SERVICE || rows[i].degree <= 0 ||
            (rows[i].a != own && rows[i].b != own)) {
            continue;
        }
        int other = rows[i].a == own ? rows[i].b : rows[i].a;
        int partner = model_service(model, planned->services[other].name);
        int host = partner < 0 ? -1 : steer_to_partner(model, instance, partner, move_stateful);
        if (host != -1) {
            return host < 0 ? -1 : host;
        }
    }
    return -1;
}
