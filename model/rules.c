/* rules.c - placement rules (contract.md 2): apart, together, allowed, spread. */
#include "model/rules.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/pairs.h"

struct rule_tally {
    const struct model *model;
    int *replicas; /* by service */
    int *zones;    /* by host */
    int *first;    /* rules of service s: of[first[s]] … of[first[s + 1] - 1] */
    int *of;
    struct pairs counts;  /* rule, host or zone → instances */
    struct pairs allowed; /* rule, host → 1 */
};

const char *rule_kind_name(enum rule_kind kind)
{
    switch (kind) {
    case RULE_APART:
        return "apart";
    case RULE_TOGETHER:
        return "together";
    case RULE_ALLOWED:
        return "allowed";
    case RULE_SPREAD:
        return "spread";
    }
    return "";
}

int64_t rule_spread_max(const struct rule *rule, int64_t replicas)
{
    int64_t most = (int64_t)(rule->max_share * (double)replicas + 1e-9);

    return most > 1 ? most : 1;
}

int *model_zones(const struct model *model)
{
    int *zones = mem_array(model->n_hosts, sizeof *zones);
    char **keys = mem_array(model->n_hosts, sizeof *keys);
    struct names known = NAMES_INIT;
    int n = 0;

    for (size_t h = 0; h < model->n_hosts; h++) {
        const struct host *host = &model->hosts[h];
        if (!host->zone) {
            zones[h] = n++;
            continue;
        }
        /* Names hold no control characters, so the newline cannot be part of either. */
        keys[h] = mem_printf("%s\n%s", host->region ? host->region : "", host->zone);
        int zone = names_add(&known, keys[h], n);
        zones[h] = zone >= 0 ? zone : n++;
    }
    names_wipe(&known);
    for (size_t h = 0; h < model->n_hosts; h++)
        free(keys[h]);
    free(keys);
    return zones;
}

static void tally_index(struct rule_tally *tally)
{
    const struct model *model = tally->model;
    size_t total = 0;

    tally->first = mem_array(model->n_services + 2, sizeof *tally->first);
    for (size_t r = 0; r < model->n_rules; r++) {
        const struct rule *rule = &model->rules[r];
        for (size_t i = 0; i < rule->n_services; i++)
            tally->first[rule->services[i] + 2]++;
        total += rule->n_services;
        for (size_t i = 0; rule->kind == RULE_ALLOWED && i < rule->n_hosts; i++)
            *pairs_at(&tally->allowed, (int)r, rule->hosts[i]) = 1;
    }
    for (size_t s = 2; s <= model->n_services; s++)
        tally->first[s] += tally->first[s - 1];
    tally->of = mem_array(total, sizeof *tally->of);
    for (size_t r = 0; r < model->n_rules; r++) {
        const struct rule *rule = &model->rules[r];
        for (size_t i = 0; i < rule->n_services; i++)
            tally->of[tally->first[rule->services[i] + 1]++] = (int)r;
    }
}

struct rule_tally *rule_tally_new(const struct model *model, const int *placement)
{
    struct rule_tally *tally = mem_alloc(sizeof *tally);

    tally->model = model;
    if (model->n_rules == 0)
        return tally;
    tally->replicas = model_replicas(model);
    tally->zones = model_zones(model);
    tally_index(tally);
    for (size_t i = 0; i < model->n_instances; i++) {
        int host = placement ? placement[i] : model->instances[i].host;
        if (host >= 0)
            rule_tally_add(tally, model->instances[i].service, host, 1);
    }
    return tally;
}

void rule_tally_free(struct rule_tally *tally)
{
    if (!tally)
        return;
    free(tally->replicas);
    free(tally->zones);
    free(tally->first);
    free(tally->of);
    pairs_wipe(&tally->counts);
    pairs_wipe(&tally->allowed);
    free(tally);
}

static int rule_place(const struct rule *rule, const int *zones, int host)
{
    return rule->kind == RULE_SPREAD && rule->per_zone ? zones[host] : host;
}

void rule_tally_add(struct rule_tally *tally, int service, int host, int by)
{
    if (tally->model->n_rules == 0)
        return;
    for (int i = tally->first[service]; i < tally->first[service + 1]; i++) {
        const struct rule *rule = &tally->model->rules[tally->of[i]];
        if (rule->kind == RULE_APART || rule->kind == RULE_SPREAD)
            *pairs_at(&tally->counts, tally->of[i], rule_place(rule, tally->zones, host)) += by;
    }
}

/* The texts of all questions about rules. `count` is what is on the host or zone now. */
static const char *rule_text(const struct rule *rule, int64_t count, int64_t replicas,
                             bool listed)
{
    switch (rule->kind) {
    case RULE_APART:
        return count >= rule->max_per_host ? "rule apart" : NULL;
    case RULE_TOGETHER:
        return NULL;
    case RULE_ALLOWED:
        return listed ? NULL : "rule allowed";
    case RULE_SPREAD:
        return count >= rule_spread_max(rule, replicas) ? "rule spread" : NULL;
    }
    return NULL;
}

