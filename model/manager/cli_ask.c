/* cli_ask.c - commands that the running daemon carries out: one question over its bus, one answer
 * (contract.md 1). The daemon decides; here only words become a document and a document words. */
#include <stdlib.h>
#include <string.h>

#include "model/base/json.h"
#include "model/manager/cli.h"
#include "model/wire/bus.h"

/* The daemon answers between two steps of its loop; a minute of silence is a hang. `release` first
 * counts in the cluster what would restart. */
#define ANSWER_MS 60000

static void put_member(struct buf *out, const char *key, const char *text)
{
    if (!text)
        return;
    buf_printf(out, ",\"%s\":", key);
    json_put_text(out, text);
}

static int answer_print(const struct cli *cli, const struct buf *result, struct err *err)
{
    if (cli->output == CLI_JSON)
        return cli_print_json(result, err);
    AUTO_JSON json_t *tree = json_parse(result->data, result->size, &json_limits_document, err);
    if (!tree)
        return -1;
    const char *text = json_string_value(json_object_get(tree, "text"));
    printf("%s\n", text ? text : "done");
    return 0;
}

static int ask(struct cli *cli, struct buf *command, struct err *err)
{
    AUTO_BUF struct buf result = BUF_INIT;
    const char *run_dir;
    buf_puts(command, "}");
    if (cli_run_dir(cli, &run_dir, err))
        return -1;
    if (bus_command(run_dir, command->data, command->size, ANSWER_MS, &result, err)) {
        if (err->kind == ERR_UNREACHABLE)
            err_set(err, ERR_UNREACHABLE, "no daemon runs in %s; start it with `remap run`, or "
                    "name its folder with --run-dir", run_dir);
        return -1;
    }
    return answer_print(cli, &result, err);
}

/* trigger APP, pause [APP], resume [APP], release [APP [SERVICE]] */
static int ask_app_run(struct cli *cli, struct err *err)
{
    AUTO_BUF struct buf command = BUF_INIT;
    buf_puts(&command, "{\"v\":1,\"command\":");
    json_put_text(&command, cli->command->name);
    put_member(&command, "app", cli->n_args > 0 ? cli->args[0] : NULL);
    put_member(&command, "service", cli->n_args > 1 ? cli->args[1] : NULL);
    if (cli_flag(cli, "dry-run"))
        buf_puts(&command, ",\"dry_run\":true");
    return ask(cli, &command, err);
}

/* apply CYCLE, undo CYCLE */
static int ask_cycle_run(struct cli *cli, struct err *err)
{
    AUTO_BUF struct buf command = BUF_INIT;
    int64_t cycle;
    if (cli_arg_cycle(cli, 0, &cycle, err))
        return -1;
    buf_puts(&command, "{\"v\":1,\"command\":");
    json_put_text(&command, cli->command->name);
    buf_printf(&command, ",\"cycle\":%lld", (long long)cycle);
    return ask(cli, &command, err);
}

#define COMMON (CLI_CONFIG | CLI_RUN_DIR)
#define OUTPUTS (CLI_TEXT | CLI_JSON)

static const struct cli_option trigger_options[] = {
    {0, "dry-run", NULL, "plan and store, move nothing", false},
    {0, NULL, NULL, NULL, false},
};

const struct cli_command cmd_trigger = {
    .name = "trigger",
    .args = "APP",
    .min_args = 1,
    .max_args = 1,
    .summary = "asks the daemon for a cycle of an app now",
    .examples = "remap trigger sock-shop\nremap trigger sock-shop --dry-run\n",
    .options = trigger_options,
    .common = COMMON,
    .outputs = OUTPUTS,
    .run = ask_app_run,
};

const struct cli_command cmd_apply = {
    .name = "apply",
    .args = "CYCLE",
    .min_args = 1,
    .max_args = 1,
    .summary = "has the daemon carry out a stored plan",
    .about = "Refused when the cluster is no longer as that plan found it.",
    .examples = "remap apply 12\n",
    .common = COMMON,
    .outputs = OUTPUTS,
    .run = ask_cycle_run,
};

const struct cli_command cmd_undo = {
    .name = "undo",
    .args = "CYCLE",
    .min_args = 1,
    .max_args = 1,
    .summary = "has the daemon put back the moves of a cycle",
    .examples = "remap undo 12\n",
    .common = COMMON,
    .outputs = OUTPUTS,
    .run = ask_cycle_run,
};

const struct cli_command cmd_pause = {
    .name = "pause",
    .args = "[APP]",
    .max_args = 1,
    .summary = "stops moving an app, or everything, until `remap resume`",
    .about = "Survives restarts of the daemon. A move under way is finished.",
    .examples = "remap pause\nremap pause sock-shop\n",
    .common = COMMON,
    .outputs = OUTPUTS,
    .run = ask_app_run,
};

const struct cli_command cmd_resume = {
    .name = "resume",
    .args = "[APP]",
    .max_args = 1,
    .summary = "ends a pause",
    .examples = "remap resume\nremap resume sock-shop\n",
    .common = COMMON,
    .outputs = OUTPUTS,
    .run = ask_app_run,
};

static const struct cli_option release_options[] = {
    {0, "dry-run", NULL, "only say how many replicas would restart", false},
    {0, NULL, NULL, NULL, false},
};

const struct cli_command cmd_release = {
    .name = "release",
    .args = "[APP [SERVICE]]",
    .max_args = 2,
    .summary = "removes the placement pins that remap left in the cluster",
    .about = "Says first how many replicas restart by it; throttled.",
    .examples = "remap release sock-shop --dry-run\nremap release sock-shop carts\n",
    .options = release_options,
    .common = COMMON,
    .outputs = OUTPUTS,
    .run = ask_app_run,
};
