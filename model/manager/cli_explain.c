/* cli_explain.c - `remap explain CYCLE [SERVICE]`: why the placement is what it is, in sentences. */
#include <inttypes.h>
#include <string.h>
#include "model/base/json.h"
#include "model/base/mem.h"
#include "model/manager/cli_read.h"
#include "model/manager/explain.h"

/* More than these nobody reads on a terminal; a service or -o json narrows or has all. */
#define MAX_AFFINITIES 20

/* What calm, sources and stages had to say; the changes of state are in `show` and `events`. */
#define EVENTS                                                                                     \
    "SELECT kind, text FROM v_events WHERE cycle_id = CAST(?1 AS INTEGER) AND kind <> 'cycle'"     \
    " ORDER BY event_id"

static int put_events(struct store *store, const char *const *args, struct buf *out,
                      struct err *err)
{
    AUTO(store_rows) struct store_rows *rows = NULL;
    if (store_select(store, EVENTS, args, &rows, err)) {
        return -1;
    }
    int rc;
    for (bool first = true; (rc = store_rows_next(rows, err)) == 1; first = false) {
        AUTO_FREE char *lead = mem_printf("  %s: ", store_rows_text(rows, 0));
        buf_puts(out, first ? "\nWhat was noted:\n" : "");
        put_folded(out, lead, store_rows_text(rows, 1));
    }
    return rc;
}

static void put_head(const struct decision *d, struct buf *out)
{
    buf_printf(out, "Cycle %" PRId64 " of %s: ", d->cycle.id, d->cycle.app);
    put_state(out, d->cycle.state);
    buf_printf(out, "%s%s.\n", d->cycle.reason ? ": " : "", d->cycle.reason ? d->cycle.reason : "");
    if (!d->plan) {
        buf_printf(out, "It made no plan%s.\n", d->model ? "" : " and had no snapshot of the cluster");
        return;
    }
    const struct plan *plan = d->plan;
    AUTO_FREE char *line = mem_printf(
        "Planned by %s%s%s: affinity %.4f to %.4f, hosts %" PRId64 " to %" PRId64 ".",
        plan->planner ? plan->planner : "-", plan->why ? ", " : "", plan->why ? plan->why : "",
        plan->affinity_before, plan->affinity_after, plan->hosts_before, plan->hosts_after);
    put_folded(out, "", line);
}

static void put_explanation(const struct explanation *e, const char *service, struct buf *out)
{
    if (e->where) {
        buf_printf(out, "\n%s is on %s. Its partners:\n", service, e->where);
        for (size_t i = 0; i < e->n_partners; i++) {
            buf_printf(out, "  %.4f  %s\n", e->partners[i].degree, e->partners[i].text);
        }
    }
    buf_puts(out, e->n_affinities ? "\nAffinities, strongest first:\n" : "\nNo affinities.\n");
    for (size_t i = 0; i < e->n_affinities; i++) {
        AUTO_FREE char *lead = mem_printf("  %.4f  ", e->affinities[i].row->degree);
        AUTO_FREE char *line = mem_printf("%s.", e->affinities[i].text);
        put_folded(out, lead, line);
    }
    if (e->n_more) {
        buf_printf(out, "  and %zu weaker; name a service, or see all with -o json.\n", e->n_more);
    }
    buf_puts(out, e->n_moves ? "\nMoves:\n" : "\nNo moves.\n");
    for (size_t i = 0; i < e->n_moves; i++) {
        AUTO_FREE char *lead = mem_printf("  %" PRId64 ". ", e->moves[i].seq);
        AUTO_FREE char *line = mem_printf("%s.", e->moves[i].text);
        put_folded(out, lead, line);
    }
}

