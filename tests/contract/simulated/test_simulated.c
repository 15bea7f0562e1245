/* test_simulated.c - the four adapters against the real process over its socket: what they fill,
 * moves with start-up, refusals, faults of the interface, kill -9 of the process, a second process.
 * Time in the cluster runs 200 times as fast, so that starts of seconds settle in milliseconds. */
#include "adapters/simulated/simulated.h"
#include "model/base/clock.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SPEED "200"
#define PATIENCE_MS 300000 /* a guard; a healthy run needs some 50 ms */

struct bench {
    char folder[32];
    char *socket, *journal, *scenario;
    pid_t pid;
    struct option options[2];
    struct source source;
};

static const char *binary_folder(void)
{
    const char *folder = getenv("REMAP_BIN");
    return folder ? folder : REMAP_BIN_DIR;
}

static void start_process(struct bench *b, const char *extra)
{
    char *binary = mem_printf("%s/remap-simulated", binary_folder());
    b->pid = fork();
    if (!b->pid) {
        char *argv[] = {binary,
                        (char[]){"--scenario"},
                        b->scenario,
                        (char[]){"--socket"},
                        b->socket,
                        (char[]){"--journal"},
                        b->journal,
                        (char[]){"--speed"},
                        (char[]){SPEED},
                        NULL,
                        NULL};
        argv[9] = extra ? mem_strdup(extra) : NULL;
        int null = open("/dev/null", O_WRONLY);
        dup2(null, STDERR_FILENO);
        execv(binary, argv);
        _exit(127);
    }
    free(binary);
}

static void end_process(struct bench *b, int with)
{
    int status;
    kill(b->pid, with);
    waitpid(b->pid, &status, 0);
    if (with == SIGTERM) {
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
        assert_int_equal(access(b->socket, F_OK), -1); /* takes its socket along */
    }
}

/* Until it answers: the kernel tells when the socket is there, the client's retries do the rest. */
static void *open_adapter(struct bench *b)
{
    void *ctx = NULL;
    struct err err = ERR_INIT;
    if (simulated_open(&b->source, &ctx, &err))
        fail_msg("%s", err.text);
    int64_t end = clock_mono_ms() + PATIENCE_MS;
    for (;;) {
        AUTO_HTTP_ANSWER struct http_answer answer = HTTP_ANSWER_INIT;
        if (!http_get(((struct simulated *)ctx)->http, "/healthz", &answer, &err))
            return ctx;
        if (clock_mono_ms() > end)
            fail_msg("%s", err.text);
    }
}

static int setup(void **state)
{
    struct bench *b = mem_alloc(sizeof *b);
    strcpy(b->folder, "sim-contract-XXXXXX");
    if (!mkdtemp(b->folder))
        return -1;
    b->socket = mem_printf("%s/socket", b->folder);
    b->journal = mem_printf("%s/journal", b->folder);
    b->scenario = mem_printf("%s/etc/scenarios/sock-shop.yaml", REMAP_SOURCE_DIR);
    b->options[0] = (struct option){"socket", b->socket};
    b->options[1] = (struct option){"speed", SPEED};
    b->source = (struct source){"shop", "simulated", b->options, 2};
    start_process(b, NULL);
    *state = b;
    return 0;
}

static int teardown(void **state)
{
    struct bench *b = *state;
    kill(b->pid, SIGKILL);
    waitpid(b->pid, NULL, 0);
    unlink(b->socket);
    unlink(b->journal);
    rmdir(b->folder);
    free(b->socket);
    free(b->journal);
    free(b->scenario);
    free(b);
    return 0;
}

static const char *const everything[] = {NULL};
static const struct app_scope shop = {"shop", everything, everything};

static struct inspection inspect(void *ctx, const struct app_scope *app)
{
    struct err err = ERR_INIT;
    struct inspection in = {.model = model_new()};
    int64_t now = clock_wall_ms();
    struct window window = {now - 3000, now}; /* ten simulated minutes */
    if (simulated_cluster.inspect(ctx, app, &in, &err) ||
        simulated_metrics.measure(ctx, app, &window, &in, &err) ||
        simulated_messages.trace(ctx, app, &window, &in, &err))
        fail_msg("%s", err.text);
    if (model_check(in.model, &err))
        fail_msg("%s", err.text);
    return in;
}

static void inspection_free(struct inspection *in)
{
    model_free(in->model);
    for (size_t i = 0; i < in->n_notes; i++) {
        free(in->notes[i].kind);
        free(in->notes[i].text);
    }
    free(in->notes);
}

