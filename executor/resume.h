/* resume.h - what became of a move whose intent is committed but whose outcome is not known: the
 * executor died, or the orchestrator did not answer. Pure. */
#ifndef REMAP_EXECUTOR_RESUME_H
#define REMAP_EXECUTOR_RESUME_H

#include "adapters/adapter.h"
#include "executor/record.h"

enum resume {
    RESUME_SETTLED, /* the orchestrator's report says all: applied, missed, displaced, failed */
    RESUME_APPLIED, /* the counts say so */
    RESUME_WAIT,    /* it is under way */
    RESUME_ASK,     /* nothing has happened: ask (again) */
    RESUME_GONE     /* the replica is neither here nor there: discard (§5.6) */
};

struct resume_facts {
    bool marks;                        /* the orchestrator knows its objects by mark */
    enum settle_state report;          /* what it says of this mark; only looked at with marks */
    bool on_source;                    /* the instance of the intent is still where it was */
    int64_t source_before, source_now; /* replicas of the service on the source … */
    int64_t target_before, target_now; /* … and on the target */
    int64_t unplaced_before, unplaced_now;
};

/* design.md 3: mark or counts fit → applied; still on source → try; both missing → discarded. */
enum resume resume_instance(const struct resume_facts *facts);

/* For a service as a whole: placing is declarative, so it may be asked again at any time. */
enum resume resume_service(bool marks, enum settle_state report, const struct model *model,
                           int service, const struct replica_count *targets, size_t n_targets);

/* The counts of the facts from an intent and a model. */
void resume_count(struct resume_facts *facts, const struct intent *intent,
                  const struct model *model);

/* Is the cluster, as far as this service and these two hosts go, as it was before the intent? */
bool resume_is_back(const struct intent *intent, const struct model *model);

#endif
