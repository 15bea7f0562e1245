/* given.c - small random models and their options. */
#include "tests/property/given.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

struct given given_make(const struct wild *wild, uint64_t seed)
{
    struct given given = {.model = wild_model(wild, seed), .options = plan_options_default};
    given.analysis = analysis_from_given(given.model);
    given.options.seed = seed;
    given.options.move_stateful = seed % 5 == 1;
    given.options.max_moves = seed % 4 == 2 ? (int64_t)(seed / 4 % 4) : -1;
    given.options.objective = seed % 3 == 2 ? OBJECTIVE_HOSTS : OBJECTIVE_AFFINITY;
    return given;
}

void given_wipe(struct given *given)
{
    model_free(given->model);
    analysis_free(given->analysis);
}

struct plan *plan_by(const struct given *given, const char *planner)
{
    struct err err = ERR_INIT;
    struct plan *plan = NULL;
    struct plan_options options = given->options;
    options.planner = planner;
    if (planner_run(given->model, given->analysis, &options, &plan, &err) < 0)
        fail_msg("%s", err.text);
    return plan;
}

struct wild wild_services(void)
{
    struct wild wild = wild_all;
    wild.instances = 8;
    wild.hosts = 4;
    wild.crowds = true;
    return wild;
}
