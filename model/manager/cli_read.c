/* cli_read.c - see cli_read.h. */
#include "model/manager/cli_read.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include "model/base/json.h"
#include "model/base/mem.h"

int cli_read_open(struct cli *cli, struct store **out, struct err *err)
{
    const char *path;
    if (cli_store_path(cli, &path, err)) {
        return -1;
    }
    if (store_open_read(path, out, err)) {
        if (err->kind == ERR_NOT_FOUND) {
            err_set(err, ERR_NOT_FOUND,
                    "%s: no store there yet; `remap run` or `remap once` makes it, --store names "
                    "another",
                    path);
        }
        return -1;
    }
    return 0;
}

static void put_key(struct buf *out, const char *key)
{
    json_put_text(out, key);
    buf_puts(out, ":");
}

int cli_read_rows(struct store *store, const char *key, const char *sql, const char *const *args,
                  struct buf *out, struct err *err)
{
    put_key(out, key);
    return store_query_json(store, sql, args, out, err);
}

int cli_read_row(struct store *store, const char *key, const char *sql, const char *const *args,
                 struct buf *out, struct err *err)
{
    AUTO(store_rows) struct store_rows *rows = NULL;
    put_key(out, key);
    if (store_select(store, sql, args, &rows, err)) {
        return -1;
    }
    int rc = store_rows_next(rows, err);
    if (rc < 0) {
        return -1;
    }
    if (rc) {
        store_rows_json(rows, out);
    } else {
        buf_puts(out, "null");
    }
    return 0;
}

void cell_time(struct table *table, int64_t wall_ms)
{
    char text[CLOCK_TEXT_SIZE];
    /* Seconds are enough for people; -o json has the milliseconds. */
    table_cell(table, wall_ms < 0 ? NULL : clock_iso(wall_ms - wall_ms % 1000, text));
}

void cell_percent(struct table *table, double ratio)
{
    if (ratio < 0) {
        table_cell(table, NULL);
    } else {
        table_printf(table, "%.1f%%", 100 * ratio);
    }
}

void cell_real(struct table *table, double value, int digits)
{
    if (value < 0) {
        table_cell(table, NULL);
    } else {
        table_printf(table, "%.*f", digits, value);
    }
}

void cell_int(struct table *table, int64_t value)
{
    if (value < 0) {
        table_cell(table, NULL);
    } else {
        table_printf(table, "%" PRId64, value);
    }
}

const char *took_text(int64_t ms, char out[CLOCK_TEXT_SIZE])
{
    return duration_text(ms < 10000 ? ms : (ms + 500) / 1000 * 1000, out);
}

#define COLUMNS 80

void put_folded(struct buf *out, const char *lead, const char *text)
{
    size_t hang = text_width(lead), column = hang;
    bool first = true; /* of its line */
    buf_puts(out, lead);
    while (*text) {
        size_t size = strcspn(text, " ");
        AUTO_FREE char *word = mem_strndup(text, size);
        size_t width = text_width(word);
        if (!first && column + 1 + width > COLUMNS) {
            buf_printf(out, "\n%*s", (int)hang, "");
            column = hang;
            first = true;
        }
        buf_printf(out, "%s%s", first ? "" : " ", word);
        column += width + !first;
        first = false;
        text += size;
        text += strspn(text, " ");
    }
    buf_puts(out, "\n");
}

int cli_print_text(const struct buf *text, struct err *err)
{
    if (text->size && fwrite(text->data, 1, text->size, stdout) != text->size) {
        return err_set(err, ERR_IO, "stdout: %s", strerror(errno));
    }
    return 0;
}

void put_state(struct buf *out, const char *state)
{
    static const char *const well[] = {"done", "runs", "applied", NULL};
    static const char *const bad[] = {"failed", "undone", "down", NULL};
    const char *code = "33";
    for (size_t i = 0; well[i]; i++) {
        code = strcmp(state, well[i]) == 0 ? "32" : code;
    }
    for (size_t i = 0; bad[i]; i++) {
        code = strcmp(state, bad[i]) == 0 ? "31" : code;
    }
    if (cli_colour()) {
        buf_printf(out, "\033[%sm%s\033[0m", code, state);
    } else {
        buf_puts(out, state);
    }
}
