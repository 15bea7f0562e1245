/* scripted_cluster.c - see scripted_cluster.h. */
#include "tests/support/scripted_cluster.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/adapter.h"
#include "executor/execute.h"
#include "executor/keep.h"
#include "model/base/clock.h"
#include "model/model_json.h"

static struct scripted *world; /* adapters get no context of ours but this */

int64_t __wrap_clock_mono_ms(void);
int64_t __real_clock_mono_ms(void);

int64_t __wrap_clock_mono_ms(void)
{
    if (world && !world->cluster) {
        return world->now_ms;
    }
    if (world && world->dead) { /* the dead wait for nothing: each look finds an hour gone */
        world->now_ms += INT64_C(3600) * 1000;
    }
    return __real_clock_mono_ms() + (world ? world->now_ms : 0);
}

/* The wall's time is nobody's to trust: with wall_jumps it goes back and forth within some ms. */
int64_t __wrap_clock_wall_ms(void);
int64_t __real_clock_wall_ms(void);

int64_t __wrap_clock_wall_ms(void)
{
    if (!world || world->cluster) {
        return __real_clock_wall_ms();
    }
    return INT64_C(1700000000000) + (world->wall_jumps ? rng_int(&world->wall, 0, 5) : world->now_ms);
}

/* --- life and death --- */

/* Every call from the executor; false when it is dead. Dying after the effect of one call is dying
 * before the next. */
static bool alive(void)
{
    if (world->dead) {
        return false;
    }
    if (world->calls_left == 0) {
        world->dead = true;
        return false;
    }
    if (world->calls_left > 0) {
        world->calls_left--;
    }
    return true;
}

bool scripted_alive(void)
{
    return !world || alive();
}

static int gone(struct err *err)
{
    return err_set(err, ERR_REFUSED, "dead");
}

/* --- replicas --- */

static struct scripted_replica *replica_add(int service, int host, int64_t ready_ms)
{
    struct scripted_replica *r = ARRAY_PUSH(world->replicas, world->n_replicas);
    *r = (struct scripted_replica){
        .service = service, .host = host, .ready_ms = ready_ms, .replaces = -1};
    snprintf(r->name, sizeof r->name, "%.40s-r%" PRId64, world->model->services[service].name,
             ++world->last_name);
    return r;
}

static int replica_find(const char *name)
{
    for (size_t i = 0; i < world->n_replicas; i++) {
        if (!world->replicas[i].ended && strcmp(world->replicas[i].name, name) == 0) {
            return (int)i;
        }
    }
    return -1;
}

static int replica_successor(int id)
{
    for (size_t i = 0; i < world->n_replicas; i++) {
        if (!world->replicas[i].ended && world->replicas[i].replaces == id &&
            !world->replicas[id].ended) {
            return (int)i;
        }
    }
    return -1;
}

static void time_pass(int64_t ms)
{
    if (world->cluster) {
        clock_sleep_ms(world->dead ? 0 : ms);
        return;
    }
    world->now_ms += ms;
    for (size_t i = 0; i < world->n_replicas; i++) {
        struct scripted_replica *r = &world->replicas[i];
        if (!r->ended && r->ready_ms <= world->now_ms && r->replaces >= 0) {
            world->replicas[r->replaces].ended = true;
        }
    }
}

static bool host_has_room(int service, int host)
{
    struct load used = {0}, offer = host_offer(&world->model->hosts[host]);
    struct load need = {0};
    for (size_t i = 0; i < world->model->n_instances; i++) {
        if (world->model->instances[i].service == service) {
            need = instance_load(&world->model->instances[i]);
        }
    }
    for (size_t r = 0; r < world->n_replicas; r++) {
        for (size_t i = 0; i < world->model->n_instances; i++) {
            if (!world->replicas[r].ended && world->replicas[r].host == host &&
                world->model->instances[i].service == world->replicas[r].service) {
                struct load load = instance_load(&world->model->instances[i]);
                load_add(&used, &load);
                break;
            }
        }
    }
    return load_fits(&offer, &used, &need, NULL);
}

/* --- the cluster adapter --- */

