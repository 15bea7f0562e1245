/* store_moves.c - the life of a move: intent, outcome, discarded, undone (contract.md 4; the
 * documents are those of model/wire/README.md). */
#include "model/store/store_internal.h"

#include <stdlib.h>
#include <string.h>
#include "model/base/json.h"
#include "model/base/mem.h"
#include "model/model.h"

/* The longest text in an outcome or intent: `saved` may be a workload's old affinity, which etcd
 * limits with its object to 1.5 MiB. */
#define MAX_TEXT ((size_t)2 << 20)

/* What intent and outcome documents say about a move; strings live as long as the tree. */
struct move_document {
    int64_t seq;
    const char *state, *reason; /* outcome only */
    const char *service, *instance, *instance_now, *source, *target;
    int64_t intended_ms, settled_ms, undo_of;
    bool detour;
};

static int opt_string(const struct jval *object, const char *key, const char **out,
                      struct err *err)
{
    struct jval value = jval_get(object, key);
    if (jval_absent(&value) || jval_null(&value)) {
        return 0;
    }
    return jval_text(&value, MAX_TEXT, out, err);
}

static int opt_number(const struct jval *object, const char *key, int64_t *out, struct err *err)
{
    struct jval value = jval_get(object, key);
    if (jval_absent(&value) || jval_null(&value)) {
        return 0;
    }
    return jval_int(&value, 0, MODEL_MAX_NUMBER, out, err);
}

static int read_common(const struct jval *object, struct move_document *out, struct err *err)
{
    *out = (struct move_document){.intended_ms = -1, .settled_ms = -1, .undo_of = -1};
    struct jval seq = jval_get(object, "seq"), service = jval_get(object, "service");
    return jval_int(&seq, 1, INT32_MAX, &out->seq, err) || jval_name(&service, &out->service, err) ||
                   opt_string(object, "instance", &out->instance, err) ||
                   opt_string(object, "source", &out->source, err) ||
                   opt_string(object, "target", &out->target, err) ||
                   opt_number(object, "undo_of", &out->undo_of, err) ||
                   jval_opt_bool(object, "detour", &out->detour, err)
               ? -1
               : 0;
}

static int read_intent(json_t *tree, struct move_document *out, struct err *err)
{
    static const char *const keys[] = {"v",      "seq",    "service", "instance", "source", "target",
                                       "counts", "undo_of", "detour",  "saved",    NULL};
    struct jval root = jval_root(tree);
    return jval_object(&root, keys, err) || read_common(&root, out, err) ? -1 : 0;
}

static int read_outcome(json_t *tree, struct move_document *out, struct err *err)
{
    static const char *const keys[] = {"v",        "seq",    "state",       "reason",     "service",
                                       "instance", "source", "target",      "undo_of",    "detour",
                                       "settled_ms", "instance_now", "intended_ms", NULL};
    static const char *const states[] = {"applied",   "partial", "missed", "displaced",
                                         "discarded", "failed",  "undone", NULL};
    struct jval root = jval_root(tree);
    if (jval_object(&root, keys, err) || read_common(&root, out, err)) {
        return -1;
    }
    struct jval state = jval_get(&root, "state");
    int choice;
    if (jval_choice(&state, states, &choice, err) ||
        opt_string(&root, "reason", &out->reason, err) ||
        opt_string(&root, "instance_now", &out->instance_now, err) ||
        opt_number(&root, "intended_ms", &out->intended_ms, err) ||
        opt_number(&root, "settled_ms", &out->settled_ms, err)) {
        return -1;
    }
    out->state = states[choice];
    return 0;
}

/* --- intent --- */

/* A repeated intent (the executor died between intent and action) keeps the first time and
 * document: its counts are those before anything was done. One that brings what the undo needs,
 * known only after acting, takes its place. */
