/* file.h - whole files with limits, and writes that are there completely or not at all. */
#ifndef REMAP_BASE_FILE_H
#define REMAP_BASE_FILE_H

#include <stddef.h>
#include "model/base/buf.h"
#include "model/base/err.h"

/* Appends the file (or stdin for "-") to *out; ERR_NOT_FOUND, ERR_TOO_LARGE, ERR_IO. */
int file_read(const char *path, size_t max_bytes, struct buf *out, struct err *err);
/* Writes path.tmp, fsyncs, renames, fsyncs the folder. */
int file_write_atomic(const char *path, const void *data, size_t size, int mode, struct err *err);
/* mkdir -p with the mode for what it creates. */
int file_make_dirs(const char *path, int mode, struct err *err);
/* Writes all of it to a descriptor, through EINTR and short writes. */
int file_write_fd(int fd, const void *data, size_t size, struct err *err);

#endif
