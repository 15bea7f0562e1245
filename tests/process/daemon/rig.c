/* rig.c - real processes under test. */
#include "tests/process/daemon/rig.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "model/base/clock.h"
#include "model/base/file.h"
#include "model/base/json.h"
#include "model/base/mem.h"
#include "model/model_json.h"
#include "model/store/store.h"
#include "model/wire/bus.h"
#include "tests/support/temp_dir.h"

#define MINUTE_MS 60000

static const char chain[] =
    "name: rig\n"
    "seed: 3\n"
    "hosts:\n"
    "  - {name: n, count: 5, cpu: 4, memory: 4Gi}\n"
    "network: {same_zone: 2ms}\n"
    "services:\n"
    "  - {name: a, hosts: [n-1], work: 1ms, start_up: 10s, entry_rate: 50}\n"
    "  - {name: b, hosts: [n-2], work: 1ms, start_up: 10s}\n"
    "  - {name: c, hosts: [n-3], work: 1ms, start_up: 10s}\n"
    "  - {name: d, hosts: [n-4], work: 1ms, start_up: 10s}\n"
    "  - {name: e, hosts: [n-5], work: 1ms, start_up: 10s}\n"
    "  - {name: f, hosts: [n-1], work: 1ms, start_up: 10s, stateful: true}\n"
    "calls:\n"
    "  - {from: a, to: b, per_request: 2, bytes: 1Ki}\n"
    "  - {from: b, to: c, per_request: 1, bytes: 1Ki}\n"
    "  - {from: c, to: d, per_request: 1, bytes: 1Ki}\n"
    "  - {from: d, to: e, per_request: 1, bytes: 1Ki}\n"
    "  - {from: e, to: f, per_request: 1, bytes: 1Ki}\n";

static void write_file(const char *path, const char *text)
{
    struct err err = ERR_INIT;
    assert_int_equal(file_write_atomic(path, text, strlen(text), 0644, &err), 0);
}

static pid_t spawn(const struct rig *rig, const char *program, const char *const *args, int out)
{
    AUTO_FREE char *path = mem_printf("%s/%s", REMAP_BIN_DIR, program);
    const char *argv[40] = {path};
    for (size_t i = 0; args[i]; i++)
        argv[i + 1] = args[i];
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failed assertion leaves nobody behind */
        int log = open(rig->log, O_WRONLY | O_CREAT | O_APPEND, 0644);
        dup2(out >= 0 ? out : log, STDOUT_FILENO);
        dup2(out >= 0 ? out : log, STDERR_FILENO);
        execv(path, (char *const *)argv);
        _exit(127);
    }
    assert_true(pid > 0);
    return pid;
}

static void start_simulated(struct rig *rig, const char *scenario)
{
    AUTO_FREE char *file = mem_printf("%s/scenario.yaml", rig->dir);
    AUTO_FREE char *speed = mem_printf("%g", rig->speed);
    write_file(file, scenario);
    const char *const args[] = {"--scenario", file,      "--socket", rig->socket, "--journal",
                                rig->journal, "--speed", speed,      NULL};
    rig->simulated = spawn(rig, "remap-simulated", args, -1);
    for (int64_t until = clock_mono_ms() + RIG_PATIENCE_MS; access(rig->socket, F_OK) != 0;) {
        assert_true(clock_mono_ms() < until);
        clock_sleep_ms(5);
    }
}

void rig_configure(struct rig *rig, const char *app, const char *global)
{
    AUTO_FREE char *text = mem_printf("store: %s\n"
                                      "run_dir: %s\n"
                                      "log_level: info\n"
                                      "http_listen: \"off\"\n"
                                      "%s"
                                      "sources:\n"
                                      "  - name: cluster\n"
                                      "    type: simulated\n"
                                      "    options:\n"
                                      "      - {name: socket, value: %s}\n"
                                      "      - {name: speed, value: \"%g\"}\n"
                                      "apps:\n"
                                      "  - name: rig\n"
                                      "    cluster: cluster\n"
                                      "    metrics: [cluster]\n"
                                      "    messages: [cluster]\n"
                                      "    interval: 1000h\n"
                                      "    window: 10m\n"
                                      "    soak: 0\n"
                                      "    cooldown: 0\n"
                                      "%s%s%s",
                                      rig->store, rig->run_dir, global, rig->socket, rig->speed,
                                      strstr(app, "planner:") ? "" : "    planner: hba\n",
                                      strstr(app, "settle:") ? "" : "    settle: 20s\n", app);
    write_file(rig->config, text);
}

void rig_open(struct rig *rig, double speed, const char *app, const char *global)
{
    rig_open_scenario(rig, chain, speed, app, global);
}

