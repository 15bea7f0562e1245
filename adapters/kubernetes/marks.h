/* marks.h - marks.c's one function; inside adapters/kubernetes. */
#ifndef REMAP_KUBERNETES_MARKS_H
#define REMAP_KUBERNETES_MARKS_H

#include "adapters/kubernetes/api.h"

/* Calls `each` for every mark on a Deployment or StatefulSet of the app. */
int kube_marks(struct kube_api *api, const struct app_scope *app,
               void (*each)(void *arg, const struct keeper_mark *mark), void *arg, struct err *err);

#endif
