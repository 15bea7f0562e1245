/* contradiction.c - rules as counts: hosts that a service may have, how many of it a host takes, who
 * shares hosts and who must not; then pigeonholes, by maximum flow where hosts differ.
 *
 * Services that rules `together` tie are a *crew*: all are on the same hosts, at least one of each. Of a
 * set of rules that contradict, those that are not needed for it are dropped one by one, so that what is
 * named is all that matters. */
#include "planner/contradiction.h"

#include <stdlib.h>
#include <string.h>
#include "model/base/buf.h"
#include "model/rules.h"
#include "planner/cliques.h"
#include "planner/holes.h"

/* Rules that are tried without, one after the other; of more all are named. */
#define MOST_DROPPED 400
/* Pairs of service and host in one flow. */
#define MOST_PAIRS ((size_t)1 << 20)
/* Teams that rules keep apart in pairs, and steps to find those that are all apart from each other. */
#define MOST_CREWS 1500
#define CLIQUE_STEPS 20000
#define NO_LIMIT INT64_MAX

struct look {
    const struct model *model;
    const int *replicas; /* as they count */
    const int *all;      /* with those that are nowhere: shares are of these */
    const int *zones;
    const size_t *rules; /* that count */
    size_t n_rules;
    int *crew;           /* of each service: the first service of it */
    int *next;           /* of each service: the next of its crew; -1: the last */
    int *first_use;      /* rules of service s: uses[first_use[s]] … uses[first_use[s + 1]] */
    size_t *uses;
    bool *allowed;       /* of the crew at hand: by host */
    char *why;           /* what was found */
};

static const struct rule *rule_at(const struct look *look, size_t r)
{
    return &look->model->rules[r];
}

static const char *service_name(const struct look *look, int service)
{
    return look->model->services[service].name;
}

/* ---- preparation ---- */

/* Together with a service of no instance is no host at all, until it is scaled up: no contradiction. */
static bool ties(const struct look *look, const struct rule *rule)
{
    bool all = rule->kind == RULE_TOGETHER;
    for (size_t k = 0; k < rule->n_services; k++)
        all = all && look->replicas[rule->services[k]] > 0;
    return all;
}

static void crews_join(struct look *look, int a, int b)
{
    int x = look->crew[a], y = look->crew[b], last = x;
    if (x == y)
        return;
    while (look->next[last] >= 0)
        last = look->next[last];
    look->next[last] = y;
    for (int s = y; s >= 0; s = look->next[s])
        look->crew[s] = x;
}

static void look_init(struct look *look)
{
    size_t n = look->model->n_services, n_uses = 0;
    look->crew = mem_array(n, sizeof *look->crew);
    look->next = mem_array(n, sizeof *look->next);
    look->first_use = mem_array(n + 2, sizeof *look->first_use);
    look->allowed = mem_array(look->model->n_hosts, sizeof *look->allowed);
    for (size_t s = 0; s < n; s++) {
        look->crew[s] = (int)s;
        look->next[s] = -1;
    }
    for (size_t r = 0; r < look->n_rules; r++) {
        const struct rule *rule = rule_at(look, look->rules[r]);
        n_uses += rule->n_services;
        for (size_t k = 0; k < rule->n_services; k++) {
            look->first_use[rule->services[k] + 2]++;
            if (k > 0 && ties(look, rule))
                crews_join(look, rule->services[0], rule->services[k]);
        }
    }
    look->uses = mem_array(n_uses, sizeof *look->uses);
    for (size_t s = 0; s < n; s++)
        look->first_use[s + 2] += look->first_use[s + 1];
    for (size_t r = 0; r < look->n_rules; r++) {
        const struct rule *rule = rule_at(look, look->rules[r]);
        for (size_t k = 0; k < rule->n_services; k++)
            look->uses[look->first_use[rule->services[k] + 1]++] = look->rules[r];
    }
}

