/* import.c - recorded spans, API objects and resource samples into one model (contract.md 1, 2;
 * request: model/wire/README.md). The parts are joined as an inspection joins its adapters. */
#include "monitor/import.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/adapter.h"
#include "adapters/kubernetes/objects.h"
#include "adapters/spans/reader.h"
#include "adapters/spans/rows.h"
#include "model/base/file.h"
#include "model/base/json.h"
#include "model/model_json.h"
#include "adapters/identity.h"
#include "monitor/resources.h"

#define MAX_FILES 100000 /* a month of files, one every half minute */
#define MAX_ALIASES 1000000
#define MAX_PATH_BYTES 4096

struct import {
    const char *cluster, *resources, *app; /* NULL: not given */
    const char **traces;
    size_t n_traces;
    json_t *tree; /* owned; the texts are its */
};

static int decode_optional(const struct jval *root, const char *key, const char **out,
                           struct err *err)
{
    struct jval v = jval_get(root, key);
    return jval_absent(&v) || jval_null(&v) ? 0 : jval_text(&v, MAX_PATH_BYTES, out, err);
}

static int decode_traces(const struct jval *root, struct import *import, struct err *err)
{
    struct jval list = jval_get(root, "traces");
    size_t n;
    if (jval_array(&list, MAX_FILES, &n, err))
        return -1;
    import->traces = mem_array(n + 1, sizeof *import->traces);
    for (; import->n_traces < n; import->n_traces++) {
        struct jval item = jval_at(&list, import->n_traces);
        if (jval_text(&item, MAX_PATH_BYTES, &import->traces[import->n_traces], err))
            return -1;
    }
    return 0;
}

static int decode_aliases(const struct jval *root, struct identity *identity, struct err *err)
{
    static const char *const keys[] = {"name", "value", NULL};
    struct jval list = jval_get(root, "aliases");
    size_t n;
    if (jval_absent(&list))
        return 0;
    if (jval_array(&list, MAX_ALIASES, &n, err))
        return -1;
    for (size_t i = 0; i < n; i++) {
        struct jval item = jval_at(&list, i);
        const char *foreign, *own;
        if (jval_object(&item, keys, err))
            return -1;
        struct jval name = jval_get(&item, "name"), value = jval_get(&item, "value");
        if (jval_name(&name, &foreign, err) || jval_name(&value, &own, err))
            return -1;
        identity_add(identity, IDENTITY_SERVICE, foreign, own);
    }
    return 0;
}

static int decode(const struct stage_request *request, struct import *import,
                  struct identity *identity, struct err *err)
{
    static const char *const keys[] = {"v",   "traces",  "cluster", "resources",
                                       "app", "aliases", NULL};
    import->tree = json_parse(request->body, request->size, &json_limits_document, err);
    if (!import->tree)
        return -1;
    int64_t version;
    struct jval root = jval_root(import->tree);
    if (jval_object(&root, keys, err))
        return -1;
    struct jval v = jval_get(&root, "v"), app = jval_get(&root, "app");
    if (jval_int(&v, 1, 1, &version, err) || decode_traces(&root, import, err) ||
        decode_optional(&root, "cluster", &import->cluster, err) ||
        decode_optional(&root, "resources", &import->resources, err) ||
        decode_aliases(&root, identity, err))
        return -1;
    return jval_absent(&app) || jval_null(&app) ? 0 : jval_name(&app, &import->app, err);
}

/* A whole JSON file; its errors name it and are all about input. */
static json_t *read_json(const char *path, struct err *err)
{
    AUTO_BUF struct buf text = BUF_INIT;
    const char *name = strcmp(path, "-") == 0 ? "stdin" : path;
    if (file_read(path, json_limits_document.max_bytes, &text, err)) {
        if (err->kind == ERR_NOT_FOUND)
            err->kind = ERR_INPUT;
        return NULL; /* it names the file itself */
    }
    json_t *tree = json_parse(text.data ? text.data : "", text.size, &json_limits_document, err);
    if (!tree)
        err_prefix(err, "%s", name);
    return tree;
}

