/* lease.c - see lease.h; kubernetes/client-go:tools/leaderelection/leaderelection.go. */
#include "adapters/kubernetes/lease.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "adapters/kubernetes/when.h"
#include "model/base/clock.h"
#include "model/base/file.h"
#include "model/base/json.h"

#define JSON_TYPE "application/json"
/* A record of somebody else's may say what it likes; we wait no longer than this for its end. */
#define MAX_DURATION_S 3600

struct lease {
    struct kube_api *api;
    struct lease_options options; /* its texts are owned */
    char *path, *collection;
    json_t *object;     /* as last seen; NULL: none */
    int64_t seen_ms;    /* when its spec was seen to change */
    bool ours;          /* as far as the record goes */
    int64_t renewed_ms; /* just before the request that renewed it */
};

/* The first line of a small file, cut; "" where it cannot be read. */
static void read_line(const char *path, size_t max, char *out)
{
    struct err ignored = ERR_INIT;
    AUTO_BUF struct buf text = BUF_INIT;
    out[0] = '\0';
    if (file_read(path, 4096, &text, &ignored) == 0 && text.data)
        snprintf(out, max, "%.*s", (int)strcspn(text.data, "\n"), text.data);
}

char *lease_identity(int64_t pid)
{
    char host[128], boot[9];
    struct stat space = {.st_ino = 0};
    if (gethostname(host, sizeof host) < 0)
        snprintf(host, sizeof host, "unnamed");
    host[sizeof host - 1] = '\0';
    read_line("/proc/sys/kernel/random/boot_id", sizeof boot, boot);
    (void)stat("/proc/self/ns/pid", &space);
    return mem_printf("%s_%s_%" PRIu64 "_%" PRId64, host, boot, (uint64_t)space.st_ino, pid);
}

struct lease *lease_new(struct kube_api *api, const struct lease_options *o)
{
    struct lease *lease = mem_alloc(sizeof *lease);
    lease->api = api;
    lease->options = *o;
    lease->options.space = mem_strdup(o->space);
    lease->options.name = mem_strdup(o->name);
    lease->options.identity = mem_strdup(o->identity);
    lease->path = kube_api_path("coordination.k8s.io/v1", o->space, "leases", o->name);
    lease->collection = kube_api_path("coordination.k8s.io/v1", o->space, "leases", NULL);
    return lease;
}

void lease_free(struct lease *lease)
{
    if (!lease)
        return;
    free((char *)(uintptr_t)lease->options.space);
    free((char *)(uintptr_t)lease->options.name);
    free((char *)(uintptr_t)lease->options.identity);
    free(lease->path);
    free(lease->collection);
    json_decref(lease->object);
    free(lease);
}

static const json_t *spec_of(const json_t *object)
{
    return json_object_get(object, "spec");
}

static const char *holder_of(const json_t *object)
{
    const char *holder = json_string_value(json_object_get(spec_of(object), "holderIdentity"));
    return holder ? holder : "";
}

const char *lease_holder(const struct lease *lease)
{
    return holder_of(lease->object);
}

bool lease_held(const struct lease *lease, int64_t now_ms)
{
    return lease->ours && now_ms - lease->renewed_ms < lease->options.renew_ms;
}

int64_t lease_pause_ms(const struct lease *lease, uint64_t random)
{
    return lease->options.retry_ms +
           (int64_t)(random % (uint64_t)(lease->options.retry_ms / 5 + 1));
}

int64_t lease_patience_ms(const struct lease *lease)
{
    json_int_t seconds =
        json_integer_value(json_object_get(spec_of(lease->object), "leaseDurationSeconds"));
    int64_t duration =
        seconds > 0 && seconds <= MAX_DURATION_S ? seconds * 1000 : lease->options.duration_ms;
    return duration + 3 * lease->options.retry_ms;
}

/* Keeps what was seen; the clock of its hold starts anew only when the spec changed. Takes it. */
static void observe(struct lease *lease, json_t *object, int64_t now_ms)
{
    if (!lease->object || !json_equal(spec_of(lease->object), spec_of(object)))
        lease->seen_ms = now_ms;
    json_decref(lease->object);
    lease->object = object;
}

static void forget(struct lease *lease)
{
    json_decref(lease->object);
    lease->object = NULL;
    lease->ours = false;
}

