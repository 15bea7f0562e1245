/* http_api.c - which view answers which resource, and how its rows are chosen and ordered. The SQL
 * is put together from the constants below; what clients send is only ever bound. */
#include "model/manager/http_api.h"

#include <stdlib.h>
#include <string.h>
#include "model/base/mem.h"

struct resource {
    const char *name;
    const char *select;    /* up to and with its view, named v */
    const char *by_cycle;  /* condition on parameter ?%d; NULL: takes no cycle= */
    const char *by_app;
    const char *otherwise; /* condition when cycle= is absent; NULL: all rows; %s: the app's cycles */
    const char *order;
};

#define OF_CYCLE "v.cycle_id = CAST(?%d AS INTEGER)"
#define OF_APP "v.app = ?%d"
#define OF_APPS_CYCLES "v.cycle_id IN (SELECT cycle_id FROM v_cycles WHERE app = ?%d)"
/* Edges and affinities are many: without cycle= those of the latest cycle that has them. */
#define LATEST_WITH(view) "v.cycle_id = (SELECT max(cycle_id) FROM " view " AS v WHERE %s)"

static const struct resource resources[] = {
    {"placement", "SELECT * FROM v_placement v", OF_CYCLE, OF_APP, NULL,
     "v.app, v.host, v.service, v.instance"},
    {"cycles", "SELECT * FROM v_cycles v", OF_CYCLE, OF_APP, NULL, "v.cycle_id DESC"},
    {"edges", "SELECT * FROM v_edges v", OF_CYCLE, OF_APPS_CYCLES, LATEST_WITH("v_edges"),
     "v.count DESC, v.src, v.dst"},
    {"affinity", "SELECT * FROM v_affinity v", OF_CYCLE, OF_APPS_CYCLES,
     LATEST_WITH("v_affinity"), "v.level, v.rank"},
    {"plans", "SELECT * FROM v_plans v", OF_CYCLE, OF_APPS_CYCLES, NULL, "v.cycle_id DESC"},
    {"moves", "SELECT * FROM v_moves v", OF_CYCLE, OF_APPS_CYCLES, NULL,
     "v.cycle_id DESC, v.seq"},
    {"savings", "SELECT * FROM v_savings v", OF_CYCLE, OF_APP, NULL, "v.cycle_id DESC"},
    {"events", "SELECT * FROM v_events v", OF_CYCLE, OF_APP, NULL, "v.event_id DESC"},
    {"apps",
     "SELECT v.app, v.mode, v.paused, v.next_due_ms, v.interval_ms,"
     " (SELECT max(cycle_id) FROM v_cycles c WHERE c.app = v.app) AS last_cycle_id"
     " FROM apps v",
     NULL, OF_APP, NULL, "v.app"},
    {"drift", "SELECT * FROM v_drift v", NULL, OF_APP, NULL, "v.app"},
};

const char *const http_api_names[] = {"placement", "cycles",  "edges",  "affinity", "plans",
                                      "moves",     "savings", "events", "apps",     "drift", NULL};

/* Digits only, 1 … max. */
static int read_number(const char *name, const char *text, int64_t max, struct err *err)
{
    size_t n = strlen(text);
    if (n == 0 || n > 18 || strspn(text, "0123456789") != n || atoll(text) < 1 ||
        atoll(text) > max) {
        return err_set(err, ERR_INPUT, "%s: must be a whole number from 1 to %lld", name,
                       (long long)max);
    }
    return 0;
}

static const struct resource *find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(resources); i++) {
        if (strcmp(resources[i].name, name) == 0) {
            return &resources[i];
        }
    }
    return NULL;
}

static int check_query(const struct resource *resource, const struct http_query *query,
                       struct err *err)
{
    if (query->cycle && !resource->by_cycle) {
        return err_set(err, ERR_INPUT, "cycle: %s has none", resource->name);
    }
    if (query->cycle && read_number("cycle", query->cycle, INT64_MAX, err)) {
        return -1;
    }
    if (query->limit && read_number("limit", query->limit, HTTP_API_MAX_ROWS, err)) {
        return -1;
    }
    return 0;
}

/* The list of resources. */
static void put_names(struct buf *out)
{
    for (size_t i = 0; http_api_names[i]; i++) {
        buf_printf(out, "%s\"/api/v1/%s\"", i ? "," : "[", http_api_names[i]);
    }
    buf_puts(out, "]");
}

int http_api_answer(struct store *store, const char *name, const struct http_query *query,
                    struct buf *out, struct err *err)
{
    const struct resource *resource = find(name);
    if (!*name) {
        put_names(out);
        return 0;
    }
    if (!resource) {
        return err_set(err, ERR_NOT_FOUND, "no such resource");
    }
    if (check_query(resource, query, err)) {
        return -1;
    }
    const char *args[4] = {NULL};
    int n = 0;
    AUTO_BUF struct buf sql = BUF_INIT;
    AUTO_BUF struct buf app = BUF_INIT;
    buf_puts(&app, "1");
    if (query->app) {
        args[n++] = query->app;
        buf_clear(&app);
        buf_printf(&app, resource->by_app, n);
    }
    buf_printf(&sql, "%s WHERE %s", resource->select, app.data);
    if (query->cycle) {
        args[n++] = query->cycle;
        buf_puts(&sql, " AND ");
        buf_printf(&sql, resource->by_cycle, n);
    } else if (resource->otherwise) {
        buf_puts(&sql, " AND ");
        buf_printf(&sql, resource->otherwise, app.data);
    }
    args[n++] = query->limit ? query->limit : "1000";
    buf_printf(&sql, " ORDER BY %s LIMIT CAST(?%d AS INTEGER)", resource->order, n);
    return store_query_json(store, sql.data, args, out, err);
}
