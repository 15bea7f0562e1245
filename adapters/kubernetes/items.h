/* items.h - a list of the API, taken in piece by piece as it arrives: each item is handed out as soon as
 * it is there, so that neither the answer nor its tree is ever held whole, and reading goes on while
 * the server still writes. yajl finds the tokens. */
#ifndef REMAP_KUBERNETES_ITEMS_H
#define REMAP_KUBERNETES_ITEMS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include "model/base/err.h"
#include "model/base/mem.h"

struct kube_items;

/* `item` gets a borrowed object per element of `items`. `owners`: with metadata.managedFields, which
 * are nearly half of an object, and of use for few kinds only. */
struct kube_items *kube_items_new(bool owners, void (*item)(void *ctx, const json_t *item), void *ctx);
void kube_items_free(struct kube_items *items);
AUTO_DEFINE(kube_items)

/* ERR_INPUT: it is no JSON, nested too deeply, no list of objects; ERR_TOO_LARGE: one item is. */
int kube_items_feed(struct kube_items *items, const char *text, size_t size, struct err *err);
/* That was all. *head: the list without its items, borrowed. ERR_INPUT when it ends too early. */
int kube_items_end(struct kube_items *items, const json_t **head, struct err *err);

#endif
