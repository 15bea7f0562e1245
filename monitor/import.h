/* import.h - recorded data into a model document (contract.md 1 `remap import`). */
#ifndef REMAP_MONITOR_IMPORT_H
#define REMAP_MONITOR_IMPORT_H

#include "model/wire/stage.h"

/* The handler of MSG_IMPORT. What could not be mapped, and the totals, go to stderr: there is no
 * store behind a filter. ERR_INPUT names file and place; nothing is written then. */
int import_handle(struct stage *stage, const struct stage_request *request, struct buf *result,
                  int *exit_code, struct err *err);

#endif
