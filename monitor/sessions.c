/* sessions.c - see sessions.h. */
#include "monitor/sessions.h"

#include <stdlib.h>
#include <string.h>

#include "model/base/clock.h"
#include "model/base/json.h"

#define MAX_SESSIONS 32 /* distinct sources of all applications; the longest unused one goes */
/* Applications are inspected at least once a week; a source that the configuration no longer has
 * should not be watched for ever. */
#define UNUSED_MS (INT64_C(8) * 24 * 3600 * 1000)
#define MIN_TEND_MS 100

struct scope { /* an application of a cluster; owned texts, lists ended by NULL */
    char *app;
    char **namespaces, **services;
};

struct session {
    char *key;
    const struct cluster_adapter *cluster; /* one of the two */
    const struct metrics_adapter *metrics;
    void *ctx;
    int64_t used_ms, due_ms; /* monotonic */
    struct scope *scopes;
    size_t n_scopes;
};

struct sessions {
    struct stage *stage;
    struct session *list;
    size_t n;
    bool held;
    int64_t timer;
};

struct sessions *sessions_new(struct stage *stage)
{
    struct sessions *sessions = mem_alloc(sizeof *sessions);
    sessions->stage = stage;
    return sessions;
}

static void texts_free(char **texts)
{
    for (size_t i = 0; texts && texts[i]; i++)
        free(texts[i]);
    free(texts);
}

static void scope_wipe(struct scope *scope)
{
    free(scope->app);
    texts_free(scope->namespaces);
    texts_free(scope->services);
}

static void session_wipe(struct session *session)
{
    if (session->cluster)
        session->cluster->close(session->ctx);
    else
        session->metrics->close(session->ctx);
    for (size_t i = 0; i < session->n_scopes; i++)
        scope_wipe(&session->scopes[i]);
    free(session->scopes);
    free(session->key);
}

static void session_close(struct sessions *sessions, size_t at)
{
    session_wipe(&sessions->list[at]);
    sessions->list[at] = sessions->list[--sessions->n];
}

void sessions_free(struct sessions *sessions)
{
    if (!sessions)
        return;
    loop_timer_cancel(stage_loop(sessions->stage), sessions->timer);
    while (sessions->n)
        session_close(sessions, 0);
    free(sessions->list);
    free(sessions);
}

void sessions_hold(struct sessions *sessions, bool hold)
{
    sessions->held = hold;
}

/* --- releases --- */

static bool is_in(char *const *list, const char *name)
{
    bool found = !list[0];
    for (; *list && !found; list++)
        found = strcmp(*list, name) == 0;
    return found;
}

static bool scope_has(const struct scope *scope, const struct revision *revision)
{
    const char *slash = strrchr(revision->service, '/');
    return is_in(scope->namespaces, revision->space) &&
           (is_in(scope->services, revision->service) ||
            (slash && is_in(scope->services, slash + 1)));
}

static void put_member(struct buf *out, const char *key, const char *text)
{
    buf_printf(out, ",\"%s\":", key);
    json_put_text(out, text);
}

static void on_stored(void *ctx, int64_t row, bool duplicate)
{
    (void)ctx;
    (void)row;
    (void)duplicate;
}

struct told { /* who is told by one session */
    struct sessions *sessions;
    const struct session *session;
};

static void on_released(void *arg, const struct revision *revision)
{
    const struct told *told = arg;
    for (size_t i = 0; i < told->session->n_scopes; i++) {
        const struct scope *scope = &told->session->scopes[i];
        AUTO_BUF struct buf body = BUF_INIT;
        if (!scope_has(scope, revision))
            continue;
        buf_puts(&body, "{\"v\":1,\"app\":");
        json_put_text(&body, scope->app);
        put_member(&body, "kind", "deploy");
        put_member(&body, "text", revision->text);
        buf_puts(&body, ",\"interval_ms\":null");
        AUTO_FREE char *delivery = mem_printf("%s/%s", revision->delivery, scope->app);
        put_member(&body, "delivery", delivery);
        buf_puts(&body, "}");
        stage_event(told->sessions->stage, body.data, body.size, on_stored, NULL);
    }
}

/* --- looking after --- */

static void on_timer(void *ctx);

