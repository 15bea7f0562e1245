/* test_journal.c - a cluster is its journal: replay gives the same state, a crash at any byte loses
 * at most the change that was being written, damage and mix-ups are refused. */
#include "adapters/simulated/server/api.h"
#include "adapters/simulated/server/journal.h"
#include "adapters/simulated/server/rng.h"
#include "model/base/file.h"
#include "tests/support/sim_fixture.h"
#include "tests/support/temp_dir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <signal.h>

static const char busy[] =
    "name: busy\nreschedule_after: 5s\nseed: 4\n"
    "hosts: [{name: A, cpu: 2, memory: 1Gi, pods: 6}, {name: B, cpu: 2, memory: 1Gi, pods: 6}, "
    "{name: C, cpu: 2, memory: 1Gi, pods: 6}]\n"
    "services:\n"
    "  - {name: a, replicas: 2, start_up: 2s, entry_rate: 5}\n"
    "  - {name: b, replicas: 3, start_up: 1s}\n"
    "  - {name: c, hosts: [C], stateful: true, start_up: 3s}\n"
    "calls: [{from: a, to: b, per_request: 2}, {from: b, to: c, rate: 3}]\n"
    "faults:\n"
    "  - {kind: host-down, host: B, at: 20s, for: 15s}\n"
    "  - {kind: deploy, service: b, at: 40s}\n"
    "  - {kind: scale, service: a, replicas: 4, at: 60s}\n"
    "  - {kind: load, factor: 2, at: 70s}\n"
    "  - {kind: stuck-start, service: a, at: 10s}\n"
    "  - {kind: lose-effect, service: b, at: 12s}\n"
    "  - {kind: scale, service: a, replicas: 1, at: 90s}\n";

/* The counts kept on the way are those of a recount. */
static void check_counts(const struct cluster *c)
{
    AUTO_FREE int64_t *staying = mem_array(c->scenario->n_services, sizeof *staying);
    for (size_t i = 0; i < c->n_live; i++) {
        const struct replica *r = &c->replicas[c->live[i]];
        staying[r->service] += r->replaces < 0 || c->replicas[r->replaces].state == REPLICA_ENDED;
    }
    for (size_t i = 0; i < c->scenario->n_services; i++)
        assert_int_equal(staying[i], c->services[i].staying);
}

/* Moves, undos and time, drawn from a seed; refusals are part of it. */
static void live_through(struct fixture *f, uint64_t seed, int64_t seconds)
{
    struct rng rng = {seed};
    const struct cluster *c = sim_cluster(f->sim);
    for (int64_t s = 0; s < seconds; s++) {
        struct err err = ERR_INIT;
        struct sim_answer answer;
        fixture_run(f, 500 + (int64_t)rng_below(&rng, 1000));
        check_counts(c);
        if (!c->n_live)
            continue;
        const struct replica *r = &c->replicas[c->live[rng_below(&rng, c->n_live)]];
        const char *target = f->scenario->hosts[rng_below(&rng, 3)].name;
        struct sim_move move = {
            {7, s}, f->scenario->services[r->service].name, r->name, NULL, target};
        if (rng_below(&rng, 3) == 0)
            sim_undo(f->sim, (struct mark){7, (int64_t)rng_below(&rng, 60)}, &answer, &err);
        else
            sim_place(f->sim, &move, &answer, &err);
    }
}

static char *state_text(struct sim *sim)
{
    struct api_answer answer;
    struct api_request req = {.method = "GET", .path = "/v1/state", .wall_ms = 0};
    api_handle(sim, &req, &answer);
    assert_int_equal(answer.status, 200);
    return buf_take(&answer.body);
}

static int64_t wall_of(const struct fixture *f)
{
    return cluster_wall_ms(sim_cluster(f->sim), sim_cluster(f->sim)->last_ms);
}

static void write_file(const char *path, const char *text, size_t size)
{
    struct err err = ERR_INIT;
    if (file_write_atomic(path, text, size, 0600, &err))
        fail_msg("%s", err.text);
}

static void test_replay_when_complete_then_state_is_the_same(void **state)
{
    (void)state;
    char *folder = temp_dir_new();
    AUTO_FREE char *path = mem_printf("%s/j", folder);
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct err err = ERR_INIT;
        remove(path);
        struct fixture f = fixture_open(busy, path);
        live_through(&f, seed, 100);
        assert_true(sim_cluster(f.sim)->n_placed > 5);
        int64_t wall = wall_of(&f);
        AUTO_FREE char *before = state_text(f.sim);
        sim_free(f.sim);
        f.sim = sim_open(f.scenario, path, wall, 0, &err);
        assert_non_null(f.sim);
        AUTO_FREE char *after = state_text(f.sim);
        assert_string_equal(before, after);
        fixture_close(&f);
    }
    temp_dir_remove(folder);
    free(folder);
}

