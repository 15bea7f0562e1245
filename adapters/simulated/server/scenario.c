/* scenario.c - completes and checks a scenario: names, references, the order of the call graph,
 * whether the start fits, and the round trip between two hosts. */
#include "adapters/simulated/server/scenario.h"

#include "adapters/simulated/server/rng.h"
#include "model/base/buf.h"

#include <stdlib.h>
#include <string.h>

/* Requests above 10^9 a second or 10^9 ms of work make rates beyond what doubles count exactly. */
#define MAX_RATE 1e9
#define MAX_ARRIVALS 1e12 /* times a load factor of 10^6 still far from the end of doubles */

struct scenario *scenario_new(void)
{
    struct scenario *s = mem_alloc(sizeof *s);
    s->seed = 1;
    s->speed = 1;
    s->warm_ms = INT64_C(3600) * 1000;
    s->reschedule_ms = 10000;
    s->failed_call_ms = 1000;
    s->same_zone_us = 300; /* one switch */
    s->same_region_us = 1000;
    s->other_region_us = 30000;
    return s;
}

static void zone_links_free(struct sim_zone_link *links, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(links[i].a);
        free(links[i].b);
    }
    free(links);
}

void scenario_free(struct scenario *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n_hosts; i++) {
        free(s->hosts[i].name);
        free(s->hosts[i].region);
        free(s->hosts[i].zone);
    }
    for (size_t i = 0; i < s->n_services; i++) {
        free(s->services[i].name);
        free(s->services[i].namespace);
        free(s->services[i].version);
        free(s->services[i].hosts);
    }
    zone_links_free(s->zone_links, s->n_zone_links);
    zone_links_free(s->region_links, s->n_region_links);
    free(s->hosts);
    free(s->services);
    free(s->calls);
    free(s->order);
    free(s->links);
    free(s->faults);
    names_wipe(&s->host_names);
    names_wipe(&s->service_names);
    free(s->name);
    free(s);
}

int scenario_host(const struct scenario *s, const char *name)
{
    return names_get(&s->host_names, name);
}

int scenario_service(const struct scenario *s, const char *name)
{
    return names_get(&s->service_names, name);
}

static int names_check(struct scenario *s, struct err *err)
{
    names_wipe(&s->host_names);
    names_wipe(&s->service_names);
    for (size_t i = 0; i < s->n_hosts; i++) {
        const char *name = s->hosts[i].name, *problem = name_problem(name, strlen(name));
        if (problem)
            return err_set(err, ERR_CONFIG, "hosts[%zu].name: %s", i, problem);
        if (names_add(&s->host_names, name, (int)i) >= 0)
            return err_set(err, ERR_CONFIG, "hosts[%zu]: there are two hosts %s", i, name);
    }
    for (size_t i = 0; i < s->n_services; i++) {
        const char *name = s->services[i].name, *problem = name_problem(name, strlen(name));
        /* 253 bytes less what replica names append: "-" and ten, "-" and five. */
        if (!problem && strlen(name) > 236)
            problem = "too long for replica names (236 bytes at most)";
        if (problem)
            return err_set(err, ERR_CONFIG, "services[%zu].name: %s", i, problem);
        if (names_add(&s->service_names, name, (int)i) >= 0)
            return err_set(err, ERR_CONFIG, "services[%zu]: there are two services %s", i, name);
    }
    return 0;
}

