/* tags.c - names of tags (interfaces.md 5.1, 5.2, 5.4; OpenTelemetry semantic conventions for
 * Kubernetes; Envoy's node_id). */
#include "adapters/spans/tags.h"

#include <arpa/inet.h>
#include <string.h>

enum tag { TAG_NONE, TAG_SERVICE, TAG_POD, TAG_SPACE, TAG_ADDRESS, TAG_NODE_ID, TAG_KIND, TAG_PEER };

struct known_tag {
    const char *key;
    enum tag tag;
    enum peer_rank peer;
};

static const struct known_tag known_tags[] = {
    {"service.name", TAG_SERVICE, 0},
    {"pod", TAG_POD, 0},
    {"pod.name", TAG_POD, 0},
    {"pod_name", TAG_POD, 0},
    {"k8s.pod.name", TAG_POD, 0},
    {"kubernetes.pod.name", TAG_POD, 0},
    {"kubernetes.pod_name", TAG_POD, 0},
    {"io.kubernetes.pod.name", TAG_POD, 0},
    {"k8s.namespace.name", TAG_SPACE, 0},
    {"kubernetes.namespace", TAG_SPACE, 0},
    {"kubernetes.namespace_name", TAG_SPACE, 0},
    {"io.kubernetes.pod.namespace", TAG_SPACE, 0},
    {"k8s.pod.ip", TAG_ADDRESS, 0},
    {"ip", TAG_ADDRESS, 0},
    {"node_id", TAG_NODE_ID, 0},
    {"span.kind", TAG_KIND, 0},
    {"service.peer.name", TAG_PEER, PEER_SERVICE_NEW},
    {"peer.service", TAG_PEER, PEER_SERVICE},
    {"server.address", TAG_PEER, PEER_ADDRESS},
    {"net.peer.name", TAG_PEER, PEER_ADDRESS},
    {"messaging.destination.name", TAG_PEER, PEER_DESTINATION},
    {"messaging.destination", TAG_PEER, PEER_DESTINATION},
};

void span_tags_reset(struct span_tags *tags)
{
    tags->sizes = (struct span_sizes)SPAN_SIZES_INIT;
    tags->kind = -1;
    tags->service = -1;
    for (int i = 0; i < PEER_N; i++)
        tags->peers[i] = -1;
    tags->pod[0] = tags->space[0] = tags->address[0] = '\0';
}

/* Leaves what is there when the text cannot be a name. */
static void keep(char *out, size_t room, const char *text, size_t size)
{
    if (size == 0 || size >= room || memchr(text, '\0', size))
        return;
    memcpy(out, text, size);
    out[size] = '\0';
}

/* "sidecar~10.0.0.7~cart-7d9f.shop~shop.svc.cluster.local": type, address, pod.namespace. */
static void keep_node_id(struct span_tags *tags, const char *text, size_t size)
{
    const char *end = text + size;
    const char *address = memchr(text, '~', size);
    const char *pod = address ? memchr(address + 1, '~', (size_t)(end - address - 1)) : NULL;
    const char *rest = pod ? memchr(pod + 1, '~', (size_t)(end - pod - 1)) : NULL;
    if (!rest)
        return;
    keep(tags->address, sizeof tags->address, address + 1, (size_t)(pod - address - 1));
    const char *dot = memchr(pod + 1, '.', (size_t)(rest - pod - 1));
    if (!dot)
        return;
    keep(tags->pod, sizeof tags->pod, pod + 1, (size_t)(dot - pod - 1));
    keep(tags->space, sizeof tags->space, dot + 1, (size_t)(rest - dot - 1));
}

static int kind_of(const char *text, size_t size)
{
    static const char *const names[] = {"internal", "client", "server", "producer", "consumer"};
    for (int kind = 0; kind < 5; kind++)
        if (strlen(names[kind]) == size && strncasecmp(names[kind], text, size) == 0)
            return kind;
    return -1;
}

static const struct known_tag *find_tag(const char *key, size_t size)
{
    for (size_t i = 0; i < ARRAY_LEN(known_tags); i++)
        if (known_tags[i].key[0] == key[0] && strlen(known_tags[i].key) == size &&
            memcmp(known_tags[i].key, key, size) == 0)
            return &known_tags[i];
    return NULL;
}

static int take_name(struct span_table *table, const char *text, size_t size, int32_t *out,
                     struct err *err)
{
    int32_t name = span_table_name(table, text, size, true, err);
    if (name == -2)
        return -1;
    if (name >= 0)
        *out = name;
    return 0;
}

int span_tags_take(struct span_tags *tags, struct span_table *table, const char *key,
                   size_t key_size, const char *value, size_t value_size, struct err *err)
{
    if (key_size == 0)
        return 0;
    span_sizes_tag(&tags->sizes, key, key_size, value, value_size);
    const struct known_tag *known = find_tag(key, key_size);
    switch (known ? known->tag : TAG_NONE) {
    case TAG_NONE:
        break;
    case TAG_SERVICE:
        return take_name(table, value, value_size, &tags->service, err);
    case TAG_POD:
        keep(tags->pod, sizeof tags->pod, value, value_size);
        break;
    case TAG_SPACE:
        keep(tags->space, sizeof tags->space, value, value_size);
        break;
    case TAG_ADDRESS:
        keep(tags->address, sizeof tags->address, value, value_size);
        break;
    case TAG_NODE_ID:
        keep_node_id(tags, value, value_size);
        break;
    case TAG_KIND:
        tags->kind = kind_of(value, value_size);
        break;
    case TAG_PEER:
        return take_name(table, value, value_size, &tags->peers[known->peer], err);
    }
    return 0;
}

int32_t span_tags_node(const struct span_tags *tags, struct span_table *table, int32_t service,
                       struct err *err)
{
    if (service < 0)
        return -1;
    int32_t hint = -1;
    enum node_hint hint_kind = HINT_NONE;
    if (tags->pod[0]) {
        char full[sizeof tags->space + sizeof tags->pod];
        size_t size = strlen(tags->space), pod_size = strlen(tags->pod);
        memcpy(full, tags->space, size);
        if (size)
            full[size++] = '/';
        memcpy(full + size, tags->pod, pod_size);
        hint = span_table_name(table, full, size + pod_size, false, err);
        hint_kind = HINT_POD;
    } else if (tags->address[0] && span_table_wants_addresses(table)) {
        hint = span_table_name(table, tags->address, strlen(tags->address), true, err);
        hint_kind = HINT_ADDRESS;
    }
    if (hint == -2)
        return -2;
    return span_table_node(table, service, hint, hint < 0 ? HINT_NONE : hint_kind);
}

int32_t span_tags_peer(const struct span_tags *tags, struct span_table *table,
                       enum span_kind kind)
{
    int last = PEER_SERVICE;
    if (kind == SPAN_CLIENT)
        last = PEER_ADDRESS;
    if (kind == SPAN_PRODUCER || kind == SPAN_CONSUMER)
        last = PEER_DESTINATION;
    for (int i = 0; i <= last; i++)
        if (tags->peers[i] >= 0)
            return span_table_node(table, tags->peers[i], -1, HINT_NONE);
    return -1;
}

bool span_text_is_address(const char *text)
{
    struct in6_addr address;
    return inet_pton(AF_INET, text, &address) == 1 || inet_pton(AF_INET6, text, &address) == 1;
}
