/* cli_show.c - `remap show CYCLE`: the plan with the state of each move, and what it saved: before,
 * predicted, realised. */
#include <inttypes.h>
#include <string.h>
#include "model/base/mem.h"
#include "model/manager/cli_patch.h"
#include "model/manager/cli_read.h"
#include "model/manager/decision.h"

static void put_head(const struct cycle_row *cycle, struct buf *out)
{
    char at[CLOCK_TEXT_SIZE];
    buf_printf(out, "cycle %" PRId64 " of %s: ", cycle->id, cycle->app);
    put_state(out, cycle->state);
    buf_printf(out, "%s%s\n", cycle->reason ? ": " : "", cycle->reason ? cycle->reason : "");
    buf_printf(out, "  started %s by %s", clock_iso(cycle->started_ms, at), cycle->trigger);
    if (cycle->ended_ms >= cycle->started_ms) {
        char took[CLOCK_TEXT_SIZE];
        buf_printf(out, ", took %s", took_text(cycle->ended_ms - cycle->started_ms, took));
    }
    if (cycle->base_cycle > 0) {
        buf_printf(out, ", plan of cycle %" PRId64, cycle->base_cycle);
    }
    buf_puts(out, cycle->dry_run ? ", dry run\n" : "\n");
}

static int put_plan(struct store *store, const char *const *args, struct buf *out,
                    struct err *err)
{
    static const char sql[] =
        "SELECT planner, requested, why, objective, status, restarts, coverage, solve_ms, gap,"
        " cut, unordered FROM v_plans WHERE cycle_id = CAST(?1 AS INTEGER)";
    AUTO(store_rows) struct store_rows *rows = NULL;
    if (store_select(store, sql, args, &rows, err)) {
        return -1;
    }
    int rc = store_rows_next(rows, err);
    if (rc <= 0) {
        buf_puts(out, rc ? "" : "\nno plan\n");
        return rc;
    }
    const char *planner = store_rows_text(rows, 0), *requested = store_rows_text(rows, 1);
    const char *why = store_rows_text(rows, 2);
    buf_printf(out, "\nplan by %s for %s: %s", planner ? planner : "-", store_rows_text(rows, 3),
               store_rows_text(rows, 4));
    if (requested && planner && strcmp(requested, planner) != 0) {
        buf_printf(out, " (asked for %s)", requested);
    }
    buf_printf(out, "\n%s%s%s", why ? "  " : "", why ? why : "", why ? "\n" : "");
    buf_printf(out, "  restarts %" PRId64 ", solved in %" PRId64 " ms", store_rows_int(rows, 5, 0),
               store_rows_int(rows, 7, 0));
    if (!store_rows_null(rows, 8)) {
        buf_printf(out, ", gap %.2f%%", 100 * store_rows_real(rows, 8, 0));
    }
    if (!store_rows_null(rows, 6)) {
        buf_printf(out, ", coverage %.1f%%", 100 * store_rows_real(rows, 6, 0));
    }
    buf_printf(out, "%s%s\n", store_rows_int(rows, 9, 0) ? ", cut by the time limit" : "",
               store_rows_int(rows, 10, 0) ? ", no order keeps every host within its capacity"
                                           : "");
    return 0;
}

static int put_savings(struct store *store, const char *const *args, struct buf *out,
                       struct err *err)
{
    static const char sql[] =
        "SELECT affinity_before, affinity_predicted, affinity_realised, local_before,"
        " local_predicted, local_realised, response_before_ms, response_predicted_ms,"
        " response_realised_ms, hosts_before, hosts_predicted, hosts_realised FROM v_savings"
        " WHERE cycle_id = CAST(?1 AS INTEGER)";
    static const char *const titles[] = {"", ">before", ">predicted", ">realised", NULL};
    static const char *const names[] = {"affinity", "local share", "response ms", "hosts"};
    static const int digits[] = {4, 4, 2, 0};
    AUTO(store_rows) struct store_rows *rows = NULL;
    if (store_select(store, sql, args, &rows, err)) {
        return -1;
    }
    int rc = store_rows_next(rows, err);
    if (rc <= 0) {
        return rc;
    }
    AUTO(table) struct table *table = table_new(titles);
    for (int i = 0; i < 4; i++) {
        if (store_rows_null(rows, 3 * i) && store_rows_null(rows, 3 * i + 2)) {
            continue;
        }
        table_cell(table, names[i]);
        for (int k = 0; k < 3; k++) {
            cell_real(table, store_rows_real(rows, 3 * i + k, -1), digits[i]);
        }
    }
    buf_puts(out, "\n");
    table_put(table, 0, out);
    return 0;
}

