/* The header frame and the table of who may say what to whom (model/wire/README.md). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "model/base/mem.h"
#include "model/wire/envelope.h"
#include "model/wire/failure.h"

static void test_envelope_when_encoded_reads_back(void **state)
{
    (void)state;
    for (int type = 0; type < MSG_N_TYPES; type++) {
        struct envelope env = {.type = (enum message_type)type, .cycle = 42, .attempt = 3}, back;
        struct err err = ERR_INIT;
        AUTO_BUF struct buf text = BUF_INIT;
        if (type == MSG_INTENT || type == MSG_PROCEED) {
            env.seq = 7;
        }
        if (type == MSG_EVENT || type == MSG_STORED) {
            env.id = INT64_C(1000000000000000);
        }
        envelope_encode(&env, &text);
        assert_int_equal(envelope_decode(text.data, text.size, &back, &err), 0);
        assert_int_equal(back.type, env.type);
        assert_int_equal(back.cycle, 42);
        assert_int_equal(back.attempt, 3);
        assert_int_equal(back.seq, env.seq);
        assert_int_equal(back.id, env.id);
    }
}

static void test_envelope_when_of_the_design_has_its_bytes(void **state)
{
    (void)state;
    struct envelope env = {.type = MSG_PLAN, .cycle = 42, .attempt = 1};
    AUTO_BUF struct buf text = BUF_INIT;
    envelope_encode(&env, &text);
    assert_string_equal(text.data, "{\"v\":1,\"type\":\"plan\",\"cycle\":42,\"attempt\":1}");
}

static void test_envelope_when_malformed_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "{",
        "[]",
        "null",
        "1",
        "\"plan\"",
        "{}",
        "{\"v\":1}",
        "{\"v\":2,\"type\":\"plan\",\"cycle\":1,\"attempt\":1}",
        "{\"v\":\"1\",\"type\":\"plan\",\"cycle\":1,\"attempt\":1}",
        "{\"type\":\"plan\",\"cycle\":1,\"attempt\":1}",
        "{\"v\":1,\"cycle\":1,\"attempt\":1}",
        "{\"v\":1,\"type\":\"plan\",\"attempt\":1}",
        "{\"v\":1,\"type\":\"plan\",\"cycle\":1}",
        "{\"v\":1,\"type\":\"plans\",\"cycle\":1,\"attempt\":1}",
        "{\"v\":1,\"type\":4,\"cycle\":1,\"attempt\":1}",
        "{\"v\":1,\"type\":\"plan\",\"cycle\":-1,\"attempt\":1}",
        "{\"v\":1,\"type\":\"plan\",\"cycle\":1.5,\"attempt\":1}",
        "{\"v\":1,\"type\":\"plan\",\"cycle\":1000000000000001,\"attempt\":1}",
        "{\"v\":1,\"type\":\"plan\",\"cycle\":1,\"attempt\":null}",
        "{\"v\":1,\"type\":\"plan\",\"cycle\":1,\"attempt\":1,\"seq\":1}",
        "{\"v\":1,\"type\":\"plan\",\"cycle\":1,\"attempt\":1,\"more\":1}",
        "{\"v\":1,\"type\":\"plan\",\"cycle\":1,\"cycle\":2,\"attempt\":1}",
        "{\"v\":1,\"type\":\"plan\",\"cycle\":1,\"attempt\":1} ,",
        "{\"v\":1,\"type\":\"plan\",\"cycle\":1,\"attempt\":1}{}",
        "{\"v\":1,\"type\":\"intent\",\"cycle\":1,\"attempt\":1}",
        "{\"v\":1,\"type\":\"intent\",\"cycle\":1,\"attempt\":1,\"seq\":0}",
        "{\"v\":1,\"type\":\"intent\",\"cycle\":1,\"attempt\":1,\"id\":1}",
        "{\"v\":1,\"type\":\"event\",\"cycle\":1,\"attempt\":1,\"seq\":1}",
        "{\"v\":1,\"type\":[[[[[[[[[[[]]]]]]]]]]],\"cycle\":1,\"attempt\":1}",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct envelope env = {.cycle = -7};
        struct err err = ERR_INIT;
        assert_int_equal(envelope_decode(bad[i], strlen(bad[i]), &env, &err), -1);
        assert_int_equal(err.kind, ERR_INPUT);
        assert_int_equal(env.cycle, -7); /* untouched */
    }
}

