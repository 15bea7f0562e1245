/* feeds.c - one list and one watch per kind, and per namespace where that is all we may read (feeds.h;
 * kubernetes/client-go:tools/cache/reflector.go). */
#include "adapters/kubernetes/feeds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/http/follow.h"
#include "adapters/kubernetes/api_connect.h"
#include "adapters/kubernetes/items.h"
#include "adapters/kubernetes/kube.h"
#include "adapters/kubernetes/watch.h"
#include "model/base/clock.h"
#include "model/base/mem.h"

/* The server ends a watch after so long; ours ends it when even that does not come. client-go: 5 to 10
 * min. */
#define WATCH_S 300
#define WATCH_MAX_MS ((WATCH_S + 30) * 1000)
#define LINE_MAX_BYTES ((size_t)16 << 20) /* etcd takes objects of 1.5 MiB */
/* Nothing more for so long: the watches have told everything. Events reach a watch within some ms. */
#define SILENCE_MS 40
/* Who has read them a moment ago, as the executor does all along, has but the last of that to wait for. */
#define FOLLOWED_MS 100
#define FOLLOWED_SILENCE_MS 10
#define UPDATE_MAX_MS 5000 /* where it never falls silent, or no answer comes */
#define LIST_MAX_MS 120000 /* 10^5 pods, 400 MB, at 4 MB/s; one that stalls ends by its `timeout` */
#define TURN_MS 20         /* webhooks are answered in between (http_idle) */
#define AGAIN_MS (INT64_C(10) * 60 * 1000) /* what was refused may be granted later */

struct source_kind {
    const char *kind, *group, *plural, *query;
    bool needed; /* no inspection without */
    bool owners; /* who has set which field is looked at (owners.h) */
    const char *lost; /* what is not seen without it */
};

static const struct source_kind source_kinds[] = {
    {"Node", "v1", "nodes", "", true, false, NULL},
    /* Pods that have ended hold nothing. */
    {"Pod", "v1", "pods", "?fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed",
     true, false, NULL},
    {"Deployment", "apps/v1", "deployments", "", false, true, "no Deployment can be moved"},
    {"ReplicaSet", "apps/v1", "replicasets", "", false, false, "no pod is known to be of a Deployment"},
    {"StatefulSet", "apps/v1", "statefulsets", "", false, true, "no StatefulSet can be moved"},
    {"DaemonSet", "apps/v1", "daemonsets", "", false, false, NULL},
    {"PersistentVolumeClaim", "v1", "persistentvolumeclaims", "", false, false,
     "pods may be sent where their volumes cannot follow"},
    {"PersistentVolume", "v1", "persistentvolumes", "", false, false,
     "pods may be sent where their volumes cannot follow"},
    {"PodDisruptionBudget", "policy/v1", "poddisruptionbudgets", "", false, false,
     "disruption budgets are found out only when a move is refused"},
    {"HorizontalPodAutoscaler", "autoscaling/v2", "horizontalpodautoscalers", "", false, false,
     "moves may meet a scaling in progress"},
    {"ResourceQuota", "v1", "resourcequotas", "", false, false,
     "quotas are found out only when a move is refused"},
    {"LimitRange", "v1", "limitranges", "", false, false, NULL},
    {"Rollout", "argoproj.io/v1alpha1", "rollouts", "", false, false, NULL},
};

enum feed_state { FEED_NEW, FEED_LISTED, FEED_REFUSED, FEED_ABSENT };

struct feed {
    const struct source_kind *kind;
    char *space; /* NULL: all */
    enum feed_state state;
    char *version; /* of the newest that was taken in */
    struct follow_line *watch;  /* NULL: none is open */
    struct follow_line *listing; /* the first list, under way; NULL: none */
    struct kube_items *items;    /* of that */
    int64_t asked_ms, broken_ms; /* monotonic: last list; last failure of a watch, -1 none */
    bool renew;                 /* the credentials were refused */
    struct feeds *feeds;
};

struct feeds {
    struct kube_api *api;
    struct kube_objects *objects;
    struct feed **list;
    size_t n;
    struct follow *follow;
    int64_t turned_ms; /* monotonic: when they were read last without waiting; -1: never */
    struct feeds_count count;
};

