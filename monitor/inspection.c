/* inspection.c - runs the adapters of one application and brings what they found into one model
 * (paper §6.1, Fig. 6; design.md 6). */
#include "monitor/inspection.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/clock.h"
#include "adapters/identity.h"
#include "monitor/merge.h"
#include "monitor/sessions.h"

static int no_adapter(const struct source *source, const char *kind, const char *const known[],
                      struct err *err)
{
    const char *near = names_nearest(source->type, known);
    return err_set(err, ERR_CONFIG, "source %s: there is no %s adapter %s%s%s%s", source->name, kind,
                   source->type, near ? "; did you mean " : "", near ? near : "",
                   near ? "?" : "");
}

/* The names of an array of adapters, for the nearest one. */
#define ADAPTER_NAMES(array, out)                                     \
    size_t n_names = 0;                                               \
    while ((array)[n_names])                                          \
        n_names++;                                                    \
    AUTO_FREE const char **out = mem_array(n_names + 1, sizeof *out); \
    for (size_t i = 0; i < n_names; i++)                              \
        (out)[i] = (array)[i]->name

static int find_cluster(const struct source *source, const struct cluster_adapter **out,
                        struct err *err)
{
    *out = cluster_adapter_find(source->type);
    if (*out)
        return source_check(source, (*out)->options, err);
    ADAPTER_NAMES(cluster_adapters, known);
    return no_adapter(source, "cluster", known, err);
}

static int find_metrics(const struct source *source, const struct metrics_adapter **out,
                        struct err *err)
{
    *out = metrics_adapter_find(source->type);
    if (*out)
        return source_check(source, (*out)->options, err);
    ADAPTER_NAMES(metrics_adapters, known);
    return no_adapter(source, "metrics", known, err);
}

static int find_messages(const struct source *source, const struct message_adapter **out,
                         struct err *err)
{
    *out = message_adapter_find(source->type);
    if (*out)
        return source_check(source, (*out)->options, err);
    ADAPTER_NAMES(message_adapters, known);
    return no_adapter(source, "messages", known, err);
}

static int run_cluster(const struct collect *collect, struct inspection *in, struct err *err)
{
    const struct source *source = &collect->cluster;
    const struct cluster_adapter *adapter;
    void *ctx;
    if (find_cluster(source, &adapter, err))
        return -1;
    bool stays = collect->sessions && adapter->tend;
    int rc = stays ? sessions_cluster(collect->sessions, adapter, source, &collect->app, &ctx, err)
                   : adapter->open(source, &ctx, err);
    if (rc == 0) {
        rc = adapter->inspect(ctx, &collect->app, in, err);
        if (!stays)
            adapter->close(ctx);
    }
    return rc ? err_prefix(err, "%s", source->name) : 0;
}

static int run_metrics(const struct source *source, const struct collect *collect,
                       struct inspection *in, struct err *err)
{
    const struct metrics_adapter *adapter;
    void *ctx;
    if (find_metrics(source, &adapter, err))
        return -1;
    bool stays = collect->sessions && adapter->tend;
    int rc = stays ? sessions_metrics(collect->sessions, adapter, source, &ctx, err)
                   : adapter->open(source, &ctx, err);
    if (rc == 0) {
        rc = adapter->measure(ctx, &collect->app, &collect->window, in, err);
        if (!stays)
            adapter->close(ctx);
    }
    return rc ? err_prefix(err, "%s", source->name) : 0;
}

/* Spans know of no source: several of an app may each say what they have not seen. */
static void name_source(struct inspection *in, size_t first, const char *source)
{
    static const char *const kinds[] = {"never-traced", "unknown-size"};
    for (size_t i = first; i < in->n_notes; i++)
        for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
            if (strcmp(in->notes[i].kind, kinds[k]) == 0) {
                char *text = mem_printf("%s: %s", source, in->notes[i].text);
                free(in->notes[i].text);
                in->notes[i].text = text;
            }
}

static int run_messages(const struct source *source, const struct collect *collect,
                        struct inspection *in, struct err *err)
{
    const struct message_adapter *adapter;
    void *ctx;
    if (find_messages(source, &adapter, err))
        return -1;
    int rc = adapter->open(source, &ctx, err);
    if (rc == 0) {
        size_t first = in->n_notes;
        rc = adapter->trace(ctx, &collect->app, &collect->window, in, err);
        name_source(in, first, source->name);
        adapter->close(ctx);
    }
    return rc ? err_prefix(err, "%s", source->name) : 0;
}

/* Of several sources of a kind one may fail, and the cycle goes on with the others; a wrong
 * configuration is never passed over. */
struct attempts {
    size_t answered;
    struct err first; /* of those that failed */
};

static bool passed_over(struct attempts *attempts, const struct err *failure)
{
    if (failure->kind == ERR_CONFIG || failure->kind == ERR_INTERNAL)
        return false;
    if (attempts->first.kind == ERR_NONE)
        attempts->first = *failure;
    return true;
}

