/* fault.h - what can be made to go wrong, by the scenario or at run time (POST /v1/faults). */
#ifndef REMAP_SIMULATED_FAULT_H
#define REMAP_SIMULATED_FAULT_H

#include <stdbool.h>
#include <stdint.h>

enum fault_kind {
    /* Armed from `at` for `span` (0: without end) or `times` uses: */
    FAULT_STUCK_START, /* a start on host / of service never gets ready */
    FAULT_STRAY,       /* a placed replica lands on another host that has room */
    FAULT_FORGET,      /* place is answered with success and nothing happens */
    FAULT_LOSE_EFFECT, /* place happens, then the new replica vanishes once it is ready */
    FAULT_LOSE_ANSWER, /* place happens, the connection is closed without an answer */
    FAULT_SLOW,        /* every answer is late by delay (real time, as clients count) */
    FAULT_REFUSE,      /* every answer is `status` */
    /* Happen once, at `at`: */
    FAULT_HOST_DOWN, /* its replicas vanish; after `span` it is back (0: never) */
    FAULT_SCALE,     /* service gets `replicas` */
    FAULT_DEPLOY,    /* rolling replacement of all replicas of service */
    FAULT_LOAD,      /* requests from outside (of service, or all) become `factor` times the
                        scenario's */
    FAULT_KINDS
};

struct fault {
    enum fault_kind kind;
    int service, host; /* -1: any */
    int64_t at_ms;     /* simulated */
    int64_t span_ms;
    int64_t times;    /* uses left; -1: unlimited */
    int64_t delay_ms; /* slow: real time */
    int64_t status;   /* refuse: HTTP status */
    int64_t replicas; /* scale */
    double factor;    /* load */
    bool writes_only; /* slow, refuse: only POST */
    bool done;        /* happened, used up, or cleared */
};

extern const char *const fault_kind_names[FAULT_KINDS + 1]; /* "stuck-start", …, NULL */

/* True for kinds that happen once instead of lying in wait. */
static inline bool fault_is_event(enum fault_kind kind)
{
    return kind >= FAULT_HOST_DOWN;
}

struct fault fault_default(enum fault_kind kind);

/* NULL when the fault's fields make sense together, else a static text: "host-down needs a host".
 */
const char *fault_problem(const struct fault *fault);

/* True when an armed fault applies at `now_ms` to this service and host (-1: not concerned). */
bool fault_hits(const struct fault *fault, int64_t now_ms, int service, int host);

#endif