static struct feed *feed_add(struct feeds *feeds, const struct source_kind *kind,
                             const char *space)
{
    struct feed *feed = mem_alloc(sizeof *feed);
    *feed = (struct feed){
        .kind = kind, .space = mem_strdup(space), .broken_ms = -1, .feeds = feeds};
    *ARRAY_PUSH(feeds->list, feeds->n) = feed;
    return feed;
}

struct feeds *feeds_new(struct kube_api *api, struct kube_objects *objects)
{
    struct feeds *feeds = mem_alloc(sizeof *feeds);
    feeds->api = api;
    feeds->objects = objects;
    feeds->turned_ms = -1;
    for (size_t k = 0; k < ARRAY_LEN(source_kinds); k++)
        feed_add(feeds, &source_kinds[k], NULL);
    feeds->follow = follow_new();
    return feeds;
}

void feeds_free(struct feeds *feeds)
{
    if (!feeds)
        return;
    follow_free(feeds->follow);
    for (size_t i = 0; i < feeds->n; i++) {
        kube_items_free(feeds->list[i]->items);
        free(feeds->list[i]->space);
        free(feeds->list[i]->version);
        free(feeds->list[i]);
    }
    free(feeds->list);
    free(feeds);
}

struct feeds_count feeds_count(const struct feeds *feeds)
{
    return feeds->count;
}

/* --- lists --- */

struct listing {
    struct feeds *feeds;
    const struct feed *feed;
};

static int take_page(void *ctx, const json_t *list, bool again, struct err *err)
{
    struct listing *listing = ctx;
    struct kube_objects *objects = listing->feeds->objects;
    const char *kind = listing->feed->kind->kind;
    const json_t *items = kube_get(list, "items");
    size_t i;
    const json_t *item;
    if (items && !json_is_array(items))
        return err_set(err, ERR_INPUT, "%s: items must be an array", listing->feed->kind->plural);
    if (again)
        kube_objects_renew(objects, kind, !listing->feed->version);
    json_array_foreach(items, i, item)
        kube_objects_put(objects, kind, item);
    return 0;
}

static int feed_list(struct feeds *feeds, struct feed *feed, struct kube_status *status,
                     struct err *err)
{
    struct listing listing = {feeds, feed};
    AUTO_FREE char *path = kube_api_path(feed->kind->group, feed->space, feed->kind->plural, NULL);
    AUTO_FREE char *full = mem_printf("%s%s", path, feed->kind->query);
    char *version = NULL;
    if (kube_api_list(feeds->api, full, take_page, &listing, &version, status, err)) {
        free(version);
        return -1;
    }
    kube_objects_sweep(feeds->objects, feed->kind->kind, feed->space);
    free(feed->version);
    feed->version = version;
    feed->state = FEED_LISTED;
    feeds->count.lists++;
    return 0;
}

/* In all namespaces it is forbidden; in ours it may be allowed. */
static void feed_split(struct feeds *feeds, const struct source_kind *kind,
                       const char *const *spaces)
{
    for (; spaces && *spaces; spaces++) {
        bool there = false;
        for (size_t i = 0; i < feeds->n && !there; i++)
            there = feeds->list[i]->kind == kind && feeds->list[i]->space &&
                    strcmp(feeds->list[i]->space, *spaces) == 0;
        if (!there)
            feed_add(feeds, kind, *spaces);
    }
}

static int feed_relist(struct feeds *feeds, struct feed *feed, struct err *err)
{
    struct kube_status status;
    struct err failure = ERR_INIT;
    follow_close(feeds->follow, feed->watch);
    feed->watch = NULL;
    feed->asked_ms = clock_mono_ms();
    if (!feed_list(feeds, feed, &status, &failure))
        return 0;
    if (status.code == 403 && (!feed->kind->needed || !feed->space)) {
        feed->state = FEED_REFUSED;
    } else if (status.code == 404 && !feed->kind->needed) {
        feed->state = FEED_ABSENT;
    } else {
        *err = failure;
        return -1;
    }
    kube_objects_renew(feeds->objects, feed->kind->kind, true);
    kube_objects_sweep(feeds->objects, feed->kind->kind, feed->space);
    return 0;
}