static int open_any(const struct source *source, void **ctx, struct err *err)
{
    (void)source;
    (void)err;
    *ctx = world;
    return 0;
}

static void close_any(void *ctx)
{
    (void)ctx;
}

static int inspect(void *ctx, const struct app_scope *app, struct inspection *in, struct err *err)
{
    (void)ctx;
    (void)app;
    if (!alive()) {
        return gone(err);
    }
    world->inspections++;
    if (world->on_inspect) {
        world->on_inspect(world);
    }
    const struct model *m = world->model;
    for (size_t h = 0; h < m->n_hosts; h++) {
        int host = model_add_host(in->model, m->hosts[h].name, err);
        in->model->hosts[host].cpu_cap_millis = m->hosts[h].cpu_cap_millis;
        in->model->hosts[host].mem_cap_bytes = m->hosts[h].mem_cap_bytes;
        in->model->hosts[host].schedulable = m->hosts[h].schedulable;
    }
    if (world->now_ms < world->leaving_ms) {
        in->model->hosts[0].pods_cap = 0;
        in->model->hosts[0].ending = 1;
    }
    for (size_t s = 0; s < m->n_services; s++) {
        int service = model_add_service(in->model, m->services[s].name, err);
        in->model->services[service].stateful = m->services[s].stateful;
        in->model->services[service].movable = m->services[s].movable;
        in->model->services[service].rollout = m->services[s].rollout;
    }
    for (size_t i = 0; i < world->n_replicas; i++) {
        const struct scripted_replica *r = &world->replicas[i];
        if (r->ended) {
            continue;
        }
        int x = model_add_instance(in->model, r->name, r->service, r->host, err);
        if (x < 0) {
            return -1;
        }
        if (replica_successor((int)i) >= 0) {
            in->model->instances[x].pinned_why = mem_strdup("is being replaced");
        } else if (r->ready_ms > world->now_ms) {
            in->model->instances[x].pinned_why = mem_strdup("is starting");
        }
    }
    return 0;
}

/* --- the orchestrator --- */

static bool intended(int64_t seq)
{
    for (size_t i = 0; i < world->n_intents; i++) {
        if (world->intents[i].seq == seq) {
            return true;
        }
    }
    return false;
}

static void effect(int64_t seq)
{
    while (world->n_effects <= (size_t)seq) {
        (void)ARRAY_PUSH(world->effects, world->n_effects);
    }
    world->effects[seq]++;
    world->effect_ms = world->now_ms;
    world->unintended += !intended(seq);
}

/* Which services have a replica on its way, one of this service (just begun) included. */
static void count_at_once(int service, int64_t seq)
{
    int n = 1;
    for (size_t v = 0; v < world->model->n_services; v++) {
        bool under_way = false;
        for (size_t i = 0; i < world->n_replicas; i++) {
            const struct scripted_replica *r = &world->replicas[i];
            bool moves = !r->ended && r->seq > 0 && r->seq != seq && r->ready_ms > world->now_ms &&
                         r->ready_ms < INT64_MAX && r->service == (int)v;
            under_way |= moves;
            world->twice_at_once |= moves && r->service == service;
        }
        n += under_way && (int)v != service;
    }
    world->most_at_once = n > world->most_at_once ? n : world->most_at_once;
}

static int marked(int64_t seq)
{
    for (size_t i = world->n_replicas; i > 0; i--) {
        if (world->replicas[i - 1].seq == seq) {
            return (int)i - 1;
        }
    }
    return -1;
}