static void look_wipe(struct look *look)
{
    free(look->crew);
    free(look->next);
    free(look->first_use);
    free(look->uses);
    free(look->allowed);
    free(look->why);
}
#define AUTO_LOOK __attribute__((cleanup(look_wipe)))

/* ---- what rules leave a service ---- */

/* True where a rule names hosts. */
static bool allowed_cut(struct look *look, int service)
{
    bool any = false;
    for (int u = look->first_use[service]; u < look->first_use[service + 1]; u++) {
        const struct rule *rule = rule_at(look, look->uses[u]);
        if (rule->kind != RULE_ALLOWED)
            continue;
        AUTO_FREE bool *listed = mem_array(look->model->n_hosts, sizeof *listed);
        for (size_t k = 0; k < rule->n_hosts; k++)
            listed[rule->hosts[k]] = true;
        for (size_t h = 0; h < look->model->n_hosts; h++)
            look->allowed[h] = look->allowed[h] && listed[h];
        any = true;
    }
    return any;
}

/* The hosts of a crew, in look->allowed; how many. */
static int64_t allowed_find(struct look *look, int crew)
{
    int64_t n = 0;
    bool any = false;
    memset(look->allowed, true, look->model->n_hosts);
    for (int s = crew; s >= 0; s = look->next[s])
        any |= allowed_cut(look, s);
    if (!any)
        return (int64_t)look->model->n_hosts;
    for (size_t h = 0; h < look->model->n_hosts; h++)
        n += look->allowed[h];
    return n;
}

/* How many instances of the service one host or, `zone`, one zone takes. */
static int64_t most_of(const struct look *look, int service, bool zone)
{
    int64_t most = NO_LIMIT;
    for (int u = look->first_use[service]; u < look->first_use[service + 1]; u++) {
        const struct rule *rule = rule_at(look, look->uses[u]);
        int64_t limit = NO_LIMIT;
        if (rule->kind == RULE_APART && !zone)
            limit = rule->max_per_host;
        else if (rule->kind == RULE_SPREAD && rule->per_zone == zone)
            limit = rule_spread_max(rule, look->all[service]);
        most = limit < most ? limit : most;
    }
    return most;
}

