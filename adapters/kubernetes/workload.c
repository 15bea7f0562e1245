/* workload.c - Deployments and their like (interfaces.md 1.2, 1.7), and what else concerns their pods:
 * claims, volumes, budgets, autoscalers, Argo's Rollouts. */
#include "adapters/kubernetes/kube.h"

#include <stdlib.h>
#include <string.h>

#include "adapters/kubernetes/when.h"
#include "model/base/mem.h"

/* interfaces.md 1.7, steps 1, 3 and 4. */
static bool rolls(const json_t *object, const struct kube_workload *workload)
{
    const json_t *status = kube_get(object, "status");
    int64_t updated = kube_number(status, "updatedReplicas", 0);
    bool can = strcmp(workload->kind, "Deployment") == 0 ||
               strcmp(workload->kind, "StatefulSet") == 0;
    return can && status &&
           (kube_number(status, "observedGeneration", 0) < workload->generation ||
            updated < workload->replicas || kube_number(status, "replicas", 0) > updated);
}

int kube_workload_decode(const json_t *object, const char *kind, struct kube_workload *out,
                         struct err *err)
{
    struct kube_workload workload = {.kind = kind, .changed_ms = -1};
    if (kube_meta_decode(object, &workload.meta, err))
        return -1;
    const json_t *spec = kube_get(object, "spec");
    workload.replicas = kube_number(spec, "replicas", 1);
    workload.generation = kube_number(kube_get(object, "metadata"), "generation", 0);
    workload.paused = json_is_true(json_object_get(spec, "paused"));
    workload.rollout = rolls(object, &workload);
    *out = workload;
    return 0;
}

void kube_workload_wipe(void *item)
{
    struct kube_workload *workload = item;
    kube_meta_wipe(&workload->meta);
    free(workload->digest);
    free(workload->why);
    json_decref(workload->pin_terms);
    json_decref(workload->user_terms);
    json_decref(workload->pod_spec);
    free(workload->changed_by);
}

static bool has_text(const json_t *list, const char *text)
{
    size_t i;
    const json_t *item;
    json_array_foreach(list, i, item)
        if (json_is_string(item) && strcmp(json_string_value(item), text) == 0)
            return true;
    return false;
}

int kube_claim_decode(const json_t *object, struct kube_claim *out, struct err *err)
{
    const json_t *spec = kube_get(object, "spec"), *modes = kube_get(spec, "accessModes");
    *out = (struct kube_claim){0};
    if (kube_meta_decode(object, &out->meta, err))
        return -1;
    out->volume = mem_strdup(kube_text(spec, "volumeName"));
    out->shared = has_text(modes, "ReadWriteMany") || has_text(modes, "ReadOnlyMany");
    return 0;
}

void kube_claim_wipe(void *item)
{
    struct kube_claim *claim = item;
    kube_meta_wipe(&claim->meta);
    free(claim->volume);
}

int kube_volume_decode(const json_t *object, struct kube_volume *out, struct err *err)
{
    const json_t *spec = kube_get(object, "spec");
    const json_t *required = kube_path(spec, "nodeAffinity", "required");
    const json_t *terms = kube_get(required, "nodeSelectorTerms");
    *out = (struct kube_volume){0};
    if (kube_meta_decode(object, &out->meta, err))
        return -1;
    out->local = kube_get(spec, "local") || kube_get(spec, "hostPath");
    out->terms = terms ? json_deep_copy(terms) : NULL;
    return 0;
}

void kube_volume_wipe(void *item)
{
    struct kube_volume *volume = item;
    kube_meta_wipe(&volume->meta);
    json_decref(volume->terms);
}

int kube_budget_decode(const json_t *object, struct kube_budget *out, struct err *err)
{
    const json_t *selector = kube_path(object, "spec", "selector");
    *out = (struct kube_budget){0};
    if (kube_meta_decode(object, &out->meta, err))
        return -1;
    out->selector = selector ? json_deep_copy(selector) : NULL;
    out->allowed = kube_number(kube_get(object, "status"), "disruptionsAllowed", 0);
    return 0;
}

