/* cli_history.c - `remap history`: the latest cycles, newest first. */
#include <inttypes.h>
#include <string.h>
#include "model/base/clock.h"
#include "model/base/mem.h"
#include "model/manager/cli_read.h"

static void put_row(struct table *table, const struct store_rows *rows)
{
    char took[CLOCK_TEXT_SIZE];
    int64_t started = store_rows_int(rows, 4, -1), ended = store_rows_int(rows, 5, -1);
    double before = store_rows_real(rows, 9, -1), after = store_rows_real(rows, 10, -1);
    cell_int(table, store_rows_int(rows, 0, -1));
    table_cell(table, store_rows_text(rows, 1));
    table_cell(table, store_rows_text(rows, 2));
    table_cell(table, store_rows_text(rows, 3));
    cell_time(table, started);
    table_cell(table, ended < started ? NULL : duration_text(ended - started, took));
    if (store_rows_int(rows, 6, 0)) {
        table_printf(table, "%" PRId64 "/%" PRId64, store_rows_int(rows, 7, 0),
                     store_rows_int(rows, 6, 0));
    } else {
        table_cell(table, NULL);
    }
    if (before < 0 || after < 0) {
        table_cell(table, NULL);
    } else {
        table_printf(table, "%.3f>%.3f", before, after);
    }
    table_cell(table, store_rows_text(rows, 8) ? store_rows_text(rows, 8) : "");
}

static int print_text(struct store *store, const char *const *args, struct err *err)
{
    static const char sql[] =
        "SELECT c.cycle_id, c.app, c.trigger, c.state, c.started_ms, c.ended_ms, c.moves_planned,"
        " c.moves_applied, c.reason, s.affinity_before,"
        " coalesce(s.affinity_realised, s.affinity_predicted)"
        " FROM v_cycles c LEFT JOIN v_savings s USING (cycle_id)"
        " WHERE ?1 = '' OR c.app = ?1 ORDER BY c.cycle_id DESC LIMIT CAST(?2 AS INTEGER)";
    static const char *const titles[] = {">cycle",  "app",  "trigger", "state",   "started",
                                         ">took", ">moves", "affinity", "reason", NULL};
    AUTO(store_rows) struct store_rows *rows = NULL;
    AUTO(table) struct table *table = table_new(titles);
    AUTO_BUF struct buf out = BUF_INIT;
    if (store_select(store, sql, args, &rows, err)) {
        return -1;
    }
    int rc;
    while ((rc = store_rows_next(rows, err)) == 1) {
        put_row(table, rows);
    }
    if (rc < 0) {
        return -1;
    }
    if (table_rows(table)) {
        table_put(table, 0, &out);
    } else {
        buf_puts(&out, "no cycles yet\n");
    }
    return cli_print_text(&out, err);
}

static int history_run(struct cli *cli, struct err *err)
{
    static const char json_sql[] =
        "SELECT c.*, s.hosts_before, s.hosts_predicted, s.hosts_realised, s.affinity_before,"
        " s.affinity_predicted, s.affinity_realised"
        " FROM v_cycles c LEFT JOIN v_savings s USING (cycle_id)"
        " WHERE ?1 = '' OR c.app = ?1 ORDER BY c.cycle_id DESC LIMIT CAST(?2 AS INTEGER)";
    AUTO(store) struct store *store = NULL;
    int64_t limit = 20;
    if (cli_opt_int(cli, "limit", 1, 1000000, &limit, err) || cli_read_open(cli, &store, err)) {
        return -1;
    }
    AUTO_FREE char *limit_text = mem_printf("%" PRId64, limit);
    const char *app = cli_opt(cli, "app");
    const char *const args[] = {app ? app : "", limit_text, NULL};
    if (cli->output == CLI_TEXT) {
        return print_text(store, args, err);
    }
    AUTO_BUF struct buf out = BUF_INIT;
    return store_query_json(store, json_sql, args, &out, err) ? -1 : cli_print_json(&out, err);
}

static const struct cli_option history_options[] = {
    {0, "app", "A", "only cycles of this app", false},
    {0, "limit", "N", "at most this many (default 20)", false},
    {0, NULL, NULL, NULL, false},
};

const struct cli_command cmd_history = {
    .name = "history",
    .summary = "the latest cycles, newest first",
    .about = "moves: applied/planned. affinity: the score of the placement before, and after as\n"
             "realised, or as predicted where it was not verified.",
    .examples = "remap history\nremap history --app sock-shop --limit 5 -o json\n",
    .options = history_options,
    .common = CLI_CONFIG | CLI_STORE,
    .outputs = CLI_TEXT | CLI_JSON,
    .run = history_run,
};