static int place_instance(const struct placement *p, struct err *err)
{
    int id = replica_find(p->instance), target = model_host(world->model, p->target);
    if (world->marks && marked(p->seq) >= 0) {
        return 0;
    }
    if (id < 0 || target < 0) {
        return err_set(err, ERR_NOT_FOUND, "there is no %s", id < 0 ? p->instance : p->target);
    }
    int host = world->replicas[id].host;
    if (p->source ? host != model_host(world->model, p->source) : host >= 0) {
        return err_set(err, ERR_CONFLICT, "%s is elsewhere", p->instance);
    }
    if (world->marks && replica_successor(id) >= 0) {
        return err_set(err, ERR_CONFLICT, "%s is being replaced", p->instance);
    }
    if (!host_has_room(world->replicas[id].service, target) ||
        rng_chance(&world->rng, world->faults.refuse)) {
        return err_set(err, ERR_REFUSED, "%s refuses", p->target);
    }
    if (rng_chance(&world->rng, world->faults.forget)) {
        return 0;
    }
    effect(p->seq);
    count_at_once(world->replicas[id].service, p->seq);
    bool stuck = rng_chance(&world->rng, world->faults.stuck);
    int64_t ready = stuck ? INT64_MAX : world->now_ms + world->start_ms;
    struct scripted_replica *r = replica_add(world->replicas[id].service, target, ready);
    r->replaces = id;
    r->seq = p->seq;
    world->replicas[id].ended = !world->start_first;
    return 0;
}

static int place_service(const struct placement *p, struct err *err)
{
    int service = model_service(world->model, p->service);
    if (rng_chance(&world->rng, world->faults.refuse)) {
        return err_set(err, ERR_REFUSED, "%s refuses", p->service);
    }
    effect(p->seq);
    count_at_once(service, p->seq);
    bool stuck = rng_chance(&world->rng, world->faults.stuck);
    size_t n = world->n_replicas;
    for (size_t t = 0; t < p->n_targets; t++) {
        int host = model_host(world->model, p->targets[t].host);
        int64_t missing = p->targets[t].count;
        for (size_t i = 0; i < n; i++) {
            missing -= !world->replicas[i].ended && world->replicas[i].service == service &&
                       world->replicas[i].host == host;
        }
        for (size_t i = 0; i < n && missing > 0; i++) {
            struct scripted_replica *old = &world->replicas[i];
            bool wanted = false;
            for (size_t k = 0; k < p->n_targets; k++) {
                wanted |= model_host(world->model, p->targets[k].host) == old->host;
            }
            if (!old->ended && old->service == service && !wanted &&
                replica_successor((int)i) < 0) {
                struct scripted_replica *r =
                    replica_add(service, host, stuck ? INT64_MAX : world->now_ms + world->start_ms);
                r->replaces = (int)i;
                r->seq = p->seq;
                missing--;
            }
        }
    }
    return 0;
}

static void ahead(void *ctx, const struct placement *placements, size_t n)
{
    (void)ctx;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < i; j++) {
            if (strcmp(placements[i].service, placements[j].service) == 0) {
                abort(); /* they could not be asked for one right after the other */
            }
        }
    }
    world->foretold += n;
    world->foretelling = n > 0;
}

static int place_now(const struct placement *p, char **saved, struct err *err)
{
    if (!alive()) {
        return gone(err);
    }
    if (world->later > 0) {
        world->later--;
        return err_set(err, ERR_TIMEOUT, "not seen by its controller yet");
    }
    if (rng_chance(&world->rng, world->faults.unreachable)) {
        return err_set(err, ERR_UNREACHABLE, "no answer");
    }
    if ((p->instance ? place_instance(p, err) : place_service(p, err)) < 0) {
        return -1;
    }
    *saved = mem_printf("saved %" PRId64, p->seq);
    if (rng_chance(&world->rng, world->faults.lost_answer)) {
        return err_set(err, ERR_UNREACHABLE, "the answer was lost");
    }
    return 0;
}

/* Answers that nobody has asked for yet; with the executor they are lost. */
static void sent_forget(void)
{
    for (size_t i = 0; i < world->n_sent; i++) {
        free(world->sent[i].saved);
    }
    free(world->sent);
    world->sent = NULL;
    world->n_sent = 0;
}

/* Some are begun at once, the others when they are asked for. */
static void place_all(void *ctx, const struct placement *placements, size_t n, bool *begun)
{
    (void)ctx;
    for (size_t i = 0; i < n; i++) {
        begun[i] = rng_chance(&world->rng, world->together);
        if (begun[i]) {
            struct scripted_sent *sent = ARRAY_PUSH(world->sent, world->n_sent);
            *sent = (struct scripted_sent){.seq = placements[i].seq};
            sent->rc = place_now(&placements[i], &sent->saved, &sent->err);
            world->sent_together++;
        }
    }
}

