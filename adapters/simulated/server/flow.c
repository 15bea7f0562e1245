/* flow.c - rates, balancing, usage and response times (the formulas are in flow.h). */
#include "adapters/simulated/server/flow.h"

#include <math.h>
#include <stdlib.h>

void flow_free(struct flow *flow)
{
    if (!flow)
        return;
    free(flow->arrivals);
    free(flow->cpu_millis);
    free(flow->response_ms);
    free(flow->host_demand);
    free(flow->ready);
    free(flow->first);
    free(flow->count);
    free(flow->position);
    free(flow->edges);
    free(flow);
}

double flow_slowdown(double rho, int64_t cpu_millis)
{
    double cores = cpu_millis > 1000 ? (double)cpu_millis / 1000 : 1;
    if (rho > FLOW_RHO_MAX)
        rho = FLOW_RHO_MAX;
    if (rho <= FLOW_KNEE)
        return 1 / (1 - pow(rho, cores));
    double at_knee = 1 / (1 - pow(FLOW_KNEE, cores));
    double slope = cores * pow(FLOW_KNEE, cores - 1) * at_knee * at_knee;
    return at_knee + slope * (rho - FLOW_KNEE);
}

double flow_load(const struct cluster *c, int64_t at_ms, int service)
{
    for (size_t i = c->n_loads; i-- > 0;)
        if (c->loads[i].at_ms <= at_ms &&
            (c->loads[i].service < 0 || c->loads[i].service == service))
            return c->loads[i].factor;
    return 1;
}

static bool serves(const struct replica *r, int64_t at_ms)
{
    return r->ready_ms >= 0 && r->ready_ms <= at_ms && (r->ended_ms < 0 || at_ms < r->ended_ms);
}

/* Groups the ready replicas by service (counting sort). */
static void find_ready(struct flow *f, const struct cluster *c, int64_t at_ms)
{
    size_t n = c->scenario->n_services;
    f->first = mem_array(n, sizeof *f->first);
    f->count = mem_array(n, sizeof *f->count);
    f->position = mem_array(c->n_replicas, sizeof *f->position);
    for (size_t i = 0; i < c->n_replicas; i++) {
        f->position[i] = -1;
        if (serves(&c->replicas[i], at_ms)) {
            f->count[c->replicas[i].service]++;
            f->n_ready++;
        }
    }
    f->ready = mem_array(f->n_ready, sizeof *f->ready);
    for (size_t s = 0, at = 0; s < n; s++) {
        f->first[s] = (int)at;
        at += (size_t)f->count[s];
        f->count[s] = 0;
    }
    for (size_t i = 0; i < c->n_replicas; i++) {
        if (!serves(&c->replicas[i], at_ms))
            continue;
        int s = c->replicas[i].service, at = f->first[s] + f->count[s]++;
        f->ready[at] = (int)i;
        f->position[i] = at;
    }
}

/* The factor for absolute rates: the entries' mean by their rate, 1 without entries. */
static double mean_load(const struct cluster *c, int64_t at_ms)
{
    double sum = 0, weighted = 0;
    for (size_t s = 0; c->n_loads && s < c->scenario->n_services; s++) {
        double entry = c->scenario->services[s].entry_per_s;
        sum += entry;
        weighted += entry * flow_load(c, at_ms, (int)s);
    }
    return sum > 0 ? weighted / sum : 1;
}

/* Calls per second at service level; 0 where an end does not serve. `arrivals` of the caller must
 * be final: services are visited callers first. */
static double call_rate(const struct flow *f, const struct sim_call *call)
{
    if (!f->count[call->from] || !f->count[call->to])
        return 0;
    return call->per_request >= 0 ? call->per_request * f->arrivals[call->from]
                                  : call->per_s * f->load;
}

