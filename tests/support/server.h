/* server.h - real servers of the contract tests: each test program starts its own on a free port of
 * 127.0.0.1 and stops it; they die with the test. */
#ifndef REMAP_TESTS_SERVER_H
#define REMAP_TESTS_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "adapters/adapter.h"
#include "model/base/buf.h"

struct server {
    pid_t pid;
    int port;
    char *log; /* file with its output */
    char url[64]; /* "http://127.0.0.1:PORT" */
};

/* A port that was free just now. */
int server_free_port(void);
/* NULL when the program is not there: searches PATH. Caller frees. */
char *server_program(const char *name);
/* The cache of fetched servers, see etc/test-servers; NULL when `name` is not in it. Caller frees. */
char *server_cached(const char *name);

/* Starts argv (NULL-terminated, argv[0] a path) with its output to `folder`/NAME.log. `name` is for
 * messages. */
void server_start(struct server *server, const char *name, const char *folder, int port,
                  const char *const argv[]);
/* True when `path` answers 200 to 299 within 60 s; prints the log when not. */
bool server_wait(struct server *server, const char *path);
void server_stop(struct server *server);

/* Runs a program to its end; true when it exits 0. Its output goes to /dev/null. */
bool server_run(const char *const argv[]);

/* POST of a body; the answer's status, 0 when none. */
long server_post(const struct server *server, const char *path, const char *content_type,
                 const char *body, size_t size);
long server_get(const struct server *server, const char *path, struct buf *out);

void server_write_file(const char *path, const char *text);

/* The first note of that kind whose text holds `part`; NULL when there is none. */
const struct note *note_find(const struct inspection *in, const char *kind, const char *part);

#endif
