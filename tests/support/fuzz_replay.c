/* fuzz_replay.c - runs a fuzz harness without libFuzzer, so that gcc and the ordinary suite replay
 * the kept corpus (after libgit2's standalone driver): every file of the folders given, and a fixed
 * number of seeded mutations of each. The same on every run. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "model/base/buf.h"
#include "model/base/file.h"
#include "model/base/mem.h"
#include "tests/support/rng.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* 200 mutations of some dozen files of a few KB take well below a second. */
#define MUTATIONS 200
#define FILE_MAX_BYTES ((size_t)1 << 20)

static const char *const tokens[] = {"null", "true",   "-1", "1.5", "1e999", "{}",    "[]", "\"\"",
                                     "{",    "]",      ",",  ":",   "\\u0000", "\xff", "0",  "\n",
                                     "- ",   "&a *a",  "\t", "1000000000000001", "\"v\":1"};

static void mutate_once(struct rng *rng, struct buf *buf)
{
    size_t at = rng_below(rng, buf->size + 1), left = buf->size - at;
    size_t size = left ? 1 + rng_below(rng, left < 64 ? left : 64) : 0;
    struct buf out = BUF_INIT;

    buf_add(&out, buf->data, at);
    switch (rng_below(rng, 5)) {
    case 0: /* a byte changes */
        if (left) {
            char byte = (char)(buf->data[at] ^ (1 << rng_below(rng, 8)));
            buf_add(&out, &byte, 1);
            buf_add(&out, buf->data + at + 1, left - 1);
        }
        break;
    case 1: /* a stretch is cut out */
        buf_add(&out, buf->data + at + size, left - size);
        break;
    case 2: /* a stretch is there twice */
        buf_add(&out, buf->data + at, size);
        buf_add(&out, buf->data + at, left);
        break;
    case 3: /* the end is missing */
        break;
    default: /* something new comes in */
        buf_puts(&out, tokens[rng_below(rng, ARRAY_LEN(tokens))]);
        buf_add(&out, buf->data + at, left);
        break;
    }
    buf_wipe(buf);
    *buf = out;
}

/* The harness gets a copy of exactly the size, so that a sanitizer sees one byte too far. */
static void run_one(const struct buf *buf)
{
    uint8_t *copy = malloc(buf->size ? buf->size : 1);

    if (!copy)
        abort();
    if (buf->size)
        memcpy(copy, buf->data, buf->size);
    LLVMFuzzerTestOneInput(copy, buf->size);
    free(copy);
}

static int run_file(const char *path)
{
    AUTO_BUF struct buf text = BUF_INIT;
    struct err err = ERR_INIT;

    if (file_read(path, FILE_MAX_BYTES, &text, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return -1;
    }
    run_one(&text);
    struct rng rng = {text.size * UINT64_C(0x9e3779b97f4a7c15)};
    for (int i = 0; i < MUTATIONS; i++) {
        AUTO_BUF struct buf mutant = BUF_INIT;
        buf_add(&mutant, text.data, text.size);
        for (size_t n = 1 + rng_below(&rng, 3); n > 0; n--)
            mutate_once(&rng, &mutant);
        run_one(&mutant);
    }
    return 0;
}

static int run_path(const char *path)
{
    struct dirent **names;
    struct stat st;
    int rc = 0;

    if (stat(path, &st) == 0 && !S_ISDIR(st.st_mode))
        return run_file(path) < 0 ? -1 : 1;
    int n = scandir(path, &names, NULL, alphasort);
    if (n < 0) {
        perror(path);
        return -1;
    }
    for (int i = 0; i < n; i++) {
        if (names[i]->d_name[0] != '.' && rc >= 0) {
            AUTO_FREE char *file = mem_printf("%s/%s", path, names[i]->d_name);
            rc = run_file(file) < 0 ? -1 : rc + 1;
        }
        free(names[i]);
    }
    free(names);
    return rc;
}

int main(int argc, char **argv)
{
    int total = 0;

    for (int i = 1; i < argc; i++) {
        int files = run_path(argv[i]);
        if (files < 0)
            return 1;
        total += files;
    }
    if (total == 0) {
        fprintf(stderr, "no corpus files\n");
        return 1;
    }
    printf("%d files, %d mutations each\n", total, MUTATIONS);
    return 0;
}