const char *rule_tally_problem(const struct rule_tally *tally, int service, int host)
{
    const char *problem = NULL;

    if (tally->model->n_rules == 0)
        return NULL;
    for (int i = tally->first[service]; !problem && i < tally->first[service + 1]; i++) {
        const struct rule *rule = &tally->model->rules[tally->of[i]];
        int place = rule_place(rule, tally->zones, host);
        problem = rule_text(rule, pairs_get(&tally->counts, tally->of[i], place, 0),
                            tally->replicas[service],
                            pairs_get(&tally->allowed, tally->of[i], host, 0) != 0);
    }
    return problem;
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* True when the two hosts are one place for the rule. */
static bool one_place(const struct model *model, const struct rule *rule, size_t a, size_t b)
{
    const struct host *x = &model->hosts[a], *y = &model->hosts[b];

    if (a == b)
        return true;
    return rule->kind == RULE_SPREAD && rule->per_zone && x->zone && same_text(x->zone, y->zone) &&
           same_text(x->region ? x->region : "", y->region ? y->region : "");
}

static bool rule_names(const struct rule *rule, int service)
{
    for (size_t i = 0; i < rule->n_services; i++)
        if (rule->services[i] == service)
            return true;
    return false;
}

const char *model_rule_problem(const struct model *model, const int *counts, int service,
                               int host)
{
    if (!counts) {
        AUTO(rule_tally) struct rule_tally *tally = rule_tally_new(model, NULL);
        return rule_tally_problem(tally, service, host);
    }
    for (size_t r = 0; r < model->n_rules; r++) {
        const struct rule *rule = &model->rules[r];
        int64_t count = 0, replicas = 0;
        bool listed = false;

        if (!rule_names(rule, service))
            continue;
        for (size_t h = 0; h < model->n_hosts; h++)
            if (one_place(model, rule, h, (size_t)host))
                for (size_t i = 0; i < rule->n_services; i++)
                    count += counts[h * model->n_services + (size_t)rule->services[i]];
        for (size_t i = 0; rule->kind == RULE_SPREAD && i < model->n_instances; i++)
            replicas += model->instances[i].service == service;
        for (size_t i = 0; i < rule->n_hosts; i++)
            listed |= rule->hosts[i] == host;
        const char *problem = rule_text(rule, count, replicas, listed);
        if (problem)
            return problem;
    }
    return NULL;
}

/* What whole placements are compared with, rule by rule. Arrays by host or zone are all zero between
 * uses; only places that something of the rule is on are touched, so that a service of two
 * replicas costs two steps however many hosts there are. */
struct review {
    const struct model *model;
    const int *zones;
    const struct members *members;
    int64_t *after, *before; /* instances; for together: different services */
    int *seen;               /* together: last service seen on the host, from 1 */
    bool *listed;            /* allowed: hosts of the rule */
};

static void review_count(const struct review *v, const struct rule *rule, const int *placement,
                         int64_t *count)
{
    for (size_t s = 0; s < rule->n_services; s++) {
        int service = rule->services[s];
        for (int m = v->members->first[service]; m < v->members->first[service + 1]; m++) {
            int host = placement[v->members->of[m]];
            if (host < 0 || (rule->kind == RULE_TOGETHER && v->seen[host] == (int)s + 1))
                continue;
            v->seen[host] = (int)s + 1;
            count[rule_place(rule, v->zones, host)]++;
        }
    }
    for (size_t s = 0; s < rule->n_services; s++)
        for (int m = v->members->first[rule->services[s]];
             m < v->members->first[rule->services[s] + 1]; m++)
            if (placement[v->members->of[m]] >= 0)
                v->seen[placement[v->members->of[m]]] = 0;
}

static void review_clear(const struct review *v, const struct rule *rule, const int *placement,
                         int64_t *count)
{
    for (size_t s = 0; s < rule->n_services; s++) {
        int service = rule->services[s];
        for (int m = v->members->first[service]; m < v->members->first[service + 1]; m++) {
            int host = placement[v->members->of[m]];
            if (host >= 0)
                count[rule_place(rule, v->zones, host)] = 0;
        }
    }
}

static int64_t rule_excess(const struct rule *rule, int64_t count, int64_t replicas, bool listed)
{
    int64_t most = 0;

    switch (rule->kind) {
    case RULE_TOGETHER:
        return count > 0 && (size_t)count < rule->n_services;
    case RULE_ALLOWED:
        return listed ? 0 : count;
    case RULE_APART:
        most = rule->max_per_host;
        break;
    case RULE_SPREAD:
        most = rule_spread_max(rule, replicas);
        break;
    }
    return count > most ? count - most : 0;
}

/* A host where the rule is broken more than before, or -1. */
static int review_worse(const struct review *v, const struct rule *rule, const int *placement)
{
    for (size_t s = 0; s < rule->n_services; s++) {
        int service = rule->services[s];
        int64_t replicas = v->members->first[service + 1] - v->members->first[service];
        for (int m = v->members->first[service]; m < v->members->first[service + 1]; m++) {
            int host = placement[v->members->of[m]];
            if (host < 0)
                continue;
            int place = rule_place(rule, v->zones, host);
            bool listed = v->listed[host];
            if (rule_excess(rule, v->after[place], replicas, listed) >
                rule_excess(rule, v->before[place], replicas, listed))
                return host;
        }
    }
    return -1;
}

static int review_rule(const struct review *v, size_t r, const int *before, const int *placement,
                       struct err *err)
{
    const struct rule *rule = &v->model->rules[r];

    for (size_t i = 0; i < rule->n_hosts; i++)
        v->listed[rule->hosts[i]] = true;
    review_count(v, rule, placement, v->after);
    if (before)
        review_count(v, rule, before, v->before);
    int host = review_worse(v, rule, placement);
    review_clear(v, rule, placement, v->after);
    if (before)
        review_clear(v, rule, before, v->before);
    for (size_t i = 0; i < rule->n_hosts; i++)
        v->listed[rule->hosts[i]] = false;
    if (host < 0)
        return 0;
    return err_set(err, ERR_INFEASIBLE, "rules[%zu] (%s, of %s%s) does not hold %s %s", r,
                   rule_kind_name(rule->kind), v->model->services[rule->services[0]].name,
                   rule->n_services > 1 ? " and others" : "",
                   rule->kind == RULE_SPREAD && rule->per_zone ? "in the zone of" : "on",
                   v->model->hosts[host].name);
}

int model_rules_kept(const struct model *model, const int *before, const int *placement,
                     struct err *err)
{
    if (model->n_rules == 0)
        return 0;
    AUTO_MEMBERS struct members members = model_members(model);
    AUTO_FREE int *zones = model_zones(model);
    AUTO_FREE int64_t *after = mem_array(model->n_hosts, sizeof *after);
    AUTO_FREE int64_t *was = mem_array(model->n_hosts, sizeof *was);
    AUTO_FREE int *seen = mem_array(model->n_hosts, sizeof *seen);
    AUTO_FREE bool *listed = mem_array(model->n_hosts, sizeof *listed);
    const struct review v = {model, zones, &members, after, was, seen, listed};

    for (size_t r = 0; r < model->n_rules; r++)
        if (review_rule(&v, r, before, placement, err) < 0)
            return -1;
    return 0;
}

/* By how much the rule is broken in all; `count` is all zero afterwards. */
static int64_t review_sum(const struct review *v, const struct rule *rule, const int *placement,
                          int64_t *count)
{
    int64_t sum = 0;
    review_count(v, rule, placement, count);
    for (size_t s = 0; s < rule->n_services; s++) {
        int service = rule->services[s];
        int64_t replicas = v->members->first[service + 1] - v->members->first[service];
        for (int m = v->members->first[service]; m < v->members->first[service + 1]; m++) {
            int host = placement[v->members->of[m]];
            if (host < 0)
                continue;
            int place = rule_place(rule, v->zones, host);
            sum += rule_excess(rule, count[place], replicas, v->listed[host]);
            count[place] = 0; /* each place once */
        }
    }
    return sum;
}

bool *model_rules_mended(const struct model *model, const int *before, const int *placement)
{
    AUTO_MEMBERS struct members members = model_members(model);
    AUTO_FREE int *zones = model_zones(model);
    AUTO_FREE int64_t *count = mem_array(model->n_hosts + 1, sizeof *count);
    AUTO_FREE int *seen = mem_array(model->n_hosts + 1, sizeof *seen);
    AUTO_FREE bool *listed = mem_array(model->n_hosts + 1, sizeof *listed);
    AUTO_FREE bool *mended = mem_array(model->n_services + 1, sizeof *mended);
    const struct review v = {model, zones, &members, count, count, seen, listed};
    bool any = false;

    for (size_t r = 0; r < model->n_rules; r++) {
        const struct rule *rule = &model->rules[r];
        for (size_t i = 0; i < rule->n_hosts; i++)
            listed[rule->hosts[i]] = true;
        bool less = review_sum(&v, rule, placement, count) < review_sum(&v, rule, before, count);
        for (size_t i = 0; i < rule->n_hosts; i++)
            listed[rule->hosts[i]] = false;
        for (size_t s = 0; less && s < rule->n_services; s++)
            mended[rule->services[s]] = any = true;
    }
    return any ? steal(mended) : NULL;
}

int model_rules_hold(const struct model *model, const int *placement, struct err *err)
{
    return model_rules_kept(model, NULL, placement, err);
}
