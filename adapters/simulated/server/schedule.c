/* schedule.c - the simple scheduler and controllers of the embedded cluster. */
#include "adapters/simulated/server/schedule.h"

#include <stdlib.h>

int schedule_host(const struct cluster *c, int service, int except)
{
    const struct scenario *s = c->scenario;
    AUTO_FREE struct host_load *loads = cluster_host_loads(c);
    AUTO_FREE int64_t *same = mem_array(s->n_hosts, sizeof *same);
    for (size_t i = 0; i < c->n_live; i++)
        if (c->replicas[c->live[i]].host >= 0 && c->replicas[c->live[i]].service == service)
            same[c->replicas[c->live[i]].host]++;
    int best = -1;
    double best_share = 0;
    for (size_t h = 0; h < s->n_hosts; h++) {
        double share = (double)(loads[h].cpu_millis + s->hosts[h].cpu_requested_millis) /
                       (double)s->hosts[h].cpu_millis;
        if (best >= 0 && (same[h] > same[best] || (same[h] == same[best] && share >= best_share)))
            continue;
        if ((int)h == except || cluster_room_beside(c, &loads[h], service, (int)h))
            continue;
        best = (int)h;
        best_share = share;
    }
    return best;
}

static int armed(const struct cluster *c, enum fault_kind kind, int64_t at_ms, int service,
                 int host)
{
    for (size_t i = 0; i < c->n_faults; i++)
        if (c->faults[i].kind == kind && fault_hits(&c->faults[i], at_ms, service, host))
            return (int)i;
    return -1;
}

struct change schedule_start(const struct cluster *c, int64_t at_ms, int service, int host,
                             int replaces, const char *why)
{
    struct change ch = change_new(CHANGE_START, at_ms);
    ch.service = service;
    ch.host = host;
    ch.replaces = replaces;
    ch.why = why;
    if (host < 0)
        return ch;
    ch.uses = armed(c, FAULT_STUCK_START, at_ms, service, host);
    ch.due_ms = ch.uses >= 0 ? -1 : at_ms + c->scenario->services[service].start_up_ms;
    return ch;
}

struct next { /* the earliest so far */
    const struct cluster *c;
    int64_t due;
    struct change *change;
};

/* Nothing can be due before now. */
static bool settled_already(const struct next *n)
{
    return n->due <= n->c->last_ms;
}

/* No more replicas fit into this journal: what is there goes on, nothing new starts. */
static bool full(const struct cluster *c)
{
    return c->n_replicas >= CLUSTER_MAX_REPLICAS;
}

/* True when something due then comes before what is known; sets the time. */
static bool earlier(struct next *n, int64_t due)
{
    if (due < n->c->last_ms)
        due = n->c->last_ms;
    if (due >= n->due)
        return false;
    n->due = due;
    return true;
}

static struct change fault_change(const struct cluster *c, size_t index, int64_t at_ms)
{
    const struct fault *f = &c->faults[index];
    struct change ch = change_new(CHANGE_HOST, at_ms);
    ch.host = f->host;
    ch.due_ms = f->span_ms ? at_ms + f->span_ms : -1;
    ch.why = "fault";
    ch.uses = (int)index;
    if (f->kind == FAULT_HOST_DOWN)
        return ch;
    ch.due_ms = -1;
    ch.host = -1;
    ch.service = f->service;
    ch.value = f->replicas;
    ch.factor = f->factor;
    ch.kind = f->kind == FAULT_SCALE    ? CHANGE_SCALE
              : f->kind == FAULT_DEPLOY ? CHANGE_DEPLOY
                                        : CHANGE_LOAD;
    return ch;
}

static void next_outside(struct next *n)
{
    const struct cluster *c = n->c;
    for (size_t h = 0; h < c->scenario->n_hosts; h++) {
        if (!c->hosts[h].up && c->hosts[h].back_ms >= 0 && earlier(n, c->hosts[h].back_ms)) {
            *n->change = change_new(CHANGE_HOST, n->due);
            n->change->host = (int)h;
            n->change->up = true;
            n->change->why = "back";
        }
    }
    for (size_t i = 0; i < c->n_faults; i++)
        if (!c->faults[i].done && fault_is_event(c->faults[i].kind) &&
            earlier(n, c->faults[i].at_ms))
            *n->change = fault_change(c, i, n->due);
}

static void end_change(struct next *n, int replica, const char *why)
{
    *n->change = change_new(CHANGE_END, n->due);
    n->change->replica = replica;
    n->change->why = why;
}

