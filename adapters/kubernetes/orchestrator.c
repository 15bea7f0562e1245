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

#include "adapters/kubernetes/keeper.h"
#include "adapters/kubernetes/kube.h"
#include "adapters/kubernetes/kubernetes.h"
#include "adapters/kubernetes/owners.h"
#include "adapters/kubernetes/rollout.h"
#include "adapters/kubernetes/scope.h"
#include "model/base/clock.h"
#include "model/base/json.h"

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
    place_forget(o);
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
    o->keeper = keeper;
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

bool orchestrator_marked(const struct mark *mark, const struct placement *p, const struct pin *pin)
{
    return mark && mark->cycle == p->cycle && mark->seq == p->seq &&
           (p->n_targets == 0 || mark_wants(mark, pin));
}

void orchestrator_pin(const struct kube_orchestrator *o, const struct placement *p, struct pin *out)
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

void orchestrator_note_revert(struct kube_orchestrator *o, const json_t *workload, struct mark *mark,
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
    (void)write_patch(o, workload, &now, text, false, NULL, &unsaid);
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
    if (orchestrator_marked(mark, &all, &any))
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
        orchestrator_note_revert(o, workload, mark, who, sizeof who);
        return 0; /* another hand has put it back already */
    }
    AUTO_FREE char *previous = mark_previous(mark);
    return write_patch(o, workload, &then, previous, false, NULL, err);
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
    *out = place_base(workload, mark, PIN_PREFERRED);
    if (pin_fields_equal(&now, out)) {
        pin_fields_wipe(out);
        *out = place_base(workload, mark, PIN_REQUIRED);
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
    if (!dry_run && count > 0 && place_check(o, workload, mark, NULL, err))
        return err_prefix(err, "%s", kube_text(kube_get(workload, "metadata"), "name"));
    int rc = dry_run ? 0 : write_patch(o, workload, &then, NULL, false, NULL, err);
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
    .place = place_run,
    .place_all = place_all,
    .look_ahead = settle_ahead,
    .settled = settle_run,
    .undo = undo,
    .release = release,
    .relieve = relief_run,
    .close = orchestrator_close,
    .keeper = &kubernetes_keeper,
    .attach = orchestrator_attach,
};
