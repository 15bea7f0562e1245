/* configure.h - the bodies of `configure` (model/wire/README.md), from the configuration. */
#ifndef REMAP_MANAGER_CONFIGURE_H
#define REMAP_MANAGER_CONFIGURE_H

#include "model/base/buf.h"
#include "model/config.h"

/* For the monitor: webhooks, and the sources that are sent to it. */
void configure_build(const struct config *config, struct buf *out);

/* For the executor: the orchestrators of the apps that may be moved (modes propose and act), and the
 * elements of `moves`, as text. */
/* `paused` (n_apps long): nothing of these is touched between requests. */
void configure_executor(const struct config *config, const bool *paused, const char *moves,
                        struct buf *out);

#endif
