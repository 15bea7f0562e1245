/* cli_replay.c - `remap replay CYCLE`: plans the stored snapshot again with the stored options and
 * analysis. Same snapshot, same configuration: the same plan, byte for byte but for measured times
 * (design.md 5). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "model/base/json.h"
#include "model/base/mem.h"
#include "model/manager/cli_read.h"
#include "model/manager/decision.h"
#include "model/manager/filter.h"
#include "model/model_json.h"

/* The stored options; a search that the clock cut is repeated by its count instead. */
static int put_options(const struct decision *d, struct buf *out, struct err *err)
{
    if (!d->plan->cut) {
        buf_add(out, d->options_text.data, d->options_text.size);
        return 0;
    }
    AUTO_JSON json_t *tree = json_parse(d->options_text.data, d->options_text.size,
                                        &json_limits_document, err);
    if (!tree) {
        return -1;
    }
    json_object_set_new(tree, "iterations", json_integer(d->plan->iterations));
    AUTO_FREE char *text = json_dumps(tree, JSON_COMPACT | JSON_ENSURE_ASCII);
    buf_puts(out, text);
    return 0;
}

static int make_request(const struct decision *d, struct buf *out, struct err *err)
{
    buf_puts(out, "{\"v\":1,\"options\":");
    if (put_options(d, out, err)) {
        return -1;
    }
    buf_puts(out, ",\"model\":");
    buf_add(out, d->model_text.data, d->model_text.size);
    buf_puts(out, ",\"analysis\":");
    if (d->analysis_text.size) {
        buf_add(out, d->analysis_text.data, d->analysis_text.size);
    } else {
        buf_puts(out, "null");
    }
    buf_puts(out, "}");
    return 0;
}

static struct plan *plan_again(const struct decision *d, struct err *err)
{
    AUTO_BUF struct buf request = BUF_INIT;
    AUTO_BUF struct buf result = BUF_INIT;
    int exit_code; /* infeasible or timed out is a plan document like another */
    if (make_request(d, &request, err) ||
        stage_filter_run(PARTY_PLANNER, MSG_PLAN, request.data, request.size, false, &result,
                         &exit_code, err)) {
        return NULL;
    }
    AUTO_JSON json_t *tree = json_parse(result.data, result.size, &json_limits_document, err);
    if (!tree) {
        return NULL;
    }
    struct jval root = jval_root(tree);
    return plan_decode_value(&root, d->model, err);
}

/* --- what differs --- */

static char *counts_text(const struct model *model, const struct host_count *counts, size_t n)
{
    struct buf text = BUF_INIT;
    buf_puts(&text, "");
    for (size_t i = 0; i < n; i++) {
        buf_printf(&text, "%s%s=%" PRId64, i ? " " : "", model->hosts[counts[i].host].name,
                   counts[i].count);
    }
    return buf_take(&text);
}

/* "cart cart-1: n2 -> n1", without the number: an order that differs is told apart. */
static char *move_text(const struct model *model, const struct move *move)
{
    const char *service = model->services[move->service].name;
    if (move->instance < 0) {
        AUTO_FREE char *from = counts_text(model, move->sources, move->n_sources);
        AUTO_FREE char *to = counts_text(model, move->targets, move->n_targets);
        return mem_printf("%s: %s -> %s", service, from, to);
    }
    return mem_printf("%s: %s -> %s", model->instances[move->instance].name,
                      move->source < 0 ? "(not placed)" : model->hosts[move->source].name,
                      move->target < 0 ? "(not placed)" : model->hosts[move->target].name);
}

struct difference {
    char **only_stored, **only_new;
    size_t n_stored, n_new;
};

static void difference_wipe(struct difference *difference)
{
    for (size_t i = 0; i < difference->n_stored; i++) {
        free(difference->only_stored[i]);
    }
    for (size_t i = 0; i < difference->n_new; i++) {
        free(difference->only_new[i]);
    }
    free(difference->only_stored);
    free(difference->only_new);
}

/* Moves of `a` that `b` has not. Plans hold each instance or service once, so names find them. */
static void collect_missing(const struct model *model, const struct plan *a, const struct plan *b,
                            char ***out, size_t *n)
{
    struct names there = NAMES_INIT;
    char **texts = mem_array(b->n_moves + 1, sizeof *texts);
    for (size_t i = 0; i < b->n_moves; i++) {
        texts[i] = move_text(model, &b->moves[i]);
        names_add(&there, texts[i], (int)i);
    }
    for (size_t i = 0; i < a->n_moves; i++) {
        char *text = move_text(model, &a->moves[i]);
        if (names_get(&there, text) < 0) {
            *ARRAY_PUSH(*out, *n) = steal(text);
        }
        free(text);
    }
    names_wipe(&there);
    for (size_t i = 0; i < b->n_moves; i++) {
        free(texts[i]);
    }
    free(texts);
}

