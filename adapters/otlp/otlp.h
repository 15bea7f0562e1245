/* otlp.h - messages from spans that are sent to us (OTLP/HTTP). The monitor listens and holds what
 * comes (monitor/receiver); as an adapter it is a source like any other. */
#ifndef REMAP_OTLP_OTLP_H
#define REMAP_OTLP_OTLP_H

#include "adapters/adapter.h"
#include "model/base/buf.h"
#include "model/base/mem.h"

extern const struct message_adapter otlp_messages;

/* The options of a source, with their defaults; texts are owned. */
struct otlp_settings {
    char *name, *listen;
    char *token_file, *tls_cert_file, *tls_key_file, *client_ca_file; /* NULL: not given */
    bool count_others;
};

/* ERR_CONFIG: an unknown or wrong option, or an address that others reach without a proof. */
int otlp_settings_read(const struct source *source, struct otlp_settings *out, struct err *err);
void otlp_settings_wipe(struct otlp_settings *settings);

/* The document that a receiver shows at OTLP_STATUS_PATH to who may send, and to its own machine. */
#define OTLP_STATUS_PATH "/status"
void otlp_status_put(const struct otlp_store *store, struct buf *out);

#endif
