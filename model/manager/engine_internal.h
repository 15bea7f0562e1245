/* engine_internal.h - what the files of the engine share: engine.c (state, store, time),
 * engine_ask.c (applications, commands, deployments), engine_stage.c (requests and answers), engine_look.c
 * (what is seen between cycles). */
#ifndef REMAP_MANAGER_ENGINE_INTERNAL_H
#define REMAP_MANAGER_ENGINE_INTERNAL_H

#include "model/manager/engine.h"

/* --- engine.c --- */
struct engine_cycle *engine_find(struct engine *engine, int64_t id); /* or NULL */
bool engine_before_executing(enum cycle_state state);
/* States that keep the token once they have it. */
bool engine_holds_token(const struct engine_cycle *c);
/* A running cycle of the app, proposals apart; or NULL. */
struct engine_cycle *engine_running(struct engine *engine, int app);
void engine_set_reason(struct engine_cycle *c, const char *reason); /* NULL keeps it */
void engine_rearm(struct engine *engine, int app);
/* The only place where a state changes. A request that was out is forgotten; its stage stays busy
 * until it answers. reason NULL keeps the one there is. */
void engine_step(struct engine *engine, struct engine_cycle *c, enum cycle_state to,
                 const char *reason);
/* Another cycle of the app has found something else: its proposals are no more. */
void engine_overtake(struct engine *engine, const struct engine_cycle *by, const char *reason);
/* Finish the move in flight, discard the rest. */
void engine_stop_executing(struct engine_cycle *c, enum engine_stop why, const char *reason);

/* --- engine_ask.c --- */
void engine_enqueue(struct engine *engine, int app, const char *trigger, bool dry_run,
                    int64_t base);
void engine_on_app(struct engine *engine, const struct engine_event *ev);
void engine_on_app_gone(struct engine *engine, const struct engine_event *ev);
void engine_on_restore(struct engine *engine, const struct engine_event *ev);
void engine_on_apply(struct engine *engine, const struct engine_event *ev);
void engine_on_undo(struct engine *engine, const struct engine_event *ev);
void engine_on_pause(struct engine *engine, const struct engine_event *ev);
void engine_on_deploy(struct engine *engine, const struct engine_event *ev);

/* --- engine_stage.c --- */
void engine_on_stage_down(struct engine *engine, const struct engine_event *ev);
void engine_on_sent(struct engine *engine, const struct engine_event *ev);
void engine_on_lent(struct engine *engine, const struct engine_event *ev);
void engine_on_progress(struct engine *engine, const struct engine_event *ev);
void engine_on_answer(struct engine *engine, const struct engine_event *ev);

/* --- engine_look.c --- */
/* The app's cycle has ended, or waits as a proposal: what is compared with is another one now. */
void engine_look_anew(struct engine *engine, const struct engine_cycle *c);
/* What the app was is no more (a deployment): the timer alone counts. */
void engine_look_forget(struct engine *engine, int app);
/* The configuration of an app has come. */
void engine_look_configure(struct engine *engine, int app);
void engine_look_begin(struct engine *engine); /* one that is due, when there is room */
void engine_look_lost(struct engine *engine, enum party stage); /* the stage that worked on it died */
void engine_on_looking(struct engine *engine, const struct engine_event *ev);
/* The stage has answered; ev of EV_RESULT or EV_FAILURE. */
void engine_looked(struct engine *engine, const struct engine_event *ev);
bool engine_look_action(const struct engine *engine, struct engine_action *out);

#endif
