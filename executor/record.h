/* record.h - what is told of a move: the intent before it, the outcome after it (the documents of
 * model/wire/README.md). */
#ifndef REMAP_EXECUTOR_RECORD_H
#define REMAP_EXECUTOR_RECORD_H

#include "model/base/buf.h"
#include "model/base/json.h"
#include "model/model.h"

enum outcome_state {
    OUTCOME_APPLIED,
    OUTCOME_PARTIAL,
    OUTCOME_MISSED,
    OUTCOME_DISPLACED,
    OUTCOME_DISCARDED,
    OUTCOME_FAILED,
    OUTCOME_UNDONE
};

struct outcome {
    int64_t seq;
    enum outcome_state state;
    char *reason;
    char *service, *instance, *instance_now, *source, *target; /* all but service may be NULL */
    int64_t intended_ms, settled_ms, undo_of;                  /* -1 */
    bool detour;
};

struct outcomes {
    struct outcome *list;
    size_t n;
};

/* Replicas of a service on one host. */
struct replica_count {
    char *host;
    int64_t count;
};

struct intent {
    int64_t seq;
    char *service, *instance, *source, *target; /* all but service may be NULL */
    struct replica_count *counts; /* of the service, before acting; hosts with at least one */
    size_t n_counts;
    int64_t undo_of; /* -1 */
    bool detour;
    char *saved; /* what the orchestrator's undo needs; NULL */
};

const char *outcome_state_name(enum outcome_state state);

void outcome_encode(const struct outcome *outcome, struct buf *out);
int outcome_decode(const struct jval *value, struct outcome *out, struct err *err);
void outcome_wipe(struct outcome *outcome);
/* A copy that owns its strings. */
struct outcome outcome_copy(const struct outcome *outcome);
void outcomes_wipe(struct outcomes *outcomes);
/* The newest of that seq, or NULL. */
const struct outcome *outcomes_find(const struct outcomes *outcomes, int64_t seq);

void intent_encode(const struct intent *intent, struct buf *out);
int intent_decode(const struct jval *value, struct intent *out, struct err *err);
void intent_wipe(struct intent *intent);
/* Fills counts with the service's replicas of the model. */
void intent_count(struct intent *intent, const struct model *model, int service);
/* Replicas on the host, 0 when none is listed. */
int64_t intent_count_on(const struct intent *intent, const char *host);

#endif
