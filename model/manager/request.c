/* request.c - writes the requests that stages answer (model/wire/README.md). */
#include "model/manager/request.h"

#include "model/base/json.h"
#include "model/model_json.h"

static void put_texts(char *const *texts, size_t n, struct buf *out)
{
    buf_puts(out, "[");
    for (size_t i = 0; i < n; i++) {
        buf_puts(out, i ? "," : "");
        json_put_text(out, texts[i]);
    }
    buf_puts(out, "]");
}

static void put_options(const struct config_option *options, size_t n, struct buf *out)
{
    buf_puts(out, "[");
    for (size_t i = 0; i < n; i++) {
        buf_puts(out, i ? ",{\"name\":" : "{\"name\":");
        json_put_text(out, options[i].name);
        buf_puts(out, ",\"value\":");
        json_put_text(out, options[i].value);
        buf_puts(out, "}");
    }
    buf_puts(out, "]");
}

void request_source(const struct config_source *source, struct buf *out)
{
    buf_puts(out, "{\"name\":");
    json_put_text(out, source->name);
    buf_puts(out, ",\"type\":");
    json_put_text(out, source->type);
    buf_puts(out, ",\"options\":");
    put_options(source->options, source->n_options, out);
    buf_puts(out, "}");
}

void request_app(const struct config_app *app, struct buf *out)
{
    buf_puts(out, "{\"name\":");
    json_put_text(out, app->name);
    buf_puts(out, ",\"namespaces\":");
    put_texts(app->namespaces, app->n_namespaces, out);
    buf_puts(out, ",\"services\":");
    put_texts(app->services, app->n_services, out);
    buf_puts(out, "}");
}

static void put_sources(const struct config *config, char *const *names, size_t n,
                        struct buf *out)
{
    buf_puts(out, "[");
    for (size_t i = 0; i < n; i++) {
        buf_puts(out, i ? "," : "");
        request_source(config_source(config, names[i]), out); /* config_parse() saw to it */
    }
    buf_puts(out, "]");
}

static void put_collect(const struct config *config, const struct config_app *app, int64_t from_ms,
                        int64_t to_ms, bool check, struct buf *out)
{
    buf_puts(out, "{\"v\":1,\"app\":");
    request_app(app, out);
    buf_printf(out, ",\"from_ms\":%lld,\"to_ms\":%lld,\"sources\":{\"cluster\":",
               (long long)from_ms, (long long)to_ms);
    request_source(config_source(config, app->cluster), out);
    buf_puts(out, ",\"metrics\":");
    put_sources(config, app->metrics, app->n_metrics, out);
    buf_puts(out, ",\"messages\":");
    put_sources(config, app->messages, app->n_messages, out);
    if (check && app->orchestrator) {
        buf_puts(out, ",\"orchestrator\":");
        request_source(config_source(config, app->orchestrator), out);
    }
    buf_puts(out, "},\"aliases\":");
    put_options(app->aliases, app->n_aliases, out);
    buf_puts(out, "}");
}

void request_collect(const struct config *config, const struct config_app *app, int64_t from_ms,
                     int64_t to_ms, struct buf *out)
{
    put_collect(config, app, from_ms, to_ms, false, out);
}

void request_check(const struct config *config, const struct config_app *app, int64_t from_ms,
                   int64_t to_ms, struct buf *out)
{
    put_collect(config, app, from_ms, to_ms, true, out);
}

void request_analyze(double weight, const char *model, size_t size, struct buf *out)
{
    buf_puts(out, "{\"v\":1,\"weight\":");
    json_put_real(out, weight);
    buf_puts(out, ",\"model\":");
    buf_add(out, model, size);
    buf_puts(out, "}");
}

static void put_limit(const char *key, int64_t value, struct buf *out)
{
    buf_printf(out, ",\"%s\":", key);
    if (value < 0)
        buf_puts(out, "null");
    else
        json_put_int(out, value);
}

void request_plan_options(const struct plan_options *options, struct buf *out)
{
    buf_puts(out, "{\"planner\":");
    json_put_text(out, options->planner);
    buf_puts(out, ",\"objective\":");
    json_put_text(out, objective_name(options->objective));
    buf_puts(out, ",\"granularity\":");
    json_put_text(out, granularity_name(options->granularity));
    buf_printf(out, ",\"time_limit_ms\":%lld", (long long)options->time_limit_ms);
    put_limit("max_moves", options->max_moves, out);
    buf_printf(out, ",\"move_stateful\":%s,\"frontier\":%s,\"seed\":%lld",
               options->move_stateful ? "true" : "false", options->frontier ? "true" : "false",
               (long long)options->seed);
    put_limit("iterations", options->iterations, out);
    buf_puts(out, ",\"min_gain\":");
    json_put_real(out, options->min_gain);
    buf_puts(out, "}");
}

void request_plan(const char *options, const char *model, size_t model_size, const char *analysis,
                  size_t analysis_size, struct buf *out)
{
    buf_puts(out, "{\"v\":1,\"options\":");
    buf_puts(out, options);
    buf_puts(out, ",\"model\":");
    buf_add(out, model, model_size);
    buf_puts(out, ",\"analysis\":");
    if (analysis)
        buf_add(out, analysis, analysis_size);
    else
        buf_puts(out, "null");
    buf_puts(out, "}");
}