static int write_intent(struct store *store, int64_t cycle, const struct move_document *move,
                        const char *text, int64_t now_ms, struct err *err)
{
    static const char sql[] =
        "INSERT INTO moves (cycle_id, seq, service, instance, source, target, state, intended_ms,"
        " undo_of, detour, intent)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'intended', ?7, ?8, ?9, ?10)"
        " ON CONFLICT (cycle_id, seq) DO UPDATE SET state = 'intended',"
        " intended_ms = coalesce(intended_ms, excluded.intended_ms),"
        " undo_of = coalesce(excluded.undo_of, undo_of), detour = excluded.detour,"
        " intent = CASE WHEN json_extract(excluded.intent, '$.saved') IS NULL"
        " THEN coalesce(intent, excluded.intent) ELSE excluded.intent END";
    sqlite3_stmt *statement = store_use(store, ST_MOVE_INTENT, sql, err);
    if (!statement) {
        return -1;
    }
    bind_int(statement, 1, cycle);
    bind_int(statement, 2, move->seq);
    bind_text(statement, 3, move->service);
    bind_text(statement, 4, move->instance);
    bind_text(statement, 5, move->source);
    bind_text(statement, 6, move->target);
    bind_int(statement, 7, now_ms);
    bind_opt_int(statement, 8, move->undo_of);
    bind_int(statement, 9, move->detour);
    bind_text(statement, 10, text);
    return store_run(store, statement, err) ||
                   store_move_host_add(store, cycle, move->seq, move->source, err) ||
                   store_move_host_add(store, cycle, move->seq, move->target, err)
               ? -1
               : 0;
}

int store_move_intent(struct store *store, int64_t cycle, int64_t seq, const char *intent,
                      size_t size, int64_t now_ms, struct err *err)
{
    AUTO_JSON json_t *tree = json_parse(intent, size, &json_limits_document, err);
    struct move_document move;
    if (!tree || read_intent(tree, &move, err)) {
        return err_prefix(err, "intent of cycle %lld move %lld", (long long)cycle,
                          (long long)seq);
    }
    if (move.seq != seq) {
        return err_set(err, ERR_INPUT, "intent of cycle %lld move %lld: speaks of move %lld",
                       (long long)cycle, (long long)seq, (long long)move.seq);
    }
    AUTO_FREE char *text = mem_strndup(intent, size);
    bool own;
    if (store_enter(store, &own, err)) {
        return -1;
    }
    return store_leave(store, own, write_intent(store, cycle, &move, text, now_ms, err), err);
}

/* --- outcome --- */

/* The forward move that an applied undo put back: of this cycle when it acted on one of that seq,
 * else of the cycle that this one undoes. */
static int mark_undone(struct store *store, int64_t cycle, int64_t seq, struct err *err)
{
    static const char sql[] =
        "UPDATE moves SET state = 'undone'"
        " WHERE seq = ?2 AND undo_of IS NULL"
        " AND state IN ('applied', 'partial', 'missed', 'displaced', 'failed')"
        " AND cycle_id = CASE WHEN EXISTS (SELECT 1 FROM moves o WHERE o.cycle_id = ?1"
        " AND o.seq = ?2 AND o.undo_of IS NULL AND o.intended_ms IS NOT NULL) THEN ?1"
        " ELSE (SELECT base_cycle FROM cycles WHERE cycle_id = ?1) END";
    sqlite3_stmt *statement = store_use(store, ST_MOVE_UNDONE, sql, err);
    if (!statement) {
        return -1;
    }
    bind_int(statement, 1, cycle);
    bind_int(statement, 2, seq);
    return store_run(store, statement, err);
}

static int write_outcome(struct store *store, int64_t cycle, const struct move_document *move,
                         struct err *err)
{
    static const char sql[] =
        "INSERT INTO moves (cycle_id, seq, service, instance, source, target, state, reason,"
        " instance_now, intended_ms, settled_ms, undo_of, detour)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)"
        " ON CONFLICT (cycle_id, seq) DO UPDATE SET state = excluded.state,"
        " reason = excluded.reason, instance_now = coalesce(excluded.instance_now, instance_now),"
        " intended_ms = coalesce(intended_ms, excluded.intended_ms),"
        " settled_ms = coalesce(excluded.settled_ms, settled_ms),"
        " undo_of = coalesce(excluded.undo_of, undo_of), detour = max(detour, excluded.detour)";
    sqlite3_stmt *statement = store_use(store, ST_MOVE_OUTCOME, sql, err);
    if (!statement) {
        return -1;
    }
    bind_int(statement, 1, cycle);
    bind_int(statement, 2, move->seq);
    bind_text(statement, 3, move->service);
    bind_text(statement, 4, move->instance);
    bind_text(statement, 5, move->source);
    bind_text(statement, 6, move->target);
    bind_text(statement, 7, move->state);
    bind_text(statement, 8, move->reason);
    bind_text(statement, 9, move->instance_now);
    bind_opt_int(statement, 10, move->intended_ms);
    bind_opt_int(statement, 11, move->settled_ms);
    bind_opt_int(statement, 12, move->undo_of);
    bind_int(statement, 13, move->detour);
    if (store_run(store, statement, err) ||
        store_move_host_add(store, cycle, move->seq, move->source, err) ||
        store_move_host_add(store, cycle, move->seq, move->target, err)) {
        return -1;
    }
    if (move->undo_of > 0 && strcmp(move->state, "applied") == 0) {
        return mark_undone(store, cycle, move->undo_of, err);
    }
    return 0;
}