static void next_of_replica(struct next *n, int id)
{
    const struct cluster *c = n->c;
    const struct replica *r = &c->replicas[id];
    if (r->host >= 0 && !c->hosts[r->host].up && earlier(n, c->hosts[r->host].changed_ms))
        end_change(n, id, "host died");
    if (r->state == REPLICA_STARTING && r->due_ms >= 0 && earlier(n, r->due_ms)) {
        *n->change = change_new(CHANGE_READY, n->due);
        n->change->replica = id;
    }
    if (r->state != REPLICA_READY || r->replaces < 0)
        return;
    if (c->replicas[r->replaces].state != REPLICA_ENDED) {
        if (earlier(n, r->ready_ms))
            end_change(n, r->replaces, "replaced");
    } else if (r->vanishes && !full(c) && cluster_successor(c, id) < 0 &&
               c->replicas[r->replaces].host >= 0 &&
               !cluster_room(c, r->service, c->replicas[r->replaces].host) &&
               earlier(n, r->ready_ms)) {
        *n->change = schedule_start(c, n->due, r->service, c->replicas[r->replaces].host, id,
                                    "taken back by somebody");
    }
}

/* Newest first, and those that serve nobody yet before those that do. */
static int surplus_of(const struct cluster *c, int service)
{
    int best = -1;
    for (size_t i = 0; i < c->n_live; i++) {
        const struct replica *r = &c->replicas[c->live[i]];
        bool beside = r->replaces >= 0 && c->replicas[r->replaces].state != REPLICA_ENDED;
        if (r->service != service || beside)
            continue;
        if (best < 0 || r->state <= c->replicas[best].state)
            best = c->live[i];
    }
    return best;
}

static int old_of(const struct cluster *c, int service)
{
    for (size_t i = 0; i < c->n_live; i++) {
        const struct replica *r = &c->replicas[c->live[i]];
        if (r->service == service && r->revision < c->services[service].revision)
            return c->live[i];
    }
    return -1;
}

/* A rollout replaces on the same host where there is room, else where the scheduler says. */
static void roll(struct next *n, int service)
{
    const struct cluster *c = n->c;
    int old = old_of(c, service), host = c->replicas[old].host;
    if (host >= 0 && cluster_room(c, service, host))
        host = -1;
    if (host < 0)
        host = schedule_host(c, service, -1);
    if (host >= 0 && earlier(n, c->last_ms))
        *n->change = schedule_start(c, n->due, service, host, old, "deploy");
}

static void next_of_service(struct next *n, int service, const struct survey *survey)
{
    const struct cluster *c = n->c;
    const struct service_state *s = &c->services[service];
    if (s->short_since_ms >= 0 && !full(c) &&
        earlier(n, s->short_since_ms + c->scenario->reschedule_ms))
        *n->change =
            schedule_start(c, n->due, service, schedule_host(c, service, -1), -1, "schedule");
    if (s->staying > s->wanted && earlier(n, c->last_ms))
        end_change(n, surplus_of(c, service), "scale");
    if (survey->old && !survey->in_flight && !full(c) && !settled_already(n))
        roll(n, service);
}

static void next_pending(struct next *n, int id)
{
    const struct cluster *c = n->c;
    const struct replica *r = &c->replicas[id];
    int host = settled_already(n) ? -1 : schedule_host(c, r->service, -1);
    if (host < 0 || !earlier(n, c->last_ms))
        return;
    *n->change = schedule_start(c, n->due, r->service, host, -1, "schedule");
    n->change->kind = CHANGE_BIND;
    n->change->replica = id;
}

int64_t schedule_next(const struct cluster *c, struct change *change)
{
    struct next n = {c, INT64_MAX, change};
    AUTO_FREE struct survey *survey = cluster_survey(c);
    next_outside(&n);
    for (size_t i = 0; i < c->n_live; i++)
        next_of_replica(&n, c->live[i]);
    for (size_t i = 0; i < c->scenario->n_services; i++)
        next_of_service(&n, (int)i, &survey[i]);
    AUTO_FREE bool *tried = mem_array(c->scenario->n_services, sizeof *tried);
    for (size_t i = 0; i < c->n_live; i++) {
        const struct replica *r = &c->replicas[c->live[i]];
        if (r->state != REPLICA_PENDING || tried[r->service])
            continue;
        tried[r->service] = true; /* where one finds no room, its siblings find none */
        next_pending(&n, c->live[i]);
    }
    return n.due;
}
