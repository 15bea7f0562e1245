/* fuzz_simulated.c - what comes to remap-simulated from outside: requests, and lines of a journal.
 * An input is lines: "J{…}" is a journal line, "P/path{…}" a POST, "G/path?query" a GET, "T123"
 * lets 123 simulated ms pass. */
#include "adapters/simulated/server/api.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char yaml[] =
    "name: fuzz\nreschedule_after: 5s\n"
    "hosts: [{name: A, cpu: 2, memory: 1Gi, pods: 6}, {name: B, cpu: 2, memory: 1Gi, pods: 6}]\n"
    "services:\n"
    "  - {name: a, hosts: [A, B], start_up: 2s, entry_rate: 5}\n"
    "  - {name: b, start_up: 1s}\n"
    "calls: [{from: a, to: b, per_request: 2, bytes: 100}]\n";

#define WALL INT64_C(1700000000000)

struct query {
    char *text; /* name=value&… */
    char value[64];
};

static const char *find(void *ctx, const char *name)
{
    struct query *q = ctx;
    size_t n = strlen(name);
    for (const char *at = q->text; at && *at; at += strcspn(at, "&"), at += *at == '&') {
        if (strncmp(at, name, n) != 0 || at[n] != '=')
            continue;
        size_t size = strcspn(at + n + 1, "&");
        if (size >= sizeof q->value)
            size = sizeof q->value - 1;
        memcpy(q->value, at + n + 1, size);
        q->value[size] = 0;
        return q->value;
    }
    return NULL;
}

static void request(struct sim *sim, char *line)
{
    struct query q = {NULL, ""};
    bool post = line[0] == 'P';
    char *path = line + 1, *rest = path + strcspn(path, post ? "{[ " : "?");
    AUTO_FREE char *body = post ? mem_strdup(rest) : NULL;
    if (!post && *rest)
        q.text = rest + 1;
    *rest = 0;
    const struct cluster *c = sim_cluster(sim);
    struct api_request req = {.method = post ? "POST" : "GET",
                              .path = path,
                              .query = find,
                              .query_ctx = &q,
                              .body = body,
                              .size = body ? strlen(body) : 0,
                              .wall_ms = cluster_wall_ms(c, c->last_ms)};
    struct api_answer answer;
    api_handle(sim, &req, &answer);
    if (!strcmp(answer.content_type, "application/json")) {
        struct err err = ERR_INIT;
        json_t *tree = json_parse(answer.body.data, answer.body.size, &json_limits_document, &err);
        if (!tree)
            abort();
        json_decref(tree);
    }
    buf_wipe(&answer.body);
}

static void journal_line(struct cluster *c, const char *text)
{
    struct err err = ERR_INIT;
    AUTO_JSON json_t *tree = json_parse(text, strlen(text), &json_limits_header, &err);
    struct jval root = jval_root(tree);
    struct change change;
    if (!tree || change_decode(c, &root, &change, &err))
        return;
    cluster_apply(c, &change, &err);
}

/* Thousands of replicas of one service are allowed, take a second (each change looks at all of them)
 * and show nothing that hundreds do not. */
static bool is_huge(const char *line)
{
    const char *at = strstr(line, "replicas");
    at = at ? at + strcspn(at, "0123456789") : "";
    return strspn(at, "0123456789") > 3;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct scenario *s; /* only read, by every input */
    struct err err = ERR_INIT;
    if (!s)
        s = scenario_parse(yaml, strlen(yaml), "fuzz", -1, &err);
    AUTO(sim) struct sim *sim = sim_open(s, NULL, WALL, 0, &err);
    AUTO(cluster) struct cluster *replayed = cluster_new(s);
    AUTO_FREE char *text = mem_strndup((const char *)data, size < 4096 ? size : 4096);
    char *next = text;
    for (int lines = 0; next && lines < 50; lines++) {
        char *line = next;
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        if (is_huge(line))
            continue;
        if (line[0] == 'J')
            journal_line(replayed, line + 1);
        else if (line[0] == 'P' || line[0] == 'G')
            request(sim, line);
        else if (line[0] == 'T')
            sim_advance(sim, sim_cluster(sim)->last_ms + strtol(line + 1, NULL, 10) % 100000, &err);
    }
    return 0;
}
