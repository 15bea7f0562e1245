/* orchestrator.c - moves of whole workloads on a real Kubernetes (interfaces.md 1.5 to 1.9): a pin in
 * the pod template, the rollout that it starts, and the way back.
 *
 * What is known of a move is on the workload itself (mark.h), so that asking again after any crash
 * finds out what has happened. This process remembers only what the cluster cannot tell: that it has
 * put something back, or that its mark was there once. */
#include "adapters/kubernetes/orchestrator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/kubernetes/evict.h"
#include "adapters/kubernetes/keeper.h"
#include "adapters/kubernetes/kube.h"
#include "adapters/kubernetes/kubernetes.h"
#include "adapters/kubernetes/owners.h"
#include "adapters/kubernetes/rollout.h"
#include "adapters/kubernetes/scope.h"
#include "model/base/clock.h"
#include "model/base/json.h"

#define PODS_MS 1000 /* between two looks at the pods of a rollout: two lists each */
#define REVERT_MS (INT64_C(10) * 60 * 1000) /* rule 11: reverted within 10 min is a revert */

/* --- open and close --- */

static int read_choice(const struct source *source, const char *name, const char *no,
                       const char *yes, bool *out, struct err *err)
{
    const char *value = source_option(source, name, no);
    *out = strcmp(value, yes) == 0;
    return *out || strcmp(value, no) == 0
               ? 0
               : err_set(err, ERR_CONFIG, "source %s: %s must be %s or %s, not %s", source->name,
                         name, no, yes, value);
}

/* 0s is a duration here: no quiet at all. */
static int read_duration(const struct source *source, const char *name, const char *fallback,
                         int64_t *out, struct err *err)
{
    return duration_parse(source_option(source, name, fallback), out, err)
               ? err_prefix(err, "source %s: %s", source->name, name)
               : 0;
}

int orchestrator_read(const struct source *source, struct kube_orchestrator *o, struct err *err)
{
    struct conduct_options *c = &o->conduct;
    bool required;
    if (read_choice(source, "pin", "preferred", "required", &required, err) ||
        read_choice(source, "foreign_affinity", "offer", "merge", &c->merge_foreign, err) ||
        read_choice(source, "force_required", "false", "true", &c->force_required, err) ||
        read_choice(source, "any_pool", "false", "true", &c->any_pool, err) ||
        read_choice(source, "any_probe", "false", "true", &c->any_probe, err) ||
        read_duration(source, "soak", "1h", &c->soak_ms, err) ||
        read_duration(source, "scaling_quiet", "5m", &c->scaling_ms, err) ||
        read_duration(source, "min_node_age", "10m", &c->min_node_age_ms, err) ||
        read_duration(source, "unschedulable_after", "30s", &o->unschedulable_ms, err) ||
        read_duration(source, "unready_after", "10m", &o->unready_ms, err))
        return -1;
    o->kind = required ? PIN_REQUIRED : PIN_PREFERRED;
    return 0;
}

static void orchestrator_close(void *ctx)
{
    struct kube_orchestrator *o = ctx;
    if (!o)
        return;
    kube_api_close(o->api);
    for (size_t i = 0; i < o->n_memories; i++)
        free(o->memories[i].service);
    free(o->memories);
    world_forget(o);
    relief_forget(o);
    free(o);
}

static int orchestrator_open(const struct source *source, void **ctx, struct err *err)
{
    struct kube_orchestrator *o = mem_alloc(sizeof *o);
    if (orchestrator_read(source, o, err) || kube_api_open(source, &o->api, err)) {
        orchestrator_close(o);
        return -1;
    }
    *ctx = o;
    return 0;
}

static void orchestrator_attach(void *ctx, void *keeper)
{
    struct kube_orchestrator *o = ctx;
    kube_api_guard(o->api, kube_keeper_may_write, keeper);
}

struct pin_memory *orchestrator_memory(struct kube_orchestrator *o, const struct placement *p)
{
    for (size_t i = 0; i < o->n_memories; i++) {
        struct pin_memory *m = &o->memories[i];
        if (m->cycle == p->cycle && m->seq == p->seq && strcmp(m->service, p->service) == 0)
            return m;
    }
    struct pin_memory *m = ARRAY_PUSH(o->memories, o->n_memories);
    *m = (struct pin_memory){
        .cycle = p->cycle, .seq = p->seq, .service = mem_strdup(p->service), .stuck_ms = -1, .pods_ms = -1};
    return m;
}

