/* request.h - request documents of model/wire/README.md made from the configuration. Documents that
 * are there already (models, analyses) go in as their own bytes, never encoded anew. */
#ifndef REMAP_MANAGER_REQUEST_H
#define REMAP_MANAGER_REQUEST_H

#include "model/base/buf.h"
#include "model/config.h"

void request_collect(const struct config *config, const struct config_app *app, int64_t from_ms,
                     int64_t to_ms, struct buf *out);
/* With the orchestrator that the app names. */
void request_check(const struct config *config, const struct config_app *app, int64_t from_ms,
                   int64_t to_ms, struct buf *out);
/* A source of the configuration: {name, type, options}. */
void request_source(const struct config_source *source, struct buf *out);
/* {name, namespaces, services} of an app. */
void request_app(const struct config_app *app, struct buf *out);

/* `analyze`: `model` is a model document's text. */
void request_analyze(double weight, const char *model, size_t size, struct buf *out);

struct plan_options {
    const char *planner;
    enum objective objective;
    enum granularity granularity;
    double min_gain; /* 0: moves have no price */
    int64_t time_limit_ms;
    int64_t max_moves; /* -1: no limit */
    bool move_stateful, frontier;
    int64_t seed;
    int64_t iterations; /* -1: not repeated */
};

void request_plan_options(const struct plan_options *options, struct buf *out);
/* `plan`: `options` as text; `analysis` NULL: the model's given affinities. */
void request_plan(const char *options, const char *model, size_t model_size, const char *analysis,
                  size_t analysis_size, struct buf *out);

#endif
