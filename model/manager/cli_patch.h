/* cli_patch.h - a cycle's moves as patches that somebody else applies. */
#ifndef REMAP_MANAGER_CLI_PATCH_H
#define REMAP_MANAGER_CLI_PATCH_H

#include "model/base/buf.h"
#include "model/store/store.h"

/* Appends YAML documents, one a workload. ERR_USAGE where there is nothing to offer. */
int patch_offer(struct store *store, int64_t cycle, struct buf *out, struct err *err);

#endif
