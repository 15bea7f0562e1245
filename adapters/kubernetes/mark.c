/* mark.c - see mark.h. Anybody who may edit the workload can write this annotation, so it is read as
 * any text from outside: strictly, with limits, and never trusted for more than this one object. */
#include "adapters/kubernetes/mark.h"

#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/kubernetes/kube.h"
#include "model/base/json.h"

/* The API server takes 256 KiB of annotations in all (apimachinery:pkg/api/validation). */
static const struct json_limits limits = {.max_bytes = (size_t)256 << 10, .max_depth = 32};

#define MAX_HOSTS 5000 /* a cluster's nodes (Kubernetes: large clusters) */

static const char *const pin_names[] = {"preferred", "required", NULL};
static const char *const how_names[] = {"apply", "patch", NULL};

void mark_free(struct mark *mark)
{
    if (!mark)
        return;
    pin_wipe(&mark->pin);
    pin_fields_wipe(&mark->before);
    pin_fields_wipe(&mark->original);
    json_decref(mark->leaf);
    json_decref(mark->constraint);
    json_decref(mark->previous);
    free(mark->uid);
    free(mark->template);
    free(mark->reverted);
    free(mark->stale);
    free(mark);
}

static int read_hosts(const struct jval *root, struct pin *pin, struct err *err)
{
    static const char *const keys[] = {"node", "hostname", "count", NULL};
    struct jval list = jval_get(root, "hosts");
    size_t n;
    if (jval_array(&list, MAX_HOSTS, &n, err))
        return -1;
    for (size_t i = 0; i < n; i++) {
        struct jval row = jval_at(&list, i);
        struct jval node = jval_get(&row, "node"), count = jval_get(&row, "count");
        AUTO_FREE char *hostname = NULL;
        const char *name;
        int64_t number;
        if (jval_object(&row, keys, err) || jval_name(&node, &name, err) ||
            jval_opt_text(&row, "hostname", 253, &hostname, err) ||
            jval_int(&count, 0, MODEL_MAX_INSTANCES, &number, err))
            return -1;
        pin_add(pin, name, hostname, number);
    }
    return 0;
}

static int read_fields(const struct jval *root, const char *key, struct pin_fields *out,
                       struct err *err)
{
    static const char *const keys[] = {"affinity", "spread", NULL};
    struct jval v = jval_get(root, key);
    if (jval_object(&v, keys, err))
        return -1;
    struct jval affinity = jval_get(&v, "affinity"), spread = jval_get(&v, "spread");
    if (affinity.value && !json_is_object(affinity.value))
        return jval_error(&affinity, err, "must be an object");
    if (spread.value && !json_is_array(spread.value))
        return jval_error(&spread, err, "must be an array");
    *out = pin_fields_decode(v.value);
    return 0;
}

static json_t *read_json(const struct jval *root, const char *key)
{
    json_t *value = json_object_get(root->value, key);
    return json_is_null(value) ? NULL : json_incref(value);
}

static int read_text(const struct jval *root, const char *key, char **out, struct err *err)
{
    struct jval v = jval_get(root, key);
    const char *text;
    if (jval_text(&v, 253, &text, err))
        return -1;
    *out = mem_strdup(text);
    return 0;
}

static int read_leaf(const struct jval *root, struct mark *mark, struct err *err)
{
    mark->leaf = read_json(root, "leaf");
    mark->constraint = read_json(root, "constraint");
    struct jval leaf = jval_get(root, "leaf"), constraint = jval_get(root, "constraint");
    bool fits = mark->pin.kind == PIN_REQUIRED ? json_is_object(mark->leaf)
                                               : json_is_array(mark->leaf);
    if (!fits)
        return jval_error(&leaf, err, "is no value of a %s pin", pin_names[mark->pin.kind]);
    if (mark->constraint && !json_is_object(mark->constraint))
        return jval_error(&constraint, err, "must be an object");
    mark->previous = read_json(root, "previous");
    return 0;
}

static int read_mark(const struct jval *root, struct mark *mark, struct err *err)
{
    static const char *const keys[] = {"v",      "uid",        "cycle",  "seq",      "at_ms",
                                       "pin",    "how",        "hosts",  "leaf",     "constraint",
                                       "before", "original",   "template", "reverted", "stale",
                                       "previous", NULL};
    struct jval v = jval_get(root, "v"), cycle = jval_get(root, "cycle");
    struct jval seq = jval_get(root, "seq"), at = jval_get(root, "at_ms");
    struct jval pin = jval_get(root, "pin"), how = jval_get(root, "how");
    int64_t version;
    int kind, way;
    if (jval_object(root, keys, err) || jval_int(&v, 1, 1, &version, err) ||
        read_text(root, "uid", &mark->uid, err) ||
        jval_int(&cycle, 0, MODEL_MAX_NUMBER, &mark->cycle, err) ||
        jval_int(&seq, 1, INT32_MAX, &mark->seq, err) ||
        jval_int(&at, 0, MODEL_MAX_NUMBER, &mark->at_ms, err) ||
        jval_choice(&pin, pin_names, &kind, err) || jval_choice(&how, how_names, &way, err) ||
        read_hosts(root, &mark->pin, err) || read_fields(root, "before", &mark->before, err) ||
        read_fields(root, "original", &mark->original, err) ||
        read_text(root, "template", &mark->template, err) ||
        jval_opt_text(root, "reverted", 253, &mark->reverted, err) ||
        jval_opt_text(root, "stale", 253, &mark->stale, err))
        return -1;
    mark->pin.kind = (enum pin_kind)kind;
    mark->patched = way == 1;
    return read_leaf(root, mark, err);
}