/* Is somebody else's hold over, or is there none? */
static bool is_free(const struct lease *lease, int64_t now_ms)
{
    const char *holder = holder_of(lease->object);
    if (!*holder || strcmp(holder, lease->options.identity) == 0)
        return true;
    json_int_t seconds =
        json_integer_value(json_object_get(spec_of(lease->object), "leaseDurationSeconds"));
    seconds = seconds < 1 ? 1 : seconds > MAX_DURATION_S ? MAX_DURATION_S : seconds;
    return now_ms - lease->seen_ms >= seconds * 1000;
}

/* The record that makes it ours; `object` NULL: a new one. New reference. */
static json_t *claim(const struct lease *lease, const json_t *object)
{
    char now[WHEN_MICRO_SIZE];
    const json_t *was = spec_of(object);
    bool again = object && strcmp(holder_of(object), lease->options.identity) == 0;
    json_int_t changes = json_integer_value(json_object_get(was, "leaseTransitions"));
    json_t *next = object
                       ? json_deep_copy(object)
                       : json_pack("{s:s, s:s, s:{s:s, s:s}}", "apiVersion",
                                   "coordination.k8s.io/v1", "kind", "Lease", "metadata",
                                   "namespace", lease->options.space, "name", lease->options.name);
    json_t *spec = json_object();
    const char *taken = json_string_value(json_object_get(was, "acquireTime"));
    when_micro(clock_wall_ms(), now);
    json_object_set_new(spec, "holderIdentity", json_string(lease->options.identity));
    json_object_set_new(spec, "leaseDurationSeconds",
                        json_integer((lease->options.duration_ms + 999) / 1000));
    json_object_set_new(spec, "acquireTime", json_string(again && taken ? taken : now));
    json_object_set_new(spec, "renewTime", json_string(now));
    json_object_set_new(spec, "leaseTransitions", json_integer(changes + (object && !again)));
    json_object_set_new(next, "spec", spec);
    return next;
}

/* Writes our record over the one seen. 1: ours; 0: somebody was faster, what was seen is stale; -1.
 */
static int take(struct lease *lease, int64_t now_ms, struct err *err)
{
    AUTO_JSON json_t *body = claim(lease, lease->object);
    struct kube_status status;
    json_t *answer = NULL;
    int rc = kube_api_send(lease->api, lease->object ? "PUT" : "POST",
                           lease->object ? lease->path : lease->collection, JSON_TYPE, body,
                           &answer, &status, err);
    if (rc == 0) {
        observe(lease, answer, now_ms);
        lease->ours = true;
        lease->renewed_ms = now_ms;
        return 1;
    }
    if (err->kind != ERR_CONFLICT && err->kind != ERR_NOT_FOUND)
        return -1; /* nobody knows; if it was written after all, the next look shows it */
    *err = (struct err)ERR_INIT;
    forget(lease);
    return 0;
}

/* 0: looked, or it is not there; -1. */
static int look(struct lease *lease, int64_t now_ms, struct err *err)
{
    json_t *object = NULL;
    if (kube_api_find(lease->api, lease->path, &object, err) == 0) {
        observe(lease, object, now_ms);
        return 0;
    }
    if (err->kind != ERR_NOT_FOUND)
        return -1;
    *err = (struct err)ERR_INIT;
    forget(lease);
    return 0;
}

int lease_turn(struct lease *lease, int64_t now_ms, struct err *err)
{
    if (lease->ours) { /* nobody else writes it: the record is most likely as we left it */
        int taken = take(lease, now_ms, err);
        if (taken != 0)
            return taken;
    }
    if (look(lease, now_ms, err) < 0)
        return -1;
    if (lease->object && !is_free(lease, now_ms)) {
        lease->ours = false;
        return 0;
    }
    return take(lease, now_ms, err);
}

void lease_release(struct lease *lease)
{
    if (!lease->ours || !lease->object)
        return;
    char now[WHEN_MICRO_SIZE];
    struct err ignored = ERR_INIT; /* then it runs out */
    AUTO_JSON json_t *body = json_deep_copy(lease->object);
    json_t *spec = json_object_get(body, "spec");
    when_micro(clock_wall_ms(), now);
    json_object_set_new(spec, "holderIdentity", json_string(""));
    json_object_set_new(spec, "leaseDurationSeconds", json_integer(1));
    json_object_set_new(spec, "renewTime", json_string(now));
    (void)kube_api_send(lease->api, "PUT", lease->path, JSON_TYPE, body, NULL, NULL, &ignored);
    lease->ours = false;
}