static void put_text(int64_t cycle, bool identical, const struct plan *stored,
                     const struct plan *again, const struct difference *difference, struct buf *out)
{
    if (identical) {
        buf_printf(out, "cycle %" PRId64 ": the same plan again, %zu move%s\n", cycle,
                   stored->n_moves, stored->n_moves == 1 ? "" : "s");
        return;
    }
    buf_printf(out,
               "cycle %" PRId64 ": a different plan\n"
               "          stored     again\n"
               "status    %-10s %s\n"
               "planner   %-10s %s\n"
               "affinity  %-10.6f %.6f\n"
               "hosts     %-10" PRId64 " %" PRId64 "\n"
               "moves     %-10zu %zu\n",
               cycle, plan_status_name(stored->status), plan_status_name(again->status),
               stored->planner ? stored->planner : "-", again->planner ? again->planner : "-",
               stored->affinity_after, again->affinity_after, stored->hosts_after,
               again->hosts_after, stored->n_moves, again->n_moves);
    for (size_t i = 0; i < difference->n_stored; i++) {
        buf_printf(out, "- %s\n", difference->only_stored[i]);
    }
    for (size_t i = 0; i < difference->n_new; i++) {
        buf_printf(out, "+ %s\n", difference->only_new[i]);
    }
    if (!difference->n_stored && !difference->n_new) {
        buf_puts(out, "the moves are the same; their order or what is said about them differs\n");
    }
}

static void put_list(struct buf *out, const char *key, char **texts, size_t n)
{
    buf_printf(out, ",\"%s\":[", key);
    for (size_t i = 0; i < n; i++) {
        buf_puts(out, i ? "," : "");
        json_put_text(out, texts[i]);
    }
    buf_puts(out, "]");
}

static int compare(struct cli *cli, const struct decision *d, const struct plan *again,
                   struct err *err)
{
    AUTO_BUF struct buf a = BUF_INIT;
    AUTO_BUF struct buf b = BUF_INIT;
    AUTO_BUF struct buf out = BUF_INIT;
    __attribute__((cleanup(difference_wipe))) struct difference difference = {0};
    plan_encode(d->plan, d->model, false, &a);
    plan_encode(again, d->model, false, &b);
    bool identical = a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
    collect_missing(d->model, d->plan, again, &difference.only_stored, &difference.n_stored);
    collect_missing(d->model, again, d->plan, &difference.only_new, &difference.n_new);
    if (cli->output == CLI_JSON) {
        buf_printf(&out, "{\"v\":1,\"cycle_id\":%" PRId64 ",\"identical\":%s", d->cycle.id,
                   identical ? "true" : "false");
        put_list(&out, "only_stored", difference.only_stored, difference.n_stored);
        put_list(&out, "only_again", difference.only_new, difference.n_new);
        buf_puts(&out, ",\"plan\":");
        plan_encode(again, d->model, true, &out);
        buf_puts(&out, "}");
    } else {
        put_text(d->cycle.id, identical, d->plan, again, &difference, &out);
    }
    int rc = cli->output == CLI_JSON ? cli_print_json(&out, err) : cli_print_text(&out, err);
    return rc ? -1 : !identical;
}

static int replay_run(struct cli *cli, struct err *err)
{
    int64_t id;
    AUTO(store) struct store *store = NULL;
    AUTO_DECISION struct decision d = {0};
    if (cli_arg_cycle(cli, 0, &id, err) || cli_read_open(cli, &store, err) ||
        decision_load(store, id, &d, err)) {
        return -1;
    }
    if (!d.plan) {
        return err_set(err, ERR_NOT_FOUND, "cycle %" PRId64 ": has no plan to make again (%s%s%s)",
                       id, d.cycle.state, d.cycle.reason ? ": " : "",
                       d.cycle.reason ? d.cycle.reason : "");
    }
    AUTO(plan) struct plan *again = plan_again(&d, err);
    return again ? compare(cli, &d, again, err) : -1;
}

const struct cli_command cmd_replay = {
    .name = "replay",
    .args = "CYCLE",
    .min_args = 1,
    .max_args = 1,
    .summary = "plans a cycle's snapshot again and compares",
    .about = "Exit code 0: the same plan, 1: a different one. Measured times are not compared; a\n"
             "search that the time limit cut is repeated by its count of iterations.",
    .examples = "remap replay 12\n",
    .common = CLI_CONFIG | CLI_STORE,
    .outputs = CLI_TEXT | CLI_JSON,
    .run = replay_run,
};
