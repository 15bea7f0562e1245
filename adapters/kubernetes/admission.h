/* admission.h - steers the one pod that replaces an evicted one, by a mutating webhook on CREATE of
 * pods (interfaces.md 1.6, option I; why this one: replica.c). A wish says: the next pod of this
 * owner should go to that node. The answer adds the node as *preferred* affinity, and the mark of
 * the move as annotation. Every pod is admitted, with a wish or without; nothing ever waits for us.
 *
 * Who can reach the listener can use up a wish, if he knows the owner's uid: the move is then
 * missed, and told so. */
#ifndef REMAP_KUBERNETES_ADMISSION_H
#define REMAP_KUBERNETES_ADMISSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "model/base/buf.h"
#include "model/base/mem.h"

/* An AdmissionReview holds one or two objects of at most 1.5 MiB (etcd's limit). */
#define ADMISSION_MAX_BYTES ((size_t)4 << 20)
#define ADMISSION_PATH "/admission/pods"

struct wish {
    const char *space;     /* namespace */
    const char *owner_uid; /* of the ReplicaSet or StatefulSet that will make the pod */
    const char *node, *mark;
    int64_t until_ms; /* monotonic; a pod that comes later is another's */
};

struct wishes;
struct wishes *wishes_new(void);
void wishes_free(struct wishes *wishes);
AUTO_DEFINE(wishes)
/* Copies. One wish per mark: another replaces it. */
void wishes_add(struct wishes *wishes, const struct wish *wish);
void wishes_drop(struct wishes *wishes, const char *mark);
/* Pods that came since the start: asked about at all, and steered. */
int64_t wishes_asked(const struct wishes *wishes);
int64_t wishes_met(const struct wishes *wishes);

/* Answers an AdmissionReview (admission.k8s.io/v1): 200 and the review with its response, always
 * `allowed`; 400 and {"error":…} where it is none (the API server then goes on without us). A wish
 * is used up by the pod that it is put into, not by a dry run. */
unsigned admission_answer(struct wishes *wishes, const char *body, size_t size, int64_t now_ms,
                          struct buf *out);

#endif
