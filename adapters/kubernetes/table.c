/* table.c - an array with a map of keys (table.h). Removed items leave an empty place, so that the
 * map stays right; when half of the places are empty both are made anew. */
#include "adapters/kubernetes/table.h"

#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"

#define COMPACT_FROM 64 /* empty places; below, they cost nothing worth the work */

static struct table_head *head_at(const struct table *table, size_t i)
{
    return (struct table_head *)(void *)(table->items + i * table->size);
}

void table_init(struct table *table, size_t size, void (*wipe)(void *item))
{
    *table = (struct table){.size = size, .wipe = wipe};
}

void table_wipe(struct table *table)
{
    names_wipe(&table->by_key); /* it borrows the keys */
    for (size_t i = 0; i < table->n; i++) {
        struct table_head *head = head_at(table, i);
        if (!head->gone)
            table->wipe(head);
        free(head->key);
    }
    free(table->items);
    table_init(table, table->size, table->wipe);
}

static void compact(struct table *table)
{
    size_t kept = 0;
    names_wipe(&table->by_key);
    table->by_key = (struct names)NAMES_INIT;
    for (size_t i = 0; i < table->n; i++) {
        struct table_head *head = head_at(table, i);
        if (head->gone) {
            free(head->key);
            continue;
        }
        if (kept != i)
            memcpy(head_at(table, kept), head, table->size);
        names_add(&table->by_key, head_at(table, kept)->key, (int)kept);
        kept++;
    }
    table->n = kept;
    table->n_gone = 0;
}

void *table_find(const struct table *table, const char *key)
{
    int at = key ? names_get(&table->by_key, key) : -1;
    return at < 0 ? NULL : table_at(table, (size_t)at);
}

void *table_at(const struct table *table, size_t i)
{
    struct table_head *head = head_at(table, i);
    return head->gone ? NULL : head;
}

size_t table_count(const struct table *table)
{
    return table->n - table->n_gone;
}

/* The key stays, for the map. */
static void drop(struct table *table, struct table_head *head)
{
    table->wipe(head);
    head->gone = true;
    table->n_gone++;
    if (table->n_gone >= COMPACT_FROM && table->n_gone * 2 > table->n)
        compact(table);
}

void *table_put(struct table *table, const void *item)
{
    const struct table_head *from = item;
    int at = names_get(&table->by_key, from->key);
    struct table_head *to;
    if (at >= 0) {
        to = head_at(table, (size_t)at);
        if (to->gone)
            table->n_gone--;
        else
            table->wipe(to);
        char *key = to->key; /* the map's */
        memcpy(to, item, table->size);
        free(to->key);
        to->key = key;
    } else {
        if ((table->n & (table->n - 1)) == 0) /* 0, 1, 2, 4, …: maybe full */
            table->items = mem_resize(table->items, table->n ? table->n * 2 : 1, table->size);
        to = head_at(table, table->n);
        memcpy(to, item, table->size);
        names_add(&table->by_key, to->key, (int)table->n++);
    }
    to->gone = false;
    to->epoch = table->epoch;
    return to;
}

void table_remove(struct table *table, const char *key)
{
    struct table_head *head = table_find(table, key);
    if (head)
        drop(table, head);
}

void table_renew(struct table *table)
{
    table->epoch++;
}

void table_sweep(struct table *table, bool (*mine)(const void *item, const void *arg),
                 const void *arg)
{
    for (size_t i = 0; i < table->n;) {
        struct table_head *head = head_at(table, i);
        size_t before = table->n;
        if (!head->gone && head->epoch != table->epoch && (!mine || mine(head, arg)))
            drop(table, head);
        i = table->n == before ? i + 1 : 0; /* compacted: places have moved */
    }
}
