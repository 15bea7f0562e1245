/* cluster.c - the state of the embedded cluster: the one place that changes it, and look-ups. */
#include "adapters/simulated/server/cluster.h"

#include "adapters/simulated/server/rng.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define CLOCK_END_MS 5e14 /* 15,000 years: half of what numbers in journals may be */

const char *const replica_state_names[] = {"pending", "starting", "ready", "ended", NULL};

struct cluster *cluster_new(const struct scenario *scenario)
{
    struct cluster *c = mem_alloc(sizeof *c);
    c->scenario = scenario;
    c->services = mem_array(scenario->n_services, sizeof *c->services);
    c->hosts = mem_array(scenario->n_hosts, sizeof *c->hosts);
    for (size_t i = 0; i < scenario->n_services; i++)
        c->services[i] = (struct service_state){.wanted = scenario->services[i].replicas,
                                                .revision = 1,
                                                .load = 1,
                                                .short_since_ms = -1};
    for (size_t i = 0; i < scenario->n_hosts; i++)
        c->hosts[i] = (struct host_state){true, 0, -1};
    return c;
}

void cluster_free(struct cluster *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->n_replicas; i++)
        free(c->replicas[i].name);
    free(c->replicas);
    free(c->live);
    free(c->services);
    free(c->hosts);
    free(c->placed);
    free(c->faults);
    free(c->loads);
    free(c->clock);
    names_wipe(&c->names);
    free(c);
}

struct change change_new(enum change_kind kind, int64_t at_ms)
{
    return (struct change){.kind = kind,
                           .at_ms = at_ms,
                           .replica = -1,
                           .service = -1,
                           .host = -1,
                           .replaces = -1,
                           .target = -1,
                           .uses = -1,
                           .due_ms = -1,
                           .mark = MARK_NONE,
                           .why = ""};
}

/* --- looking --- */

int cluster_replica(const struct cluster *c, const char *name)
{
    int id = names_get(&c->names, name);
    return id >= 0 && c->replicas[id].state != REPLICA_ENDED ? id : -1;
}

static struct placed *placed_find(const struct cluster *c, struct mark mark)
{
    for (size_t i = c->n_placed; i-- > 0;)
        if (c->placed[i].mark.cycle == mark.cycle && c->placed[i].mark.seq == mark.seq)
            return &c->placed[i];
    return NULL;
}

const struct placed *cluster_placed(const struct cluster *c, struct mark mark)
{
    return placed_find(c, mark);
}

int cluster_successor(const struct cluster *c, int replica)
{
    for (size_t i = c->n_live; i-- > 0;)
        if (c->replicas[c->live[i]].replaces == replica)
            return c->live[i];
    return -1;
}

struct survey *cluster_survey(const struct cluster *c)
{
    struct survey *survey = mem_array(c->scenario->n_services, sizeof *survey);
    for (size_t i = 0; i < c->n_live; i++) {
        const struct replica *r = &c->replicas[c->live[i]];
        struct survey *s = &survey[r->service];
        s->in_flight += r->state != REPLICA_READY;
        s->old += r->revision < c->services[r->service].revision;
    }
    return survey;
}

bool cluster_rolling(const struct cluster *c, int service, const struct survey *survey)
{
    return survey[service].old || c->services[service].staying != c->services[service].wanted;
}

const char *cluster_room_beside(const struct cluster *c, const struct host_load *load, int service,
                                int host)
{
    const struct sim_host *h = &c->scenario->hosts[host];
    const struct sim_service *need = &c->scenario->services[service];
    if (!c->hosts[host].up)
        return "down";
    if (!h->schedulable)
        return "unschedulable";
    if (load->cpu_millis + h->cpu_requested_millis + need->cpu_request_millis > h->cpu_millis)
        return "cpu requests";
    if (load->mem_bytes + h->mem_requested_bytes + need->mem_request_bytes > h->mem_bytes)
        return "memory requests";
    return h->pods >= 0 && load->pods + h->pods_used + 1 > h->pods ? "pod slots" : NULL;
}

static void load_add_replica(const struct cluster *c, const struct replica *r,
                             struct host_load *load)
{
    load->cpu_millis += c->scenario->services[r->service].cpu_request_millis;
    load->mem_bytes += c->scenario->services[r->service].mem_request_bytes;
    load->pods++;
}