int store_move_outcome(struct store *store, int64_t cycle, const char *outcome, size_t size,
                       struct err *err)
{
    AUTO_JSON json_t *tree = json_parse(outcome, size, &json_limits_document, err);
    struct move_document move;
    if (!tree || read_outcome(tree, &move, err)) {
        return err_prefix(err, "outcome in cycle %lld", (long long)cycle);
    }
    bool own;
    if (store_enter(store, &own, err)) {
        return -1;
    }
    return store_leave(store, own, write_outcome(store, cycle, &move, err), err);
}

int store_move_discard(struct store *store, int64_t cycle, int64_t seq, const char *reason,
                       struct err *err)
{
    static const char sql[] = "UPDATE moves SET state = 'discarded', reason = ?3"
                              " WHERE cycle_id = ?1 AND seq = ?2 AND state = 'planned'";
    sqlite3_stmt *statement = store_use(store, ST_MOVE_DISCARD, sql, err);
    if (!statement) {
        return -1;
    }
    bool own;
    if (store_enter(store, &own, err)) {
        return -1;
    }
    bind_int(statement, 1, cycle);
    bind_int(statement, 2, seq);
    bind_text(statement, 3, reason);
    int rc = store_run(store, statement, err);
    if (!rc && sqlite3_changes(store->db) == 0) {
        rc = err_set(err, ERR_NOT_FOUND, "cycle %lld: has no planned move %lld", (long long)cycle,
                     (long long)seq);
    }
    return store_leave(store, own, rc, err);
}

/* --- reading --- */

int store_move_targets(struct store *store, int64_t cycle, int64_t seq, char **out,
                       struct err *err)
{
    static const char sql[] =
        "SELECT coalesce(m.target, (SELECT o.source FROM moves o WHERE o.cycle_id = m.cycle_id"
        " AND o.seq = m.undo_of)) FROM moves m WHERE m.cycle_id = ?1 AND m.seq = ?2";
    sqlite3_stmt *statement = store_use(store, ST_MOVE_TARGETS, sql, err);
    if (!statement) {
        return -1;
    }
    bind_int(statement, 1, cycle);
    bind_int(statement, 2, seq);
    int rc = store_step(store, statement, err);
    if (rc < 0) {
        return -1;
    }
    *out = rc == 1 ? column_text(statement, 0) : NULL;
    sqlite3_reset(statement);
    return 0;
}

void move_row_wipe(struct move_row *row)
{
    free(row->service);
    free(row->instance);
    free(row->source);
    free(row->target);
    free(row->state);
    free(row->reason);
    free(row->instance_now);
    free(row->intent);
    *row = (struct move_row){0};
}

static void read_move(sqlite3_stmt *statement, struct move_row *row)
{
    row->cycle = column_int(statement, 0, -1);
    row->seq = column_int(statement, 1, -1);
    row->service = column_text(statement, 2);
    row->instance = column_text(statement, 3);
    row->source = column_text(statement, 4);
    row->target = column_text(statement, 5);
    row->gain = column_real(statement, 6, 0);
    row->state = column_text(statement, 7);
    row->reason = column_text(statement, 8);
    row->instance_now = column_text(statement, 9);
    row->intended_ms = column_int(statement, 10, -1);
    row->settled_ms = column_int(statement, 11, -1);
    row->undo_of = column_int(statement, 12, -1);
    row->detour = column_int(statement, 13, 0) != 0;
    row->intent = column_text(statement, 14);
}

