/* adapter.h - the four interfaces to foreign tools (paper §6.1, §6.5; design.md 6). An adapter is
 * one const struct in one folder and one line in registry.c. Adapters know nothing of ZeroMQ or
 * SQLite; they do not log; they return errors and count what they could not map.
 *
 * Order of use in one inspection: cluster fills hosts, services, instances, latencies, rules;
 * metrics fill usage; messages fill traffic. All fill one `struct inspection`. */
#ifndef REMAP_ADAPTERS_ADAPTER_H
#define REMAP_ADAPTERS_ADAPTER_H

#include <stdbool.h>
#include <stdint.h>
#include "model/base/buf.h"
#include "model/base/err.h"
#include "model/model.h"
#include "model/plan.h"

struct option { /* one setting of a source, as text, from the configuration */
    const char *name, *value;
};

struct source {
    const char *name; /* for messages: "prometheus at http://…" */
    const char *type; /* adapter name */
    const struct option *options;
    size_t n_options;
};

/* The value of an option, or `fallback`. */
const char *source_option(const struct source *source, const char *name, const char *fallback);

struct option_spec { /* what an adapter accepts; unknown names are ERR_CONFIG */
    const char *name, *help, *fallback; /* fallback NULL: no default */
    bool required;
};

struct app_scope { /* which part of the cluster is ours */
    const char *name;
    const char *const *namespaces; /* NULL-terminated; empty: all */
    const char *const *services;   /* NULL-terminated; empty: all */
};

struct window {
    int64_t from_ms, to_ms; /* wall time */
};

/* What an adapter reports besides the model. Owned by the caller, filled with
 * inspection_note(). */
