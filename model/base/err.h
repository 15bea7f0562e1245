/* err.h - one error: what kind it is (which decides what the caller does) and one line of text.
 *
 * Functions that can fail return 0 or -1 and take `struct err *` last. The text is a fact that
 * names the thing; a layer that knows more adds a prefix once. NULL is never passed. */
#ifndef REMAP_BASE_ERR_H
#define REMAP_BASE_ERR_H

enum err_kind {
    ERR_NONE = 0,
    ERR_USAGE,       /* the command line: exit 2 */
    ERR_CONFIG,      /* configuration or scenario file: exit 2 */
    ERR_INPUT,       /* a document or recording from outside: exit 2 */
    ERR_TOO_LARGE,   /* input above a limit: exit 2 */
    ERR_INFEASIBLE,  /* no feasible placement exists: exit 3 */
    ERR_TIMEOUT,     /* a deadline passed: exit 4 for planners */
    ERR_NOT_FOUND,   /* the named thing does not exist */
    ERR_CONFLICT,    /* somebody else changed it first */
    ERR_REFUSED,     /* the other side understood and said no */
    ERR_UNREACHABLE, /* a source or the orchestrator does not answer */
    ERR_IO,          /* files, sockets, disk full */
    ERR_INTERNAL     /* ours */
};

struct err {
    enum err_kind kind;
    char text[500];
};

#define ERR_INIT {ERR_NONE, ""}

/* Fills *err and returns -1, so that `return err_set(…)` reads well. */
int err_set(struct err *err, enum err_kind kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "prefix: " before the text that is there; returns -1. */
int err_prefix(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The exit code of contract.md 1 for an error of this kind. */
int err_exit_code(enum err_kind kind);

/* "input", "config", …: for JSON bodies and logs. */
const char *err_kind_name(enum err_kind kind);
enum err_kind err_kind_from_name(const char *name); /* ERR_INTERNAL when unknown */

#endif