static int put_moves(struct store *store, const char *const *args, struct buf *out,
                     struct err *err)
{
    static const char sql[] =
        "SELECT seq, service, instance, source, target, gain, state, reason, undo_of, detour"
        " FROM v_moves WHERE cycle_id = CAST(?1 AS INTEGER) ORDER BY seq";
    static const char *const titles[] = {">#", "service", "instance", "from", "to", ">gain",
                                         "state", "reason", NULL};
    AUTO(store_rows) struct store_rows *rows = NULL;
    AUTO(table) struct table *table = table_new(titles);
    if (store_select(store, sql, args, &rows, err)) {
        return -1;
    }
    int rc;
    while ((rc = store_rows_next(rows, err)) == 1) {
        const char *reason = store_rows_text(rows, 7);
        int64_t undo_of = store_rows_int(rows, 8, -1);
        cell_int(table, store_rows_int(rows, 0, -1));
        for (int i = 1; i < 5; i++) {
            table_cell(table, store_rows_text(rows, i));
        }
        if (store_rows_null(rows, 5)) {
            table_cell(table, NULL);
        } else {
            table_printf(table, "%+.4f", store_rows_real(rows, 5, 0));
        }
        table_cell(table, store_rows_text(rows, 6));
        if (undo_of > 0) {
            table_printf(table, "undoes %" PRId64 "%s%s", undo_of, reason ? ": " : "",
                         reason ? reason : "");
        } else {
            table_printf(table, "%s%s", store_rows_int(rows, 9, 0) ? "detour " : "",
                         reason ? reason : "");
        }
    }
    if (rc == 0 && table_rows(table)) {
        buf_puts(out, "\n");
        table_put(table, 0, out);
    }
    return rc;
}

static int show_json(struct store *store, int64_t id, const char *const *args, struct buf *out,
                     struct err *err)
{
    AUTO_BUF struct buf options = BUF_INIT;
    AUTO_BUF struct buf plan = BUF_INIT;
    buf_puts(out, "{\"v\":1,");
    if (cli_read_row(store, "cycle",
                     "SELECT * FROM v_cycles WHERE cycle_id = CAST(?1 AS INTEGER)", args, out,
                     err)) {
        return -1;
    }
    buf_puts(out, ",\"plan\":");
    if (store_plan_load(store, id, &options, &plan, err) == 0) {
        buf_add(out, plan.data, plan.size); /* the document itself (contract.md 3) */
    } else if (err->kind == ERR_NOT_FOUND) {
        *err = (struct err)ERR_INIT;
        buf_puts(out, "null");
    } else {
        return -1;
    }
    buf_puts(out, ",");
    if (cli_read_rows(store, "moves",
                      "SELECT * FROM v_moves WHERE cycle_id = CAST(?1 AS INTEGER) ORDER BY seq",
                      args, out, err)) {
        return -1;
    }
    buf_puts(out, ",");
    if (cli_read_row(store, "savings",
                     "SELECT * FROM v_savings WHERE cycle_id = CAST(?1 AS INTEGER)", args, out,
                     err)) {
        return -1;
    }
    buf_puts(out, "}");
    return 0;
}

static int show_text(struct store *store, const struct cycle_row *cycle, const char *const *args,
                     struct buf *out, struct err *err)
{
    put_head(cycle, out);
    return put_plan(store, args, out, err) || put_savings(store, args, out, err) ||
                   put_moves(store, args, out, err)
               ? -1
               : 0;
}

/* One state of the file for all that is shown. */
static int show(struct cli *cli, struct store *store, int64_t id, struct buf *out, struct err *err)
{
    struct cycle_row cycle;
    AUTO_FREE char *text = mem_printf("%" PRId64, id);
    const char *const args[] = {text, NULL};
    if (decision_cycle(store, id, &cycle, err)) {
        return -1;
    }
    int rc = cli->output == CLI_JSON ? show_json(store, id, args, out, err)
                                     : show_text(store, &cycle, args, out, err);
    cycle_row_wipe(&cycle);
    return rc;
}

static int show_run(struct cli *cli, struct err *err)
{
    int64_t id;
    AUTO(store) struct store *store = NULL;
    AUTO_BUF struct buf out = BUF_INIT;
    if (cli_arg_cycle(cli, 0, &id, err) || cli_read_open(cli, &store, err)) {
        return -1;
    }
    if (cli->output == CLI_PATCH) {
        return patch_offer(store, id, &out, err) ? -1 : cli_print_text(&out, err);
    }
    if (store_begin(store, err)) {
        return -1;
    }
    int rc = show(cli, store, id, &out, err);
    store_rollback(store);
    if (rc) {
        return -1;
    }
    return cli->output == CLI_JSON ? cli_print_json(&out, err) : cli_print_text(&out, err);
}

const struct cli_command cmd_show = {
    .name = "show",
    .args = "CYCLE",
    .min_args = 1,
    .max_args = 1,
    .summary = "a cycle's plan, the state of its moves, and what it saved",
    .examples = "remap show 12\nremap show 12 -o json\nremap show 12 -o patch > patches.yaml\n",
    .common = CLI_CONFIG | CLI_STORE,
    .outputs = CLI_TEXT | CLI_JSON | CLI_PATCH,
    .run = show_run,
};
