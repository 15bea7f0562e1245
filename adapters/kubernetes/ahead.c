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

struct ahead_sent {
    struct ahead *ahead;     /* NULL: the connection was given up */
    struct gathered *answer; /* NULL then */
    char *body;              /* borrowed by it */
    bool left;               /* nobody waits for it */
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

struct ahead_sent *ahead_send_begin(struct ahead *ahead, struct http *http, const char *method,
                                    const char *path, const char *content_type, char *body)
{
    if (!is_open(ahead, http)) {
        free(body);
        return NULL;
    }
    struct ahead_sent *sent = mem_alloc(sizeof *sent);
    *sent = (struct ahead_sent){
        .ahead = ahead,
        .answer = gather_send_later(ahead->gather, method, path, content_type, body, strlen(body)),
        .body = body};
    *ARRAY_PUSH(ahead->sent, ahead->n_sent) = sent;
    return sent;
}

/* Its connection is done with it. */
static void sent_detach(struct ahead_sent *sent)
{
    struct ahead *ahead = sent->ahead;
    if (!ahead)
        return;
    size_t at = 0;
    while (ahead->sent[at] != sent)
        at++;
    ahead->sent[at] = ahead->sent[--ahead->n_sent];
    gathered_free(sent->answer);
    sent->ahead = NULL;
    sent->answer = NULL;
}

static void sent_free(struct ahead_sent *sent)
{
    sent_detach(sent);
    free(sent->body);
    free(sent);
}

int ahead_send_end(struct ahead_sent *sent, struct http_answer *out, struct err *err)
{
    int rc = sent->answer ? take(sent->answer, out, err)
                          : err_set(err, ERR_UNREACHABLE, "the connection was given up");
    sent_free(sent);
    return rc;
}

void ahead_send_leave(struct ahead_sent *sent)
{
    sent->left = true;
}

void ahead_sends_start(struct ahead *ahead)
{
    if (ahead->n_sent > 0)
        gather_sends_start(ahead->gather);
}

static bool is_unauthorized(struct gathered *ended)
{
    const struct http_answer *answer;
    struct err ignored = ERR_INIT;
    (void)gather_wait(ended, &answer, &ignored);
    return answer->status == 401;
}

bool ahead_left_turn(struct ahead *ahead, bool wait)
{
    bool unauthorized = false;
    if (ahead->n_sent == 0)
        return false;
    if (wait)
        gather_settle(ahead->gather);
    else
        gather_turn(ahead->gather);
    for (size_t i = ahead->n_sent; i > 0; i--) {
        struct ahead_sent *sent = ahead->sent[i - 1];
        if (!sent->left || !gathered_ended(sent->answer))
            continue;
        unauthorized |= is_unauthorized(sent->answer);
        sent_free(sent);
    }
    return unauthorized;
}

void ahead_wipe(struct ahead *ahead)
{
    ahead_forget(ahead, true);
    while (ahead->n_sent > 0) {
        struct ahead_sent *sent = ahead->sent[ahead->n_sent - 1];
        sent_detach(sent);
        if (sent->left)
            sent_free(sent);
    }
    free(ahead->list);
    free(ahead->sent);
    gather_free(ahead->gather);
    *ahead = (struct ahead){0};
}
