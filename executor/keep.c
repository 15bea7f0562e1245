/* keep.c - see keep.h. */
#include "executor/keep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adapters/http/http.h"
#include "executor/keep_internal.h"
#include "executor/request.h"
#include "model/base/clock.h"
#include "model/base/log.h"

#define MAX_SOURCES 10000 /* as many as there may be apps */
#define SLOW_MS 5000      /* on top of what the lock itself may take: a server that answers late */
#define MAX_MOVES 100000
#define CLOCK_SLACK_MS 1000 /* an API server may round times to seconds */
#define ADOPT_AFTER "10m" /* longer than any ready_timeout that makes sense (5m by default) */
#define AGAIN_MS 50         /* a turn that came while another waited for its answer */

struct keep {
    struct stage *stage;
    struct kept **list;
    size_t n;
    struct buf later; /* a configuration that came during a turn, which uses the present one */
};

/* --- telling --- */

static void on_stored(void *ctx, int64_t row, bool duplicate)
{
    (void)ctx;
    (void)row;
    (void)duplicate;
}

void kept_say(struct kept *kept, const char *app, const char *kind, const char *text)
{
    log_info("%s: %s", kind, text);
    if (stage_is_filter(kept->stage))
        return;
    AUTO_BUF struct buf body = BUF_INIT;
    buf_puts(&body, "{\"v\":1,\"app\":");
    json_put_text(&body, app);
    buf_puts(&body, ",\"kind\":");
    json_put_text(&body, kind);
    buf_puts(&body, ",\"text\":");
    json_put_text(&body, text);
    buf_puts(&body, ",\"interval_ms\":null,\"delivery\":null}");
    stage_event(kept->stage, body.data, body.size, on_stored, NULL);
}

/* --- one source --- */

static void on_turn(void *ctx);

static void kept_arm(struct kept *kept, int64_t ms)
{
    loop_timer_cancel(stage_loop(kept->stage), kept->timer);
    kept->timer = loop_timer(stage_loop(kept->stage), ms, on_turn, kept);
}

/* The manager asks for no moves then, and can say why. */
static void tell_paused(struct kept *kept)
{
    const struct keeper_state *state = &kept->state;
    snprintf(kept->paused_why, sizeof kept->paused_why, "paused by %s", state->paused_by);
    if (stage_is_filter(kept->stage))
        return;
    AUTO_BUF struct buf body = BUF_INIT;
    buf_puts(&body, "{\"v\":1,\"source\":");
    json_put_text(&body, kept->source.name);
    buf_puts(&body, ",\"paused_by\":");
    json_put_text(&body, state->paused ? state->paused_by : NULL);
    buf_puts(&body, "}");
    stage_kept(kept->stage, body.data, body.size);
}

/* A turn asks foreign servers, meanwhile the loop goes on: never one within another. */
static void kept_turn(struct kept *kept)
{
    const struct keeper *keeper = kept->orchestrator->keeper;
    struct keeper_state before = kept->state;
    int64_t again_ms = keeper->turn(kept->ctx, &kept->state);
    kept->turned++;
    if (kept->turned == 1 || before.paused != kept->state.paused)
        tell_paused(kept); /* before the event, so that who sees that is answered by this */
    if (strcmp(before.text, kept->state.text) != 0)
        kept_say(kept, NULL, "lease", kept->state.text);
    if (!kept->state.leads) {
        kept_adopt_end(kept);
        kept->adopted = false;
    } else if (!kept->adopted) {
        kept->adopted = kept_adopt(kept);
    } else {
        kept_relieve(kept);
    }
    if (keeper->address)
        kept_listen(kept);
    kept_arm(kept, again_ms);
}

static void on_turn(void *ctx)
{
    struct kept *kept = ctx;
    if (kept->turning) {
        kept_arm(kept, AGAIN_MS);
        return;
    }
    struct keep *keep = kept->keep;
    kept->turning = true;
    kept_turn(kept);
    kept->turning = false;
    if (keep && keep->later.size > 0) {
        AUTO_BUF struct buf body = keep->later;
        keep->later = (struct buf)BUF_INIT;
        keep_configure(keep, body.data, body.size); /* may be the end of `kept` */
    }
}

static void source_copy(const struct source *from, struct source *to)
{
    struct option *options = mem_array(from->n_options + 1, sizeof *options);
    for (size_t i = 0; i < from->n_options; i++)
        options[i] =
            (struct option){mem_strdup(from->options[i].name), mem_strdup(from->options[i].value)};
    *to = (struct source){mem_strdup(from->name), mem_strdup(from->type), options, from->n_options};
}