static int place(void *ctx, const struct placement *p, char **saved, struct err *err)
{
    (void)ctx;
    for (size_t i = 0; i < world->n_sent; i++) {
        struct scripted_sent sent = world->sent[i];
        if (sent.seq != p->seq) {
            continue;
        }
        world->sent[i] = world->sent[--world->n_sent];
        if (!alive()) {
            free(sent.saved);
            return gone(err);
        }
        *saved = sent.saved;
        *err = sent.rc ? sent.err : *err;
        return sent.rc;
    }
    return place_now(p, saved, err);
}

static void report(struct settle_report *out, enum settle_state state, int id)
{
    out->state = state;
    if (id >= 0 && world->marks) {
        snprintf(out->instance_now, sizeof out->instance_now, "%s", world->replicas[id].name);
    }
}

static bool undone_of(int64_t seq, int *back)
{
    for (size_t i = world->n_replicas; i > 0; i--) {
        if (world->replicas[i - 1].seq == -seq) {
            *back = (int)i - 1;
            return true;
        }
    }
    return false;
}

static void settled_by_mark(const struct placement *p, struct settle_report *out)
{
    int id = marked(p->seq), back;
    if (id < 0) {
        return;
    }
    if (undone_of(p->seq, &back)) {
        const struct scripted_replica *r = &world->replicas[back];
        report(out,
               r->ended                       ? SETTLE_DISPLACED
               : r->ready_ms <= world->now_ms ? SETTLE_APPLIED
                                              : SETTLE_WAITING,
               back);
        return;
    }
    const struct scripted_replica *r = &world->replicas[id];
    if (r->ended) {
        report(out, SETTLE_DISPLACED, -1);
    } else if (r->ready_ms <= world->now_ms) {
        report(out, r->host == model_host(world->model, p->target) ? SETTLE_APPLIED : SETTLE_MISSED,
               id);
    }
}

/* Without marks an orchestrator has the name and the hosts to go by. */
static void settled_by_name(const struct placement *p, struct settle_report *out)
{
    int service = model_service(world->model, p->service);
    if (p->instance && replica_find(p->instance) >= 0) {
        return;
    }
    for (size_t i = 0; i < world->n_replicas; i++) {
        const struct scripted_replica *r = &world->replicas[i];
        if (!r->ended && r->service == service && r->ready_ms > world->now_ms) {
            return;
        }
    }
    for (size_t t = 0; !p->instance && t < p->n_targets; t++) {
        if (scripted_count(world, p->service, p->targets[t].host) != p->targets[t].count) {
            return;
        }
    }
    if (!p->instance || scripted_count(world, p->service, p->target) > 0) {
        report(out, SETTLE_APPLIED, -1);
    } else {
        report(out, SETTLE_FAILED, -1);
    }
}

static int settled(void *ctx, const struct placement *p, struct settle_report *out, struct err *err)
{
    (void)ctx;
    if (!alive()) {
        return gone(err);
    }
    if (world->on_look) {
        world->on_look(world);
    }
    *out = (struct settle_report){.state = SETTLE_WAITING};
    if (world->marks && p->instance) {
        settled_by_mark(p, out);
    } else {
        settled_by_name(p, out);
    }
    return 0;
}

static int undo(void *ctx, const struct placement *p, const char *saved, struct err *err)
{
    (void)ctx;
    (void)saved;
    int back;
    if (!alive()) {
        return gone(err);
    }
    if (rng_chance(&world->rng, world->faults.refuse_undo)) {
        return err_set(err, ERR_REFUSED, "undo refused");
    }
    size_t n = world->n_replicas;
    int id = marked(p->seq);
    if (id >= 0 && world->replicas[id].ended && !undone_of(p->seq, &back)) {
        return err_set(err, ERR_CONFLICT, "%s ended", world->replicas[id].name);
    }
    for (size_t i = 0; i < n; i++) {
        struct scripted_replica *r = &world->replicas[i];
        if (r->seq != p->seq || r->ended || undone_of(p->seq, &back)) {
            continue;
        }
        if (!world->replicas[r->replaces].ended) {
            r->ended = true;
            r->seq = 0;
            continue;
        }
        int source = world->replicas[r->replaces].host;
        if (!host_has_room(r->service, source)) {
            return err_set(err, ERR_REFUSED, "%s refuses", world->model->hosts[source].name);
        }
        struct scripted_replica *home =
            replica_add(r->service, source, world->now_ms + world->start_ms);
        home->seq = -p->seq;
        home->replaces = (int)i;
        world->replicas[i].ended = !world->start_first;
    }
    return 0;
}

