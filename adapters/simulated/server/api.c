/* api.c - routes, requests that change something, and errors. The reading side is api_read.c. */
#include "adapters/simulated/server/api.h"

#include "adapters/simulated/server/api_read.h"
#include "model/model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void answer_error(struct api_answer *out, int status, const char *text)
{
    buf_clear(&out->body);
    out->status = status;
    out->content_type = "application/json";
    buf_puts(&out->body, "{\"error\":");
    json_put_text(&out->body, text);
    buf_puts(&out->body, "}\n");
}

static void answer_err(struct api_answer *out, const struct err *err)
{
    int status = 500;
    if (err->kind == ERR_INPUT)
        status = 400;
    else if (err->kind == ERR_NOT_FOUND)
        status = 404;
    else if (err->kind == ERR_CONFLICT)
        status = 409;
    else if (err->kind == ERR_TOO_LARGE)
        status = 413;
    else if (err->kind == ERR_REFUSED)
        status = 422;
    answer_error(out, status, err->text);
}

/* Parses the body as one object with none but these keys. */
static json_t *body_parse(const struct api_request *req, const char *const keys[],
                          struct jval *root, struct err *err)
{
    json_t *tree = json_parse(req->body ? req->body : "", req->size, &json_limits_header, err);
    if (!tree)
        return NULL;
    *root = jval_root(tree);
    if (!jval_object(root, keys, err))
        return tree;
    json_decref(tree);
    return NULL;
}

static int get_mark(const struct jval *root, struct mark *mark, struct err *err)
{
    struct jval cycle = jval_get(root, "cycle"), seq = jval_get(root, "seq");
    if (jval_int(&cycle, 0, MODEL_MAX_NUMBER, &mark->cycle, err) ||
        jval_int(&seq, 0, MODEL_MAX_NUMBER, &mark->seq, err))
        return -1;
    return 0;
}

static void put_move_answer(struct sim *sim, struct mark mark, const struct sim_answer *done,
                            struct buf *out)
{
    const struct cluster *c = sim_cluster(sim);
    buf_printf(out, "{\"v\":1,\"mark\":\"%lld/%lld\",\"replica\":", (long long)mark.cycle,
               (long long)mark.seq);
    json_put_text(out, done->replica >= 0 ? c->replicas[done->replica].name : NULL);
    buf_puts(out, "}\n");
}

static int do_place(struct sim *sim, const struct api_request *req, struct api_answer *out,
                    struct err *err)
{
    static const char *const keys[] = {"cycle",  "seq",    "service", "instance",
                                       "source", "target", NULL};
    struct jval root;
    AUTO_JSON json_t *tree = body_parse(req, keys, &root, err);
    if (!tree)
        return -1;
    struct sim_move move = {.mark = MARK_NONE};
    struct jval service = jval_get(&root, "service"), instance = jval_get(&root, "instance"),
                source = jval_get(&root, "source"), target = jval_get(&root, "target");
    if (get_mark(&root, &move.mark, err) || jval_name(&service, &move.service, err) ||
        jval_name(&instance, &move.instance, err) || jval_name(&target, &move.target, err))
        return -1;
    if (!jval_absent(&source) && !jval_null(&source) && jval_name(&source, &move.source, err))
        return -1;
    struct sim_answer done;
    if (sim_place(sim, &move, &done, err))
        return -1;
    out->drop = done.lost;
    put_move_answer(sim, move.mark, &done, &out->body);
    return 0;
}

static int do_undo(struct sim *sim, const struct api_request *req, struct api_answer *out,
                   struct err *err)
{
    static const char *const keys[] = {"cycle", "seq", NULL};
    struct jval root;
    struct mark mark;
    struct sim_answer done;
    AUTO_JSON json_t *tree = body_parse(req, keys, &root, err);
    if (!tree || get_mark(&root, &mark, err) || sim_undo(sim, mark, &done, err))
        return -1;
    put_move_answer(sim, mark, &done, &out->body);
    return 0;
}

static int do_release(struct sim *sim, const struct api_request *req, struct api_answer *out,
                      struct err *err)
{
    static const char *const keys[] = {"service", "dry_run", NULL};
    struct jval root;
    bool dry_run = false;
    int service = -1;
    int64_t marks = 0;
    const char *name = NULL;
    AUTO_JSON json_t *tree = body_parse(req, keys, &root, err);
    if (!tree || jval_opt_bool(&root, "dry_run", &dry_run, err))
        return -1;
    struct jval v = jval_get(&root, "service");
    if (!jval_absent(&v) && !jval_null(&v)) {
        if (jval_name(&v, &name, err))
            return -1;
        service = scenario_service(sim_cluster(sim)->scenario, name);
        if (service < 0)
            return err_set(err, ERR_NOT_FOUND, "there is no service %s", name);
    }
    if (sim_release(sim, service, dry_run, &marks, err))
        return -1;
    buf_printf(&out->body, "{\"v\":1,\"marks\":%lld,\"restarts\":0}\n", (long long)marks);
    return 0;
}

