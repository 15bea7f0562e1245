/* spec.c - the part of a pod's spec that decides where it may run, shared by the pods of a template
 * (kube.h; kubernetes/api:core/v1/types.go PodSpec). */
#include "adapters/kubernetes/kube.h"

#include <stdlib.h>
#include <string.h>

#include "model/base/json.h"
#include "model/base/mem.h"

/* Labels that differ from pod to pod of one StatefulSet. */
static bool is_number_label(const char *name)
{
    return strcmp(name, "statefulset.kubernetes.io/pod-name") == 0 ||
           strcmp(name, "apps.kubernetes.io/pod-index") == 0;
}

static json_t *shared_labels(const json_t *labels)
{
    json_t *out = json_object();
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)labels, name, value)
        if (json_is_string(value) && !is_number_label(name))
            json_object_set(out, name, value);
    return out;
}

/* True when some container mounts the volume and may write to it. */
static bool is_written(const json_t *spec, const char *volume)
{
    static const char *const lists[] = {"containers", "initContainers"};
    for (size_t l = 0; l < ARRAY_LEN(lists); l++) {
        size_t i, j;
        const json_t *container, *mount;
        json_array_foreach(kube_get(spec, lists[l]), i, container)
        {
            json_array_foreach(kube_get(container, "volumeMounts"), j, mount)
            {
                const char *name = kube_text(mount, "name");
                if (name && strcmp(name, volume) == 0 &&
                    !json_is_true(json_object_get(mount, "readOnly")))
                    return true;
            }
        }
    }
    return false;
}

static const char *written_path(const json_t *spec)
{
    size_t i;
    const json_t *volume;
    json_array_foreach(kube_get(spec, "volumes"), i, volume)
    {
        const json_t *host = kube_get(volume, "hostPath");
        const char *name = kube_text(volume, "name"), *path = kube_text(host, "path");
        if (host && name && is_written(spec, name))
            return path ? path : "?";
    }
    return NULL;
}

/* Ports of the host: [[port, protocol, address]]. */
static json_t *host_ports(const json_t *spec)
{
    json_t *out = json_array();
    static const char *const lists[] = {"containers", "initContainers"};
    for (size_t l = 0; l < ARRAY_LEN(lists); l++) {
        size_t i, j;
        const json_t *container, *port;
        json_array_foreach(kube_get(spec, lists[l]), i, container)
        {
            json_array_foreach(kube_get(container, "ports"), j, port)
            {
                const char *protocol = kube_text(port, "protocol"), *ip = kube_text(port, "hostIP");
                int64_t number = kube_number(port, "hostPort", 0);
                if (number > 0 && number < 65536)
                    json_array_append_new(out, json_pack("[i,s,s]", (int)number,
                                                         protocol ? protocol : "TCP",
                                                         ip ? ip : ""));
            }
        }
    }
    return out;
}

static void set_some(json_t *to, const char *key, const json_t *value)
{
    if (value)
        json_object_set(to, key, (json_t *)(uintptr_t)value);
}

/* Everything that the spec is made of, as one tree. */
static json_t *essence(const json_t *pod)
{
    json_t *out = json_object();
    const json_t *spec = kube_get(pod, "spec"), *affinity = kube_get(spec, "affinity");
    const char *path = written_path(spec);
    json_object_set_new(out, "labels", shared_labels(kube_path(pod, "metadata", "labels")));
    json_object_set_new(out, "ports", host_ports(spec));
    set_some(out, "nodeSelector", kube_get(spec, "nodeSelector"));
    set_some(out, "affinity", affinity);
    set_some(out, "tolerations", kube_get(spec, "tolerations"));
    set_some(out, "spread", kube_get(spec, "topologySpreadConstraints"));
    if (path)
        json_object_set_new(out, "path", json_string(path));
    return out;
}

static void decode_ports(const json_t *ports, struct kube_spec *spec)
{
    size_t i;
    const json_t *port;
    json_array_foreach(ports, i, port)
    {
        struct kube_port *to = ARRAY_PUSH(spec->ports, spec->n_ports);
        to->port = (int)json_integer_value(json_array_get(port, 0));
        snprintf(to->protocol, sizeof to->protocol, "%s",
                 json_string_value(json_array_get(port, 1)));
        snprintf(to->address, sizeof to->address, "%s", json_string_value(json_array_get(port, 2)));
    }
}

static json_t *keep(const json_t *value)
{
    return value ? json_deep_copy(value) : NULL;
}

static struct kube_spec *spec_new(const json_t *tree)
{
    struct kube_spec *spec = mem_alloc(sizeof *spec);
    const json_t *affinity = kube_get(tree, "affinity");
    spec->labels = keep(kube_get(tree, "labels"));
    spec->pod_affinity = keep(kube_get(affinity, "podAffinity"));
    spec->pod_anti_affinity = keep(kube_get(affinity, "podAntiAffinity"));
    spec->spread = keep(kube_get(tree, "spread"));
    spec->host_path = mem_strdup(kube_text(tree, "path"));
    kube_fit_decode(tree, &spec->fit);
    decode_ports(kube_get(tree, "ports"), spec);
    return spec;
}

struct kube_spec *kube_spec_share(const json_t *pod, struct table *specs)
{
    AUTO_JSON json_t *tree = essence(pod);
    char *key = json_dumps(tree, JSON_COMPACT | JSON_SORT_KEYS);
    if (!key)
        abort(); /* texts came from a parser: it is memory */
    struct kube_spec_entry *entry = table_find(specs, key);
    if (entry) {
        free(key);
        entry->spec->users++;
        return entry->spec;
    }
    struct kube_spec_entry made = {.head.key = key, .spec = spec_new(tree)};
    made.spec->users = 1;
    table_put(specs, &made);
    return made.spec;
}

void kube_spec_entry_wipe(void *item)
{
    struct kube_spec *spec = ((struct kube_spec_entry *)item)->spec;
    json_decref(spec->labels);
    json_decref(spec->pod_affinity);
    json_decref(spec->pod_anti_affinity);
    json_decref(spec->spread);
    kube_fit_wipe(&spec->fit);
    free(spec->ports);
    free(spec->host_path);
    free(spec);
}
