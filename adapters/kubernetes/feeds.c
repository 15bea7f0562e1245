/* feeds.c - one list per kind, and per namespace where that is all we may read (feeds.h). */
#include "adapters/kubernetes/feeds.h"

#include <stdlib.h>
#include <string.h>

#include "adapters/kubernetes/kube.h"
#include "model/base/mem.h"

struct source_kind {
    const char *kind, *group, *plural, *query;
    bool needed; /* no inspection without */
    const char *lost; /* what is not seen without it */
};

static const struct source_kind source_kinds[] = {
    {"Node", "v1", "nodes", "", true, NULL},
    /* Pods that have ended hold nothing. */
    {"Pod", "v1", "pods", "?fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed",
     true, NULL},
    {"Deployment", "apps/v1", "deployments", "", false, "no Deployment can be moved"},
    {"ReplicaSet", "apps/v1", "replicasets", "", false, "no pod is known to be of a Deployment"},
    {"StatefulSet", "apps/v1", "statefulsets", "", false, "no StatefulSet can be moved"},
    {"DaemonSet", "apps/v1", "daemonsets", "", false, NULL},
    {"PersistentVolumeClaim", "v1", "persistentvolumeclaims", "", false,
     "pods may be sent where their volumes cannot follow"},
    {"PersistentVolume", "v1", "persistentvolumes", "", false,
     "pods may be sent where their volumes cannot follow"},
    {"PodDisruptionBudget", "policy/v1", "poddisruptionbudgets", "", false,
     "disruption budgets are found out only when a move is refused"},
    {"HorizontalPodAutoscaler", "autoscaling/v2", "horizontalpodautoscalers", "", false,
     "moves may meet a scaling in progress"},
    {"Rollout", "argoproj.io/v1alpha1", "rollouts", "", false, NULL},
};

enum feed_state { FEED_NEW, FEED_LISTED, FEED_REFUSED, FEED_ABSENT };

struct feed {
    const struct source_kind *kind;
    char *space; /* NULL: all */
    enum feed_state state;
    char *version; /* of the newest that was taken in */
};

struct feeds {
    struct kube_api *api;
    struct kube_objects *objects;
    struct feed *list;
    size_t n;
};

struct feeds *feeds_new(struct kube_api *api, struct kube_objects *objects)
{
    struct feeds *feeds = mem_alloc(sizeof *feeds);
    feeds->api = api;
    feeds->objects = objects;
    for (size_t k = 0; k < ARRAY_LEN(source_kinds); k++)
        ARRAY_PUSH(feeds->list, feeds->n)->kind = &source_kinds[k];
    return feeds;
}

void feeds_free(struct feeds *feeds)
{
    if (!feeds)
        return;
    for (size_t i = 0; i < feeds->n; i++) {
        free(feeds->list[i].space);
        free(feeds->list[i].version);
    }
    free(feeds->list);
    free(feeds);
}

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
        kube_objects_renew(objects, kind);
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
    return 0;
}

static struct feed *feed_find(struct feeds *feeds, const struct source_kind *kind,
                              const char *space)
{
    for (size_t i = 0; i < feeds->n; i++)
        if (feeds->list[i].kind == kind && feeds->list[i].space &&
            strcmp(feeds->list[i].space, space) == 0)
            return &feeds->list[i];
    return NULL;
}

/* In all namespaces it is forbidden; in ours it may be allowed. */
static void feed_split(struct feeds *feeds, const struct source_kind *kind,
                       const char *const *spaces)
{
    for (; spaces && *spaces; spaces++) {
        if (feed_find(feeds, kind, *spaces))
            continue;
        struct feed *feed = ARRAY_PUSH(feeds->list, feeds->n);
        feed->kind = kind;
        feed->space = mem_strdup(*spaces);
    }
}

static int feed_update(struct feeds *feeds, size_t at, struct err *err)
{
    struct feed *feed = &feeds->list[at];
    struct kube_status status;
    struct err failure = ERR_INIT;
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
    return 0;
}

/* Pods of some namespace at least, and the nodes. */
static int check_needed(const struct feeds *feeds, struct err *err)
{
    for (size_t k = 0; k < ARRAY_LEN(source_kinds); k++) {
        bool seen = !source_kinds[k].needed;
        for (size_t i = 0; i < feeds->n && !seen; i++)
            seen = feeds->list[i].kind == &source_kinds[k] &&
                   feeds->list[i].state == FEED_LISTED;
        if (!seen)
            return err_set(err, ERR_REFUSED,
                           "%s may not be listed: give the account the verbs get, list and watch",
                           source_kinds[k].plural);
    }
    return 0;
}

int feeds_update(struct feeds *feeds, const char *const *spaces, struct err *err)
{
    for (size_t i = 0; i < feeds->n; i++) { /* grows while it is walked */
        if (feed_update(feeds, i, err))
            return -1;
        bool spaced = strcmp(feeds->list[i].kind->kind, "Node") != 0 &&
                      strcmp(feeds->list[i].kind->kind, "PersistentVolume") != 0;
        if (feeds->list[i].state == FEED_REFUSED && !feeds->list[i].space && spaced)
            feed_split(feeds, feeds->list[i].kind, spaces);
    }
    return check_needed(feeds, err);
}

void feeds_note(const struct feeds *feeds, struct inspection *in)
{
    for (size_t i = 0; i < feeds->n; i++) {
        const struct feed *feed = &feeds->list[i];
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
