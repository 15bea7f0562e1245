/* test_gaps.c - means of CPU where the samples of a thing do not fill the window, against a real
 * Prometheus: its exporter died half-way, was away for a while, the pod is young, its container was
 * begun anew. What Prometheus writes when a scrape fails, the mark that ends a series, is written
 * here by remote write: blocks of promtool cannot hold it. */
#include "tests/contract/prometheus/prom_rig.h"

#include <stdlib.h>
#include <string.h>

#include "tests/contract/prometheus/remote.pb-c.h"

#define CPU "container_cpu_usage_seconds_total"
#define HALF (prom_rig.end - WINDOW / 2)
#define BEGIN (prom_rig.end - SPAN)

#define PHASE_MS 7300 /* scrapes do not fall on the edges of the window */

/* The not-a-number by which Prometheus ends a series (model/value/value.go: StaleNaN). */
static double stale_mark(void)
{
    const uint64_t bits = 0x7ff0000000000002;
    double mark;
    memcpy(&mark, &bits, sizeof mark);
    return mark;
}

/* The block format of snappy allows what is not compressed: its size, then runs of at most 60
 * bytes. */
static void snappy_literal(const uint8_t *data, size_t size, struct buf *out)
{
    for (size_t rest = size;; rest >>= 7) {
        uint8_t byte = (uint8_t)((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0));
        buf_add(out, (const char *)&byte, 1);
        if (rest <= 0x7f)
            break;
    }
    for (size_t at = 0; at < size; at += 60) {
        size_t run = size - at < 60 ? size - at : 60;
        uint8_t tag = (uint8_t)((run - 1) << 2);
        buf_add(out, (const char *)&tag, 1);
        buf_add(out, (const char *)data + at, run);
    }
}

static void push(Remote__TimeSeries *series)
{
    Remote__WriteRequest request = REMOTE__WRITE_REQUEST__INIT;
    request.n_timeseries = 1;
    request.timeseries = &series;
    size_t size = remote__write_request__get_packed_size(&request);
    AUTO_FREE uint8_t *packed = mem_alloc(size);
    AUTO_BUF struct buf body = BUF_INIT;
    remote__write_request__pack(&request, packed);
    snappy_literal(packed, size, &body);
    long status = server_post(&prom_rig.server, "/api/v1/write", "application/x-protobuf",
                              body.data, body.size);
    assert_int_equal(status, 204);
}

/* Labels of a series, as Prometheus wants them: sorted by name. */
struct labels {
    const char *cluster, *container, *id, *instance, *pod;
};

/* A container that was begun at `since` and uses `rate` cores, scraped between `from` and `to`, and
 * the mark after the last scrape where that is before the end. */
static void cpu(const struct labels *of, int64_t since, int64_t from, int64_t to, double rate)
{
    const char *const names[] = {"__name__", "cluster",   "container", "id",
                                 "instance", "namespace", "pod"};
    const char *const values[] = {
        CPU, of->cluster, of->container, of->id, of->instance, of->pod ? "shop" : NULL, of->pod};
    Remote__Label labels[ARRAY_LEN(names)], *label_list[ARRAY_LEN(names)];
    Remote__Sample samples[SPAN / SCRAPE + 2], *sample_list[ARRAY_LEN(samples)];
    Remote__TimeSeries series = REMOTE__TIME_SERIES__INIT;
    series.labels = label_list;
    series.samples = sample_list;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (!values[i])
            continue;
        labels[i] = (Remote__Label)REMOTE__LABEL__INIT;
        labels[i].name = (char *)names[i];
        labels[i].value = (char *)values[i];
        label_list[series.n_labels++] = &labels[i];
    }
    int64_t t = from * 1000 + PHASE_MS;
    for (; t <= to * 1000; t += SCRAPE * 1000) {
        Remote__Sample *sample = &samples[series.n_samples];
        *sample = (Remote__Sample)REMOTE__SAMPLE__INIT;
        sample->timestamp = t;
        sample->value = rate * ((double)t / 1000 - (double)since);
        sample_list[series.n_samples++] = sample;
    }
    if (t <= prom_rig.end * 1000 && strcmp(of->cluster, "unmarked") != 0) {
        Remote__Sample *mark = &samples[series.n_samples];
        *mark = (Remote__Sample)REMOTE__SAMPLE__INIT;
        mark->timestamp = t;
        mark->value = stale_mark();
        sample_list[series.n_samples++] = mark;
    }
    push(&series);
}

