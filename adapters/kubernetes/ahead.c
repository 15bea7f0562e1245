/* ahead.c - see ahead.h. */
#include "adapters/kubernetes/ahead.h"

#include <stdlib.h>
#include <string.h>

#include "model/base/clock.h"

#define WIDTH 8 /* requests at the same time */
/* What is kept is used no later: sixteen moves of some 20 ms each are begun in a third of it. */
#define KEPT_MAX_MS 1000

struct ahead_one {
    char *path;
    struct gathered *answer;
    int64_t asked_ms; /* monotonic */
    bool kept;
};

static void drop(struct ahead *ahead, size_t at)
{
    gathered_free(ahead->list[at].answer);
    free(ahead->list[at].path);
    ahead->list[at] = ahead->list[--ahead->n];
}

void ahead_forget(struct ahead *ahead, bool all)
{
    for (size_t i = ahead->n; i > 0; i--)
        if (all || !ahead->list[i - 1].kept)
            drop(ahead, i - 1);
}

void ahead_wipe(struct ahead *ahead)
{
    ahead_forget(ahead, true);
    free(ahead->list);
    gather_free(ahead->gather);
    *ahead = (struct ahead){0};
}

/* NULL: not asked for, or too long ago. */
static struct ahead_one *find(struct ahead *ahead, const char *path)
{
    for (size_t i = 0; i < ahead->n; i++) {
        struct ahead_one *one = &ahead->list[i];
        if (strcmp(one->path, path) != 0)
            continue;
        if (!one->kept || clock_mono_ms() - one->asked_ms <= KEPT_MAX_MS)
            return one;
        drop(ahead, i);
        return NULL;
    }
    return NULL;
}

static bool is_open(struct ahead *ahead, struct http *http)
{
    struct err why = ERR_INIT; /* whoever asks for it in earnest is told */
    if (!ahead->gather)
        ahead->gather = gather_new(http, WIDTH, &why);
    return ahead->gather != NULL;
}

void ahead_ask(struct ahead *ahead, struct http *http, char *path, size_t max_bytes)
{
    if (!is_open(ahead, http) || find(ahead, path)) {
        free(path);
        return;
    }
    *ARRAY_PUSH(ahead->list, ahead->n) = (struct ahead_one){
        path, gather_get(ahead->gather, path, max_bytes), clock_mono_ms(), ahead->keeps};
}

bool ahead_is_busy(const struct ahead *ahead)
{
    return ahead->n > 0;
}

static int take(struct gathered *gathered, struct http_answer *out, struct err *err)
{
    const struct http_answer *answer;
    int rc = gather_wait(gathered, &answer, err);
    http_answer_wipe(out);
    out->status = answer->status;
    out->retry_after_ms = answer->retry_after_ms;
    out->attempts = answer->attempts;
    if (answer->body.size > 0)
        buf_add(&out->body, answer->body.data, answer->body.size);
    return rc;
}

int ahead_get(struct ahead *ahead, const char *path, size_t max_bytes, struct http_answer *out,
              struct err *err)
{
    struct ahead_one *one = find(ahead, path);
    if (one) {
        int rc = take(one->answer, out, err);
        drop(ahead, (size_t)(one - ahead->list));
        return rc;
    }
    struct gathered *now = gather_get_now(ahead->gather, path, max_bytes);
    int rc = take(now, out, err);
    gathered_free(now);
    return rc;
}

int ahead_peek(struct ahead *ahead, const char *path, struct http_answer *out, struct err *err)
{
    struct ahead_one *one = find(ahead, path);
    return one ? take(one->answer, out, err)
               : err_set(err, ERR_NOT_FOUND, "%s was not asked for", path);
}

int ahead_send(struct ahead *ahead, const char *method, const char *path, const char *content_type,
               const char *body, size_t size, struct http_answer *out, struct err *err)
{
    struct gathered *now = gather_send(ahead->gather, method, path, content_type, body, size);
    int rc = take(now, out, err);
    gathered_free(now);
    return rc;
}

void ahead_post_all(struct ahead *ahead, struct http *http, const char *const *paths,
                    const char *const *bodies, size_t n)
{
    AUTO_FREE struct gathered **sent = mem_array(n, sizeof *sent);
    if (!is_open(ahead, http))
        return;
    for (size_t i = 0; i < n; i++)
        sent[i] = gather_send(ahead->gather, "POST", paths[i], "application/json", bodies[i],
                              strlen(bodies[i]));
    for (size_t i = 0; i < n; i++) {
        const struct http_answer *answer;
        struct err lost = ERR_INIT;
        (void)gather_wait(sent[i], &answer, &lost);
        gathered_free(sent[i]);
    }
}
