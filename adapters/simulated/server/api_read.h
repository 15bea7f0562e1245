/* api_read.h - the GET side of api.h: documents about the cluster. Each appends to out->body. */
#ifndef REMAP_SIMULATED_API_READ_H
#define REMAP_SIMULATED_API_READ_H

#include "adapters/simulated/server/api.h"

/* Host pairs are listed only up to here: 100 hosts are 4,950 rows, which as JSON trees take 4 MB in
 * each process that reads the model; 200 hosts took 17 MB. Above it only explicit links are. */
#define API_MAX_LATENCY_HOSTS 100

int api_health(struct sim *, const struct api_request *, struct api_answer *, struct err *);
int api_cluster(struct sim *, const struct api_request *, struct api_answer *, struct err *);
int api_metrics(struct sim *, const struct api_request *, struct api_answer *, struct err *);
int api_messages(struct sim *, const struct api_request *, struct api_answer *, struct err *);
int api_response(struct sim *, const struct api_request *, struct api_answer *, struct err *);
int api_settled(struct sim *, const struct api_request *, struct api_answer *, struct err *);
int api_state(struct sim *, const struct api_request *, struct api_answer *, struct err *);
int api_journal(struct sim *, const struct api_request *, struct api_answer *, struct err *);
int api_faults(struct sim *, const struct api_request *, struct api_answer *, struct err *);

#endif
