/* api_read.c - documents about the cluster, written as text at once. */
#include "adapters/simulated/server/api_read.h"

#include "adapters/simulated/server/flow.h"
#include "adapters/simulated/server/history.h"
#include "model/base/file.h"
#include "model/model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void put_key(struct buf *out, const char *key)
{
    char last = out->data[out->size - 1];
    buf_printf(out, "%s\"%s\":", last == '{' || last == '[' ? "" : ",", key);
}

static void put_int(struct buf *out, const char *key, int64_t value)
{
    put_key(out, key);
    json_put_int(out, value);
}

static void put_text(struct buf *out, const char *key, const char *value)
{
    put_key(out, key);
    json_put_text(out, value);
}

static void put_bool(struct buf *out, const char *key, bool value)
{
    put_key(out, key);
    json_put_bool(out, value);
}

static void put_real(struct buf *out, const char *key, double value)
{
    put_key(out, key);
    json_put_real(out, value);
}

static void put_host(struct buf *out, const struct scenario *s, const char *key, int host)
{
    put_text(out, key, host < 0 ? NULL : s->hosts[host].name);
}

/* Opens the next row of an array. */
static void put_row(struct buf *out)
{
    buf_puts(out, out->data[out->size - 1] == '[' ? "\n{" : ",\n{");
}

static void put_head(struct buf *out, const struct cluster *c)
{
    buf_puts(out, "{\"v\":1");
    put_text(out, "scenario", c->scenario->name);
    put_int(out, "sim_ms", c->last_ms);
    put_int(out, "now_ms", cluster_wall_ms(c, c->last_ms));
    put_real(out, "speed", cluster_speed(c));
}

int api_health(struct sim *sim, const struct api_request *req, struct api_answer *out,
               struct err *err)
{
    (void)sim, (void)req, (void)err;
    out->content_type = "text/plain";
    buf_puts(&out->body, "ok\n");
    return 0;
}

static void put_hosts(struct buf *out, const struct cluster *c)
{
    const struct scenario *s = c->scenario;
    put_key(out, "hosts");
    buf_puts(out, "[");
    for (size_t i = 0; i < s->n_hosts; i++) {
        const struct sim_host *h = &s->hosts[i];
        put_row(out);
        put_text(out, "name", h->name);
        put_int(out, "cpu_cap_millis", h->cpu_millis);
        put_int(out, "mem_cap_bytes", h->mem_bytes);
        put_int(out, "cpu_used_millis", h->cpu_used_millis);
        put_int(out, "mem_used_bytes", h->mem_used_bytes);
        put_int(out, "cpu_requested_millis", h->cpu_requested_millis);
        put_int(out, "mem_requested_bytes", h->mem_requested_bytes);
        put_int(out, "pods_cap", h->pods);
        put_int(out, "pods_used", h->pods_used);
        put_bool(out, "schedulable", h->schedulable && c->hosts[i].up);
        put_bool(out, "up", c->hosts[i].up);
        put_text(out, "region", h->region);
        put_text(out, "zone", h->zone);
        buf_puts(out, "}");
    }
    buf_puts(out, "]");
}

static void put_services(struct buf *out, const struct cluster *c)
{
    AUTO_FREE struct survey *survey = cluster_survey(c);
    put_key(out, "services");
    buf_puts(out, "[");
    for (size_t i = 0; i < c->scenario->n_services; i++) {
        const struct sim_service *v = &c->scenario->services[i];
        put_row(out);
        put_text(out, "name", v->name);
        put_text(out, "namespace", v->namespace);
        put_text(out, "version", v->version);
        put_bool(out, "stateful", v->stateful);
        put_bool(out, "movable", v->movable);
        put_bool(out, "rollout", cluster_rolling(c, (int)i, survey));
        put_int(out, "wanted", c->services[i].wanted);
        put_int(out, "revision", c->services[i].revision);
        buf_puts(out, "}");
    }
    buf_puts(out, "]");
}

