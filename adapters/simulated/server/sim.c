/* sim.c - advancing, and the requests of an orchestrator. */
#include "adapters/simulated/server/sim.h"

#include "adapters/simulated/server/journal.h"
#include "adapters/simulated/server/schedule.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

const char *const sim_settled_names[] = {"waiting", "applied", "missed", "displaced",
                                         "failed",  "unknown", NULL};

struct sim {
    struct cluster *cluster;
    struct journal *journal; /* NULL: only in memory */
};

void sim_free(struct sim *sim)
{
    if (!sim)
        return;
    cluster_free(sim->cluster);
    journal_free(sim->journal);
    free(sim);
}

const struct cluster *sim_cluster(const struct sim *sim)
{
    return sim->cluster;
}

const char *sim_journal(const struct sim *sim)
{
    return sim->journal ? journal_path(sim->journal) : NULL;
}

static int commit(struct sim *sim, const struct change *change, struct err *err)
{
    return sim->journal ? journal_commit(sim->journal, sim->cluster, change, err)
                        : cluster_apply(sim->cluster, change, err);
}

int sim_sync(struct sim *sim, struct err *err)
{
    return sim->journal ? journal_sync(sim->journal, err) : 0;
}

/* The first replicas exist since 0, so that windows before the start hold traffic. */
static int boot(struct sim *sim, int64_t wall_ms, double speed, struct err *err)
{
    const struct scenario *s = sim->cluster->scenario;
    for (size_t i = 0; i < s->n_faults; i++) {
        struct change ch = change_new(CHANGE_FAULT, 0);
        ch.fault = s->faults[i];
        ch.fault.at_ms += s->warm_ms; /* the scenario counts from the start */
        if (commit(sim, &ch, err))
            return -1;
    }
    for (size_t i = 0; i < s->n_services; i++) {
        for (int64_t j = 0; j < s->services[i].replicas; j++) {
            int host = j < (int64_t)s->services[i].n_hosts ? s->services[i].hosts[j] : -1;
            struct change ch = schedule_start(sim->cluster, 0, (int)i, host, -1, "start");
            if (commit(sim, &ch, err))
                return -1;
        }
    }
    /* The clock last: a boot that was cut short has none and begins again. */
    struct change clock = change_new(CHANGE_CLOCK, s->warm_ms);
    clock.wall_ms = wall_ms;
    clock.speed = speed;
    if (sim_advance(sim, s->warm_ms, err) || commit(sim, &clock, err))
        return -1;
    return 0;
}

/* A journal continues where it was: the time that passed meanwhile has passed. */
static int resume(struct sim *sim, int64_t wall_ms, double speed, struct err *err)
{
    struct cluster *c = sim->cluster;
    int64_t now = cluster_sim_ms(c, wall_ms);
    bool back = now < c->last_ms; /* the wall clock was set back */
    if (back)
        now = c->last_ms;
    if (sim_advance(sim, now, err))
        return -1;
    if (speed == cluster_speed(c) && !back)
        return 0;
    struct change clock = change_new(CHANGE_CLOCK, now);
    clock.wall_ms = wall_ms;
    clock.speed = speed;
    return commit(sim, &clock, err);
}

struct sim *sim_open(const struct scenario *scenario, const char *path, int64_t wall_ms,
                     double speed, struct err *err)
{
    AUTO(sim) struct sim *sim = mem_alloc(sizeof *sim);
    bool fresh = true;
    if (path) {
        sim->journal = journal_open(path, scenario, &sim->cluster, &fresh, err);
        if (!sim->journal)
            return NULL;
    } else {
        sim->cluster = cluster_new(scenario);
    }
    if (fresh ? boot(sim, wall_ms, speed > 0 ? speed : scenario->speed, err)
              : resume(sim, wall_ms, speed > 0 ? speed : cluster_speed(sim->cluster), err))
        return NULL;
    return sim_sync(sim, err) ? NULL : steal(sim);
}

int sim_advance(struct sim *sim, int64_t sim_ms, struct err *err)
{
    struct change change = {0};
    while (schedule_next(sim->cluster, &change) <= sim_ms)
        if (commit(sim, &change, err))
            return -1;
    if (sim->cluster->last_ms < sim_ms)
        sim->cluster->last_ms = sim_ms;
    return 0;
}

int64_t sim_next_due(const struct sim *sim)
{
    struct change change;
    return schedule_next(sim->cluster, &change);
}

/* --- faults --- */

int sim_fault(struct sim *sim, const struct fault *fault, struct err *err)
{
    struct change ch = change_new(CHANGE_FAULT, sim->cluster->last_ms);
    ch.fault = *fault;
    return commit(sim, &ch, err);
}

int sim_clear_faults(struct sim *sim, struct err *err)
{
    struct change ch = change_new(CHANGE_CLEAR, sim->cluster->last_ms);
    return commit(sim, &ch, err);
}