static int read_cluster(const struct import *import, struct inspection *in, struct err *err)
{
    AUTO_JSON json_t *tree = read_json(import->cluster, err);
    if (!tree)
        return -1;
    AUTO(kube_objects) struct kube_objects *objects = kube_objects_new();
    int rc = kube_objects_add(objects, tree, err);
    json_decref(steal(tree)); /* the spans need the memory */
    static const char *const everything[] = {NULL};
    const struct app_scope app = {import->app, everything, everything};
    const struct kube_choice choice = {.app = import->app ? &app : NULL};
    if (rc == 0)
        rc = kube_objects_model(objects, &choice, in, err);
    return rc ? err_prefix(err, "%s", import->cluster) : 0;
}

static int step(void *arg, int64_t spans, struct err *err)
{
    return stage_progress(arg, spans, NULL, err);
}

static int read_traces(struct stage *stage, const struct import *import,
                       struct span_table *table, struct err *err)
{
    AUTO(span_reader) struct span_reader *reader = span_reader_new(table, JOINER_WINDOW);
    for (size_t i = 0; i < import->n_traces; i++)
        if (span_reader_file(reader, import->traces[i], step, stage, err))
            return -1;
    return span_reader_finish(reader, err);
}

static int add_traffic(const struct import *import, struct span_table *table,
                       struct inspection *in, struct err *err)
{
    AUTO_FREE struct span_end *ends = NULL;
    if (import->cluster)
        ends = span_ends_join(table, in->identity);
    else if (span_ends_make(table, import->app, in->model, &ends, err))
        return -1;
    if (span_rows(table, ends, in, err))
        return -1;
    const struct span_counts *counts = span_table_counts(table);
    in->model->has_messages = true;
    if (counts->from_us >= 0) {
        in->model->from_ms = counts->from_us / 1000;
        in->model->to_ms = counts->to_us / 1000;
    }
    return 0;
}

static int read_resources(const struct import *import, struct inspection *in, struct err *err)
{
    AUTO_JSON json_t *tree = read_json(import->resources, err);
    if (!tree)
        return -1;
    return resources_read(tree, in, err) ? err_prefix(err, "%s", import->resources) : 0;
}

/* stderr is where a person looks; the document alone goes to stdout. */
static void print_summary(const struct span_counts *counts, struct inspection *in)
{
    size_t n;
    const struct unmapped *names = identity_unmapped_names(in->identity, &n);
    fprintf(stderr, "%lld spans of %lld traces: %lld messages; %zu services, %zu pairs\n",
            (long long)counts->spans, (long long)counts->traces, (long long)counts->messages,
            in->model->n_services, in->model->n_messages);
    for (size_t i = 0; i < in->n_notes; i++)
        fprintf(stderr, "%s: %s\n", in->notes[i].kind, in->notes[i].text);
    for (size_t i = 0; i < n; i++)
        fprintf(stderr, "unmapped: %s: %lld messages\n", names[i].name,
                (long long)names[i].count);
    if (in->model->n_messages == 0)
        fprintf(stderr, "no-traffic: no message joins two of these services\n");
}

static int run(struct stage *stage, const struct import *import, struct inspection *in,
               struct err *err)
{
    AUTO(span_table) struct span_table *table = span_table_new();
    if (!import->cluster)
        span_table_drop_addresses(table);
    if ((import->cluster && read_cluster(import, in, err)) ||
        read_traces(stage, import, table, err) || add_traffic(import, table, in, err) ||
        (import->resources && read_resources(import, in, err)))
        return -1;
    print_summary(span_table_counts(table), in);
    identity_report(in->identity, &in->model->traffic);
    return model_check(in->model, err);
}

int import_handle(struct stage *stage, const struct stage_request *request, struct buf *result,
                  int *exit_code, struct err *err)
{
    (void)exit_code;
    AUTO(model) struct model *model = model_new();
    AUTO(identity) struct identity *identity = identity_new(model);
    struct inspection in = {.model = model, .identity = identity};
    struct import import = {0};
    int rc = decode(request, &import, identity, err);
    if (rc == 0)
        rc = run(stage, &import, &in, err);
    if (rc == 0)
        model_encode(model, result);
    inspection_wipe(&in);
    free(import.traces);
    json_decref(import.tree);
    return rc;
}
