/* client.c - talking to remap-simulated: connection, options, answers. */
#include "adapters/simulated/simulated.h"

#include "model/base/clock.h"

#include <stdlib.h>
#include <string.h>

/* 10,000 replicas of about 300 bytes each in one document are 3 MB; ten times that. */
#define ANSWER_MAX_BYTES ((size_t)32 << 20)

const struct option_spec simulated_options[] = {
    {"socket", "Unix socket of remap-simulated", NULL, true},
    {"speed", "simulated seconds per second; intervals, windows and settle times are divided by it",
     "1", false},
    {"timeout", "for one answer", "5s", false},
    {NULL, NULL, NULL, false}};

int simulated_open(const struct source *source, void **ctx, struct err *err)
{
    int64_t timeout_ms = 0;
    if (source_check(source, simulated_options, err))
        return -1;
    if (duration_parse(source_option(source, "timeout", "5s"), &timeout_ms, err))
        return err_prefix(err, "%s: timeout", source->name);
    char *end;
    const char *text = source_option(source, "speed", "1");
    double speed = strtod(text, &end);
    if (!(speed > 0) || *end)
        return err_set(err, ERR_CONFIG, "%s: speed must be above 0, not %.40s", source->name, text);
    const struct http_options options = {.unix_socket = source_option(source, "socket", ""),
                                         .base_url = "http://simulated",
                                         .total_timeout_ms = timeout_ms,
                                         .max_bytes = ANSWER_MAX_BYTES};
    struct http *http = http_new(&options, err);
    if (!http)
        return err_prefix(err, "%s", source->name);
    struct simulated *sim = mem_alloc(sizeof *sim);
    *sim = (struct simulated){http, speed};
    *ctx = sim;
    return 0;
}

void simulated_close(void *ctx)
{
    struct simulated *sim = ctx;
    if (sim)
        http_free(sim->http);
    free(sim);
}

static json_t *parse(const struct http_answer *answer, const char *path, struct err *err)
{
    json_t *tree = json_parse(answer->body.data ? answer->body.data : "", answer->body.size,
                              &json_limits_document, err);
    if (!tree)
        err_prefix(err, "answer to %.*s", (int)strcspn(path, "?"), path);
    return tree;
}

/* Where the server said why, its words replace the status line. */
static void own_words(const struct http_answer *answer, struct err *err)
{
    struct err ignored = ERR_INIT;
    if (answer->status < 400 || !answer->body.size)
        return;
    AUTO_JSON json_t *tree =
        json_parse(answer->body.data, answer->body.size, &json_limits_header, &ignored);
    const char *text = simulated_text(tree, "error");
    if (text)
        err_set(err, err->kind, "remap-simulated: %s (status %ld)", text, answer->status);
}

json_t *simulated_get(struct simulated *sim, const char *path, struct err *err)
{
    AUTO_HTTP_ANSWER struct http_answer answer = HTTP_ANSWER_INIT;
    if (!http_get(sim->http, path, &answer, err))
        return parse(&answer, path, err);
    own_words(&answer, err);
    return NULL;
}

json_t *simulated_post(struct simulated *sim, const char *path, const struct buf *body,
                       struct err *err)
{
    AUTO_HTTP_ANSWER struct http_answer answer = HTTP_ANSWER_INIT;
    if (!http_send(sim->http, "POST", path, "application/json", body->data, body->size, &answer,
                   err))
        return parse(&answer, path, err);
    own_words(&answer, err);
    return NULL;
}

const char *simulated_text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

int64_t simulated_int(const json_t *object, const char *key, int64_t fallback)
{
    const json_t *value = json_object_get(object, key);
    return json_is_integer(value) ? json_integer_value(value) : fallback;
}

static bool listed(const char *const *list, const char *name)
{
    if (!list || !*list)
        return true;
    for (; *list; list++)
        if (!strcmp(*list, name))
            return true;
    return false;
}

bool simulated_in_scope(const struct app_scope *app, const char *service, const char *namespace)
{
    return listed(app->services, service) && listed(app->namespaces, namespace);
}
