/* relieve.c - between requests, what earlier moves left in the cluster and now keeps replicas from
 * running is taken off (interfaces.md 1.9 rule 3), as far as the budget of moves lets it: of apps
 * that act, while nobody has paused them and no request is under way. */
#include <stdlib.h>
#include <string.h>

#include "executor/keep_internal.h"
#include "model/base/clock.h"
#include "model/base/log.h"

#define LOOK_MS 20000 /* a pod that waits has waited for 30 s by default before it counts */

struct telling {
    struct kept *kept;
    struct kept_app *app;
};

/* What is held back is told once, not at every look. */
static bool is_news(struct kept_app *app, const struct relief *relief, const char *text)
{
    if (relief->done) {
        free(steal(app->held_back));
        return true;
    }
    if (app->held_back && strcmp(app->held_back, text) == 0)
        return false;
    free(app->held_back);
    app->held_back = mem_strdup(text);
    return true;
}

static void tell(void *arg, const struct relief *relief)
{
    const struct telling *t = arg;
    struct kept *kept = t->kept;
    AUTO_FREE char *text =
        relief->done
            ? mem_printf("%s: the pin of move %lld/%lld is taken off, %lld replicas restart: %s",
                         relief->service, (long long)relief->cycle, (long long)relief->seq,
                         (long long)relief->restarts, relief->why)
            : mem_printf("%s: the pin of move %lld/%lld should be taken off, but %lld replicas would "
                         "restart, more than the budget leaves: %s",
                         relief->service, (long long)relief->cycle, (long long)relief->seq,
                         (long long)relief->restarts, relief->why);
    if (!is_news(t->app, relief, text))
        return;
    kept_say(kept, t->app->scope.name, "relief", text);
    const struct announcement what = {.cycle = relief->cycle,
                                      .seq = relief->seq,
                                      .service = relief->service,
                                      .state = relief->done ? "pin taken off" : "pin does harm",
                                      .reason = relief->why,
                                      .bad = !relief->done};
    if (kept->orchestrator->keeper->announce)
        kept->orchestrator->keeper->announce(kept->ctx, &what);
}

/* The budget is that of one cycle, for each interval of the app. */
static struct relief_budget budget_of(struct kept_app *app)
{
    int64_t now = clock_mono_ms();
    if (now >= app->budget_until_ms) {
        app->budget_until_ms = now + app->relief.interval_ms;
        app->restarted = 0;
    }
    int64_t left = app->relief.max_restarts - app->restarted;
    return (struct relief_budget){app->relief.max_restarts < 0 ? -1 : left > 0 ? left : 0,
                                  app->relief.max_service_restarts};
}

static void relieve_app(struct kept *kept, struct kept_app *app)
{
    struct err err = ERR_INIT;
    struct telling telling = {kept, app};
    struct relief_budget budget = budget_of(app);
    int64_t before = budget.restarts;
    if (kept->orchestrator->relieve(kept->relief, &app->scope, &budget, tell, &telling, &err) < 0)
        log_warn("relief: %s: %s", app->scope.name, err.text);
    app->restarted += before - budget.restarts;
}

static bool open_relief(struct kept *kept)
{
    struct err err = ERR_INIT;
    if (kept->relief)
        return true;
    if (kept->orchestrator->open(&kept->source, &kept->relief, &err) < 0) {
        log_warn("relief: %s", err.text);
        return false;
    }
    if (kept->orchestrator->attach)
        kept->orchestrator->attach(kept->relief, kept->ctx);
    return true;
}

void kept_relieve(struct kept *kept)
{
    int64_t now = clock_mono_ms();
    if (!kept->orchestrator->relieve || !kept->adopted || !kept->configured || kept->users > 0 ||
        kept->state.paused || now < kept->relief_ms)
        return;
    kept->relief_ms = now + LOOK_MS;
    for (size_t i = 0; i < kept->n_apps; i++)
        if (kept->apps[i].relief.wanted && open_relief(kept))
            relieve_app(kept, &kept->apps[i]);
}

void kept_relieve_end(struct kept *kept)
{
    if (kept->relief)
        kept->orchestrator->close(steal(kept->relief));
}
