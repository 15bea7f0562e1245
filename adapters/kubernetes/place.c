/* place.c - struct orchestrator's place(): a pin into a pod template, behind the rules of interfaces.md 1.9
 * and with its mark (mark.h), one at a time or several at once. */
#include "adapters/kubernetes/orchestrator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/kubernetes/keeper.h"
#include "adapters/kubernetes/kube.h"
#include "adapters/kubernetes/owners.h"
#include "adapters/kubernetes/rollout.h"
#include "model/base/clock.h"
#include "model/base/json.h"

struct pin_fields place_base(const json_t *workload, const struct mark *mark, enum pin_kind kind)
{
    AUTO_PIN_FIELDS struct pin_fields now = pin_fields_of(workload);
    const owners_path leaf = {"spec",         "template", "spec", "affinity",
                              "nodeAffinity", pin_leaf_name(kind), NULL};
    const struct pin_fields nothing = {NULL, NULL};
    struct owner owner;
    struct pin_fields base = {NULL, NULL};
    if (mark && pin_take_out(&now, mark->pin.kind, mark->leaf, mark->constraint, &mark->original,
                             &base))
        return base;
    if (owners_own(workload, leaf) && !owners_of(workload, leaf, &owner) &&
        pin_take_out(&now, kind, pin_leaf_get(now.affinity, kind), NULL, &nothing, &base))
        return base; /* ours, but somebody removed the annotation */
    base = now;
    now = nothing;
    return base;
}

static json_t *previous_of(const struct mark *mark)
{
    if (!mark)
        return NULL;
    AUTO_FREE char *text = mark_encode(mark);
    struct err err = ERR_INIT;
    json_t *tree = json_parse(text, strlen(text), &json_limits_document, &err);
    json_object_set_new(tree, "previous", json_null());
    return tree;
}

/* The mark and values of a new pin; what the workload bears is `old`. */
static struct mark *mark_new(const json_t *workload, const struct mark *old,
                             const struct placement *p, const struct pin *pin)
{
    struct mark *mark = mem_alloc(sizeof *mark);
    bool holds = old && mark_holds(old, workload);
    struct pin_fields base = place_base(workload, old, pin->kind);
    json_t *users = pin_leaf_get(base.affinity, pin->kind);
    *mark = (struct mark){
        .uid = mem_strdup(kube_text(kube_get(workload, "metadata"), "uid")),
        .cycle = p->cycle,
        .seq = p->seq,
        .at_ms = clock_wall_ms(),
        .pin = {.kind = pin->kind},
        .patched = users != NULL,
        .leaf = pin_leaf_new(pin, users),
        .constraint = pin_spread_new(pin, workload, base.spread),
        .before = pin_fields_of(workload),
        .original = base,
        .template = mark_template(workload),
        .previous = holds ? previous_of(old) : NULL,
    };
    for (size_t i = 0; i < pin->n_hosts; i++)
        pin_add(&mark->pin, pin->hosts[i].node, pin->hosts[i].hostname, pin->hosts[i].count);
    return mark;
}

/* Pods that leave and hold room till they are gone. */
static bool has_ending(const json_t *pods)
{
    size_t i;
    const json_t *pod;
    json_array_foreach(pods, i, pod)
        if (kube_path(pod, "metadata", "deletionTimestamp"))
            return true;
    return false;
}

int place_check(struct kube_orchestrator *o, const json_t *workload, const struct mark *mark,
                struct pin *pin, struct err *err)
{
    AUTO_WORLD struct world w = {0};
    char why[300];
    if (world_read(o, workload, pin, &w, err))
        return -1;
    struct conduct c = {.workload = workload,
                        .mark = mark,
                        .pin = pin,
                        .pods = w.own,
                        .budgets = w.budgets,
                        .quotas = w.quotas,
                        .autoscalers = w.autoscalers,
                        .services = w.services,
                        .rollouts = w.rollouts,
                        .claims = w.claims,
                        .targets = w.targets,
                        .sources = w.sources,
                        .target_pods = w.target_pods,
                        .scaler = o->scaler,
                        .now_ms = clock_wall_ms(),
                        .options = o->conduct};
    const char *rule = conduct_problem(&c, why, sizeof why);
    if (rule && strcmp(rule, "rollout") == 0 && !rollout_seen(workload))
        return err_set(err, ERR_TIMEOUT, "%s", why); /* ask again */
    if (rule && strcmp(rule, "room") == 0 && has_ending(w.target_pods))
        return err_set(err, ERR_TIMEOUT, "%s, as long as pods there leave", why); /* ask again */
    return rule ? err_set(err, ERR_CONFLICT, "%s", why) : 0;
}

/* It has the pin now. */
static void place_done(struct kube_orchestrator *o, const struct placement *p,
                       const json_t *workload)
{
    struct pin_memory *memory = orchestrator_memory(o, p);
    memory->placed = true;
    memory->undone = false;
    if (o->keeper)
        kube_keeper_knows(o->keeper, p->service, workload);
}

