/* listen.h - what the listeners of the monitor share: certificates from files, and problems that
 * become events. */
#ifndef REMAP_MONITOR_LISTEN_H
#define REMAP_MONITOR_LISTEN_H

#include "model/base/err.h"
#include "model/wire/stage.h"

struct listen_tls { /* PEM texts; NULL: none */
    char *cert, *key, *ca;
};
#define LISTEN_TLS_INIT {NULL, NULL, NULL}

/* Paths may be NULL. The errors of file_read(). */
int listen_tls_read(const char *cert_file, const char *key_file, const char *ca_file,
                    struct listen_tls *out, struct err *err);
void listen_tls_wipe(struct listen_tls *tls);
#define AUTO_LISTEN_TLS __attribute__((cleanup(listen_tls_wipe)))

struct listen_said { /* the last problem that became an event */
    char text[sizeof((struct err *)0)->text];
};
/* An event of this kind for what an operator must find later; the same problem once. "": there is
 * none now. */
void listen_say(struct stage *stage, struct listen_said *said, const char *kind, const char *text);

#endif