static int numbers_check(const struct scenario *s, struct err *err)
{
    int64_t replicas = 0;
    if (!s->n_hosts || !s->n_services)
        return err_set(err, ERR_CONFIG, "a scenario needs at least one host and one service");
    if (s->n_hosts > SCENARIO_MAX_HOSTS || s->n_services > SCENARIO_MAX_SERVICES ||
        s->n_calls > SCENARIO_MAX_CALLS)
        return err_set(err, ERR_CONFIG, "more than %d hosts, %d services or %d calls",
                       SCENARIO_MAX_HOSTS, SCENARIO_MAX_SERVICES, SCENARIO_MAX_CALLS);
    for (size_t i = 0; i < s->n_services; i++) {
        const struct sim_service *v = &s->services[i];
        if (v->n_hosts > (size_t)v->replicas)
            return err_set(err, ERR_CONFIG, "services[%zu] %s: more hosts than replicas", i,
                           v->name);
        if (!(v->work_ms >= 0 && v->work_ms <= MAX_RATE && v->delay_ms >= 0 &&
              v->delay_ms <= MAX_RATE && v->entry_per_s >= 0 && v->entry_per_s <= MAX_RATE))
            return err_set(err, ERR_CONFIG, "services[%zu] %s: rate or time out of range", i,
                           v->name);
        if (v->replicas > SCENARIO_MAX_REPLICAS)
            return err_set(err, ERR_CONFIG, "more than %d replicas", SCENARIO_MAX_REPLICAS);
        replicas += v->replicas;
    }
    if (replicas > SCENARIO_MAX_REPLICAS)
        return err_set(err, ERR_CONFIG, "more than %d replicas", SCENARIO_MAX_REPLICAS);
    for (size_t i = 0; i < s->n_faults; i++) {
        const char *problem = fault_problem(&s->faults[i]);
        if (problem)
            return err_set(err, ERR_CONFIG, "faults[%zu]: %s", i, problem);
    }
    return 0;
}

static int by_from(const void *a, const void *b)
{
    const struct sim_call *x = a, *y = b;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return (x->to > y->to) - (x->to < y->to);
}

static int calls_check(struct scenario *s, struct err *err)
{
    for (size_t i = 0; i < s->n_calls; i++) {
        const struct sim_call *c = &s->calls[i];
        const char *from = s->services[c->from].name, *to = s->services[c->to].name;
        bool relative = c->per_request >= 0;
        if (c->from == c->to)
            return err_set(err, ERR_CONFIG, "calls: %s calls itself", from);
        if (!((relative ? c->per_request : c->per_s) <= MAX_RATE) ||
            (!relative && !(c->per_s >= 0)))
            return err_set(err, ERR_CONFIG, "calls: %s to %s: rate out of range", from, to);
    }
    if (s->n_calls)
        qsort(s->calls, s->n_calls, sizeof *s->calls, by_from);
    for (size_t i = 0; i < s->n_services; i++)
        s->services[i].first_call = s->services[i].n_calls = 0;
    for (size_t i = 0; i < s->n_calls; i++) {
        struct sim_service *v = &s->services[s->calls[i].from];
        if (i && s->calls[i - 1].from == s->calls[i].from && s->calls[i - 1].to == s->calls[i].to)
            return err_set(err, ERR_CONFIG, "calls: %s to %s is given twice", v->name,
                           s->services[s->calls[i].to].name);
        if (!v->n_calls++)
            v->first_call = i;
    }
    return 0;
}

/* Names one cycle among the services that Kahn's algorithm left over (degree > 0). */
static int cycle_error(const struct scenario *s, const int *degree, struct err *err)
{
    AUTO_FREE int *seen = mem_array(s->n_services, sizeof *seen);
    AUTO_FREE int *before = mem_array(s->n_services, sizeof *before);
    size_t at = 0;
    while (!degree[at])
        at++;
    /* Every service left over has a caller left over: walking back must meet itself. */
    for (int step = 1; !seen[at]; step++) {
        seen[at] = step;
        for (size_t i = 0; i < s->n_calls; i++) {
            if ((size_t)s->calls[i].to == at && degree[s->calls[i].from]) {
                before[s->calls[i].from] = (int)at;
                at = (size_t)s->calls[i].from;
                break;
            }
        }
    }
    AUTO_BUF struct buf path = BUF_INIT;
    size_t start = at;
    do {
        buf_printf(&path, "%s > ", s->services[at].name);
        at = (size_t)before[at];
    } while (at != start && path.size < 300);
    return err_set(err, ERR_CONFIG, "calls: a cycle has no response time: %s%s", path.data,
                   at == start ? s->services[at].name : "…");
}