/* The only instance of a service. */
static const struct instance *instance_of(const struct model *m, const char *service)
{
    const struct instance *found = NULL;
    for (size_t i = 0; i < m->n_instances; i++) {
        if (strcmp(m->services[m->instances[i].service].name, service) != 0)
            continue;
        assert_null(found);
        found = &m->instances[i];
    }
    assert_non_null(found);
    return found;
}

static struct settle_report wait_settled(void *ctx, const struct placement *p)
{
    struct err err = ERR_INIT;
    struct settle_report report;
    int64_t end = clock_mono_ms() + PATIENCE_MS;
    do {
        if (simulated_orchestrator.settled(ctx, p, &report, &err))
            fail_msg("%s", err.text);
    } while (report.state == SETTLE_WAITING && clock_mono_ms() < end);
    return report;
}

static void place(void *ctx, const struct placement *p)
{
    struct err err = ERR_INIT;
    AUTO_FREE char *saved = NULL;
    if (simulated_orchestrator.place(ctx, p, &saved, &err))
        fail_msg("%s", err.text);
}

static void post(void *ctx, const char *path, const char *text)
{
    struct err err = ERR_INIT;
    AUTO_BUF struct buf body = BUF_INIT;
    buf_puts(&body, text);
    AUTO_JSON json_t *tree = simulated_post(ctx, path, &body, &err);
    if (!tree)
        fail_msg("%s", err.text);
}

static void test_inspect_when_at_rest_then_the_model_is_the_scenario(void **state)
{
    struct bench *b = *state;
    void *ctx = open_adapter(b);
    struct inspection in = inspect(ctx, &shop);
    const struct model *m = in.model;
    assert_int_equal(m->n_hosts, 6);
    assert_int_equal(m->n_services, 14);
    assert_int_equal(m->n_instances, 14);
    assert_int_equal(m->n_latencies, 15);
    assert_int_equal(m->n_messages, 15);
    assert_int_equal(model_rtt_us(m, model_host(m, "node-1"), model_host(m, "node-4")), 2000);
    const struct instance *front = instance_of(m, "front-end");
    assert_string_equal(m->hosts[front->host].name, "node-4");
    assert_int_equal(front->mem_used_bytes, 140 << 20);
    assert_int_equal(front->cpu_request_millis, 200);
    assert_in_range(front->cpu_used_millis, 196, 204); /* 20 + 60 · 3, noise 2 % */
    assert_true(m->services[model_service(m, "carts-db")].stateful);
    int64_t calls = 0;
    for (size_t i = 0; i < m->n_messages; i++) {
        assert_int_equal(m->messages[i].level, LEVEL_INSTANCE);
        if (m->messages[i].src == model_instance(m, front->name) &&
            m->instances[m->messages[i].dst].service == model_service(m, "catalogue"))
            calls = m->messages[i].count;
    }
    assert_in_range(calls, 50390, 50410); /* 60 · 1.4 · 600 s */
    assert_true(m->traffic.given);
    assert_int_equal(m->traffic.unmapped_count, 0);
    inspection_free(&in);
    simulated_close(ctx);
}

static void test_inspect_when_scope_is_smaller_then_the_rest_is_foreign(void **state)
{
    struct bench *b = *state;
    void *ctx = open_adapter(b);
    static const char *const some[] = {"orders", "orders-db", NULL};
    struct app_scope app = {"orders", everything, some};
    struct inspection in = inspect(ctx, &app);
    const struct model *m = in.model;
    assert_int_equal(m->n_services, 2);
    assert_int_equal(m->n_instances, 2);
    assert_int_equal(m->n_messages, 1);
    assert_true(m->traffic.unmapped_count > 0);
    assert_int_equal(m->traffic.n_unseen_services,
                     5); /* front-end, user, carts, payment, shipping */
    const struct host *node4 = &m->hosts[model_host(m, "node-4")]; /* front-end is there too */
    assert_int_equal(node4->cpu_requested_millis, 400);
    assert_int_equal(node4->pods_used, 5);
    assert_in_range(node4->cpu_used_millis, 314, 326);
    inspection_free(&in);
    simulated_close(ctx);
}

