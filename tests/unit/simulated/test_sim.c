/* test_sim.c - what the cluster does by itself (starts, deaths, rollouts, scaling) and with moves,
 * undos, releases and faults. */
#include "adapters/simulated/server/flow.h"
#include "tests/support/sim_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

/* Three hosts; a (2 s to start) on A, two b on B and C, p fills a slot of C. */
static const char small[] =
    "name: small\nreschedule_after: 10s\n"
    "hosts:\n"
    "  - {name: A, cpu: 1, memory: 1Gi, pods: 3}\n"
    "  - {name: B, cpu: 1, memory: 1Gi, pods: 3}\n"
    "  - {name: C, cpu: 1, memory: 1Gi, pods: 2}\n"
    "  - {name: D, cpu: 1, memory: 1Gi, schedulable: false}\n"
    "services:\n"
    "  - {name: a, hosts: [A], start_up: 2s, cpu_request: 600m, entry_rate: 1}\n"
    "  - {name: b, hosts: [B, C], start_up: 1s, cpu_request: 100m}\n"
    "  - {name: p, hosts: [C], stateful: true}\n"
    "calls: [{from: a, to: b, per_request: 1}]\n";

static enum sim_settled settled(struct fixture *f, int64_t seq, int *replica)
{
    const char *detail;
    return sim_settled(f->sim, (struct mark){1, seq}, replica, &detail);
}

static void arm(struct fixture *f, enum fault_kind kind, const char *service, const char *host)
{
    struct err err = ERR_INIT;
    struct fault fault = fault_default(kind);
    fault.service = service ? scenario_service(f->scenario, service) : -1;
    fault.host = host ? scenario_host(f->scenario, host) : -1;
    fault.at_ms = sim_cluster(f->sim)->last_ms;
    assert_int_equal(sim_fault(f->sim, &fault, &err), 0);
}

static size_t live_of(const struct fixture *f, const char *service)
{
    const struct cluster *c = sim_cluster(f->sim);
    size_t n = 0;
    for (size_t i = 0; i < c->n_live; i++)
        n += !strcmp(f->scenario->services[c->replicas[c->live[i]].service].name, service);
    return n;
}

static void test_place_when_it_fits_then_new_is_ready_before_old_leaves(void **state)
{
    (void)state;
    struct fixture f = fixture_open(small, NULL);
    struct err err = ERR_INIT;
    const struct cluster *c = sim_cluster(f.sim);
    int old = fixture_replica(&f, "a"), now;
    assert_int_equal(fixture_move(&f, 1, "a", "B", &err), 0);
    fixture_run(&f, 1999);
    assert_int_equal(settled(&f, 1, &now), SIM_WAITING);
    assert_int_equal(c->replicas[old].state, REPLICA_READY);
    fixture_run(&f, 1);
    assert_int_equal(settled(&f, 1, &now), SIM_APPLIED);
    assert_int_equal(c->replicas[old].state, REPLICA_ENDED);
    assert_int_equal(c->replicas[old].ended_ms, c->replicas[now].ready_ms);
    assert_string_equal(fixture_host(&f, now), "B");
    assert_string_not_equal(c->replicas[now].name, c->replicas[old].name);
    assert_int_equal(c->replicas[now].mark.seq, 1);
    fixture_close(&f);
}

static void test_place_when_mark_is_known_then_nothing_happens(void **state)
{
    (void)state;
    struct fixture f = fixture_open(small, NULL);
    struct err err = ERR_INIT;
    assert_int_equal(fixture_move(&f, 1, "a", "B", &err), 0);
    uint64_t changes = sim_cluster(f.sim)->n_changes;
    const char *name = sim_cluster(f.sim)->replicas[fixture_replica(&f, "a")].name;
    struct sim_move again = {{1, 1}, "a", name, "A", "B"}, other = {{1, 1}, "a", name, "A", "C"};
    struct sim_answer answer;
    assert_int_equal(sim_place(f.sim, &again, &answer, &err), 0);
    fixture_run(&f, 5000);
    assert_int_equal(sim_place(f.sim, &again, &answer, &err), 0);
    assert_int_equal(sim_place(f.sim, &other, &answer, &err), -1);
    assert_int_equal(err.kind, ERR_CONFLICT);
    assert_non_null(strstr(err.text, "mark 1/1 belongs to another move"));
    assert_int_equal(sim_cluster(f.sim)->n_changes, changes + 2); /* ready and end */
    fixture_close(&f);
}