int sim_fault_armed(const struct sim *sim, enum fault_kind kind, int service, int host, bool write)
{
    const struct cluster *c = sim->cluster;
    for (size_t i = 0; i < c->n_faults; i++)
        if (c->faults[i].kind == kind && (write || !c->faults[i].writes_only) &&
            fault_hits(&c->faults[i], c->last_ms, service, host))
            return (int)i;
    return -1;
}

int sim_fault_use(struct sim *sim, int fault, struct err *err)
{
    if (sim->cluster->faults[fault].times < 0)
        return 0; /* unlimited: nothing changes */
    struct change ch = change_new(CHANGE_USED, sim->cluster->last_ms);
    ch.uses = fault;
    return commit(sim, &ch, err);
}

/* --- moves --- */

/* The replica a move is for, after every reason against it that needs no host. */
static int move_replica(const struct cluster *c, const struct sim_move *m, int *out,
                        struct err *err)
{
    int service = scenario_service(c->scenario, m->service);
    int id = cluster_replica(c, m->instance);
    if (service < 0)
        return err_set(err, ERR_NOT_FOUND, "there is no service %s", m->service);
    if (id < 0)
        return err_set(err, ERR_NOT_FOUND, "there is no instance %s", m->instance);
    const struct replica *r = &c->replicas[id];
    if (r->service != service)
        return err_set(err, ERR_CONFLICT, "%s is not of service %s", m->instance, m->service);
    if (m->source && (r->host < 0 || strcmp(c->scenario->hosts[r->host].name, m->source) != 0))
        return err_set(err, ERR_CONFLICT, "%s is on %s, not on %s", m->instance,
                       r->host < 0 ? "no host" : c->scenario->hosts[r->host].name, m->source);
    if (r->state == REPLICA_PENDING)
        return err_set(err, ERR_CONFLICT, "%s is pending: no host has room for it", m->instance);
    if (cluster_successor(c, id) >= 0)
        return err_set(err, ERR_CONFLICT, "%s is being replaced", m->instance);
    if (r->state == REPLICA_STARTING && r->replaces >= 0 &&
        c->replicas[r->replaces].state != REPLICA_ENDED)
        return err_set(err, ERR_CONFLICT, "%s is starting", m->instance);
    *out = id;
    return 0;
}

static int move_target(const struct sim *sim, const struct sim_move *m, int id, int *out,
                       struct err *err)
{
    const struct cluster *c = sim->cluster;
    const struct replica *r = &c->replicas[id];
    int target = scenario_host(c->scenario, m->target);
    if (target < 0)
        return err_set(err, ERR_NOT_FOUND, "there is no host %s", m->target);
    if (r->host == target)
        return err_set(err, ERR_CONFLICT, "%s is on %s already", m->instance, m->target);
    const char *problem = cluster_room(c, r->service, target);
    if (problem)
        return err_set(err, ERR_REFUSED, "%s cannot take %s: %s", m->target, m->service, problem);
    *out = target;
    return 0;
}

/* A mark that another store has used before must not pass for this move. */
static bool same_move(const struct cluster *c, const struct placed *known, const struct sim_move *m)
{
    const struct replica *asked = &c->replicas[known->asked];
    return !strcmp(asked->name, m->instance) &&
           !strcmp(c->scenario->services[asked->service].name, m->service) &&
           !strcmp(c->scenario->hosts[known->target].name, m->target);
}

static int mark_taken(const struct sim_move *m, struct err *err)
{
    return err_set(err, ERR_CONFLICT, "mark %lld/%lld belongs to another move",
                   (long long)m->mark.cycle, (long long)m->mark.seq);
}

int sim_place(struct sim *sim, const struct sim_move *m, struct sim_answer *out, struct err *err)
{
    struct cluster *c = sim->cluster;
    const struct placed *known = cluster_placed(c, m->mark);
    int id = -1, target = -1;
    *out = (struct sim_answer){false, known ? known->now : -1};
    if (known)
        return same_move(c, known, m) ? 0 : mark_taken(m, err);
    if (move_replica(c, m, &id, err) || move_target(sim, m, id, &target, err))
        return -1;
    int service = c->replicas[id].service;
    int forget = sim_fault_armed(sim, FAULT_FORGET, service, target, true);
    if (forget >= 0)
        return sim_fault_use(sim, forget, err);
    int stray = sim_fault_armed(sim, FAULT_STRAY, service, target, true);
    int host = stray >= 0 ? schedule_host(c, service, target) : -1;
    bool strays = host >= 0 && host != c->replicas[id].host;
    struct change ch = schedule_start(c, c->last_ms, service, strays ? host : target, id, "move");
    ch.target = strays ? target : -1;
    ch.mark = m->mark;
    int vanish = sim_fault_armed(sim, FAULT_LOSE_EFFECT, service, target, true);
    ch.vanishes = vanish >= 0;
    int lost = sim_fault_armed(sim, FAULT_LOSE_ANSWER, service, target, true);
    if (commit(sim, &ch, err) || (strays && sim_fault_use(sim, stray, err)) ||
        (vanish >= 0 && sim_fault_use(sim, vanish, err)) ||
        (lost >= 0 && sim_fault_use(sim, lost, err)))
        return -1;
    *out = (struct sim_answer){lost >= 0, (int)c->n_replicas - 1};
    return 0;
}