/* --- what there is --- */

/* n1 with its two pods: the exporter died half-way. n2: always there; db-0's container was begun
 * anew under another id. */
static void push_dead(void)
{
    const int64_t begin = BEGIN, half = HALF, end = prom_rig.end;
    cpu(&(struct labels){"dead", "app", "1", NULL, "front-1"}, begin, begin, half, 0.3);
    cpu(&(struct labels){"dead", "proxy", "2", NULL, "front-1"}, begin, begin, half, 0.1);
    cpu(&(struct labels){"dead", "app", "3", NULL, "cart-1"}, begin, begin, half, 0.25);
    cpu(&(struct labels){"dead", NULL, "/", "10.0.0.1:10250", NULL}, begin, begin, half, 1.5);
    cpu(&(struct labels){"dead", "app", "4", NULL, "cart-2"}, begin, begin, end, 0.5);
    cpu(&(struct labels){"dead", "db", "5", NULL, "db-0"}, begin, begin, half, 0.2);
    cpu(&(struct labels){"dead", "db", "6", NULL, "db-0"}, half, half, end, 0.2);
    cpu(&(struct labels){"dead", NULL, "/", "10.0.0.2:10250", NULL}, begin, begin, end, 1.2);
}

/* Of n1 nothing for a quarter of the window; cart-2 was born half-way, db-0 ended there; front-1
 * was seen for the first moments of the window alone. */
static void push_gap(void)
{
    const int64_t begin = BEGIN, half = HALF, end = prom_rig.end;
    const struct labels gap = {"gap", "app", "3", NULL, "cart-1"};
    cpu(&gap, begin, begin, half - WINDOW / 4, 0.25);
    cpu(&gap, begin, half, end, 0.25);
    cpu(&(struct labels){"gap", "app", "4", NULL, "cart-2"}, half, half, end, 0.5);
    cpu(&(struct labels){"gap", "db", "5", NULL, "db-0"}, begin, begin, half, 0.2);
    cpu(&(struct labels){"gap", "app", "1", NULL, "front-1"}, begin, begin,
        end - WINDOW + 2 * SCRAPE, 0.3);
}

/* As a kubelet's own times make them: nothing tells the server that a series has ended. */
static void push_unmarked(void)
{
    const int64_t begin = BEGIN, half = HALF, end = prom_rig.end;
    cpu(&(struct labels){"unmarked", "app", "3", NULL, "cart-1"}, begin, begin, half, 0.25);
    cpu(&(struct labels){"unmarked", "db", "5", NULL, "db-0"}, begin, begin, half, 0.2);
    cpu(&(struct labels){"unmarked", "db", "6", NULL, "db-0"}, half, half, end, 0.2);
    cpu(&(struct labels){"unmarked", "app", "4", NULL, "cart-2"}, begin, begin, end, 0.5);
    cpu(&(struct labels){"unmarked", "app", "1", NULL, "front-1"}, begin, begin,
        end - WINDOW + 2 * SCRAPE, 0.3);
}

static int setup(void **state)
{
    (void)state;
    if (prom_rig_open_empty())
        return -1;
    push_dead();
    push_gap();
    push_unmarked();
    return 0;
}

/* --- tests --- */

static struct inspection measured(const char *matchers, const char *hosts)
{
    struct inspection in = rig_inspection();
    rig_measure((const char *[]){"matchers", matchers, "hosts", hosts, "memory_query", "",
                                 "host_memory_query", "", NULL},
                &in);
    return in;
}

/* How long a thing was there is known to half a tenth of the window, 30 s, and its counter to half
 * a scrape interval: 300 s are 270 at worst, which makes it a ninth more, and 2.5 % again. */
