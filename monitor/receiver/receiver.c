/* receiver.c - listeners for spans: opening, changing, closing (receiver.h). */
#include "monitor/receiver/receiver.h"

#include <stdlib.h>
#include <string.h>

#include "model/base/clock.h"
#include "model/base/log.h"
#include "monitor/listen.h"
#include "monitor/receiver/post.h"

/* Every pod may be a sender with a connection of its own; each has 16 KB for its headers, and all
 * their bodies together are limited (post.h). More wait in the kernel. */
#define CONNECTION_LIMIT 200
#define CONNECTION_MEMORY (16 * 1024)
#define CONNECTION_IDLE_S 10
#define CONNECTION_MAX_MS 30000
#define OPEN_AGAIN_MS 5000 /* another process may still hold the address */
#define TICK_MS 1000
#define MAX_RECEIVERS 1000 /* as many as sources */
#define EVENT_KIND "receiver"

static const struct json_limits limits = {16 << 20, 8, 0}; /* as the webhooks' part */

struct open_receiver {
    struct stage *stage;
    char *name; /* as in the settings, which change */
    struct receiver receiver;
    struct listener *listener; /* NULL: not (yet) open */
    struct listen_tls tls;
    struct listen_said said;
    struct otlp_totals told; /* to the manager */
    int64_t open_timer, tick_timer;
};

struct receivers {
    struct stage *stage;
    struct open_receiver **list;
    size_t n;
    bool in_use; /* by a request */
    struct open_receiver **retired; /* meanwhile; freed after it */
    size_t n_retired;
};

/* --- one --- */

static int listen_now(struct open_receiver *open, struct err *err)
{
    const struct otlp_settings *s = &open->receiver.settings;
    if (listen_tls_read(s->tls_cert_file, s->tls_key_file, s->client_ca_file, &open->tls, err))
        return -1;
    const struct listener_options options = {.address = s->listen,
                                             .max_connections = CONNECTION_LIMIT,
                                             .memory_bytes = CONNECTION_MEMORY,
                                             .idle_s = CONNECTION_IDLE_S,
                                             .max_ms = CONNECTION_MAX_MS,
                                             .tls_cert = open->tls.cert,
                                             .tls_key = open->tls.key,
                                             .tls_ca = open->tls.ca,
                                             .request = post_request,
                                             .done = post_done,
                                             .ctx = &open->receiver};
    return listener_open(stage_loop(open->stage), &options, &open->listener, err);
}

static void stop_listening(struct open_receiver *open)
{
    loop_timer_cancel(stage_loop(open->stage), open->open_timer);
    open->open_timer = 0;
    listener_free(open->listener);
    open->listener = NULL;
    listen_tls_wipe(&open->tls);
}

static void on_open(void *ctx)
{
    struct open_receiver *open = ctx;
    struct err err = ERR_INIT;
    stop_listening(open);
    if (listen_now(open, &err) == 0) {
        listen_say(open->stage, &open->said, EVENT_KIND, "");
        log_info("receiver source=%s listen=%s port=%d tls=%s", open->receiver.settings.name,
                 open->receiver.settings.listen, listener_port(open->listener),
                 open->tls.cert ? "yes" : "no");
        return;
    }
    err_prefix(&err, "%s: spans are not received", open->receiver.settings.name);
    log_error("%s", err.text);
    listen_say(open->stage, &open->said, EVENT_KIND, err.text);
    open->open_timer = loop_timer(stage_loop(open->stage), OPEN_AGAIN_MS, on_open, open);
}

static bool same_counters(const struct otlp_totals *a, const struct otlp_totals *b)
{
    return a->requests == b->requests && a->spans == b->spans && a->refused == b->refused &&
           a->rejected == b->rejected && a->early == b->early && a->stale == b->stale &&
           a->waiting == b->waiting;
}

/* What it counts becomes series of the manager's /metrics. */
static void tell_counters(struct open_receiver *open)
{
    const struct otlp_totals t = otlp_store_totals(open->receiver.store);
    AUTO_BUF struct buf body = BUF_INIT;
    if (same_counters(&t, &open->told))
        return;
    open->told = t;
    buf_puts(&body, "{\"v\":1,\"source\":");
    json_put_text(&body, open->name);
    buf_printf(&body,
               ",\"requests\":%lld,\"spans\":%lld,\"refused\":%lld,\"rejected\":%lld,\"early\":%lld,"
               "\"stale\":%lld,\"waiting\":%zu}",
               (long long)t.requests, (long long)t.spans, (long long)t.refused,
               (long long)t.rejected, (long long)t.early, (long long)t.stale, t.waiting);
    stage_counters(open->stage, body.data, body.size);
}

static void on_tick(void *ctx)
{
    struct open_receiver *open = ctx;
    otlp_store_tick(open->receiver.store, clock_wall_ms());
    tell_counters(open);
    open->tick_timer = loop_timer(stage_loop(open->stage), TICK_MS, on_tick, open);
}

