/* table.h - objects by key, as lists and watches bring them: put, replaced, removed, and swept when a
 * new list no longer has them. Inside adapters/kubernetes.
 *
 * Items are plain structs that begin with a struct table_head; the table owns what is in them. */
#ifndef REMAP_KUBERNETES_TABLE_H
#define REMAP_KUBERNETES_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include "model/base/names.h"

struct table_head {
    char *key; /* uid, or "namespace/name" where a recording has none */
    unsigned epoch;
    bool gone; /* its place is empty */
};

struct table {
    char *items;
    size_t n, n_gone, size; /* size: of an item */
    unsigned epoch;
    struct names by_key;
    void (*wipe)(void *item); /* all but the key */
};

void table_init(struct table *table, size_t size, void (*wipe)(void *item));
void table_wipe(struct table *table);

/* Takes what *item owns, its key included; what was there under that key is wiped. Returns the place,
 * which holds until the next put or sweep. */
void *table_put(struct table *table, const void *item);
void table_remove(struct table *table, const char *key);
void *table_find(const struct table *table, const char *key); /* NULL: none */
/* Item i < n, or NULL where the place is empty. */
void *table_at(const struct table *table, size_t i);
size_t table_count(const struct table *table);

/* Begins an epoch: what is not put again until table_sweep() goes then, as far as `mine` (NULL: all)
 * says that it belongs to the list. */
void table_renew(struct table *table);
void table_sweep(struct table *table, bool (*mine)(const void *item, const void *arg),
                 const void *arg);

#endif