static void put_json(const struct decision *d, const struct explanation *e, struct buf *out)
{
    buf_puts(out, ",\"affinities\":[");
    for (size_t i = 0; e && i < e->n_affinities; i++) {
        const struct explained_affinity *x = &e->affinities[i];
        buf_puts(out, i ? ",{\"a\":" : "{\"a\":");
        json_put_text(out, model_end_name(d->model, x->row->level, x->row->a));
        buf_puts(out, ",\"b\":");
        json_put_text(out, model_end_name(d->model, x->row->level, x->row->b));
        buf_puts(out, ",\"degree\":");
        json_put_real(out, x->row->degree);
        buf_printf(out, ",\"honoured\":\"%s\",\"local_before\":", honoured_name(x->honoured));
        json_put_real(out, x->share_before);
        buf_puts(out, ",\"local_after\":");
        json_put_real(out, x->share_after);
        buf_puts(out, ",\"text\":");
        json_put_text(out, x->text);
        buf_puts(out, "}");
    }
    buf_puts(out, "],\"moves\":[");
    for (size_t i = 0; e && i < e->n_moves; i++) {
        buf_printf(out, "%s{\"seq\":%" PRId64 ",\"text\":", i ? "," : "", e->moves[i].seq);
        json_put_text(out, e->moves[i].text);
        buf_puts(out, "}");
    }
    buf_puts(out, "],\"where\":");
    json_put_text(out, e ? e->where : NULL);
    buf_puts(out, ",\"partners\":[");
    for (size_t i = 0; e && i < e->n_partners; i++) {
        buf_puts(out, i ? ",{\"service\":" : "{\"service\":");
        json_put_text(out, d->model->services[e->partners[i].service].name);
        buf_puts(out, ",\"degree\":");
        json_put_real(out, e->partners[i].degree);
        buf_puts(out, ",\"text\":");
        json_put_text(out, e->partners[i].text);
        buf_puts(out, "}");
    }
    buf_puts(out, "],");
}

static int print(struct cli *cli, struct store *store, const struct decision *d, int service,
                 struct err *err)
{
    AUTO(explanation) struct explanation *e = NULL;
    AUTO_BUF struct buf out = BUF_INIT;
    AUTO_FREE char *id = mem_printf("%" PRId64, d->cycle.id);
    const char *const args[] = {id, NULL};
    bool json = cli->output == CLI_JSON;
    if (d->model) {
        e = explain(d, service, json || service >= 0 ? SIZE_MAX : MAX_AFFINITIES);
    }
    if (json) {
        buf_printf(&out, "{\"v\":1,\"cycle_id\":%s,\"state\":\"%s\",\"reason\":", id,
                   d->cycle.state);
        json_put_text(&out, d->cycle.reason);
        put_json(d, e, &out);
        if (cli_read_rows(store, "events", EVENTS, args, &out, err)) {
            return -1;
        }
        buf_puts(&out, "}");
        return cli_print_json(&out, err);
    }
    put_head(d, &out);
    if (e) {
        put_explanation(e, service >= 0 ? d->model->services[service].name : NULL, &out);
    }
    return put_events(store, args, &out, err) ? -1 : cli_print_text(&out, err);
}

/* Index of the service; ERR_NOT_FOUND with the nearest name. */
static int find_service(const struct decision *d, const char *name, int *out, struct err *err)
{
    const struct model *model = d->model;
    *out = model ? model_service(model, name) : -1;
    if (*out >= 0) {
        return 0;
    }
    size_t n = model ? model->n_services : 0;
    AUTO_FREE const char **names = mem_array(n + 1, sizeof *names);
    for (size_t i = 0; i < n; i++) {
        names[i] = model->services[i].name;
    }
    const char *near = names_nearest(name, names);
    return err_set(err, ERR_NOT_FOUND, "cycle %" PRId64 ": knows no service %s%s%s%s", d->cycle.id,
                   name, near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

static int explain_run(struct cli *cli, struct err *err)
{
    int64_t id;
    int service = -1;
    AUTO(store) struct store *store = NULL;
    AUTO_DECISION struct decision d = {0};
    if (cli_arg_cycle(cli, 0, &id, err) || cli_read_open(cli, &store, err) ||
        decision_load(store, id, &d, err)) {
        return -1;
    }
    if (cli->n_args > 1 && find_service(&d, cli->args[1], &service, err)) {
        return -1;
    }
    return print(cli, store, &d, service, err);
}

const struct cli_command cmd_explain = {
    .name = "explain",
    .args = "CYCLE [SERVICE]",
    .min_args = 1,
    .max_args = 2,
    .summary = "why a cycle placed what where, in sentences",
    .about = "Which affinities are honoured and why others are not, why each move is made and what\n"
             "became of it, and for a service where its partners are.",
    .examples = "remap explain 12\nremap explain 12 front-end\n",
    .common = CLI_CONFIG | CLI_STORE,
    .outputs = CLI_TEXT | CLI_JSON,
    .run = explain_run,
};
