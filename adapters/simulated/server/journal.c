/* journal.c - append, sync, replay. */
#include "adapters/simulated/server/journal.h"

#include "model/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* 200,000 replicas with start, bind, ready and end of about 200 bytes each are 160 MB. */
#define JOURNAL_MAX_BYTES ((size_t)256 << 20)

struct journal {
    char *path;
    int fd;
    off_t size; /* up to the last whole line */
    bool dirty;
};

const char *journal_path(const struct journal *journal)
{
    return journal->path;
}

void journal_free(struct journal *journal)
{
    if (!journal)
        return;
    if (journal->fd >= 0)
        close(journal->fd);
    free(journal->path);
    free(journal);
}

static int append(struct journal *j, const struct buf *line, struct err *err)
{
    if ((size_t)j->size + line->size > JOURNAL_MAX_BYTES)
        return err_set(err, ERR_TOO_LARGE, "%s: above %zu bytes; start a new one", j->path,
                       JOURNAL_MAX_BYTES);
    if (file_write_fd(j->fd, line->data, line->size, err)) {
        /* Take the torn line back; if even that fails, replay will drop it. */
        if (ftruncate(j->fd, j->size) || lseek(j->fd, j->size, SEEK_SET) < 0)
            return err_prefix(err, "%s (and the torn line stays)", j->path);
        return err_prefix(err, "%s", j->path);
    }
    j->size += (off_t)line->size;
    j->dirty = true;
    return 0;
}

int journal_sync(struct journal *j, struct err *err)
{
    if (!j->dirty)
        return 0;
    if (fsync(j->fd))
        return err_set(err, ERR_IO, "%s: %s", j->path, strerror(errno));
    j->dirty = false;
    return 0;
}

int journal_commit(struct journal *j, struct cluster *cluster, const struct change *change,
                   struct err *err)
{
    AUTO_BUF struct buf line = BUF_INIT;
    change_encode(cluster, change, &line);
    buf_puts(&line, "\n");
    off_t before = j->size;
    if (append(j, &line, err))
        return -1;
    if (!cluster_apply(cluster, change, err))
        return 0;
    /* Refused by the state (a limit): it did not happen, so it must not be replayed. */
    struct err io = ERR_INIT;
    j->size = before;
    if (ftruncate(j->fd, before) || lseek(j->fd, before, SEEK_SET) < 0)
        return err_set(&io, ERR_IO, "%s: %s", j->path, strerror(errno)), *err = io, -1;
    return -1;
}

static int write_header(struct journal *j, const struct scenario *s, struct err *err)
{
    AUTO_BUF struct buf line = BUF_INIT;
    buf_puts(&line, "{\"v\":1,\"scenario\":");
    json_put_text(&line, s->name);
    buf_printf(&line, ",\"digest\":\"%016llx\"}\n", (unsigned long long)s->digest);
    return append(j, &line, err);
}

static int check_header(const struct journal *j, const struct scenario *s, const char *text,
                        size_t size, struct err *err)
{
    static const char *const keys[] = {"v", "scenario", "digest", NULL};
    AUTO_JSON json_t *tree = json_parse(text, size, &json_limits_header, err);
    struct jval root = jval_root(tree);
    const char *name = NULL, *digest = NULL;
    int64_t version = 0;
    if (!tree || jval_object(&root, keys, err))
        return err_prefix(err, "%s:1", j->path);
    struct jval v = jval_get(&root, "v"), n = jval_get(&root, "scenario"),
                d = jval_get(&root, "digest");
    if (jval_int(&v, 1, 1, &version, err) || jval_text(&n, 400, &name, err) ||
        jval_text(&d, 16, &digest, err))
        return err_prefix(err, "%s:1", j->path);
    char ours[17];
    snprintf(ours, sizeof ours, "%016llx", (unsigned long long)s->digest);
    if (strcmp(name, s->name) != 0)
        return err_set(err, ERR_CONFIG, "%s: is the journal of scenario %.100s, not of %.100s",
                       j->path, name, s->name);
    if (strcmp(digest, ours) != 0)
        return err_set(err, ERR_CONFIG,
                       "%s: scenario %.100s (or its seed) was changed since this journal began",
                       j->path, name);
    return 0;
}

static int replay_line(struct cluster *c, const char *text, size_t size, struct err *err)
{
    AUTO_JSON json_t *tree = json_parse(text, size, &json_limits_header, err);
    struct jval root = jval_root(tree);
    struct change change;
    if (!tree || change_decode(c, &root, &change, err))
        return -1;
    return cluster_apply(c, &change, err);
}

static int replay(struct journal *j, struct cluster *c, const struct buf *text, struct err *err)
{
    const char *at = text->data, *end = text->data + text->size;
    for (size_t line = 1;; line++) {
        const char *newline = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
        if (!newline)
            break; /* nothing more, or cut short by a crash */
        size_t size = (size_t)(newline - at);
        if (line == 1 ? check_header(j, c->scenario, at, size, err) : replay_line(c, at, size, err))
            return line == 1 ? -1 : err_prefix(err, "%s:%zu", j->path, line);
        at = newline + 1;
        j->size = (off_t)(at - text->data);
    }
    return 0;
}

static int open_locked(struct journal *j, struct err *err)
{
    j->fd = open(j->path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (j->fd < 0)
        return err_set(err, ERR_IO, "%s: %s", j->path, strerror(errno));
    if (flock(j->fd, LOCK_EX | LOCK_NB))
        return err_set(err, ERR_CONFLICT, "%s: is held by another remap-simulated", j->path);
    return 0;
}

struct journal *journal_open(const char *path, const struct scenario *scenario,
                             struct cluster **cluster, bool *fresh, struct err *err)
{
    AUTO(journal) struct journal *j = mem_alloc(sizeof *j);
    AUTO(cluster) struct cluster *c = cluster_new(scenario);
    AUTO_BUF struct buf text = BUF_INIT;
    j->path = mem_strdup(path);
    j->fd = -1;
    if (open_locked(j, err) || file_read(path, JOURNAL_MAX_BYTES, &text, err))
        return NULL;
    buf_reserve(&text, 1);
    if (replay(j, c, &text, err))
        return NULL;
    if (!c->n_clock) { /* the clock ends a boot: this one was cut short, begin again */
        cluster_free(c);
        c = cluster_new(scenario);
        j->size = 0;
    }
    if (ftruncate(j->fd, j->size) || lseek(j->fd, j->size, SEEK_SET) < 0) {
        err_set(err, ERR_IO, "%s: %s", path, strerror(errno));
        return NULL;
    }
    *fresh = !j->size;
    if (*fresh && write_header(j, scenario, err))
        return NULL;
    *cluster = steal(c);
    return steal(j);
}
