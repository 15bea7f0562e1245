/* request.h - the execute request (model/wire/README.md), decoded as a whole; the tree is freed
 * before work begins. */
#ifndef REMAP_EXECUTOR_REQUEST_H
#define REMAP_EXECUTOR_REQUEST_H

#include "adapters/adapter.h"
#include "executor/record.h"
#include "model/affinity.h"
#include "model/plan.h"

struct request {
    struct app_scope app; /* its strings are owned here */
    int64_t cycle;
    bool undo;
    struct source orchestrator, cluster;
    int64_t ready_timeout_ms; /* for one move to settle */
    int64_t poll_ms;          /* between two looks */
    int64_t start_wait_ms;    /* for replicas born meanwhile to get ready for being steered */
    int64_t max_moves;        /* of this cycle; -1: no limit */
    double min_gain, min_plan_gain; /* as in the app's configuration; < 0: moves are not judged */
    int64_t max_parallel;     /* moves of different services side by side; 1: one after the other */
    bool lost; /* moves of the plan were discarded in an earlier attempt: they are not in `plan` */
    bool move_stateful;
    struct model *model;
    struct analysis *analysis; /* NULL: none given */
    struct plan *plan;
    struct intent **base; /* committed by earlier attempts, each allocated alone */
    size_t n_base;
    struct outcomes done; /* and what is known of them */
};

/* ERR_INPUT with the place. */
struct request *request_decode(const char *text, size_t size, struct err *err);
void request_free(struct request *request);
AUTO_DEFINE(request)

/* Parts that other requests have too: member `app`, and a source. ERR_INPUT with the place. */
int request_read_app(const struct jval *root, struct app_scope *app, struct err *err);
int request_read_source(const struct jval *object, const char *key, struct source *out,
                        struct err *err);
void request_wipe_app(struct app_scope *app);
void request_wipe_source(struct source *source);

const struct intent *request_intent(const struct request *request, int64_t seq); /* or NULL */
/* The first number that no move of this cycle has, planned, discarded or made: a plan moves an
 * instance at most once, so its own numbers end at the number of instances. */
int64_t request_free_seq(const struct request *request);

#endif
