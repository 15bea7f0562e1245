/* node.c - Node objects (interfaces.md 1.2): what a host offers is `allocatable`, not `capacity`. */
#include "adapters/kubernetes/kube.h"

#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"

static bool is_schedulable(const json_t *spec, const json_t *status)
{
    static const char *const bad[] = {"MemoryPressure", "DiskPressure", "PIDPressure",
                                      "NetworkUnavailable"};
    if (json_is_true(json_object_get(spec, "unschedulable")) ||
        !kube_condition(status, "Ready"))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (kube_condition(status, bad[i]))
            return false;
    return true;
}

static char *copy_label(const json_t *labels, const char *name, const char *old_name)
{
    const char *text = kube_text(labels, name);
    if (!text)
        text = kube_text(labels, old_name);
    return text && text[0] ? mem_strdup(text) : NULL;
}

static void decode_labels(const json_t *labels, struct kube_node *node)
{
    const char *name;
    const json_t *value;
    node->region =
        copy_label(labels, "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region");
    node->zone =
        copy_label(labels, "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone");
    node->hostname = copy_label(labels, "kubernetes.io/hostname", "kubernetes.io/hostname");
    json_object_foreach((json_t *)labels, name, value)
    {
        if (!json_is_string(value) || name_problem(name, strlen(name)))
            continue;
        struct label *label = ARRAY_PUSH(node->labels, node->n_labels);
        label->name = mem_strdup(name);
        label->value = mem_strdup(json_string_value(value));
    }
}

static char *find_address(const json_t *status)
{
    size_t i;
    const json_t *address, *addresses = kube_get(status, "addresses");
    json_array_foreach(addresses, i, address)
    {
        const char *type = kube_text(address, "type"), *text = kube_text(address, "address");
        if (type && text && strcmp(type, "InternalIP") == 0)
            return mem_strdup(text);
    }
    return NULL;
}

static int by_name(const void *left, const void *right)
{
    return strcmp(((const struct label *)left)->name, ((const struct label *)right)->name);
}

void kube_node_wipe(void *item)
{
    struct kube_node *node = item;
    kube_meta_wipe(&node->meta);
    kube_taints_wipe(&node->taints);
    free(node->region);
    free(node->zone);
    free(node->hostname);
    free(node->address);
    for (size_t i = 0; i < node->n_labels; i++) {
        free(node->labels[i].name);
        free(node->labels[i].value);
    }
    free(node->labels);
}

void kube_node_drop(struct kube_node *node)
{
    free(node->meta.head.key);
    kube_node_wipe(node);
}

/* Taints by which autoscalers say that a node is to go (interfaces.md 1.9 rule 12). */
static bool is_leaving(const json_t *spec)
{
    static const char *const keys[] = {"karpenter.sh/disrupted", "karpenter.sh/disruption",
                                       "ToBeDeletedByClusterAutoscaler",
                                       "DeletionCandidateOfClusterAutoscaler"};
    size_t i;
    const json_t *taint;
    json_array_foreach(kube_get(spec, "taints"), i, taint)
    {
        const char *key = kube_text(taint, "key");
        for (size_t k = 0; key && k < ARRAY_LEN(keys); k++)
            if (strcmp(key, keys[k]) == 0)
                return true;
    }
    return false;
}

int kube_node_decode(const json_t *object, struct kube_node *out, struct err *err)
{
    struct kube_node node = {.pods_cap = -1};
    if (kube_meta_decode(object, &node.meta, err))
        return -1;
    const json_t *spec = kube_get(object, "spec"), *status = kube_get(object, "status");
    const json_t *allocatable = kube_get(status, "allocatable");
    if (!kube_get(allocatable, "cpu") || !kube_get(allocatable, "memory")) {
        kube_node_drop(&node);
        return err_set(err, ERR_INPUT, "status.allocatable must give cpu and memory");
    }
    if (kube_quantity(allocatable, "cpu", 1000, false, &node.cpu_cap_millis, err) ||
        kube_quantity(allocatable, "memory", 1, false, &node.mem_cap_bytes, err) ||
        kube_quantity(allocatable, "pods", 1, false, &node.pods_cap, err)) {
        kube_node_drop(&node);
        return err_prefix(err, "status.allocatable");
    }
    node.schedulable = is_schedulable(spec, status);
    node.leaving = is_leaving(spec);
    kube_taints_decode(spec, &node.taints);
    node.address = find_address(status);
    decode_labels(kube_path(object, "metadata", "labels"), &node);
    if (node.n_labels > 1)
        qsort(node.labels, node.n_labels, sizeof *node.labels, by_name);
    *out = node;
    return 0;
}