static void put_replicas(struct buf *out, const struct cluster *c)
{
    const struct scenario *s = c->scenario;
    AUTO_FREE bool *replaced = mem_array(c->n_replicas, sizeof *replaced);
    for (size_t i = 0; i < c->n_live; i++)
        if (c->replicas[c->live[i]].replaces >= 0)
            replaced[c->replicas[c->live[i]].replaces] = true;
    put_key(out, "replicas");
    buf_puts(out, "[");
    for (size_t i = 0; i < c->n_live; i++) {
        const struct replica *r = &c->replicas[c->live[i]];
        const struct sim_service *v = &s->services[r->service];
        put_row(out);
        put_text(out, "name", r->name);
        put_text(out, "service", v->name);
        put_text(out, "namespace", v->namespace);
        put_host(out, s, "host", r->host);
        put_text(out, "state", replica_state_names[r->state]);
        put_bool(out, "being_replaced", replaced[c->live[i]]);
        put_int(out, "cpu_request_millis", v->cpu_request_millis);
        put_int(out, "mem_request_bytes", v->mem_request_bytes);
        put_int(out, "start_ms",
                r->ready_ms < 0 ? -1 : (int64_t)((double)v->start_up_ms / cluster_speed(c)));
        if (r->mark.cycle >= 0) {
            AUTO_FREE char *mark =
                mem_printf("%lld/%lld", (long long)r->mark.cycle, (long long)r->mark.seq);
            put_text(out, "mark", mark);
        }
        buf_puts(out, "}");
    }
    buf_puts(out, "]");
}

static void put_latency(struct buf *out, const struct scenario *s, int a, int b)
{
    put_row(out);
    put_host(out, s, "a", a);
    put_host(out, s, "b", b);
    put_int(out, "rtt_us", scenario_rtt_us(s, a, b));
    buf_puts(out, "}");
}

static void put_latencies(struct buf *out, const struct cluster *c)
{
    const struct scenario *s = c->scenario;
    put_key(out, "latencies");
    buf_puts(out, "[");
    if (s->n_hosts <= API_MAX_LATENCY_HOSTS) {
        for (size_t a = 0; a < s->n_hosts; a++)
            for (size_t b = a + 1; b < s->n_hosts; b++)
                put_latency(out, s, (int)a, (int)b);
    } else {
        for (size_t i = 0; i < s->n_links; i++)
            put_latency(out, s, s->links[i].a, s->links[i].b);
    }
    buf_puts(out, "]");
}

int api_cluster(struct sim *sim, const struct api_request *req, struct api_answer *out,
                struct err *err)
{
    (void)req, (void)err;
    const struct cluster *c = sim_cluster(sim);
    put_head(&out->body, c);
    put_hosts(&out->body, c);
    put_services(&out->body, c);
    put_replicas(&out->body, c);
    put_latencies(&out->body, c);
    buf_puts(&out->body, "}\n");
    return 0;
}

/* A whole number of a query, or `fallback` where it is absent. */
static int get_query(const struct api_request *req, const char *name, bool needed, int64_t *out,
                     struct err *err)
{
    const char *text = req->query ? req->query(req->query_ctx, name) : NULL;
    if (!text && needed)
        return err_set(err, ERR_INPUT, "query argument %s is missing", name);
    if (!text)
        return 0;
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (!*text || *end || errno || value < 0 || value > MODEL_MAX_NUMBER)
        return err_set(err, ERR_INPUT, "query argument %s must be from 0 to 10^15", name);
    *out = value;
    return 0;
}

/* The window in simulated time; without arguments the last minute. */
static int get_window(const struct cluster *c, const struct api_request *req, int64_t *from,
                      int64_t *to, struct err *err)
{
    int64_t wall_from = -1, wall_to = req->wall_ms;
    if (get_query(req, "from_ms", false, &wall_from, err) ||
        get_query(req, "to_ms", false, &wall_to, err))
        return -1;
    *to = cluster_sim_ms(c, wall_to);
    if (*to > c->last_ms)
        *to = c->last_ms;
    *from = wall_from < 0 ? *to - 60000 : cluster_sim_ms(c, wall_from);
    if (*from < 0)
        *from = 0;
    if (wall_from > wall_to)
        return err_set(err, ERR_INPUT, "the window ends before it begins");
    return 0;
}

static void put_window(struct buf *out, const struct cluster *c, int64_t from, int64_t to)
{
    put_head(out, c);
    put_int(out, "from_ms", cluster_wall_ms(c, from));
    put_int(out, "to_ms", cluster_wall_ms(c, to));
    put_int(out, "sim_from_ms", from);
    put_int(out, "sim_to_ms", to);
}

