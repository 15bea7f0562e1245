/* objects.h - Kubernetes API objects into the model (interfaces.md 1.2, 1.9): nodes are hosts,
 * workloads are services "namespace/name", pods are instances "namespace/pod". The objects come
 * from the API or from `kubectl get … -o json`. */
#ifndef REMAP_KUBERNETES_OBJECTS_H
#define REMAP_KUBERNETES_OBJECTS_H

#include <jansson.h>
#include "adapters/adapter.h"

struct kube_objects;

struct kube_objects *kube_objects_new(void);
void kube_objects_free(struct kube_objects *objects);
AUTO_DEFINE(kube_objects)

/* Takes in an object, or each item of a list ("List", "PodList", …: items of the latter carry no
 * kind of their own). Kinds used: Node, Pod, Deployment, ReplicaSet, StatefulSet, DaemonSet,
 * PersistentVolumeClaim; others are ignored. Keeps nothing of the tree. ERR_INPUT names object and
 * field. */
int kube_objects_add(struct kube_objects *objects, const json_t *object, struct err *err);

/* Fills hosts, services, instances and rules of the part that is in scope (app NULL: everything);
 * pods outside of it, and those that are ending, count as foreign use of their hosts. Pod and host
 * addresses go to in->identity where there is one. Notes tell what did not fit. */
int kube_objects_model(struct kube_objects *objects, const struct app_scope *app,
                       struct inspection *in, struct err *err);

#endif
