/* cli_read.h - what the commands that read the store share: opening it, rows into JSON, and the
 * cells of their tables. */
#ifndef REMAP_MANAGER_CLI_READ_H
#define REMAP_MANAGER_CLI_READ_H

#include <stdint.h>
#include "model/base/buf.h"
#include "model/base/clock.h"
#include "model/base/err.h"
#include "model/manager/cli.h"
#include "model/manager/table.h"
#include "model/store/store.h"

/* The store, read-only. ERR_NOT_FOUND says how to get one. */
int cli_read_open(struct cli *cli, struct store **out, struct err *err);

/* Appends `"key":[rows]` or, of one row, `"key":{row}` (null without one). */
int cli_read_rows(struct store *store, const char *key, const char *sql, const char *const *args,
                  struct buf *out, struct err *err);
int cli_read_row(struct store *store, const char *key, const char *sql, const char *const *args,
                 struct buf *out, struct err *err);

/* Cells; unknown (negative, NULL) is "-". */
void cell_time(struct table *table, int64_t wall_ms);
void cell_percent(struct table *table, double ratio);
void cell_real(struct table *table, double value, int digits);
void cell_int(struct table *table, int64_t value);

/* "12ms", "2m13s": to the second where it is more than ten. Returns `out`. */
const char *took_text(int64_t ms, char out[CLOCK_TEXT_SIZE]);

/* Appends `lead` and `text`, broken between words so that lines keep within 80 columns; further lines
 * begin under the end of the lead. */
void put_folded(struct buf *out, const char *lead, const char *text);

/* Writes the text to stdout; ERR_IO. */
int cli_print_text(const struct buf *text, struct err *err);

/* `text` between the escape codes of a state's colour (green: well, yellow: under way, red: failed)
 * when stdout may be coloured; else alone. */
void put_state(struct buf *out, const char *state);

#endif