static void
test_move_when_placed_then_settles_under_a_new_name_and_undo_brings_it_back(void **state)
{
    struct bench *b = *state;
    void *ctx = open_adapter(b);
    struct inspection before = inspect(ctx, &shop);
    const struct instance *old = instance_of(before.model, "catalogue");
    struct placement p = {.cycle = 5,
                          .seq = 2,
                          .service = "catalogue",
                          .instance = old->name,
                          .source = "node-2",
                          .target = "node-4"};
    place(ctx, &p);
    place(ctx, &p); /* the same mark again */
    struct settle_report report = wait_settled(ctx, &p);
    assert_int_equal(report.state, SETTLE_APPLIED);
    assert_string_not_equal(report.instance_now, old->name);
    struct inspection after = inspect(ctx, &shop);
    const struct instance *now = instance_of(after.model, "catalogue");
    assert_string_equal(now->name, report.instance_now);
    assert_string_equal(after.model->hosts[now->host].name, "node-4");
    bool service_row = false; /* what the old replica did counts for its service */
    for (size_t i = 0; i < after.model->n_messages; i++)
        service_row |= after.model->messages[i].level == LEVEL_SERVICE;
    assert_true(service_row);
    struct err err = ERR_INIT;
    assert_int_equal(simulated_orchestrator.undo(ctx, &p, NULL, &err), 0);
    assert_int_equal(simulated_orchestrator.undo(ctx, &p, NULL, &err), 0);
    report = wait_settled(ctx, &p);
    assert_int_equal(report.state, SETTLE_APPLIED);
    struct inspection undone = inspect(ctx, &shop);
    now = instance_of(undone.model, "catalogue");
    assert_string_equal(undone.model->hosts[now->host].name, "node-2");
    int64_t restarts = -1;
    assert_int_equal(simulated_orchestrator.release(ctx, &shop, NULL, false, &restarts, &err), 0);
    assert_int_equal(restarts, 0);
    inspection_free(&before);
    inspection_free(&after);
    inspection_free(&undone);
    simulated_close(ctx);
}