/* --- marks --- */

/* Was it made for this move? A store that was lost begins its numbers anew, so hosts count too
 * where they are known. */
static bool is_mark_of(const struct mark *mark, const struct placement *p, const struct pin *pin)
{
    return mark && mark->cycle == p->cycle && mark->seq == p->seq &&
           (p->n_targets == 0 || mark_wants(mark, pin));
}

static void pin_of(const struct kube_orchestrator *o, const struct placement *p, struct pin *out)
{
    *out = (struct pin){.kind = o->kind};
    for (size_t i = 0; i < p->n_targets; i++)
        if (p->targets[i].count > 0)
            pin_add(out, p->targets[i].host, NULL, p->targets[i].count);
}

/* Who took the pin out: whoever has the list now, else the last to change the template since. */
static const char *reverter(const json_t *workload, const struct mark *mark, int64_t *at_ms)
{
    const owners_path leaf = {"spec",         "template", "spec", "affinity",
                              "nodeAffinity", pin_leaf_name(mark->pin.kind), NULL};
    const owners_path template = {"spec", "template", NULL};
    struct owner owner;
    *at_ms = clock_wall_ms();
    if (owners_of(workload, leaf, &owner) ||
        (owners_newest(workload, template, &owner) && owner.time_ms + 1000 >= mark->at_ms)) {
        *at_ms = owner.time_ms;
        return owner.manager;
    }
    return "an unknown manager";
}

/* Keeps in the annotation that the pin was taken out soon after it came, without a release: the
 * workload rests until an operator removes the annotation (rule 11). Best effort: without it the
 * missing pin alone says to keep off until the next release. */
static void note_revert(struct kube_orchestrator *o, const json_t *workload, struct mark *mark,
                        char *who, size_t size)
{
    int64_t at_ms;
    snprintf(who, size, "%s", reverter(workload, mark, &at_ms));
    AUTO_FREE char *template = mark_template(workload);
    if (mark->reverted || strcmp(template, mark->template) != 0 ||
        at_ms - mark->at_ms > REVERT_MS)
        return;
    mark->reverted = mem_strndup(who, 253);
    AUTO_PIN_FIELDS struct pin_fields now = pin_fields_of(workload);
    AUTO_FREE char *text = mark_encode(mark);
    struct err unsaid = ERR_INIT;
    (void)write_patch(o, workload, &now, text, NULL, &unsaid);
}

/* --- place --- */

/* The fields without a pin of ours that is there already, and what they were before the first. */
static struct pin_fields base_fields(const json_t *workload, const struct mark *mark,
                                     enum pin_kind kind)
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
    struct pin_fields base = base_fields(workload, old, pin->kind);
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

static int check_conduct(struct kube_orchestrator *o, const json_t *workload,
                         const struct mark *mark, struct pin *pin, struct err *err)
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

/* One try: 0 done, 1 somebody was faster, -1. */
static int place_once(struct kube_orchestrator *o, const struct placement *p, struct pin *pin,
                      char **saved, struct err *err)
{
    AUTO_JSON json_t *workload = NULL, *after = NULL;
    struct err odd = ERR_INIT; /* a mark that cannot be read is none */
    struct pin_memory *memory = orchestrator_memory(o, p);
    if (world_workload(o, p->service, false, &workload, err))
        return -1;
    AUTO(mark) struct mark *old = mark_of(workload, &odd);
    if (is_mark_of(old, p, pin)) {
        char who[254];
        if (mark_holds(old, workload)) {
            *saved = mark_encode(old);
            memory->placed = true;
            return 0;
        }
        note_revert(o, workload, old, who, sizeof who);
        return err_set(err, ERR_CONFLICT, "reverted by %s", who);
    }
    if (memory->placed)
        return err_set(err, ERR_CONFLICT, "another hand took the pin and its mark out");
    if (check_conduct(o, workload, old, pin, err))
        return -1;
    AUTO(mark) struct mark *mark = mark_new(workload, old, p, pin);
    AUTO_PIN_FIELDS struct pin_fields then =
        pin_put_in(&mark->original, pin->kind, mark->leaf, mark->constraint);
    if (pin_fields_equal(&mark->before, &then))
        return err_set(err, ERR_CONFLICT, "is pinned there already; its pods were placed elsewhere");
    AUTO_FREE char *text = mark_encode(mark);
    int rc = mark->patched || owners_patched(workload)
                 ? write_patch(o, workload, &then, text, &after, err)
                 : write_apply(o, workload, mark, &after, err);
    if (rc)
        return rc;
    memory->placed = true;
    memory->undone = false;
    *saved = steal(text);
    return 0;
}