void rig_open_scenario(struct rig *rig, const char *scenario, double speed, const char *app,
                       const char *global)
{
    *rig = (struct rig){.dir = temp_dir_new(), .speed = speed};
    rig->config = mem_printf("%s/remap.yaml", rig->dir);
    rig->store = mem_printf("%s/store.db", rig->dir);
    rig->run_dir = mem_printf("%s/run", rig->dir);
    rig->socket = mem_printf("%s/cluster.sock", rig->dir);
    rig->journal = mem_printf("%s/journal", rig->dir);
    rig->log = mem_printf("%s/log", rig->dir);
    start_simulated(rig, scenario);
    rig_configure(rig, app, global);
}

static void end(pid_t *pid)
{
    if (*pid <= 0)
        return;
    kill(*pid, SIGKILL);
    waitpid(*pid, NULL, 0);
    *pid = 0;
}

void rig_close(struct rig *rig)
{
    end(&rig->daemon);
    end(&rig->simulated);
    temp_dir_remove(rig->dir);
    char *const texts[] = {rig->dir,    rig->config,  rig->store, rig->run_dir,
                           rig->socket, rig->journal, rig->log};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        free(texts[i]);
}

static void show_log(const struct rig *rig)
{
    struct err err = ERR_INIT;
    AUTO_BUF struct buf text = BUF_INIT;
    if (file_read(rig->log, 1 << 20, &text, &err) == 0)
        print_message("%s\n", text.data);
}

/* --- the daemon --- */

void rig_start(struct rig *rig, bool wait)
{
    const char *const args[] = {"run", "-c", rig->config, NULL};
    rig->daemon = spawn(rig, "remap", args, -1);
    if (wait)
        rig_until_status(rig, "running");
}

int rig_wait_daemon(struct rig *rig)
{
    int status = 0;
    for (int64_t until = clock_mono_ms() + 2 * RIG_PATIENCE_MS;;) {
        pid_t pid = waitpid(rig->daemon, &status, WNOHANG);
        if (pid == rig->daemon)
            break;
        assert_true(clock_mono_ms() < until);
        clock_sleep_ms(5);
    }
    rig->daemon = 0;
    return status;
}

