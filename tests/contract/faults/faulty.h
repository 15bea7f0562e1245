/* faulty.h - a server with one fault at a time, which no real server can be made to show, and what its
 * users must say of each. */
#ifndef REMAP_TESTS_FAULTY_H
#define REMAP_TESTS_FAULTY_H

#include <stdbool.h>
#include <stddef.h>
#include "model/base/err.h"

#define PATIENCE_MS 120000 /* a guard: the longest here waits for one time-out of 300 ms */

struct fault {
    const char *name;
    const char *answer; /* sent after the request; NULL: nothing, until the client goes away */
    const char *again;  /* then sent for ever; NULL: nothing, and the connection is closed */
    enum err_kind kind, or_kind;
    const char *text;
};

#define FAULTY_JSON \
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"

extern const struct fault faults[];
extern const size_t n_faults;

/* One per program, as cmocka's group fixtures. */
int faulty_start(void **state);
int faulty_stop(void **state);
const char *faulty_url(void);
/* What to wait for an answer of the fault that is set: no longer than need be where none comes, and long
 * where one does, lest a busy machine be too late with it. */
const char *faulty_timeout(void);
/* From now on; `reads`: the body of what every GET gets instead, or NULL. Both are borrowed. */
void faulty_set(const struct fault *fault, const char *reads);

/* For servers of their own: a socket that listens on a free port of 127.0.0.1, -1 when there is none; all
 * of a text, false when the client has gone. */
int faulty_listen(char url[64]);
bool faulty_send(int fd, const char *text, size_t size);

/* Opened descriptors of this process. */
int faulty_descriptors(void);
/* A kubeconfig for it in a file of its own; caller unlinks and frees. */
char *faulty_kubeconfig(const char *url);

#endif
