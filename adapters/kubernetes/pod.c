/* pod.c - Pod objects (interfaces.md 1.2): effective requests and what binds a pod to its host. */
#include "adapters/kubernetes/kube.h"

#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"

struct request { /* cpu in millis, memory in bytes */
    int64_t cpu, mem;
};

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t sum(int64_t a, int64_t b)
{
    return larger(a, 0) + larger(b, 0) < MODEL_MAX_NUMBER ? a + b : MODEL_MAX_NUMBER;
}

static int decode_request(const json_t *requests, struct request *out, struct err *err)
{
    if (kube_quantity(requests, "cpu", 1000, true, &out->cpu, err) ||
        kube_quantity(requests, "memory", 1, true, &out->mem, err))
        return -1;
    return 0;
}

/* In-place resize: what a container was granted may still be more than what its spec asks now. */
static int add_granted(const json_t *statuses, const char *name, struct request *out,
                       struct err *err)
{
    size_t i;
    const json_t *status;
    json_array_foreach(statuses, i, status)
    {
        const char *container = kube_text(status, "name");
        if (!container || !name || strcmp(container, name) != 0)
            continue;
        struct request granted = {0, 0};
        if (decode_request(kube_path(status, "resources", "requests"), &granted, err))
            return -1;
        out->cpu = larger(out->cpu, granted.cpu);
        out->mem = larger(out->mem, granted.mem);
    }
    return 0;
}

static int container_request(const json_t *container, const json_t *statuses, struct request *out,
                             struct err *err)
{
    const char *name = kube_text(container, "name");
    *out = (struct request){0, 0};
    if (decode_request(kube_path(container, "resources", "requests"), out, err) ||
        add_granted(statuses, name, out, err))
        return err_prefix(err, "container %s", name ? name : "?");
    return 0;
}

/* The larger of what runs (containers and sidecars) and what each init container needs beside the
 * sidecars started before it. */
static int containers_request(const json_t *spec, const json_t *status, struct request *out,
                              struct err *err)
{
    size_t i;
    const json_t *container;
    struct request running = {0, 0}, sidecars = {0, 0}, starting = {0, 0}, one;
    json_array_foreach(kube_get(spec, "containers"), i, container)
    {
        if (container_request(container, kube_get(status, "containerStatuses"), &one, err))
            return -1;
        running = (struct request){sum(running.cpu, one.cpu), sum(running.mem, one.mem)};
    }
    json_array_foreach(kube_get(spec, "initContainers"), i, container)
    {
        if (container_request(container, kube_get(status, "initContainerStatuses"), &one, err))
            return -1;
        struct request beside = {sum(sidecars.cpu, one.cpu), sum(sidecars.mem, one.mem)};
        const char *policy = kube_text(container, "restartPolicy");
        if (policy && strcmp(policy, "Always") == 0)
            sidecars = beside;
        starting = (struct request){larger(starting.cpu, beside.cpu),
                                    larger(starting.mem, beside.mem)};
    }
    out->cpu = larger(sum(running.cpu, sidecars.cpu), starting.cpu);
    out->mem = larger(sum(running.mem, sidecars.mem), starting.mem);
    return 0;
}

static int decode_requests(const json_t *spec, const json_t *status, struct kube_pod *pod,
                           struct err *err)
{
    struct request effective, overhead = {0, 0};
    if (containers_request(spec, status, &effective, err))
        return -1;
    /* Requests of the whole pod, where set, take the place of the sum. */
    if (decode_request(kube_path(spec, "resources", "requests"), &effective, err))
        return err_prefix(err, "spec.resources");
    if (decode_request(kube_get(spec, "overhead"), &overhead, err))
        return err_prefix(err, "spec.overhead");
    pod->cpu_request_millis = sum(effective.cpu, overhead.cpu);
    pod->mem_request_bytes = sum(effective.mem, overhead.mem);
    return 0;
}

static void decode_claims(const json_t *object, const json_t *spec, struct kube_pod *pod)
{
    size_t i;
    const json_t *volume;
    const char *own = kube_text(kube_get(object, "metadata"), "name");
    json_array_foreach(kube_get(spec, "volumes"), i, volume)
    {
        const json_t *claim = kube_get(volume, "persistentVolumeClaim");
        const char *claim_name = kube_text(claim, "claimName");
        const char *volume_name = kube_text(volume, "name");
        if (claim)
            *ARRAY_PUSH(pod->claims, pod->n_claims) = mem_strdup(claim_name ? claim_name : "?");
        else if (kube_get(volume, "ephemeral") && volume_name) /* a claim of the pod's own */
            *ARRAY_PUSH(pod->claims, pod->n_claims) = mem_printf("%s-%s", own, volume_name);
    }
}

int kube_pod_decode(const json_t *object, struct table *specs, struct kube_pod *out,
                    struct err *err)
{
    struct kube_pod pod = {0};
    const json_t *spec = kube_get(object, "spec"), *status = kube_get(object, "status");
    const char *node = kube_text(spec, "nodeName"), *phase = kube_text(status, "phase");
    if (kube_meta_decode(object, &pod.meta, err))
        return -1;
    if (decode_requests(spec, status, &pod, err)) {
        free(pod.meta.head.key);
        kube_meta_wipe(&pod.meta);
        return -1;
    }
    pod.node = node && node[0] ? mem_strdup(node) : NULL;
    pod.address = mem_strdup(kube_text(status, "podIP"));
    pod.finished = phase && (strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0);
    decode_claims(object, spec, &pod);
    pod.spec = specs ? kube_spec_share(object, specs) : NULL;
    *out = pod;
    return 0;
}

/* All but its part in the spec, which whoever holds the specs gives up (kube_spec_leave). */
void kube_pod_wipe(void *item)
{
    struct kube_pod *pod = item;
    kube_meta_wipe(&pod->meta);
    free(pod->node);
    free(pod->address);
    for (size_t i = 0; i < pod->n_claims; i++)
        free(pod->claims[i]);
    free(pod->claims);
    if (pod->spec)
        pod->spec->users--;
}

void kube_pod_drop(struct kube_pod *pod)
{
    free(pod->meta.head.key);
    kube_pod_wipe(pod);
}
