/* trace_data.h - traces for the contract tests of tracers: written to a server as Zipkin v2 JSON, and
 * what a reader must make of them. Each trace is front → cart → db and front → a broker. */
#ifndef REMAP_TESTS_TRACE_DATA_H
#define REMAP_TESTS_TRACE_DATA_H

#include "tests/support/server.h"

struct trace_data {
    int64_t from_ms, to_ms; /* traces lie evenly in here */
    int64_t n_traces;       /* four spans each, five where the halves of a call have ids of their own */
    int64_t per_request;    /* traces in one POST */
    int64_t slow_us;        /* the call of db comes so much later */
};

/* POSTs them to /api/v2/spans and waits until `reader` has them at `path` + trace id; false when the
 * server refuses. */
bool trace_data_post(const struct trace_data *data, const struct server *server,
                     const struct server *reader, const char *path);

/* The model that they fit: front, cart (two replicas), db; hosts left out. Its identity is new. */
struct inspection trace_data_inspection(void);
void trace_data_end(struct inspection *in); /* checks the model, frees all */

/* Fails the running test unless the rows are those of the traces of `data` (which starts in the
 * window) and nothing else. */
void trace_data_verify(const struct trace_data *data, const struct inspection *in);

#endif
