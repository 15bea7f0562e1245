/* test_cli_store.c - status, history, show, events, explain and replay as people call them: the
 * built `remap` on a store with known cycles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "model/base/file.h"
#include "model/base/json.h"
#include "model/base/mem.h"
#include "model/model_json.h"
#include "tests/support/store_support.h"

#define REMAP REMAP_BIN_DIR "/remap"

/* --- running --- */

struct output {
    int status;
    struct buf text;
};

static void output_wipe(struct output *output)
{
    buf_wipe(&output->text);
}
#define AUTO_OUTPUT __attribute__((cleanup(output_wipe)))

static struct output run(const char *command)
{
    struct output output = {0, BUF_INIT};
    char piece[4096];
    size_t n;
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    buf_puts(&output.text, "");
    while ((n = fread(piece, 1, sizeof piece, pipe)) > 0) {
        buf_add(&output.text, piece, n);
    }
    output.status = pclose(pipe);
    assert_true(WIFEXITED(output.status));
    output.status = WEXITSTATUS(output.status);
    return output;
}

/* `remap WORDS` on the fixture's store; stdout and stderr together. */
static struct output remap(const struct store_fixture *f, const char *words)
{
    AUTO_FREE char *command = mem_printf(
        "REMAP_CONFIG= XDG_CONFIG_HOME= '%s' %s --store '%s' 2>&1", REMAP, words, f->path);
    return run(command);
}

static void assert_prints(const struct store_fixture *f, const char *words, int status,
                          const char *expected)
{
    AUTO_OUTPUT struct output output = remap(f, words);
    if (output.status != status || strcmp(output.text.data, expected) != 0) {
        fail_msg("remap %s: exit %d, printed:\n%s\nexpected:\n%s", words, output.status,
                 output.text.data, expected);
    }
}

static void assert_mentions(const struct store_fixture *f, const char *words, int status,
                            const char *part)
{
    AUTO_OUTPUT struct output output = remap(f, words);
    if (output.status != status || !strstr(output.text.data, part)) {
        fail_msg("remap %s: exit %d, printed:\n%s\nwithout: %s", words, output.status,
                 output.text.data, part);
    }
}

static json_t *json_of(const struct store_fixture *f, const char *words)
{
    AUTO_OUTPUT struct output output = remap(f, words);
    json_t *tree = json_loads(output.text.data, 0, NULL);
    if (output.status != 0 || !tree) {
        fail_msg("remap %s: exit %d, printed:\n%s", words, output.status, output.text.data);
    }
    return tree;
}

/* --- a cycle planned by the real planner --- */

static const char options[] =
    "{\"planner\":\"hba\",\"objective\":\"affinity\",\"granularity\":\"instance\","
    "\"time_limit_ms\":10000,\"max_moves\":null,\"move_stateful\":false,\"frontier\":false,"
    "\"seed\":1,\"iterations\":null}";

static void plan_by_planner(const struct store_fixture *f, const char *how,
                            const struct buf *model, const struct buf *analysis, struct buf *out)
{
    struct err err = ERR_INIT;
    AUTO_BUF struct buf request = BUF_INIT;
    AUTO_FREE char *path = mem_printf("%s/request.json", f->dir);
    buf_printf(&request, "{\"v\":1,\"options\":%s,\"model\":%s,\"analysis\":%s}", how,
               model->data, analysis->data);
    assert_int_equal(file_write_atomic(path, request.data, request.size, 0600, &err), 0);
    AUTO_FREE char *command = mem_printf("'%s/remap-planner' --filter plan < '%s' 2>&1",
                                         REMAP_BIN_DIR, path);
    struct output output = run(command);
    if (output.status != 0) {
        fail_msg("remap-planner: %s", output.text.data);
    }
    while (output.text.size && output.text.data[output.text.size - 1] == '\n') {
        output.text.data[--output.text.size] = '\0';
    }
    *out = output.text;
}

static struct plan *decode_plan(const struct buf *text, const struct model *model)
{
    struct err err = ERR_INIT;
    AUTO_JSON json_t *tree = json_parse(text->data, text->size, &json_limits_document, &err);
    assert_non_null(tree);
    struct jval root = jval_root(tree);
    struct plan *plan = plan_decode_value(&root, model, &err);
    if (!plan) {
        fail_msg("%s", err.text);
    }
    return plan;
}