static int order_find(struct scenario *s, struct err *err)
{
    AUTO_FREE int *degree = mem_array(s->n_services, sizeof *degree);
    size_t done = 0, n = 0;
    free(s->order);
    s->order = mem_array(s->n_services, sizeof *s->order);
    for (size_t i = 0; i < s->n_calls; i++)
        degree[s->calls[i].to]++;
    for (size_t i = 0; i < s->n_services; i++)
        if (!degree[i])
            s->order[n++] = (int)i;
    for (; done < n; done++) {
        const struct sim_service *v = &s->services[s->order[done]];
        for (size_t i = 0; i < v->n_calls; i++) {
            int to = s->calls[v->first_call + i].to;
            if (!--degree[to])
                s->order[n++] = to;
        }
    }
    return n == s->n_services ? 0 : cycle_error(s, degree, err);
}

/* What every service gets with all replicas there; rates multiply along calls. */
static int rates_check(const struct scenario *s, struct err *err)
{
    AUTO_FREE double *arrivals = mem_array(s->n_services, sizeof *arrivals);
    for (size_t i = 0; i < s->n_services; i++)
        arrivals[i] = s->services[i].entry_per_s;
    for (size_t i = 0; i < s->n_services; i++) {
        const struct sim_service *v = &s->services[s->order[i]];
        double mine = arrivals[s->order[i]];
        if (mine > MAX_ARRIVALS)
            return err_set(err, ERR_CONFIG, "calls: %s gets %.3g requests a second (10^12 at most)",
                           v->name, mine);
        for (size_t j = v->first_call; j < v->first_call + v->n_calls; j++) {
            const struct sim_call *c = &s->calls[j];
            arrivals[c->to] += c->per_request >= 0 ? c->per_request * mine : c->per_s;
        }
    }
    return 0;
}

static int start_fits(const struct scenario *s, struct err *err)
{
    AUTO_FREE int64_t *cpu = mem_array(s->n_hosts, sizeof *cpu);
    AUTO_FREE int64_t *mem = mem_array(s->n_hosts, sizeof *mem);
    AUTO_FREE int64_t *pods = mem_array(s->n_hosts, sizeof *pods);
    for (size_t i = 0; i < s->n_services; i++) {
        const struct sim_service *v = &s->services[i];
        for (size_t j = 0; j < v->n_hosts; j++) {
            int h = v->hosts[j];
            const struct sim_host *host = &s->hosts[h];
            cpu[h] += v->cpu_request_millis;
            mem[h] += v->mem_request_bytes;
            pods[h]++;
            if (cpu[h] > host->cpu_millis - host->cpu_requested_millis ||
                mem[h] > host->mem_bytes - host->mem_requested_bytes ||
                (host->pods >= 0 && pods[h] > host->pods - host->pods_used))
                return err_set(err, ERR_CONFIG, "services[%zu] %s: no room left on %s at the start",
                               i, v->name, host->name);
        }
    }
    return 0;
}

static int by_ends(const void *a, const void *b)
{
    const struct sim_link *x = a, *y = b;
    if (x->a != y->a)
        return x->a < y->a ? -1 : 1;
    return (x->b > y->b) - (x->b < y->b);
}

static void links_sort(struct scenario *s)
{
    for (size_t i = 0; i < s->n_links; i++) {
        struct sim_link *l = &s->links[i];
        if (l->a > l->b) {
            int a = l->a;
            l->a = l->b;
            l->b = a;
        }
    }
    if (s->n_links)
        qsort(s->links, s->n_links, sizeof *s->links, by_ends);
}

