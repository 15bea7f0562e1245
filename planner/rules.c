/* rules.c - incremental counts for the rules apart, together, allowed, spread (contract.md 2).
 *
 * Every rule is turned into "places" (hosts, or zones for a spread per zone) with a count each, and
 * a measure of how far a place is over: apart and spread by count − limit, allowed by the count on
 * forbidden hosts, together by the members missing where others are. */
#include "planner/rules.h"

#include <stdlib.h>
#include <string.h>
#include "model/base/buf.h"
#include "model/rules.h"

struct rule_state {
    const struct rule *rule;
    int64_t limit;  /* apart, spread */
    int *place;     /* of each host */
    int *count;     /* of each place; together: of each place × member */
    bool *allowed;  /* allowed: of each host */
    int n_members;  /* together: services of the rule */
};

struct use { /* a rule that names a service */
    int rule, member;
};

struct rules {
    struct rule_state *states;
    size_t n_states, n_hosts, n_services;
    struct use *uses; /* of service s: uses[first[s]] … uses[first[s + 1]] */
    size_t *first;
};

/* Hosts of one zone of one region are one place; a host without a zone is a place of its own. */
static void places_by_zone(const struct model *model, int *place)
{
    for (size_t h = 0; h < model->n_hosts; h++) {
        const struct host *host = &model->hosts[h];
        place[h] = (int)h;
        if (!host->zone)
            continue;
        for (size_t k = 0; k < h; k++) {
            const struct host *other = &model->hosts[k];
            if (other->zone && strcmp(host->zone, other->zone) == 0 &&
                strcmp(host->region ? host->region : "", other->region ? other->region : "") == 0) {
                place[h] = place[k];
                break;
            }
        }
    }
}

static void state_init(struct rule_state *state, const struct model *model,
                       const struct rule *rule, const int *replicas)
{
    size_t n = model->n_hosts;
    state->rule = rule;
    state->place = mem_array(n, sizeof *state->place);
    for (size_t h = 0; h < n; h++)
        state->place[h] = (int)h;
    state->n_members = rule->kind == RULE_TOGETHER ? (int)rule->n_services : 1;
    state->count = mem_array(n * (size_t)state->n_members, sizeof *state->count);
    if (rule->kind == RULE_APART) {
        state->limit = rule->max_per_host;
    } else if (rule->kind == RULE_SPREAD) {
        state->limit = (int64_t)(rule->max_share * replicas[rule->services[0]] + 1e-9);
        if (state->limit < 1)
            state->limit = 1;
        if (rule->per_zone)
            places_by_zone(model, state->place);
    } else if (rule->kind == RULE_ALLOWED) {
        state->allowed = mem_array(n, sizeof *state->allowed);
        for (size_t i = 0; i < rule->n_hosts; i++)
            state->allowed[rule->hosts[i]] = true;
    }
}

static void uses_init(struct rules *rules, const struct model *model)
{
    size_t n = 0;
    rules->first = mem_array(model->n_services + 2, sizeof *rules->first);
    for (size_t r = 0; r < model->n_rules; r++)
        for (size_t k = 0; k < model->rules[r].n_services; k++, n++)
            rules->first[model->rules[r].services[k] + 2]++;
    for (size_t s = 0; s < model->n_services; s++)
        rules->first[s + 2] += rules->first[s + 1];
    rules->uses = mem_array(n, sizeof *rules->uses);
    for (size_t r = 0; r < model->n_rules; r++)
        for (size_t k = 0; k < model->rules[r].n_services; k++)
            rules->uses[rules->first[model->rules[r].services[k] + 1]++] =
                (struct use){(int)r, (int)k};
}

struct rules *rules_new(const struct model *model, const int *placement)
{
    if (model->n_rules == 0)
        return NULL;
    struct rules *rules = mem_alloc(sizeof *rules);
    AUTO_FREE int *replicas = model_replicas(model);
    rules->n_hosts = model->n_hosts;
    rules->n_services = model->n_services;
    rules->n_states = model->n_rules;
    rules->states = mem_array(model->n_rules, sizeof *rules->states);
    for (size_t r = 0; r < model->n_rules; r++)
        state_init(&rules->states[r], model, &model->rules[r], replicas);
    uses_init(rules, model);
    for (size_t i = 0; i < model->n_instances; i++)
        if (placement[i] >= 0)
            rules_move(rules, model->instances[i].service, -1, placement[i]);
    return rules;
}

void rules_free(struct rules *rules)
{
    if (!rules)
        return;
    for (size_t r = 0; r < rules->n_states; r++) {
        free(rules->states[r].place);
        free(rules->states[r].count);
        free(rules->states[r].allowed);
    }
    free(rules->states);
    free(rules->uses);
    free(rules->first);
    free(rules);
}

static int over(int64_t count, int64_t limit)
{
    return count > limit ? (int)(count - limit) : 0;
}