static double *find_rates(struct flow *f, const struct cluster *c, int64_t at_ms)
{
    const struct scenario *s = c->scenario;
    f->load = mean_load(c, at_ms);
    double *rates = mem_array(s->n_calls, sizeof *rates);
    f->arrivals = mem_array(s->n_services, sizeof *f->arrivals);
    for (size_t i = 0; i < s->n_services; i++)
        if (f->count[i])
            f->arrivals[i] = s->services[i].entry_per_s * flow_load(c, at_ms, (int)i);
    for (size_t i = 0; i < s->n_services; i++) {
        const struct sim_service *v = &s->services[s->order[i]];
        for (size_t j = v->first_call; j < v->first_call + v->n_calls; j++) {
            rates[j] = call_rate(f, &s->calls[j]);
            f->arrivals[s->calls[j].to] += rates[j];
        }
    }
    return rates;
}

static void find_usage(struct flow *f, const struct cluster *c)
{
    const struct scenario *s = c->scenario;
    f->cpu_millis = mem_array(f->n_ready, sizeof *f->cpu_millis);
    f->host_demand = mem_array(s->n_hosts, sizeof *f->host_demand);
    for (size_t h = 0; h < s->n_hosts; h++)
        f->host_demand[h] = (double)s->hosts[h].cpu_used_millis;
    for (size_t i = 0; i < f->n_ready; i++) {
        const struct replica *r = &c->replicas[f->ready[i]];
        const struct sim_service *v = &s->services[r->service];
        f->cpu_millis[i] = (double)v->cpu_base_millis +
                           f->arrivals[r->service] / f->count[r->service] * v->work_ms;
        f->host_demand[r->host] += f->cpu_millis[i];
    }
    for (size_t i = 0; i < f->n_ready; i++) {
        int host = c->replicas[f->ready[i]].host;
        double cap = (double)s->hosts[host].cpu_millis;
        if (f->host_demand[host] > cap)
            f->cpu_millis[i] *= cap / f->host_demand[host];
    }
}

static void add_edge(struct flow *f, size_t *room, struct flow_edge edge)
{
    if (f->n_edges == *room) {
        *room = *room ? *room * 2 : 256;
        f->edges = mem_resize(f->edges, *room, sizeof *f->edges);
    }
    f->edges[f->n_edges++] = edge;
}

struct shares { /* replicas per host of the two ends of one call; zeroed between calls */
    int *src, *dst;
};

/* Splits one call over replica pairs: local as far as both shares allow, the rest in proportion. */
static void split_call(struct flow *f, const struct cluster *c, int call, double rate,
                       struct shares *on, size_t *room)
{
    const struct sim_call *k = &c->scenario->calls[call];
    const int *src = f->ready + f->first[k->from], *dst = f->ready + f->first[k->to];
    int n_src = f->count[k->from], n_dst = f->count[k->to];
    for (int i = 0; i < n_src; i++)
        on->src[c->replicas[src[i]].host]++;
    for (int j = 0; j < n_dst; j++)
        on->dst[c->replicas[dst[j]].host]++;
    double open = 0; /* share of the callees that is not taken locally */
    for (int j = 0; j < n_dst; j++) {
        int h = c->replicas[dst[j]].host;
        double left = (double)on->dst[h] / n_dst - (double)on->src[h] / n_src;
        open += left > 0 ? left / on->dst[h] : 0;
    }
    for (int i = 0; i < n_src; i++) {
        int h = c->replicas[src[i]].host;
        double out = (double)on->src[h] / n_src, in = (double)on->dst[h] / n_dst;
        double rest = out > in ? (out - in) / on->src[h] : 0; /* of this replica, sent away */
        for (int j = 0; j < n_dst; j++) {
            int g = c->replicas[dst[j]].host;
            double share = 0;
            double left = (double)on->dst[g] / n_dst - (double)on->src[g] / n_src;
            if (g == h)
                share = (out < in ? out : in) / on->src[h] / on->dst[h];
            else if (rest > 0 && left > 1e-15)
                share = rest * (left / on->dst[g]) / open;
            if (share > 1e-15)
                add_edge(f, room, (struct flow_edge){call, src[i], dst[j], rate * share, 0});
        }
    }
    for (int i = 0; i < n_src; i++)
        on->src[c->replicas[src[i]].host] = 0;
    for (int j = 0; j < n_dst; j++)
        on->dst[c->replicas[dst[j]].host] = 0;
}

