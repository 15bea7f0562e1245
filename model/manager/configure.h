/* configure.h - the bodies of `configure` (model/wire/README.md), from the configuration. */
#ifndef REMAP_MANAGER_CONFIGURE_H
#define REMAP_MANAGER_CONFIGURE_H

#include "model/base/buf.h"
#include "model/config.h"

/* For the monitor: webhooks, and the sources that are sent to it. */
void configure_build(const struct config *config, struct buf *out);

/* For the executor: the orchestrators of the apps that may be moved (modes propose and act), since
 * which wall time the store knows of moves. */
void configure_executor(const struct config *config, int64_t since_ms, struct buf *out);

#endif
