/* replica.h - the orchestrator of single replicas on Kubernetes (replica.c says how and why). */
#ifndef REMAP_KUBERNETES_REPLICA_H
#define REMAP_KUBERNETES_REPLICA_H

#include "adapters/adapter.h"

#define REPLICA_LISTEN "0.0.0.0:9473"
#define REPLICA_CERT_FILE "/etc/remap/admission/tls.crt"
#define REPLICA_KEY_FILE "/etc/remap/admission/tls.key"
#define REPLICA_WEBHOOK "remap"

extern const struct orchestrator kubernetes_replica_orchestrator;

#endif
