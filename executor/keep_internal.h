/* keep_internal.h - shared by keep.c (who is kept), keep_listen.c (its listener) and adopt.c (what
 * an earlier leader left). */
#ifndef REMAP_EXECUTOR_KEEP_INTERNAL_H
#define REMAP_EXECUTOR_KEEP_INTERNAL_H

#include "executor/keep.h"
#include "model/wire/listener.h"

struct adoption;

struct kept_app { /* a part of the cluster that is moved through this source */
    struct app_scope scope;
    struct kept_relief {
        bool wanted;                                /* pins that do harm are looked for … */
        bool look_only;                             /* … and told, not taken off */
        int64_t max_restarts, max_service_restarts; /* per interval; -1: no limit */
        int64_t interval_ms;
    } relief;
    int64_t budget_until_ms, restarted; /* of this interval */
    struct held_back { /* pins that do harm and stay, told once */
        char *service, *text;
        int64_t cycle, seq;
        bool seen; /* at this look */
    } * held;
    size_t n_held;
};

struct kept {
    struct stage *stage;
    struct keep *keep; /* NULL: of one request alone */
    const struct orchestrator *orchestrator;
    struct source source; /* owned */
    struct kept_app *apps, *earlier; /* earlier: those of before, while it is configured again */
    size_t n_apps, n_earlier;
    struct kept_move { /* whose marks are ours: of the store, and of this process */
        int64_t cycle, seq, from_ms, to_ms; /* wall time in which it was written */
    } * known;
    size_t n_known;
    void *ctx; /* the keeper's */
    int64_t timer;
    bool turning, configured;
    int users;
    struct keeper_state state;
    char paused_why[220]; /* for a plan that stops: "paused by …" */
    int64_t turned;            /* turns so far */
    struct adoption *adoption; /* under way; NULL: none */
    int64_t adopt_ms;          /* a move of an earlier leader gets ready in this time, or goes back */
    bool adopted;              /* since the lock was taken */
    void *relief;              /* the orchestrator's; NULL: not open */
    int64_t relief_ms;         /* the next look */

    struct listener *listener; /* NULL: not open */
    char *tls_cert, *tls_key, *listen_trouble;
};

/* An `events` row (a line of the log in a filter). */
void kept_say(struct kept *kept, const char *app, const char *kind, const char *text);
/* Tells the people of the cluster at once. */
void kept_tell(struct kept *kept, const struct announcement *what);

/* keep_listen.c: opens what the keeper wants to listen on, again where its certificate has changed.
 */
void kept_listen(struct kept *kept);
void kept_unlisten(struct kept *kept);

/* Is a mark, written at that time, of a move that our store or this process knows? */
bool kept_knows(const struct kept *kept, const struct keeper_mark *mark);

/* adopt.c: one step of dealing with the marks of an earlier leader; true when there is nothing more
 * to do. Called while the lock is ours. */
bool kept_adopt(struct kept *kept);
/* The lock is gone, or all is done: forgets what was found. */
void kept_adopt_end(struct kept *kept);

/* relieve.c: looks for pins that do harm, where it is time and nothing forbids it. */
void kept_relieve(struct kept *kept);
void kept_relieve_end(struct kept *kept);
/* An app that was there before it was configured again: what it has used of its budget and what was told
 * of it stay. */
void kept_relieve_go_on(struct kept *kept, struct kept_app *app);

#endif
