/* cli_plan.c - `remap plan`: a model document into a plan document, without daemon and store: the
 * analyzer as a filter when the document has messages, then the planner as a filter. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/base/json.h"
#include "model/manager/cli.h"
#include "model/manager/cli_offline.h"
#include "model/manager/filter.h"
#include "model/manager/plan_text.h"
#include "model/manager/request.h"
#include "model/model_json.h"

/* contract.md 1; a planner may be told to think for a day, not longer. */
#define TIME_LIMIT_MS 10000
#define TIME_LIMIT_MAX_MS (24 * 3600 * INT64_C(1000))
#define EXIT_MOVES 10

static int options_read(const struct cli *cli, struct plan_options *out, struct err *err)
{
    static const char *const objectives[] = {"affinity", "hosts", NULL};
    static const char *const granularities[] = {"instance", "service", NULL};
    int objective = OBJECTIVE_AFFINITY, granularity = PER_INSTANCE;
    *out = (struct plan_options){
        .planner = cli_opt(cli, "planner") ? cli_opt(cli, "planner") : "auto",
        .time_limit_ms = TIME_LIMIT_MS,
        .max_moves = -1,
        .iterations = -1,
        .move_stateful = cli_flag(cli, "move-stateful"),
        .frontier = cli_flag(cli, "frontier"),
    };
    if (cli_opt_choice(cli, "objective", objectives, &objective, err) ||
        cli_opt_choice(cli, "granularity", granularities, &granularity, err) ||
        cli_opt_duration(cli, "time-limit", &out->time_limit_ms, err) ||
        cli_opt_int(cli, "max-moves", 0, MODEL_MAX_INSTANCES, &out->max_moves, err) ||
        cli_opt_real(cli, "min-gain", 0, 1e15, &out->min_gain, err) ||
        cli_opt_int(cli, "seed", 0, INT32_MAX, &out->seed, err) ||
        cli_opt_int(cli, "iterations", 0, INT64_MAX, &out->iterations, err))
        return -1;
    if (out->time_limit_ms < 1 || out->time_limit_ms > TIME_LIMIT_MAX_MS)
        return err_set(err, ERR_USAGE, "--time-limit must be from 1ms to 24h");
    out->objective = (enum objective)objective;
    out->granularity = (enum granularity)granularity;
    return 0;
}

/* The plan document, and the exit code that the planner chose for it. */
static int plan_make(const struct cli *cli, const struct plan_options *plan_options,
                     double weight, const struct offline_model *model, struct buf *result,
                     int *exit_code, struct err *err)
{
    AUTO_BUF struct buf analysis = BUF_INIT, options = BUF_INIT, request = BUF_INIT;
    if (model->model->has_messages) {
        if (offline_analyze(model, weight, &analysis, err))
            return -1;
    } else if (cli_opt(cli, "weight")) {
        return err_set(err, ERR_USAGE, "--weight has no use here: the document has no messages");
    }
    request_plan_options(plan_options, &options);
    request_plan(options.data, model->text.data, model->text.size, analysis.data, analysis.size,
                 &request);
    return stage_filter_run(PARTY_PLANNER, MSG_PLAN, request.data, request.size,
                            isatty(STDERR_FILENO), result, exit_code, err);
}

static int plan_run(struct cli *cli, struct err *err)
{
    __attribute__((cleanup(offline_model_wipe))) struct offline_model model = {0};
    AUTO_BUF struct buf result = BUF_INIT, text = BUF_INIT;
    struct plan_options options;
    double weight = 0.5;
    int exit_code = 0;
    if (options_read(cli, &options, err) || cli_opt_real(cli, "weight", 0, 1, &weight, err) ||
        offline_model(cli, &model, err) ||
        plan_make(cli, &options, weight, &model, &result, &exit_code, err))
        return -1;
    AUTO_JSON json_t *tree = json_parse(result.data, result.size, &json_limits_document, err);
    if (!tree)
        return -1;
    if (cli->output == CLI_JSON) {
        if (cli_print_json(&result, err))
            return -1;
    } else if (plan_text_document(tree, model.model, &text, err) == 0) {
        fputs(text.data, stdout);
    } else {
        return -1;
    }
    bool moves = json_array_size(json_object_get(tree, "moves")) > 0;
    return exit_code == 0 && moves && cli_flag(cli, "exit-code") ? EXIT_MOVES : exit_code;
}

static const struct cli_option plan_options[] = {
    {'m', "model", "FILE", "the model document; - reads standard input", false},
    {'p', "planner", "NAME", "auto (the default), hba, hubs, oa, oa-modified", false},
    {0, "objective", "WHAT", "affinity (the default) or hosts: what counts first", false},
    {'w', "weight", "W", "w of Eq. 1, 0 to 1: 1 counts messages only, 0 bytes only; default 0.5",
     false},
    {0, "time-limit", "DUR", "how long the planner may think; default 10s", false},
    {0, "max-moves", "N", "no more moves than this; a service counts all its replicas", false},
    {0, "min-gain", "G", "what a restart must add to the score; fewer hosts come first", false},
    {0, "move-stateful", NULL, "stateful services may move, too", false},
    {0, "granularity", "STEP", "instance (the default) or service: what one move is", false},
    {0, "frontier", NULL, "the best plans for every number of moves", false},
    {0, "seed", "N", "of planners that draw lots; default 0", false},
    {0, "iterations", "N", "repeats a search that this --time-limit cut (`iterations` of its plan)", false},
    {0, "exit-code", NULL, "exit 10 when the plan holds moves", false},
    {0, NULL, NULL, NULL, false},
};

const struct cli_command cmd_plan = {
    .name = "plan",
    .summary = "the moves that a model document calls for",
    .about = "Nothing is touched: no daemon, no store, no cluster. Exit 3 when no feasible "
             "placement exists,\n4 when the time limit was reached and nothing valid was found; "
             "both still print the document.\nOptions that the planner cannot use end with exit "
             "2.",
    .examples = "remap plan --model model.json\n"
                "remap plan --model model.json --planner hba -o json > plan.json\n"
                "remap import --traces spans.json --cluster cluster.json | remap plan -m - "
                "--exit-code\n",
    .options = plan_options,
    .outputs = CLI_TEXT | CLI_JSON,
    .run = plan_run,
};