struct host_load *cluster_host_loads(const struct cluster *c)
{
    struct host_load *loads = mem_array(c->scenario->n_hosts, sizeof *loads);
    for (size_t i = 0; i < c->n_live; i++)
        if (c->replicas[c->live[i]].host >= 0)
            load_add_replica(c, &c->replicas[c->live[i]], &loads[c->replicas[c->live[i]].host]);
    return loads;
}

const char *cluster_room(const struct cluster *c, int service, int host)
{
    struct host_load load = {0};
    for (size_t i = 0; i < c->n_live; i++)
        if (c->replicas[c->live[i]].host == host)
            load_add_replica(c, &c->replicas[c->live[i]], &load);
    return cluster_room_beside(c, &load, service, host);
}

double cluster_speed(const struct cluster *c)
{
    return c->n_clock ? c->clock[c->n_clock - 1].speed : c->scenario->speed;
}

int64_t cluster_sim_ms(const struct cluster *c, int64_t wall_ms)
{
    if (!c->n_clock)
        return c->scenario->warm_ms;
    size_t i = c->n_clock - 1;
    while (i > 0 && c->clock[i].wall_ms > wall_ms)
        i--;
    double sim =
        (double)c->clock[i].sim_ms + (double)(wall_ms - c->clock[i].wall_ms) * c->clock[i].speed;
    return sim <= 0 ? 0 : sim < CLOCK_END_MS ? (int64_t)sim : (int64_t)CLOCK_END_MS;
}

int64_t cluster_wall_ms(const struct cluster *c, int64_t sim_ms)
{
    if (!c->n_clock)
        return 0;
    size_t i = c->n_clock - 1;
    while (i > 0 && c->clock[i].sim_ms > sim_ms)
        i--;
    return c->clock[i].wall_ms +
           (int64_t)((double)(sim_ms - c->clock[i].sim_ms) / c->clock[i].speed);
}

/* --- changing --- */

/* "front-end-6d4b9c7f5-x2k9q", as a Deployment names its pods, or "db-2" for a stateful set. The
 * same history gives the same names; none is ever used twice, and none is a service's. */
static char *name_candidate(const struct cluster *c, int service, int64_t turn)
{
    static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
    const struct sim_service *v = &c->scenario->services[service];
    if (v->stateful)
        return mem_printf("%s-%lld", v->name, (long long)(c->services[service].ever + turn));
    uint64_t key = rng_text(v->name);
    uint64_t set = rng_hash(c->scenario->seed, key, (uint64_t)c->services[service].revision);
    uint64_t pod = rng_hash(c->scenario->seed ^ key, c->n_replicas, (uint64_t)turn);
    char template_hash[10] = "", suffix[6] = "";
    for (int i = 0; i < 9; i++, set /= 27)
        template_hash[i] = letters[set % 27];
    for (int i = 0; i < 5; i++, pod /= 27)
        suffix[i] = letters[pod % 27];
    return mem_printf("%s-%s-%s", v->name, template_hash, suffix);
}

char *cluster_next_name(const struct cluster *c, int service)
{
    for (int64_t turn = 0;; turn++) {
        char *name = name_candidate(c, service, turn);
        if (names_get(&c->names, name) < 0 && scenario_service(c->scenario, name) < 0)
            return name;
        free(name);
    }
}

static int out_of_step(struct err *err, const char *what)
{
    return err_set(err, ERR_INPUT, "a change does not fit the state: %s", what);
}

static bool is_live(const struct cluster *c, int replica)
{
    return replica >= 0 && (size_t)replica < c->n_replicas &&
           c->replicas[replica].state != REPLICA_ENDED;
}

static void note_placed(struct cluster *c, const struct change *ch, int now)
{
    struct placed *p = placed_find(c, ch->mark);
    if (p) { /* the undo of this mark */
        p->undone = true;
        p->back = now;
        return;
    }
    p = ARRAY_PUSH(c->placed, c->n_placed);
    *p = (struct placed){.mark = ch->mark,
                         .asked = ch->replaces,
                         .now = now,
                         .source = c->replicas[ch->replaces].host,
                         .target = ch->target >= 0 ? ch->target : ch->host,
                         .back = -1};
}

