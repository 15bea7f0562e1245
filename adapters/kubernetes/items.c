/* items.c - yajl's events as trees of jansson, one item at a time (items.h;
 * kubernetes/website:content/en/docs/reference/using-api/api-concepts.md). */
#include "adapters/kubernetes/items.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

#include "model/base/buf.h"

#define MAX_DEPTH 64                        /* as json_limits_document; pods need some 15 */
#define ITEM_MAX_BYTES ((size_t)16 << 20)   /* etcd takes objects of 1.5 MiB */
#define LIST_DEPTH 1                        /* inside the list itself */
#define ITEMS_DEPTH 2                       /* inside its array `items` */
#define META_DEPTH 4                        /* inside an item's `metadata` */

struct level { /* an open object or array */
    json_t *tree;   /* owned by the level above, that of items by nobody; NULL: array `items` */
    struct buf key; /* the one that was read last */
};

struct kube_items {
    yajl_handle yajl;
    bool owners;
    void (*item)(void *ctx, const json_t *item);
    void *ctx;
    struct level levels[MAX_DEPTH + 1]; /* [0]: outside */
    size_t depth;
    size_t skipped; /* open below something that nobody wants */
    json_t *head;   /* the list, less its items */
    size_t item_bytes; /* fed since an item ended */
    struct err *err;   /* of the running call */
};

static int refuse(struct kube_items *items, const char *why)
{
    err_set(items->err, ERR_INPUT, "%s", why);
    return 0;
}

static struct level *top(struct kube_items *items)
{
    return &items->levels[items->depth];
}

static const char *key_of(const struct level *level)
{
    return level->key.data ? level->key.data : "";
}

/* Does nobody want what comes now? */
static bool is_skipped(struct kube_items *items)
{
    return items->skipped > 0 ||
           (!items->owners && items->depth == META_DEPTH && !items->levels[ITEMS_DEPTH].tree &&
            strcmp(key_of(&items->levels[META_DEPTH - 1]), "metadata") == 0 &&
            strcmp(key_of(top(items)), "managedFields") == 0);
}

/* Takes over `value`, NULL where memory is short. */
static int put(struct kube_items *items, json_t *value)
{
    struct level *level = top(items);
    if (!value)
        return refuse(items, "holds a text that is none");
    if (items->depth == 0) {
        json_decref(value);
        return refuse(items, "is no object");
    }
    if (!level->tree) { /* element of `items`: opened by begin() alone */
        json_decref(value);
        return refuse(items, "has an item that is no object");
    }
    int rc = json_is_array(level->tree)
                 ? json_array_append_new(level->tree, value)
                 : json_object_set_new_nocheck(level->tree, key_of(level), value);
    return rc == 0 ? 1 : refuse(items, "is too large for the memory");
}

/* jansson's texts end at the first zero byte: such a text would be another one. */
static bool has_zero(const unsigned char *text, size_t size)
{
    return size && memchr(text, 0, size);
}

static int on_null(void *ctx)
{
    return is_skipped(ctx) ? 1 : put(ctx, json_null());
}

static int on_bool(void *ctx, int value)
{
    return is_skipped(ctx) ? 1 : put(ctx, json_boolean(value));
}

static int on_number(void *ctx, const char *text, size_t size)
{
    char copy[64];
    char *end;
    if (is_skipped(ctx))
        return 1;
    if (size >= sizeof copy)
        return refuse(ctx, "has a number out of range");
    memcpy(copy, text, size);
    copy[size] = '\0';
    errno = 0;
    if (strpbrk(copy, ".eE")) {
        double real = strtod(copy, &end);
        return isfinite(real) ? put(ctx, json_real(real)) : refuse(ctx, "has a number out of range");
    }
    long long whole = strtoll(copy, &end, 10);
    return errno ? refuse(ctx, "has a number out of range") : put(ctx, json_integer(whole));
}

static int on_text(void *ctx, const unsigned char *text, size_t size)
{
    if (is_skipped(ctx))
        return 1;
    return put(ctx, has_zero(text, size) ? NULL : json_stringn_nocheck((const char *)text, size));
}

static int on_key(void *ctx, const unsigned char *text, size_t size)
{
    struct kube_items *items = ctx;
    if (items->skipped)
        return 1;
    if (has_zero(text, size))
        return refuse(items, "holds a text that is none");
    buf_clear(&top(items)->key);
    buf_add(&top(items)->key, (const char *)text, size);
    return 1;
}

