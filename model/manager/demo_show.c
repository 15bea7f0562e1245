/* demo_show.c - before and after of one cycle, from its snapshots, analysis and v_savings. */
#include "model/manager/demo_show.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/json.h"
#include "model/manager/table.h"
#include "model/model_json.h"

struct shown {
    struct model *before, *after; /* after NULL: not verified, nothing was moved */
    struct analysis *analysis;
    struct draw_edge *edges;
    size_t n_edges;
    json_t *savings; /* the row of v_savings; NULL: none */
    json_t *cycle;   /* the row of v_cycles */
};

static void shown_wipe(struct shown *shown)
{
    model_free(shown->before);
    model_free(shown->after);
    analysis_free(shown->analysis);
    free(shown->edges);
    json_decref(shown->savings);
    json_decref(shown->cycle);
}
#define AUTO_SHOWN __attribute__((cleanup(shown_wipe)))

static struct model *load_model(struct store *store, int64_t cycle, const char *phase,
                                struct err *err)
{
    AUTO_BUF struct buf text = BUF_INIT;
    if (store_snapshot_load(store, cycle, phase, &text, err))
        return NULL;
    return model_decode(text.data, text.size, err);
}

/* The first row of a query as an object; NULL without error when there is none. */
static int load_row(struct store *store, const char *sql, int64_t cycle, json_t **out,
                    struct err *err)
{
    AUTO_BUF struct buf text = BUF_INIT;
    AUTO_FREE char *id = mem_printf("%lld", (long long)cycle);
    const char *args[] = {id, NULL};
    if (store_query_json(store, sql, args, &text, err))
        return -1;
    AUTO_JSON json_t *rows = json_parse(text.data, text.size, &json_limits_document, err);
    if (!rows)
        return -1;
    *out = json_incref(json_array_get(rows, 0));
    return 0;
}

static int load_edges(struct store *store, int64_t cycle, struct shown *shown, struct err *err)
{
    AUTO_BUF struct buf text = BUF_INIT;
    struct err absent = ERR_INIT;
    if (store_analysis_load(store, cycle, &text, &absent))
        return absent.kind == ERR_NOT_FOUND ? 0 : (*err = absent, -1);
    AUTO_JSON json_t *tree = json_parse(text.data, text.size, &json_limits_document, err);
    if (!tree)
        return -1;
    struct jval root = jval_root(tree);
    shown->analysis = analysis_decode_value(&root, shown->before, err);
    if (!shown->analysis)
        return -1;
    const struct analysis *a = shown->analysis;
    shown->edges = mem_array(a->n_service_rows + 1, sizeof *shown->edges);
    for (size_t i = 0; i < a->n_service_rows; i++)
        shown->edges[shown->n_edges++] = (struct draw_edge){
            model_end_name(shown->before, LEVEL_SERVICE, a->service_rows[i].a),
            model_end_name(shown->before, LEVEL_SERVICE, a->service_rows[i].b),
            a->service_rows[i].degree};
    return 0;
}

static int load(struct store *store, int64_t cycle, struct shown *shown, struct err *err)
{
    struct err absent = ERR_INIT;
    if (load_row(store, "SELECT * FROM v_cycles WHERE cycle_id = ?", cycle, &shown->cycle, err) ||
        load_row(store, "SELECT * FROM v_savings WHERE cycle_id = ?", cycle, &shown->savings, err))
        return -1;
    shown->before = load_model(store, cycle, "base", err);
    if (!shown->before || load_edges(store, cycle, shown, err))
        return -1;
    shown->after = load_model(store, cycle, "verify", &absent);
    if (!shown->after && absent.kind != ERR_NOT_FOUND) {
        *err = absent;
        return -1;
    }
    return 0;
}

/* --- tables --- */