static int no_check(void *ctx, const struct app_scope *app, struct source_report *out,
                    struct err *err)
{
    (void)ctx;
    (void)app;
    (void)out;
    return err_set(err, ERR_REFUSED, "not asked for here");
}

static int no_release(void *ctx, const struct app_scope *app, const char *service, bool dry_run,
                      int64_t *restarts, struct err *err)
{
    (void)ctx;
    (void)app;
    (void)service;
    (void)dry_run;
    (void)restarts;
    return err_set(err, ERR_REFUSED, "not asked for here");
}

static void close_orchestrator(void *ctx)
{
    (void)ctx;
    sent_forget();
}

static const struct option_spec no_options[] = {{NULL, NULL, NULL, false}};

static const struct cluster_adapter cluster = {.name = "scripted",
                                               .summary = "scripted",
                                               .options = no_options,
                                               .open = open_any,
                                               .inspect = inspect,
                                               .check = no_check,
                                               .close = close_any};

/* [marks][per service]: an orchestrator says of itself what it can. */
#define ORCHESTRATOR(by_marks, by, together)                                                       \
    {                                                                                              \
        .name = "scripted", .summary = "scripted", .options = no_options, .granularity = (by),     \
        .start_first = true, .marks = (by_marks), .open = open_any, .ahead = ahead,                \
        .place = place, .place_all = (together),                                                   \
        .settled = settled, .undo = undo, .release = no_release,                                   \
        .close = close_orchestrator                                                                \
    }
static const struct orchestrator by_mark[2] = {[PER_INSTANCE] = ORCHESTRATOR(true, PER_INSTANCE, place_all),
                                               [PER_SERVICE] = ORCHESTRATOR(true, PER_SERVICE, place_all)};
static const struct orchestrator by_count[2] = {[PER_INSTANCE] = ORCHESTRATOR(false, PER_INSTANCE, NULL),
                                                [PER_SERVICE] = ORCHESTRATOR(false, PER_SERVICE, NULL)};

const struct cluster_adapter *cluster_adapter_find(const char *name)
{
    if (world->cluster) {
        return world->cluster;
    }
    return strcmp(name, "scripted") == 0 ? &cluster : NULL;
}

const struct orchestrator *orchestrator_find(const char *name)
{
    if (strcmp(name, "scripted") != 0) {
        return NULL;
    }
    if (world->orchestrator) {
        return world->orchestrator;
    }
    return world->marks ? &by_mark[world->granularity] : &by_count[world->granularity];
}

/* --- the stage and the manager behind it --- */

static void commit_intent(const char *text, size_t size)
{
    struct err err = ERR_INIT;
    struct intent intent;
    AUTO_JSON json_t *tree = json_parse(text, size, &json_limits_document, &err);
    struct jval root = jval_root(tree);
    if (!tree || intent_decode(&root, &intent, &err) < 0) {
        fprintf(stderr, "intent: %s\n", err.text);
        abort();
    }
    for (size_t i = 0; i < world->n_intents; i++) {
        if (world->intents[i].seq == intent.seq) { /* as the store does */
            if (intent.saved) {
                intent_wipe(&world->intents[i]);
                world->intents[i] = intent;
            } else {
                intent_wipe(&intent);
            }
            return;
        }
    }
    *ARRAY_PUSH(world->intents, world->n_intents) = intent;
}