/* What must hold after any crash: every service has its replicas again once time has passed, no
 * host holds more than its slots, each mark was acted on at most once. */
static void check_sound(struct fixture *f)
{
    const struct cluster *c = sim_cluster(f->sim);
    struct err err = ERR_INIT;
    sim_clear_faults(f->sim, &err);
    fixture_run(f, 600000);
    for (size_t i = 0; i < f->scenario->n_services; i++)
        assert_int_equal(c->services[i].staying, c->services[i].wanted);
    check_counts(c);
    AUTO_FREE struct host_load *loads = cluster_host_loads(c);
    for (size_t h = 0; h < f->scenario->n_hosts; h++)
        assert_true(loads[h].pods <= f->scenario->hosts[h].pods);
    for (size_t i = 0; i < c->n_placed; i++)
        for (size_t j = 0; j < i; j++)
            assert_false(c->placed[i].mark.seq == c->placed[j].mark.seq);
}

static void test_replay_when_cut_anywhere_then_continues_soundly(void **state)
{
    (void)state;
    char *folder = temp_dir_new();
    AUTO_FREE char *path = mem_printf("%s/j", folder);
    AUTO_BUF struct buf whole = BUF_INIT;
    struct err err = ERR_INIT;
    struct fixture f = fixture_open(busy, path);
    live_through(&f, 11, 100);
    int64_t wall = wall_of(&f);
    fixture_close(&f);
    assert_int_equal(file_read(path, 1 << 24, &whole, &err), 0);
    struct rng rng = {99};
    for (int round = 0; round < 60; round++) {
        size_t cut = (size_t)rng_below(&rng, whole.size + 1);
        write_file(path, whole.data, cut);
        f = (struct fixture){fixture_scenario(busy), NULL};
        f.sim = sim_open(f.scenario, path, wall, 0, &err);
        if (!f.sim)
            fail_msg("cut at %zu: %s", cut, err.text);
        check_sound(&f);
        /* What was decided after the crash is in the journal too. */
        int64_t now = wall_of(&f);
        AUTO_FREE char *before = state_text(f.sim);
        sim_free(f.sim);
        f.sim = sim_open(f.scenario, path, now, 0, &err);
        assert_non_null(f.sim);
        AUTO_FREE char *after = state_text(f.sim);
        assert_string_equal(before, after);
        fixture_close(&f);
    }
    temp_dir_remove(folder);
    free(folder);
}

static void test_open_when_journal_is_wrong_then_refused_with_the_place(void **state)
{
    (void)state;
    char *folder = temp_dir_new();
    AUTO_FREE char *path = mem_printf("%s/j", folder);
    struct fixture f = fixture_open(busy, path);
    fixture_run(&f, 30000);
    fixture_close(&f);
    AUTO_BUF struct buf good = BUF_INIT;
    struct err err = ERR_INIT;
    assert_int_equal(file_read(path, 1 << 24, &good, &err), 0);
    static const struct {
        const char *find, *put;
        enum err_kind kind;
        const char *says;
    } rows[] = {
        {"\"scenario\":\"busy\"", "\"scenario\":\"shop\"", ERR_CONFIG,
         "is the journal of scenario"},
        {"\"do\":\"ready\"", "\"do\":\"reedy\"", ERR_INPUT, ": do: "},
        {"\"do\":\"ready\",\"id\":0", "\"do\":\"ready\",\"id\":9", ERR_INPUT, "does not fit"},
        {"\"service\":\"a\"", "\"service\":\"z\"", ERR_INPUT, "there is no service z"},
        {"{\"t\":0,", "{\"t\":x,", ERR_INPUT, "j:"},
    };
    struct scenario *s = fixture_scenario(busy);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_FREE char *text = mem_strdup(good.data);
        char *at = strstr(text, rows[i].find);
        assert_non_null(at);
        memcpy(at, rows[i].put, strlen(rows[i].put));
        write_file(path, text, strlen(text));
        assert_null(sim_open(s, path, FIXTURE_WALL, 0, &err));
        assert_int_equal(err.kind, rows[i].kind);
        if (!strstr(err.text, rows[i].says))
            fail_msg("%s", err.text);
    }
    scenario_free(s);
    temp_dir_remove(folder);
    free(folder);
}