static double number(const json_t *row, const char *key)
{
    const json_t *value = json_object_get(row, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static void cell_number(struct table *table, const char *fmt, double value)
{
    if (isnan(value))
        table_cell(table, NULL);
    else
        table_printf(table, fmt, value);
}

static void cell_change(struct table *table, double before, double after)
{
    if (isnan(before) || isnan(after) || before == 0)
        table_cell(table, NULL);
    else
        table_printf(table, "%+.0f%%", 100 * (after - before) / before);
}

static void put_measures(const json_t *s, struct buf *out)
{
    static const char *const titles[] = {"", ">before", ">predicted", ">measured", ">change",
                                         NULL};
    static const struct {
        const char *name, *fmt, *before, *predicted, *realised;
        bool inverse; /* the column is a share that stays: shown as what crosses */
        double scale;
    } rows[] = {
        {"traffic that crosses hosts", "%.1f%%", "local_before", "local_predicted",
         "local_realised", true, 100},
        {"mean response time per call", "%.2f ms", "response_before_ms", "response_predicted_ms",
         "response_realised_ms", false, 1},
        {"affinity kept on hosts", "%.4f", "affinity_before", "affinity_predicted",
         "affinity_realised", false, 1},
        {"hosts in use", "%.0f", "hosts_before", "hosts_predicted", "hosts_realised", false, 1},
    };
    AUTO(table) struct table *table = table_new(titles);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        double v[3] = {number(s, rows[i].before), number(s, rows[i].predicted),
                       number(s, rows[i].realised)};
        table_cell(table, rows[i].name);
        for (int k = 0; k < 3; k++) {
            v[k] = rows[i].inverse ? 1 - v[k] : v[k];
            cell_number(table, rows[i].fmt, v[k] * rows[i].scale);
        }
        cell_change(table, v[0], v[2]);
    }
    table_put(table, 2, out);
}

struct host_sum {
    int64_t cpu_millis, mem_bytes;
    int instances;
};

static struct host_sum host_sum(const struct model *model, const char *name)
{
    int h = model_host(model, name);
    struct host_sum sum = {0};
    if (h < 0)
        return sum;
    sum.cpu_millis = model->hosts[h].cpu_used_millis;
    sum.mem_bytes = model->hosts[h].mem_used_bytes;
    for (size_t i = 0; i < model->n_instances; i++)
        if (model->instances[i].host == h) {
            sum.cpu_millis += model->instances[i].cpu_used_millis;
            sum.mem_bytes += model->instances[i].mem_used_bytes;
            sum.instances++;
        }
    return sum;
}

/* A screen of hosts; the store has all. */
#define MAX_HOSTS 40

static void put_hosts(const struct shown *shown, struct buf *out)
{
    static const char *const titles[] = {"host",    ">instances", ">after",  ">cpu used", ">after",
                                         ">of",     ">memory",    ">after", ">of",       NULL};
    AUTO(table) struct table *table = table_new(titles);
    const struct model *b = shown->before, *a = shown->after ? shown->after : shown->before;
    for (size_t i = 0; i < b->n_hosts && i < MAX_HOSTS; i++) {
        const struct host *host = &b->hosts[i];
        struct host_sum was = host_sum(b, host->name), is = host_sum(a, host->name);
        table_cell(table, host->name);
        table_printf(table, "%d", was.instances);
        table_printf(table, "%d", is.instances);
        table_printf(table, "%lldm", (long long)was.cpu_millis);
        table_printf(table, "%lldm", (long long)is.cpu_millis);
        table_printf(table, "%lldm", (long long)host->cpu_cap_millis);
        table_printf(table, "%lld MiB", (long long)(was.mem_bytes >> 20));
        table_printf(table, "%lld MiB", (long long)(is.mem_bytes >> 20));
        table_printf(table, "%lld MiB", (long long)(host->mem_cap_bytes >> 20));
    }
    table_put(table, 2, out);
    if (b->n_hosts > MAX_HOSTS)
        buf_printf(out, "  … and %zu more\n", b->n_hosts - MAX_HOSTS);
}

static void title(const struct draw_style *style, const char *text, struct buf *out)
{
    buf_printf(out, "\n%s%s%s\n", style->colour ? "\033[1m" : "", text,
               style->colour ? "\033[0m" : "");
}

static const char *text_of(const json_t *row, const char *key)
{
    const char *text = json_string_value(json_object_get(row, key));
    return text ? text : "";
}

int demo_show(struct store *store, int64_t cycle, const struct draw_style *style, struct buf *out,
              struct err *err)
{
    AUTO_SHOWN struct shown shown = {0};
    if (load(store, cycle, &shown, err))
        return -1;
    /* What a cycle that ended well has to say is in the table below. */
    const char *state = text_of(shown.cycle, "state");
    const char *reason = strcmp(state, "done") == 0 && shown.after
                             ? "" : text_of(shown.cycle, "reason");
    title(style, "Before", out);
    draw_placement(shown.before, shown.edges, shown.n_edges, NULL, style, out);
    if (shown.after) {
        title(style, "After (+ has come)", out);
        draw_placement(shown.after, shown.edges, shown.n_edges, shown.before, style, out);
    }
    title(style, "Hosts", out);
    put_hosts(&shown, out);
    buf_printf(out, "\nCycle %lld: %s%s%s, %.0f of %.0f moves applied\n", (long long)cycle,
               state, *reason ? ": " : "", reason,
               number(shown.cycle, "moves_applied"), number(shown.cycle, "moves_planned"));
    if (shown.savings)
        put_measures(shown.savings, out);
    return 0;
}

static void put_placement(const char *key, const struct model *model, struct buf *out)
{
    buf_printf(out, ",\"%s\":", key);
    if (!model) {
        buf_puts(out, "null");
        return;
    }
    buf_puts(out, "[");
    for (size_t i = 0; i < model->n_instances; i++) {
        const struct instance *instance = &model->instances[i];
        buf_puts(out, i ? ",{\"instance\":" : "{\"instance\":");
        json_put_text(out, instance->name);
        buf_puts(out, ",\"service\":");
        json_put_text(out, model->services[instance->service].name);
        buf_puts(out, ",\"host\":");
        json_put_text(out, instance->host < 0 ? NULL : model->hosts[instance->host].name);
        buf_puts(out, "}");
    }
    buf_puts(out, "]");
}

int demo_json(struct store *store, int64_t cycle, struct buf *out, struct err *err)
{
    AUTO_SHOWN struct shown shown = {0};
    if (load(store, cycle, &shown, err))
        return -1;
    AUTO_FREE char *row = json_dumps(shown.cycle, JSON_COMPACT);
    AUTO_FREE char *savings = shown.savings ? json_dumps(shown.savings, JSON_COMPACT) : NULL;
    buf_printf(out, "\"cycle\":%s,\"savings\":%s", row, savings ? savings : "null");
    put_placement("before", shown.before, out);
    put_placement("after", shown.after, out);
    return 0;
}