static int64_t lesser(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* count · limit, or `enough` where that is less. */
static int64_t times(int64_t count, int64_t limit, int64_t enough)
{
    return count > 0 && limit >= enough ? enough : lesser(count * lesser(limit, enough), enough);
}

/* Instances of the service that the allowed hosts take, counted up to its replicas. */
static int64_t room_of(const struct look *look, int service, int64_t n_allowed)
{
    int64_t need = look->replicas[service], room = 0;
    int64_t per_host = most_of(look, service, false), per_zone = most_of(look, service, true);
    if (per_zone == NO_LIMIT)
        return times(n_allowed, per_host, need);
    AUTO_FREE int64_t *hosts = mem_array(look->model->n_hosts, sizeof *hosts);
    for (size_t h = 0; h < look->model->n_hosts; h++)
        hosts[look->zones[h]] += look->allowed[h];
    for (size_t z = 0; z < look->model->n_hosts && room < need; z++)
        room += lesser(times(hosts[z], per_host, need), per_zone);
    return lesser(room, need);
}

/* Instances of the service and of others of its crew that the rule names. */
static int64_t named_by(const struct look *look, int service, const struct rule *rule)
{
    int64_t n = 0;
    for (size_t k = 0; k < rule->n_services; k++)
        if (look->crew[rule->services[k]] == look->crew[service])
            n += look->replicas[rule->services[k]];
    return n;
}

static int64_t hosts_needed(const struct look *look, int service)
{
    int64_t needed = 1;
    for (int u = look->first_use[service]; u < look->first_use[service + 1]; u++) {
        const struct rule *rule = rule_at(look, look->uses[u]);
        int64_t n = look->replicas[service], most = NO_LIMIT;
        if (rule->kind == RULE_APART) {
            most = rule->max_per_host;
            n = named_by(look, service, rule);
        } else if (rule->kind == RULE_SPREAD) {
            most = rule_spread_max(rule, look->all[service]);
        }
        int64_t here = most <= 0 ? NO_LIMIT : most >= n ? 1 : (n + most - 1) / most;
        needed = here > needed ? here : needed;
    }
    return needed;
}

/* ---- texts ---- */

/* "A, B and C": at most four names. */
static void put_services(const struct look *look, const int *services, size_t n, struct buf *out)
{
    size_t shown = n > 4 ? 3 : n;
    for (size_t k = 0; k < shown; k++)
        buf_printf(out, "%s%s", k == 0 ? "" : k + 1 == n ? " and " : ", ",
                   service_name(look, services[k]));
    if (shown < n)
        buf_printf(out, " and %zu others", n - shown);
}

static void put_crew(const struct look *look, int crew, struct buf *out)
{
    int *members = NULL;
    size_t n = 0;
    for (int s = crew; s >= 0; s = look->next[s])
        *ARRAY_PUSH(members, n) = s;
    put_services(look, members, n, out);
    free(members);
}

static bool found(struct look *look, struct buf *why)
{
    free(look->why);
    look->why = buf_take(why);
    return true;
}

/* ---- one crew ---- */

/* Members of the crew that the rule names. */
static int64_t shared_by(const struct look *look, int crew, const struct rule *rule)
{
    int64_t n = 0;
    for (size_t k = 0; k < rule->n_services; k++)
        n += look->crew[rule->services[k]] == crew;
    return n;
}

/* On each of its hosts the crew has one of each: more than a rule `apart` lets on one. */
static bool crew_is_torn(struct look *look, int crew)
{
    for (int s = crew; s >= 0; s = look->next[s])
        for (int u = look->first_use[s]; u < look->first_use[s + 1]; u++) {
            const struct rule *rule = rule_at(look, look->uses[u]);
            struct buf why = BUF_INIT;
            if (rule->kind != RULE_APART || shared_by(look, crew, rule) <= rule->max_per_host)
                continue;
            put_crew(look, crew, &why);
            buf_printf(&why, " share hosts, each of which may have at most %lld of them",
                       (long long)rule->max_per_host);
            return found(look, &why);
        }
    return false;
}

/* The hosts that one member needs are more than there are, or than another has instances. */
static bool crew_is_short(struct look *look, int crew, int64_t n_allowed)
{
    int widest = crew, fewest = crew;
    for (int s = crew; s >= 0; s = look->next[s]) {
        widest = hosts_needed(look, s) > hosts_needed(look, widest) ? s : widest;
        fewest = look->replicas[s] < look->replicas[fewest] ? s : fewest;
    }
    int64_t needed = hosts_needed(look, widest);
    bool by_member = look->next[crew] >= 0 && needed > look->replicas[fewest];
    struct buf why = BUF_INIT;
    if (needed <= n_allowed && !by_member)
        return false;
    buf_printf(&why, "%s needs %lld hosts, ", service_name(look, widest), (long long)needed);
    if (by_member)
        buf_printf(&why, "%s has only %d instance%s to share them", service_name(look, fewest),
                   look->replicas[fewest], look->replicas[fewest] == 1 ? "" : "s");
    else
        buf_printf(&why, "%lld may be used", (long long)n_allowed);
    return found(look, &why);
}

static bool crew_clashes(struct look *look, int crew)
{
    struct buf why = BUF_INIT;
    int64_t n_allowed = allowed_find(look, crew);
    if (n_allowed == 0) {
        put_crew(look, crew, &why);
        buf_puts(&why, look->next[crew] < 0 ? " has no host left" : " have no host in common");
        return found(look, &why);
    }
    for (int s = crew; s >= 0; s = look->next[s]) {
        int64_t room = room_of(look, s, n_allowed);
        if (room >= look->replicas[s])
            continue;
        buf_printf(&why, "there %s %d instance%s of %s, room for %lld",
                   look->replicas[s] == 1 ? "is" : "are", look->replicas[s],
                   look->replicas[s] == 1 ? "" : "s", service_name(look, s), (long long)room);
        return found(look, &why);
    }
    return (look->next[crew] >= 0 && crew_is_torn(look, crew)) ||
           crew_is_short(look, crew, n_allowed);
}

/* ---- services apart ---- */

/* More instances of several services than the hosts take under one rule `apart`. */
static bool rule_clashes(struct look *look, const struct rule *rule)
{
    size_t n_hosts = look->model->n_hosts, n = rule->n_services;
    int64_t need = 0;
    if (rule->kind != RULE_APART || n < 2 || n * n_hosts > MOST_PAIRS)
        return false;
    AUTO(holes) struct holes *holes = holes_new(n, n_hosts, rule->max_per_host);
    for (size_t k = 0; k < n; k++) {
        int s = rule->services[k];
        if (look->replicas[s] == 0)
            continue;
        need += look->replicas[s];
        allowed_find(look, look->crew[s]);
        int64_t per_zone = most_of(look, s, true);
        holes_put(holes, k, look->replicas[s], look->allowed, most_of(look, s, false),
                  per_zone == NO_LIMIT ? NULL : look->zones, per_zone);
    }
    int64_t room = holes_fill(holes);
    if (room >= need)
        return false;
    struct buf why = BUF_INIT;
    buf_printf(&why, "there are %lld instances of ", (long long)need);
    put_services(look, rule->services, n, &why);
    buf_printf(&why, ", room for %lld", (long long)room);
    return found(look, &why);
}

struct apart {
    struct look *look;
    int *crews; /* that a rule keeps apart from another crew */
    size_t n;
    bool *pairs; /* n × n */
};

static bool clique_clashes(void *ctx, const int *clique, int n)
{
    const struct apart *apart = ctx;
    struct look *look = apart->look;
    size_t n_hosts = look->model->n_hosts;
    int64_t need = 0, least = NO_LIMIT;
    if (n < 2 || (size_t)n * n_hosts > MOST_PAIRS)
        return false;
    AUTO_FREE int *firsts = mem_array((size_t)n, sizeof *firsts);
    AUTO(holes) struct holes *holes = holes_new((size_t)n, n_hosts, 1);
    for (int k = 0; k < n; k++) {
        int64_t needed = 1;
        firsts[k] = apart->crews[clique[k]];
        for (int s = firsts[k]; s >= 0; s = look->next[s])
            needed = hosts_needed(look, s) > needed ? hosts_needed(look, s) : needed;
        least = lesser(least, allowed_find(look, firsts[k]));
        holes_put(holes, (size_t)k, needed, look->allowed, 1, NULL, 0);
        need += needed;
    }
    int64_t room = need <= least ? need : holes_fill(holes);
    if (room >= need)
        return false;
    struct buf why = BUF_INIT;
    put_services(look, firsts, (size_t)n, &why);
    buf_printf(&why, " need %lld hosts of their own, %lld may be used", (long long)need,
               (long long)room);
    return found(look, &why);
}

/* Rules that let one instance on a host keep their crews apart, in pairs; where all of several are,
 * each has hosts of its own. */
static bool cliques_clash(struct look *look)
{
    struct apart apart = {.look = look};
    AUTO_FREE int *number = mem_array(look->model->n_services, sizeof *number);
    AUTO_FREE bool *pairs = NULL;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t r = 0; r < look->n_rules; r++) {
            const struct rule *rule = rule_at(look, look->rules[r]);
            bool keeps = rule->kind == RULE_APART && rule->max_per_host == 1 && rule->n_services > 1;
            for (size_t k = 0; keeps && k < rule->n_services; k++) {
                int a = look->crew[rule->services[k]];
                if (look->replicas[rule->services[k]] == 0)
                    continue;
                if (pass == 0 && number[a] == 0) {
                    *ARRAY_PUSH(apart.crews, apart.n) = a;
                    number[a] = (int)apart.n;
                }
                for (size_t m = 0; pass == 1 && m < k; m++) {
                    int b = look->crew[rule->services[m]];
                    if (a == b || look->replicas[rule->services[m]] == 0)
                        continue;
                    size_t x = (size_t)number[a] - 1, y = (size_t)number[b] - 1;
                    pairs[x * apart.n + y] = pairs[y * apart.n + x] = true;
                }
            }
        }
        if (apart.n < 2 || apart.n > MOST_CREWS)
            break;
        if (pass == 0)
            apart.pairs = pairs = mem_array(apart.n * apart.n, sizeof *pairs);
    }
    bool clash = pairs && cliques_until(pairs, (int)apart.n, CLIQUE_STEPS, clique_clashes, &apart);
    free(apart.crews);
    return clash;
}

