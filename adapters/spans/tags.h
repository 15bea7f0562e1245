/* tags.h - what the tags (attributes) of a span, process or resource tell a placement: sizes, the
 * pod, the other side. The same names come from Zipkin, Jaeger and OpenTelemetry. */
#ifndef REMAP_SPANS_TAGS_H
#define REMAP_SPANS_TAGS_H

#include "adapters/spans/sizes.h"
#include "adapters/spans/span.h"
#include "adapters/spans/table.h"

enum peer_rank { /* interfaces.md 5.4: first known wins */
    PEER_SERVICE_NEW, /* service.peer.name */
    PEER_SERVICE,     /* peer.service */
    PEER_ADDRESS,     /* server.address: says something of the other side of a CLIENT only */
    PEER_DESTINATION, /* messaging.destination.name */
    PEER_N
};

struct span_tags {
    struct span_sizes sizes;
    int kind;             /* enum span_kind; -1 not said */
    int32_t service;      /* name id; -1 not said */
    int32_t peers[PEER_N];
    char pod[254], space[254], address[64]; /* "" not said */
};

void span_tags_reset(struct span_tags *tags);
/* Unknown tags are ignored. ERR_TOO_LARGE from the table. */
int span_tags_take(struct span_tags *tags, struct span_table *table, const char *key,
                   size_t key_size, const char *value, size_t value_size, struct err *err);
/* The node of `service` as these tags locate it; -1 when service is. -2 and ERR_TOO_LARGE. */
int32_t span_tags_node(const struct span_tags *tags, struct span_table *table, int32_t service,
                       struct err *err);
/* The other side that fits the kind, as a node; -1 when nothing says. */
int32_t span_tags_peer(const struct span_tags *tags, struct span_table *table,
                       enum span_kind kind);

/* An IP address, not a name. */
bool span_text_is_address(const char *text);

#endif