/* Cycle 1 of shop: HBA brings front-1 from n1 to cart-1 on n2, applied; cycle 2 failed early. */
static int setup(void **state)
{
    struct err err = ERR_INIT;
    if (store_fixture_open(state)) {
        return -1;
    }
    struct store_fixture *f = *state;
    AUTO(model) struct model *model = store_support_model();
    AUTO(analysis) struct analysis *analysis = store_support_analysis(model);
    AUTO_BUF struct buf model_text = BUF_INIT, analysis_text = BUF_INIT, plan_text = BUF_INIT;
    int64_t id = 0;
    model_encode(model, &model_text);
    analysis_encode(analysis, model, &analysis_text);
    plan_by_planner(f, options, &model_text, &analysis_text, &plan_text);
    AUTO(plan) struct plan *plan = decode_plan(&plan_text, model);
    static const char outcome[] =
        "{\"seq\":1,\"state\":\"applied\",\"reason\":null,\"service\":\"front\","
        "\"instance\":\"front-1\",\"instance_now\":\"front-9\",\"source\":\"n1\","
        "\"target\":\"n2\",\"intended_ms\":1700000001000,\"settled_ms\":1700000002000,"
        "\"undo_of\":null,\"detour\":false}";
    struct savings savings = {2, 2, 2, 0, 0.875, 0.75, 12.5, 8, 9, 0.25, 0.75, 0.5};
    assert_int_equal(store_cycle_new(f->store, "shop", "timer", "collecting", false, -1,
                                     1700000000000, &id, &err),
                     0);
    assert_int_equal(store_snapshot_save(f->store, id, "base", model, model_text.data,
                                         model_text.size, &err),
                     0);
    assert_int_equal(store_analysis_save(f->store, id, analysis, model, analysis_text.data,
                                         analysis_text.size, &err),
                     0);
    assert_int_equal(store_plan_save(f->store, id, plan, model, options, plan_text.data,
                                     plan_text.size, &err),
                     0);
    assert_int_equal(store_move_outcome(f->store, id, outcome, strlen(outcome), &err), 0);
    assert_int_equal(store_savings_save(f->store, id, &savings, &err), 0);
    assert_int_equal(store_event_add(f->store, "shop", "cycle", id, "done", 1700000133000, NULL,
                                     &err),
                     0);
    assert_int_equal(store_event_add(f->store, "shop", "calm", id, "front: soak until noon",
                                     1700000000500, NULL, &err),
                     0);
    assert_int_equal(store_cycle_set(f->store, id, "done", NULL, 1, -1, 1700000133000, &err), 0);
    assert_int_equal(store_cycle_new(f->store, "shop", "manual", "collecting", false, -1,
                                     1700000200000, &id, &err),
                     0);
    assert_int_equal(store_cycle_set(f->store, id, "failed", "cluster: connection refused", 3, -1,
                                     1700000201000, &err),
                     0);
    char app[] = "shop", mode[] = "act";
    return store_app_set(f->store, &(struct app_row){app, mode, true, 1700000300000, -1}, &err);
}

static int teardown(void **state)
{
    return store_fixture_close(state);
}

/* --- tests --- */

static void test_status_when_daemon_is_down_then_says_so_and_exits_0(void **state)
{
    const struct store_fixture *f = *state;
    AUTO_FREE char *words = mem_printf("status --run-dir '%s/run'", f->dir);
    AUTO_FREE char *expected = mem_printf(
        "remap  down (%s/run)\n"
        "store  %s\n\n"
        "app   mode         cycle     local  gap    cover  next due\n"
        "shop  act, paused  2 failed  8.3%%   14.3%%  -      -\n\n"
        "cycle 2 of shop: failed 2023-11-14T22:16:41Z: cluster: connection refused\n",
        f->dir, f->path);
    assert_prints(f, words, 0, expected);
    AUTO_FREE char *json_words = mem_printf("%s -o json", words);
    AUTO_JSON json_t *tree = json_of(f, json_words);
    assert_true(json_is_false(json_object_get(tree, "running")));
    const json_t *app = json_array_get(json_object_get(tree, "apps"), 0);
    assert_string_equal(json_string_value(json_object_get(app, "app")), "shop");
    assert_true(json_is_true(json_object_get(app, "paused")));
    assert_int_equal(json_integer_value(json_object_get(app, "next_due_ms")), 1700000300000);
}

static void test_status_when_no_store_then_exits_0(void **state)
{
    const struct store_fixture *f = *state;
    AUTO_FREE char *command = mem_printf("'%s' status --store '%s/none.db' --run-dir '%s' 2>&1",
                                         REMAP, f->dir, f->dir);
    AUTO_OUTPUT struct output output = run(command);
    assert_int_equal(output.status, 0);
    assert_non_null(strstr(output.text.data, "not there yet"));
}

