/* cli_offline.c - commands that need no daemon and no store: they run one stage as a filter.
 * `check` reaches every source, `analyze` computes affinities, `import` turns recordings into a
 * model document. (`plan` is in cli_plan.c.) */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/base/clock.h"
#include "model/base/file.h"
#include "model/base/json.h"
#include "model/manager/cli.h"
#include "model/manager/cli_offline.h"
#include "model/manager/configure.h"
#include "model/manager/filter.h"
#include "model/manager/request.h"
#include "model/manager/table.h"
#include "model/model_json.h"

int offline_model(const struct cli *cli, struct offline_model *out, struct err *err)
{
    const char *path = cli_opt(cli, "model");
    if (!path)
        return err_set(err, ERR_USAGE, "--model FILE is missing (- reads standard input)");
    const char *name = strcmp(path, "-") == 0 ? "standard input" : path;
    if (file_read(path, json_limits_document.max_bytes, &out->text, err)) {
        if (err->kind == ERR_NOT_FOUND || err->kind == ERR_IO)
            err->kind = ERR_INPUT; /* a document that cannot be read: exit 2 */
        return -1;
    }
    out->model = model_decode(out->text.data, out->text.size, err);
    return out->model ? 0 : err_prefix(err, "%s", name);
}

void offline_model_wipe(struct offline_model *model)
{
    model_free(model->model);
    buf_wipe(&model->text);
}

int offline_analyze(const struct offline_model *model, double weight, struct buf *result,
                    struct err *err)
{
    AUTO_BUF struct buf request = BUF_INIT;
    int exit_code;
    request_analyze(weight, model->text.data, model->text.size, &request);
    return stage_filter_run(PARTY_ANALYZER, MSG_ANALYZE, request.data, request.size,
                            isatty(STDERR_FILENO), result, &exit_code, err);
}

/* --- analyze --- */

static void put_affinities(const struct model *model, const char *title,
                           const struct affinity *rows, size_t n, struct buf *out)
{
    static const char *const titles[] = {">degree", ">messages", ">bytes", "between", "and",
                                         NULL};
    AUTO(table) struct table *table = table_new(titles);
    for (size_t i = 0; i < n; i++) {
        table_printf(table, "%.6f", rows[i].degree);
        table_printf(table, "%lld", (long long)rows[i].count);
        if (rows[i].bytes < 0)
            table_cell(table, NULL);
        else
            table_printf(table, "%lld", (long long)rows[i].bytes);
        table_cell(table, model_end_name(model, rows[i].level, rows[i].a));
        table_cell(table, model_end_name(model, rows[i].level, rows[i].b));
    }
    buf_printf(out, "\n%s\n", title);
    table_put(table, 2, out);
}

/* Are the two lists the same? Then (one replica each, or service rows) one is enough. */
static bool same_rows(const struct model *model, const struct analysis *a)
{
    if (a->n_rows != a->n_service_rows)
        return false;
    for (size_t i = 0; i < a->n_rows; i++)
        if (strcmp(model_end_name(model, a->rows[i].level, a->rows[i].a),
                   model_end_name(model, LEVEL_SERVICE, a->service_rows[i].a)) != 0 ||
            strcmp(model_end_name(model, a->rows[i].level, a->rows[i].b),
                   model_end_name(model, LEVEL_SERVICE, a->service_rows[i].b)) != 0)
            return false;
    return true;
}

static int analyze_text(const struct model *model, const struct buf *result, struct err *err)
{
    AUTO_JSON json_t *tree = json_parse(result->data, result->size, &json_limits_document, err);
    if (!tree)
        return -1;
    struct jval root = jval_root(tree);
    AUTO(analysis) struct analysis *a = analysis_decode_value(&root, model, err);
    if (!a)
        return -1;
    AUTO_BUF struct buf out = BUF_INIT;
    buf_printf(&out, "%lld messages", (long long)a->count);
    if (a->bytes >= 0)
        buf_printf(&out, ", %lld bytes", (long long)a->bytes);
    else
        buf_puts(&out, ", no sizes known");
    buf_printf(&out, "; weight %g", a->weight_used);
    if (a->ignored)
        buf_printf(&out, "; %lld messages of instances to themselves ignored",
                   (long long)a->ignored);
    buf_puts(&out, "\n");
    bool same = same_rows(model, a);
    bool services = a->n_rows && a->rows[0].level == LEVEL_SERVICE;
    put_affinities(model, services || same ? "Affinities:" : "Affinities of instances:", a->rows,
                   a->n_rows, &out);
    if (!same && !services)
        put_affinities(model, "Affinities of services:", a->service_rows, a->n_service_rows,
                       &out);
    fputs(out.data, stdout);
    return 0;
}