static bool source_same(const struct source *a, const struct source *b)
{
    if (strcmp(a->name, b->name) != 0 || strcmp(a->type, b->type) != 0 ||
        a->n_options != b->n_options)
        return false;
    for (size_t i = 0; i < a->n_options; i++)
        if (strcmp(a->options[i].name, b->options[i].name) != 0 ||
            strcmp(a->options[i].value, b->options[i].value) != 0)
            return false;
    return true;
}

static void app_wipe(struct kept_app *app)
{
    request_wipe_app(&app->scope);
    for (size_t i = 0; i < app->n_held; i++) {
        free(app->held[i].service);
        free(app->held[i].text);
    }
    free(app->held);
}

static void apps_wipe(struct kept_app **apps, size_t *n)
{
    for (size_t i = 0; i < *n; i++)
        app_wipe(&(*apps)[i]);
    free(*apps);
    *apps = NULL;
    *n = 0;
}

static void kept_free(struct kept *kept)
{
    loop_timer_cancel(stage_loop(kept->stage), kept->timer);
    kept_adopt_end(kept);
    kept_relieve_end(kept);
    kept_unlisten(kept);
    kept->orchestrator->keeper->close(kept->ctx);
    request_wipe_source(&kept->source);
    apps_wipe(&kept->apps, &kept->n_apps);
    free(kept->known);
    free(kept->listen_trouble);
    free(kept);
}

/* On the bus the daemon is our parent, and the same for each life of this stage; a filter acts for
 * itself. */
static int64_t holder_pid(const struct stage *stage)
{
    return stage_is_filter(stage) ? getpid() : getppid();
}

static struct kept *kept_new(struct stage *stage, const struct orchestrator *orchestrator,
                             const struct source *source, struct err *err)
{
    void *ctx = NULL;
    int64_t adopt_ms;
    if (source_check(source, orchestrator->options, err) < 0 ||
        duration_parse(source_option(source, "adopt_after", ADOPT_AFTER), &adopt_ms, err) < 0 ||
        orchestrator->keeper->open(source, holder_pid(stage), &ctx, err) < 0)
        return NULL;
    struct kept *kept = mem_alloc(sizeof *kept);
    kept->stage = stage;
    kept->orchestrator = orchestrator;
    kept->ctx = ctx;
    kept->adopt_ms = adopt_ms;
    source_copy(source, &kept->source);
    kept_arm(kept, 0);
    return kept;
}

static struct kept *keep_find(struct keep *keep, const struct source *source)
{
    for (size_t i = 0; i < keep->n; i++)
        if (source_same(&keep->list[i]->source, source))
            return keep->list[i];
    return NULL;
}

/* --- for requests --- */

int kept_join(struct stage *stage, const struct orchestrator *orchestrator,
              const struct source *source, struct kept **out, struct err *err)
{
    struct keep *keep = stage_state(stage);
    struct kept *kept = keep ? keep_find(keep, source) : NULL;
    *out = NULL;
    if (!orchestrator->keeper)
        return 0;
    if (!kept) {
        kept = kept_new(stage, orchestrator, source, err);
        if (!kept)
            return -1;
        kept->keep = keep;
        if (keep)
            *ARRAY_PUSH(keep->list, keep->n) = kept;
    }
    kept->users++;
    *out = kept;
    return 0;
}

/* Nobody wants it any more. A turn under way is on the stack below us: then the next request or
 * `configure` looks again. */
static void keep_sweep(struct keep *keep)
{
    for (size_t i = 0; i < keep->n; i++) {
        struct kept *kept = keep->list[i];
        if (!kept->configured && kept->users == 0 && !kept->turning) {
            keep->list[i--] = keep->list[--keep->n];
            kept_free(kept);
        }
    }
}

static void flush(struct kept *kept)
{
    const struct keeper *keeper = kept->orchestrator->keeper;
    if (kept->ctx && keeper->flush)
        keeper->flush(kept->ctx);
}

void kept_tell(struct kept *kept, const struct announcement *what)
{
    if (!kept->orchestrator->keeper->announce)
        return;
    kept->orchestrator->keeper->announce(kept->ctx, what);
    flush(kept);
}

void kept_leave(struct kept *kept)
{
    if (!kept)
        return;
    flush(kept);
    kept->users--;
    if (kept->keep)
        keep_sweep(kept->keep);
    else if (kept->users == 0)
        kept_free(kept);
}

void *kept_ctx(const struct kept *kept)
{
    return kept ? kept->ctx : NULL;
}

int kept_may_write(struct kept *kept, struct err *err)
{
    return kept && kept->orchestrator->keeper->may_write
               ? kept->orchestrator->keeper->may_write(kept->ctx, err)
               : 0;
}