static int place(void *ctx, const struct placement *p, char **saved, struct err *err)
{
    struct kube_orchestrator *o = ctx;
    *saved = NULL;
    if (p->instance)
        return err_set(err, ERR_REFUSED, "a pod template steers all replicas of %s, not one",
                       p->service);
    AUTO_PIN struct pin pin = {.kind = o->kind};
    pin_of(o, p, &pin);
    if (pin.n_hosts == 0)
        return err_set(err, ERR_REFUSED, "%s: no host to go to", p->service);
    for (int i = 0; i < WRITE_TRIES; i++) {
        int rc = place_once(o, p, &pin, saved, err);
        if (rc <= 0)
            return rc;
    }
    return err_set(err, ERR_CONFLICT, "%s changes faster than it can be written", p->service);
}

static void place_ahead(void *ctx, const struct placement *placements, size_t n)
{
    struct kube_orchestrator *o = ctx;
    AUTO_FREE const char **services = mem_array(n + 1, sizeof *services);
    AUTO_FREE struct pin *pins = mem_array(n + 1, sizeof *pins);
    kube_api_ahead_forget(o->api);
    for (size_t i = 0; i < n; i++) {
        services[i] = placements[i].service;
        pin_of(o, &placements[i], &pins[i]);
    }
    if (n > 1)
        world_moves_ahead(o, services, pins, n);
    for (size_t i = 0; i < n; i++)
        pin_wipe(&pins[i]);
}

/* --- settled --- */

static int settle_look(struct kube_orchestrator *o, const json_t *workload,
                       const struct mark *mark, bool recent, bool *disrupted,
                       struct settle_report *out, struct err *err)
{
    AUTO_JSON json_t *sets = NULL, *pods = NULL;
    if (world_pods(o, workload, recent, &sets, &pods, err))
        return -1;
    AUTO_JSON json_t *own = rollout_pods(workload, sets, pods);
    rollout_outcome(&mark->pin, own, false, out);
    *disrupted = rollout_disrupted(workload, sets, pods);
    return 0;
}

static int settle_by_pods(struct kube_orchestrator *o, const json_t *workload,
                          const struct mark *mark, struct pin_memory *memory,
                          struct settle_report *out, struct err *err)
{
    bool disrupted = false;
    if (settle_look(o, workload, mark, true, &disrupted, out, err))
        return -1;
    /* Pods that were seen where they were sent are there; of others there may be newer news. */
    if (out->state != SETTLE_APPLIED && settle_look(o, workload, mark, false, &disrupted, out, err))
        return -1;
    memory->applied |= out->state == SETTLE_APPLIED;
    if (out->state != SETTLE_APPLIED &&
        (memory->applied || disrupted || world_targets_taken(o, &mark->pin)))
        out->state = SETTLE_DISPLACED;
    return 0;
}

/* For how long now? Long enough, and the move has failed. */
static void settle_stands(const struct kube_orchestrator *o, struct pin_memory *memory,
                          struct settle_report *out)
{
    int64_t now = clock_mono_ms();
    memory->stuck_ms = memory->stuck_ms < 0 ? now : memory->stuck_ms;
    if (now - memory->stuck_ms >= o->unschedulable_ms)
        out->state = SETTLE_FAILED;
}

/* A pod that nobody takes, or that may not even be made: an early sign, unless room is just being
 * made. */
static int settle_stuck(struct kube_orchestrator *o, const json_t *workload,
                        struct pin_memory *memory, struct settle_report *out, struct err *err)
{
    AUTO_JSON json_t *sets = NULL, *pods = NULL;
    const char *message = NULL;
    int64_t now = clock_mono_ms();
    const char *refused = rollout_refused(workload);
    if (refused) {
        settle_stands(o, memory, out);
        snprintf(out->detail, sizeof out->detail, "no pod is made: %s", refused);
        return 0;
    }
    memory->pods_ms = memory->pods_ms < 0 ? now + PODS_MS : memory->pods_ms;
    if (now < memory->pods_ms)
        return 0;
    memory->pods_ms = now + PODS_MS;
    if (world_pods(o, workload, true, &sets, &pods, err))
        return -1;
    AUTO_JSON json_t *own = rollout_pods(workload, sets, pods);
    const char *pod = rollout_unschedulable(own, &message);
    if (!pod) {
        memory->stuck_ms = -1;
        return 0;
    }
    settle_stands(o, memory, out);
    snprintf(out->detail, sizeof out->detail, "%.60s finds no node: %s", pod, message);
    return 0;
}

