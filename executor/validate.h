/* validate.h - is a move still possible, on the cluster as it is now (§5.6)? Pure. */
#ifndef REMAP_EXECUTOR_VALIDATE_H
#define REMAP_EXECUTOR_VALIDATE_H

#include "executor/record.h"
#include "model/model.h"

enum verdict_kind {
    MOVE_VALID,
    MOVE_INVALID,
    MOVE_NO_ROOM /* all is well but for the target's capacity or a rule: a detour may help */
};

struct verdict {
    enum verdict_kind kind;
    char why[400]; /* one line; empty when valid */
};

/* instance: index in the model, -1 when it is gone; source: where the plan has it (NULL: unplaced).
 * §5.6, algorithms.md 6.4: it exists, is on the recorded source, the target exists, is schedulable
 * and fits in every dimension, rules allow it, source ≠ target, nothing fixes it. */
struct verdict validate_instance(const struct model *model, int instance, const char *source,
                                 const char *target, bool move_stateful);

/* Replicas of a service as one move: sources as the plan has them, targets as wanted. */
struct verdict validate_service(const struct model *model, const char *service,
                                const struct replica_count *sources, size_t n_sources,
                                const struct replica_count *targets, size_t n_targets,
                                bool move_stateful);

/* A host to keep the instance on while others leave the target: schedulable, fitting, neither
 * where it is nor the target, rather none of `avoid` (n_hosts long), then the first by name; -1. */
int detour_host(const struct model *model, int instance, int target, const bool *avoid,
                bool move_stateful);

/* Where a replica that came up during the plan goes (§5.6): to the hosts of partners in descending
 * affinity of the types, there first where fewest of its own service are, then where most partners
 * are, then by name. -1: stays where it is (no partner's host takes it, or it is well placed).
 * `rows` are service affinities of `planned`, descending. */
int steer_host(const struct model *model, int instance, const struct model *planned,
               const struct affinity *rows, size_t n, bool move_stateful);

#endif