static void test_open_when_scenario_changed_or_held_then_refused(void **state)
{
    (void)state;
    char *folder = temp_dir_new();
    AUTO_FREE char *path = mem_printf("%s/j", folder);
    struct err err = ERR_INIT;
    struct fixture f = fixture_open(busy, path);
    assert_null(sim_open(f.scenario, path, FIXTURE_WALL, 0, &err));
    assert_int_equal(err.kind, ERR_CONFLICT);
    sim_free(f.sim);
    f.sim = NULL;
    f.scenario->services[0].entry_per_s = 6;
    assert_int_equal(scenario_finish(f.scenario, &err), 0);
    assert_null(sim_open(f.scenario, path, FIXTURE_WALL, 0, &err));
    assert_int_equal(err.kind, ERR_CONFIG);
    assert_non_null(strstr(err.text, "was changed since this journal began"));
    fixture_close(&f);
    temp_dir_remove(folder);
    free(folder);
}

static void test_clock_when_speed_changes_then_time_goes_on_from_there(void **state)
{
    (void)state;
    char *folder = temp_dir_new();
    AUTO_FREE char *path = mem_printf("%s/j", folder);
    struct err err = ERR_INIT;
    struct fixture f = fixture_open(busy, path);
    int64_t warm = f.scenario->warm_ms;
    sim_free(f.sim);
    /* 10 s later ten times as fast, 3 s after that back in time by a broken wall clock */
    f.sim = sim_open(f.scenario, path, FIXTURE_WALL + 10000, 10, &err);
    const struct cluster *c = sim_cluster(f.sim);
    assert_int_equal(cluster_sim_ms(c, FIXTURE_WALL + 10000), warm + 10000);
    assert_int_equal(cluster_sim_ms(c, FIXTURE_WALL + 13000), warm + 40000);
    assert_int_equal(cluster_sim_ms(c, FIXTURE_WALL + 4000), warm + 4000);
    assert_int_equal(cluster_sim_ms(c, FIXTURE_WALL - 1000), warm - 1000);
    assert_int_equal(cluster_sim_ms(c, 0), 0);
    assert_int_equal(cluster_wall_ms(c, warm + 40000), FIXTURE_WALL + 13000);
    fixture_run(&f, 30000);
    int64_t last = c->last_ms;
    struct sim_answer answer;
    struct sim_move move = {{1, 1}, "c", "c-0", NULL, "A"};
    assert_int_equal(sim_place(f.sim, &move, &answer, &err), 0);
    sim_free(f.sim);
    f.sim = sim_open(f.scenario, path, FIXTURE_WALL + 11000, 0, &err);
    assert_non_null(f.sim);
    assert_true(sim_cluster(f.sim)->last_ms >= last);
    assert_true(cluster_sim_ms(sim_cluster(f.sim), FIXTURE_WALL + 11000) >= last);
    fixture_close(&f);
    temp_dir_remove(folder);
    free(folder);
}

static void test_commit_when_disk_is_full_then_nothing_happens_and_it_recovers(void **state)
{
    (void)state;
    char *folder = temp_dir_new();
    AUTO_FREE char *path = mem_printf("%s/j", folder);
    struct err err = ERR_INIT;
    struct fixture f = fixture_open(busy, path);
    AUTO_BUF struct buf before = BUF_INIT, after = BUF_INIT;
    assert_int_equal(file_read(path, 1 << 24, &before, &err), 0);
    struct rlimit old, tight;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    tight = old;
    tight.rlim_cur = before.size + 20; /* a line does not fit: a short write, then EFBIG */
    setrlimit(RLIMIT_FSIZE, &tight);
    uint64_t changes = sim_cluster(f.sim)->n_changes;
    int result = fixture_move(&f, 1, "c", "A", &err);
    setrlimit(RLIMIT_FSIZE, &old);
    assert_int_equal(result, -1);
    assert_int_equal(err.kind, ERR_IO);
    assert_int_equal(sim_cluster(f.sim)->n_changes, changes);
    assert_int_equal(file_read(path, 1 << 24, &after, &err), 0);
    assert_int_equal(after.size, before.size);
    assert_int_equal(fixture_move(&f, 1, "c", "A", &err), 0);
    fixture_close(&f);
    temp_dir_remove(folder);
    free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replay_when_complete_then_state_is_the_same),
        cmocka_unit_test(test_replay_when_cut_anywhere_then_continues_soundly),
        cmocka_unit_test(test_open_when_journal_is_wrong_then_refused_with_the_place),
        cmocka_unit_test(test_open_when_scenario_changed_or_held_then_refused),
        cmocka_unit_test(test_clock_when_speed_changes_then_time_goes_on_from_there),
        cmocka_unit_test(test_commit_when_disk_is_full_then_nothing_happens_and_it_recovers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