/* ---- all ---- */

/* True where these rules contradict; *why says what cannot be. */
static bool rules_clash(const struct look *at, const size_t *rules, size_t n_rules, char **why)
{
    AUTO_LOOK struct look look = *at;
    bool clash = false;
    look.rules = rules;
    look.n_rules = n_rules;
    look_init(&look);
    for (size_t s = 0; s < look.model->n_services && !clash; s++)
        if (look.replicas[s] > 0 && look.crew[s] == (int)s &&
            (look.next[s] >= 0 || look.first_use[s + 1] > look.first_use[s]))
            clash = crew_clashes(&look, (int)s);
    for (size_t r = 0; r < n_rules && !clash; r++)
        clash = rule_clashes(&look, rule_at(&look, rules[r]));
    clash = clash || cliques_clash(&look);
    if (clash) {
        free(*why);
        *why = steal(look.why);
    }
    return clash;
}

static void put_rules(const struct look *look, const size_t *rules, size_t n, struct buf *out)
{
    for (size_t k = 0; k < n; k++) {
        const struct rule *rule = rule_at(look, rules[k]);
        buf_printf(out, "%srules[%zu] (%s, of ", k == 0 ? "" : k + 1 == n ? " and " : ", ",
                   rules[k], rule_kind_name(rule->kind));
        put_services(look, rule->services, rule->n_services, out);
        buf_puts(out, ")");
    }
}

