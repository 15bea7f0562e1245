/* watch.h - one line of a watch (interfaces.md 1.2). Inside adapters/kubernetes. */
#ifndef REMAP_KUBERNETES_WATCH_H
#define REMAP_KUBERNETES_WATCH_H

#include <jansson.h>
#include <stddef.h>
#include "model/base/err.h"

enum watch_kind { WATCH_PUT, WATCH_GONE, WATCH_BOOKMARK, WATCH_ERROR };

struct watch_event {
    enum watch_kind kind;
    json_t *tree;         /* owned */
    const json_t *object; /* in it; NULL with WATCH_ERROR */
    const char *version;  /* in it: to go on from here; NULL with WATCH_ERROR */
    long code;            /* of WATCH_ERROR: 410, the server has forgotten what came after */
};

/* ERR_INPUT says what is wrong. */
int watch_decode(const char *text, size_t size, struct watch_event *out, struct err *err);
void watch_wipe(struct watch_event *event);

#endif