/* R of every replica, callees first. `starts` are the first edges of the calls. */
static void find_times(struct flow *f, const struct cluster *c, const double *rates,
                       const size_t *starts)
{
    const struct scenario *s = c->scenario;
    f->response_ms = mem_array(f->n_ready, sizeof *f->response_ms);
    for (size_t o = s->n_services; o-- > 0;) {
        int service = s->order[o];
        const struct sim_service *v = &s->services[service];
        int first = f->first[service], count = f->count[service];
        for (int i = first; i < first + count; i++) {
            int host = c->replicas[f->ready[i]].host;
            double rho = f->host_demand[host] / (double)s->hosts[host].cpu_millis;
            f->response_ms[i] =
                v->work_ms * flow_slowdown(rho, s->hosts[host].cpu_millis) + v->delay_ms;
        }
        for (size_t j = v->first_call; count && j < v->first_call + v->n_calls; j++) {
            double arrivals = f->arrivals[service];
            double per_request = s->calls[j].per_request >= 0 ? s->calls[j].per_request
                                 : arrivals > 0 ? s->calls[j].per_s * f->load / arrivals
                                                : 0;
            for (int i = first; !f->count[s->calls[j].to] && i < first + count; i++)
                f->response_ms[i] += per_request * (double)s->failed_call_ms;
            for (size_t e = starts[j]; e < starts[j + 1]; e++) {
                struct flow_edge *edge = &f->edges[e];
                edge->mean_ms = (double)scenario_rtt_us(s, c->replicas[edge->src].host,
                                                        c->replicas[edge->dst].host) /
                                    1000 +
                                f->response_ms[f->position[edge->dst]];
                /* Of the caller's own calls, this part goes to this callee. */
                double part = rates[j] > 0 ? edge->per_s / (rates[j] / count) : 0;
                f->response_ms[f->position[edge->src]] += per_request * part * edge->mean_ms;
            }
        }
        for (int i = first; i < first + count; i++) /* also where extreme rates gave no number */
            if (!(f->response_ms[i] < FLOW_LONGEST_MS))
                f->response_ms[i] = FLOW_LONGEST_MS;
    }
}

struct flow *flow_new(const struct cluster *c, int64_t at_ms)
{
    const struct scenario *s = c->scenario;
    struct flow *f = mem_alloc(sizeof *f);
    find_ready(f, c, at_ms);
    AUTO_FREE double *rates = find_rates(f, c, at_ms);
    AUTO_FREE size_t *starts = mem_array(s->n_calls + 1, sizeof *starts);
    AUTO_FREE int *on_src = mem_array(s->n_hosts, sizeof *on_src);
    AUTO_FREE int *on_dst = mem_array(s->n_hosts, sizeof *on_dst);
    struct shares on = {on_src, on_dst};
    size_t room = 0;
    find_usage(f, c);
    for (size_t j = 0; j < s->n_calls; j++) {
        starts[j] = f->n_edges;
        if (rates[j] > 0)
            split_call(f, c, (int)j, rates[j], &on, &room);
    }
    starts[s->n_calls] = f->n_edges;
    find_times(f, c, rates, starts);
    return f;
}

static double service_ms(const struct flow *f, int service)
{
    double sum = 0;
    for (int i = 0; i < f->count[service]; i++)
        sum += f->response_ms[f->first[service] + i];
    return sum / f->count[service];
}

double flow_entry_ms(const struct flow *f, const struct cluster *c, int64_t at_ms, int service)
{
    const struct scenario *s = c->scenario;
    double sum = 0, rate = 0;
    if (service >= 0)
        return f->count[service] ? service_ms(f, service) : -1;
    for (size_t i = 0; i < s->n_services; i++) {
        double entry = s->services[i].entry_per_s * flow_load(c, at_ms, (int)i);
        if (entry <= 0 || !f->count[i])
            continue;
        sum += entry * service_ms(f, (int)i);
        rate += entry;
    }
    return rate > 0 ? sum / rate : -1;
}
