/* cli_demo.c - `remap demo`: the whole loop on the embedded cluster. It starts the cluster, writes
 * a configuration like anybody's, runs one cycle of the real engine with its real stages, and shows
 * what the store then says. */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "model/base/clock.h"
#include "model/base/file.h"
#include "model/base/json.h"
#include "model/manager/cli.h"
#include "model/manager/cycle.h"
#include "model/manager/daemon.h"
#include "model/manager/demo_cluster.h"
#include "model/manager/demo_show.h"
#include "model/manager/filter.h"

/* Five simulated minutes to settle in three seconds. */
#define DEMO_SPEED "100"

struct demo {
    struct demo_cluster cluster;
    FILE *progress; /* stdout for people, stderr beside JSON */
    bool colour;
    int64_t began_ms;
    int64_t cycle; /* the first one; 0: none yet */
    bool ended;    /* it has come to its end */
};

/* --- progress --- */

static void demo_line(const struct demo *demo, const char *what, const char *text)
{
    fprintf(demo->progress, "%6.1f s  %-11s %s\n",
            (double)(clock_mono_ms() - demo->began_ms) / 1000, what, text);
    fflush(demo->progress);
}

static const char *state_text(const char *state)
{
    static const struct {
        const char *state, *text;
    } texts[] = {
        {"collecting", "the monitor reads hosts, services, usage and traffic"},
        {"analyzing", "the analyzer computes the affinities of services (Eq. 1)"},
        {"planning", "the planner looks for a better placement"},
        {"executing", "the executor moves one replica after the other"},
        {"settling", "the application gets used to its new places"},
        {"verifying", "predicted is compared with what is measured now"},
        {"undoing", "the moves are put back"},
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (strcmp(texts[i].state, state) == 0)
            return texts[i].text;
    return "";
}

static void on_cycle(void *ctx, int64_t cycle, const char *app, const char *state,
                     const char *reason)
{
    struct demo *demo = ctx;
    (void)app;
    if (!demo->cycle)
        demo->cycle = cycle;
    int known = cycle_state_from_name(state);
    demo->ended = known >= 0 && cycle_ended((enum cycle_state)known);
    demo_line(demo, state, reason && *reason ? reason : state_text(state));
}

static void on_move(void *ctx, int64_t cycle, const struct daemon_move *move)
{
    struct demo *demo = ctx;
    (void)cycle;
    if (strcmp(move->state, "intended") == 0 || strcmp(move->state, "planned") == 0)
        return;
    AUTO_FREE char *text = mem_printf(
        "%s: %s → %s  %s%s%s", move->instance ? move->instance : move->service,
        move->source ? move->source : "nowhere", move->target ? move->target : "-", move->state,
        move->reason && *move->reason ? ": " : "", move->reason ? move->reason : "");
    demo_line(demo, move->undo_of >= 0 ? "  put back" : "  move", text);
}

/* --- configuration --- */

static void put_yaml(struct buf *out, const char *key, const char *text)
{
    buf_puts(out, key);
    json_put_text(out, text); /* a JSON string is a YAML string */
    buf_puts(out, "\n");
}

static int write_config(const struct demo_cluster *cluster, const char *planner,
                        const char *speed, struct err *err)
{
    AUTO_BUF struct buf text = BUF_INIT;
    buf_puts(&text, "# Written by `remap demo`. Times are the cluster's, which runs faster than the wall "
                    "clock.\n");
    put_yaml(&text, "store: ", cluster->store);
    put_yaml(&text, "run_dir: ", cluster->run_dir);
    buf_puts(&text, "http_listen: off\nlog_level: warn\n"
                    "sources:\n  - name: cluster\n    type: simulated\n    options:\n");
    put_yaml(&text, "      - name: socket\n        value: ", cluster->socket);
    put_yaml(&text, "      - name: speed\n        value: ", speed);
    put_yaml(&text, "apps:\n  - name: ", cluster->name);
    put_yaml(&text, "    planner: ", planner ? planner : "auto");
    buf_puts(&text, "    mode: act\n    cluster: cluster\n    metrics: [cluster]\n"
                    "    messages: [cluster]\n    interval: 10m\n    grace: 10s\n    settle: 5m\n"
                    "    window: 5m\n    soak: 0\n    cooldown: 0\n");
    return file_write_atomic(cluster->config, text.data, text.size, 0600, err);
}

/* --- the run --- */

static int demo_cycle(struct demo *demo, struct err *err)
{
    static const struct daemon_events events = {on_cycle, on_move};
    AUTO(config) struct config *config = config_read(demo->cluster.config, err);
    if (!config)
        return -1;
    const struct daemon_options options = {
        .config = config,
        .store_path = demo->cluster.store,
        .run_dir = demo->cluster.run_dir,
        .once = true,
        .events = &events,
        .ctx = demo,
    };
    return daemon_run(&options, err);
}

static int terminal_columns(void)
{
    struct winsize size;
    const char *columns = getenv("COLUMNS");
    int n = columns ? atoi(columns) : 0;
    if (n <= 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
        n = size.ws_col;
    return n >= 40 && n <= 1000 ? n : 100;
}

/* What a person types to run us again: the name alone where the shell finds it. Caller frees. */
static char *own_command(void)
{
    char dir[PATH_MAX];
    struct err err = ERR_INIT;
    const char *path = getenv("PATH");
    if (!path || program_dir(dir, &err))
        return mem_strdup("remap");
    size_t size = strlen(dir);
    for (const char *at = path; at; at = strchr(at, ':') ? strchr(at, ':') + 1 : NULL)
        if (strncmp(at, dir, size) == 0 && (at[size] == ':' || at[size] == '\0'))
            return mem_strdup("remap");
    return mem_printf("%s/remap", dir);
}

static void put_hints(const struct demo *demo, struct buf *out)
{
    const char *store = demo->cluster.store;
    AUTO_FREE char *remap = own_command();
    buf_printf(out,
               "\nEverything shown is in the store. Look into it:\n"
               "  sqlite3 -readonly -box %s 'SELECT * FROM v_savings'\n"
               "  sqlite3 -readonly -box %s 'SELECT seq, service, source, target, gain, state "
               "FROM v_moves'\n"
               "  sqlite3 -readonly -box %s 'SELECT src, dst, count, bytes, crosses FROM v_edges "
               "ORDER BY count DESC'\n"
               "  sqlite3 -readonly %s .schema\n"
               "or ask remap:\n"
               "  %s history --store %s\n"
               "  %s explain %lld --store %s\n",
               store, store, store, store, remap, store, remap, (long long)demo->cycle, store);
}

static int demo_report(struct demo *demo, const struct cli *cli, int rc, struct err *err)
{
    AUTO_BUF struct buf out = BUF_INIT;
    AUTO(store) struct store *store = NULL;
    if (!demo->ended)
        return err_set(err, ERR_IO, "stopped before the cycle had ended (its store: %s)",
                       demo->cluster.store);
    if (store_open_read(demo->cluster.store, &store, err))
        return -1;
    if (cli->output == CLI_JSON) {
        buf_puts(&out, "{\"v\":1,\"scenario\":");
        json_put_text(&out, demo->cluster.scenario);
        buf_puts(&out, ",\"store\":");
        json_put_text(&out, demo->cluster.store);
        buf_puts(&out, ",\"config\":");
        json_put_text(&out, demo->cluster.config);
        buf_puts(&out, ",");
        if (demo_json(store, demo->cycle, &out, err))
            return -1;
        buf_puts(&out, "}");
        return cli_print_json(&out, err) ? -1 : rc;
    }
    const struct draw_style style = {terminal_columns(), demo->colour};
    if (demo_show(store, demo->cycle, &style, &out, err))
        return -1;
    put_hints(demo, &out);
    fputs(out.data, stdout);
    return rc;
}

static int demo_all(struct demo *demo, const struct cli *cli, struct err *err)
{
    const char *speed = cli_opt(cli, "speed") ? cli_opt(cli, "speed") : DEMO_SPEED;
    if (demo_cluster_prepare(&demo->cluster, cli_opt(cli, "keep"), cli_opt(cli, "scenario"),
                             err) ||
        write_config(&demo->cluster, cli_opt(cli, "planner"), speed, err) ||
        demo_cluster_start(&demo->cluster, speed, err))
        return -1;
    AUTO_FREE char *what = mem_printf("%s, from %s, in %s", demo->cluster.name,
                                      demo->cluster.scenario, demo->cluster.dir);
    demo_line(demo, "cluster", what);
    int rc = demo_cycle(demo, err);
    if (rc < 0)
        return -1;
    return demo_report(demo, cli, rc, err);
}

static int demo_run(struct cli *cli, struct err *err)
{
    double speed = 1;
    struct demo demo = {
        .progress = cli->output == CLI_JSON ? stderr : stdout,
        .colour = cli->output != CLI_JSON && cli_colour(),
        .began_ms = clock_mono_ms(),
    };
    if (cli_opt_real(cli, "speed", 0.001, 100000, &speed, err))
        return -1;
    if (!getenv("REMAP_LOG_LEVEL"))
        log_init("remap", LOG_LEVEL_WARN, LOG_FORMAT_TEXT);
    int rc = demo_all(&demo, cli, err);
    demo_cluster_wipe(&demo.cluster);
    return rc;
}

static const struct cli_option demo_options[] = {
    {'s', "scenario", "NAME|FILE", "what the cluster is made of; default sock-shop", false},
    {0, "speed", "X", "simulated seconds per second; default 100", false},
    {'p', "planner", "NAME", "default auto", false},
    {0, "keep", "DIR", "folder for store, configuration and journal; default a new one in $TMPDIR",
     false},
    {0, NULL, NULL, NULL, false},
};

const struct cli_command cmd_demo = {
    .name = "demo",
    .summary = "the whole loop on an embedded simulated cluster",
    .about = "Observes, analyzes, plans, moves and verifies on a cluster that runs as a process of "
             "its own;\nneeds nothing else. Leaves a store to look into.",
    .examples = "remap demo\nremap demo --scenario online-boutique --keep /tmp/boutique\n"
                "remap demo -o json 2>/dev/null | jq .savings\n",
    .options = demo_options,
    .outputs = CLI_TEXT | CLI_JSON,
    .run = demo_run,
};
