/* policy.c - the arithmetic of restarts and deadlines (design.md 3). */
#include "model/manager/policy.h"

#include <string.h>

struct restart_decision restarts_died(struct restarts *restarts, int64_t started_ms, int64_t now_ms,
                                      bool busy)
{
    static const int64_t delays_ms[] = {0, 2000, 4000};
    const int last = sizeof delays_ms / sizeof *delays_ms - 1;
    if (now_ms - started_ms >= RESTART_HEALTHY_MS) {
        memset(restarts, 0, sizeof *restarts);
    }
    if (!busy) {
        if (restarts->n_idle_deaths == RESTART_IDLE_DEATHS) {
            memmove(restarts->idle_deaths_ms, restarts->idle_deaths_ms + 1,
                    sizeof restarts->idle_deaths_ms - sizeof restarts->idle_deaths_ms[0]);
            restarts->n_idle_deaths--;
        }
        restarts->idle_deaths_ms[restarts->n_idle_deaths++] = now_ms;
        if (restarts->n_idle_deaths == RESTART_IDLE_DEATHS &&
            now_ms - restarts->idle_deaths_ms[0] <= RESTART_IDLE_MS) {
            return (struct restart_decision){true, 0};
        }
    }
    int step = restarts->failures < last ? restarts->failures : last;
    restarts->failures++;
    return (struct restart_decision){false, delays_ms[step]};
}

void deadline_start(struct deadline *deadline, int64_t now_ms, int64_t length_ms)
{
    *deadline = (struct deadline){length_ms, now_ms, now_ms + length_ms, 0};
}

void deadline_progress(struct deadline *deadline, int64_t now_ms, int64_t done)
{
    if (done <= deadline->last_done) {
        return;
    }
    int64_t end = deadline->first_ms + DEADLINE_MAX_LENGTHS * deadline->length_ms;
    int64_t due = now_ms + deadline->length_ms;
    deadline->last_done = done;
    deadline->due_ms = due < end ? due : end;
}

int64_t deadline_left_ms(const struct deadline *deadline, int64_t now_ms)
{
    return deadline->due_ms > now_ms ? deadline->due_ms - now_ms : 0;
}