int api_metrics(struct sim *sim, const struct api_request *req, struct api_answer *out,
                struct err *err)
{
    const struct cluster *c = sim_cluster(sim);
    const struct scenario *s = c->scenario;
    struct buf *body = &out->body;
    int64_t from, to;
    if (get_window(c, req, &from, &to, err))
        return -1;
    AUTO_FREE double *usage = history_usage(c, from, to);
    put_window(body, c, from, to);
    put_key(body, "hosts");
    buf_puts(body, "[");
    for (size_t i = 0; i < s->n_hosts; i++) {
        put_row(body);
        put_text(body, "name", s->hosts[i].name);
        put_int(body, "cpu_used_millis", s->hosts[i].cpu_used_millis);
        put_int(body, "mem_used_bytes", s->hosts[i].mem_used_bytes);
        buf_puts(body, "}");
    }
    buf_puts(body, "]");
    put_key(body, "replicas");
    buf_puts(body, "[");
    for (size_t i = 0; i < c->n_live; i++) {
        const struct replica *r = &c->replicas[c->live[i]];
        double cpu = usage[c->live[i]];
        if (cpu < 0)
            continue;
        put_row(body);
        put_text(body, "name", r->name);
        put_text(body, "service", s->services[r->service].name);
        put_text(body, "namespace", s->services[r->service].namespace);
        put_host(body, s, "host", r->host);
        put_int(body, "cpu_millis", (int64_t)(cpu + 0.5));
        put_int(body, "mem_bytes", s->services[r->service].mem_bytes);
        buf_puts(body, "}");
    }
    buf_puts(body, "]}\n");
    return 0;
}

int api_messages(struct sim *sim, const struct api_request *req, struct api_answer *out,
                 struct err *err)
{
    const struct cluster *c = sim_cluster(sim);
    const struct scenario *s = c->scenario;
    struct buf *body = &out->body;
    int64_t from, to;
    size_t n = 0;
    if (get_window(c, req, &from, &to, err))
        return -1;
    AUTO_FREE struct traffic_row *rows = history_traffic(c, from, to, &n);
    put_window(body, c, from, to);
    put_key(body, "messages");
    buf_puts(body, "[");
    for (size_t i = 0; i < n; i++) {
        const struct replica *src = &c->replicas[rows[i].src], *dst = &c->replicas[rows[i].dst];
        put_row(body);
        /* A replica that ended has no name any more: what it did counts for its service. */
        put_text(body, "src", src->state == REPLICA_ENDED ? NULL : src->name);
        put_text(body, "dst", dst->state == REPLICA_ENDED ? NULL : dst->name);
        put_text(body, "src_service", s->services[src->service].name);
        put_text(body, "dst_service", s->services[dst->service].name);
        put_int(body, "count", rows[i].count);
        put_key(body, "bytes");
        if (rows[i].bytes < 0)
            buf_puts(body, "null");
        else
            json_put_int(body, rows[i].bytes);
        put_real(body, "mean_ms", rows[i].mean_ms);
        buf_puts(body, "}");
    }
    buf_puts(body, "]}\n");
    return 0;
}

static void put_time(struct buf *out, const char *key, double ms)
{
    put_key(out, key);
    if (ms < 0)
        buf_puts(out, "null");
    else
        json_put_real(out, ms);
}

