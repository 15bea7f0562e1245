/* event.c - see event.h; kubernetes/api:events/v1/types.go. */
#include "adapters/kubernetes/event.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "adapters/kubernetes/kube.h"
#include "adapters/kubernetes/when.h"
#include "model/base/clock.h"
#include "model/base/json.h"
#include "model/base/utf8.h"

#define MAX_NOTE 1024    /* events/v1: note is at most 1 kB */
#define MAX_REPORTER 128 /* and reportingInstance 128 characters */

static const struct {
    const char *kind, *plural;
} kinds[] = {{"Deployment", "deployments"}, {"StatefulSet", "statefulsets"}};

int service_name_parse(const char *service, struct service_name *out)
{
    const char *first = strchr(service, '/');
    if (!first || first == service || !first[1])
        return -1;
    const char *second = strchr(first + 1, '/');
    *out = (struct service_name){.space = service, .space_size = (size_t)(first - service)};
    if (second) {
        out->kind = first + 1;
        out->kind_size = (size_t)(second - first - 1);
    }
    out->name = second ? second + 1 : first + 1;
    return *out->name && !strchr(out->name, '/') && (!second || out->kind_size) ? 0 : -1;
}

char *service_name_of(struct kube_api *api, const char *space, const char *kind, const char *name)
{
    static const struct {
        const char *kind, *group, *plural;
    } others[] = {{"Deployment", "apps/v1", "deployments"},
                  {"StatefulSet", "apps/v1", "statefulsets"},
                  {"DaemonSet", "apps/v1", "daemonsets"},
                  {"Job", "batch/v1", "jobs"}};
    bool shared = false;
    for (size_t i = 0; i < ARRAY_LEN(others) && !shared; i++) {
        struct err none = ERR_INIT;
        AUTO_JSON json_t *found = NULL;
        AUTO_FREE char *path = kube_api_path(others[i].group, space, others[i].plural, name);
        shared = strcmp(kind, others[i].kind) != 0 && kube_api_find(api, path, &found, &none) == 0;
    }
    if (!shared)
        return mem_printf("%s/%s", space, name);
    AUTO_FREE char *lower = mem_strdup(kind);
    for (char *c = lower; *c; c++)
        *c = (char)(*c >= 'A' && *c <= 'Z' ? *c + 32 : *c);
    return mem_printf("%s/%s/%s", space, lower, name);
}

int event_workload(struct kube_api *api, const char *service, bool recent, json_t **out,
                   const char **plural, struct err *err)
{
    struct service_name name;
    if (service_name_parse(service, &name) < 0)
        return err_set(err, ERR_NOT_FOUND, "%s is no namespace/name", service);
    AUTO_FREE char *space = mem_strndup(name.space, name.space_size);
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (name.kind && (strlen(kinds[i].kind) != name.kind_size ||
                          strncasecmp(name.kind, kinds[i].kind, name.kind_size) != 0))
            continue;
        AUTO_FREE char *plain = kube_api_path("apps/v1", space, kinds[i].plural, name.name);
        AUTO_FREE char *path = mem_printf("%s%s", plain, recent ? "?resourceVersion=0" : "");
        struct err why = ERR_INIT;
        if (kube_api_find(api, path, out, &why) == 0) {
            *plural = kinds[i].plural;
            return 0;
        }
        if (why.kind != ERR_NOT_FOUND) {
            *err = why;
            return -1;
        }
    }
    return err_set(err, ERR_NOT_FOUND, "%s is no Deployment or StatefulSet", service);
}

static const char *kind_of(const char *plural)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (strcmp(plural, kinds[i].plural) == 0)
            return kinds[i].kind;
    return "Deployment";
}

/* A move of a whole service is a revision of its own, which surprises whoever rolls back next. */
static void put_note(const struct announcement *what, struct buf *out)
{
    buf_printf(out, "remap cycle %" PRId64 ", move %" PRId64 ": %s", what->cycle, what->seq,
               what->instance ? what->instance : what->service);
    if (what->target)
        buf_printf(out, " to %s", what->target);
    buf_printf(out, ": %s", what->state);
    if (what->reason)
        buf_printf(out, " (%s)", what->reason);
    if (!what->instance && strcmp(what->state, "undone") != 0)
        buf_puts(out,
                 ". Its placement is a revision of the template: the previous release is now one "
                 "revision further back (kubectl rollout undo --to-revision).");
    if (out->size > MAX_NOTE) {
        out->size = utf8_check(out->data, MAX_NOTE); /* no half character */
        out->data[out->size] = '\0';
    }
}

