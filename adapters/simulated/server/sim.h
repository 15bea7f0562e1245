/* sim.h - the embedded cluster as an orchestrator: it advances by itself (starts, deaths, rollouts,
 * scaling, a simple scheduler) and takes moves, undos, releases and faults. All of it goes through
 * the journal. Every function works at the time of the last sim_advance(). */
#ifndef REMAP_SIMULATED_SIM_H
#define REMAP_SIMULATED_SIM_H

#include "adapters/simulated/server/cluster.h"

struct sim;

/* Opens the cluster of this scenario in the journal (NULL: only in memory) at this wall time.
 * `speed` is simulated per real second; 0: the journal's, else the scenario's. */
struct sim *sim_open(const struct scenario *scenario, const char *journal, int64_t wall_ms,
                     double speed, struct err *err);
void sim_free(struct sim *sim);
AUTO_DEFINE(sim)

const struct cluster *sim_cluster(const struct sim *sim);
const char *sim_journal(const struct sim *sim); /* path; NULL in memory */

/* Lets everything happen that is due until then (simulated ms; earlier than now: nothing). Writes,
 * but does not sync. */
int sim_advance(struct sim *sim, int64_t sim_ms, struct err *err);
/* When something is due next; INT64_MAX: never by itself. */
int64_t sim_next_due(const struct sim *sim);
int sim_sync(struct sim *sim, struct err *err);

struct sim_move {
    struct mark mark;
    const char *service, *instance, *source, *target; /* source NULL: not known */
};
struct sim_answer {
    bool lost;   /* lose-answer: do as if the connection broke */
    int replica; /* that is there because of it; -1 none */
};
/* Starts a successor of `instance` on `target`; the old replica leaves when it is ready. A mark
 * that is known is answered without doing anything. ERR_NOT_FOUND: no such instance, service or
 * host; ERR_CONFLICT: the instance is elsewhere, pending, being replaced or not of this service, or
 * the mark was used for another move; ERR_REFUSED: no room, unschedulable, down. */
int sim_place(struct sim *sim, const struct sim_move *move, struct sim_answer *out,
              struct err *err);

enum sim_settled { SIM_WAITING, SIM_APPLIED, SIM_MISSED, SIM_DISPLACED, SIM_FAILED, SIM_UNKNOWN };
extern const char *const sim_settled_names[]; /* "waiting", …, "unknown", NULL */
/* What became of a mark. *replica is the one that counts now, or -1; *detail is one line (static).
 * An undone move is settled (applied) when the replica is back, or the start was stopped. */
enum sim_settled sim_settled(const struct sim *sim, struct mark mark, int *replica,
                             const char **detail);

/* Puts a move back: stops a start that is not ready, else starts a successor on the old host.
 * Unknown marks, undone ones and what is back already are success. ERR_REFUSED: the old host has no
 * room; ERR_CONFLICT: the replica is gone or being replaced. */
int sim_undo(struct sim *sim, struct mark mark, struct sim_answer *out, struct err *err);

/* Takes the marks off a service's replicas (-1 all); their number goes to *marks. Nothing
 * restarts. */
int sim_release(struct sim *sim, int service, bool dry_run, int64_t *marks, struct err *err);

int sim_fault(struct sim *sim, const struct fault *fault, struct err *err);
int sim_clear_faults(struct sim *sim, struct err *err);
/* An armed fault of this kind that hits now, or -1; and one more use of it. */
int sim_fault_armed(const struct sim *sim, enum fault_kind kind, int service, int host, bool write);
int sim_fault_use(struct sim *sim, int fault, struct err *err);

#endif
