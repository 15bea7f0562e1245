/* release.h - takes off what remap left in the cluster (pins; contract.md 1 `release`). */
#ifndef REMAP_EXECUTOR_RELEASE_H
#define REMAP_EXECUTOR_RELEASE_H

#include "model/wire/stage.h"

/* The handler of `release`: `{v, restarts}` of model/wire/README.md. Taking out a pin may be a
 * rollout (interfaces.md 1.9, 3), so it goes service by service, each waited for. */
int release_handle(struct stage *stage, const struct stage_request *request, struct buf *result,
                   int *exit_code, struct err *err);

#endif