/* Members that a host lacks while it has others, with `delta` more of one member. */
static int missing(const struct rule_state *state, int host, int member, int delta)
{
    const int *count = &state->count[(size_t)host * (size_t)state->n_members];
    int present = 0;
    for (int k = 0; k < state->n_members; k++)
        present += count[k] + (k == member ? delta : 0) > 0;
    return present == 0 ? 0 : state->n_members - present;
}

static int state_change(const struct rule_state *state, int member, int from, int to)
{
    int change = 0;
    switch (state->rule->kind) {
    case RULE_APART:
    case RULE_SPREAD: {
        int a = from < 0 ? -1 : state->place[from], b = state->place[to];
        if (a == b)
            return 0;
        if (a >= 0)
            change -= state->count[a] > state->limit;
        return change + (state->count[b] >= state->limit);
    }
    case RULE_ALLOWED:
        return !state->allowed[to] - (from >= 0 && !state->allowed[from]);
    case RULE_TOGETHER:
        change = missing(state, to, member, 1) - missing(state, to, member, 0);
        if (from >= 0)
            change += missing(state, from, member, -1) - missing(state, from, member, 0);
        return change;
    }
    return 0;
}

/* 1 where some but not all members are on the host, with `delta` more of one. */
static int broken(const struct rule_state *state, int host, int member, int delta)
{
    return missing(state, host, member, delta) > 0;
}

static const char *state_problem(const struct rule_state *state, int member, int from, int to)
{
    switch (state->rule->kind) {
    case RULE_APART:
    case RULE_SPREAD: {
        int a = from < 0 ? -1 : state->place[from], b = state->place[to];
        if (a == b || state->count[b] < state->limit)
            return NULL;
        return state->rule->kind == RULE_APART ? "rule apart" : "rule spread";
    }
    case RULE_ALLOWED:
        return state->allowed[to] ? NULL : "rule allowed";
    case RULE_TOGETHER:
        if (broken(state, to, member, 1) > broken(state, to, member, 0) ||
            (from >= 0 && broken(state, from, member, -1) > broken(state, from, member, 0)))
            return "rule together";
        return NULL;
    }
    return NULL;
}

int rules_problem_rule(const struct rules *rules, int service, int from, int to)
{
    if (!rules || from == to)
        return -1;
    for (size_t u = rules->first[service]; u < rules->first[service + 1]; u++) {
        const struct use *use = &rules->uses[u];
        if (state_problem(&rules->states[use->rule], use->member, from, to))
            return use->rule;
    }
    return -1;
}

const char *rules_problem(const struct rules *rules, int service, int from, int to)
{
    if (!rules || from == to)
        return NULL;
    for (size_t u = rules->first[service]; u < rules->first[service + 1]; u++) {
        const struct use *use = &rules->uses[u];
        const char *why = state_problem(&rules->states[use->rule], use->member, from, to);
        if (why)
            return why;
    }
    return NULL;
}

int rules_excess_change(const struct rules *rules, int service, int from, int to)
{
    int change = 0;
    if (!rules || from == to)
        return 0;
    for (size_t u = rules->first[service]; u < rules->first[service + 1]; u++) {
        const struct use *use = &rules->uses[u];
        change += state_change(&rules->states[use->rule], use->member, from, to);
    }
    return change;
}

void rules_move(struct rules *rules, int service, int from, int to)
{
    if (!rules || from == to)
        return;
    for (size_t u = rules->first[service]; u < rules->first[service + 1]; u++) {
        const struct use *use = &rules->uses[u];
        struct rule_state *state = &rules->states[use->rule];
        int member = state->rule->kind == RULE_TOGETHER ? use->member : 0;
        if (from >= 0)
            state->count[state->place[from] * state->n_members + member]--;
        if (to >= 0)
            state->count[state->place[to] * state->n_members + member]++;
    }
}

int64_t rules_excess(const struct rules *rules)
{
    int64_t sum = 0;
    if (!rules)
        return 0;
    for (size_t r = 0; r < rules->n_states; r++) {
        const struct rule_state *state = &rules->states[r];
        for (size_t h = 0; h < rules->n_hosts; h++) {
            if (state->rule->kind == RULE_TOGETHER)
                sum += missing(state, (int)h, -1, 0);
            else if (state->rule->kind == RULE_ALLOWED)
                sum += state->allowed[h] ? 0 : state->count[h];
            else
                sum += over(state->count[h], state->limit);
        }
    }
    return sum;
}

char *rules_which(const struct model *model, int service, const char *problem)
{
    struct buf text = BUF_INIT;
    for (size_t r = 0; strncmp(problem, "rule ", 5) == 0 && r < model->n_rules; r++) {
        const struct rule *rule = &model->rules[r];
        const char *kind = rule_kind_name(rule->kind);
        for (size_t s = 0; s < rule->n_services; s++)
            if (rule->services[s] == service && strcmp(problem + 5, kind) == 0) {
                buf_printf(&text, "%srules[%zu] (%s, of %s)", text.size ? ", " : "", r, kind,
                           model->services[service].name);
                break;
            }
    }
    if (text.size == 0)
        buf_puts(&text, problem);
    return buf_take(&text);
}