static int analyze_run(struct cli *cli, struct err *err)
{
    __attribute__((cleanup(offline_model_wipe))) struct offline_model model = {0};
    AUTO_BUF struct buf result = BUF_INIT;
    double weight = 0.5;
    if (cli_opt_real(cli, "weight", 0, 1, &weight, err) || offline_model(cli, &model, err))
        return -1;
    if (model.model->has_affinities)
        return err_set(err, ERR_INPUT, "the document gives affinities already; analyze wants "
                       "messages");
    if (offline_analyze(&model, weight, &result, err))
        return -1;
    return cli->output == CLI_JSON ? cli_print_json(&result, err)
                                   : analyze_text(model.model, &result, err);
}

static const struct cli_option analyze_options[] = {
    {'m', "model", "FILE", "the model document; - reads standard input", false},
    {'w', "weight", "W", "w of Eq. 1, 0 to 1: 1 counts messages only, 0 bytes only; default 0.5",
     false},
    {0, NULL, NULL, NULL, false},
};

const struct cli_command cmd_analyze = {
    .name = "analyze",
    .summary = "the affinities of a model document, strongest first",
    .examples = "remap analyze --model model.json\n"
                "remap import --traces spans.json | remap analyze --model - --weight 1 -o json\n",
    .options = analyze_options,
    .outputs = CLI_TEXT | CLI_JSON,
    .run = analyze_run,
};

/* --- import --- */

/* The stage's own stdin carries the request, so "-" reaches it as a descriptor that it inherits. */
static int put_input(struct buf *out, const char *path, struct err *err)
{
    char inherited[32];
    if (path && strcmp(path, "-") == 0) {
        int fd = dup(STDIN_FILENO);
        if (fd < 0)
            return err_set(err, ERR_IO, "stdin: %s", strerror(errno));
        snprintf(inherited, sizeof inherited, "/dev/fd/%d", fd);
        path = inherited;
    }
    json_put_text(out, path);
    return 0;
}

static int put_path(struct buf *out, const char *key, const char *path, struct err *err)
{
    buf_printf(out, ",\"%s\":", key);
    return put_input(out, path, err);
}

static int put_aliases(const struct cli *cli, struct buf *out, struct err *err)
{
    AUTO_FREE const char **aliases = NULL;
    size_t n = cli_many(cli, "alias", &aliases);
    buf_puts(out, ",\"aliases\":[");
    for (size_t i = 0; i < n; i++) {
        const char *equals = strchr(aliases[i], '=');
        if (!equals || equals == aliases[i] || !equals[1])
            return err_set(err, ERR_USAGE, "--alias wants FOREIGN=SERVICE, not \"%.60s\"",
                           aliases[i]);
        AUTO_FREE char *name = mem_strndup(aliases[i], (size_t)(equals - aliases[i]));
        buf_puts(out, i ? ",{\"name\":" : "{\"name\":");
        json_put_text(out, name);
        buf_puts(out, ",\"value\":");
        json_put_text(out, equals + 1);
        buf_puts(out, "}");
    }
    buf_puts(out, "]");
    return 0;
}

static int import_run(struct cli *cli, struct err *err)
{
    AUTO_FREE const char **traces = NULL;
    AUTO_BUF struct buf request = BUF_INIT, result = BUF_INIT;
    size_t n = cli_many(cli, "traces", &traces);
    int exit_code = 0;
    if (n == 0 && !cli_opt(cli, "cluster"))
        return err_set(err, ERR_USAGE, "nothing to import: give --traces or --cluster");
    buf_puts(&request, "{\"v\":1,\"traces\":[");
    for (size_t i = 0; i < n; i++) {
        buf_puts(&request, i ? "," : "");
        if (put_input(&request, traces[i], err))
            return -1;
    }
    buf_puts(&request, "],\"app\":");
    json_put_text(&request, cli_opt(cli, "app"));
    if (put_path(&request, "cluster", cli_opt(cli, "cluster"), err) ||
        put_path(&request, "resources", cli_opt(cli, "resources"), err) ||
        put_aliases(cli, &request, err))
        return -1;
    buf_puts(&request, "}");
    if (stage_filter_run(PARTY_MONITOR, MSG_IMPORT, request.data, request.size,
                         isatty(STDERR_FILENO) || cli_flag(cli, "progress"), &result, &exit_code,
                         err) ||
        cli_print_json(&result, err))
        return -1;
    return exit_code;
}