/* One try: 0 done, 1 somebody was faster, -1. With `later` only begun, unless *later stays NULL. */
static int place_once(struct kube_orchestrator *o, const struct placement *p, struct pin *pin,
                      char **saved, struct pin_sent *later, struct err *err)
{
    AUTO_JSON json_t *workload = NULL;
    struct err odd = ERR_INIT; /* a mark that cannot be read is none */
    struct pin_memory *memory = orchestrator_memory(o, p);
    if (world_workload(o, p->service, false, &workload, err))
        return -1;
    AUTO(mark) struct mark *old = mark_of(workload, &odd);
    if (orchestrator_marked(old, p, pin)) {
        char who[254];
        if (mark_holds(old, workload)) {
            *saved = mark_encode(old);
            memory->placed = true;
            return 0;
        }
        orchestrator_note_revert(o, workload, old, who, sizeof who);
        return err_set(err, ERR_CONFLICT, "reverted by %s", who);
    }
    if (memory->placed)
        return err_set(err, ERR_CONFLICT, "another hand took the pin and its mark out");
    if (place_check(o, workload, old, pin, err))
        return -1;
    AUTO(mark) struct mark *mark = mark_new(workload, old, p, pin);
    AUTO_PIN_FIELDS struct pin_fields then =
        pin_put_in(&mark->original, pin->kind, mark->leaf, mark->constraint);
    if (pin_fields_equal(&mark->before, &then))
        return err_set(err, ERR_CONFLICT, "is pinned there already; its pods were placed elsewhere");
    AUTO_FREE char *text = mark_encode(mark);
    int rc = mark->patched || owners_patched(workload)
                 ? write_patch(o, workload, &then, text, true, later ? &later->write : NULL, err)
                 : write_apply(o, workload, mark, later ? &later->write : NULL, err);
    if (rc)
        return rc;
    if (later)
        later->workload = json_incref(workload);
    else
        place_done(o, p, workload);
    *saved = steal(text);
    return 0;
}

/* --- several at once --- */

static void sent_wipe(struct pin_sent *sent)
{
    free(sent->service);
    free(sent->saved);
    json_decref(sent->workload);
}

void place_forget(struct kube_orchestrator *o)
{
    for (size_t i = 0; i < o->n_sent; i++) { /* nobody asked what became of it; its mark tells */
        struct err unheard = ERR_INIT;
        (void)write_end(o, o->sent[i].write, &unheard);
        sent_wipe(&o->sent[i]);
    }
    free(o->sent);
}

void place_all(void *ctx, const struct placement *placements, size_t n, bool *begun)
{
    struct kube_orchestrator *o = ctx;
    for (size_t i = 0; i < n; i++) {
        const struct placement *p = &placements[i];
        struct err later = ERR_INIT; /* place() meets it again */
        AUTO_PIN struct pin pin = {.kind = o->kind};
        struct pin_sent sent = {.cycle = p->cycle, .seq = p->seq};
        orchestrator_pin(o, p, &pin);
        if (p->instance || pin.n_hosts == 0 ||
            place_once(o, p, &pin, &sent.saved, &sent, &later) || !sent.write) {
            sent_wipe(&sent);
            continue;
        }
        begun[i] = true;
        sent.service = mem_strdup(p->service);
        *ARRAY_PUSH(o->sent, o->n_sent) = sent;
    }
    kube_api_sends_start(o->api);
}

/* What became of a pin that place_all() has sent: as place_once(), or 1 where there is none. */
static int place_sent(struct kube_orchestrator *o, const struct placement *p, char **saved,
                      struct err *err)
{
    for (size_t i = 0; i < o->n_sent; i++) {
        struct pin_sent sent = o->sent[i];
        if (sent.cycle != p->cycle || sent.seq != p->seq || strcmp(sent.service, p->service) != 0)
            continue;
        o->sent[i] = o->sent[--o->n_sent];
        int rc = write_end(o, sent.write, err);
        if (rc == 0) {
            place_done(o, p, sent.workload);
            *saved = steal(sent.saved);
        }
        sent_wipe(&sent);
        return rc;
    }
    return 1;
}

int place_run(void *ctx, const struct placement *p, char **saved, struct err *err)
{
    struct kube_orchestrator *o = ctx;
    *saved = NULL;
    if (p->instance)
        return err_set(err, ERR_REFUSED, "a pod template steers all replicas of %s, not one",
                       p->service);
    AUTO_PIN struct pin pin = {.kind = o->kind};
    orchestrator_pin(o, p, &pin);
    if (pin.n_hosts == 0)
        return err_set(err, ERR_REFUSED, "%s: no host to go to", p->service);
    int rc = place_sent(o, p, saved, err);
    for (int i = 0; rc > 0 && i < WRITE_TRIES; i++)
        rc = place_once(o, p, &pin, saved, NULL, err);
    return rc > 0 ? err_set(err, ERR_CONFLICT, "%s changes faster than it can be written",
                            p->service)
                  : rc;
}

void place_ahead(void *ctx, const struct placement *placements, size_t n)
{
    struct kube_orchestrator *o = ctx;
    AUTO_FREE const char **services = mem_array(n + 1, sizeof *services);
    AUTO_FREE struct pin *pins = mem_array(n + 1, sizeof *pins);
    if (n == 0) /* what was read for those told before may not be used yet: they are sent together */
        kube_api_ahead_forget(o->api);
    for (size_t i = 0; i < n; i++) {
        services[i] = placements[i].service;
        orchestrator_pin(o, &placements[i], &pins[i]);
    }
    if (n > 1)
        world_moves_ahead(o, services, pins, n);
    for (size_t i = 0; i < n; i++)
        pin_wipe(&pins[i]);
}
