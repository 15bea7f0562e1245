/* api_connect.h - the connection behind a kube_api, for what streams (watch.c). */
#ifndef REMAP_KUBERNETES_API_CONNECT_H
#define REMAP_KUBERNETES_API_CONNECT_H

#include <stdbool.h>
#include "model/base/err.h"

struct http;
struct kube_api;

/* Borrowed, until the next call; `again`: the credentials were refused, get new ones. */
int kube_api_connect(struct kube_api *api, bool again, struct http **out, struct err *err);

#endif