static const struct cli_option import_options[] = {
    {0, "traces", "FILE", "Zipkin v2, Jaeger or OTLP JSON, also gzip; - is stdin; of any size", true},
    {0, "cluster", "FILE",
     "what `kubectl get nodes,pods,… -A -o json` said (above)", false},
    {0, "resources", "FILE", "samples of CPU and memory of the cluster's pods", false},
    {0, "app", "NAME", "the app that the services belong to", false},
    {0, "alias", "FOREIGN=SERVICE", "a name that the traces use for one of the services", true},
    {0, "progress", NULL, "show progress on stderr also when that is no terminal", false},
    {0, NULL, NULL, NULL, false},
};

const struct cli_command cmd_import = {
    .name = "import",
    .summary = "a model document from recorded traces and cluster listings",
    .about = "The document goes to stdout; what could not be mapped is said on stderr and counted "
             "in\nthe document's `traffic`. The cluster's listing is that of\n  kubectl get "
             "nodes,pods,deployments,replicasets,statefulsets,daemonsets -A -o json",
    .examples = "remap import --traces spans-*.json > model.json\n"
                "remap import --traces spans.json --cluster cluster.json --resources top.json\n",
    .options = import_options,
    .outputs = CLI_TEXT | CLI_JSON,
    .run = import_run,
};

/* --- check --- */

struct check_run {
    struct table *table;
    struct buf json;
    struct buf webhooks; /* rows as JSON; empty: none configured */
    struct buf remedies;
    int n_unreachable;
    bool misconfigured; /* by what the adapters say */
};

static const char *optional_text(const struct jval *object, const char *key)
{
    struct jval v = jval_get(object, key);
    return v.value && json_is_string(v.value) ? json_string_value(v.value) : NULL;
}

static void check_source_row(struct check_run *run, const char *app, const struct jval *source)
{
    struct jval reachable = jval_get(source, "reachable"), newest = jval_get(source, "newest_ms");
    bool ok = reachable.value && json_is_true(reachable.value);
    const char *problem = optional_text(source, "problem");
    const char *warning = optional_text(source, "warning");
    const char *remedy = optional_text(source, "remedy");
    char at[CLOCK_TEXT_SIZE];
    run->n_unreachable += !ok || problem;
    table_cell(run->table, app);
    table_cell(run->table, optional_text(source, "kind"));
    table_cell(run->table, optional_text(source, "name"));
    table_cell(run->table, optional_text(source, "type"));
    table_cell(run->table, problem ? "FAILS" : warning ? "warns" : ok ? "ok" : "unreachable");
    table_cell(run->table, optional_text(source, "version"));
    table_cell(run->table, newest.value && json_is_integer(newest.value)
                               ? clock_iso(json_integer_value(newest.value), at)
                               : NULL);
    table_cell(run->table, optional_text(source, "seen"));
    if (problem || warning)
        buf_printf(&run->remedies, "\n%s: %s source \"%s\": %s\n%s%s%s", app,
                   optional_text(source, "kind"), optional_text(source, "name"),
                   problem ? problem : warning,
                   remedy ? "  what helps: " : "", remedy ? remedy : "", remedy ? "\n" : "");
}

/* A row for each source of an answer, and these sources as JSON; NULL and *err. Caller frees. */
static char *check_rows(struct check_run *run, const char *app, const struct buf *answer,
                        struct err *err)
{
    AUTO_JSON json_t *tree = json_parse(answer->data, answer->size, &json_limits_document, err);
    struct jval root = jval_root(tree), sources = jval_get(&root, "sources");
    size_t n;
    if (!tree || jval_array(&sources, SIZE_MAX, &n, err))
        return NULL;
    for (size_t i = 0; i < n; i++) {
        struct jval source = jval_at(&sources, i);
        check_source_row(run, app, &source);
    }
    return json_dumps(sources.value, JSON_COMPACT);
}