static int settle_marked(struct kube_orchestrator *o, const json_t *workload, struct mark *mark,
                         struct pin_memory *memory, struct settle_report *out, struct err *err)
{
    char who[150];
    memory->placed = true;
    if (!mark_holds(mark, workload)) {
        note_revert(o, workload, mark, who, sizeof who);
        out->state = SETTLE_MISSED;
        snprintf(out->detail, sizeof out->detail, "reverted by %s", who);
        return 0;
    }
    switch (rollout_state(workload, out->detail, sizeof out->detail)) {
    case ROLLOUT_DONE:
        return settle_by_pods(o, workload, mark, memory, out, err);
    case ROLLOUT_FAILED:
        out->state = SETTLE_FAILED;
        return 0;
    case ROLLOUT_WAITING:
        return settle_stuck(o, workload, memory, out, err);
    }
    return 0;
}

/* Is our rollout still on its way, by what the server had in its cache, or at its end with all pods where
 * they were sent? Most looks end here; whatever else it shows is read anew. */
static bool is_clear(struct kube_orchestrator *o, const struct placement *p,
                     struct pin_memory *memory, struct settle_report *out)
{
    bool disrupted;
    AUTO_JSON json_t *workload = NULL;
    struct err odd = ERR_INIT;
    AUTO_PIN struct pin pin = {.kind = o->kind};
    if (memory->undone || world_workload(o, p->service, true, &workload, &odd))
        return false;
    pin_of(o, p, &pin);
    AUTO(mark) struct mark *mark = mark_of(workload, &odd);
    if (!is_mark_of(mark, p, &pin) || !mark_holds(mark, workload))
        return false;
    memory->placed = true;
    switch (rollout_state(workload, out->detail, sizeof out->detail)) {
    case ROLLOUT_WAITING:
        return settle_stuck(o, workload, memory, out, &odd) == 0;
    case ROLLOUT_DONE:
        world_pods_ahead(o, workload, true);
        if (settle_look(o, workload, mark, true, &disrupted, out, &odd) ||
            out->state != SETTLE_APPLIED)
            return false;
        memory->applied = true;
        return true;
    case ROLLOUT_FAILED:
        return false;
    }
    return false;
}

/* A StatefulSet goes back only when the pod that cannot get ready has gone; its template's own revision
 * comes in its place. */
static void settle_unblock(struct kube_orchestrator *o, const json_t *workload,
                           struct settle_report *out)
{
    AUTO_JSON json_t *sets = NULL, *pods = NULL;
    struct kube_status status;
    struct err why = ERR_INIT;
    const char *kind = kube_text(workload, "kind");
    if (!kind || strcmp(kind, "StatefulSet") != 0 ||
        world_pods(o, workload, false, &sets, &pods, &why))
        return;
    AUTO_JSON json_t *own = rollout_pods(workload, sets, pods);
    const json_t *pod = rollout_blocking(workload, own);
    if (!pod || kube_evict(o->api, pod, &status, &why) == 0)
        return;
    snprintf(out->detail, sizeof out->detail, "%.60s, which cannot get ready, %s",
             kube_text(kube_get(pod, "metadata"), "name"),
             status.code == 403 ? "is in the way: delete it (we may not evict it)"
                                : "is in the way and cannot be evicted yet");
}