/* Keeps short_since_ms right after the number of replicas or the wish changed. */
static void note_short(struct cluster *c, int service, int64_t at_ms)
{
    struct service_state *s = &c->services[service];
    if (s->staying >= s->wanted)
        s->short_since_ms = -1;
    else if (s->short_since_ms < 0)
        s->short_since_ms = at_ms;
}

static int apply_start(struct cluster *c, const struct change *ch, struct err *err)
{
    if (ch->service < 0 || (size_t)ch->service >= c->scenario->n_services)
        return out_of_step(err, "start of no service");
    if (ch->replica >= 0 && (size_t)ch->replica != c->n_replicas)
        return out_of_step(err, "the number of a started replica");
    if (ch->replaces >= 0 && (!is_live(c, ch->replaces) || c->replicas[ch->replaces].host < 0))
        return out_of_step(err, "start in place of a replica that is not there");
    if (ch->mark.cycle >= 0 && (ch->replaces < 0 || ch->host < 0))
        return out_of_step(err, "a mark on a start that replaces nothing");
    if (c->n_replicas >= CLUSTER_MAX_REPLICAS)
        return err_set(err, ERR_REFUSED, "the journal holds %d replicas; start a new one",
                       CLUSTER_MAX_REPLICAS);
    if (ch->name && names_get(&c->names, ch->name) >= 0)
        return out_of_step(err, "a replica's name is used twice");
    int revision = c->services[ch->service].revision;
    char *name = ch->name ? mem_strdup(ch->name) : cluster_next_name(c, ch->service);
    int id = (int)c->n_replicas;
    struct replica *r = ARRAY_PUSH(c->replicas, c->n_replicas);
    *r = (struct replica){.name = name,
                          .service = ch->service,
                          .host = ch->host,
                          .state = ch->host < 0 ? REPLICA_PENDING : REPLICA_STARTING,
                          .created_ms = ch->at_ms,
                          .due_ms = ch->due_ms,
                          .ready_ms = -1,
                          .ended_ms = -1,
                          .replaces = ch->replaces,
                          .revision = revision,
                          .vanishes = ch->vanishes,
                          .mark = ch->mark};
    names_add(&c->names, name, id);
    *ARRAY_PUSH(c->live, c->n_live) = id;
    c->services[ch->service].ever++;
    c->services[ch->service].staying += ch->replaces < 0; /* else its predecessor counts */
    if (ch->mark.cycle >= 0)
        note_placed(c, ch, id);
    note_short(c, ch->service, ch->at_ms);
    return 0;
}

static int apply_bind(struct cluster *c, const struct change *ch, struct err *err)
{
    if (!is_live(c, ch->replica) || c->replicas[ch->replica].state != REPLICA_PENDING ||
        ch->host < 0)
        return out_of_step(err, "bind of a replica that is not pending");
    struct replica *r = &c->replicas[ch->replica];
    r->host = ch->host;
    r->state = REPLICA_STARTING;
    r->due_ms = ch->due_ms;
    return 0;
}

static int apply_end(struct cluster *c, const struct change *ch, struct err *err)
{
    if (!is_live(c, ch->replica))
        return out_of_step(err, "end of a replica that is not there");
    struct replica *r = &c->replicas[ch->replica];
    bool beside = r->replaces >= 0 && c->replicas[r->replaces].state != REPLICA_ENDED;
    if (!beside && cluster_successor(c, ch->replica) < 0)
        c->services[r->service].staying--;
    r->state = REPLICA_ENDED;
    r->ended_ms = ch->at_ms;
    size_t kept = 0;
    for (size_t i = 0; i < c->n_live; i++)
        if (c->live[i] != ch->replica)
            c->live[kept++] = c->live[i];
    c->n_live = kept;
    struct placed *p = ch->mark.cycle >= 0 ? placed_find(c, ch->mark) : NULL;
    if (p)
        p->undone = true;
    note_short(c, r->service, ch->at_ms);
    return 0;
}

