/* policy.h - when a dead stage is started again, and when a silent one counts as hung: arithmetic
 * on a clock that is passed in, nothing else (design.md 3; SSSD's monitor has the same numbers). */
#ifndef REMAP_MANAGER_POLICY_H
#define REMAP_MANAGER_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#define RESTART_HEALTHY_MS 30000 /* a life this long forgets the deaths before it */
#define RESTART_IDLE_DEATHS 3    /* this many idle deaths … */
#define RESTART_IDLE_MS 30000    /* … within this time end `remap` */

struct restarts {
    int failures;                                /* deaths since the last healthy life */
    int64_t idle_deaths_ms[RESTART_IDLE_DEATHS]; /* when, oldest first */
    int n_idle_deaths;
};

struct restart_decision {
    bool give_up;
    int64_t delay_ms; /* 0, 2000, then always 4000 */
};

/* A stage that was started at started_ms died at now_ms; `busy`: a request was under way (the death
 * is charged to its cycle). Zeroed struct restarts = nothing has happened yet. */
struct restart_decision restarts_died(struct restarts *restarts, int64_t started_ms, int64_t now_ms,
                                      bool busy);

/* The deadline of one request: progress whose `done` grew extends it, up to ten deadlines in all.
 */
struct deadline {
    int64_t length_ms, first_ms, due_ms, last_done;
};
#define DEADLINE_MAX_LENGTHS 10

void deadline_start(struct deadline *deadline, int64_t now_ms, int64_t length_ms);
void deadline_progress(struct deadline *deadline, int64_t now_ms, int64_t done);
/* Milliseconds until the request counts as hung; 0 when it does now. */
int64_t deadline_left_ms(const struct deadline *deadline, int64_t now_ms);

#endif
