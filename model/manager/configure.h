/* configure.h - the body of `configure` (model/wire/README.md), from the configuration. */
#ifndef REMAP_MANAGER_CONFIGURE_H
#define REMAP_MANAGER_CONFIGURE_H

#include "model/base/buf.h"
#include "model/config.h"

/* hooks may be NULL: nothing is to be listened for. */
void configure_build(const struct config_webhooks *hooks, struct buf *out);

#endif
