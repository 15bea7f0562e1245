/* test_samples.c - usage that is sampled and kept, and the answers it is taken from. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "adapters/kubernetes/samples.h"
#include "adapters/kubernetes/when.h"
#include "model/base/json.h"

static size_t mean(const struct samples *samples, int64_t from, int64_t to, double *cores)
{
    double bytes;
    *cores = -1;
    return samples_mean(samples, "a/p", from, to, cores, &bytes);
}

static void test_samples_when_timestamp_is_the_same_then_counted_once(void **state)
{
    (void)state;
    AUTO(samples) struct samples *samples = samples_new();
    double cores;
    samples_add(samples, "a/p", 1000, 0.5, 10);
    samples_add(samples, "a/p", 1000, 9, 10);
    samples_add(samples, "a/p", 900, 9, 10);
    samples_add(samples, "a/p", 2000, 1.5, 10);
    assert_int_equal(mean(samples, 0, 5000, &cores), 2);
    assert_true(cores == 1.0);
}

static void test_samples_when_window_is_asked_then_only_its_samples(void **state)
{
    (void)state;
    AUTO(samples) struct samples *samples = samples_new();
    double cores;
    for (int i = 0; i < 10; i++)
        samples_add(samples, "a/p", i * 1000, i, 0);
    assert_int_equal(mean(samples, 3000, 5000, &cores), 3);
    assert_true(cores == 4.0);
    assert_int_equal(mean(samples, 9500, 9900, &cores), 0);
}

static void test_samples_when_ring_is_full_then_the_oldest_go(void **state)
{
    (void)state;
    AUTO(samples) struct samples *samples = samples_new();
    double cores;
    for (int i = 0; i < 3 * SAMPLES_KEPT + 5; i++)
        samples_add(samples, "a/p", i, i, 0);
    assert_int_equal(mean(samples, 0, INT64_MAX, &cores), SAMPLES_KEPT);
    assert_int_equal(mean(samples, 0, 2 * SAMPLES_KEPT + 4, &cores), 0);
    assert_int_equal(mean(samples, 0, 2 * SAMPLES_KEPT + 5, &cores), 1);
}

static void count(void *ctx, const char *name)
{
    (void)name;
    (*(int *)ctx)++;
}

static void test_samples_when_things_are_gone_then_forgotten(void **state)
{
    (void)state;
    AUTO(samples) struct samples *samples = samples_new();
    int n = 0;
    for (int i = 0; i < 500; i++) {
        char name[16];
        snprintf(name, sizeof name, "a/%d", i);
        samples_add(samples, name, i, 1, 1);
    }
    samples_forget(samples, 490);
    samples_each(samples, count, &n);
    assert_int_equal(n, 10);
    assert_int_equal(samples_newest_ms(samples), 499);
}

static void test_pause_when_window_is_long_then_longer(void **state)
{
    (void)state;
    assert_int_equal(samples_pause_ms(600000), 15000);
    assert_true(samples_pause_ms(86400000) * SAMPLES_KEPT >= 86400000);
}

static void take(const char *text, struct samples *pods, struct samples *nodes)
{
    struct err err = ERR_INIT;
    AUTO_JSON json_t *item = json_parse(text, strlen(text), &json_limits_document, &err);
    if (!item)
        fail_msg("%s", err.text);
    kube_metrics_take(item, pods, nodes);
}

static void test_metrics_when_pod_has_containers_then_their_sum(void **state)
{
    (void)state;
    AUTO(samples) struct samples *pods = samples_new();
    AUTO(samples) struct samples *nodes = samples_new();
    double cores = 0, bytes = 0;
    take("{\"metadata\":{\"name\":\"p\",\"namespace\":\"a\"},\"timestamp\":\"1970-01-01T00:00:05Z\","
         "\"window\":\"19s\",\"containers\":[{\"usage\":{\"cpu\":\"179m\",\"memory\":\"3127988Ki\"}},"
         "{\"usage\":{\"cpu\":\"21000000n\",\"memory\":\"12Ki\"}}]}",
         pods, nodes);
    take("{\"metadata\":{\"name\":\"n\"},\"timestamp\":\"1970-01-01T00:00:05Z\","
         "\"usage\":{\"cpu\":\"2\",\"memory\":\"1Gi\"}}",
         pods, nodes);
    assert_int_equal(samples_mean(pods, "a/p", 5000, 5000, &cores, &bytes), 1);
    assert_true(cores > 0.1999 && cores < 0.2001);
    assert_true(bytes == 3128000.0 * 1024);
    assert_int_equal(samples_mean(nodes, "n", 0, 5000, &cores, &bytes), 1);
    assert_true(cores == 2.0);
}

static void test_metrics_when_incomplete_then_left_out(void **state)
{
    (void)state;
    AUTO(samples) struct samples *pods = samples_new();
    AUTO(samples) struct samples *nodes = samples_new();
    int n = 0;
#define POD(rest) "{\"metadata\":{\"name\":\"p\",\"namespace\":\"a\"}" rest "}"
#define AT ",\"timestamp\":\"1970-01-01T00:00:05Z\""
    take(POD(AT ",\"containers\":[]"), pods, nodes);
    take(POD(AT ",\"containers\":null"), pods, nodes);
    take(POD(AT ",\"containers\":[{\"usage\":{\"cpu\":\"1\"}}]"), pods, nodes);
    take(POD(AT ",\"containers\":[{\"usage\":{\"cpu\":\"x\",\"memory\":\"1\"}}]"), pods, nodes);
    take(POD(",\"containers\":[{\"usage\":{\"cpu\":\"1\",\"memory\":\"1\"}}]"), pods, nodes);
    take("{}", pods, nodes);
    samples_each(pods, count, &n);
    samples_each(nodes, count, &n);
    assert_int_equal(n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples_when_timestamp_is_the_same_then_counted_once),
        cmocka_unit_test(test_samples_when_window_is_asked_then_only_its_samples),
        cmocka_unit_test(test_samples_when_ring_is_full_then_the_oldest_go),
        cmocka_unit_test(test_samples_when_things_are_gone_then_forgotten),
        cmocka_unit_test(test_pause_when_window_is_long_then_longer),
        cmocka_unit_test(test_metrics_when_pod_has_containers_then_their_sum),
        cmocka_unit_test(test_metrics_when_incomplete_then_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