int api_response(struct sim *sim, const struct api_request *req, struct api_answer *out,
                 struct err *err)
{
    (void)req, (void)err;
    const struct cluster *c = sim_cluster(sim);
    const struct scenario *s = c->scenario;
    struct buf *body = &out->body;
    AUTO(flow) struct flow *f = flow_new(c, c->last_ms);
    double local = 0, all = 0;
    for (size_t e = 0; e < f->n_edges; e++) {
        all += f->edges[e].per_s;
        if (c->replicas[f->edges[e].src].host == c->replicas[f->edges[e].dst].host)
            local += f->edges[e].per_s;
    }
    put_head(body, c);
    put_time(body, "mean_ms", flow_entry_ms(f, c, c->last_ms, -1));
    put_time(body, "local_share", all > 0 ? local / all : -1);
    put_key(body, "entries");
    buf_puts(body, "[");
    for (size_t i = 0; i < s->n_services; i++) {
        double rate = s->services[i].entry_per_s * flow_load(c, c->last_ms, (int)i);
        if (rate <= 0)
            continue;
        put_row(body);
        put_text(body, "service", s->services[i].name);
        put_real(body, "per_s", rate);
        put_time(body, "mean_ms", flow_entry_ms(f, c, c->last_ms, (int)i));
        buf_puts(body, "}");
    }
    buf_puts(body, "]");
    put_key(body, "hosts");
    buf_puts(body, "[");
    for (size_t i = 0; i < s->n_hosts; i++) {
        put_row(body);
        put_text(body, "name", s->hosts[i].name);
        put_real(body, "utilisation", f->host_demand[i] / (double)s->hosts[i].cpu_millis);
        buf_puts(body, "}");
    }
    buf_puts(body, "]}\n");
    return 0;
}

int api_settled(struct sim *sim, const struct api_request *req, struct api_answer *out,
                struct err *err)
{
    const struct cluster *c = sim_cluster(sim);
    struct mark mark;
    int replica;
    const char *detail;
    if (get_query(req, "cycle", true, &mark.cycle, err) ||
        get_query(req, "seq", true, &mark.seq, err))
        return -1;
    enum sim_settled state = sim_settled(sim, mark, &replica, &detail);
    buf_puts(&out->body, "{\"v\":1");
    put_text(&out->body, "state", sim_settled_names[state]);
    put_text(&out->body, "instance_now", replica < 0 ? NULL : c->replicas[replica].name);
    put_host(&out->body, c->scenario, "host", replica < 0 ? -1 : c->replicas[replica].host);
    put_text(&out->body, "detail", detail);
    buf_puts(&out->body, "}\n");
    return 0;
}

static void put_moves(struct buf *out, const struct cluster *c)
{
    put_key(out, "moves");
    buf_puts(out, "[");
    for (size_t i = 0; i < c->n_placed; i++) {
        const struct placed *p = &c->placed[i];
        put_row(out);
        put_int(out, "cycle", p->mark.cycle);
        put_int(out, "seq", p->mark.seq);
        put_text(out, "asked", p->asked < 0 ? NULL : c->replicas[p->asked].name);
        put_text(out, "now", c->replicas[p->now].name);
        put_host(out, c->scenario, "source", p->source);
        put_host(out, c->scenario, "target", p->target);
        put_bool(out, "undone", p->undone);
        buf_puts(out, "}");
    }
    buf_puts(out, "]");
}

static void put_faults(struct buf *out, const struct cluster *c)
{
    put_key(out, "faults");
    buf_puts(out, "[");
    for (size_t i = 0; i < c->n_faults; i++) {
        buf_puts(out, i ? ",\n" : "\n");
        fault_encode(c->scenario, &c->faults[i], out);
    }
    buf_puts(out, "]");
}

int api_state(struct sim *sim, const struct api_request *req, struct api_answer *out,
              struct err *err)
{
    (void)req, (void)err;
    const struct cluster *c = sim_cluster(sim);
    struct buf *body = &out->body;
    put_head(body, c);
    put_int(body, "changes", (int64_t)c->n_changes);
    put_int(body, "replicas_ever", (int64_t)c->n_replicas);
    put_text(body, "journal", sim_journal(sim));
    put_hosts(body, c);
    put_services(body, c);
    put_replicas(body, c);
    put_moves(body, c);
    put_faults(body, c);
    buf_puts(body, "}\n");
    return 0;
}

int api_faults(struct sim *sim, const struct api_request *req, struct api_answer *out,
               struct err *err)
{
    (void)req, (void)err;
    put_head(&out->body, sim_cluster(sim));
    put_faults(&out->body, sim_cluster(sim));
    buf_puts(&out->body, "}\n");
    return 0;
}

int api_journal(struct sim *sim, const struct api_request *req, struct api_answer *out,
                struct err *err)
{
    (void)req;
    if (!sim_journal(sim))
        return err_set(err, ERR_NOT_FOUND, "the cluster lives in memory only");
    out->content_type = "application/x-ndjson";
    return file_read(sim_journal(sim), (size_t)256 << 20, &out->body, err);
}