/* Written down a second time, as sentences: "from to types…". Everything else is forbidden. */
static const struct {
    enum party from, to;
    unsigned types;
} sentences[] = {
#define T(type) (1u << MSG_##type)
    {PARTY_MONITOR, PARTY_MANAGER,
     T(HELLO) | T(EVENT) | T(COUNTERS) | T(PROGRESS) | T(RESULT) | T(FAILURE)},
    {PARTY_ANALYZER, PARTY_MANAGER, T(HELLO) | T(PROGRESS) | T(RESULT) | T(FAILURE)},
    {PARTY_PLANNER, PARTY_MANAGER, T(HELLO) | T(PROGRESS) | T(RESULT) | T(FAILURE)},
    {PARTY_EXECUTOR, PARTY_MANAGER,
     T(HELLO) | T(EVENT) | T(INTENT) | T(KEPT) | T(PROGRESS) | T(RESULT) | T(FAILURE)},
    {PARTY_CLI, PARTY_MANAGER, T(COMMAND)},
    {PARTY_MANAGER, PARTY_MONITOR, T(COLLECT) | T(STORED) | T(CONFIGURE) | T(STOP)},
    {PARTY_MANAGER, PARTY_ANALYZER, T(ANALYZE) | T(DRIFT) | T(STOP)},
    {PARTY_MANAGER, PARTY_PLANNER, T(PLAN) | T(STOP)},
    {PARTY_MANAGER, PARTY_EXECUTOR,
     T(EXECUTE) | T(RELEASE) | T(PROCEED) | T(STORED) | T(CONFIGURE) | T(STOP)},
    {PARTY_MANAGER, PARTY_CLI, T(RESULT) | T(FAILURE)},
#undef T
};

static void test_message_allowed_when_walked_matches_the_sentences(void **state)
{
    (void)state;
    for (int from = 0; from < PARTY_N; from++) {
        for (int to = 0; to < PARTY_N; to++) {
            unsigned expected = 0, actual = 0;
            for (size_t i = 0; i < ARRAY_LEN(sentences); i++) {
                if (sentences[i].from == (enum party)from && sentences[i].to == (enum party)to) {
                    expected = sentences[i].types;
                }
            }
            for (int type = 0; type < MSG_N_TYPES; type++) {
                if (message_allowed((enum party)from, (enum party)to, (enum message_type)type)) {
                    actual |= 1u << type;
                }
            }
            assert_int_equal(actual, expected);
        }
    }
}

static void test_message_type_names_when_looked_up_are_one_to_one(void **state)
{
    (void)state;
    for (int type = 0; type < MSG_N_TYPES; type++) {
        assert_int_equal(message_type_from_name(message_type_name((enum message_type)type)), type);
    }
    assert_int_equal(message_type_from_name("Plan"), -1);
    assert_int_equal(message_type_from_name(""), -1);
}

static void test_failure_when_encoded_keeps_kind_and_text(void **state)
{
    (void)state;
    struct err what = ERR_INIT, back = ERR_INIT;
    AUTO_BUF struct buf text = BUF_INIT;
    err_set(&what, ERR_INFEASIBLE, "host \"a\": no room");
    failure_encode(&what, &text);
    assert_int_equal(failure_decode(text.data, text.size, &back), -1);
    assert_int_equal(back.kind, ERR_INFEASIBLE);
    assert_string_equal(back.text, what.text);
}

static void test_failure_when_unreadable_is_an_internal_error(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "{}", "{\"v\":1,\"kind\":\"io\"}",
                                      "{\"v\":1,\"kind\":\"io\",\"text\":\"a\",\"more\":1}"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err err = ERR_INIT;
        assert_int_equal(failure_decode(bad[i], strlen(bad[i]), &err), -1);
        assert_int_equal(err.kind, ERR_INTERNAL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_envelope_when_encoded_reads_back),
        cmocka_unit_test(test_envelope_when_of_the_design_has_its_bytes),
        cmocka_unit_test(test_envelope_when_malformed_is_refused),
        cmocka_unit_test(test_message_allowed_when_walked_matches_the_sentences),
        cmocka_unit_test(test_message_type_names_when_looked_up_are_one_to_one),
        cmocka_unit_test(test_failure_when_encoded_keeps_kind_and_text),
        cmocka_unit_test(test_failure_when_unreadable_is_an_internal_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
