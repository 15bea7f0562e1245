/* lease.h - a coordination.k8s.io Lease, by which of several daemons only one writes: the algorithm
 * of client-go's tools/leaderelection (interfaces.md 1.8), with the times of Kubernetes' own
 * components.
 *
 * - Whether somebody else's hold has ended is judged by the local monotonic clock alone, counted
 * from when the record was seen to change: clocks of machines differ, and renewTime is theirs.
 * - Our own hold counts from just before the request that renewed it. When no renewal succeeds for
 *   renew_ms nothing may be written any more, which is duration - renew_ms before anybody else may
 *   take it; a renewal that succeeds later, with nobody in between, makes it ours again.
 * - It is a guard, no fence: a write may be on its way when the hold ends. So every write has a
 * lock of its own as well (resourceVersion, `test`, uid). */
#ifndef REMAP_KUBERNETES_LEASE_H
#define REMAP_KUBERNETES_LEASE_H

#include "adapters/kubernetes/api.h"
#include "model/base/mem.h"

struct lease_options {
    const char *space, *name;
    const char *identity; /* of this daemon: never the same in two that live */
    int64_t duration_ms;  /* how long a hold lasts; 15 s */
    int64_t renew_ms;     /* without a renewal for so long it is over for us; 10 s */
    int64_t retry_ms;     /* between two attempts to take or renew; 2 s */
};

struct lease;
/* `api` is borrowed. */
struct lease *lease_new(struct kube_api *api, const struct lease_options *options);
void lease_free(struct lease *lease); /* does not release */
AUTO_DEFINE(lease)

/* Takes, renews, or finds out who has it: one to three requests. `now_ms` is monotonic, read just
 * before. 1: ours; 0: somebody else's; -1: not known (*err). */
int lease_turn(struct lease *lease, int64_t now_ms, struct err *err);
/* Ours, by the clock alone? */
bool lease_held(const struct lease *lease, int64_t now_ms);
/* Who has it, as last seen; "" nobody, or unknown. */
const char *lease_holder(const struct lease *lease);
/* The pause before the next turn: retry_ms, up to a fifth longer by `random`. */
int64_t lease_pause_ms(const struct lease *lease, uint64_t random);
/* After so long without success somebody who lives has it: a dead one's hold, and two attempts. */
int64_t lease_patience_ms(const struct lease *lease);
/* Gives it back if it is ours, so that the next one need not wait. */
void lease_release(struct lease *lease);

/* "host_boot-id_pid-namespace_pid" of the daemon `pid`, cut to what an annotation may hold. Two
 * daemons that live never have the same; the executors of one daemon do. Caller frees. */
char *lease_identity(int64_t pid);
#endif
