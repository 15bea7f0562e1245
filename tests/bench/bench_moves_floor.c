/* bench_moves_floor.c - see bench_moves_floor.h. */
#include "tests/bench/bench_moves_floor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/http/follow.h"
#include "adapters/http/gather.h"
#include "adapters/kubernetes/kube.h"
#include "adapters/kubernetes/rollout.h"
#include "adapters/kubernetes/watch.h"
#include "model/base/clock.h"
#include "model/base/json.h"

#define TURN_MS 10

struct floor_move {
    char *path, *body;
    struct gathered *patch; /* NULL: not sent yet */
    bool done;
};

struct floor {
    struct floor_move *moves;
    int n, sent, done;
};

static void die(const char *what)
{
    fprintf(stderr, "remap-bench-moves: floor: %s\n", what);
    exit(1);
}

static int on_line(void *ctx, const char *text, size_t size)
{
    struct floor *f = ctx;
    struct watch_event event;
    struct err err = ERR_INIT;
    char why[200];
    if (watch_decode(text, size, &event, &err))
        die(err.text);
    const json_t *meta = kube_get(event.object, "metadata");
    const char *name = kube_text(meta, "name");
    int i = name && strncmp(name, "s-", 2) == 0 ? atoi(name + 2) : -1;
    /* Its first generation is the one that it was made with. */
    if (event.kind == WATCH_PUT && i >= 0 && i < f->n && f->moves[i].patch && !f->moves[i].done &&
        kube_number(meta, "generation", 0) > 1 &&
        rollout_state(event.object, why, sizeof why) == ROLLOUT_DONE) {
        f->moves[i].done = true;
        f->done++;
    }
    watch_wipe(&event);
    return 0;
}

static void on_ended(void *ctx, long status, const char *body, size_t size, const struct err *err)
{
    (void)ctx, (void)status, (void)body, (void)size;
    die(err->kind ? err->text : "the watch ended");
}

static char *body_of(const struct shop *shop, int i, const char *node)
{
    return mem_printf(
        "{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"metadata\":{\"name\":\"s-%d\","
        "\"namespace\":\"%s\"},\"spec\":{\"template\":{\"spec\":{\"affinity\":{\"nodeAffinity\":{"
        "\"preferredDuringSchedulingIgnoredDuringExecution\":[{\"weight\":100,\"preference\":{"
        "\"matchExpressions\":[{\"key\":\"kubernetes.io/hostname\",\"operator\":\"In\",\"values\":["
        "\"%s\"]}]}}]}}}}}}",
        i, shop->space, node);
}

static char *path_of(const struct shop *shop, const char *rest)
{
    return mem_printf("/apis/apps/v1/namespaces/%s/deployments%s", shop->space, rest);
}

static char *version_of(const struct shop *shop)
{
    AUTO_FREE char *path = path_of(shop, "?limit=1");
    AUTO_JSON json_t *list = NULL;
    struct err err = ERR_INIT;
    if (kube_api_get(shop->api, path, &list, NULL, &err))
        die(err.text);
    return mem_strdup(kube_text(kube_get(list, "metadata"), "resourceVersion"));
}

static void send_more(struct floor *f, struct gather *gather, int parallel)
{
    for (; f->sent < f->n && f->sent - f->done < parallel; f->sent++) {
        struct floor_move *move = &f->moves[f->sent];
        move->patch = gather_send(gather, "PATCH", move->path, "application/apply-patch+yaml",
                                  move->body, strlen(move->body));
    }
    gather_settle(gather);
}

static void run(struct floor *f, const struct shop *shop, struct http *http, int parallel)
{
    static const struct follow_calls calls = {.line = on_line, .ended = on_ended};
    struct err err = ERR_INIT;
    AUTO_FREE char *version = version_of(shop);
    AUTO_FREE char *query = mem_printf("?watch=1&resourceVersion=%s", version);
    AUTO_FREE char *path = path_of(shop, query);
    AUTO(follow) struct follow *follow = follow_new();
    AUTO(gather) struct gather *gather = gather_new(http, parallel, &err);
    if (!gather || !follow_open(follow, http, path, (size_t)16 << 20, 600000, &calls, f, &err))
        die(err.text);
    while (f->done < f->n) {
        send_more(f, gather, parallel);
        follow_turn(follow, TURN_MS);
    }
    for (int i = 0; i < f->n; i++) {
        const struct http_answer *answer;
        if (gather_wait(f->moves[i].patch, &answer, &err))
            die(err.text);
        gathered_free(f->moves[i].patch);
    }
}

int64_t floor_of_moves(const struct shop *shop, char *const *nodes, int n, int parallel)
{
    struct err err = ERR_INIT;
    AUTO_FREE char *authorization =
        mem_printf("Authorization: Bearer %s", shop->cluster->token);
    const char *const headers[] = {authorization, NULL};
    const struct http_options options = {.base_url = shop->cluster->url,
                                         .ca_file = shop->cluster->ca_file,
                                         .headers = headers,
                                         .keep_writes = true};
    AUTO(http) struct http *http = http_new(&options, &err);
    if (!http)
        die(err.text);
    struct floor f = {.moves = mem_array((size_t)n + 1, sizeof *f.moves), .n = n};
    for (int i = 0; i < n; i++) {
        AUTO_FREE char *rest = mem_printf("/s-%d?fieldManager=floor", i);
        f.moves[i] =
            (struct floor_move){.path = path_of(shop, rest), .body = body_of(shop, i, nodes[i])};
    }
    int64_t start = clock_mono_ms();
    run(&f, shop, http, parallel);
    int64_t took = clock_mono_ms() - start;
    for (int i = 0; i < n; i++) {
        free(f.moves[i].path);
        free(f.moves[i].body);
    }
    free(f.moves);
    return took;
}
