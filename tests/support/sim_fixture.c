/* sim_fixture.c - opening, advancing and looking into small embedded clusters. */
#include "tests/support/sim_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

struct scenario *fixture_scenario(const char *yaml)
{
    struct err err = ERR_INIT;
    struct scenario *s = scenario_parse(yaml, strlen(yaml), "test.yaml", -1, &err);
    if (!s)
        fail_msg("%s", err.text);
    return s;
}

struct fixture fixture_open(const char *yaml, const char *journal)
{
    struct err err = ERR_INIT;
    struct fixture f = {fixture_scenario(yaml), NULL};
    f.sim = sim_open(f.scenario, journal, FIXTURE_WALL, 0, &err);
    if (!f.sim)
        fail_msg("%s", err.text);
    return f;
}

void fixture_close(struct fixture *f)
{
    sim_free(f->sim);
    scenario_free(f->scenario);
}

void fixture_run(struct fixture *f, int64_t ms)
{
    struct err err = ERR_INIT;
    if (sim_advance(f->sim, sim_cluster(f->sim)->last_ms + ms, &err))
        fail_msg("%s", err.text);
}

int fixture_replica(const struct fixture *f, const char *service)
{
    const struct cluster *c = sim_cluster(f->sim);
    for (size_t i = 0; i < c->n_live; i++)
        if (!strcmp(f->scenario->services[c->replicas[c->live[i]].service].name, service))
            return c->live[i];
    return -1;
}

const char *fixture_host(const struct fixture *f, int replica)
{
    int host = replica < 0 ? -1 : sim_cluster(f->sim)->replicas[replica].host;
    return host < 0 ? "" : f->scenario->hosts[host].name;
}

int fixture_move(struct fixture *f, int64_t seq, const char *service, const char *target,
                 struct err *err)
{
    struct sim_answer answer;
    int id = fixture_replica(f, service);
    struct sim_move move = {
        {1, seq}, service, sim_cluster(f->sim)->replicas[id].name, NULL, target};
    return sim_place(f->sim, &move, &answer, err);
}