struct note {
    char *kind; /* "unmapped", "partial", "unknown-metric", "late", … */
    char *text;
    int64_t count;
};
struct otlp_store;
struct received { /* what the monitor holds that was sent to it for a source */
    const char *source;
    struct otlp_store *store;
};
struct inspection {
    struct model *model;
    struct note *notes;
    size_t n_notes;
    void *identity; /* struct identity of adapters/identity.h: joins names across tools; may be NULL */
    const struct received *received; /* borrowed */
    size_t n_received;
};
void inspection_note(struct inspection *in, const char *kind, int64_t count, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Frees the notes; model and identity stay with whoever made them. */
void inspection_wipe(struct inspection *in);

/* What `remap check` shows of one source. */
struct source_report {
    bool reachable;
    char version[64];
    int64_t newest_ms; /* newest sample; -1 none */
    char seen[1000];   /* "3 hosts, 14 services, 17 instances" */
};

/* What `remap check` shows of one thing that an orchestrator needs in its cluster. */
struct check_line {
    const char *what;              /* "webhook", "certificate", …; static */
    char seen[300];                /* "" nothing */
    char problem[300], warning[300]; /* it does not work; it will not for ever. "" none */
    const char *remedy;            /* what helps, where there is either; static */
};

/* Somebody has released a new version of a workload, or a new workload. Borrowed during the call. */
struct revision {
    const char *space, *service; /* "namespace", "namespace/name" */
    const char *text;            /* for people */
    const char *delivery;        /* the same again is the same release */
};

/* Told to whoever keeps sources open between inspections. */
struct tidings {
    void (*released)(void *arg, const struct revision *revision);
    void *arg;
};

struct cluster_adapter {
    const char *name, *summary;
    const struct option_spec *options; /* ended by a NULL name */
    int (*open)(const struct source *source, void **ctx, struct err *err);
    int (*inspect)(void *ctx, const struct app_scope *app, struct inspection *in, struct err *err);
    /* NULL: a source is opened for each inspection. Else it may stay open over many of them, and is
     * looked after in between: does what is due, without waiting. Returns the ms after which it wants
     * to be called again. */
    int64_t (*tend)(void *ctx, const struct tidings *tidings);
    /* Are replicas of the service being replaced, by what has come by itself since the last inspection?
     * Without waiting, and no proof of anything: when it is over, it is worth while to ask the
     * orchestrator. NULL: nothing comes. */
    bool (*rolls)(void *ctx, const char *service);
    int (*check)(void *ctx, const struct app_scope *app, struct source_report *out,
                 struct err *err);
    void (*close)(void *ctx);
};

struct metrics_adapter {
    const char *name, *summary;
    const struct option_spec *options;
    int (*open)(const struct source *source, void **ctx, struct err *err);
    /* Sets usage of instances and hosts over the window (mean). */
    int (*measure)(void *ctx, const struct app_scope *app, const struct window *window,
                   struct inspection *in, struct err *err);
    int64_t (*tend)(void *ctx); /* as above */
    int (*check)(void *ctx, const struct app_scope *app, struct source_report *out,
                 struct err *err);
    void (*close)(void *ctx);
};

struct message_adapter {
    const char *name, *summary;
    const struct option_spec *options;
    int (*open)(const struct source *source, void **ctx, struct err *err);
    /* Adds directed message rows of the window; names that cannot be joined go into
     * model->traffic and a note. */
    int (*trace)(void *ctx, const struct app_scope *app, const struct window *window,
                 struct inspection *in, struct err *err);
    int (*check)(void *ctx, const struct app_scope *app, struct source_report *out,
                 struct err *err);
    void (*close)(void *ctx);
};

/* One move for an orchestrator. At instance granularity: this replica goes from `source` to
 * `target`; at service granularity `targets` is the wanted host set with counts. */
struct placement {
    int64_t cycle, seq; /* the mark of the move: "CYCLE/SEQ" */
    const char *service, *instance; /* instance NULL at service granularity */
    const char *source, *target;    /* host names; source NULL: unplaced */
    const struct placement_count {
        const char *host;
        int64_t count;
    } *targets;
    size_t n_targets;
};

enum settle_state {
    SETTLE_WAITING,   /* not yet */
    SETTLE_APPLIED,   /* runs and is ready where it was sent */
    SETTLE_PARTIAL,   /* some replicas are there */
    SETTLE_MISSED,    /* ready, but elsewhere */
    SETTLE_DISPLACED, /* was there, then taken away by others */
    SETTLE_FAILED     /* will not get ready, or the orchestrator gave up */
};

struct settle_report {
    enum settle_state state;
    char instance_now[254]; /* the name of the replica that replaced the moved one; "" unknown */
    char detail[200];
};

/* What became of a move, told where the people of the cluster look. Borrowed. */
struct announcement {
    int64_t cycle, seq;
    const char *service, *instance; /* instance NULL: the service as a whole */
    const char *target;             /* host; NULL: several, or unknown */
    const char *state;              /* "applied", "missed", "failed", "undone", … */
    const char *reason;             /* NULL: none */
    bool bad;                       /* somebody should look at it */
};

struct keeper_state {
    bool leads;     /* the lock is ours */
    bool paused;    /* by the switch: begin nothing, finish what is under way */
    int64_t patience_ms; /* how long the hold of a dead one may still last */
    char text[300]; /* who leads, what is wrong, who paused; changes only when the fact does */
    char paused_by[200]; /* "configmap remap/remap-pause"; only while paused */
};

/* A mark that the cluster bears, perhaps of a daemon whose store is gone. Borrowed. */
struct keeper_mark {
    struct placement placement;
    int64_t at_ms;     /* wall time of its writing */
    const char *saved; /* what undo() needs */
};

/* What a daemon offers to the cluster itself over HTTPS. */
struct keeper_address {
    const char *listen, *cert_file, *key_file;
};

/* What an orchestrator keeps up between requests, as long as the executor lives: the lock by which
 * of several daemons only one writes, the switch by which people stop it, what the cluster asks of
 * it. One per source. No function waits longer than a few short requests; all but open() and close()
 * may be NULL. */
struct keeper {
    /* `pid`: of the daemon, whose lock it is. */
    int (*open)(const struct source *source, int64_t pid, void **ctx, struct err *err);
    /* Takes or renews the lock and looks at the switch; the ms until it wants to be called again. */
    int64_t (*turn)(void *ctx, struct keeper_state *out);
    /* May anything be written at this moment? By the local clock alone. ERR_UNREACHABLE: not now, and
     * why; nobody knows whether later. */
    int (*may_write)(void *ctx, struct err *err);
    /* Calls `each` for every mark in the app's part of the cluster. */
    int (*marks)(void *ctx, const struct app_scope *app,
                 void (*each)(void *arg, const struct keeper_mark *mark), void *arg,
                 struct err *err);
    /* As well as it can, and perhaps only with the next flush() or turn(): nothing depends on it. */
    void (*announce)(void *ctx, const struct announcement *what);
    /* What was announced and not told yet is told now. NULL: announce() does so. */
    void (*flush)(void *ctx);
    /* Where it wants to be reached; false: nowhere. Borrowed until close(). */
    bool (*address)(void *ctx, struct keeper_address *out);
    /* The answer to a POST: an HTTP status, and a JSON document appended to *out. */
    unsigned (*answer)(void *ctx, const char *path, const char *body, size_t size,
                       struct buf *out);
    void (*close)(void *ctx); /* gives the lock back */
};

/* What remap left on a service and now keeps its replicas from running. Borrowed. */
struct relief {
    int64_t cycle, seq; /* the move that left it */
    const char *service;
    int64_t restarts; /* replicas that restart with it */
    bool done;        /* it was taken off; false: not, by the budget */
    const char *why;
};
struct relief_budget {
    int64_t restarts;    /* replicas that may restart in all, counted down; -1: no limit */
    int64_t per_service; /* of one service; -1: no limit */
    bool look_only;      /* write nothing, tell what would be taken off */
};

struct orchestrator {
    const char *name, *summary;
    const struct option_spec *options;
    enum granularity granularity;
    bool start_first; /* the new replica is ready before the old one leaves */
    bool marks;       /* the placed object carries the mark */
    int (*open)(const struct source *source, void **ctx, struct err *err);
    /* These moves, of different services, will be asked for one right after the other: whatever place()
     * has to read for them may be read now, for all at the same time. n 0: no more of them. NULL: each
     * reads for itself. */
    void (*ahead)(void *ctx, const struct placement *placements, size_t n);
    /* Asks for the move. Idempotent by mark: asking again for what has happened is success. On
     * success *saved (caller frees, may stay NULL) is text that undo() needs.
     * ERR_REFUSED / ERR_CONFLICT / ERR_UNREACHABLE: nothing was changed or it cannot be known. */
    int (*place)(void *ctx, const struct placement *placement, char **saved, struct err *err);
    /* All these are intended: begins as many as it can at the same time, and says of each whether. place()
     * is then called for each that was begun, and tells what came of it; and for the others, unless the
     * plan stops before, to do it. NULL: one after the other. */
    void (*place_all)(void *ctx, const struct placement *placements, size_t n, bool *begun);
    /* As ahead(), of settled(). */
    void (*look_ahead)(void *ctx, const struct placement *placements, size_t n);
    /* Where is the object of this mark now? Looks at the cluster each time. After an undo of the
     * mark, SETTLE_APPLIED means that it is back. */
    int (*settled)(void *ctx, const struct placement *placement, struct settle_report *out,
                   struct err *err);
    /* Puts this move back (§6.5). Idempotent. */
    int (*undo)(void *ctx, const struct placement *placement, const char *saved, struct err *err);
    /* Removes what remap left on the service (pins); NULL service: everything of the app. The
     * number of replicas that restart goes to *restarts; dry_run only counts. */
    int (*release)(void *ctx, const struct app_scope *app, const char *service, bool dry_run,
                   int64_t *restarts, struct err *err);
    /* Takes off what does harm, and marks what has lost its meaning; tells each. Asked now and then,
     * while no move is under way; NULL: what it leaves can do none. */
    int (*relieve)(void *ctx, const struct app_scope *app, struct relief_budget *budget,
                   void (*told)(void *arg, const struct relief *relief), void *arg,
                   struct err *err);
    /* For `remap check`: tells a line for each thing that it needs in the cluster. NULL: nothing. */
    void (*check)(void *ctx, void (*tell)(void *arg, const struct check_line *line), void *arg);
    void (*close)(void *ctx);
    const struct keeper *keeper; /* NULL: it needs none */
    /* Called after open() with what the keeper's open() made, which outlives this ctx: every single
     * write asks may_write() first. NULL where there is no keeper. */
    void (*attach)(void *ctx, void *keeper_ctx);
};

/* registry.c: ended by NULL. */
extern const struct cluster_adapter *const cluster_adapters[];
extern const struct metrics_adapter *const metrics_adapters[];
extern const struct message_adapter *const message_adapters[];
extern const struct orchestrator *const orchestrators[];

const struct cluster_adapter *cluster_adapter_find(const char *name); /* NULL when none */
const struct metrics_adapter *metrics_adapter_find(const char *name);
const struct message_adapter *message_adapter_find(const char *name);
const struct orchestrator *orchestrator_find(const char *name);

/* Refuses options the spec does not know and missing required ones: ERR_CONFIG. */
int source_check(const struct source *source, const struct option_spec *spec, struct err *err);

#endif