static void open_free(struct open_receiver *open)
{
    if (!open)
        return;
    stop_listening(open);
    loop_timer_cancel(stage_loop(open->stage), open->tick_timer);
    otlp_store_free(open->receiver.store);
    otlp_settings_wipe(&open->receiver.settings);
    free(open->name);
    free(open);
}

static struct open_receiver *open_new(struct stage *stage, const char *name, int64_t keep_ms)
{
    struct open_receiver *open = mem_alloc(sizeof *open);
    open->stage = stage;
    open->name = mem_strdup(name);
    open->receiver.store = otlp_store_new(OTLP_MAX_WAITING, keep_ms, clock_wall_ms());
    on_tick(open);
    return open;
}

/* --- all --- */

struct receivers *receivers_new(struct stage *stage)
{
    struct receivers *receivers = mem_alloc(sizeof *receivers);
    receivers->stage = stage;
    return receivers;
}

static void list_free(struct open_receiver **list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        open_free(list[i]);
    free(list);
}

void receivers_free(struct receivers *receivers)
{
    if (!receivers)
        return;
    list_free(receivers->list, receivers->n);
    list_free(receivers->retired, receivers->n_retired);
    free(receivers);
}

/* The one that has this name, taken out of the old list. */
static struct open_receiver *take_old(struct open_receiver **old, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (old[i] && strcmp(old[i]->name, name) == 0)
            return steal(old[i]);
    return NULL;
}

static int configure_one(struct receivers *receivers, const struct jval *v,
                         struct open_receiver **old, size_t n_old, struct err *err)
{
    static const char *const keys[] = {"source", "keep_ms", NULL};
    struct jval source_v = jval_get(v, "source"), keep_v = jval_get(v, "keep_ms");
    struct source source = {.name = NULL};
    struct otlp_settings settings;
    int64_t keep_ms;
    int rc = jval_object(v, keys, err) || jval_int(&keep_v, 1, MODEL_MAX_NUMBER, &keep_ms, err) ||
                     collect_source(&source_v, &source, err) ||
                     otlp_settings_read(&source, &settings, err)
                 ? -1
                 : 0;
    free((void *)(uintptr_t)source.options);
    if (rc)
        return -1;
    struct open_receiver *open = take_old(old, n_old, settings.name);
    if (!open)
        open = open_new(receivers->stage, settings.name, keep_ms);
    otlp_store_keep(open->receiver.store, keep_ms);
    stop_listening(open);
    otlp_settings_wipe(&open->receiver.settings);
    open->receiver.settings = settings;
    *ARRAY_PUSH(receivers->list, receivers->n) = open;
    return 0;
}

static void configure_all(struct receivers *receivers, const struct jval *list, size_t n,
                          struct open_receiver **old, size_t n_old)
{
    for (size_t i = 0; i < n; i++) {
        struct jval v = jval_at(list, i);
        struct err err = ERR_INIT;
        struct listen_said said = {""};
        if (configure_one(receivers, &v, old, n_old, &err) == 0)
            continue;
        log_error("receiver: %s", err.text);
        listen_say(receivers->stage, &said, EVENT_KIND, err.text);
    }
}

static void retire(struct receivers *receivers, struct open_receiver **old, size_t n)
{
    for (size_t i = 0; i < n && receivers->in_use; i++) {
        if (!old[i])
            continue;
        stop_listening(old[i]);
        *ARRAY_PUSH(receivers->retired, receivers->n_retired) = steal(old[i]);
    }
    list_free(old, n);
}

void receivers_configure(struct receivers *receivers, const char *body, size_t size)
{
    struct err err = ERR_INIT;
    AUTO_JSON json_t *tree = json_parse(body, size, &limits, &err);
    struct jval root = jval_root(tree), list = jval_get(&root, "receivers");
    size_t n = 0;
    if (!tree || (!jval_absent(&list) && jval_array(&list, MAX_RECEIVERS, &n, &err))) {
        log_error("configure: %s", err.text); /* our own manager wrote it */
        return;
    }
    struct open_receiver **old = steal(receivers->list);
    size_t n_old = receivers->n;
    receivers->n = 0;
    configure_all(receivers, &list, n, old, n_old);
    retire(receivers, old, n_old); /* before the new ones bind: an address may change hands */
    for (size_t i = 0; i < receivers->n; i++)
        on_open(receivers->list[i]);
}

void receivers_attach(struct receivers *receivers, struct collect *collect)
{
    receivers->in_use = true;
    for (size_t i = 0; i < receivers->n; i++)
        *ARRAY_PUSH(collect->received, collect->n_received) = (struct received){
            receivers->list[i]->name, receivers->list[i]->receiver.store};
}

void receivers_release(struct receivers *receivers)
{
    receivers->in_use = false;
    list_free(steal(receivers->retired), receivers->n_retired);
    receivers->n_retired = 0;
}