static void test_status_when_a_proposal_waits_then_it_is_named(void **state)
{
    const struct store_fixture *f = *state;
    struct err err = ERR_INIT;
    assert_int_equal(store_cycle_set(f->store, 1, "proposed", NULL, 1, -1, -1, &err), 0);
    AUTO_FREE char *words = mem_printf("status --run-dir '%s/run'", f->dir);
    assert_mentions(f, words, 0,
                    "\ncycle 1 of shop: proposed since 2023-11-14T22:13:20Z\ncycle 2 of shop: ");
}

static void test_history_when_cycles_then_newest_first(void **state)
{
    const struct store_fixture *f = *state;
    assert_prints(
        f, "history", 0,
        "cycle  app   trigger  state   started                took  moves    gain\n"
        "    2  shop  manual   failed  2023-11-14T22:16:40Z     1s      -       -\n"
        "       cluster: connection refused\n"
        "    1  shop  timer    done    2023-11-14T22:13:20Z  2m13s    1/1  +0.750\n");
    assert_prints(f, "history --app blog", 0, "no cycles yet\n");
    AUTO_JSON json_t *tree = json_of(f, "history --limit 1 -o json");
    assert_int_equal(json_array_size(tree), 1);
}

static void test_show_when_verified_then_before_predicted_realised(void **state)
{
    const struct store_fixture *f = *state;
    AUTO_OUTPUT struct output output = remap(f, "show 1");
    static const char *const parts[] = {
        "cycle 1 of shop: done\n  started 2023-11-14T22:13:20Z by timer, took 2m13s\n",
        "plan by hba for affinity: feasible\n",
        "             before  predicted  realised\n"
        "affinity     0.0000     0.8750    0.7500\n"
        "local share  0.2500     0.7500    0.5000\n"
        "response ms   12.50       8.00      9.00\n"
        "hosts             2          2         2\n",
        "#  service  instance  from  to     gain  state    reason\n"
        "1  front    front-1   n1    n2  +0.7500  applied\n",
    };
    assert_int_equal(output.status, 0);
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        if (!strstr(output.text.data, parts[i])) {
            fail_msg("without:\n%s\nin:\n%s", parts[i], output.text.data);
        }
    }
}

static void test_show_when_json_then_plan_document_and_rows(void **state)
{
    const struct store_fixture *f = *state;
    AUTO_JSON json_t *tree = json_of(f, "show 1 -o json");
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(tree, "plan"), "planner")), "hba");
    assert_int_equal(json_array_size(json_object_get(tree, "moves")), 1);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(tree, "cycle"),
                                                        "moves_applied")),
                     1);
    assert_true(json_real_value(json_object_get(json_object_get(tree, "savings"),
                                                "affinity_realised")) == 0.75);
    AUTO_JSON json_t *early = json_of(f, "show 2 -o json");
    assert_true(json_is_null(json_object_get(early, "plan")));
    assert_true(json_is_null(json_object_get(early, "savings")));
}

static void test_show_when_nothing_to_patch_then_exit_2(void **state)
{
    assert_mentions(*state, "show 1 -o patch", 2, "nothing to offer as a patch");
}

/* web may move to db's node and does not (dry run); api would follow, but its affinity is owned. */
static const char owned_model[] =
    "{\"v\":1,\"hosts\":[{\"name\":\"n1\",\"cpu_cap_millis\":1000,\"mem_cap_bytes\":1000,\"labels\":"
    "{\"kubernetes.io/hostname\":\"ip-1\"}},{\"name\":\"n2\",\"cpu_cap_millis\":1000,"
    "\"mem_cap_bytes\":1000,\"labels\":{\"kubernetes.io/hostname\":\"ip-2\"}}],\"services\":[{\"name\":"
    "\"shop/web\"},{\"name\":\"shop/api\"},{\"name\":\"shop/db\",\"movable\":false}],\"instances\":["
    "{\"name\":\"shop/web-1\",\"service\":\"shop/web\",\"host\":\"n1\",\"cpu_used_millis\":1,"
    "\"mem_used_bytes\":1},{\"name\":\"shop/api-1\",\"service\":\"shop/api\",\"host\":\"n1\","
    "\"cpu_used_millis\":1,\"mem_used_bytes\":1,\"pinned_why\":\"affinity owned by helm\"},{\"name\":"
    "\"shop/db-1\",\"service\":\"shop/db\",\"host\":\"n2\",\"cpu_used_millis\":1,\"mem_used_bytes\":1}],"
    "\"affinities\":[{\"a\":\"shop/web-1\",\"b\":\"shop/db-1\",\"degree\":0.6},{\"a\":\"shop/api-1\","
    "\"b\":\"shop/db-1\",\"degree\":0.4}]}";