/* Everything that shapes the cluster, as text, hashed. */
static uint64_t digest(const struct scenario *s)
{
    AUTO_BUF struct buf t = BUF_INIT;
    buf_printf(&t, "%llu %.17g %lld %lld %lld %lld %lld %lld\n", (unsigned long long)s->seed,
               s->noise, (long long)s->warm_ms, (long long)s->reschedule_ms,
               (long long)s->failed_call_ms, (long long)s->same_zone_us,
               (long long)s->same_region_us, (long long)s->other_region_us);
    for (size_t i = 0; i < s->n_hosts; i++) {
        const struct sim_host *h = &s->hosts[i];
        buf_printf(&t, "h %s %lld %lld %lld %s %s %lld %lld %lld %lld %lld %d\n", h->name,
                   (long long)h->cpu_millis, (long long)h->mem_bytes, (long long)h->pods,
                   h->region ? h->region : "", h->zone ? h->zone : "",
                   (long long)h->cpu_used_millis, (long long)h->mem_used_bytes,
                   (long long)h->cpu_requested_millis, (long long)h->mem_requested_bytes,
                   (long long)h->pods_used, h->schedulable);
    }
    for (size_t i = 0; i < s->n_services; i++) {
        const struct sim_service *v = &s->services[i];
        buf_printf(&t, "s %s %s %lld %lld %lld %lld %lld %.17g %.17g %lld %.17g", v->name,
                   v->namespace ? v->namespace : "", (long long)v->replicas,
                   (long long)v->cpu_base_millis, (long long)v->mem_bytes,
                   (long long)v->cpu_request_millis, (long long)v->mem_request_bytes, v->work_ms,
                   v->delay_ms, (long long)v->start_up_ms, v->entry_per_s);
        for (size_t j = 0; j < v->n_hosts; j++)
            buf_printf(&t, " %d", v->hosts[j]);
        buf_puts(&t, "\n");
    }
    for (size_t i = 0; i < s->n_calls; i++) {
        const struct sim_call *c = &s->calls[i];
        buf_printf(&t, "c %d %d %.17g %.17g %lld\n", c->from, c->to, c->per_request, c->per_s,
                   (long long)c->bytes);
    }
    for (size_t i = 0; i < s->n_links; i++)
        buf_printf(&t, "l %d %d %lld\n", s->links[i].a, s->links[i].b,
                   (long long)s->links[i].rtt_us);
    for (size_t i = 0; i < s->n_zone_links; i++)
        buf_printf(&t, "z %s %s %lld\n", s->zone_links[i].a, s->zone_links[i].b,
                   (long long)s->zone_links[i].rtt_us);
    for (size_t i = 0; i < s->n_region_links; i++)
        buf_printf(&t, "r %s %s %lld\n", s->region_links[i].a, s->region_links[i].b,
                   (long long)s->region_links[i].rtt_us);
    return rng_text(t.data);
}

int scenario_finish(struct scenario *s, struct err *err)
{
    if (names_check(s, err) || numbers_check(s, err) || calls_check(s, err) || order_find(s, err) ||
        rates_check(s, err) || start_fits(s, err))
        return -1;
    links_sort(s);
    s->digest = digest(s);
    return 0;
}

/* Equal names, where a missing one equals a missing one. */
static bool same(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

static int64_t pair_rtt(const struct sim_zone_link *links, size_t n, const char *a, const char *b)
{
    for (size_t i = 0; a && b && i < n; i++)
        if ((!strcmp(links[i].a, a) && !strcmp(links[i].b, b)) ||
            (!strcmp(links[i].a, b) && !strcmp(links[i].b, a)))
            return links[i].rtt_us;
    return -1;
}

int64_t scenario_rtt_us(const struct scenario *s, int a, int b)
{
    if (a == b)
        return 0;
    if (s->n_links) {
        struct sim_link key = {.a = a < b ? a : b, .b = a < b ? b : a};
        const struct sim_link *link =
            bsearch(&key, s->links, s->n_links, sizeof *s->links, by_ends);
        if (link)
            return link->rtt_us;
    }
    const struct sim_host *x = &s->hosts[a], *y = &s->hosts[b];
    int64_t rtt = pair_rtt(s->zone_links, s->n_zone_links, x->zone, y->zone);
    if (rtt < 0)
        rtt = pair_rtt(s->region_links, s->n_region_links, x->region, y->region);
    if (rtt >= 0)
        return rtt;
    if (!same(x->region, y->region))
        return s->other_region_us;
    return same(x->zone, y->zone) ? s->same_zone_us : s->same_region_us;
}