static void test_move_when_refused_then_kind_and_reason_arrive(void **state)
{
    struct bench *b = *state;
    void *ctx = open_adapter(b);
    struct inspection in = inspect(ctx, &shop);
    const char *name = instance_of(in.model, "carts")->name;
    static const struct {
        const char *source, *target;
        enum err_kind kind;
        const char *says;
    } rows[] = {{"node-1", "node-2", ERR_CONFLICT, "is on node-3, not on node-1"},
                {"node-3", "node-9", ERR_NOT_FOUND, "there is no host node-9"},
                {"node-3", NULL, ERR_REFUSED, "single instances"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err err = ERR_INIT;
        char *saved = NULL;
        struct placement p = {.cycle = 1,
                              .seq = 1,
                              .service = "carts",
                              .instance = name,
                              .source = rows[i].source,
                              .target = rows[i].target};
        assert_int_equal(simulated_orchestrator.place(ctx, &p, &saved, &err), -1);
        assert_int_equal(err.kind, rows[i].kind);
        if (!strstr(err.text, rows[i].says))
            fail_msg("%s", err.text);
    }
    inspection_free(&in);
    simulated_close(ctx);
}

static void test_process_when_killed_mid_move_then_the_move_goes_on(void **state)
{
    struct bench *b = *state;
    void *ctx = open_adapter(b);
    struct inspection in = inspect(ctx, &shop);
    struct placement p = {.cycle = 9,
                          .seq = 1,
                          .service = "carts", /* 20 s: 100 ms to start */
                          .instance = instance_of(in.model, "carts")->name,
                          .source = "node-3",
                          .target = "node-4"};
    place(ctx, &p);
    for (int round = 0; round < 5; round++) { /* whatever it is doing, it dies without warning */
        end_process(b, SIGKILL);
        start_process(b, NULL);
        simulated_close(ctx);
        ctx = open_adapter(b);
        place(ctx, &p);
    }
    assert_int_equal(wait_settled(ctx, &p).state, SETTLE_APPLIED);
    struct inspection after = inspect(ctx, &shop);
    assert_int_equal(after.model->n_instances, 14);
    assert_string_equal(after.model->hosts[instance_of(after.model, "carts")->host].name, "node-4");
    inspection_free(&in);
    inspection_free(&after);
    simulated_close(ctx);
}

static void test_answer_when_lost_then_asking_again_is_harmless(void **state)
{
    struct bench *b = *state;
    void *ctx = open_adapter(b);
    struct inspection in = inspect(ctx, &shop);
    post(ctx, "/v1/faults", "{\"kind\":\"lose-answer\"}");
    struct placement p = {.cycle = 2,
                          .seq = 1,
                          .service = "user",
                          .instance = instance_of(in.model, "user")->name,
                          .source = "node-5",
                          .target = "node-4"};
    struct err err = ERR_INIT;
    char *saved = NULL;
    assert_int_equal(simulated_orchestrator.place(ctx, &p, &saved, &err), -1);
    assert_int_equal(err.kind, ERR_UNREACHABLE);
    place(ctx, &p);
    assert_int_equal(wait_settled(ctx, &p).state, SETTLE_APPLIED);
    inspection_free(&in);
    simulated_close(ctx);
}

static void test_interface_when_slow_or_refusing_then_reads_get_through_writes_fail(void **state)
{
    struct bench *b = *state;
    void *ctx = open_adapter(b);
    post(ctx, "/v1/faults", "{\"kind\":\"refuse\",\"status\":503,\"times\":2}");
    struct inspection in = inspect(ctx, &shop); /* repeated by the client */
    post(ctx, "/v1/faults", "{\"kind\":\"slow\",\"delay_ms\":60,\"times\":3}");
    int64_t start = clock_mono_ms();
    struct inspection slow = inspect(ctx, &shop);
    assert_true(clock_mono_ms() - start >= 170);
    post(ctx, "/v1/faults", "{\"kind\":\"refuse\",\"status\":503,\"times\":1}");
    struct placement p = {.cycle = 3,
                          .seq = 1,
                          .service = "user",
                          .instance = instance_of(in.model, "user")->name,
                          .source = "node-5",
                          .target = "node-4"};
    struct err err = ERR_INIT;
    char *saved = NULL;
    assert_int_equal(simulated_orchestrator.place(ctx, &p, &saved, &err), -1);
    assert_int_equal(err.kind, ERR_UNREACHABLE);
    struct settle_report report;
    assert_int_equal(simulated_orchestrator.settled(ctx, &p, &report, &err), 0);
    assert_int_equal(report.state, SETTLE_WAITING);
    assert_string_equal(report.instance_now, "");
    inspection_free(&in);
    inspection_free(&slow);
    simulated_close(ctx);
}

static void test_rollout_when_deployed_then_the_service_says_so(void **state)
{
    struct bench *b = *state;
    void *ctx = open_adapter(b);
    post(ctx, "/v1/faults", "{\"kind\":\"stuck-start\",\"service\":\"payment\"}");
    post(ctx, "/v1/faults", "{\"kind\":\"deploy\",\"service\":\"payment\"}");
    struct inspection in = inspect(ctx, &shop);
    const struct model *m = in.model;
    assert_true(m->services[model_service(m, "payment")].rollout);
    assert_false(m->services[model_service(m, "orders")].rollout);
    assert_int_equal(m->n_instances, 15);
    for (size_t i = 0; i < m->n_instances; i++)
        if (m->instances[i].service == model_service(m, "payment"))
            assert_non_null(m->instances[i].pinned_why);
    inspection_free(&in);
    simulated_close(ctx);
}

static void test_process_when_another_holds_the_journal_or_socket_then_it_ends(void **state)
{
    struct bench *b = *state;
    simulated_close(open_adapter(b));
    struct bench second = *b;
    int status;
    start_process(&second, NULL);
    assert_int_equal(waitpid(second.pid, &status, 0), second.pid);
    assert_int_equal(WEXITSTATUS(status), 1);
    second.journal = mem_printf("%s/other", b->folder);
    start_process(&second, NULL);
    assert_int_equal(waitpid(second.pid, &status, 0), second.pid);
    assert_int_equal(WEXITSTATUS(status), 1);
    unlink(second.journal);
    free(second.journal);
    simulated_close(open_adapter(b)); /* the first still serves */
    end_process(b, SIGTERM);
    start_process(b, NULL);
    simulated_close(open_adapter(b));
}

static void test_process_when_lifeline_closes_then_it_ends(void **state)
{
    struct bench *b = *state;
    end_process(b, SIGKILL);
    int line[2], status;
    assert_int_equal(pipe(line), 0);
    fcntl(line[1], F_SETFD, FD_CLOEXEC);
    AUTO_FREE char *option = mem_printf("--lifeline=%d", line[0]);
    start_process(b, option);
    simulated_close(open_adapter(b));
    close(line[0]);
    close(line[1]);
    assert_int_equal(waitpid(b->pid, &status, 0), b->pid);
    assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
    start_process(b, NULL);
    simulated_close(open_adapter(b));
}

static void test_check_when_asked_then_says_what_is_seen(void **state)
{
    struct bench *b = *state;
    void *ctx = open_adapter(b);
    struct source_report report;
    struct err err = ERR_INIT;
    assert_int_equal(simulated_cluster.check(ctx, &shop, &report, &err), 0);
    assert_true(report.reachable);
    assert_string_equal(report.version, "sock-shop");
    assert_string_equal(report.seen, "6 hosts, 14 services, 14 instances");
    simulated_close(ctx);
    const struct option rows[][2] = {{{"socket", b->socket}, {"sped", "2"}},
                                     {{"socket", b->socket}, {"speed", "0"}},
                                     {{"socket", b->socket}, {"timeout", "5"}},
                                     {{"speed", "1"}, {"timeout", "5s"}}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct source wrong = {"shop", "simulated", rows[i], 2};
        assert_int_equal(simulated_open(&wrong, &ctx, &err), -1);
        assert_int_equal(err.kind, ERR_CONFIG);
    }
}

static void test_speed_when_it_differs_then_inspection_and_check_say_so(void **state)
{
    struct bench *b = *state;
    simulated_close(open_adapter(b));
    const struct option options[] = {{"socket", b->socket}};
    struct source slow = {"shop", "simulated", options, 1};
    struct source_report report;
    struct err err = ERR_INIT;
    void *ctx;
    assert_int_equal(simulated_open(&slow, &ctx, &err), 0);
    assert_int_equal(simulated_cluster.check(ctx, &shop, &report, &err), 0);
    assert_non_null(strstr(report.seen, "runs at speed 200: set the option speed, which is 1"));
    struct inspection in = inspect(ctx, &shop);
    assert_int_equal(in.n_notes, 1);
    assert_string_equal(in.notes[0].kind, "speed");
    inspection_free(&in);
    simulated_close(ctx);
}

static void test_command_when_wrong_then_exit_code_of_the_contract(void **state)
{
    struct bench *b = *state;
    AUTO_FREE char *broken = mem_printf("%s/broken.yaml", b->folder);
    FILE *file = fopen(broken, "w");
    assert_non_null(file);
    fputs("name: x\nhosts: 5\n", file);
    fclose(file);
    const struct {
        const char *args[7];
        int code;
    } rows[] = {
        {{"--help"}, 0},
        {{"--version"}, 0},
        {{"--check", "--scenario", b->scenario}, 0},
        {{"--check", "--scenario", broken}, 2},
        {{"--check", "--scenario", "nowhere.yaml"}, 2},
        {{NULL}, 2},
        {{"--scenario", b->scenario}, 2},
        {{"--scenario", b->scenario, "--socket", "x"}, 2},
        {{"--check", "--scenario", b->scenario, "--speed", "0"}, 2},
        {{"--check", "--scenario", b->scenario, "--seed", "1.5"}, 2},
        {{"--check", "--scenario", b->scenario, "--lifeline", "999"}, 2},
        {{"--check", "--scenario", b->scenario, "more"}, 2},
        {{"--chekc"}, 2},
        {{"--scenario"}, 2},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_FREE char *binary = mem_printf("%s/remap-simulated", binary_folder());
        pid_t pid = fork();
        if (!pid) {
            char *argv[9] = {binary};
            for (int j = 0; j < 7 && rows[i].args[j]; j++)
                argv[j + 1] = mem_strdup(rows[i].args[j]);
            int null = open("/dev/null", O_WRONLY);
            dup2(null, STDOUT_FILENO);
            dup2(null, STDERR_FILENO);
            execv(binary, argv);
            _exit(127);
        }
        int status;
        waitpid(pid, &status, 0);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != rows[i].code)
            fail_msg("row %zu ended with %d", i, status);
    }
    unlink(broken);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_inspect_when_at_rest_then_the_model_is_the_scenario),
        TEST(test_inspect_when_scope_is_smaller_then_the_rest_is_foreign),
        TEST(test_move_when_placed_then_settles_under_a_new_name_and_undo_brings_it_back),
        TEST(test_move_when_refused_then_kind_and_reason_arrive),
        TEST(test_process_when_killed_mid_move_then_the_move_goes_on),
        TEST(test_answer_when_lost_then_asking_again_is_harmless),
        TEST(test_interface_when_slow_or_refusing_then_reads_get_through_writes_fail),
        TEST(test_rollout_when_deployed_then_the_service_says_so),
        TEST(test_process_when_another_holds_the_journal_or_socket_then_it_ends),
        TEST(test_process_when_lifeline_closes_then_it_ends),
        TEST(test_check_when_asked_then_says_what_is_seen),
        TEST(test_speed_when_it_differs_then_inspection_and_check_say_so),
        TEST(test_command_when_wrong_then_exit_code_of_the_contract),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
