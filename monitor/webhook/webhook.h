/* webhook.h - the listener for deployments in the monitor (paper §6.1, §5.7; contract.md 5):
 * POST /hooks/travis|github|gitlab|gitea|generic. It lives in the stage's loop, so it answers also
 * while the monitor collects; an event is stored by the manager before its 202 goes out. */
#ifndef REMAP_MONITOR_WEBHOOK_H
#define REMAP_MONITOR_WEBHOOK_H

#include "model/base/buf.h"
#include "model/base/err.h"
#include "model/wire/stage.h"

/* The three hooks of struct stage_program. */
int webhook_open(struct stage *stage, void **state, struct err *err);
void webhook_configure(void *state, const char *body, size_t size);
void webhook_close(void *state);

/* `configure` as a filter: what of the settings would not work, in the form of `check`. */
int webhook_check(struct stage *stage, const struct stage_request *request, struct buf *result,
                  int *exit_code, struct err *err);

#endif