/* --- the first lists, side by side --- */

static void on_item(void *ctx, const json_t *item)
{
    const struct feed *feed = ctx;
    kube_objects_put(feed->feeds->objects, feed->kind->kind, item);
}

static int on_piece(void *ctx, const char *text, size_t size)
{
    struct feed *feed = ctx;
    struct err ignored = ERR_INIT; /* it is listed once more, page by page */
    return kube_items_feed(feed->items, text, size, &ignored);
}

/* What did not go well leaves the feed as new: feed_relist() meets the trouble again, and knows. */
static void on_listed(void *ctx, long status, const char *body, size_t size, const struct err *err)
{
    struct feed *feed = ctx;
    struct err ignored = ERR_INIT;
    const json_t *head = NULL;
    (void)body;
    (void)size;
    (void)status;
    feed->listing = NULL;
    bool all = err->kind == ERR_NONE && kube_items_end(feed->items, &head, &ignored) == 0 &&
               kube_api_listed(head, feed->kind->plural, &ignored) == 0;
    const json_t *meta = kube_get(head, "metadata");
    const char *version = kube_text(meta, "resourceVersion"), *more = kube_text(meta, "continue");
    if (all && version && !(more && more[0])) {
        kube_objects_sweep(feed->feeds->objects, feed->kind->kind, feed->space);
        feed->version = mem_strdup(version);
        feed->state = FEED_LISTED;
        feed->feeds->count.lists++;
    }
    kube_items_free(feed->items);
    feed->items = NULL;
}

/* As client-go's reflector: version 0 is what the API server has in memory, at once and whole, maybe a
 * moment old; the watch from there on tells the rest. */
static int list_open(struct feeds *feeds, struct feed *feed, int64_t *timeout_ms, struct err *err)
{
    static const struct follow_calls calls = {.piece = on_piece, .ended = on_listed};
    const struct source_kind *kind = feed->kind;
    struct http *http;
    if (kube_api_connect(feeds->api, false, &http, err))
        return -1;
    AUTO_FREE char *path = kube_api_path(kind->group, feed->space, kind->plural, NULL);
    AUTO_FREE char *full = mem_printf("%s%s%cresourceVersion=0", path, kind->query,
                                      kind->query[0] ? '&' : '?');
    *timeout_ms = http_timeout_ms(http);
    feed->asked_ms = clock_mono_ms();
    feed->items = kube_items_new(kind->owners, on_item, feed);
    kube_objects_renew(feeds->objects, kind->kind, true);
    feed->listing = follow_open(feeds->follow, http, full, 0, LIST_MAX_MS, &calls, feed, err);
    if (feed->listing)
        return 0;
    kube_items_free(feed->items);
    feed->items = NULL;
    return -1;
}

static bool any_listing(const struct feeds *feeds)
{
    for (size_t i = 0; i < feeds->n; i++)
        if (feeds->list[i]->listing)
            return true;
    return false;
}

/* Lists everything that was never listed, at the same time: the server works on one kind while another
 * arrives. What fails is left to those that ask one by one. */
static void list_abreast(struct feeds *feeds)
{
    struct err ignored = ERR_INIT;
    int64_t seen = clock_mono_ms(), timeout_ms = 0;
    for (size_t i = 0; i < feeds->n; i++)
        if (feeds->list[i]->state == FEED_NEW && !feeds->list[i]->version &&
            list_open(feeds, feeds->list[i], &timeout_ms, &ignored))
            break;
    while (any_listing(feeds) && clock_mono_ms() - seen < timeout_ms) {
        if (follow_turn(feeds->follow, TURN_MS))
            seen = clock_mono_ms();
        http_idle_now();
    }
    for (size_t i = 0; i < feeds->n; i++) {
        follow_close(feeds->follow, feeds->list[i]->listing);
        feeds->list[i]->listing = NULL;
        kube_items_free(feeds->list[i]->items);
        feeds->list[i]->items = NULL;
    }
}

/* --- watches --- */