/* None answered: the first one's error is the inspection's. */
static int attempts_end(const struct attempts *attempts, size_t n, struct err *err)
{
    if (attempts->answered || !n)
        return 0;
    *err = attempts->first;
    return -1;
}

static int run_all_metrics(const struct collect *collect, inspection_step_f *step, void *arg,
                           int64_t *done, struct inspection *in, struct err *err)
{
    struct attempts attempts = {0};
    for (size_t i = 0; i < collect->n_metrics; i++) {
        struct err failure = ERR_INIT;
        if (step(arg, (*done)++, err))
            return -1;
        if (!run_metrics(&collect->metrics[i], collect, in, &failure)) {
            attempts.answered++;
            continue;
        }
        if (!passed_over(&attempts, &failure)) {
            *err = failure;
            return -1;
        }
        inspection_note(in, "source-failed", 1, "%s", failure.text);
    }
    return attempts_end(&attempts, collect->n_metrics, err);
}

static int run_all_messages(const struct collect *collect, inspection_step_f *step, void *arg,
                            int64_t *done, struct inspection *in, struct err *err)
{
    struct attempts attempts = {0};
    struct merge merge;
    int rc = 0;
    merge_begin(&merge, in);
    for (size_t i = 0; i < collect->n_messages && rc == 0; i++) {
        struct err failure = ERR_INIT;
        rc = step(arg, (*done)++, err);
        if (rc)
            break;
        bool ok = !run_messages(&collect->messages[i], collect, in, &failure);
        merge_source(&merge, ok);
        attempts.answered += ok;
        if (!ok && !passed_over(&attempts, &failure)) {
            *err = failure;
            rc = -1;
        } else if (!ok) {
            inspection_note(in, "source-failed", 1, "%s", failure.text);
        }
    }
    if (rc == 0)
        rc = attempts_end(&attempts, collect->n_messages, err);
    if (rc == 0 && collect->n_messages)
        merge_finish(&merge);
    merge_wipe(&merge);
    return rc;
}

static int run_all(const struct collect *collect, inspection_step_f *step, void *arg,
                   struct inspection *in, struct err *err)
{
    int64_t done = 0;
    if (step(arg, done++, err) || run_cluster(collect, in, err) ||
        run_all_metrics(collect, step, arg, &done, in, err) ||
        run_all_messages(collect, step, arg, &done, in, err))
        return -1;
    return step(arg, done, err);
}

/* Notes become rows of the store in every cycle; the largest few say what is wrong. All names are
 * in the model's traffic member. */
#define MAX_UNMAPPED_NOTES 20

static void note_unmapped(struct inspection *in, struct identity *identity)
{
    size_t n;
    const struct unmapped *names = identity_unmapped_names(identity, &n);
    if (n > MAX_UNMAPPED_NOTES)
        inspection_note(in, "unmapped", (int64_t)n,
                        "%zu names lead to no service or instance; the first %d follow", n,
                        MAX_UNMAPPED_NOTES);
    for (size_t i = 0; i < n && i < MAX_UNMAPPED_NOTES; i++)
        inspection_note(in, "unmapped", names[i].count,
                        "%lld messages of %s: no service or instance of that name",
                        (long long)names[i].count, names[i].name);
}

/* Rounded up: kept free is at least what was asked for. */
static int64_t share_of(double share, int64_t capacity)
{
    return (int64_t)ceil(share * (double)capacity);
}

/* Whose a service is: as listed, else as the app says, else its namespace's (interfaces.md 1.9 rule
 * 14). Names without a namespace are of clusters that have none. */
static const char *tenant_of(const struct collect *collect, const char *space)
{
    for (size_t i = 0; space && i < collect->n_tenants; i++)
        if (strcmp(collect->tenants[i].space, space) == 0)
            return collect->tenants[i].tenant;
    return collect->tenant ? collect->tenant : space;
}

static int service_of(const struct model *model, enum level level, int end)
{
    return level == LEVEL_SERVICE ? end : model->instances[end].service;
}

static bool is_foreign(const struct model *model, const struct message *row)
{
    const char *a = model->services[service_of(model, row->level, row->src)].tenant;
    const char *b = model->services[service_of(model, row->level, row->dst)].tenant;
    return a && b && strcmp(a, b) != 0;
}

