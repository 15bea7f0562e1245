/* drift.c - the levels, times and counts of a trigger by drift (paper §9; drift.h). */
#include "model/manager/drift.h"

#include <assert.h>
#include <stddef.h>

void drift_reset(struct drift *drift, const struct drift_config *config, int64_t now_ms)
{
    *drift = (struct drift){.quiet_until_ms = now_ms + config->quiet_ms};
}

/* What the sample alone makes is no drift: the level lies above it. */
static double excess(const struct drift_seen *seen)
{
    return seen->distance - seen->noise;
}

/* What lies between two sights further apart than the time for which a level must last is not known
 * to have been beyond it: the time counts from now. */
static void see_again(struct drift *drift, const struct drift_config *config, int64_t now_ms,
                      bool blind)
{
    if (blind && now_ms - drift->known_ms > config->for_ms)
        drift->entered_ms = now_ms;
    drift->known_ms = now_ms;
    drift->blind = false;
}

bool drift_look(struct drift *drift, const struct drift_config *config,
                const struct drift_seen *seen, int64_t now_ms)
{
    bool traffic = excess(seen) > config->affinity;
    bool response = seen->has_response && seen->response > config->response;
    bool left = excess(seen) <= config->affinity_leave &&
                (!seen->has_response || seen->response <= config->response_leave);
    bool blind = drift->blind || drift->failures > 0;
    drift->seen = *seen;
    drift->failures = 0;
    if (drift->state == DRIFT_STARTED)
        return false;
    if (seen->distance < 0) { /* who sees nothing learns nothing */
        drift->blind = true;
        return false;
    }
    see_again(drift, config, now_ms, blind);
    if (left || (drift->state < DRIFT_RISING && !traffic && !response)) {
        drift->state = DRIFT_CALM;
        return false;
    }
    if (drift->state < DRIFT_RISING) {
        drift->entered_ms = now_ms;
        drift->by_response = !traffic;
    }
    drift->state = now_ms - drift->entered_ms < config->for_ms ? DRIFT_RISING
                   : now_ms < drift->quiet_until_ms            ? DRIFT_HELD
                                                               : DRIFT_STARTED;
    return drift->state == DRIFT_STARTED;
}

int64_t drift_pause_ms(const struct drift *drift, const struct drift_config *config,
                       int64_t took_ms)
{
    int doublings =
        drift->failures < DRIFT_MAX_DOUBLINGS ? drift->failures : DRIFT_MAX_DOUBLINGS;
    int64_t pause = config->every_ms << doublings, least = took_ms * (DRIFT_BUSY_SHARE - 1);
    return pause > least ? pause : least;
}

const char *drift_state_name(enum drift_state state)
{
    static const char *const names[DRIFT_N_STATES] = {"-", "calm", "rising", "held", "started"};
    assert(state < DRIFT_N_STATES && names[state]);
    return names[state];
}
