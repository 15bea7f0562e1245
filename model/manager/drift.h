/* drift.h - when what is seen between cycles starts one before its time: a level that is entered
 * and left at different heights, a time for which it must last, and a quiet time after every cycle,
 * so that noise starts nothing and one change starts one cycle. Pure; times are the engine's. */
#ifndef REMAP_MANAGER_DRIFT_H
#define REMAP_MANAGER_DRIFT_H

#include <stdbool.h>
#include <stdint.h>

/* A look takes this share of the time between two at most. */
#define DRIFT_BUSY_SHARE 10
/* After failures in a row looks come later, up to 2^5 = 32 times. */
#define DRIFT_MAX_DOUBLINGS 5

struct drift_config {
    int64_t every_ms; /* 0: no looks */
    int64_t for_ms, quiet_ms;
    double affinity, affinity_leave, response, response_leave; /* model/config.h */
};

struct drift_seen {
    double distance, noise; /* analyzer/drift.h; distance < 0: too little traffic to tell */
    bool has_response;
    double response; /* rise of the mean response time, as a share; may be below 0 */
};

enum drift_state {
    DRIFT_NONE,    /* not looked since the placement was planned */
    DRIFT_CALM,
    DRIFT_RISING,  /* entered; has to last */
    DRIFT_HELD,    /* has lasted; quiet after a cycle */
    DRIFT_STARTED, /* a cycle was asked for */
    DRIFT_N_STATES
};

struct drift {
    enum drift_state state;
    int64_t entered_ms; /* when the level was entered; valid from RISING on */
    int64_t quiet_until_ms;
    bool by_response; /* what was entered: the response time, not the traffic */
    struct drift_seen seen;
    int failures; /* looks in a row that came to nothing */
    int64_t known_ms; /* when something was seen last … */
    bool blind;       /* … and since then a look saw too little to tell */
};

/* A cycle of the app has ended, or a new placement counts: nothing is seen yet. */
void drift_reset(struct drift *drift, const struct drift_config *config, int64_t now_ms);

/* One look. True: a cycle is to be started now; said once, until drift_reset(). */
bool drift_look(struct drift *drift, const struct drift_config *config,
                const struct drift_seen *seen, int64_t now_ms);

/* How long to wait after a look that took so long. */
int64_t drift_pause_ms(const struct drift *drift, const struct drift_config *config,
                       int64_t took_ms);

/* "calm", "rising", "held", "started"; "-" before the first look. */
const char *drift_state_name(enum drift_state state);

#endif
