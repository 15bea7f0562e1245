/* fault.c - the table of faults and when they apply. */
#include "adapters/simulated/server/fault.h"

#include <stddef.h>

const char *const fault_kind_names[FAULT_KINDS + 1] = {[FAULT_STUCK_START] = "stuck-start",
                                                       [FAULT_STRAY] = "stray",
                                                       [FAULT_FORGET] = "forget",
                                                       [FAULT_LOSE_EFFECT] = "lose-effect",
                                                       [FAULT_LOSE_ANSWER] = "lose-answer",
                                                       [FAULT_SLOW] = "slow",
                                                       [FAULT_REFUSE] = "refuse",
                                                       [FAULT_HOST_DOWN] = "host-down",
                                                       [FAULT_SCALE] = "scale",
                                                       [FAULT_DEPLOY] = "deploy",
                                                       [FAULT_LOAD] = "load",
                                                       [FAULT_KINDS] = NULL};

struct fault fault_default(enum fault_kind kind)
{
    bool once = kind <= FAULT_LOSE_ANSWER; /* spoils one move; slow and refuse last */
    return (struct fault){.kind = kind,
                          .service = -1,
                          .host = -1,
                          .times = once ? 1 : -1,
                          .status = 503,
                          .replicas = -1,
                          .factor = -1};
}

const char *fault_problem(const struct fault *fault)
{
    switch (fault->kind) {
    case FAULT_SLOW:
        return fault->delay_ms > 0 ? NULL : "slow needs a delay";
    case FAULT_REFUSE:
        return fault->status >= 400 && fault->status <= 599 ? NULL
                                                            : "refuse needs a status 400 to 599";
    case FAULT_HOST_DOWN:
        return fault->host >= 0 ? NULL : "host-down needs a host";
    case FAULT_SCALE:
        if (fault->service < 0)
            return "scale needs a service";
        return fault->replicas >= 0 ? NULL : "scale needs replicas";
    case FAULT_DEPLOY:
        return fault->service >= 0 ? NULL : "deploy needs a service";
    case FAULT_LOAD:
        return fault->factor >= 0 ? NULL : "load needs a factor";
    case FAULT_STUCK_START:
    case FAULT_STRAY:
    case FAULT_FORGET:
    case FAULT_LOSE_EFFECT:
    case FAULT_LOSE_ANSWER:
    case FAULT_KINDS:
        break;
    }
    return NULL;
}

bool fault_hits(const struct fault *fault, int64_t now_ms, int service, int host)
{
    if (fault->done || !fault->times || now_ms < fault->at_ms)
        return false;
    if (fault->span_ms && now_ms >= fault->at_ms + fault->span_ms)
        return false;
    if (fault->service >= 0 && fault->service != service)
        return false;
    return fault->host < 0 || fault->host == host;
}