static int on_line(void *ctx, const char *text, size_t size)
{
    struct feed *feed = ctx;
    struct watch_event event;
    struct err ignored = ERR_INIT; /* the next list will tell */
    feed->feeds->count.lines++;
    if (watch_decode(text, size, &event, &ignored))
        return -1;
    if (event.kind == WATCH_ERROR) {
        if (event.code == 410)
            feed->state = FEED_NEW;
        watch_wipe(&event);
        return -1;
    }
    const char *kind = feed->kind->kind;
    if (event.kind == WATCH_PUT)
        kube_objects_put(feed->feeds->objects, kind, event.object);
    else if (event.kind == WATCH_GONE)
        kube_objects_remove(feed->feeds->objects, kind, event.object);
    free(feed->version);
    feed->version = mem_strdup(event.version);
    watch_wipe(&event);
    return 0;
}

static void on_ended(void *ctx, long status, const char *body, size_t size, const struct err *err)
{
    struct feed *feed = ctx;
    (void)body;
    (void)size;
    feed->watch = NULL;
    feed->renew = status == 401;
    if (status == 410)
        feed->state = FEED_NEW;
    feed->broken_ms = err->kind == ERR_NONE ? -1 : clock_mono_ms();
    /* A line that is none of a watch: what it meant is in the list. */
    if (err->kind == ERR_INPUT || err->kind == ERR_TOO_LARGE)
        feed->state = FEED_NEW;
}

static int feed_watch(struct feeds *feeds, struct feed *feed, struct err *err)
{
    static const struct follow_calls calls = {.line = on_line, .ended = on_ended};
    struct http *http;
    if (feed->watch)
        return 0;
    AUTO_FREE char *path = kube_api_path(feed->kind->group, feed->space, feed->kind->plural, NULL);
    AUTO_BUF struct buf url = BUF_INIT;
    buf_printf(&url, "%s%s%cwatch=1&allowWatchBookmarks=true&timeoutSeconds=%d&resourceVersion=",
               path, feed->kind->query, feed->kind->query[0] ? '&' : '?', WATCH_S);
    http_escape(&url, feed->version ? feed->version : "");
    if (kube_api_connect(feeds->api, feed->renew, &http, err))
        return -1;
    feed->renew = false;
    feed->watch = follow_open(feeds->follow, http, url.data, LINE_MAX_BYTES, WATCH_MAX_MS, &calls,
                              feed, err);
    return feed->watch ? 0 : -1;
}

/* Of those that are open. */
static bool all_are_up(const struct feeds *feeds)
{
    for (size_t i = 0; i < feeds->n; i++)
        if (feeds->list[i]->watch && !follow_is_up(feeds->list[i]->watch))
            return false;
    return true;
}

/* Until they are all there and say nothing for a moment. Where all were there before, that moment is long
 * enough for what had happened until now, and what has come of later need not end: moves under way make
 * hundreds of lines a second. */
static void feeds_drain(struct feeds *feeds)
{
    int64_t start = clock_mono_ms(), now = start, quiet = start;
    bool were_up = all_are_up(feeds);
    bool followed = were_up && feeds->turned_ms >= 0 && start - feeds->turned_ms < FOLLOWED_MS;
    int64_t silence = followed ? FOLLOWED_SILENCE_MS : SILENCE_MS;
    while (now - start < UPDATE_MAX_MS && (!all_are_up(feeds) || now - quiet < silence)) {
        bool up = all_are_up(feeds);
        int64_t lines = follow_turn(feeds->follow, silence / 2);
        now = clock_mono_ms();
        if (lines || !up)
            quiet = now;
        if (were_up && up && now - start >= silence && !follow_turn(feeds->follow, 0))
            return;
    }
}

void feeds_turn(struct feeds *feeds)
{
    struct err ignored = ERR_INIT; /* the next update meets it again */
    int64_t now = clock_mono_ms();
    feeds->turned_ms = now;
    follow_turn(feeds->follow, 0);
    for (size_t i = 0; i < feeds->n; i++) {
        struct feed *feed = feeds->list[i];
        bool rests = feed->broken_ms >= 0 && now - feed->broken_ms < UPDATE_MAX_MS;
        if (feed->state == FEED_LISTED && !rests)
            feed_watch(feeds, feed, &ignored);
    }
}