static void commit_outcome(struct outcome outcome)
{
    for (size_t i = 0; i < world->outcomes.n; i++) {
        struct outcome *known = &world->outcomes.list[i];
        if (outcome.undo_of > 0 && outcome.state == OUTCOME_APPLIED &&
            known->seq == outcome.undo_of && known->undo_of < 0 &&
            known->state != OUTCOME_DISCARDED) {
            known->state = OUTCOME_UNDONE;
        }
    }
    for (size_t i = 0; i < world->outcomes.n; i++) {
        struct outcome *known = &world->outcomes.list[i];
        if (known->seq == outcome.seq) {
            if (!outcome.instance_now) {
                outcome.instance_now = steal(known->instance_now);
            }
            outcome_wipe(known);
            *known = outcome;
            return;
        }
    }
    *ARRAY_PUSH(world->outcomes.list, world->outcomes.n) = outcome;
}

static void commit_outcomes(const struct jval *list)
{
    struct err err = ERR_INIT;
    size_t n;
    if (jval_array(list, SIZE_MAX, &n, &err) < 0) {
        abort();
    }
    for (size_t i = 0; i < n; i++) {
        struct jval v = jval_at(list, i);
        struct outcome outcome;
        if (outcome_decode(&v, &outcome, &err) < 0) {
            fprintf(stderr, "outcome: %s\n", err.text);
            abort();
        }
        commit_outcome(outcome);
    }
}

bool stage_stopping(struct stage *stage)
{
    (void)stage;
    return world->dead || world->stop || world->leave;
}

bool stage_leaving(struct stage *stage)
{
    (void)stage;
    return world->dead || world->leave;
}

int stage_progress(struct stage *stage, int64_t done, const char *members, struct err *err)
{
    (void)stage;
    (void)done;
    if (!alive()) {
        return gone(err);
    }
    if (members) {
        AUTO_FREE char *text = mem_printf("{%s}", members);
        AUTO_JSON json_t *tree = json_parse(text, strlen(text), &json_limits_document, err);
        struct jval root = jval_root(tree), v = jval_get(&root, "outcome");
        struct outcome outcome;
        if (!tree || outcome_decode(&v, &outcome, err) < 0) {
            fprintf(stderr, "progress: %s\n", err->text);
            abort();
        }
        commit_outcome(outcome);
    }
    return stage_stopping(stage) ? gone(err) : 0;
}

int stage_intent(struct stage *stage, int64_t seq, const char *body, size_t size, struct err *err)
{
    (void)seq;
    if (!alive()) {
        return gone(err);
    }
    if (world->stop || world->leave) {
        return gone(err);
    }
    commit_intent(body, size);
    /* It may die between the commit and the answer. */
    return !alive() || stage_stopping(stage) ? gone(err) : 0;
}

bool stage_wait(struct stage *stage, int64_t ms)
{
    time_pass(ms);
    return stage_stopping(stage);
}

void stage_wait_through(struct stage *stage, int64_t ms)
{
    (void)stage;
    time_pass(ms);
}

/* --- the lock (executor/keep.h) --- */

int kept_join(struct stage *stage, const struct orchestrator *orchestrator,
              const struct source *source, struct kept **out, struct err *err)
{
    (void)stage;
    (void)orchestrator;
    (void)source;
    (void)err;
    *out = NULL;
    return 0;
}

void kept_leave(struct kept *kept)
{
    (void)kept;
}

void *kept_ctx(const struct kept *kept)
{
    (void)kept;
    return NULL;
}

int kept_await(struct kept *kept, struct err *err)
{
    (void)kept;
    return world->locked_out ? err_set(err, ERR_REFUSED, "the lock is held by another") : 0;
}

int kept_may_write(struct kept *kept, struct err *err)
{
    (void)kept;
    return world->lock_gone > 0 && world->lock_gone-- ? err_set(err, ERR_UNREACHABLE, "no lock")
                                                      : 0;
}

void kept_own(struct kept *kept, int64_t cycle, int64_t seq)
{
    (void)kept;
    (void)cycle;
    (void)seq;
}

bool kept_paused(const struct kept *kept, const char **why)
{
    (void)kept;
    *why = world->paused;
    return world->paused != NULL;
}

void kept_announce(struct kept *kept, int64_t cycle, const struct outcome *outcome)
{
    (void)kept;
    (void)cycle;
    (void)outcome;
}

/* --- requests --- */

