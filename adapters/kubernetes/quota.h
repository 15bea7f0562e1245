/* quota.h - what a namespace lets its pods take: ResourceQuota and LimitRange (interfaces.md 1.9 rule 7;
 * kubernetes/kubernetes:plugin/pkg/admission/{resourcequota,limitranger}). Pure. Inside
 * adapters/kubernetes. */
#ifndef REMAP_KUBERNETES_QUOTA_H
#define REMAP_KUBERNETES_QUOTA_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct quota_need {
    int64_t pods;                           /* so many of these at once */
    int64_t cpu_millis, mem_bytes;          /* requests of each */
    int64_t limit_cpu_millis, limit_mem_bytes; /* limits of each; 0: none */
};

/* Would `n` of `each` more than `used` be too much? Safe against overflow. */
bool quota_exceeds(int64_t used, int64_t each, int64_t n, int64_t cap);

/* NULL: it fits beside what is used. Else the name of the resource. One of a scope may not concern
 * these pods, so it counts as fitting; the server decides then. `quota`: the object. */
const char *quota_problem(const json_t *quota, const struct quota_need *need);

/* The limits of the containers of a pod's spec, in all. */
int64_t quota_limits(const json_t *pod_spec, const char *resource, int64_t per);

/* NULL: new pods of this spec are let in. Else what they break: "max cpu of a Container". Only what
 * is written in the spec is looked at; the rest gets defaults that fit. `range`: the object. */
const char *quota_range_problem(const json_t *range, const json_t *pod_spec, char *text,
                                size_t size);

#endif
