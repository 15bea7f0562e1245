/* test_drift.c - the distance of analyzer/drift.h: known values, its bound on scores, and how it does
 * under noise. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "analyzer/drift.h"
#include "tests/support/rng.h"

#define MAX_PAIRS 6

struct row {
    const char *what;
    struct drift_pair before[MAX_PAIRS], now[MAX_PAIRS];
    double weight, distance;
};

static size_t count(const struct drift_pair *pairs)
{
    size_t n = 0;
    while (n < MAX_PAIRS && pairs[n].a)
        n++;
    return n;
}

static void test_distance_when_pairs_change_then_half_of_the_sum(void **state)
{
    (void)state;
    static struct row rows[] = {
        {"the same", {{"a", "b", 0, 90, -1}, {"b", "c", 0, 10, -1}},
         {{"b", "c", 0, 10, -1}, {"a", "b", 0, 90, -1}}, 0.5, 0},
        {"twice as much of the same", {{"a", "b", 0, 90, -1}, {"b", "c", 0, 10, -1}},
         {{"a", "b", 0, 180, -1}, {"b", "c", 0, 20, -1}}, 0.5, 0},
        {"a fifth goes elsewhere", {{"a", "b", 0, 90, -1}, {"b", "c", 0, 10, -1}},
         {{"a", "b", 0, 70, -1}, {"b", "c", 0, 30, -1}}, 1, 0.2},
        {"nothing in common", {{"a", "b", 0, 100, -1}}, {{"a", "c", 0, 100, -1}}, 1, 1},
        {"bytes alone", {{"a", "b", 0, 50, 500}, {"b", "c", 0, 50, 500}},
         {{"a", "b", 0, 50, 900}, {"b", "c", 0, 50, 100}}, 0, 0.4},
        {"half of both", {{"a", "b", 0, 50, 500}, {"b", "c", 0, 50, 500}},
         {{"a", "b", 0, 50, 900}, {"b", "c", 0, 50, 100}}, 0.5, 0.2},
        {"sizes are forgotten", {{"a", "b", 0, 50, 900}, {"b", "c", 0, 50, 100}},
         {{"a", "b", 0, 50, -1}, {"b", "c", 0, 50, -1}}, 0.5, 0},
        {"given degrees", {{"a", "b", 0.5, 0, -1}, {"b", "c", 0.5, 0, -1}},
         {{"a", "b", 3, 0, -1}, {"b", "c", 1, 0, -1}}, 0.5, 0.25},
        {"29 messages", {{"a", "b", 0, 90, -1}}, {{"a", "b", 0, 29, -1}}, 1, -1},
        {"none", {{"a", "b", 0, 90, -1}}, {{NULL, NULL, 0, 0, 0}}, 1, -1},
        {"none on either side", {{NULL, NULL, 0, 0, 0}}, {{NULL, NULL, 0, 0, 0}}, 1, -1},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct row *row = &rows[i];
        struct drift_result got = drift_measure(row->before, count(row->before), row->now,
                                                count(row->now), row->weight);
        if (fabs(got.distance - row->distance) > 1e-12)
            fail_msg("%s: %g, not %g", row->what, got.distance, row->distance);
    }
}

static void test_top_when_many_change_then_the_largest_three_in_order(void **state)
{
    (void)state;
    struct drift_pair before[] = {{"a", "b", 0, 250, -1}, {"a", "c", 0, 250, -1},
                                  {"a", "d", 0, 250, -1}, {"a", "e", 0, 250, -1}};
    struct drift_pair now[] = {{"a", "b", 0, 240, -1}, {"a", "c", 0, 400, -1},
                               {"a", "d", 0, 260, -1}, {"a", "f", 0, 100, -1}};
    struct drift_result got = drift_measure(before, 4, now, 4, 1);
    assert_int_equal(got.n_top, DRIFT_TOP);
    assert_string_equal(got.top[0].b, "e");
    assert_true(got.top[0].now == 0);
    assert_string_equal(got.top[1].b, "c");
    assert_string_equal(got.top[2].b, "f");
    assert_true(got.top[2].before == 0);
}

/* Whatever share of each pair a placement keeps on a host, its score changes by TV at most. */
static void test_distance_when_any_placement_then_bounds_the_change_of_its_score(void **state)
{
    (void)state;
    static const char *const names[] = {"b", "c", "d", "e", "f", "g"};
    struct rng rng = {.state = 5};
    double closest = 1;
    for (int run = 0; run < 2000; run++) {
        struct drift_pair p[MAX_PAIRS], q[MAX_PAIRS];
        double kept[MAX_PAIRS], score[2] = {0, 0}, total[2] = {0, 0};
        for (size_t i = 0; i < MAX_PAIRS; i++) {
            p[i] = (struct drift_pair){"a", names[i], 0, rng_int(&rng, 1, 1000), -1};
            q[i] = (struct drift_pair){"a", names[i], 0, rng_int(&rng, 1, 1000), -1};
            kept[i] = rng_chance(&rng, 0.7) ? (double)rng_int(&rng, 0, 1) : rng_real(&rng);
            score[0] += kept[i] * (double)p[i].count;
            score[1] += kept[i] * (double)q[i].count;
            total[0] += (double)p[i].count;
            total[1] += (double)q[i].count;
        }
        double change = fabs(score[0] / total[0] - score[1] / total[1]);
        double distance = drift_measure(p, MAX_PAIRS, q, MAX_PAIRS, 1).distance;
        assert_true(change <= distance + 1e-12);
        closest = fmin(closest, distance - change);
    }
    assert_true(closest < 1e-3); /* and it is reached: no smaller bound would do */
}

/* Samples of one distribution, of requests that make ten messages each over the same pair. */
static void test_noise_when_nothing_changed_then_the_mean_distance(void **state)
{
    (void)state;
    static const char *const names[] = {"b", "c", "d", "e", "f", "g"};
    static const double shares[] = {0.4, 0.25, 0.15, 0.1, 0.06, 0.04};
    static const int64_t requests[] = {30, 300, 3000};
    struct rng rng = {.state = 77};
    for (size_t r = 0; r < ARRAY_LEN(requests); r++) {
        double distance = 0, noise = 0;
        for (int run = 0; run < 200; run++) {
            struct drift_pair sides[2][MAX_PAIRS];
            for (int s = 0; s < 2; s++) {
                for (size_t i = 0; i < MAX_PAIRS; i++)
                    sides[s][i] = (struct drift_pair){"a", names[i], 0, 0, -1};
                for (int64_t k = 0; k < requests[r]; k++) {
                    double at = rng_real(&rng);
                    size_t i = 0;
                    while (i + 1 < MAX_PAIRS && at >= shares[i])
                        at -= shares[i++];
                    sides[s][i].count += DRIFT_MESSAGES_PER_REQUEST;
                }
            }
            struct drift_result got =
                drift_measure(sides[0], MAX_PAIRS, sides[1], MAX_PAIRS, 1);
            distance += got.distance / 200;
            noise += got.noise / 200;
        }
        assert_true(fabs(distance - noise) < 0.15 * noise);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distance_when_pairs_change_then_half_of_the_sum),
        cmocka_unit_test(test_top_when_many_change_then_the_largest_three_in_order),
        cmocka_unit_test(test_distance_when_any_placement_then_bounds_the_change_of_its_score),
        cmocka_unit_test(test_noise_when_nothing_changed_then_the_mean_distance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