struct mark *mark_decode(const char *text, struct err *err)
{
    AUTO_JSON json_t *tree = json_parse(text, strlen(text), &limits, err);
    AUTO(mark) struct mark *mark = mem_alloc(sizeof *mark);
    struct jval root = jval_root(tree);
    if (!tree || read_mark(&root, mark, err))
        return err_prefix(err, MARK_ANNOTATION), NULL;
    return steal(mark);
}

struct mark *mark_of(const json_t *workload, struct err *err)
{
    const json_t *meta = kube_get(workload, "metadata");
    const char *text = kube_text(kube_get(meta, "annotations"), MARK_ANNOTATION);
    const char *uid = kube_text(meta, "uid");
    if (!text)
        return NULL;
    AUTO(mark) struct mark *mark = mark_decode(text, err);
    if (!mark || !uid || strcmp(mark->uid, uid) != 0)
        return NULL;
    return steal(mark);
}

static json_t *hosts_encode(const struct pin *pin)
{
    json_t *list = json_array();
    for (size_t i = 0; i < pin->n_hosts; i++) {
        const struct pin_host *host = &pin->hosts[i];
        json_array_append_new(list, json_pack("{s:s,s:s?,s:I}", "node", host->node, "hostname",
                                              host->hostname, "count", (json_int_t)host->count));
    }
    return list;
}

static json_t *or_null(json_t *value)
{
    return value ? json_incref(value) : json_null();
}

static json_t *mark_tree(const struct mark *mark)
{
    json_t *tree =
        json_pack("{s:i,s:s,s:I,s:I,s:I,s:s,s:s,s:o}", "v", 1, "uid", mark->uid, "cycle",
                  (json_int_t)mark->cycle, "seq", (json_int_t)mark->seq, "at_ms",
                  (json_int_t)mark->at_ms, "pin", pin_names[mark->pin.kind], "how",
                  how_names[mark->patched], "hosts", hosts_encode(&mark->pin));
    json_object_set_new(tree, "leaf", or_null(mark->leaf));
    json_object_set_new(tree, "constraint", or_null(mark->constraint));
    json_object_set_new(tree, "before", pin_fields_encode(&mark->before));
    json_object_set_new(tree, "original", pin_fields_encode(&mark->original));
    json_object_set_new(tree, "template", json_string(mark->template));
    json_object_set_new(tree, "reverted",
                        mark->reverted ? json_string(mark->reverted) : json_null());
    json_object_set_new(tree, "stale", mark->stale ? json_string(mark->stale) : json_null());
    json_object_set_new(tree, "previous", or_null(mark->previous));
    return tree;
}

char *mark_encode(const struct mark *mark)
{
    AUTO_JSON json_t *tree = mark_tree(mark);
    return json_dumps(tree, JSON_COMPACT);
}

char *mark_previous(const struct mark *mark)
{
    return mark->previous ? json_dumps(mark->previous, JSON_COMPACT) : NULL;
}

bool mark_holds(const struct mark *mark, const json_t *workload)
{
    AUTO_PIN_FIELDS struct pin_fields now = pin_fields_of(workload);
    const json_t *leaf = pin_leaf_get(now.affinity, mark->pin.kind);
    return leaf && json_equal(leaf, mark->leaf);
}

bool mark_wants(const struct mark *mark, const struct pin *pin)
{
    bool same = mark->pin.n_hosts == pin->n_hosts;
    for (size_t i = 0; same && i < pin->n_hosts; i++)
        same = strcmp(mark->pin.hosts[i].node, pin->hosts[i].node) == 0 &&
               mark->pin.hosts[i].count == pin->hosts[i].count;
    return same;
}

char *mark_template(const json_t *workload)
{
    AUTO_JSON json_t *template = json_deep_copy(kube_path(workload, "spec", "template"));
    json_t *spec = json_object_get(template, "spec");
    json_object_del(spec, "affinity");
    json_object_del(spec, "topologySpreadConstraints");
    char *dumped = template /* anything at all, from a server that is none */
                       ? json_dumps(template, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY)
                       : NULL;
    AUTO_FREE char *text = dumped ? dumped : mem_strdup("");
    unsigned char digest[SHA256_DIGEST_LENGTH];
    SHA256((const unsigned char *)text, strlen(text), digest);
    char *hex = mem_alloc(2 * sizeof digest + 1);
    for (size_t i = 0; i < sizeof digest; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    return hex;
}
