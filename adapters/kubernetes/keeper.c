/* keeper.c - see keeper.h. The lease has a connection of its own with short time-outs, so that a
 * slow answer elsewhere does not cost it; a turn is one PUT and one GET as long as all is well. */
#include "adapters/kubernetes/keeper.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/http/source_http.h"
#include "adapters/kubernetes/event.h"
#include "adapters/kubernetes/kube.h"
#include "adapters/kubernetes/lease.h"
#include "adapters/kubernetes/marks.h"
#include "adapters/kubernetes/replica.h"
#include "model/base/clock.h"

/* Without a lease the ConfigMap is still looked at; a person waits no longer than this for it. */
#define LOOK_MS 2000
/* So many Events are posted together. */
#define EVENTS 16
/* Moves under way at the same time; where there are more, the oldest is looked for again. */
#define KNOWN 64

struct known {
    char *service;
    json_t *workload;
};

struct kube_keeper {
    char *name; /* of the source, for messages */
    struct kube_api *lease_api, *api, *event_api;
    struct lease *lease;                                   /* NULL: none is wanted */
    char *identity, *lease_name, *pause_name, *pause_path; /* pause_*: NULL: not looked for */
    bool events, paused;
    struct announcement said[EVENTS]; /* to be posted; texts owned */
    json_t *about[EVENTS];            /* their workloads; NULL: to be looked for */
    size_t n_said;
    struct known known[KNOWN];
    size_t next_known;
    bool posting; /* a turn may come while answers are waited for */
    char lease_trouble[160], pause_trouble[160];
    struct wishes *wishes; /* NULL: moves whole services */
    char *listen, *cert_file, *key_file;
};

/* --- Events --- */

static char *text_of(const char *text)
{
    return text ? mem_strdup(text) : NULL;
}

static void said_wipe(struct announcement *said)
{
    free((char *)said->service);
    free((char *)said->instance);
    free((char *)said->target);
    free((char *)said->state);
    free((char *)said->reason);
}

void kube_keeper_knows(void *keeper, const char *service, const json_t *workload)
{
    struct kube_keeper *k = keeper;
    const json_t *meta = kube_get(workload, "metadata");
    const char *kind = kube_text(workload, "kind"), *name = kube_text(meta, "name");
    const char *space = kube_text(meta, "namespace"), *uid = kube_text(meta, "uid");
    if (!k->events || !kind || !name || !space || !uid)
        return;
    struct known *known = &k->known[k->next_known];
    k->next_known = (k->next_known + 1) % KNOWN;
    free(known->service);
    json_decref(known->workload);
    known->service = mem_strdup(service);
    known->workload = json_pack("{s:s,s:{s:s,s:s,s:s}}", "kind", kind, "metadata", "name", name,
                                "namespace", space, "uid", uid);
}

/* What was said of the service last, or NULL. New reference. */
static json_t *known_of(const struct kube_keeper *k, const char *service)
{
    for (size_t i = 1; i <= KNOWN; i++) {
        const struct known *known = &k->known[(k->next_known + KNOWN - i) % KNOWN];
        if (known->service && strcmp(known->service, service) == 0)
            return json_incref(known->workload);
    }
    return NULL;
}

/* Posts what was said; what is on its way goes on beside all else. */
static void post_said(struct kube_keeper *k)
{
    struct announcement said[EVENTS];
    json_t *about[EVENTS];
    struct err ignored = ERR_INIT;
    if (k->posting)
        return;
    kube_api_posts_turn(k->event_api, false);
    if (k->n_said == 0)
        return;
    size_t n = k->n_said;
    memcpy(said, k->said, n * sizeof *said);
    memcpy(about, k->about, n * sizeof(json_t *));
    k->n_said = 0;
    k->posting = true;
    if (kube_keeper_may_write(k, &ignored) == 0)
        event_post_all(k->event_api, said, about, n, k->identity);
    k->posting = false;
    for (size_t i = 0; i < n; i++) {
        said_wipe(&said[i]);
        json_decref(about[i]);
    }
}

static void keeper_flush(void *ctx)
{
    struct kube_keeper *k = ctx;
    post_said(k);
    if (k->posting)
        return;
    k->posting = true;
    kube_api_posts_turn(k->event_api, true);
    k->posting = false;
}

static void keeper_announce(void *ctx, const struct announcement *what)
{
    struct kube_keeper *k = ctx;
    if (!k->events || k->n_said == EVENTS) /* full: only while others are being posted */
        return;
    k->about[k->n_said] = known_of(k, what->service);
    k->said[k->n_said++] = (struct announcement){.cycle = what->cycle,
                                                 .seq = what->seq,
                                                 .service = text_of(what->service),
                                                 .instance = text_of(what->instance),
                                                 .target = text_of(what->target),
                                                 .state = text_of(what->state),
                                                 .reason = text_of(what->reason),
                                                 .bad = what->bad};
    post_said(k);
}

