/* reader.c - files of spans, plain or gzip, piece by piece (reader.h). */
#include "adapters/spans/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "adapters/spans/front.h"

#define PIECE_BYTES 65536  /* of the read buffer */
#define PIECES_PER_STEP 16 /* 1 MiB: some milliseconds */

struct span_reader {
    struct span_table *table;
    struct joiner *joiner;
    struct span_front *front;
    struct walk *walk; /* of the present document stream; NULL between */
};

static int to_joiner(void *ctx, const struct span *span, struct err *err)
{
    return joiner_add(ctx, span, err);
}

struct span_reader *span_reader_new(struct span_table *table, size_t window)
{
    struct span_reader *reader = mem_alloc(sizeof *reader);
    reader->table = table;
    reader->joiner = joiner_new(table, window);
    reader->front = span_front_new(table, to_joiner, reader->joiner);
    return reader;
}

void span_reader_free(struct span_reader *reader)
{
    if (!reader)
        return;
    walk_free(reader->walk);
    span_front_free(reader->front);
    joiner_free(reader->joiner);
    free(reader);
}

void span_reader_range(struct span_reader *reader, const struct span_range *range)
{
    joiner_range(reader->joiner, range);
}

int span_reader_feed(struct span_reader *reader, const char *data, size_t size, struct err *err)
{
    if (!reader->walk)
        reader->walk = walk_new(&span_grammar, reader->front);
    return walk_feed(reader->walk, data, size, err);
}

int span_reader_end(struct span_reader *reader, struct err *err)
{
    if (!reader->walk)
        return err_set(err, ERR_INPUT, "holds no JSON document");
    int rc = walk_end(reader->walk, err);
    walk_free(steal(reader->walk));
    return rc;
}

static gzFile file_open(const char *path, struct err *err)
{
    int fd = strcmp(path, "-") == 0 ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        err_set(err, ERR_INPUT, "%s", strerror(errno));
        return NULL;
    }
    gzFile file = gzdopen(fd, "rb"); /* reads plain files as they are */
    if (!file) {
        close(fd);
        err_set(err, ERR_IO, "cannot be read");
    }
    return file;
}

static int file_pieces(struct span_reader *reader, gzFile file, char *piece,
                       int (*step)(void *arg, int64_t spans, struct err *err), void *arg,
                       struct err *err)
{
    int zip_error = Z_OK;
    for (int pieces = 1;; pieces++) {
        int size = gzread(file, piece, PIECE_BYTES);
        const char *text = gzerror(file, &zip_error);
        if (size < 0 || zip_error == Z_BUF_ERROR) /* the latter: a gzip file cut short */
            return err_set(err, ERR_INPUT, "%s",
                           zip_error == Z_ERRNO ? strerror(errno) : text);
        if (size == 0)
            return span_reader_end(reader, err);
        if (span_reader_feed(reader, piece, (size_t)size, err))
            return -1;
        if (step && pieces % PIECES_PER_STEP == 0 &&
            step(arg, span_table_counts(reader->table)->spans, err))
            return -1;
    }
}

int span_reader_file(struct span_reader *reader, const char *path,
                     int (*step)(void *arg, int64_t spans, struct err *err), void *arg,
                     struct err *err)
{
    gzFile file = file_open(path, err);
    int rc = -1;
    if (file) {
        gzbuffer(file, 2 * PIECE_BYTES);
        AUTO_FREE char *piece = mem_alloc(PIECE_BYTES);
        rc = file_pieces(reader, file, piece, step, arg, err);
        gzclose(file);
    }
    return rc ? err_prefix(err, "%s", strcmp(path, "-") == 0 ? "stdin" : path) : 0;
}

int span_reader_finish(struct span_reader *reader, struct err *err)
{
    return joiner_finish(reader->joiner, err);
}
