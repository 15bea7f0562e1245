/* read.c - the three inspections of the embedded cluster (paper §6.1): GET /v1/cluster, /v1/metrics
 * and /v1/messages of server/api.h into a model. */
#include "adapters/simulated/simulated.h"

#include "model/base/clock.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int missing(struct err *err, const char *what)
{
    return err_set(err, ERR_INPUT, "remap-simulated answered %s without a name", what);
}

/* --- cluster --- */

static int add_host(struct model *model, const json_t *row, struct err *err)
{
    const char *name = simulated_text(row, "name");
    int index = name ? model_add_host(model, name, err) : missing(err, "a host");
    if (index < 0)
        return -1;
    struct host *h = &model->hosts[index];
    h->cpu_cap_millis = simulated_int(row, "cpu_cap_millis", 0);
    h->mem_cap_bytes = simulated_int(row, "mem_cap_bytes", 0);
    h->cpu_used_millis = simulated_int(row, "cpu_used_millis", 0);
    h->mem_used_bytes = simulated_int(row, "mem_used_bytes", 0);
    h->cpu_requested_millis = simulated_int(row, "cpu_requested_millis", 0);
    h->mem_requested_bytes = simulated_int(row, "mem_requested_bytes", 0);
    h->pods_cap = simulated_int(row, "pods_cap", -1);
    h->pods_used = simulated_int(row, "pods_used", 0);
    h->schedulable = !json_is_false(json_object_get(row, "schedulable"));
    h->region = mem_strdup(simulated_text(row, "region"));
    h->zone = mem_strdup(simulated_text(row, "zone"));
    return 0;
}

static int add_service(struct model *model, const struct app_scope *app, const json_t *row,
                       struct err *err)
{
    const char *name = simulated_text(row, "name"), *space = simulated_text(row, "namespace");
    if (!name || !space)
        return missing(err, "a service");
    if (!simulated_in_scope(app, name, space))
        return 0;
    int index = model_add_service(model, name, err);
    if (index < 0)
        return -1;
    struct service *s = &model->services[index];
    s->app = mem_strdup(app->name);
    s->version = mem_strdup(simulated_text(row, "version"));
    s->stateful = json_is_true(json_object_get(row, "stateful"));
    s->movable = !json_is_false(json_object_get(row, "movable"));
    s->rollout = json_is_true(json_object_get(row, "rollout"));
    return 0;
}

/* A replica of another app takes its requests and its slot from the host. */
static void add_foreign(struct model *model, int host, const json_t *row)
{
    if (host < 0)
        return;
    model->hosts[host].cpu_requested_millis += simulated_int(row, "cpu_request_millis", 0);
    model->hosts[host].mem_requested_bytes += simulated_int(row, "mem_request_bytes", 0);
    model->hosts[host].pods_used++;
}

static int add_replica(struct model *model, const struct app_scope *app, const json_t *row,
                       struct err *err)
{
    const char *name = simulated_text(row, "name"), *service = simulated_text(row, "service"),
               *space = simulated_text(row, "namespace"), *on = simulated_text(row, "host"),
               *state = simulated_text(row, "state");
    if (!name || !service || !space || !state)
        return missing(err, "a replica");
    int host = on ? model_host(model, on) : -1, of = model_service(model, service);
    if (on && host < 0)
        return err_set(err, ERR_INPUT, "remap-simulated put %s on %s, which is no host", name, on);
    if (!simulated_in_scope(app, service, space)) {
        add_foreign(model, host, row);
        return 0;
    }
    int index = of < 0 ? missing(err, "a replica's service")
                       : model_add_instance(model, name, of, host, err);
    if (index < 0)
        return -1;
    struct instance *i = &model->instances[index];
    i->cpu_request_millis = simulated_int(row, "cpu_request_millis", 0);
    i->mem_request_bytes = simulated_int(row, "mem_request_bytes", 0);
    i->start_ms = simulated_int(row, "start_ms", -1);
    if (json_is_true(json_object_get(row, "being_replaced")))
        i->pinned_why = mem_strdup("is being replaced");
    else if (!strcmp(state, "starting"))
        i->pinned_why = mem_strdup("is starting");
    return 0;
}

static int add_latency(struct model *model, const json_t *row)
{
    const char *a = simulated_text(row, "a"), *b = simulated_text(row, "b");
    int x = a ? model_host(model, a) : -1, y = b ? model_host(model, b) : -1;
    if (x >= 0 && y >= 0)
        *ARRAY_PUSH(model->latencies, model->n_latencies) =
            (struct latency){x, y, simulated_int(row, "rtt_us", 0)};
    return 0;
}