json_t *event_encode(const json_t *workload, const char *kind, const struct announcement *what,
                     const char *reporter, int64_t now_ms)
{
    const json_t *meta = kube_get(workload, "metadata");
    const char *space = kube_text(meta, "namespace"), *name = kube_text(meta, "name");
    const char *uid = kube_text(meta, "uid");
    char now[WHEN_MICRO_SIZE];
    AUTO_BUF struct buf note = BUF_INIT;
    AUTO_FREE char *cut = mem_strndup(reporter, strnlen(reporter, MAX_REPORTER));
    /* Unique without asking: no two moves of a cycle have the same seq and end in the same ms. */
    AUTO_FREE char *own = mem_printf("%.200s.%" PRIx64 "%04" PRIx64, name ? name : "",
                                     (uint64_t)now_ms, (uint64_t)what->seq & 0xffff);
    put_note(what, &note);
    bool undone = strcmp(what->state, "undone") == 0;
    return json_pack("{s:s, s:s, s:{s:s, s:s}, s:s, s:s, s:s, s:s, s:s,"
                     " s:{s:s, s:s, s:s, s:s, s:s}, s:s, s:s}",
                     "apiVersion", "events.k8s.io/v1", "kind", "Event", "metadata", "name", own,
                     "namespace", space ? space : "default", "eventTime", when_micro(now_ms, now),
                     "reportingController", "remap", "reportingInstance", cut, "action",
                     undone ? "UndoMove" : "MovePod", "reason",
                     what->bad ? "PlacementFailed"
                     : undone  ? "PlacementUndone"
                               : "PlacementChanged",
                     "regarding", "apiVersion", "apps/v1", "kind", kind, "namespace",
                     space ? space : "default", "name", name ? name : "", "uid", uid ? uid : "",
                     "note", note.data, "type", what->bad ? "Warning" : "Normal");
}

/* The place of the workload that is meant most often; NULL: the name is none. Caller frees. */
static char *likely_path(const char *service)
{
    struct service_name name;
    if (service_name_parse(service, &name) < 0 || name.kind)
        return NULL;
    AUTO_FREE char *space = mem_strndup(name.space, name.space_size);
    AUTO_FREE char *plain = kube_api_path("apps/v1", space, kinds[0].plural, name.name);
    return mem_printf("%s?resourceVersion=0", plain);
}

/* What was announced of it; `known`: the workload, or NULL. NULL: nobody knows it. Caller decrefs. */
static json_t *event_of(struct kube_api *api, const struct announcement *what, json_t *known,
                        const char *reporter)
{
    AUTO_JSON json_t *workload = json_incref(known);
    const char *plural, *kind = kube_text(known, "kind");
    struct err unknown = ERR_INIT;
    if (!known) {
        if (event_workload(api, what->service, true, &workload, &plural, &unknown) < 0)
            return NULL;
        kind = kind_of(plural);
    }
    return event_encode(workload, kind ? kind : "Deployment", what, reporter, clock_wall_ms());
}

void event_post_all(struct kube_api *api, const struct announcement *whats,
                    json_t *const *workloads, size_t n, const char *reporter)
{
    for (size_t i = 0; i < n; i++) {
        AUTO_FREE char *path = workloads[i] ? NULL : likely_path(whats[i].service);
        if (path)
            kube_api_ahead_get(api, path);
    }
    for (size_t i = 0; i < n; i++) {
        AUTO_JSON json_t *event = event_of(api, &whats[i], workloads[i], reporter);
        if (!event)
            continue;
        const char *space = kube_text(kube_get(event, "metadata"), "namespace");
        AUTO_FREE char *path = kube_api_path("events.k8s.io/v1", space, "events", NULL);
        kube_api_post(api, path, event);
    }
    kube_api_ahead_end(api);
}