static void keeper_close(void *ctx)
{
    struct kube_keeper *k = ctx;
    if (!k)
        return;
    keeper_flush(k);
    for (size_t i = 0; i < KNOWN; i++) {
        free(k->known[i].service);
        json_decref(k->known[i].workload);
    }
    if (k->lease)
        lease_release(k->lease);
    lease_free(k->lease);
    kube_api_close(k->lease_api);
    kube_api_close(k->api);
    kube_api_close(k->event_api);
    wishes_free(k->wishes);
    free(k->name);
    free(k->identity);
    free(k->lease_name);
    free(k->pause_name);
    free(k->pause_path);
    free(k->listen);
    free(k->cert_file);
    free(k->key_file);
    free(k);
}

/* A connection that gives up after `timeout_ms`, whatever the source says, and tries once. */
static int open_quick(const struct source *source, int64_t timeout_ms, struct kube_api **out,
                      struct err *err)
{
    char limit[32];
    struct source quick = *source;
    AUTO_FREE struct option *options = mem_array(source->n_options + 2, sizeof *options);
    snprintf(limit, sizeof limit, "%" PRId64 "ms", timeout_ms);
    quick.n_options = 0;
    for (size_t i = 0; i < source->n_options; i++)
        if (strcmp(source->options[i].name, "timeout") != 0 &&
            strcmp(source->options[i].name, "attempts") != 0)
            options[quick.n_options++] = source->options[i];
    options[quick.n_options++] = (struct option){"timeout", limit};
    options[quick.n_options++] = (struct option){"attempts", "1"};
    quick.options = options;
    return kube_api_open(&quick, out, err);
}

static bool wanted(const char *name)
{
    return strcmp(name, "none") != 0;
}

/* client-go's proportions: 15 s, 10 s, 2 s. */
static int open_lease(struct kube_keeper *k, const struct source *source, struct err *err)
{
    const char *name = source_option(source, "lease", "remap");
    const char *pause = source_option(source, "pause", "remap-pause");
    int64_t duration;
    if (source_duration(source, "lease_duration", "15s", &duration, err))
        return -1;
    if (duration < 1000)
        return err_set(err, ERR_CONFIG, "%s: lease_duration is below 1s", source->name);
    if (open_quick(source, duration / 5, &k->lease_api, err))
        return -1;
    const char *space = source_option(source, "lease_namespace", kube_api_space(k->lease_api));
    const struct lease_options options = {.space = space,
                                          .name = name,
                                          .identity = k->identity,
                                          .duration_ms = duration,
                                          .renew_ms = duration * 2 / 3,
                                          .retry_ms = duration * 2 / 15};
    if (wanted(name)) {
        k->lease = lease_new(k->lease_api, &options);
        k->lease_name = mem_printf("lease %s/%s", space, name);
    }
    if (wanted(pause)) {
        k->pause_path = kube_api_path("v1", space, "configmaps", pause);
        k->pause_name = mem_printf("configmap %s/%s", space, pause);
    }
    return 0;
}

static int keeper_open(const struct source *source, int64_t pid, void **ctx, struct err *err)
{
    struct kube_keeper *k = mem_alloc(sizeof *k);
    k->name = mem_strdup(source->name);
    k->identity = lease_identity(pid);
    k->events = strcmp(source_option(source, "events", "true"), "false") != 0;
    if (open_lease(k, source, err) || open_quick(source, 5000, &k->api, err) ||
        open_quick(source, 5000, &k->event_api, err)) {
        keeper_close(k);
        return -1;
    }
    *ctx = k;
    return 0;
}

static int keeper_open_replica(const struct source *source, int64_t pid, void **ctx,
                               struct err *err)
{
    if (keeper_open(source, pid, ctx, err))
        return -1;
    struct kube_keeper *k = *ctx;
    k->wishes = wishes_new();
    k->listen = mem_strdup(source_option(source, "listen", REPLICA_LISTEN));
    k->cert_file = mem_strdup(source_option(source, "tls_cert_file", REPLICA_CERT_FILE));
    k->key_file = mem_strdup(source_option(source, "tls_key_file", REPLICA_KEY_FILE));
    return 0;
}

/* --- lease and pause --- */

