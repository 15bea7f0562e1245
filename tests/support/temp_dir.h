/* temp_dir.h - a directory of a test's own, and its end. */
#ifndef REMAP_TESTS_TEMP_DIR_H
#define REMAP_TESTS_TEMP_DIR_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "model/base/mem.h"

/* Caller frees after temp_dir_remove(). */
static inline char *temp_dir_new(void)
{
    const char *base = getenv("TMPDIR");
    char *path = mem_printf("%s/remap-test-XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(path)) {
        perror(path);
        abort();
    }
    return path;
}

static inline int temp_dir_remove_one(const char *path, const struct stat *st, int type,
                                      struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static inline void temp_dir_remove(const char *path)
{
    nftw(path, temp_dir_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

#endif
