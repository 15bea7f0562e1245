/* store.h - the model at run time on disk (SQLite, WAL). One writer: the daemon (or `remap once`,
 * `remap demo`); everybody else opens read-only. The only folder that includes sqlite3.h.
 *
 * Every call that changes something is one transaction, unless store_begin() has opened one. */
#ifndef REMAP_STORE_H
#define REMAP_STORE_H

#include <stdbool.h>
#include <stdint.h>
#include "model/base/buf.h"
#include "model/base/err.h"
#include "model/plan.h"

struct store;

/* Creates folder (0750) and file (0640), migrates. ERR_CONFLICT: written by a newer remap;
 * ERR_IO otherwise. */
int store_open(const char *path, struct store **out, struct err *err);
int store_open_read(const char *path, struct store **out, struct err *err); /* ERR_NOT_FOUND */
void store_close(struct store *store); /* accepts NULL; rolls back what store_begin() left open */
static inline void store_free(struct store *store)
{
    store_close(store);
}
AUTO_DEFINE(store)
const char *store_path(const struct store *store);
/* Could the next transaction be written? Takes the write lock for a moment, without waiting (another
 * writer is no obstacle), and looks at the room that is left. ERR_IO. Not inside store_begin(). */
int store_writable(struct store *store, struct err *err);

/* A failing write rolls back wholly and leaves the handle usable: ERR_IO names the file and
 * SQLite's reason (ERR_CONFLICT: another process held it too long). After a failure between
 * store_begin() and store_commit() the whole transaction can only be rolled back; store_commit()
 * then does that and fails. On a reader store_begin() holds one state of the file: keep it short.
 * store_rollback() without an open transaction does nothing. */
int store_begin(struct store *store, struct err *err);
int store_commit(struct store *store, struct err *err);
void store_rollback(struct store *store);
/* Many reads of one state of the file, which is locked once instead of for each of them. No write and
 * no store_begin() in between. */
int store_read_begin(struct store *store, struct err *err);
void store_read_end(struct store *store);

/* --- cycles: the engine's state, one row each; ids never repeat (AUTOINCREMENT) --- */
struct cycle_row {
    int64_t id;
    char *app, *trigger; /* "timer", "manual", "deploy", "once", "apply", … */
    char *state;         /* names of engine.h */
    char *reason;        /* NULL or why failed/superseded/undone/nothing done */
    int64_t attempt;
    int64_t started_ms, ended_ms;  /* ended -1: running */
    int64_t deadline_ms;           /* of settling/verifying: wall time; -1 none */
    int64_t base_cycle;            /* apply/undo: the cycle whose plan this is; -1 */
    bool dry_run;
    int64_t moves_planned, moves_applied;
};
void cycle_row_wipe(struct cycle_row *row);

int store_cycle_new(struct store *store, const char *app, const char *trigger, const char *state,
                    bool dry_run, int64_t base_cycle, int64_t now_ms, int64_t *out_id,
                    struct err *err);
/* State, reason (NULL keeps), attempt, deadline, end in one statement. ERR_NOT_FOUND. */
int store_cycle_set(struct store *store, int64_t id, const char *state, const char *reason,
                    int64_t attempt, int64_t deadline_ms, int64_t ended_ms, struct err *err);
/* ERR_NOT_FOUND; caller wipes. */
int store_cycle_get(struct store *store, int64_t id, struct cycle_row *out, struct err *err);
/* Cycles that have not ended, oldest first; caller wipes rows and frees. */
int store_cycles_open(struct store *store, struct cycle_row **out, size_t *n, struct err *err);

/* --- what the cycle produced; texts are the documents' exact bytes, for replay. Saving again
 * replaces (a stage's second attempt). Loads append to the buffers; ERR_NOT_FOUND. --- */
int store_snapshot_save(struct store *store, int64_t cycle, const char *phase /* base|verify */,
                        const struct model *model, const char *text, size_t size,
                        struct err *err);
int store_snapshot_load(struct store *store, int64_t cycle, const char *phase, struct buf *text,
                        struct err *err);