/* The speed that the cluster really has, where it is not the configured one; else 0. Intervals and
 * windows were then divided by the wrong number. */
static double other_speed(const struct simulated *sim, const json_t *tree)
{
    const json_t *value = json_object_get(tree, "speed");
    double speed = json_is_number(value) ? json_number_value(value) : sim->speed;
    return fabs(speed - sim->speed) > 1e-6 * sim->speed ? speed : 0;
}

static int cluster_inspect(void *ctx, const struct app_scope *app, struct inspection *in,
                           struct err *err)
{
    AUTO_JSON json_t *tree = simulated_get(ctx, "/v1/cluster", err);
    struct model *model = in->model;
    size_t i;
    json_t *row;
    if (!tree)
        return -1;
    json_array_foreach(json_object_get(tree, "hosts"), i,
                       row) if (add_host(model, row, err)) return -1;
    json_array_foreach(json_object_get(tree, "services"), i,
                       row) if (add_service(model, app, row, err)) return -1;
    json_array_foreach(json_object_get(tree, "replicas"), i,
                       row) if (add_replica(model, app, row, err)) return -1;
    json_array_foreach(json_object_get(tree, "latencies"), i, row) add_latency(model, row);
    model->taken_ms = simulated_int(tree, "now_ms", clock_wall_ms());
    double speed = other_speed(ctx, tree);
    if (speed > 0)
        inspection_note(in, "speed", 1,
                        "the cluster runs at speed %g, its source is configured with %g", speed,
                        ((struct simulated *)ctx)->speed);
    return 0;
}

/* What `remap check` shows; the same for all three inspections. */
static int check(void *ctx, const struct app_scope *app, struct source_report *out, struct err *err)
{
    AUTO_JSON json_t *tree = simulated_get(ctx, "/v1/cluster", err);
    size_t i, services = 0, replicas = 0;
    json_t *row;
    *out = (struct source_report){.newest_ms = -1};
    if (!tree)
        return -1;
    json_array_foreach(json_object_get(tree, "services"), i, row)
    {
        const char *name = simulated_text(row, "name"), *space = simulated_text(row, "namespace");
        services += name && space && simulated_in_scope(app, name, space);
    }
    json_array_foreach(json_object_get(tree, "replicas"), i, row)
    {
        const char *name = simulated_text(row, "service"),
                   *space = simulated_text(row, "namespace");
        replicas += name && space && simulated_in_scope(app, name, space);
    }
    out->reachable = true;
    out->newest_ms = simulated_int(tree, "now_ms", -1);
    snprintf(out->version, sizeof out->version, "%.60s",
             simulated_text(tree, "scenario") ? simulated_text(tree, "scenario") : "?");
    snprintf(out->seen, sizeof out->seen, "%zu hosts, %zu services, %zu instances",
             json_array_size(json_object_get(tree, "hosts")), services, replicas);
    double speed = other_speed(ctx, tree);
    size_t used = strlen(out->seen);
    if (speed > 0)
        snprintf(out->seen + used, sizeof out->seen - used,
                 "; runs at speed %g: set the option speed, which is %g", speed,
                 ((struct simulated *)ctx)->speed);
    return 0;
}

/* --- metrics --- */

static json_t *get_window(void *ctx, const char *path, const struct window *w, struct err *err)
{
    AUTO_FREE char *query =
        mem_printf("%s?from_ms=%lld&to_ms=%lld", path, (long long)w->from_ms, (long long)w->to_ms);
    return simulated_get(ctx, query, err);
}

static int metrics_measure(void *ctx, const struct app_scope *app, const struct window *window,
                           struct inspection *in, struct err *err)
{
    AUTO_JSON json_t *tree = get_window(ctx, "/v1/metrics", window, err);
    struct model *model = in->model;
    int64_t unmapped = 0;
    size_t i;
    json_t *row;
    if (!tree)
        return -1;
    json_array_foreach(json_object_get(tree, "hosts"), i, row)
    {
        const char *name = simulated_text(row, "name");
        int host = name ? model_host(model, name) : -1;
        if (host < 0)
            continue;
        model->hosts[host].cpu_used_millis = simulated_int(row, "cpu_used_millis", 0);
        model->hosts[host].mem_used_bytes = simulated_int(row, "mem_used_bytes", 0);
    }
    json_array_foreach(json_object_get(tree, "replicas"), i, row)
    {
        const char *name = simulated_text(row, "name"), *service = simulated_text(row, "service"),
                   *space = simulated_text(row, "namespace"), *on = simulated_text(row, "host");
        if (!name || !service || !space)
            return missing(err, "usage of a replica");
        int64_t cpu = simulated_int(row, "cpu_millis", 0), mem = simulated_int(row, "mem_bytes", 0);
        int instance = model_instance(model, name), host = on ? model_host(model, on) : -1;
        if (instance >= 0) {
            model->instances[instance].cpu_used_millis = cpu;
            model->instances[instance].mem_used_bytes = mem;
        } else if (!simulated_in_scope(app, service, space)) {
            if (host >= 0) {
                model->hosts[host].cpu_used_millis += cpu;
                model->hosts[host].mem_used_bytes += mem;
            }
        } else {
            unmapped++; /* born between the two inspections */
        }
    }
    if (unmapped)
        inspection_note(in, "unmapped", unmapped,
                        "replicas that started after the cluster was inspected");
    return 0;
}