static int enter(struct kube_items *items, json_t *tree)
{
    items->depth++;
    top(items)->tree = tree;
    buf_clear(&top(items)->key);
    return 1;
}

static int begin(struct kube_items *items, bool array)
{
    if (items->depth + items->skipped >= MAX_DEPTH)
        return refuse(items, "is nested too deeply");
    if (is_skipped(items)) {
        items->skipped++;
        return 1;
    }
    struct level *level = top(items);
    if (items->depth == LIST_DEPTH && array && strcmp(key_of(level), "items") == 0)
        return enter(items, NULL);
    json_t *tree = array ? json_array() : json_object();
    bool is_item = items->depth == ITEMS_DEPTH && !level->tree;
    if (items->depth == 0 && !array && !items->head) {
        items->head = tree;
    } else if (is_item && array) {
        json_decref(tree);
        return refuse(items, "has an item that is no object");
    } else if (!is_item && !put(items, tree)) {
        return 0;
    }
    return enter(items, tree);
}

static int on_start_object(void *ctx)
{
    return begin(ctx, false);
}

static int on_start_array(void *ctx)
{
    return begin(ctx, true);
}

static int on_end(void *ctx)
{
    struct kube_items *items = ctx;
    if (items->skipped) {
        items->skipped--;
        return 1;
    }
    json_t *tree = top(items)->tree;
    top(items)->tree = NULL;
    items->depth--;
    if (items->depth == ITEMS_DEPTH && !top(items)->tree) {
        items->item(items->ctx, tree);
        json_decref(tree);
        items->item_bytes = 0;
    }
    return 1;
}

struct kube_items *kube_items_new(bool owners, void (*item)(void *ctx, const json_t *item), void *ctx)
{
    static const yajl_callbacks callbacks = {
        .yajl_null = on_null,
        .yajl_boolean = on_bool,
        .yajl_number = on_number,
        .yajl_string = on_text,
        .yajl_start_map = on_start_object,
        .yajl_map_key = on_key,
        .yajl_end_map = on_end,
        .yajl_start_array = on_start_array,
        .yajl_end_array = on_end,
    };
    struct kube_items *items = mem_alloc(sizeof *items);
    items->owners = owners;
    items->item = item;
    items->ctx = ctx;
    items->yajl = yajl_alloc(&callbacks, NULL, items);
    if (!items->yajl)
        abort(); /* it only allocates */
    return items;
}

void kube_items_free(struct kube_items *items)
{
    if (!items)
        return;
    if (items->depth > ITEMS_DEPTH && !items->levels[ITEMS_DEPTH].tree)
        json_decref(items->levels[ITEMS_DEPTH + 1].tree); /* an item that did not end */
    json_decref(items->head);
    for (size_t i = 0; i <= MAX_DEPTH; i++)
        buf_wipe(&items->levels[i].key);
    yajl_free(items->yajl);
    free(items);
}

static int take(struct kube_items *items, yajl_status status, struct err *err)
{
    items->err = NULL;
    if (status == yajl_status_ok)
        return 0;
    return err->kind == ERR_NONE ? err_set(err, ERR_INPUT, "the list is no JSON") : -1;
}

int kube_items_feed(struct kube_items *items, const char *text, size_t size, struct err *err)
{
    struct err why = ERR_INIT;
    items->item_bytes += size;
    items->err = &why;
    int rc = take(items, yajl_parse(items->yajl, (const unsigned char *)text, size), &why);
    if (rc == 0 && items->item_bytes > ITEM_MAX_BYTES + size)
        rc = err_set(&why, ERR_TOO_LARGE, "an item above %zu bytes", ITEM_MAX_BYTES);
    if (rc)
        *err = why;
    return rc;
}

int kube_items_end(struct kube_items *items, const json_t **head, struct err *err)
{
    struct err why = ERR_INIT;
    items->err = &why;
    int rc = take(items, yajl_complete_parse(items->yajl), &why);
    if (rc == 0 && !items->head)
        rc = err_set(&why, ERR_INPUT, "the list is empty");
    if (rc)
        *err = why;
    else
        *head = items->head;
    return rc;
}