/* The replica at the end of the chain of those that replaced this one. */
static int last_of(const struct cluster *c, int id)
{
    for (size_t i = 0; i < c->n_replicas; i++) /* successors have higher numbers */
        if ((int)i > id && c->replicas[i].replaces == id &&
            (c->replicas[i].state == REPLICA_READY || c->replicas[id].state == REPLICA_ENDED))
            id = (int)i;
    return id;
}

static enum sim_settled settled_back(const struct cluster *c, const struct placed *p, int *replica,
                                     const char **detail)
{
    int id = p->back >= 0 ? p->back : p->asked;
    if (c->replicas[id].state == REPLICA_ENDED) {
        *detail = "undone, and ended since";
        return SIM_DISPLACED;
    }
    *replica = id;
    bool ready = c->replicas[id].state == REPLICA_READY &&
                 (p->back < 0 || c->replicas[p->now].state == REPLICA_ENDED);
    *detail = ready ? "undone" : "going back";
    return ready ? SIM_APPLIED : SIM_WAITING;
}

enum sim_settled sim_settled(const struct sim *sim, struct mark mark, int *replica,
                             const char **detail)
{
    const struct cluster *c = sim->cluster;
    const struct placed *p = cluster_placed(c, mark);
    *replica = -1;
    *detail = "no object bears this mark";
    if (!p)
        return SIM_UNKNOWN;
    if (p->undone)
        return settled_back(c, p, replica, detail);
    const struct replica *r = &c->replicas[p->now];
    *replica = p->now;
    if (r->state == REPLICA_ENDED) {
        *replica = last_of(c, p->now);
        if (c->replicas[*replica].state == REPLICA_ENDED)
            *replica = -1;
        *detail = r->ready_ms < 0 ? "ended before it was ready" : "was there, then taken away";
        return r->ready_ms < 0 ? SIM_FAILED : SIM_DISPLACED;
    }
    bool alone = r->replaces < 0 || c->replicas[r->replaces].state == REPLICA_ENDED;
    if (r->state != REPLICA_READY || !alone) {
        *detail = r->state == REPLICA_READY ? "ready, its predecessor is leaving" : "starting";
        return SIM_WAITING;
    }
    *detail = r->host == p->target ? "ready" : "ready on another host";
    return r->host == p->target ? SIM_APPLIED : SIM_MISSED;
}

int sim_undo(struct sim *sim, struct mark mark, struct sim_answer *out, struct err *err)
{
    struct cluster *c = sim->cluster;
    const struct placed *p = cluster_placed(c, mark);
    *out = (struct sim_answer){false, -1};
    if (!p || p->undone)
        return 0;
    const struct replica *r = &c->replicas[p->now];
    struct change ch = change_new(CHANGE_END, c->last_ms);
    bool old_stays = c->replicas[p->asked].state != REPLICA_ENDED;
    if (r->state == REPLICA_ENDED) {
        out->replica = last_of(c, p->now);
        const struct replica *last = &c->replicas[out->replica];
        if (last->state != REPLICA_ENDED && last->host == p->source)
            return 0; /* somebody has put it back already */
        return err_set(err, ERR_CONFLICT, "%s ended: nothing is left to put back", r->name);
    }
    if (old_stays) { /* the start is stopped */
        ch.replica = p->now;
    } else {
        const char *problem = cluster_room(c, r->service, p->source);
        if (problem)
            return err_set(err, ERR_REFUSED, "%s cannot take %s back: %s",
                           c->scenario->hosts[p->source].name,
                           c->scenario->services[r->service].name, problem);
        if (cluster_successor(c, p->now) >= 0)
            return err_set(err, ERR_CONFLICT, "%s is being replaced", r->name);
        ch = schedule_start(c, c->last_ms, r->service, p->source, p->now, "undo");
    }
    ch.why = "undo";
    ch.mark = mark;
    if (commit(sim, &ch, err))
        return -1;
    out->replica = ch.kind == CHANGE_START ? (int)c->n_replicas - 1 : p->asked;
    return 0;
}

int sim_release(struct sim *sim, int service, bool dry_run, int64_t *marks, struct err *err)
{
    const struct cluster *c = sim->cluster;
    int64_t n = 0;
    for (size_t i = 0; i < c->n_live; i++) {
        const struct replica *r = &c->replicas[c->live[i]];
        n += r->mark.cycle >= 0 && (service < 0 || r->service == service);
    }
    struct change ch = change_new(CHANGE_RELEASE, c->last_ms);
    ch.service = service;
    if (n && !dry_run && commit(sim, &ch, err))
        return -1;
    *marks = n;
    return 0;
}