/* Who may send spans could else choose his neighbours. */
static void set_tenants(const struct collect *collect, struct inspection *in)
{
    struct model *model = in->model;
    const struct message *most = NULL;
    int64_t count = 0;
    for (size_t s = 0; s < model->n_services; s++) {
        const char *name = model->services[s].name, *slash = strchr(name, '/');
        AUTO_FREE char *space = slash ? mem_strndup(name, (size_t)(slash - name)) : NULL;
        free(steal(model->services[s].tenant));
        model->services[s].tenant = mem_strdup(tenant_of(collect, space));
    }
    for (size_t i = 0; i < model->n_messages; i++) {
        const struct message *row = &model->messages[i];
        if (!is_foreign(model, row))
            continue;
        count = count < MODEL_MAX_NUMBER ? count + row->count : count;
        most = !most || row->count > most->count ? row : most;
    }
    if (!most)
        return;
    inspection_note(
        in, "tenants", count,
        "%lld messages between services of different tenants place nothing, most of them %s to %s",
        (long long)count, model->services[service_of(model, most->level, most->src)].name,
        model->services[service_of(model, most->level, most->dst)].name);
}

static void finish_model(const struct collect *collect, struct inspection *in,
                         struct identity *identity)
{
    struct model *model = in->model;
    for (size_t s = 0; s < model->n_services; s++)
        if (!model->services[s].app)
            model->services[s].app = mem_strdup(collect->app.name);
    set_tenants(collect, in);
    model->has_messages = true; /* it was asked for, even where there is none */
    model->from_ms = collect->window.from_ms;
    model->to_ms = collect->window.to_ms;
    if (model->taken_ms < 0) /* the cluster's own clock, where it has one */
        model->taken_ms = clock_wall_ms();
    note_unmapped(in, identity);
    identity_report(identity, &model->traffic);
    if (model->n_messages == 0)
        inspection_note(in, "no-traffic", 0, "no traffic in the window");
    for (size_t h = 0; h < model->n_hosts; h++) {
        struct host *host = &model->hosts[h];
        host->reserve_cpu_millis += share_of(collect->headroom_cpu, host->cpu_cap_millis);
        host->reserve_mem_bytes += share_of(collect->headroom_mem, host->mem_cap_bytes);
    }
}

int inspection_run(const struct collect *collect, inspection_step_f *step, void *arg,
                   struct inspection *in, struct err *err)
{
    AUTO(model) struct model *model = model_new();
    AUTO(identity) struct identity *identity = identity_new(model);
    for (size_t i = 0; i < collect->n_aliases; i++)
        identity_add(identity, IDENTITY_SERVICE, collect->aliases[i].foreign,
                     collect->aliases[i].service);
    struct inspection run = {.model = model,
                             .identity = identity,
                             .received = collect->received,
                             .n_received = collect->n_received};
    int rc = run_all(collect, step, arg, &run, err);
    if (rc == 0) {
        finish_model(collect, &run, identity);
        rc = model_check(model, err);
        if (rc)
            err_prefix(err, "what the sources of %s reported does not fit together",
                       collect->app.name);
    }
    if (rc) {
        inspection_wipe(&run);
        return -1;
    }
    run.model = steal(model);
    run.identity = NULL;
    run.received = NULL;
    run.n_received = 0;
    *in = run;
    return 0;
}

/* What the operator can do about a problem of this kind. */
static const char *remedy(enum err_kind kind)
{
    switch (kind) {
    case ERR_CONFIG:
    case ERR_USAGE:
        return "correct the source in the configuration";
    case ERR_UNREACHABLE:
        return "see that it runs, that its address in the configuration is right and, with https, that "
               "ca_file holds the authority of its certificate";
    case ERR_REFUSED:
        return "see that the credentials are right and may read, and that the address is that of the "
               "right kind of server, http or https";
    case ERR_TIMEOUT:
        return "see whether it is overloaded; ask for a shorter window";
    case ERR_NOT_FOUND:
        return "see that what it names is there: files, the path of its address, metrics or "
               "databases; and that data comes in";
    case ERR_INPUT:
    case ERR_TOO_LARGE:
        return "see that the address leads to the right kind of server and version";
    case ERR_CONFLICT:
        return "try again";
    case ERR_IO:
        return "see the rights and the free space of the files it names";
    case ERR_NONE:
    case ERR_INFEASIBLE:
    case ERR_INTERNAL:
        break;
    }
    return "report this as a bug of remap";
}

static int check_cluster(const struct source *source, const struct app_scope *app,
                         struct source_report *report, struct err *err)
{
    const struct cluster_adapter *adapter;
    void *ctx;
    if (find_cluster(source, &adapter, err) || adapter->open(source, &ctx, err))
        return -1;
    int rc = adapter->check(ctx, app, report, err);
    adapter->close(ctx);
    return rc;
}

static int check_metrics(const struct source *source, const struct app_scope *app,
                         struct source_report *report, struct err *err)
{
    const struct metrics_adapter *adapter;
    void *ctx;
    if (find_metrics(source, &adapter, err) || adapter->open(source, &ctx, err))
        return -1;
    int rc = adapter->check(ctx, app, report, err);
    adapter->close(ctx);
    return rc;
}