static void test_place_when_refused_then_says_why_and_changes_nothing(void **state)
{
    (void)state;
    struct fixture f = fixture_open(small, NULL);
    const char *b = sim_cluster(f.sim)->replicas[fixture_replica(&f, "b")].name;
    const char *a = sim_cluster(f.sim)->replicas[fixture_replica(&f, "a")].name;
    const struct {
        struct sim_move move;
        enum err_kind kind;
        const char *says;
    } rows[] = {
        {{{1, 1}, "x", b, "B", "A"}, ERR_NOT_FOUND, "no service x"},
        {{{1, 1}, "b", "x", "B", "A"}, ERR_NOT_FOUND, "no instance x"},
        {{{1, 1}, "b", b, "B", "X"}, ERR_NOT_FOUND, "no host X"},
        {{{1, 1}, "a", b, "B", "A"}, ERR_CONFLICT, "is not of service a"},
        {{{1, 1}, "b", b, "A", "C"}, ERR_CONFLICT, "is on B, not on A"},
        {{{1, 1}, "b", b, "B", "B"}, ERR_CONFLICT, "is on B already"},
        {{{1, 1}, "b", b, "B", "C"}, ERR_REFUSED, "C cannot take b: pod slots"},
        {{{1, 1}, "b", b, "B", "D"}, ERR_REFUSED, "D cannot take b: unschedulable"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err err = ERR_INIT;
        struct sim_answer answer;
        uint64_t before = sim_cluster(f.sim)->n_changes;
        assert_int_equal(sim_place(f.sim, &rows[i].move, &answer, &err), -1);
        assert_int_equal(err.kind, rows[i].kind);
        if (!strstr(err.text, rows[i].says))
            fail_msg("%s", err.text);
        assert_int_equal(sim_cluster(f.sim)->n_changes, before);
    }
    /* a asks for 600 m: B has room for one of it, and then not for the next. */
    struct err err = ERR_INIT;
    struct sim_answer answer;
    assert_int_equal(sim_place(f.sim, &(struct sim_move){{1, 2}, "a", a, "A", "B"}, &answer, &err),
                     0);
    assert_int_equal(sim_place(f.sim, &(struct sim_move){{1, 3}, "a", a, "A", "B"}, &answer, &err),
                     -1);
    assert_non_null(strstr(err.text, "is being replaced"));
    fixture_close(&f);
}

static void test_undo_when_applied_then_goes_back_once(void **state)
{
    (void)state;
    struct fixture f = fixture_open(small, NULL);
    struct err err = ERR_INIT;
    struct sim_answer answer;
    int now;
    assert_int_equal(fixture_move(&f, 1, "a", "B", &err), 0);
    fixture_run(&f, 3000);
    assert_int_equal(sim_undo(f.sim, (struct mark){1, 1}, &answer, &err), 0);
    assert_int_equal(settled(&f, 1, &now), SIM_WAITING);
    fixture_run(&f, 3000);
    assert_int_equal(settled(&f, 1, &now), SIM_APPLIED);
    assert_string_equal(fixture_host(&f, now), "A");
    uint64_t changes = sim_cluster(f.sim)->n_changes;
    assert_int_equal(sim_undo(f.sim, (struct mark){1, 1}, &answer, &err), 0);
    assert_int_equal(sim_undo(f.sim, (struct mark){9, 9}, &answer, &err), 0);
    assert_int_equal(sim_cluster(f.sim)->n_changes, changes);
    assert_int_equal(live_of(&f, "a"), 1);
    fixture_close(&f);
}

static void test_undo_when_start_is_stuck_then_old_stays_and_start_ends(void **state)
{
    (void)state;
    struct fixture f = fixture_open(small, NULL);
    struct err err = ERR_INIT;
    struct sim_answer answer;
    int old = fixture_replica(&f, "a"), now;
    arm(&f, FAULT_STUCK_START, "a", NULL);
    assert_int_equal(fixture_move(&f, 1, "a", "B", &err), 0);
    fixture_run(&f, 600000);
    assert_int_equal(settled(&f, 1, &now), SIM_WAITING);
    assert_int_equal(sim_undo(f.sim, (struct mark){1, 1}, &answer, &err), 0);
    assert_int_equal(settled(&f, 1, &now), SIM_APPLIED);
    assert_int_equal(now, old);
    fixture_run(&f, 60000);
    assert_int_equal(live_of(&f, "a"), 1);
    /* once: the next start is well */
    assert_int_equal(fixture_move(&f, 2, "a", "B", &err), 0);
    fixture_run(&f, 2000);
    assert_int_equal(settled(&f, 2, &now), SIM_APPLIED);
    fixture_close(&f);
}

static void test_forget_when_armed_then_success_without_effect(void **state)
{
    (void)state;
    struct fixture f = fixture_open(small, NULL);
    struct err err = ERR_INIT;
    int old = fixture_replica(&f, "a"), now;
    arm(&f, FAULT_FORGET, NULL, NULL);
    assert_int_equal(fixture_move(&f, 1, "a", "B", &err), 0);
    fixture_run(&f, 10000);
    assert_int_equal(settled(&f, 1, &now), SIM_UNKNOWN);
    assert_int_equal(fixture_replica(&f, "a"), old);
    assert_int_equal(fixture_move(&f, 1, "a", "B", &err), 0); /* asked again, it happens */
    fixture_run(&f, 10000);
    assert_int_equal(settled(&f, 1, &now), SIM_APPLIED);
    fixture_close(&f);
}

static void test_lose_effect_when_armed_then_move_is_taken_back(void **state)
{
    (void)state;
    struct fixture f = fixture_open(small, NULL);
    struct err err = ERR_INIT;
    int now;
    arm(&f, FAULT_LOSE_EFFECT, "a", NULL);
    assert_int_equal(fixture_move(&f, 1, "a", "B", &err), 0);
    fixture_run(&f, 10000);
    assert_int_equal(settled(&f, 1, &now), SIM_DISPLACED);
    assert_string_equal(fixture_host(&f, now), "A");
    assert_int_equal(live_of(&f, "a"), 1);
    struct sim_answer answer; /* it is back: nothing to undo */
    uint64_t changes = sim_cluster(f.sim)->n_changes;
    assert_int_equal(sim_undo(f.sim, (struct mark){1, 1}, &answer, &err), 0);
    assert_int_equal(sim_cluster(f.sim)->n_changes, changes);
    fixture_close(&f);
}

static void test_stray_when_armed_then_missed_on_another_host(void **state)
{
    (void)state;
    struct fixture f = fixture_open(small, NULL);
    struct err err = ERR_INIT;
    int now;
    arm(&f, FAULT_STRAY, "b", "A");
    assert_int_equal(fixture_move(&f, 1, "b", "A", &err), 0);
    fixture_run(&f, 10000);
    /* Only B and A have room; b is on B, so the stray finds no third host and lands where sent. */
    assert_int_equal(settled(&f, 1, &now), SIM_APPLIED);
    arm(&f, FAULT_STRAY, "a", "B");
    assert_int_equal(fixture_move(&f, 2, "a", "B", &err), 0);
    fixture_run(&f, 10000);
    assert_int_equal(settled(&f, 2, &now), SIM_APPLIED);
    fixture_close(&f);
    f = fixture_open("name: s\nhosts: [{name: A, cpu: 1, memory: 1Gi}, "
                     "{name: B, cpu: 1, memory: 1Gi}, {name: C, cpu: 1, memory: 1Gi}]\n"
                     "services: [{name: a, hosts: [A]}]\nfaults: [{kind: stray}]\n",
                     NULL);
    assert_int_equal(fixture_move(&f, 1, "a", "B", &err), 0);
    fixture_run(&f, 10000);
    assert_int_equal(settled(&f, 1, &now), SIM_MISSED);
    assert_string_equal(fixture_host(&f, now), "C");
    fixture_close(&f);
}

static void test_host_when_it_dies_then_replicas_come_back_elsewhere(void **state)
{
    (void)state;
    struct fixture f = fixture_open(small, NULL);
    const struct cluster *c = sim_cluster(f.sim);
    arm(&f, FAULT_HOST_DOWN, NULL, "A");
    fixture_run(&f, 1);
    assert_int_equal(live_of(&f, "a"), 0);
    assert_false(c->hosts[0].up);
    AUTO(flow) struct flow *none = flow_new(c, c->last_ms);
    assert_true(flow_entry_ms(none, c, c->last_ms, -1) < 0); /* nobody answers */
    fixture_run(&f, 9998);
    assert_int_equal(live_of(&f, "a"), 0);
    fixture_run(&f, 2);
    assert_int_equal(live_of(&f, "a"), 1);
    assert_string_equal(fixture_host(&f, fixture_replica(&f, "a")), "B");
    fixture_run(&f, 2000);
    assert_int_equal(c->replicas[fixture_replica(&f, "a")].state, REPLICA_READY);
    fixture_close(&f);
}

static void test_host_when_nothing_else_has_room_then_pending_until_it_is_back(void **state)
{
    (void)state;
    struct fixture f = fixture_open("name: one\nreschedule_after: 1s\n"
                                    "hosts: [{name: A, cpu: 1, memory: 1Gi}]\n"
                                    "services: [{name: a, hosts: [A], start_up: 1s}]\n"
                                    "faults: [{kind: host-down, host: A, at: 5s, for: 20s}]\n",
                                    NULL);
    const struct cluster *c = sim_cluster(f.sim);
    fixture_run(&f, 10000);
    int a = fixture_replica(&f, "a");
    assert_int_equal(c->replicas[a].state, REPLICA_PENDING);
    fixture_run(&f, 20000);
    assert_int_equal(fixture_replica(&f, "a"), a);
    assert_int_equal(c->replicas[a].state, REPLICA_READY);
    assert_int_equal(c->replicas[a].ready_ms, f.scenario->warm_ms + 5000 + 20000 + 1000);
    fixture_close(&f);
}

static void test_pending_when_room_is_made_then_same_replica_is_bound(void **state)
{
    (void)state;
    struct fixture f = fixture_open("name: p\nhosts: [{name: A, cpu: 1, memory: 1Gi, pods: 1}]\n"
                                    "services: [{name: a, hosts: [A]}, {name: c, start_up: 1s}]\n",
                                    NULL);
    struct err err = ERR_INIT;
    int id = fixture_replica(&f, "c"), now;
    assert_int_equal(sim_cluster(f.sim)->replicas[id].state, REPLICA_PENDING);
    assert_int_equal(fixture_move(&f, 1, "c", "A", &err), -1);
    assert_int_equal(err.kind, ERR_CONFLICT);
    struct fault fault = fault_default(FAULT_SCALE);
    fault.service = 0;
    fault.replicas = 0;
    fault.at_ms = sim_cluster(f.sim)->last_ms;
    assert_int_equal(sim_fault(f.sim, &fault, &err), 0);
    fixture_run(&f, 1500);
    assert_int_equal(fixture_replica(&f, "c"), id);
    assert_int_equal(sim_cluster(f.sim)->replicas[id].state, REPLICA_READY);
    assert_int_equal(settled(&f, 1, &now), SIM_UNKNOWN);
    fixture_close(&f);
}

static void test_scale_when_out_and_in_then_newest_leave_first(void **state)
{
    (void)state;
    struct fixture f = fixture_open(small, NULL);
    const struct cluster *c = sim_cluster(f.sim);
    struct err err = ERR_INIT;
    int first = fixture_replica(&f, "b");
    struct fault fault = fault_default(FAULT_SCALE);
    fault.service = 1;
    fault.replicas = 4;
    assert_int_equal(sim_fault(f.sim, &fault, &err), 0);
    fixture_run(&f, 0);
    assert_int_equal(live_of(&f, "b"), 4);
    AUTO_FREE struct survey *survey = cluster_survey(c);
    assert_false(cluster_rolling(c, 1, survey));
    fault.replicas = 1;
    assert_int_equal(sim_fault(f.sim, &fault, &err), 0);
    fixture_run(&f, 5000);
    assert_int_equal(live_of(&f, "b"), 1);
    assert_int_equal(fixture_replica(&f, "b"), first);
    fixture_close(&f);
}

static void test_deploy_when_started_then_replaces_one_by_one_and_says_rollout(void **state)
{
    (void)state;
    struct fixture f = fixture_open(small, NULL);
    const struct cluster *c = sim_cluster(f.sim);
    arm(&f, FAULT_DEPLOY, "b", NULL);
    fixture_run(&f, 500);
    AUTO_FREE struct survey *during = cluster_survey(c);
    assert_true(cluster_rolling(c, 1, during));
    assert_false(cluster_rolling(c, 0, during));
    assert_int_equal(live_of(&f, "b"), 3); /* two, and one that starts */
    fixture_run(&f, 5000);
    AUTO_FREE struct survey *after = cluster_survey(c);
    assert_false(cluster_rolling(c, 1, after));
    assert_int_equal(live_of(&f, "b"), 2);
    for (size_t i = 0; i < c->n_live; i++)
        if (c->replicas[c->live[i]].service == 1)
            assert_int_equal(c->replicas[c->live[i]].revision, 2);
    fixture_close(&f);
}

static void test_release_when_marked_then_takes_marks_off_without_restarts(void **state)
{
    (void)state;
    struct fixture f = fixture_open(small, NULL);
    struct err err = ERR_INIT;
    int64_t marks;
    int now;
    assert_int_equal(fixture_move(&f, 1, "a", "B", &err), 0);
    fixture_run(&f, 3000);
    assert_int_equal(sim_release(f.sim, -1, true, &marks, &err), 0);
    assert_int_equal(marks, 1);
    assert_int_equal(sim_release(f.sim, 0, false, &marks, &err), 0);
    assert_int_equal(marks, 1);
    assert_int_equal(sim_release(f.sim, -1, false, &marks, &err), 0);
    assert_int_equal(marks, 0);
    assert_int_equal(settled(&f, 1, &now), SIM_APPLIED);
    fixture_close(&f);
}

static void test_fault_when_it_has_a_span_then_applies_within_it(void **state)
{
    (void)state;
    static const struct {
        int64_t at, span, times, now;
        int service, host;
        bool hits;
    } rows[] = {{100, 0, -1, 99, 0, 0, false},  {100, 0, -1, 100, 0, 0, true},
                {100, 50, -1, 149, 0, 0, true}, {100, 50, -1, 150, 0, 0, false},
                {0, 0, 0, 10, 0, 0, false},     {0, 0, 1, 10, 1, 0, false},
                {0, 0, 1, 10, 0, 1, false},     {0, 0, 1, 10, 0, 0, true}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct fault f = fault_default(FAULT_STRAY);
        f.service = 0;
        f.host = 0;
        f.at_ms = rows[i].at;
        f.span_ms = rows[i].span;
        f.times = rows[i].times;
        assert_int_equal(fault_hits(&f, rows[i].now, rows[i].service, rows[i].host), rows[i].hits);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_place_when_it_fits_then_new_is_ready_before_old_leaves),
        cmocka_unit_test(test_place_when_mark_is_known_then_nothing_happens),
        cmocka_unit_test(test_place_when_refused_then_says_why_and_changes_nothing),
        cmocka_unit_test(test_pending_when_room_is_made_then_same_replica_is_bound),
        cmocka_unit_test(test_undo_when_applied_then_goes_back_once),
        cmocka_unit_test(test_undo_when_start_is_stuck_then_old_stays_and_start_ends),
        cmocka_unit_test(test_forget_when_armed_then_success_without_effect),
        cmocka_unit_test(test_lose_effect_when_armed_then_move_is_taken_back),
        cmocka_unit_test(test_stray_when_armed_then_missed_on_another_host),
        cmocka_unit_test(test_host_when_it_dies_then_replicas_come_back_elsewhere),
        cmocka_unit_test(test_host_when_nothing_else_has_room_then_pending_until_it_is_back),
        cmocka_unit_test(test_scale_when_out_and_in_then_newest_leave_first),
        cmocka_unit_test(test_deploy_when_started_then_replaces_one_by_one_and_says_rollout),
        cmocka_unit_test(test_release_when_marked_then_takes_marks_off_without_restarts),
        cmocka_unit_test(test_fault_when_it_has_a_span_then_applies_within_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