#define HALF_THERE(millis) ((millis) * 0.15)
/* Without the mark it seems to go on for as long as a scrape may take, a quarter of the resolution. */
#define HALF_THERE_UNMARKED(millis) ((millis) * 0.22)

static void test_cpu_when_exporter_dies_half_way_then_what_the_pods_used(void **state)
{
    (void)state;
    struct inspection in = measured("cluster=\"dead\"", "cadvisor");
    assert_near((double)rig_cpu(&in, "shop/front-1"), 400, HALF_THERE(400));
    assert_near((double)rig_cpu(&in, "shop/cart-1"), 250, HALF_THERE(250));
    /* All of n1 is measured by the same share, so what others use there stays right too. */
    assert_near((double)in.model->hosts[0].cpu_used_millis, 1500 - 650, HALF_THERE(1500));
    rig_end(&in);
}

static void test_cpu_when_there_all_the_time_then_the_mean_of_the_window(void **state)
{
    (void)state;
    struct inspection in = measured("cluster=\"dead\"", "cadvisor");
    assert_near((double)rig_cpu(&in, "shop/cart-2"), 500, 1);
    /* Two containers one after the other are one pod: each has a share of the window. */
    assert_near((double)rig_cpu(&in, "shop/db-0"), 200, 200.0 * SCRAPE / WINDOW + 1);
    assert_near((double)in.model->hosts[1].cpu_used_millis, 1200 - 700, 10);
    rig_end(&in);
}

static void test_cpu_when_exporter_was_away_then_the_mean_through_the_gap(void **state)
{
    (void)state;
    struct inspection in = measured("cluster=\"gap\"", "none");
    assert_near((double)rig_cpu(&in, "shop/cart-1"), 250, 1);
    rig_end(&in);
}

static void test_cpu_when_pod_began_or_ended_half_way_then_what_it_used(void **state)
{
    (void)state;
    struct inspection in = measured("cluster=\"gap\"", "none");
    assert_near((double)rig_cpu(&in, "shop/cart-2"), 500, HALF_THERE(500));
    assert_near((double)rig_cpu(&in, "shop/db-0"), 200, HALF_THERE(200));
    rig_end(&in);
}

static void test_cpu_when_seen_for_a_moment_then_no_sample_and_said(void **state)
{
    (void)state;
    struct inspection in = measured("cluster=\"gap\"", "none");
    assert_int_equal(rig_cpu(&in, "shop/front-1"), 0);
    assert_non_null(note_find(&in, "no-sample", "shop/front-1"));
    rig_end(&in);
}

static void test_cpu_when_nothing_marks_the_end_then_the_same(void **state)
{
    (void)state;
    struct inspection in = measured("cluster=\"unmarked\"", "none");
    assert_near((double)rig_cpu(&in, "shop/cart-1"), 250, HALF_THERE_UNMARKED(250));
    assert_near((double)rig_cpu(&in, "shop/db-0"), 200, 200.0 * SCRAPE / WINDOW + 1);
    assert_near((double)rig_cpu(&in, "shop/cart-2"), 500, 1);
    assert_int_equal(rig_cpu(&in, "shop/front-1"), 0);
    assert_non_null(note_find(&in, "no-sample", "shop/front-1"));
    rig_end(&in);
}

int main(void)
{
    AUTO_FREE char *program = server_program("prometheus");
    if (!program) {
        printf("SKIPPED no prometheus on this machine (Debian package prometheus)\n");
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cpu_when_exporter_dies_half_way_then_what_the_pods_used),
        cmocka_unit_test(test_cpu_when_there_all_the_time_then_the_mean_of_the_window),
        cmocka_unit_test(test_cpu_when_exporter_was_away_then_the_mean_through_the_gap),
        cmocka_unit_test(test_cpu_when_pod_began_or_ended_half_way_then_what_it_used),
        cmocka_unit_test(test_cpu_when_nothing_marks_the_end_then_the_same),
        cmocka_unit_test(test_cpu_when_seen_for_a_moment_then_no_sample_and_said),
    };
    return cmocka_run_group_tests(tests, setup, prom_rig_close);
}