static int check_messages(const struct source *source, const struct app_scope *app,
                          struct source_report *report, struct err *err)
{
    const struct message_adapter *adapter;
    void *ctx;
    if (find_messages(source, &adapter, err) || adapter->open(source, &ctx, err))
        return -1;
    int rc = adapter->check(ctx, app, report, err);
    adapter->close(ctx);
    return rc;
}

static void put_member(struct buf *out, const char *key, const char *text)
{
    buf_printf(out, ",\"%s\":", key);
    json_put_text(out, text);
}

static void put_report(struct buf *out, const char *kind, const struct source *source,
                       const struct source_report *report, const struct err *problem)
{
    buf_puts(out, "{\"kind\":");
    json_put_text(out, kind);
    put_member(out, "name", source->name);
    put_member(out, "type", source->type);
    buf_puts(out, ",\"reachable\":");
    json_put_bool(out, report->reachable);
    put_member(out, "version", report->version[0] ? report->version : NULL);
    buf_puts(out, ",\"newest_ms\":");
    if (report->newest_ms >= 0)
        json_put_int(out, report->newest_ms);
    else
        buf_puts(out, "null");
    put_member(out, "seen", report->seen);
    put_member(out, "problem", problem ? problem->text : NULL);
    put_member(out, "remedy", problem ? remedy(problem->kind) : NULL);
    buf_puts(out, "}");
}

typedef int check_source_f(const struct source *source, const struct app_scope *app,
                           struct source_report *report, struct err *err);

struct check_run {
    const struct collect *collect;
    struct buf *out;
    int64_t done;
    int exit_code; /* of the worst problem: the configuration's before the world's */
};

static void check_one(struct check_run *run, const char *kind, check_source_f *check,
                      const struct source *source)
{
    struct source_report report = {.newest_ms = -1};
    struct err problem = ERR_INIT;
    int rc = check(source, &run->collect->app, &report, &problem);
    if (rc && run->exit_code != 2)
        run->exit_code = problem.kind == ERR_CONFIG ? 2 : 1;
    if (run->done++)
        buf_puts(run->out, ",");
    put_report(run->out, kind, source, &report, rc ? &problem : NULL);
}

/* --- what an orchestrator needs --- */

static void put_line(void *arg, const struct check_line *line)
{
    struct check_run *run = arg;
    const char *problem = line->problem[0] ? line->problem : NULL;
    const char *warning = line->warning[0] ? line->warning : NULL;
    if (problem && run->exit_code != 2)
        run->exit_code = 1;
    buf_puts(run->out, run->done++ ? ",{\"kind\":" : "{\"kind\":");
    json_put_text(run->out, line->what);
    put_member(run->out, "name", run->collect->orchestrator.name);
    put_member(run->out, "type", run->collect->orchestrator.type);
    buf_puts(run->out, ",\"reachable\":true");
    put_member(run->out, "version", NULL);
    put_member(run->out, "newest_ms", NULL);
    put_member(run->out, "seen", line->seen);
    put_member(run->out, "problem", problem);
    put_member(run->out, "warning", warning);
    put_member(run->out, "remedy", problem || warning ? line->remedy : NULL);
    buf_puts(run->out, "}");
}

static void check_orchestrator(struct check_run *run)
{
    const struct source *source = &run->collect->orchestrator;
    const struct orchestrator *adapter = source->name ? orchestrator_find(source->type) : NULL;
    struct err err = ERR_INIT;
    void *ctx;
    if (!adapter || !adapter->check)
        return;
    if (source_check(source, adapter->options, &err) || adapter->open(source, &ctx, &err)) {
        struct check_line line = {.what = "orchestrator", .remedy = remedy(err.kind)};
        snprintf(line.problem, sizeof line.problem, "%.290s", err.text);
        put_line(run, &line);
        return;
    }
    adapter->check(ctx, put_line, run);
    adapter->close(ctx);
}

int inspection_check(const struct collect *collect, inspection_step_f *step, void *arg,
                     struct buf *result, int *exit_code, struct err *err)
{
    struct check_run run = {.collect = collect, .out = result};
    buf_puts(result, "{\"v\":1,\"sources\":[");
    if (step(arg, run.done, err))
        return -1;
    check_one(&run, "cluster", check_cluster, &collect->cluster);
    for (size_t i = 0; i < collect->n_metrics; i++) {
        if (step(arg, run.done, err))
            return -1;
        check_one(&run, "metrics", check_metrics, &collect->metrics[i]);
    }
    for (size_t i = 0; i < collect->n_messages; i++) {
        if (step(arg, run.done, err))
            return -1;
        check_one(&run, "messages", check_messages, &collect->messages[i]);
    }
    if (step(arg, run.done, err))
        return -1;
    check_orchestrator(&run);
    buf_puts(result, "]}");
    *exit_code = run.exit_code;
    return 0;
}