char *contradiction(const struct model *model, bool place_all)
{
    size_t n = model->n_rules;
    if (n == 0 || model->n_hosts == 0)
        return NULL;
    AUTO_FREE int *replicas = mem_array(model->n_services, sizeof *replicas);
    AUTO_FREE int *all = model_replicas(model), *zones = model_zones(model);
    AUTO_FREE size_t *rules = mem_array(n, sizeof *rules);
    AUTO_FREE char *why = NULL;
    for (size_t i = 0; i < model->n_instances; i++)
        replicas[model->instances[i].service] += place_all || model->instances[i].host >= 0;
    for (size_t r = 0; r < n; r++)
        rules[r] = r;
    const struct look look = {.model = model, .replicas = replicas, .all = all, .zones = zones};
    if (!rules_clash(&look, rules, n, &why))
        return NULL;
    for (size_t r = 0; n <= MOST_DROPPED && r < n;) {
        AUTO_FREE size_t *fewer = mem_dup(rules, n * sizeof *fewer);
        memmove(&fewer[r], &fewer[r + 1], (n - r - 1) * sizeof *fewer);
        if (rules_clash(&look, fewer, n - 1, &why))
            memcpy(rules, fewer, --n * sizeof *rules);
        else
            r++;
    }
    rules_clash(&look, rules, n, &why);
    struct buf text = BUF_INIT;
    buf_puts(&text, "no placement can keep ");
    put_rules(&look, rules, n, &text);
    buf_printf(&text, ": %s", why);
    return buf_take(&text);
}