static int check_app(const struct config *config, const struct config_app *app,
                     struct check_run *run, struct err *err)
{
    AUTO_BUF struct buf request = BUF_INIT, result = BUF_INIT;
    int exit_code;
    int64_t to = clock_wall_ms() - app->grace_ms;
    request_check(config, app, to - app->window_ms, to, &request);
    if (stage_filter_run(PARTY_MONITOR, MSG_CHECK, request.data, request.size, false, &result,
                         &exit_code, err))
        return err_prefix(err, "%s", app->name);
    run->misconfigured = run->misconfigured || exit_code == 2;
    AUTO_FREE char *text = check_rows(run, app->name, &result, err);
    if (!text)
        return -1;
    buf_puts(&run->json, run->json.size ? ",{\"app\":" : "{\"app\":");
    json_put_text(&run->json, app->name);
    buf_printf(&run->json, ",\"sources\":%s}", text);
    return 0;
}

/* Its listener and the secrets that it needs; the monitor looks, because it will. */
static int check_webhooks(const struct config *config, struct check_run *run, struct err *err)
{
    AUTO_BUF struct buf request = BUF_INIT, result = BUF_INIT;
    int exit_code;
    if (!config->webhooks)
        return 0;
    configure_build(config, &request);
    if (stage_filter_run(PARTY_MONITOR, MSG_CONFIGURE, request.data, request.size, false, &result,
                         &exit_code, err))
        return err_prefix(err, "webhooks");
    AUTO_FREE char *text = check_rows(run, "all", &result, err);
    if (!text)
        return -1;
    buf_puts(&run->webhooks, text);
    return 0;
}

static int check_apps(const struct cli *cli, const struct config *config, struct check_run *run,
                      struct err *err)
{
    const char *only = cli_opt(cli, "app");
    if (only && !config_app(config, only))
        return err_set(err, ERR_USAGE, "%s has no app \"%s\"", config->path, only);
    for (size_t i = 0; i < config->n_apps; i++)
        if ((!only || strcmp(only, config->apps[i].name) == 0) &&
            check_app(config, &config->apps[i], run, err))
            return -1;
    return 0;
}

static int check_print(const struct cli *cli, const struct config *config, struct check_run *run,
                       struct err *err)
{
    AUTO_BUF struct buf out = BUF_INIT;
    if (cli->output == CLI_JSON) {
        buf_puts(&out, "{\"v\":1,\"config\":");
        json_put_text(&out, config->path);
        buf_printf(&out, ",\"ok\":%s,\"apps\":[%s],\"webhooks\":%s}",
                   run->n_unreachable ? "false" : "true", run->json.data ? run->json.data : "",
                   run->webhooks.data ? run->webhooks.data : "null");
        return cli_print_json(&out, err);
    }
    buf_printf(&out, "%s is valid: %zu app%s, %zu source%s\n\n", config->path, config->n_apps,
               config->n_apps == 1 ? "" : "s", config->n_sources,
               config->n_sources == 1 ? "" : "s");
    table_put(run->table, 0, &out);
    if (run->remedies.size)
        buf_puts(&out, run->remedies.data);
    fputs(out.data, stdout);
    return 0;
}

static int check_run(struct cli *cli, struct err *err)
{
    static const char *const titles[] = {"app",     "for",    "source", "adapter", "state",
                                         "version", "newest", "sees",   NULL};
    if (cli_flag(cli, "keys")) {
        AUTO_BUF struct buf text = BUF_INIT;
        config_reference(&text);
        fputs(text.data, stdout);
        return 0;
    }
    const struct config *config;
    if (cli_config(cli, &config, err))
        return -1;
    AUTO(table) struct table *table = table_new(titles);
    struct check_run run = {.table = table};
    int rc = check_apps(cli, config, &run, err);
    if (rc == 0)
        rc = check_webhooks(config, &run, err);
    if (rc == 0)
        rc = check_print(cli, config, &run, err);
    buf_wipe(&run.json);
    buf_wipe(&run.webhooks);
    buf_wipe(&run.remedies);
    return rc ? rc : run.misconfigured ? 2 : run.n_unreachable ? 1 : 0;
}

static const struct cli_option check_options[] = {
    {0, "app", "NAME", "only the sources of this app", false},
    {0, "keys", NULL, "list every configuration key with its default, and exit", false},
    {0, NULL, NULL, NULL, false},
};

const struct cli_command cmd_check = {
    .name = "check",
    .summary = "validates the configuration and reaches every source",
    .about = "Exit 0 when everything answers, 1 when a source does not, 2 when the configuration "
             "is wrong.",
    .examples = "remap check\nremap check -c etc/remap.yaml -o json\nremap check --keys\n",
    .options = check_options,
    .common = CLI_CONFIG,
    .outputs = CLI_TEXT | CLI_JSON,
    .run = check_run,
};
