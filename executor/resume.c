/* resume.c - moves are known by (cycle, seq), not by names, which change (design.md 3, "executor
 * mid-plan"): marks decide where there are any, else the service's replicas per host. */
#include "executor/resume.h"

#include <string.h>

static bool report_is_final(enum settle_state report)
{
    switch (report) {
    case SETTLE_APPLIED:
    case SETTLE_MISSED:
    case SETTLE_DISPLACED:
    case SETTLE_FAILED:
        return true;
    case SETTLE_WAITING:
    case SETTLE_PARTIAL:
        return false;
    }
    return false;
}

enum resume resume_instance(const struct resume_facts *f)
{
    if (f->marks && report_is_final(f->report)) {
        return RESUME_SETTLED;
    }
    bool arrived = f->target_now > f->target_before;
    if (f->on_source) {
        /* With marks asking twice is harmless. Without, one that has started beside the old one
         * (start first) must not be joined by another. */
        return !f->marks && arrived ? RESUME_WAIT : RESUME_ASK;
    }
    if (arrived) {
        /* With marks the object is still getting ready, else the report would say applied. */
        return f->marks ? RESUME_WAIT : RESUME_APPLIED;
    }
    /* Stop first: the old one has left, the new one has no host yet. */
    return f->unplaced_now > f->unplaced_before ? RESUME_WAIT : RESUME_GONE;
}

static int64_t count_on(const struct model *model, int service, int host)
{
    int64_t n = 0;
    for (size_t i = 0; i < model->n_instances; i++) {
        n += model->instances[i].service == service && model->instances[i].host == host;
    }
    return n;
}

enum resume resume_service(bool marks, enum settle_state report, const struct model *model,
                           int service, const struct replica_count *targets, size_t n_targets)
{
    if (service < 0) {
        return RESUME_GONE;
    }
    if (marks && report_is_final(report)) {
        return RESUME_SETTLED;
    }
    for (size_t i = 0; i < n_targets; i++) {
        int host = model_host(model, targets[i].host);
        if (host < 0 || count_on(model, service, host) != targets[i].count) {
            return RESUME_ASK;
        }
    }
    return RESUME_APPLIED;
}

void resume_count(struct resume_facts *facts, const struct intent *intent,
                  const struct model *model)
{
    int service = model_service(model, intent->service);
    int source = intent->source ? model_host(model, intent->source) : -1;
    int target = intent->target ? model_host(model, intent->target) : -1;
    facts->source_before = intent->source ? intent_count_on(intent, intent->source) : 0;
    facts->target_before = intent->target ? intent_count_on(intent, intent->target) : 0;
    facts->source_now = source >= 0 ? count_on(model, service, source) : 0;
    facts->target_now = target >= 0 ? count_on(model, service, target) : 0;
    facts->unplaced_before = intent->source ? 0 : 1;
    facts->unplaced_now = count_on(model, service, -1);
}

static bool counts_are_back(const struct intent *intent, const struct model *model, int service)
{
    for (size_t h = 0; h < model->n_hosts; h++) {
        if (count_on(model, service, (int)h) != intent_count_on(intent, model->hosts[h].name)) {
            return false;
        }
    }
    return true;
}

bool resume_is_back(const struct intent *intent, const struct model *model)
{
    struct resume_facts f = {0};
    resume_count(&f, intent, model);
    int service = model_service(model, intent->service);
    int source = intent->source ? model_host(model, intent->source) : -1;
    for (size_t i = 0; i < model->n_instances; i++) {
        const struct instance *x = &model->instances[i];
        if (x->service == service && x->pinned_why && (x->host == source || !intent->instance)) {
            return false; /* starting, or about to be replaced */
        }
    }
    if (!intent->instance) {
        return counts_are_back(intent, model, service);
    }
    return f.source_now >= f.source_before && f.target_now <= f.target_before;
}