static const char service_options[] =
    "{\"planner\":\"auto\",\"objective\":\"affinity\",\"granularity\":\"service\","
    "\"time_limit_ms\":10000,\"max_moves\":null,\"move_stateful\":false,\"frontier\":false,"
    "\"seed\":1,\"iterations\":null}";

static void test_show_when_moves_are_others_to_make_then_patches(void **state)
{
    struct store_fixture *f = *state;
    struct err err = ERR_INIT;
    int64_t id = 0;
    AUTO(model) struct model *model = model_decode(owned_model, strlen(owned_model), &err);
    assert_non_null(model);
    AUTO(analysis) struct analysis *analysis = analysis_from_given(model);
    AUTO_BUF struct buf model_text = BUF_INIT, analysis_text = BUF_INIT, plan_text = BUF_INIT;
    model_encode(model, &model_text);
    analysis_encode(analysis, model, &analysis_text);
    plan_by_planner(f, service_options, &model_text, &analysis_text, &plan_text);
    AUTO(plan) struct plan *plan = decode_plan(&plan_text, model);
    assert_int_equal(plan->n_moves, 1);
    if (store_cycle_new(f->store, "shop", "manual", "done", true, -1, 1700000300000, &id, &err) ||
        store_snapshot_save(f->store, id, "base", model, model_text.data, model_text.size, &err) ||
        store_analysis_save(f->store, id, analysis, model, analysis_text.data,
                            analysis_text.size, &err) ||
        store_plan_save(f->store, id, plan, model, service_options, plan_text.data, plan_text.size,
                        &err))
        fail_msg("%s", err.text);
    AUTO_FREE char *words = mem_printf("show %lld -o patch", (long long)id);
    assert_mentions(f, words, 0, "# shop/web: 1 on n2; restarts 1");
    assert_mentions(f, words, 0, "# shop/api: 1 on n2; restarts 1");
    assert_mentions(f, words, 0, "; affinity owned by helm\n");
    assert_mentions(f, words, 0, "kind: Deployment\nmetadata:\n  name: \"api\"\n  namespace: \"shop\"");
    assert_mentions(f, words, 0, "- key: kubernetes.io/hostname");
    assert_mentions(f, words, 0, "values: [\"ip-2\"]"); /* the label, not the node's name */
}

static void test_commands_when_no_such_cycle_then_latest_is_named(void **state)
{
    static const char *const commands[] = {"show 7", "explain 7", "replay 7"};
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        assert_mentions(*state, commands[i], 1, "cycle 7: there is none; the latest is 2");
    }
    assert_mentions(*state, "show first", 2, "first");
}

static void test_commands_when_no_store_then_remedy_is_named(void **state)
{
    const struct store_fixture *f = *state;
    static const char *const commands[] = {"history", "show 1", "events", "explain 1", "replay 1"};
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        AUTO_FREE char *command =
            mem_printf("'%s' %s --store '%s/none.db' 2>&1", REMAP, commands[i], f->dir);
        AUTO_OUTPUT struct output output = run(command);
        assert_int_equal(output.status, 1);
        assert_non_null(strstr(output.text.data, "no store there yet"));
    }
}

static void test_events_when_asked_then_oldest_of_the_latest_first(void **state)
{
    const struct store_fixture *f = *state;
    assert_prints(f, "events", 0,
                  "2023-11-14T22:15:33Z  shop  cycle 1  cycle: done\n"
                  "2023-11-14T22:13:20.500Z  shop  cycle 1  calm: front: soak until noon\n");
    assert_prints(f, "events --limit 1", 0,
                  "2023-11-14T22:13:20.500Z  shop  cycle 1  calm: front: soak until noon\n");
    assert_prints(f, "events --app blog -o json", 0, "[]\n");
    AUTO_JSON json_t *tree = json_of(f, "events --cycle 1 -o json");
    assert_int_equal(json_array_size(tree), 2);
}

/* The reader goes on until it is ended, and prints what comes at once. */
static void test_events_when_followed_then_new_ones_come(void **state)
{
    const struct store_fixture *f = *state;
    struct err err = ERR_INIT;
    char line[512];
    int fds[2], status;
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(fds[1], STDOUT_FILENO);
        close(fds[0]);
        close(fds[1]);
        execl(REMAP, "remap", "events", "--follow", "--limit", "1", "--store", f->path, NULL);
        _exit(127);
    }
    close(fds[1]);
    FILE *lines = fdopen(fds[0], "r");
    assert_non_null(fgets(line, sizeof line, lines));
    assert_non_null(strstr(line, "soak until noon"));
    static const char *const texts[] = {"first new", "second"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        AUTO_FREE char *expected = mem_printf("2023-11-14T22:20:00Z  note: %s\n", texts[i]);
        assert_int_equal(
            store_event_add(f->store, NULL, "note", 0, texts[i], 1700000400000, NULL, &err), 0);
        assert_non_null(fgets(line, sizeof line, lines));
        assert_string_equal(line, expected);
    }
    fclose(lines);
    assert_int_equal(kill(pid, SIGINT), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
}