int kept_await(struct kept *kept, struct err *err)
{
    struct err why = ERR_INIT;
    int64_t start_ms = clock_mono_ms(), done = 0;
    while (kept && (kept->turned == 0 || kept_may_write(kept, &why) < 0 || !kept->adopted)) {
        bool adopting = kept->state.leads && !kept->adopted;
        if (!adopting && clock_mono_ms() - start_ms >= kept->state.patience_ms + SLOW_MS)
            return err_set(err, ERR_REFUSED, "%s: %s", kept->source.name, why.text);
        if (stage_progress(kept->stage, adopting ? ++done : done, NULL, err) < 0 ||
            stage_wait(kept->stage, AGAIN_MS))
            return err_set(err, ERR_REFUSED, "stopped");
    }
    return 0;
}

bool kept_paused(const struct kept *kept, const char **why)
{
    if (!kept || !kept->state.paused)
        return false;
    *why = kept->paused_why;
    return true;
}

void kept_own(struct kept *kept, int64_t cycle, int64_t seq)
{
    if (kept)
        *ARRAY_PUSH(kept->known, kept->n_known) =
            (struct kept_move){cycle, seq, clock_wall_ms() - CLOCK_SLACK_MS, INT64_MAX};
}

bool kept_knows(const struct kept *kept, const struct keeper_mark *mark)
{
    for (size_t i = 0; i < kept->n_known; i++) {
        const struct kept_move *move = &kept->known[i];
        if (move->cycle == mark->placement.cycle && move->seq == mark->placement.seq &&
            mark->at_ms >= move->from_ms && mark->at_ms <= move->to_ms)
            return true;
    }
    return false;
}

void kept_announce(struct kept *kept, int64_t cycle, const struct outcome *o)
{
    if (!kept || !kept->orchestrator->keeper->announce || o->state == OUTCOME_DISCARDED)
        return;
    bool undo = o->undo_of >= 0;
    const struct announcement what = {
        .cycle = cycle,
        .seq = o->seq,
        .service = o->service,
        .instance = o->instance,
        .target = undo ? o->source : o->target,
        .state = undo && o->state == OUTCOME_APPLIED ? "undone" : outcome_state_name(o->state),
        .reason = o->reason,
        .bad = o->state == OUTCOME_FAILED};
    kept->orchestrator->keeper->announce(kept->ctx, &what);
}

/* --- the stage's hooks --- */

/* The loop goes on while a foreign server is waited for. */
static void let_loop_turn(void *stage)
{
    (void)stage_stopping(stage);
}

int keep_open(struct stage *stage, void **state, struct err *err)
{
    (void)err;
    struct keep *keep = mem_alloc(sizeof *keep);
    keep->stage = stage;
    *state = keep;
    http_idle(let_loop_turn, stage);
    return 0;
}

void keep_close(void *state)
{
    struct keep *keep = state;
    http_idle(NULL, NULL);
    for (size_t i = 0; i < keep->n; i++)
        kept_free(keep->list[i]);
    free(keep->list);
    buf_wipe(&keep->later);
    free(keep);
}

/* `moves`: caller frees. */
static int read_moves(const struct jval *list, struct kept_move **out, size_t *n, struct err *err)
{
    if (jval_array(list, MAX_MOVES, n, err) < 0)
        return -1;
    *out = mem_array(*n + 1, sizeof **out);
    for (size_t i = 0; i < *n; i++) {
        struct kept_move *move = &(*out)[i];
        struct jval row = jval_at(list, i);
        int64_t *const to[] = {&move->cycle, &move->seq, &move->from_ms, &move->to_ms};
        size_t width;
        if (jval_array(&row, ARRAY_LEN(to), &width, err) < 0)
            return -1;
        for (size_t k = 0; k < ARRAY_LEN(to); k++) {
            struct jval number = jval_at(&row, k);
            if (jval_int(&number, -1, MODEL_MAX_NUMBER, to[k], err) < 0)
                return -1;
        }
        move->from_ms -= CLOCK_SLACK_MS;
        move->to_ms = move->to_ms < 0 ? INT64_MAX : move->to_ms + CLOCK_SLACK_MS;
    }
    return 0;
}

/* What the store knows; what this process did since stays. */
static void kept_learn(struct kept *kept, const struct kept_move *moves, size_t n)
{
    for (size_t i = 0; i < n; i++)
        *ARRAY_PUSH(kept->known, kept->n_known) = moves[i];
}

