/* execute.h - a plan carried out, one move at a time (§5.6, §6.5, algorithms.md 6.4), or put back.
 */
#ifndef REMAP_EXECUTOR_EXECUTE_H
#define REMAP_EXECUTOR_EXECUTE_H

#include "model/wire/stage.h"

/* The handler of `execute`: `{v, stopped, outcomes}` of model/wire/README.md. Moves that fail, are
 * discarded or stopped are results; -1 is for requests that cannot be read and clusters that do not
 * answer. */
int execute_handle(struct stage *stage, const struct stage_request *request, struct buf *result,
                   int *exit_code, struct err *err);

#endif