/* --- messages --- */

static void unseen(struct model *model, const char *service)
{
    struct traffic *t = &model->traffic;
    for (size_t i = 0; i < t->n_unseen_services; i++)
        if (!strcmp(t->unseen_services[i], service))
            return;
    *ARRAY_PUSH(t->unseen_services, t->n_unseen_services) = mem_strdup(service);
}

/* The end of a row in the model: the instance if it is there, else (it ended) its service. */
static int end_of(const struct model *model, const char *instance, const char *service,
                  enum level *level)
{
    int index = instance ? model_instance(model, instance) : -1;
    *level = index >= 0 ? LEVEL_INSTANCE : LEVEL_SERVICE;
    return index >= 0 ? index : model_service(model, service);
}

/* Traffic with another app: known, but not of this document. */
static void add_unmapped(struct model *model, const char *service, int64_t count, int64_t bytes)
{
    struct traffic *t = &model->traffic;
    t->unmapped_count += count;
    if (bytes < 0 || t->unmapped_bytes < 0)
        t->unmapped_bytes = -1;
    else
        t->unmapped_bytes += bytes;
    unseen(model, service);
}

static int add_message(struct model *model, const json_t *row, struct err *err)
{
    const char *src = simulated_text(row, "src_service"), *dst = simulated_text(row, "dst_service");
    if (!src || !dst)
        return missing(err, "messages of a service");
    enum level src_level, dst_level;
    int a = end_of(model, simulated_text(row, "src"), src, &src_level);
    int b = end_of(model, simulated_text(row, "dst"), dst, &dst_level);
    int64_t count = simulated_int(row, "count", 0), bytes = simulated_int(row, "bytes", -1);
    if (a < 0 && b < 0)
        return 0; /* between other apps */
    if (a < 0 || b < 0) {
        add_unmapped(model, a < 0 ? src : dst, count, bytes);
        return 0;
    }
    enum level level =
        src_level == LEVEL_INSTANCE && dst_level == LEVEL_INSTANCE ? LEVEL_INSTANCE : LEVEL_SERVICE;
    if (level == LEVEL_SERVICE) {
        a = model_service(model, src);
        b = model_service(model, dst);
    }
    const json_t *mean = json_object_get(row, "mean_ms");
    *ARRAY_PUSH(model->messages, model->n_messages) = (struct message){
        level, a, b, count, bytes, json_is_number(mean) ? json_number_value(mean) : -1};
    return 0;
}

static int messages_trace(void *ctx, const struct app_scope *app, const struct window *window,
                          struct inspection *in, struct err *err)
{
    (void)app; /* the services of the model are the app's */
    AUTO_JSON json_t *tree = get_window(ctx, "/v1/messages", window, err);
    struct model *model = in->model;
    size_t i;
    json_t *row;
    if (!tree)
        return -1;
    model->has_messages = true;
    model->traffic.given = true;
    json_array_foreach(json_object_get(tree, "messages"), i,
                       row) if (add_message(model, row, err)) return -1;
    if (model->traffic.unmapped_count)
        inspection_note(in, "unmapped", model->traffic.unmapped_count,
                        "calls between this app and others");
    return 0;
}

const struct cluster_adapter simulated_cluster = {
    .name = "simulated",
    .summary = "the embedded cluster of remap-simulated: hosts, services, instances, latencies",
    .options = simulated_options,
    .open = simulated_open,
    .inspect = cluster_inspect,
    .check = check,
    .close = simulated_close,
};

const struct metrics_adapter simulated_metrics = {
    .name = "simulated",
    .summary = "mean usage in the embedded cluster",
    .options = simulated_options,
    .open = simulated_open,
    .measure = metrics_measure,
    .check = check,
    .close = simulated_close,
};

const struct message_adapter simulated_messages = {
    .name = "simulated",
    .summary = "calls between the instances of the embedded cluster",
    .options = simulated_options,
    .open = simulated_open,
    .trace = messages_trace,
    .check = check,
    .close = simulated_close,
};