static void test_explain_when_planned_then_sentences(void **state)
{
    assert_mentions(*state, "explain 1", 0,
                    "  0.7500  cart-1 and front-1 come together on n2 by move 1.\n");
    assert_mentions(*state, "explain 1", 0,
                    "  0.1250  cart-1 (n2) and db-1 (n1) stay apart: db-1 to n2: stateful; "
                    "cart-1 to\n          n1: settled beside a stronger partner.\n");
    assert_mentions(*state, "explain 1", 0,
                    "  1. front-1 from n1 to n2 to join cart-1 (0.7500); gain +0.7500. applied, now\n"
                    "     front-9.\n");
    assert_mentions(*state, "explain 1", 0, "  calm: front: soak until noon\n");
    assert_mentions(*state, "explain 1 front", 0,
                    "front is on n2 (2). Its partners:\n  0.7500  cart on n2, not placed\n");
    assert_mentions(*state, "explain 1 fron", 1, "did you mean front?");
    assert_mentions(*state, "explain 2", 0, "It made no plan and had no snapshot");
    AUTO_JSON json_t *tree = json_of(*state, "explain 1 cart -o json");
    const json_t *first = json_array_get(json_object_get(tree, "affinities"), 0);
    assert_string_equal(json_string_value(json_object_get(first, "honoured")), "brought");
    assert_int_equal(json_array_size(json_object_get(tree, "events")), 1);
}

static void test_replay_when_same_planner_then_identical(void **state)
{
    assert_prints(*state, "replay 1", 0, "cycle 1: the same plan again, 1 move\n");
    AUTO_JSON json_t *tree = json_of(*state, "replay 1 -o json");
    assert_true(json_is_true(json_object_get(tree, "identical")));
}

static void test_replay_when_plan_differs_then_exit_1_and_moves(void **state)
{
    struct store_fixture *f = *state;
    struct err err = ERR_INIT;
    AUTO(model) struct model *model = store_support_model();
    AUTO(plan) struct plan *plan = store_support_plan(model);
    AUTO_BUF struct buf text = BUF_INIT;
    plan->placement = model_placement(model);
    plan->n_placement = model->n_instances;
    plan->n_moves = 2;
    plan->moves[0].target = 2;
    plan_encode(plan, model, true, &text);
    assert_int_equal(store_plan_save(f->store, 1, plan, model, options, text.data, text.size, &err),
                     0);
    assert_mentions(f, "replay 1", 1,
                    "- cart-1: n2 -> n3\n- front-2: n2 -> n1\n+ front-1: n1 -> n2\n");
    AUTO_OUTPUT struct output output = remap(f, "replay 1 -o json");
    assert_int_equal(output.status, 1);
    assert_non_null(strstr(output.text.data, "\"identical\":false"));
}

static void test_replay_when_no_plan_then_says_why(void **state)
{
    assert_mentions(*state, "replay 2", 1,
                    "has no plan to make again (failed: cluster: connection refused)");
}

#define STORE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_status_when_daemon_is_down_then_says_so_and_exits_0),
        STORE_TEST(test_status_when_no_store_then_exits_0),
        STORE_TEST(test_status_when_a_proposal_waits_then_it_is_named),
        STORE_TEST(test_history_when_cycles_then_newest_first),
        STORE_TEST(test_show_when_verified_then_before_predicted_realised),
        STORE_TEST(test_show_when_json_then_plan_document_and_rows),
        STORE_TEST(test_show_when_nothing_to_patch_then_exit_2),
        STORE_TEST(test_show_when_moves_are_others_to_make_then_patches),
        STORE_TEST(test_commands_when_no_such_cycle_then_latest_is_named),
        STORE_TEST(test_commands_when_no_store_then_remedy_is_named),
        STORE_TEST(test_events_when_asked_then_oldest_of_the_latest_first),
        STORE_TEST(test_events_when_followed_then_new_ones_come),
        STORE_TEST(test_explain_when_planned_then_sentences),
        STORE_TEST(test_replay_when_same_planner_then_identical),
        STORE_TEST(test_replay_when_plan_differs_then_exit_1_and_moves),
        STORE_TEST(test_replay_when_no_plan_then_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