static void look_for_pause(struct kube_keeper *k)
{
    struct err err = ERR_INIT;
    int rc = kube_api_get(k->lease_api, k->pause_path, NULL, NULL, &err);
    k->pause_trouble[0] = '\0';
    if (rc == 0)
        k->paused = true;
    else if (err.kind == ERR_NOT_FOUND)
        k->paused = false;
    else if (err.kind == ERR_REFUSED) /* it cannot be used here; that is said and no more */
        snprintf(k->pause_trouble, sizeof k->pause_trouble, "%s cannot be read: %.100s",
                 k->pause_name, err.text);
    /* else: as it was */
}

static void tell(const struct kube_keeper *k, struct keeper_state *out)
{
    if (!k->lease)
        snprintf(out->text, sizeof out->text, "no lease");
    else if (out->leads)
        snprintf(out->text, sizeof out->text, "%s is ours", k->lease_name);
    else if (k->lease_trouble[0])
        snprintf(out->text, sizeof out->text, "%s", k->lease_trouble);
    else
        snprintf(out->text, sizeof out->text, "%s is held by %.100s", k->lease_name,
                 lease_holder(k->lease));
    size_t n = strlen(out->text);
    if (k->paused) {
        snprintf(out->paused_by, sizeof out->paused_by, "%s", k->pause_name);
        snprintf(out->text + n, sizeof out->text - n, "; paused by %s", k->pause_name);
    }
    if (!k->paused && k->pause_trouble[0])
        snprintf(out->text + n, sizeof out->text - n, "; %s", k->pause_trouble);
}

static int64_t keeper_turn(void *ctx, struct keeper_state *out)
{
    struct kube_keeper *k = ctx;
    struct err err = ERR_INIT;
    int64_t pause_ms = LOOK_MS;
    *out = (struct keeper_state){.leads = !k->lease};
    if (k->lease) {
        out->patience_ms = lease_patience_ms(k->lease);
        bool unknown = lease_turn(k->lease, clock_mono_ms(), &err) < 0;
        snprintf(k->lease_trouble, sizeof k->lease_trouble, "%s%.120s", unknown ? "lease: " : "",
                 unknown ? err.text : "");
        out->leads = lease_held(k->lease, clock_mono_ms());
        pause_ms = lease_pause_ms(k->lease, (uint64_t)clock_mono_ms());
    }
    if (k->pause_path)
        look_for_pause(k);
    post_said(k);
    out->paused = k->paused;
    tell(k, out);
    return pause_ms;
}

int kube_keeper_may_write(void *ctx, struct err *err)
{
    struct kube_keeper *k = ctx;
    if (!k->lease || lease_held(k->lease, clock_mono_ms()))
        return 0;
    const char *holder = lease_holder(k->lease);
    return err_set(err, ERR_UNREACHABLE, "%s is not ours: %s%s", k->lease_name,
                   k->lease_trouble[0] ? k->lease_trouble
                   : *holder           ? "held by "
                                       : "not taken yet",
                   k->lease_trouble[0] ? "" : holder);
}

struct wishes *kube_keeper_wishes(struct kube_keeper *keeper)
{
    return keeper->wishes;
}

static int keeper_marks(void *ctx, const struct app_scope *app,
                        void (*each)(void *arg, const struct keeper_mark *mark), void *arg,
                        struct err *err)
{
    struct kube_keeper *k = ctx;
    return kube_marks(k->api, app, each, arg, err);
}

/* --- the webhook --- */

static bool replica_address(void *ctx, struct keeper_address *out)
{
    const struct kube_keeper *k = ctx;
    *out = (struct keeper_address){k->listen, k->cert_file, k->key_file};
    return wanted(k->listen);
}

static unsigned replica_answer(void *ctx, const char *path, const char *body, size_t size,
                               struct buf *out)
{
    struct kube_keeper *k = ctx;
    if (strcmp(path, ADMISSION_PATH) != 0) {
        buf_puts(out, "{\"error\":\"there is only " ADMISSION_PATH "\"}\n");
        return 404;
    }
    return admission_answer(k->wishes, body, size, clock_mono_ms(), out);
}

const struct keeper kubernetes_keeper = {
    .open = keeper_open,
    .turn = keeper_turn,
    .may_write = kube_keeper_may_write,
    .marks = keeper_marks,
    .announce = keeper_announce,
    .flush = keeper_flush,
    .close = keeper_close,
};

const struct keeper kubernetes_replica_keeper = {
    .open = keeper_open_replica,
    .turn = keeper_turn,
    .may_write = kube_keeper_may_write,
    .announce = keeper_announce,
    .flush = keeper_flush,
    .address = replica_address,
    .answer = replica_answer,
    .close = keeper_close,
};
