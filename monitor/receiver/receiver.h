/* receiver.h - the listeners for spans in the monitor (contract.md 5): one for each source `otlp`, in
 * the stage's loop, so that they answer also while the monitor collects. What comes is kept in memory
 * (adapters/otlp/store.h) until an inspection asks; when the process ends, it is gone, and the next
 * inspection says so. */
#ifndef REMAP_MONITOR_RECEIVER_H
#define REMAP_MONITOR_RECEIVER_H

#include "model/wire/stage.h"
#include "monitor/inspection.h"

struct receivers;

struct receivers *receivers_new(struct stage *stage);
void receivers_free(struct receivers *receivers);
/* `configure` came: opens, closes and changes listeners. A source that stays keeps what it has
 * received. */
void receivers_configure(struct receivers *receivers, const char *body, size_t size);
/* Gives a request what was received; borrowed until receivers_release(), also
 * where `configure` comes meanwhile. */
void receivers_attach(struct receivers *receivers, struct collect *collect);
void receivers_release(struct receivers *receivers);

#endif