/* NULL: pins stay as they are. */
static int read_relief(const struct jval *entry, struct kept_relief *out, struct err *err)
{
    static const char *const keys[] = {"look_only", "max_restarts", "max_service_restarts",
                                       "interval_ms", NULL};
    struct jval v = jval_get(entry, "relief"), interval = jval_get(&v, "interval_ms");
    *out = (struct kept_relief){.max_restarts = -1, .max_service_restarts = -1};
    if (jval_absent(&v) || jval_null(&v))
        return 0;
    out->wanted = true;
    return jval_object(&v, keys, err) < 0 ||
                   jval_opt_bool(&v, "look_only", &out->look_only, err) < 0 ||
                   jval_opt_int(&v, "max_restarts", 0, MODEL_MAX_NUMBER, &out->max_restarts,
                                err) < 0 ||
                   jval_opt_int(&v, "max_service_restarts", 0, MODEL_MAX_NUMBER,
                                &out->max_service_restarts, err) < 0 ||
                   jval_int(&interval, 1, MODEL_MAX_NUMBER, &out->interval_ms, err) < 0
               ? -1
               : 0;
}

/* One element of `orchestrators`. */
static int configure_one(struct keep *keep, const struct jval *entry, const struct kept_move *moves,
                         size_t n_moves, struct err *err)
{
    static const char *const keys[] = {"app", "orchestrator", "relief", NULL};
    struct source source = {0};
    struct app_scope app = {0};
    struct kept_relief relief;
    int rc = jval_object(entry, keys, err);
    if (rc == 0)
        rc = read_relief(entry, &relief, err);
    if (rc == 0)
        rc = request_read_app(entry, &app, err);
    if (rc == 0)
        rc = request_read_source(entry, "orchestrator", &source, err);
    const struct orchestrator *adapter = rc == 0 ? orchestrator_find(source.type) : NULL;
    if (adapter && adapter->keeper) {
        struct kept *kept = keep_find(keep, &source);
        if (!kept && (kept = kept_new(keep->stage, adapter, &source, err))) {
            kept->keep = keep;
            *ARRAY_PUSH(keep->list, keep->n) = kept;
        }
        if (kept) {
            kept->configured = true;
            kept_learn(kept, moves, n_moves);
            *ARRAY_PUSH(kept->apps, kept->n_apps) = (struct kept_app){.scope = app, .relief = relief};
            kept_relieve_go_on(kept, &kept->apps[kept->n_apps - 1]);
            app = (struct app_scope){0};
        } else {
            rc = -1;
        }
    }
    request_wipe_app(&app);
    request_wipe_source(&source);
    return rc;
}

static int configure_all(struct keep *keep, const struct jval *root, struct err *err)
{
    static const char *const keys[] = {"v", "moves", "orchestrators", NULL};
    struct jval v = jval_get(root, "v"), list = jval_get(root, "orchestrators");
    struct jval known = jval_get(root, "moves");
    AUTO_FREE struct kept_move *moves = NULL;
    int64_t version;
    size_t n, n_moves;
    if (jval_object(root, keys, err) < 0 || jval_int(&v, 1, 1, &version, err) < 0 ||
        read_moves(&known, &moves, &n_moves, err) < 0 ||
        jval_array(&list, MAX_SOURCES, &n, err) < 0)
        return -1;
    for (size_t i = 0; i < keep->n; i++) {
        keep->list[i]->configured = false;
        keep->list[i]->n_known = 0; /* what was done since is in the store */
        keep->list[i]->earlier = steal(keep->list[i]->apps);
        keep->list[i]->n_earlier = keep->list[i]->n_apps;
        keep->list[i]->n_apps = 0;
    }
    for (size_t i = 0; i < n; i++) {
        struct err why = ERR_INIT;
        struct jval entry = jval_at(&list, i);
        if (configure_one(keep, &entry, moves, n_moves, &why) < 0)
            log_warn("orchestrator: %s", why.text); /* each request with it says so too */
    }
    for (size_t i = 0; i < keep->n; i++)
        apps_wipe(&keep->list[i]->earlier, &keep->list[i]->n_earlier);
    return 0;
}

void keep_configure(void *state, const char *body, size_t size)
{
    struct keep *keep = state;
    struct err err = ERR_INIT;
    for (size_t i = 0; i < keep->n; i++)
        if (keep->list[i]->turning) {
            buf_clear(&keep->later);
            buf_add(&keep->later, body, size);
            return;
        }
    AUTO_JSON json_t *tree = json_parse(body, size, &json_limits_document, &err);
    struct jval root = jval_root(tree);
    if (!tree || configure_all(keep, &root, &err) < 0)
        log_warn("configure: %s", err.text);
    keep_sweep(keep);
}
