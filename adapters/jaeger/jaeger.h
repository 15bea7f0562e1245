/* jaeger.h - messages from Jaeger's query service (paper §6.1; interfaces.md 5.3). */
#ifndef REMAP_JAEGER_JAEGER_H
#define REMAP_JAEGER_JAEGER_H

#include "adapters/adapter.h"

extern const struct message_adapter jaeger_messages;

#endif