int store_analysis_save(struct store *store, int64_t cycle, const struct analysis *analysis,
                        const struct model *model, const char *text, size_t size,
                        struct err *err);
int store_analysis_load(struct store *store, int64_t cycle, struct buf *text, struct err *err);
/* `options` is the text of the plan options, `text` the plan document. Rows of v_plans, v_moves
 * (state planned). */
int store_plan_save(struct store *store, int64_t cycle, const struct plan *plan,
                    const struct model *model, const char *options, const char *text, size_t size,
                    struct err *err);
int store_plan_load(struct store *store, int64_t cycle, struct buf *options, struct buf *text,
                    struct err *err);

/* --- moves --- */
struct move_row {
    int64_t cycle, seq;
    char *service, *instance, *source, *target; /* instance, source may be NULL */
    double gain;
    char *state;  /* contract.md 4 */
    char *reason, *instance_now;
    int64_t intended_ms, settled_ms; /* -1 */
    int64_t undo_of;                 /* -1 */
    bool detour;
    char *intent; /* the intent document, NULL before */
};
void move_row_wipe(struct move_row *row);
/* Commits an intent document (model/wire/README.md): state intended, intended_ms now; inserts the
 * row if it is a detour or undo. An intent repeated after a crash keeps its first time and counts.
 * ERR_INPUT when the document is not an intent of this seq. */
int store_move_intent(struct store *store, int64_t cycle, int64_t seq, const char *intent,
                      size_t size, int64_t now_ms, struct err *err);
/* Commits an outcome document (model/wire/README.md); ERR_INPUT when it is none. The outcome
 * `applied` of an undo also turns the move that it undid (of this cycle, else of its base cycle)
 * to `undone`. */
int store_move_outcome(struct store *store, int64_t cycle, const char *outcome, size_t size,
                       struct err *err);
/* Planned moves left out by the engine's calm, or when a cycle is superseded. ERR_NOT_FOUND when
 * there is no such move that is still planned. */
int store_move_discard(struct store *store, int64_t cycle, int64_t seq, const char *reason,
                       struct err *err);
/* Where it goes: a host, or for a whole service "n1=2 n3=1"; of an undo without a host of its own,
 * where the move that it undoes came from. *out NULL: not known. Caller frees. */
int store_move_targets(struct store *store, int64_t cycle, int64_t seq, char **out,
                       struct err *err);
int store_moves_load(struct store *store, int64_t cycle, struct move_row **out, size_t *n,
                     struct err *err);
/* Calls `each` with the newest moves that were ever intended, at most `limit`; settled_ms -1: not. */
int store_moves_known(struct store *store, int64_t limit,
                      void (*each)(void *arg, int64_t cycle, int64_t seq, int64_t intended_ms,
                                   int64_t settled_ms),
                      void *arg, struct err *err);
/* Have both cycles the same moves still planned? */
int store_moves_same(struct store *store, int64_t cycle, int64_t other, bool *same,
                     struct err *err);
/* Last time (wall ms) a replica of the service was moved to or from the host, or was about to be
 * (intended, also if it failed then); -1 never. *missed: how often since the last time that it went
 * well it landed elsewhere, wholly or in part. *displaced: how often others took it away again. */
int store_last_move_ms(struct store *store, const char *app, const char *service,
                       const char *host, int64_t *out, int *missed, int *displaced,
                       struct err *err);

/* --- verification: predicted against realised (v_savings); < 0 or -1: unknown (NULL) --- */
struct savings {
    int64_t hosts_before, hosts_predicted, hosts_realised;
    double affinity_before, affinity_predicted, affinity_realised;
    double response_before_ms, response_predicted_ms, response_realised_ms;
    double local_before, local_predicted, local_realised;
};
/* Replaces what was saved for the cycle: may be called with the prediction and again when it is
 * verified. */
int store_savings_save(struct store *store, int64_t cycle, const struct savings *savings,
                       struct err *err);