/* At the earliest time that one of them wants. */
static void arm(struct sessions *sessions)
{
    int64_t now = clock_mono_ms(), next = INT64_MAX;
    for (size_t i = 0; i < sessions->n; i++)
        if (sessions->list[i].due_ms < next)
            next = sessions->list[i].due_ms;
    loop_timer_cancel(stage_loop(sessions->stage), sessions->timer);
    sessions->timer = 0;
    if (next == INT64_MAX)
        return;
    int64_t delay = next - now > MIN_TEND_MS ? next - now : MIN_TEND_MS;
    sessions->timer = loop_timer(stage_loop(sessions->stage), delay, on_timer, sessions);
}

static void tend(struct sessions *sessions, struct session *session)
{
    struct told told = {sessions, session};
    const struct tidings tidings = {on_released, &told};
    int64_t again = session->cluster ? session->cluster->tend(session->ctx, &tidings)
                                     : session->metrics->tend(session->ctx);
    session->due_ms = clock_mono_ms() + again;
}

static void on_timer(void *ctx)
{
    struct sessions *sessions = ctx;
    int64_t now = clock_mono_ms();
    sessions->timer = 0;
    for (size_t i = 0; i < sessions->n && !sessions->held;) {
        if (now - sessions->list[i].used_ms > UNUSED_MS) {
            session_close(sessions, i);
            continue;
        }
        if (sessions->list[i].due_ms <= now) {
            sessions->held = true; /* what it waits for lets the loop turn */
            tend(sessions, &sessions->list[i]);
            sessions->held = false;
        }
        i++;
    }
    arm(sessions);
}

/* --- opening --- */

static char *key_of(const char *kind, const struct source *source)
{
    struct buf key = BUF_INIT;
    json_put_text(&key, kind);
    json_put_text(&key, source->name);
    json_put_text(&key, source->type);
    for (size_t i = 0; i < source->n_options; i++) {
        json_put_text(&key, source->options[i].name);
        json_put_text(&key, source->options[i].value);
    }
    return buf_take(&key);
}

static struct session *find(struct sessions *sessions, const char *key)
{
    for (size_t i = 0; i < sessions->n; i++)
        if (strcmp(sessions->list[i].key, key) == 0) {
            sessions->list[i].used_ms = clock_mono_ms();
            return &sessions->list[i];
        }
    return NULL;
}

static struct session *add(struct sessions *sessions, struct session session)
{
    if (sessions->n == MAX_SESSIONS) {
        size_t oldest = 0;
        for (size_t i = 1; i < sessions->n; i++)
            if (sessions->list[i].used_ms < sessions->list[oldest].used_ms)
                oldest = i;
        session_close(sessions, oldest);
    }
    struct session *added = ARRAY_PUSH(sessions->list, sessions->n);
    *added = session;
    added->used_ms = added->due_ms = clock_mono_ms();
    arm(sessions);
    return &sessions->list[sessions->n - 1];
}

static char **texts_copy(const char *const *texts)
{
    size_t n = 0;
    while (texts && texts[n])
        n++;
    char **copy = mem_array(n + 1, sizeof *copy);
    for (size_t i = 0; i < n; i++)
        copy[i] = mem_strdup(texts[i]);
    return copy;
}

/* The newest scope of an application counts. */
static void note_scope(struct session *session, const struct app_scope *app)
{
    struct scope *scope = NULL;
    for (size_t i = 0; i < session->n_scopes && !scope; i++)
        if (strcmp(session->scopes[i].app, app->name) == 0)
            scope = &session->scopes[i];
    if (scope)
        scope_wipe(scope);
    else
        scope = ARRAY_PUSH(session->scopes, session->n_scopes);
    *scope = (struct scope){mem_strdup(app->name), texts_copy(app->namespaces),
                            texts_copy(app->services)};
}

int sessions_cluster(struct sessions *sessions, const struct cluster_adapter *adapter,
                     const struct source *source, const struct app_scope *app, void **ctx,
                     struct err *err)
{
    AUTO_FREE char *key = key_of("cluster", source);
    struct session *session = find(sessions, key);
    if (!session) {
        struct session made = {.cluster = adapter};
        if (adapter->open(source, &made.ctx, err))
            return -1;
        made.key = steal(key);
        session = add(sessions, made);
    }
    note_scope(session, app);
    *ctx = session->ctx;
    return 0;
}

int sessions_metrics(struct sessions *sessions, const struct metrics_adapter *adapter,
                     const struct source *source, void **ctx, struct err *err)
{
    AUTO_FREE char *key = key_of("metrics", source);
    struct session *session = find(sessions, key);
    if (!session) {
        struct session made = {.metrics = adapter};
        if (adapter->open(source, &made.ctx, err))
            return -1;
        made.key = steal(key);
        session = add(sessions, made);
    }
    *ctx = session->ctx;
    return 0;
}
