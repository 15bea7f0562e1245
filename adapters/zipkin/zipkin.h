/* zipkin.h - messages from a Zipkin v2 server (paper §6.1; interfaces.md 5.1). */
#ifndef REMAP_ZIPKIN_ZIPKIN_H
#define REMAP_ZIPKIN_ZIPKIN_H

#include "adapters/adapter.h"

extern const struct message_adapter zipkin_messages;

#endif