static int settle(struct kube_orchestrator *o, const struct placement *p, struct settle_report *out,
                  struct err *err)
{
    struct pin_memory *memory = orchestrator_memory(o, p);
    AUTO_JSON json_t *workload = NULL;
    struct err odd = ERR_INIT;
    AUTO_PIN struct pin pin = {.kind = o->kind};
    *out = (struct settle_report){.state = SETTLE_WAITING};
    if (is_clear(o, p, memory, out))
        return 0;
    *out = (struct settle_report){.state = SETTLE_WAITING};
    if (world_workload(o, p->service, false, &workload, err)) {
        if (err->kind != ERR_NOT_FOUND)
            return -1;
        out->state = memory->undone ? SETTLE_APPLIED : SETTLE_MISSED;
        snprintf(out->detail, sizeof out->detail, "%.199s", err->text);
        *err = (struct err)ERR_INIT;
        return 0;
    }
    pin_of(o, p, &pin);
    AUTO(mark) struct mark *mark = mark_of(workload, &odd);
    if (memory->undone) { /* back is where the template says, wherever the scheduler puts the pods */
        if (rollout_state(workload, out->detail, sizeof out->detail) == ROLLOUT_DONE)
            out->state = SETTLE_APPLIED;
        else
            settle_unblock(o, workload, out);
        return 0;
    }
    if (is_mark_of(mark, p, &pin))
        return settle_marked(o, workload, mark, memory, out, err);
    if (memory->placed) {
        out->state = SETTLE_MISSED;
        snprintf(out->detail, sizeof out->detail, "another hand took the pin and its mark out");
    }
    return 0;
}

static int settled(void *ctx, const struct placement *p, struct settle_report *out, struct err *err)
{
    struct kube_orchestrator *o = ctx;
    int rc = settle(o, p, out, err);
    kube_api_ahead_end(o->api);
    return rc;
}

/* --- undo --- */

/* What is to be put back: the mark that the workload bears or, where somebody has removed it, the
 * one that was saved. NULL: nothing of this move is there. */
static struct mark *mark_to_undo(const json_t *workload, const struct placement *p,
                                 const char *saved, bool *moved_again, int64_t *again)
{
    const struct pin any = {.kind = PIN_PREFERRED};
    struct placement all = *p;
    struct err odd = ERR_INIT;
    all.n_targets = 0; /* an undo is told without targets */
    AUTO(mark) struct mark *mark = mark_of(workload, &odd);
    if (is_mark_of(mark, &all, &any))
        return steal(mark);
    *moved_again = mark != NULL && mark_holds(mark, workload);
    *again = mark ? mark->cycle : 0;
    AUTO(mark) struct mark *kept = saved && !mark ? mark_decode(saved, &odd) : NULL;
    const char *uid = kube_text(kube_get(workload, "metadata"), "uid");
    if (kept && uid && strcmp(kept->uid, uid) == 0 && mark_holds(kept, workload))
        return steal(kept);
    return NULL;
}

/* The saved value where nobody has changed anything since; else only our own part is taken out. */
static bool undone_fields(const struct mark *mark, const struct pin_fields *now,
                          struct pin_fields *out)
{
    AUTO_PIN_FIELDS struct pin_fields left =
        pin_put_in(&mark->original, mark->pin.kind, mark->leaf, mark->constraint);
    if (!pin_fields_equal(now, &left))
        return pin_take_out(now, mark->pin.kind, mark->leaf, mark->constraint, &mark->before, out);
    *out = (struct pin_fields){json_incref(mark->before.affinity), json_incref(mark->before.spread)};
    return true;
}

static int undo_once(struct kube_orchestrator *o, const struct placement *p, const char *saved,
                     struct err *err)
{
    AUTO_JSON json_t *workload = NULL;
    bool moved_again = false;
    int64_t cycle = 0;
    if (world_workload(o, p->service, false, &workload, err))
        return -1;
    AUTO(mark) struct mark *mark = mark_to_undo(workload, p, saved, &moved_again, &cycle);
    if (!mark && moved_again)
        return err_set(err, ERR_REFUSED, "%s was moved again by cycle %lld since", p->service,
                       (long long)cycle);
    if (!mark)
        return 0;
    AUTO_PIN_FIELDS struct pin_fields now = pin_fields_of(workload);
    AUTO_PIN_FIELDS struct pin_fields then = {NULL, NULL};
    if (!undone_fields(mark, &now, &then)) {
        char who[150];
        note_revert(o, workload, mark, who, sizeof who);
        return 0; /* another hand has put it back already */
    }
    AUTO_FREE char *previous = mark_previous(mark);
    return write_patch(o, workload, &then, previous, NULL, err);
}