static int apply_service(struct cluster *c, const struct change *ch, struct err *err)
{
    bool all = ch->service < 0 && (ch->kind == CHANGE_LOAD || ch->kind == CHANGE_RELEASE);
    if (!all && (ch->service < 0 || (size_t)ch->service >= c->scenario->n_services))
        return out_of_step(err, "no such service");
    if (ch->kind == CHANGE_SCALE) {
        if (ch->value > SCENARIO_MAX_REPLICAS)
            return out_of_step(err, "too many replicas");
        c->services[ch->service].wanted = ch->value;
        /* A scale-out is served at once, unlike a death, which must be noticed first. */
        c->services[ch->service].short_since_ms = -1;
        note_short(c, ch->service, ch->at_ms - c->scenario->reschedule_ms);
    } else if (ch->kind == CHANGE_DEPLOY) {
        c->services[ch->service].revision++;
    } else if (ch->kind == CHANGE_LOAD) {
        *ARRAY_PUSH(c->loads, c->n_loads) = (struct load_step){ch->at_ms, ch->service, ch->factor};
        for (size_t i = 0; i < c->scenario->n_services; i++)
            if (all || (int)i == ch->service)
                c->services[i].load = ch->factor;
    } else {
        for (size_t i = 0; i < c->n_live; i++)
            if (all || c->replicas[c->live[i]].service == ch->service)
                c->replicas[c->live[i]].mark = MARK_NONE;
    }
    return 0;
}

static int apply_fault(struct cluster *c, const struct change *ch, struct err *err)
{
    if (ch->kind == CHANGE_FAULT) {
        if (c->n_faults >= CLUSTER_MAX_FAULTS)
            return err_set(err, ERR_REFUSED, "more than %d faults", CLUSTER_MAX_FAULTS);
        *ARRAY_PUSH(c->faults, c->n_faults) = ch->fault;
    } else if (ch->kind == CHANGE_CLEAR) {
        for (size_t i = 0; i < c->n_faults; i++)
            c->faults[i].done = true;
    }
    return 0;
}

static int apply_kind(struct cluster *c, const struct change *ch, struct err *err)
{
    switch (ch->kind) {
    case CHANGE_CLOCK:
        *ARRAY_PUSH(c->clock, c->n_clock) = (struct clock_step){ch->wall_ms, ch->at_ms, ch->speed};
        return 0;
    case CHANGE_START:
        return apply_start(c, ch, err);
    case CHANGE_BIND:
        return apply_bind(c, ch, err);
    case CHANGE_READY:
        if (!is_live(c, ch->replica) || c->replicas[ch->replica].state != REPLICA_STARTING)
            return out_of_step(err, "ready, but not starting");
        c->replicas[ch->replica].state = REPLICA_READY;
        c->replicas[ch->replica].ready_ms = ch->at_ms;
        return 0;
    case CHANGE_END:
        return apply_end(c, ch, err);
    case CHANGE_HOST:
        if (ch->host < 0 || (size_t)ch->host >= c->scenario->n_hosts)
            return out_of_step(err, "no such host");
        c->hosts[ch->host] = (struct host_state){ch->up, ch->at_ms, ch->due_ms};
        return 0;
    case CHANGE_SCALE:
    case CHANGE_DEPLOY:
    case CHANGE_LOAD:
    case CHANGE_RELEASE:
        return apply_service(c, ch, err);
    case CHANGE_FAULT:
    case CHANGE_USED:
    case CHANGE_CLEAR:
        return apply_fault(c, ch, err);
    case CHANGE_KINDS:
        break;
    }
    return out_of_step(err, "unknown kind");
}

int cluster_apply(struct cluster *c, const struct change *ch, struct err *err)
{
    if (ch->kind != CHANGE_CLOCK && ch->at_ms < c->last_ms)
        return out_of_step(err, "time goes back");
    if (ch->uses >= 0 && (size_t)ch->uses >= c->n_faults)
        return out_of_step(err, "no such fault");
    if (apply_kind(c, ch, err))
        return -1;
    if (ch->uses >= 0) {
        struct fault *f = &c->faults[ch->uses];
        f->times -= f->times > 0;
        f->done |= fault_is_event(f->kind) || !f->times;
    }
    if (ch->at_ms > c->last_ms)
        c->last_ms = ch->at_ms;
    c->n_changes++;
    return 0;
}
