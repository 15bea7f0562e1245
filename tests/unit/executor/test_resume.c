/* What became of an intent (design.md 3, "executor mid-plan"). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "executor/resume.h"
#include "tests/support/small.h"

static const struct {
    const char *what;
    struct resume_facts facts; /* marks, report, on_source, source, target, unplaced: before, now */
    enum resume resume;
} rows[] = {
    {"the mark says applied", {true, SETTLE_APPLIED, false, 1, 0, 0, 1, 0, 0}, RESUME_SETTLED},
    {"the mark wins over the name", {true, SETTLE_APPLIED, true, 1, 1, 0, 1, 0, 0}, RESUME_SETTLED},
    {"the mark says missed", {true, SETTLE_MISSED, false, 1, 0, 0, 0, 0, 0}, RESUME_SETTLED},
    {"the mark says failed", {true, SETTLE_FAILED, true, 1, 1, 0, 0, 0, 0}, RESUME_SETTLED},
    {"nothing has happened", {true, SETTLE_WAITING, true, 1, 1, 0, 0, 0, 0}, RESUME_ASK},
    {"start first, under way", {true, SETTLE_WAITING, true, 1, 1, 0, 1, 0, 0}, RESUME_ASK},
    {"stop first, getting ready", {true, SETTLE_WAITING, false, 1, 0, 0, 1, 0, 0}, RESUME_WAIT},
    {"stop first, no host yet", {true, SETTLE_WAITING, false, 1, 0, 0, 0, 0, 1}, RESUME_WAIT},
    {"both missing", {true, SETTLE_WAITING, false, 1, 0, 0, 0, 0, 0}, RESUME_GONE},
    {"counts fit", {false, SETTLE_WAITING, false, 1, 0, 0, 1, 0, 0}, RESUME_APPLIED},
    {"counts fit among many", {false, SETTLE_WAITING, false, 3, 2, 2, 3, 0, 0}, RESUME_APPLIED},
    {"no marks: reports are not believed",
     {false, SETTLE_APPLIED, true, 1, 1, 0, 0, 0, 0},
     RESUME_ASK},
    {"no marks, nothing happened", {false, SETTLE_WAITING, true, 2, 2, 1, 1, 0, 0}, RESUME_ASK},
    {"no marks, start first: not another one",
     {false, SETTLE_WAITING, true, 1, 1, 0, 1, 0, 0},
     RESUME_WAIT},
    {"no marks, both missing", {false, SETTLE_WAITING, false, 1, 0, 0, 0, 0, 0}, RESUME_GONE},
};

static void test_resume_when_facts_differ_decides_by_mark_then_counts(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        enum resume resume = resume_instance(&rows[i].facts);
        if (resume != rows[i].resume) {
            fail_msg("%s: %d, not %d", rows[i].what, (int)resume, (int)rows[i].resume);
        }
    }
}

static struct model *two_hosts(void)
{
    struct model *m = model_new();
    small_host(m, "h1", 100);
    small_host(m, "h2", 100);
    small_instance(m, "a-1", "a", "h1", 1, 1);
    small_instance(m, "a-2", "a", "h1", 1, 1);
    small_instance(m, "b-1", "b", "h2", 1, 1);
    return m;
}

static void test_resume_count_when_replicas_moved_shows_before_and_now(void **state)
{
    (void)state;
    AUTO(model) struct model *m = two_hosts();
    struct intent intent = {.service = (char *)"a",
                            .instance = (char *)"a-1",
                            .source = (char *)"h1",
                            .target = (char *)"h2"};
    struct resume_facts facts = {0};
    intent_count(&intent, m, 0);
    assert_int_equal(intent.n_counts, 1);
    m->instances[0].host = 1;
    resume_count(&facts, &intent, m);
    assert_int_equal(facts.source_before, 2);
    assert_int_equal(facts.source_now, 1);
    assert_int_equal(facts.target_before, 0);
    assert_int_equal(facts.target_now, 1);
    assert_false(resume_is_back(&intent, m));
    m->instances[0].host = 0;
    assert_true(resume_is_back(&intent, m));
    m->instances[0].pinned_why = mem_strdup("is starting");
    assert_false(resume_is_back(&intent, m));
    free(intent.counts[0].host);
    free(intent.counts);
}

static void test_resume_service_when_targets_are_met_is_applied_else_asked_again(void **state)
{
    (void)state;
    AUTO(model) struct model *m = two_hosts();
    struct replica_count wanted[] = {{(char *)"h2", 2}};
    assert_int_equal(resume_service(false, SETTLE_WAITING, m, 0, wanted, 1), RESUME_ASK);
    assert_int_equal(resume_service(true, SETTLE_APPLIED, m, 0, wanted, 1), RESUME_SETTLED);
    m->instances[0].host = m->instances[1].host = 1;
    assert_int_equal(resume_service(false, SETTLE_WAITING, m, 0, wanted, 1), RESUME_APPLIED);
    assert_int_equal(resume_service(false, SETTLE_WAITING, m, -1, wanted, 1), RESUME_GONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resume_when_facts_differ_decides_by_mark_then_counts),
        cmocka_unit_test(test_resume_count_when_replicas_moved_shows_before_and_now),
        cmocka_unit_test(test_resume_service_when_targets_are_met_is_applied_else_asked_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