static int undo(void *ctx, const struct placement *p, const char *saved, struct err *err)
{
    struct kube_orchestrator *o = ctx;
    for (int i = 0; i < WRITE_TRIES; i++) {
        int rc = undo_once(o, p, saved, err);
        bool gone = rc < 0 && err->kind == ERR_NOT_FOUND; /* and its pin with it */
        if (gone)
            *err = (struct err)ERR_INIT;
        if (rc == 0 || gone) {
            orchestrator_memory(o, p)->undone = true;
            return 0;
        }
        if (rc < 0)
            return -1;
    }
    return err_set(err, ERR_UNREACHABLE, "%s changes faster than it can be written", p->service);
}

/* --- release --- */

/* The fields without any pin of ours, and whether there is anything to take off at all. */
static bool released_fields(const json_t *workload, const struct mark *mark,
                            struct pin_fields *out)
{
    AUTO_PIN_FIELDS struct pin_fields now = pin_fields_of(workload);
    *out = base_fields(workload, mark, PIN_PREFERRED);
    if (pin_fields_equal(&now, out)) {
        pin_fields_wipe(out);
        *out = base_fields(workload, mark, PIN_REQUIRED);
    }
    return mark || !pin_fields_equal(&now, out);
}

static int release_once(struct kube_orchestrator *o, const json_t *workload, bool dry_run,
                        int64_t *restarts, struct err *err)
{
    struct err odd = ERR_INIT;
    AUTO(mark) struct mark *mark = mark_of(workload, &odd);
    AUTO_PIN_FIELDS struct pin_fields now = pin_fields_of(workload), then = {NULL, NULL};
    if (!released_fields(workload, mark, &then))
        return 0;
    bool rolls = !pin_fields_equal(&now, &then);
    int64_t count = rolls ? rollout_replicas(workload) : 0;
    if (!dry_run && count > 0 && check_conduct(o, workload, mark, NULL, err))
        return err_prefix(err, "%s", kube_text(kube_get(workload, "metadata"), "name"));
    int rc = dry_run ? 0 : write_patch(o, workload, &then, NULL, NULL, err);
    if (rc == 0)
        *restarts += count;
    return rc;
}

static int release_service(struct kube_orchestrator *o, const char *service, bool dry_run,
                           int64_t *restarts, struct err *err)
{
    for (int i = 0; i < WRITE_TRIES; i++) {
        AUTO_JSON json_t *workload = NULL;
        if (world_workload(o, service, false, &workload, err))
            return -1;
        int rc = release_once(o, workload, dry_run, restarts, err);
        if (rc <= 0)
            return rc;
    }
    return err_set(err, ERR_CONFLICT, "%s changes faster than it can be written", service);
}

static int release_kind(struct kube_orchestrator *o, const struct app_scope *app,
                        const char *plural, const char *kind, bool dry_run, int64_t *restarts,
                        struct err *err)
{
    AUTO_FREE char *path = kube_api_path("apps/v1", NULL, plural, NULL);
    AUTO_JSON json_t *items = world_items(o, path, false, err);
    size_t i;
    const json_t *item;
    if (!items)
        return -1;
    json_array_foreach(items, i, item)
    {
        const char *space = kube_text(kube_get(item, "metadata"), "namespace");
        const char *name = kube_text(kube_get(item, "metadata"), "name");
        AUTO_FREE char *service = mem_printf("%s/%s", space, name);
        AUTO_FREE char *full = mem_printf("%s/%s/%s", space, kind, name);
        if (scope_has_space(app, space) && scope_has_service(app, service) &&
            release_service(o, full, dry_run, restarts, err))
            return -1;
    }
    return 0;
}

static int release(void *ctx, const struct app_scope *app, const char *service, bool dry_run,
                   int64_t *restarts, struct err *err)
{
    struct kube_orchestrator *o = ctx;
    *restarts = 0;
    if (service)
        return release_service(o, service, dry_run, restarts, err);
    if (release_kind(o, app, "deployments", "Deployment", dry_run, restarts, err))
        return -1;
    return release_kind(o, app, "statefulsets", "StatefulSet", dry_run, restarts, err);
}

const struct orchestrator kubernetes_orchestrator = {
    .name = "kubernetes",
    .summary = "pins workloads to nodes by the affinity of their pod templates",
    .options = kubernetes_options,
    .granularity = PER_SERVICE,
    .start_first = true,
    .marks = true,
    .open = orchestrator_open,
    .ahead = place_ahead,
    .place = place,
    .settled = settled,
    .undo = undo,
    .release = release,
    .relieve = relief_run,
    .close = orchestrator_close,
    .keeper = &kubernetes_keeper,
    .attach = orchestrator_attach,
};