/* --- events (append only), apps --- */
/* app may be NULL; cycle <= 0: belongs to none; out_id may be NULL. */
int store_event_add(struct store *store, const char *app, const char *kind, int64_t cycle,
                    const char *text, int64_t now_ms, int64_t *out_id, struct err *err);
/* The same for what a webhook delivered (model/wire/README.md `event`). Where this delivery was
 * stored for the app within the last window_ms, nothing is added: *duplicate, and *out_id is that
 * event. */
int store_event_deliver(struct store *store, const char *app, const char *kind, const char *text,
                        const char *delivery, int64_t window_ms, int64_t now_ms, int64_t *out_id,
                        bool *duplicate, struct err *err);
struct app_row {
    char *app;
    char *mode; /* observe, propose, act as last configured, for `remap status`; NULL: set keeps it */
    bool paused;
    int64_t next_due_ms;  /* wall; -1 none */
    int64_t interval_ms;  /* -1: the configured one */
};
void app_row_wipe(struct app_row *row);
/* ERR_NOT_FOUND; caller wipes. */
int store_app_get(struct store *store, const char *app, struct app_row *out, struct err *err);
int store_app_set(struct store *store, const struct app_row *row, struct err *err);

/* --- drift: the latest look at an app between cycles (v_drift) --- */
struct drift_row {
    const char *app, *state;
    int64_t at_ms, reference_cycle; /* -1: none */
    double distance, noise, response_ratio; /* < 0: unknown */
    int64_t every_ms;
    double affinity, response;
};
int store_drift_set(struct store *store, const struct drift_row *row, struct err *err);
/* The cycle whose snapshot the app's present placement was planned on, and not older than the latest
 * deployment of the app; 0 when there is none. */
int store_drift_reference(struct store *store, const char *app, int64_t *out, struct err *err);
/* Appends the service rows of the cycle's analysis (the member `reference` of model/wire/README.md);
 * *response_ms: the mean response time that the placement had, < 0 when unknown. */
int store_drift_reference_rows(struct store *store, int64_t cycle, struct buf *out,
                               double *response_ms, struct err *err);

/* Retention: deletes ended cycles (and their events) older than max_age_ms, then oldest first until
 * the file is below max_bytes, and gives the room back; also events of no cycle by age. A limit
 * <= 0 does not limit. Cycles that an open cycle builds upon stay. Works in short transactions and
 * stops after STORE_RETAIN_CYCLES (some 0.3 s at 1000 services): while *deleted (may be NULL; counts
 * cycles) reaches that, call again later. Not inside store_begin(). */
#define STORE_RETAIN_CYCLES 10
int store_retain(struct store *store, int64_t now_ms, int64_t max_age_ms, int64_t max_bytes,
                 int64_t *deleted, struct err *err);

/* --- reading the views. `sql` is a SELECT that the program itself wrote; `args` (NULL, or text
 * parameters ?1 ?2 …, NULL-terminated) are bound as text: CAST where a number is meant; they live as
 * long as the rows. --- */
struct store_rows;
int store_select(struct store *store, const char *sql, const char *const *args,
                 struct store_rows **out, struct err *err);
/* 1: a row is there, 0: no more, -1: *err. */
int store_rows_next(struct store_rows *rows, struct err *err);
/* Columns count from 0; text lives until the next row and is NULL for NULL. */
const char *store_rows_text(const struct store_rows *rows, int column);
int64_t store_rows_int(const struct store_rows *rows, int column, int64_t absent);
double store_rows_real(const struct store_rows *rows, int column, double absent);
bool store_rows_null(const struct store_rows *rows, int column);
int store_rows_columns(const struct store_rows *rows);
void store_rows_free(struct store_rows *rows);
AUTO_DEFINE(store_rows)

/* Appends all rows as a JSON array of objects (for the API and -o json). */
int store_query_json(struct store *store, const char *sql, const char *const *args,
                     struct buf *out, struct err *err);
/* Appends the present row as a JSON object; the keys are the columns' names. */
void store_rows_json(const struct store_rows *rows, struct buf *out);

#endif