void kube_budget_wipe(void *item)
{
    struct kube_budget *budget = item;
    kube_meta_wipe(&budget->meta);
    json_decref(budget->selector);
}

int kube_scaler_decode(const json_t *object, struct kube_scaler *out, struct err *err)
{
    const json_t *target = kube_path(object, "spec", "scaleTargetRef");
    const json_t *status = kube_get(object, "status");
    *out = (struct kube_scaler){0};
    if (kube_meta_decode(object, &out->meta, err))
        return -1;
    out->kind = mem_strdup(kube_text(target, "kind"));
    out->target = mem_strdup(kube_text(target, "name"));
    out->current = kube_number(status, "currentReplicas", 0);
    out->desired = kube_number(status, "desiredReplicas", 0);
    out->max = kube_number(kube_get(object, "spec"), "maxReplicas", 0);
    out->scaled_ms = -1;
    if (kube_text(status, "lastScaleTime"))
        when_parse(kube_text(status, "lastScaleTime"), &out->scaled_ms);
    return 0;
}

void kube_scaler_wipe(void *item)
{
    struct kube_scaler *scaler = item;
    kube_meta_wipe(&scaler->meta);
    free(scaler->kind);
    free(scaler->target);
    free(scaler->samples);
}

#define MAX_SAMPLES 100 /* changes of scale that are remembered: one a minute of more than an hour */

void kube_scaler_follow(struct kube_scaler *scaler, struct kube_scaler *old, int64_t now_ms)
{
    int64_t replicas = scaler->desired > scaler->current ? scaler->desired : scaler->current;
    if (old) {
        scaler->samples = steal(old->samples);
        scaler->n_samples = old->n_samples;
        old->n_samples = 0;
    }
    if (scaler->n_samples && scaler->samples[scaler->n_samples - 1].replicas == replicas)
        return;
    if (scaler->n_samples == MAX_SAMPLES)
        memmove(scaler->samples, scaler->samples + 1,
                --scaler->n_samples * sizeof *scaler->samples);
    *ARRAY_PUSH(scaler->samples, scaler->n_samples) = (struct kube_sample){now_ms, replicas};
}

int64_t kube_scaler_peak(const struct kube_scaler *scaler, int64_t since_ms)
{
    int64_t peak = scaler->desired > scaler->current ? scaler->desired : scaler->current;
    for (size_t i = 0; i < scaler->n_samples; i++) {
        /* it was so until the next one */
        bool counts = i + 1 == scaler->n_samples || scaler->samples[i + 1].at_ms > since_ms;
        if (counts && scaler->samples[i].replicas > peak)
            peak = scaler->samples[i].replicas;
    }
    return peak;
}

int kube_space_rule_decode(const json_t *object, struct kube_space_rule *out, struct err *err)
{
    *out = (struct kube_space_rule){0};
    if (kube_meta_decode(object, &out->meta, err))
        return -1;
    out->object = json_pack("{s:O?,s:O?}", "spec", json_object_get(object, "spec"), "status",
                            json_object_get(object, "status"));
    return 0;
}

void kube_space_rule_wipe(void *item)
{
    struct kube_space_rule *rule = item;
    kube_meta_wipe(&rule->meta);
    json_decref(rule->object);
}

int kube_reference_decode(const json_t *object, struct kube_reference *out, struct err *err)
{
    const json_t *reference = kube_path(object, "spec", "workloadRef");
    *out = (struct kube_reference){0};
    if (kube_meta_decode(object, &out->meta, err))
        return -1;
    out->kind = mem_strdup(kube_text(reference, "kind"));
    out->target = mem_strdup(kube_text(reference, "name"));
    return 0;
}

void kube_reference_wipe(void *item)
{
    struct kube_reference *reference = item;
    kube_meta_wipe(&reference->meta);
    free(reference->kind);
    free(reference->target);
}