int store_moves_load(struct store *store, int64_t cycle, struct move_row **out, size_t *n,
                     struct err *err)
{
    static const char sql[] =
        "SELECT cycle_id, seq, service, instance, source, target, gain, state, reason,"
        " instance_now, intended_ms, settled_ms, undo_of, detour, intent"
        " FROM moves WHERE cycle_id = ?1 ORDER BY seq";
    sqlite3_stmt *statement = store_use(store, ST_MOVES_LOAD, sql, err);
    if (!statement) {
        return -1;
    }
    bind_int(statement, 1, cycle);
    struct move_row *rows = NULL;
    size_t count = 0;
    int rc;
    while ((rc = store_step(store, statement, err)) == 1) {
        read_move(statement, ARRAY_PUSH(rows, count));
    }
    if (rc < 0) {
        for (size_t i = 0; i < count; i++) {
            move_row_wipe(&rows[i]);
        }
        free(rows);
        return -1;
    }
    *out = rows;
    *n = count;
    return 0;
}

int store_moves_known(struct store *store, int64_t limit,
                      void (*each)(void *arg, int64_t cycle, int64_t seq, int64_t intended_ms,
                                   int64_t settled_ms),
                      void *arg, struct err *err)
{
    static const char sql[] = "SELECT cycle_id, seq, intended_ms, settled_ms FROM moves"
                              " WHERE intended_ms IS NOT NULL ORDER BY intended_ms DESC LIMIT ?1";
    sqlite3_stmt *statement = store_use(store, ST_MOVES_KNOWN, sql, err);
    if (!statement) {
        return -1;
    }
    bind_int(statement, 1, limit);
    int rc;
    while ((rc = store_step(store, statement, err)) == 1) {
        each(arg, column_int(statement, 0, 0), column_int(statement, 1, 0),
             column_int(statement, 2, 0), column_int(statement, 3, -1));
    }
    return rc;
}

int store_moves_same(struct store *store, int64_t cycle, int64_t other, bool *same,
                     struct err *err)
{
#define PLANNED(cycle)                                                                             \
    "SELECT service, instance, source, target, restarts FROM moves"                                \
    " WHERE cycle_id = " cycle " AND state = 'planned'"
    static const char sql[] =
        "SELECT NOT EXISTS (" PLANNED("?1") " EXCEPT " PLANNED("?2") ")"
        " AND NOT EXISTS (" PLANNED("?2") " EXCEPT " PLANNED("?1") ")";
#undef PLANNED
    sqlite3_stmt *statement = store_use(store, ST_MOVES_SAME, sql, err);
    if (!statement) {
        return -1;
    }
    bind_int(statement, 1, cycle);
    bind_int(statement, 2, other);
    if (store_step(store, statement, err) < 0) {
        return -1;
    }
    *same = column_int(statement, 0, 0) != 0;
    sqlite3_reset(statement);
    return 0;
}

int store_last_move_ms(struct store *store, const char *app, const char *service,
                       const char *host, int64_t *out, int *missed, int *displaced,
                       struct err *err)
{
    static const char sql[] =
        "WITH pair AS (SELECT max(m.intended_ms, coalesce(m.settled_ms, 0)) AS at,"
        " m.state IN ('missed', 'partial') AS missed, m.state = 'displaced' AS displaced"
        " FROM moves m JOIN cycles c ON c.cycle_id = m.cycle_id"
        " WHERE m.service = ?2 AND m.intended_ms IS NOT NULL AND m.state <> 'discarded'"
        " AND c.app = ?1 AND EXISTS (SELECT 1 FROM move_hosts h WHERE h.cycle_id = m.cycle_id"
        " AND h.seq = m.seq AND h.host = ?3))"
        " SELECT max(at), total(missed AND at >"
        " coalesce((SELECT max(at) FROM pair WHERE NOT missed), -1)),"
        " total(displaced AND at >"
        " coalesce((SELECT max(at) FROM pair WHERE NOT displaced), -1)) FROM pair";
    sqlite3_stmt *statement = store_use(store, ST_LAST_MOVE, sql, err);
    if (!statement) {
        return -1;
    }
    bind_text(statement, 1, app);
    bind_text(statement, 2, service);
    bind_text(statement, 3, host);
    int rc = store_step(store, statement, err);
    if (rc < 0) {
        return -1;
    }
    *out = rc == 1 ? column_int(statement, 0, -1) : -1; /* an aggregate always has its row */
    *missed = rc == 1 ? (int)column_int(statement, 1, 0) : 0;
    *displaced = rc == 1 ? (int)column_int(statement, 2, 0) : 0;
    sqlite3_reset(statement);
    return 0;
}