static bool move_open(int64_t seq)
{
    const struct outcome *o = outcomes_find(&world->outcomes, seq);
    if (world->undo) {
        return o && (o->state == OUTCOME_APPLIED || o->state == OUTCOME_UNDONE);
    }
    return !o || o->state != OUTCOME_DISCARDED;
}

/* The plan's text with the moves that are left to do or to undo, as the engine sends it. */
static void put_plan(struct buf *out)
{
    const struct model *m = world->model;
    struct plan left = *world->plan;
    left.moves = mem_array(world->plan->n_moves + 1, sizeof *left.moves);
    left.n_moves = 0;
    for (size_t i = 0; i < world->plan->n_moves; i++) {
        if (move_open(world->plan->moves[i].seq)) {
            left.moves[left.n_moves++] = world->plan->moves[i];
        }
    }
    plan_encode(&left, m, true, out);
    free(left.moves);
}

static void put_history(struct buf *out)
{
    buf_puts(out, ",\"base\":[");
    for (size_t i = 0; i < world->n_intents; i++) {
        buf_puts(out, i ? "," : "");
        intent_encode(&world->intents[i], out);
    }
    buf_puts(out, "],\"done\":[");
    for (size_t i = 0, n = 0; i < world->outcomes.n; i++) {
        const struct outcome *o = &world->outcomes.list[i];
        if (o->state != OUTCOME_DISCARDED || intended(o->seq)) {
            buf_puts(out, n++ ? "," : "");
            outcome_encode(o, out);
        }
    }
    buf_puts(out, "]");
}

static void put_request(struct buf *out)
{
    AUTO_FREE char *source = mem_printf("{\"name\":\"it\",\"type\":\"scripted\",\"options\":%s}",
                                        world->options ? world->options : "[]");
    buf_printf(out,
               "{\"v\":1,\"app\":{\"name\":\"app\",\"namespaces\":[],\"services\":[]},\"cycle\":%" PRId64
               ",\"undo\":%s,\"orchestrator\":%s,\"sources\":{\"cluster\":%s},\"options\":"
               "{\"ready_timeout_ms\":%" PRId64 ",\"poll_ms\":%" PRId64 ",\"move_stateful\":%s,"
               "\"start_wait_ms\":50,\"max_parallel\":%" PRId64 ",\"max_moves\":",
               world->cycle, world->undo ? "true" : "false", source, source, world->ready_timeout_ms,
               world->poll_ms,
               world->move_stateful ? "true" : "false", world->max_parallel);
    if (world->max_moves < 0) {
        buf_puts(out, "null");
    } else {
        json_put_int(out, world->max_moves);
    }
    if (world->min_gain >= 0) {
        buf_puts(out, ",\"min_gain\":");
        json_put_real(out, world->min_gain);
    }
    if (world->min_plan_gain >= 0) {
        buf_puts(out, ",\"min_plan_gain\":");
        json_put_real(out, world->min_plan_gain);
    }
    for (size_t i = 0, n = 0; i < world->outcomes.n && n == 0; i++) {
        n += world->outcomes.list[i].state == OUTCOME_DISCARDED;
        buf_puts(out, n ? ",\"lost\":true" : "");
    }
    buf_puts(out, "},\"analysis\":");
    analysis_encode(world->analysis, world->model, out);
    buf_puts(out, ",\"model\":");
    model_encode(world->model, out);
    buf_puts(out, ",\"plan\":");
    put_plan(out);
    put_history(out);
    buf_puts(out, "}");
}

static void read_result(const struct buf *result)
{
    struct err err = ERR_INIT;
    AUTO_JSON json_t *tree = json_parse(result->data, result->size, &json_limits_document, &err);
    struct jval root = jval_root(tree), list = jval_get(&root, "outcomes");
    struct jval stopped = jval_get(&root, "stopped");
    const char *text = "";
    if (!tree || (!jval_null(&stopped) && jval_text(&stopped, 4096, &text, &err) < 0)) {
        abort();
    }
    snprintf(world->stopped, sizeof world->stopped, "%s", text);
    commit_outcomes(&list);
}