void rig_stop(struct rig *rig)
{
    kill(rig->daemon, SIGTERM);
    int status = rig_wait_daemon(rig);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int rig_remap(struct rig *rig, struct buf *out, const char *const *args)
{
    const char *argv[30];
    size_t n = 0;
    int fds[2], status = 0;
    char part[4096];
    while (args[n]) {
        argv[n] = args[n];
        n++;
    }
    argv[n++] = "-c";
    argv[n++] = rig->config;
    argv[n] = NULL;
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    pid_t pid = spawn(rig, "remap", argv, fds[1]);
    close(fds[1]);
    for (ssize_t got; (got = read(fds[0], part, sizeof part)) > 0;)
        buf_add(out, part, (size_t)got);
    close(fds[0]);
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int rig_ask(struct rig *rig, const char *json, struct buf *answer)
{
    struct err err = ERR_INIT;
    int rc = bus_command(rig->run_dir, json, strlen(json), RIG_PATIENCE_MS, answer, &err);
    if (rc < 0) {
        buf_clear(answer);
        buf_puts(answer, err.text);
    }
    return rc;
}

pid_t rig_pid(struct rig *rig, const char *process)
{
    if (strcmp(process, "remap") == 0)
        return rig->daemon;
    AUTO_BUF struct buf answer = BUF_INIT;
    struct err err = ERR_INIT;
    assert_int_equal(rig_ask(rig, "{\"v\":1,\"command\":\"status\"}", &answer), 0);
    AUTO_JSON json_t *tree = json_parse(answer.data, answer.size, &json_limits_header, &err);
    size_t i;
    json_t *stage;
    json_array_foreach(
        json_object_get(tree, "stages"), i,
        stage) if (strcmp(json_string_value(json_object_get(stage, "name")), process) ==
                   0) return (pid_t)json_integer_value(json_object_get(stage, "pid"));
    return 0;
}

void rig_signal(pid_t pid, int signo)
{
    assert_true(pid > 0);
    assert_true(kill(pid, signo) == 0 || errno == ESRCH);
}

/* --- the store --- */

char *rig_text(struct rig *rig, const char *sql)
{
    struct err err = ERR_INIT;
    AUTO(store) struct store *store = NULL;
    AUTO(store_rows) struct store_rows *rows = NULL;
    if (store_open_read(rig->store, &store, &err) < 0 ||
        store_select(store, sql, NULL, &rows, &err) < 0 || store_rows_next(rows, &err) != 1)
        return mem_strdup("");
    const char *text = store_rows_text(rows, 0);
    return mem_strdup(text ? text : "");
}

int64_t rig_number(struct rig *rig, const char *sql)
{
    AUTO_FREE char *text = rig_text(rig, sql);
    return strtoll(text, NULL, 10);
}

void rig_until(struct rig *rig, const char *sql)
{
    for (int64_t until = clock_mono_ms() + RIG_PATIENCE_MS; rig_number(rig, sql) == 0;) {
        if (clock_mono_ms() >= until) {
            show_log(rig);
            print_message("never true: %s\n", sql);
        }
        assert_true(clock_mono_ms() < until);
        clock_sleep_ms(5);
    }
}

void rig_until_state(struct rig *rig, int64_t cycle, const char *state)
{
    AUTO_FREE char *sql =
        mem_printf("SELECT count(*) FROM v_cycles WHERE cycle_id = %lld AND state = '%s'",
                   (long long)cycle, state);
    rig_until(rig, sql);
}

bool rig_catch(struct rig *rig, const char *sql)
{
    static const char over[] = "SELECT count(*) FROM v_cycles WHERE cycle_id = 1 AND ended_ms IS NOT "
                               "NULL AND state IN ('done', 'failed', 'undone', 'superseded')";
    AUTO_FREE char *either = mem_printf("SELECT (%s) OR (%s)", sql, over);
    rig_until(rig, either);
    return rig_number(rig, sql) != 0;
}

bool rig_within(struct rig *rig, const char *sql)
{
    int64_t until = clock_mono_ms() + MINUTE_MS;
    while (rig_number(rig, sql) == 0) {
        if (clock_mono_ms() >= until)
            return false;
        clock_sleep_ms(5);
    }
    return true;
}

bool rig_catch_state(struct rig *rig, const char *state)
{
    AUTO_FREE char *sql = mem_printf(
        "SELECT count(*) FROM v_cycles WHERE cycle_id = 1 AND state = '%s'", state);
    return rig_catch(rig, sql);
}

void rig_play(bool (*scene)(double speed, const void *ctx), const void *ctx)
{
    for (double speed = 50; speed > 0.5; speed /= 4) {
        if (scene(speed, ctx))
            return;
        print_message("too late at speed %g\n", speed);
    }
    fail_msg("too late however long it takes");
}

void rig_until_status(struct rig *rig, const char *text)
{
    for (int64_t until = clock_mono_ms() + RIG_PATIENCE_MS;;) {
        AUTO_BUF struct buf answer = BUF_INIT;
        if (rig_ask(rig, "{\"v\":1,\"command\":\"status\"}", &answer) == 0 &&
            strstr(answer.data, text))
            return;
        if (clock_mono_ms() >= until) {
            show_log(rig);
            fail_msg("never %s: %s", text, answer.data);
        }
        clock_sleep_ms(10);
    }
}

/* --- the cluster --- */

static void http(const struct rig *rig, const char *request, struct buf *answer)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct err err = ERR_INIT;
    char part[4096];
    snprintf(address.sun_path, sizeof address.sun_path, "%s", rig->socket);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(file_write_fd(fd, request, strlen(request), &err), 0);
    for (ssize_t got; (got = read(fd, part, sizeof part)) > 0;)
        buf_add(answer, part, (size_t)got);
    close(fd);
}

json_t *rig_cluster(struct rig *rig, const char *path)
{
    AUTO_FREE char *request =
        mem_printf("GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);
    AUTO_BUF struct buf answer = BUF_INIT;
    http(rig, request, &answer);
    const char *body = strstr(answer.data, "\r\n\r\n");
    json_t *tree = json_loads(body + 4, 0, NULL);
    assert_non_null(tree);
    return tree;
}

static void post(struct rig *rig, const char *path, const char *json)
{
    AUTO_FREE char *request = mem_printf("POST %s HTTP/1.1\r\nHost: localhost\r\n"
                                         "Connection: close\r\nContent-Length: %zu\r\n\r\n%s",
                                         path, strlen(json), json);
    AUTO_BUF struct buf answer = BUF_INIT;
    http(rig, request, &answer);
    assert_non_null(strstr(answer.data, " 200 "));
}

void rig_fault(struct rig *rig, const char *json)
{
    post(rig, "/v1/faults", json);
}

void rig_clear_faults(struct rig *rig)
{
    post(rig, "/v1/faults/clear", "");
}

/* --- the promises --- */

/* Each mark starts one replica at most, detours and undos have marks of their own. */
static void check_no_move_twice(struct rig *rig)
{
    struct err err = ERR_INIT;
    AUTO_BUF struct buf text = BUF_INIT;
    AUTO_BUF struct buf seen = BUF_INIT;
    assert_int_equal(file_read(rig->journal, 64 << 20, &text, &err), 0);
    for (char *save, *line = strtok_r(text.data, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        AUTO_JSON json_t *change = json_loads(line, 0, NULL);
        const char *what = json_string_value(json_object_get(change, "do"));
        const char *why = json_string_value(json_object_get(change, "why"));
        const json_t *cycle = json_object_get(change, "cycle");
        if (!what || strcmp(what, "start") != 0 || !json_is_integer(cycle) || !why ||
            strcmp(why, "move") != 0)
            continue;
        char mark[80];
        snprintf(mark, sizeof mark, "[%lld/%lld]", (long long)json_integer_value(cycle),
                 (long long)json_integer_value(json_object_get(change, "seq")));
        if (seen.size && strstr(seen.data, mark))
            print_message("started twice: %s\n", line);
        assert_true(!seen.size || !strstr(seen.data, mark));
        buf_puts(&seen, mark);
    }
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void join_sorted(char **found, size_t n, struct buf *out)
{
    qsort(found, n, sizeof *found, by_text);
    for (size_t i = 0; i < n; i++) {
        buf_puts(out, found[i]);
        free(found[i]);
    }
}

/* "a@n-1 b@n-2 …", sorted, from the store: the first snapshot and what was applied. */
static void placement_of_store(struct rig *rig, struct buf *out)
{
    struct err err = ERR_INIT;
    AUTO(store) struct store *store = NULL;
    AUTO(store_rows) struct store_rows *rows = NULL;
    AUTO_BUF struct buf text = BUF_INIT;
    assert_int_equal(store_open_read(rig->store, &store, &err), 0);
    int64_t first = rig_number(rig, "SELECT min(cycle_id) FROM v_moves");
    if (first == 0)
        return;
    assert_int_equal(store_snapshot_load(store, first, "base", &text, &err), 0);
    AUTO(model) struct model *model = model_decode(text.data, text.size, &err);
    assert_non_null(model);
    int *at = model_placement(model);
    assert_int_equal(store_select(store,
                                  "SELECT service, target, state FROM v_moves WHERE undo_of IS "
                                  "NULL ORDER BY cycle_id, coalesce(intended_ms, 0), seq",
                                  NULL, &rows, &err),
                     0);
    while (store_rows_next(rows, &err) == 1) {
        int service = model_service(model, store_rows_text(rows, 0));
        const char *state = store_rows_text(rows, 2);
        assert_string_not_equal(state, "intended"); /* nothing is left open */
        for (size_t i = 0; strcmp(state, "applied") == 0 && i < model->n_instances; i++)
            if (model->instances[i].service == service)
                at[i] = model_host(model, store_rows_text(rows, 1));
    }
    char *found[64] = {NULL};
    for (size_t i = 0; i < model->n_instances; i++)
        found[i] = mem_printf("%s@%s ", model->services[model->instances[i].service].name,
                              model->hosts[at[i]].name);
    join_sorted(found, model->n_instances, out);
    free(at);
}

static void placement_of_cluster(struct rig *rig, struct buf *out)
{
    AUTO_JSON json_t *state = rig_cluster(rig, "/v1/state");
    char *found[64] = {NULL};
    size_t i, n = 0;
    json_t *replica;
    json_array_foreach(json_object_get(state, "replicas"), i, replica) found[n++] =
        mem_printf("%s@%s ", json_string_value(json_object_get(replica, "service")),
                   json_string_value(json_object_get(replica, "host")));
    join_sorted(found, n, out);
}

void rig_check(struct rig *rig)
{
    AUTO_FREE char *integrity = rig_text(rig, "SELECT * FROM pragma_integrity_check");
    assert_string_equal(integrity, "ok");
    check_no_move_twice(rig);
    AUTO_BUF struct buf store = BUF_INIT;
    placement_of_store(rig, &store);
    if (!store.size)
        return;
    /* an old replica may still be leaving when the new one is ready */
    for (int64_t until = clock_mono_ms() + RIG_PATIENCE_MS;;) {
        AUTO_BUF struct buf cluster = BUF_INIT;
        placement_of_cluster(rig, &cluster);
        if (strcmp(store.data, cluster.data) == 0)
            return;
        if (clock_mono_ms() >= until) {
            show_log(rig);
            assert_string_equal(cluster.data, store.data);
        }
        clock_sleep_ms(20);
    }
}
