/* file.c - whole files with limits; writes by a temporary file, fsync and rename. */
#include "model/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/base/mem.h"

static void fd_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}
#define AUTO_FD __attribute__((cleanup(fd_close)))

static int read_all(int fd, const char *path, size_t max_bytes, struct buf *out, struct err *err)
{
    size_t before = out->size;

    for (;;) {
        /* At least 64 KiB a read; the buffer doubles, so the copying stays linear. */
        buf_reserve(out, out->cap - out->size > 65536 ? out->cap - out->size - 1 : 65536);
        ssize_t n = read(fd, out->data + out->size, out->cap - out->size - 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set(err, ERR_IO, "%s: %s", path, strerror(errno));
        if (n == 0)
            return 0;
        out->size += (size_t)n;
        out->data[out->size] = '\0';
        if (out->size - before > max_bytes)
            return err_set(err, ERR_TOO_LARGE, "%s: larger than %zu bytes", path, max_bytes);
    }
}

int file_read(const char *path, size_t max_bytes, struct buf *out, struct err *err)
{
    if (strcmp(path, "-") == 0)
        return read_all(STDIN_FILENO, "stdin", max_bytes, out, err);

    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_set(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, "%s: %s", path,
                       strerror(errno));
    struct stat st;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        if (st.st_size > 0 && (uintmax_t)st.st_size > max_bytes)
            return err_set(err, ERR_TOO_LARGE, "%s: larger than %zu bytes", path, max_bytes);
        buf_reserve(out, (size_t)st.st_size + 1);
    }
    return read_all(fd, path, max_bytes, out, err);
}

int file_write_fd(int fd, const void *data, size_t size, struct err *err)
{
    const char *p = data;

    while (size > 0) {
        ssize_t n = write(fd, p, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set(err, ERR_IO, "%s", strerror(errno));
        p += n;
        size -= (size_t)n;
    }
    return 0;
}

/* A rename is there after a power cut only when its folder was synced. */
static int sync_folder_of(const char *path, struct err *err)
{
    AUTO_FREE char *folder = mem_strdup(path);
    char *slash = strrchr(folder, '/');
    if (slash == folder)
        slash[1] = '\0';
    else if (slash)
        *slash = '\0';

    AUTO_FD int fd = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) < 0)
        return err_set(err, ERR_IO, "%s: %s", slash ? folder : ".", strerror(errno));
    return 0;
}

static int write_synced(const char *path, const void *data, size_t size, int mode,
                        struct err *err)
{
    AUTO_FD int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, (mode_t)mode);
    if (fd < 0)
        return err_set(err, ERR_IO, "%s: %s", path, strerror(errno));
    if (file_write_fd(fd, data, size, err) < 0)
        return err_prefix(err, "%s", path);
    if (fsync(fd) < 0)
        return err_set(err, ERR_IO, "%s: %s", path, strerror(errno));
    return 0;
}

int file_write_atomic(const char *path, const void *data, size_t size, int mode, struct err *err)
{
    AUTO_FREE char *tmp = mem_printf("%s.tmp", path);

    if (write_synced(tmp, data, size, mode, err) < 0) {
        unlink(tmp);
        return -1;
    }
    if (rename(tmp, path) < 0) {
        err_set(err, ERR_IO, "%s: %s", path, strerror(errno));
        unlink(tmp);
        return -1;
    }
    return sync_folder_of(path, err);
}

int file_make_dirs(const char *path, int mode, struct err *err)
{
    AUTO_FREE char *part = mem_strdup(path);
    struct stat st;

    for (char *p = part; *p; p++) {
        if (p[1] != '/' && p[1] != '\0')
            continue;
        char kept = p[1];
        p[1] = '\0';
        if (*p != '/' && mkdir(part, (mode_t)mode) < 0 && errno != EEXIST)
            return err_set(err, ERR_IO, "%s: %s", part, strerror(errno));
        p[1] = kept;
    }
    if (stat(path, &st) < 0)
        return err_set(err, ERR_IO, "%s: %s", path, strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return err_set(err, ERR_IO, "%s: is not a folder", path);
    return 0;
}