int scripted_attempt(struct scripted *w)
{
    struct err err = ERR_INIT;
    struct envelope env = {.type = MSG_EXECUTE, .cycle = w->cycle, .attempt = 1};
    AUTO_BUF struct buf request = BUF_INIT, result = BUF_INIT;
    int exit_code = 0;
    world = w;
    w->dead = false;
    put_request(&request);
    struct stage_request r = {&env, request.data, request.size};
    int done = execute_handle(NULL, &r, &result, &exit_code, &err);
    if (done < 0) {
        snprintf(w->stopped, sizeof w->stopped, "%s", err.text);
    }
    if (w->dead) {
        time_pass(1);
        return -1;
    }
    if (done == 0) {
        read_result(&result);
    }
    return done;
}

int scripted_run(struct scripted *w, int n)
{
    for (int i = 0; i < n; i++) {
        if (scripted_attempt(w) == 0) {
            return 0;
        }
        w->calls_left = -1;
    }
    return -1;
}

/* --- the test's side --- */

struct scripted *scripted_new(const struct model *model)
{
    struct scripted *w = mem_alloc(sizeof *w);
    *w = (struct scripted){.model = model,
                           .marks = true,
                           .together = 0.7,
                           .start_first = true,
                           .granularity = PER_INSTANCE,
                           .start_ms = 3,
                           .ready_timeout_ms = 100,
                           .poll_ms = 1,
                           .max_moves = -1,
                           .max_parallel = 1,
                           .min_gain = -1,
                           .min_plan_gain = -1,
                           .rng = {1},
                           .wall = {2},
                           .cycle = 9,
                           .now_ms = 1000,
                           .calls_left = -1};
    world = w;
    for (size_t i = 0; i < model->n_instances; i++) {
        struct scripted_replica *r =
            replica_add(model->instances[i].service, model->instances[i].host, 0);
        snprintf(r->name, sizeof r->name, "%s", model->instances[i].name);
    }
    w->analysis = analysis_from_given(model);
    return w;
}

void scripted_free(struct scripted *w)
{
    for (size_t i = 0; i < w->n_intents; i++) {
        intent_wipe(&w->intents[i]);
    }
    outcomes_wipe(&w->outcomes);
    plan_free(w->plan);
    analysis_free(w->analysis);
    free(w->intents);
    free(w->replicas);
    free(w->effects);
    free(w);
    world = NULL;
}

void scripted_plan(struct scripted *w, const int *placement)
{
    struct err err = ERR_INIT;
    w->plan = plan_new();
    w->plan->requested = mem_strdup("test");
    w->plan->planner = mem_strdup("test");
    w->plan->why = mem_strdup("");
    w->plan->granularity = w->granularity;
    w->plan->status = PLAN_FEASIBLE;
    if (plan_fill(w->plan, w->model, w->analysis->rows, w->analysis->n_rows, placement, &err) < 0) {
        fprintf(stderr, "plan: %s\n", err.text);
        abort();
    }
}

const struct outcome *scripted_outcome(const struct scripted *w, int64_t seq)
{
    return outcomes_find(&w->outcomes, seq);
}

const char *scripted_state(const struct scripted *w, int64_t seq)
{
    const struct outcome *o = scripted_outcome(w, seq);
    world = (struct scripted *)w;
    return o ? outcome_state_name(o->state) : intended(seq) ? "intended" : "planned";
}

int scripted_count(const struct scripted *w, const char *service, const char *host)
{
    int n = 0, s = model_service(w->model, service), h = model_host(w->model, host);
    for (size_t i = 0; i < w->n_replicas; i++) {
        n += !w->replicas[i].ended && w->replicas[i].service == s && w->replicas[i].host == h;
    }
    return n;
}

void scripted_scale_out(struct scripted *w, const char *service, const char *host)
{
    world = w;
    replica_add(model_service(w->model, service), model_host(w->model, host), w->now_ms);
}

void scripted_end(struct scripted *w, const char *service, const char *host)
{
    int s = model_service(w->model, service), h = model_host(w->model, host);
    for (size_t i = 0; i < w->n_replicas; i++) {
        if (!w->replicas[i].ended && w->replicas[i].service == s && w->replicas[i].host == h) {
            w->replicas[i].ended = true;
            return;
        }
    }
}