/* --- all --- */

/* Pods of some namespace at least, and the nodes. */
static int check_needed(const struct feeds *feeds, struct err *err)
{
    for (size_t k = 0; k < ARRAY_LEN(source_kinds); k++) {
        bool seen = !source_kinds[k].needed;
        for (size_t i = 0; i < feeds->n && !seen; i++)
            seen = feeds->list[i]->kind == &source_kinds[k] &&
                   feeds->list[i]->state == FEED_LISTED;
        if (!seen)
            return err_set(err, ERR_REFUSED,
                           "%s may not be listed: give the account the verbs get, list and watch",
                           source_kinds[k].plural);
    }
    return 0;
}

static bool is_spaced(const struct feed *feed)
{
    return strcmp(feed->kind->kind, "Node") != 0 && strcmp(feed->kind->kind, "PersistentVolume") != 0;
}

/* Lists what has to be. */
static int list_all(struct feeds *feeds, const char *const *spaces, struct err *err)
{
    for (size_t i = 0; i < feeds->n; i++) { /* grows while it is walked */
        struct feed *feed = feeds->list[i];
        bool again = (feed->state == FEED_REFUSED || feed->state == FEED_ABSENT) &&
                     clock_mono_ms() - feed->asked_ms > AGAIN_MS;
        if ((feed->state == FEED_NEW || again) && feed_relist(feeds, feed, err))
            return -1;
        if (feed->state == FEED_REFUSED && !feed->space && is_spaced(feed))
            feed_split(feeds, feed->kind, spaces);
    }
    return 0;
}

static bool is_watched(const struct feed *feed)
{
    return feed->watch && follow_is_up(feed->watch);
}

/* Opens what is not open and reads it all; true when every kind that is listed is watched. */
static int watch_all(struct feeds *feeds, bool *all, struct err *err)
{
    *all = true;
    for (size_t i = 0; i < feeds->n; i++)
        if (feeds->list[i]->state == FEED_LISTED && feed_watch(feeds, feeds->list[i], err))
            return -1;
    feeds_drain(feeds);
    for (size_t i = 0; i < feeds->n; i++)
        *all &= feeds->list[i]->state != FEED_NEW &&
                (feeds->list[i]->state != FEED_LISTED || is_watched(feeds->list[i]));
    return 0;
}

int feeds_update(struct feeds *feeds, const char *const *spaces, struct err *err)
{
    bool first = feeds->count.lists == 0, all = false;
    if (first)
        list_abreast(feeds);
    bool fresh = first && feeds->count.lists == 0; /* what comes now is as of now */
    if (list_all(feeds, spaces, err))
        return -1;
    /* A watch that was just over (each is after some minutes) is opened again. */
    for (int tries = 0; tries < 2 && !fresh && !all; tries++)
        if (watch_all(feeds, &all, err))
            return -1;
    /* Where a watch is lost for good or may not be had, a list makes up for it. */
    for (size_t i = 0; i < feeds->n && !fresh && !all; i++) {
        struct feed *feed = feeds->list[i];
        bool lost = feed->state == FEED_LISTED && !is_watched(feed);
        if ((feed->state == FEED_NEW || lost) && feed_relist(feeds, feed, err))
            return -1;
    }
    return check_needed(feeds, err);
}

void feeds_note(const struct feeds *feeds, struct inspection *in)
{
    for (size_t i = 0; i < feeds->n; i++) {
        const struct feed *feed = feeds->list[i];
        if (feed->state != FEED_REFUSED)
            continue;
        if (!feed->space && feed->kind->needed)
            inspection_note(in, "partial", 1,
                            "%s of other namespaces may not be read: the room that they take on the "
                            "nodes is not known",
                            feed->kind->plural);
        else if (feed->kind->lost)
            inspection_note(in, "partial", 1, "%s%s%s may not be read: %s", feed->kind->plural,
                            feed->space ? " of " : "", feed->space ? feed->space : "",
                            feed->kind->lost);
    }
}
