/* api.h - the HTTP interface of remap-simulated as a function from request to answer, apart from
 * sockets (server.h), so that tests and fuzzers call it directly. Times in queries and answers
 * named `…_ms` are wall time, `sim_ms` is the cluster's own clock.
 *
 *   GET  /healthz
 *   GET  /v1/cluster                    hosts, services, replicas, latencies
 *   GET  /v1/metrics?from_ms=&to_ms=    mean usage over the window
 *   GET  /v1/messages?from_ms=&to_ms=   calls per pair of replicas in the window
 *   GET  /v1/response                   response time of each entry and of the whole, now
 *   GET  /v1/settled?cycle=&seq=        what became of a move
 *   GET  /v1/state                      everything, for people
 *   GET  /v1/journal                    the journal as it is, JSON lines
 *   GET  /v1/faults
 *   POST /v1/place    {cycle, seq, service, instance, source, target}
 *   POST /v1/undo     {cycle, seq}
 *   POST /v1/release  {service, dry_run}
 *   POST /v1/faults   {kind, service, host, at_ms, for_ms, times, delay_ms, status, replicas,
 * factor, writes_only}: as in a scenario; at_ms is simulated, from now POST /v1/faults/clear
 *
 * Errors are {"error": text} with 400 (malformed), 404, 405, 409 (somebody was first, elsewhere),
 * 413, 422 (understood, refused), 500 (journal cannot be written). */
#ifndef REMAP_SIMULATED_API_H
#define REMAP_SIMULATED_API_H

#include "adapters/simulated/server/sim.h"

#define API_MAX_BODY 65536 /* the longest request has six names of 253 bytes */

struct api_request {
    const char *method, *path;
    /* Value of a query argument, or NULL. */
    const char *(*query)(void *ctx, const char *name);
    void *query_ctx;
    const char *body;
    size_t size;
    int64_t wall_ms; /* now */
};

struct api_answer {
    int status;
    const char *content_type; /* static */
    struct buf body;
    int64_t delay_ms; /* slow: answer only after this much real time */
    bool drop;        /* lose-answer: close the connection instead */
};

/* Advances the cluster to now, does what is asked, and syncs the journal. Never fails: errors are
 * answers. The caller wipes out->body. */
void api_handle(struct sim *sim, const struct api_request *request, struct api_answer *out);

#endif
