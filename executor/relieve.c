/* relieve.c - between requests, what earlier moves left in the cluster and now keeps replicas from
 * running is taken off (interfaces.md 1.9 rule 3), as far as the budget of moves lets it: of apps
 * that act, while nobody has paused them and no request is under way. Of apps that propose it is
 * told. */
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

/* --- what is held back: told once, not at every look, and when it is over --- */

static struct held_back *held_find(struct kept_app *app, const struct relief *relief)
{
    for (size_t i = 0; i < app->n_held; i++)
        if (app->held[i].cycle == relief->cycle && app->held[i].seq == relief->seq &&
            strcmp(app->held[i].service, relief->service) == 0)
            return &app->held[i];
    return NULL;
}

static void held_drop(struct kept_app *app, struct held_back *held)
{
    free(held->service);
    free(held->text);
    *held = app->held[--app->n_held];
}

static bool is_news(struct kept_app *app, const struct relief *relief, const char *text)
{
    struct held_back *held = held_find(app, relief);
    if (relief->done) {
        if (held)
            held_drop(app, held);
        return true;
    }
    if (!held) {
        held = ARRAY_PUSH(app->held, app->n_held);
        *held =
            (struct held_back){mem_strdup(relief->service), NULL, relief->cycle, relief->seq, true};
    }
    held->seen = true;
    if (held->text && strcmp(held->text, text) == 0)
        return false;
    free(held->text);
    held->text = mem_strdup(text);
    return true;
}

static void held_sweep(struct kept *kept, struct kept_app *app)
{
    for (size_t i = app->n_held; i > 0; i--) {
        struct held_back *held = &app->held[i - 1];
        if (held->seen)
            continue;
        AUTO_FREE char *text =
            mem_printf("%s: the pin of move %lld/%lld is in nobody's way any more", held->service,
                       (long long)held->cycle, (long long)held->seq);
        kept_say(kept, app->scope.name, "relief", text);
        held_drop(app, held);
    }
}

/* --- telling --- */

static char *text_of(const struct kept_app *app, const struct relief *r)
{
    AUTO_FREE char *pin = mem_printf("%s: the pin of move %lld/%lld", r->service,
                                     (long long)r->cycle, (long long)r->seq);
    if (r->done)
        return mem_printf("%s is taken off, %lld replicas restart: %s", pin, (long long)r->restarts,
                          r->why);
    if (app->relief.look_only)
        return mem_printf("%s would be taken off by an app that acts, and %lld replicas restart; "
                          "`remap release %s %s` does it: %s",
                          pin, (long long)r->restarts, app->scope.name, r->service, r->why);
    return mem_printf(
        "%s should be taken off, but %lld replicas would restart, more than the budget "
        "leaves: %s",
        pin, (long long)r->restarts, r->why);
}

static void tell(void *arg, const struct relief *relief)
{
    const struct telling *t = arg;
    struct kept *kept = t->kept;
    AUTO_FREE char *text = text_of(t->app, relief);
    if (!is_news(t->app, relief, text))
        return;
    kept_say(kept, t->app->scope.name, "relief", text);
    const struct announcement what = {.cycle = relief->cycle,
                                      .seq = relief->seq,
                                      .service = relief->service,
                                      .state = relief->done ? "pin taken off" : "pin does harm",
                                      .reason = relief->why,
                                      .bad = !relief->done};
    kept_tell(kept, &what);
}

/* --- looking --- */

/* The budget is that of one cycle, for each interval of the app. */
static struct relief_budget budget_of(struct kept_app *app)
{
    int64_t now = clock_mono_ms();
    if (now >= app->budget_until_ms) {
        app->budget_until_ms = now + app->relief.interval_ms;
        app->restarted = 0;
    }
    int64_t left = app->relief.max_restarts - app->restarted;
    return (struct relief_budget){app->relief.max_restarts < 0 ? -1
                                  : left > 0                   ? left
                                                               : 0,
                                  app->relief.max_service_restarts, app->relief.look_only};
}

static void relieve_app(struct kept *kept, struct kept_app *app)
{
    struct err err = ERR_INIT;
    struct telling telling = {kept, app};
    struct relief_budget budget = budget_of(app);
    int64_t before = budget.restarts;
    for (size_t i = 0; i < app->n_held; i++)
        app->held[i].seen = false;
    if (kept->orchestrator->relieve(kept->relief, &app->scope, &budget, tell, &telling, &err) < 0)
        log_warn("relief: %s: %s", app->scope.name, err.text);
    else
        held_sweep(kept, app);
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

void kept_relieve_go_on(struct kept *kept, struct kept_app *app)
{
    int64_t latest_ms = clock_mono_ms() + app->relief.interval_ms;
    for (size_t i = 0; i < kept->n_earlier; i++) {
        struct kept_app *before = &kept->earlier[i];
        if (strcmp(before->scope.name, app->scope.name) != 0)
            continue;
        app->held = steal(before->held);
        app->n_held = before->n_held;
        app->restarted = before->restarted;
        app->budget_until_ms = before->budget_until_ms;
        if (app->relief.wanted && app->budget_until_ms > latest_ms)
            app->budget_until_ms = latest_ms;
        before->n_held = 0;
        return;
    }
}

void kept_relieve_end(struct kept *kept)
{
    if (kept->relief)
        kept->orchestrator->close(steal(kept->relief));
}