/* The fault as in a scenario, but from now: at_ms counts from the time of the request. */
static int do_fault(struct sim *sim, const struct api_request *req, struct api_answer *out,
                    struct err *err)
{
    AUTO_JSON json_t *tree =
        json_parse(req->body ? req->body : "", req->size, &json_limits_header, err);
    struct jval root = jval_root(tree);
    struct fault fault;
    const struct cluster *c = sim_cluster(sim);
    if (!tree || fault_decode(c->scenario, &root, &fault, err))
        return -1;
    if (fault.at_ms > INT64_C(315360000000))
        return err_set(err, ERR_INPUT, "at_ms: is more than ten years away");
    fault.at_ms += c->last_ms;
    fault.done = false;
    if (sim_fault(sim, &fault, err) || sim_advance(sim, c->last_ms, err))
        return -1;
    buf_printf(&out->body, "{\"v\":1,\"fault\":%zu}\n", c->n_faults - 1);
    return 0;
}

static int do_clear(struct sim *sim, const struct api_request *req, struct api_answer *out,
                    struct err *err)
{
    (void)req;
    if (sim_clear_faults(sim, err))
        return -1;
    buf_puts(&out->body, "{\"v\":1}\n");
    return 0;
}

struct route {
    const char *method, *path;
    int (*handle)(struct sim *sim, const struct api_request *req, struct api_answer *out,
                  struct err *err);
    bool control; /* of the simulation itself: no fault disturbs it */
};

static const struct route routes[] = {
    {"GET", "/healthz", api_health, true},       {"GET", "/v1/cluster", api_cluster, false},
    {"GET", "/v1/metrics", api_metrics, false},  {"GET", "/v1/messages", api_messages, false},
    {"GET", "/v1/response", api_response, true}, {"GET", "/v1/settled", api_settled, false},
    {"GET", "/v1/state", api_state, true},       {"GET", "/v1/journal", api_journal, true},
    {"GET", "/v1/faults", api_faults, true},     {"POST", "/v1/place", do_place, false},
    {"POST", "/v1/undo", do_undo, false},        {"POST", "/v1/release", do_release, false},
    {"POST", "/v1/faults", do_fault, true},      {"POST", "/v1/faults/clear", do_clear, true},
};

static const struct route *route_find(const struct api_request *req, bool *path_known)
{
    *path_known = false;
    for (size_t i = 0; i < ARRAY_LEN(routes); i++) {
        if (strcmp(routes[i].path, req->path) != 0)
            continue;
        *path_known = true;
        if (!strcmp(routes[i].method, req->method))
            return &routes[i];
    }
    return NULL;
}

/* slow and refuse. 1: refused, the answer is there. */
static int disturb(struct sim *sim, bool write, struct api_answer *out, struct err *err)
{
    const struct cluster *c = sim_cluster(sim);
    int slow = sim_fault_armed(sim, FAULT_SLOW, -1, -1, write);
    if (slow >= 0) {
        out->delay_ms = c->faults[slow].delay_ms;
        if (sim_fault_use(sim, slow, err))
            return -1;
    }
    int refuse = sim_fault_armed(sim, FAULT_REFUSE, -1, -1, write);
    if (refuse < 0)
        return 0;
    int status = (int)c->faults[refuse].status;
    if (sim_fault_use(sim, refuse, err))
        return -1;
    answer_error(out, status, "refused by a fault of the scenario");
    return 1;
}

void api_handle(struct sim *sim, const struct api_request *req, struct api_answer *out)
{
    struct err err = ERR_INIT;
    bool path_known;
    const struct route *route = route_find(req, &path_known);
    *out = (struct api_answer){.status = 200, .content_type = "application/json"};
    if (!route) {
        answer_error(out, path_known ? 405 : 404,
                     path_known ? "method not allowed" : "no such path");
        return;
    }
    if (req->size > API_MAX_BODY) {
        answer_error(out, 413, "request too large");
        return;
    }
    bool write = strcmp(req->method, "GET") != 0;
    int result = sim_advance(sim, cluster_sim_ms(sim_cluster(sim), req->wall_ms), &err);
    if (!result && !route->control)
        result = disturb(sim, write, out, &err);
    if (!result)
        result = route->handle(sim, req, out, &err);
    struct err sync = ERR_INIT;
    if (sim_sync(sim, &sync)) {
        answer_err(out, &sync);
        return;
    }
    if (result < 0)
        answer_err(out, &err);
}
