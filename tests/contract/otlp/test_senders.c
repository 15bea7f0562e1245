/* test_senders.c - the real OpenTelemetry SDK for Python (etc/test-servers) sends the same spans to a
 * receiver of `remap run` and to a real Jaeger: both sources show the same edges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "model/base/clock.h"
#include "model/base/file.h"
#include "model/base/mem.h"
#include "tests/process/daemon/rig.h"
#include "tests/support/jaeger_server.h"

#define PYTHON "otlp-sdk-1.45.2/bin/python"
#define CALLS "280" /* 1,120 spans of one service: above the 512 of one export */

static const char scenario[] = "name: shop\n"
                               "seed: 3\n"
                               "hosts:\n"
                               "  - {name: n, count: 2, cpu: 4, memory: 4Gi}\n"
                               "services:\n"
                               "  - {name: front-end, hosts: [n-1], entry_rate: 1}\n"
                               "  - {name: carts, hosts: [n-2]}\n"
                               "  - {name: carts-db, hosts: [n-1]}\n"
                               "  - {name: rabbitmq, hosts: [n-2]}\n"
                               "  - {name: worker, hosts: [n-1]}\n"
                               "calls:\n"
                               "  - {from: front-end, to: carts, per_request: 1, bytes: 1Ki}\n"
                               "  - {from: carts, to: carts-db, per_request: 1, bytes: 1Ki}\n"
                               "  - {from: front-end, to: rabbitmq, per_request: 1, bytes: 1Ki}\n"
                               "  - {from: worker, to: rabbitmq, per_request: 1, bytes: 1Ki}\n";

static struct fixture {
    struct rig rig;
    struct jaeger_server jaeger;
    bool has_jaeger;
    int port;
    int64_t cycles;
    int64_t calls; /* of the edge with fewest, in the last cycle */
} fx;

/* Two apps of the same services: one reads what is received, the other asks Jaeger. */
static void configure(void)
{
    struct err err = ERR_INIT;
    AUTO_FREE char *other = mem_printf("  - name: jaeger\n"
                                       "    type: jaeger\n"
                                       "    options:\n"
                                       "      - {name: url, value: \"%s\"}\n"
                                       "      - {name: limit, value: 5000}\n",
                                       fx.jaeger.url);
    AUTO_FREE char *text =
        mem_printf("store: %s\n"
                   "run_dir: %s\n"
                   "http_listen: \"off\"\n"
                   "sources:\n"
                   "  - name: cluster\n"
                   "    type: simulated\n"
                   "    options:\n"
                   "      - {name: socket, value: %s}\n"
                   "  - name: spans\n"
                   "    type: otlp\n"
                   "    options:\n"
                   "      - {name: listen, value: \"127.0.0.1:%d\"}\n"
                   "%s"
                   "apps:\n"
                   "  - {name: received, cluster: cluster, metrics: [cluster], messages: [spans], "
                   "interval: 1h, window: 10m, grace: 0}\n"
                   "%s",
                   fx.rig.store, fx.rig.run_dir, fx.rig.socket, fx.port,
                   fx.has_jaeger ? other : "",
                   fx.has_jaeger ? "  - {name: asked, cluster: cluster, metrics: [cluster], "
                                   "messages: [jaeger], interval: 1h, window: 10m, grace: 0}\n"
                                 : "");
    assert_int_equal(file_write_atomic(fx.rig.config, text, strlen(text), 0644, &err), 0);
}

static int setup(void **state)
{
    (void)state;
    AUTO_FREE char *program = server_cached(JAEGER_PROGRAM);
    fx.port = server_free_port();
    rig_open_scenario(&fx.rig, scenario, 1, "", "");
    fx.has_jaeger = program;
    if (program && !jaeger_server_start(&fx.jaeger, fx.rig.dir, "/tracing"))
        return -1;
    configure();
    rig_start(&fx.rig, true);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    rig_stop(&fx.rig);
    if (fx.has_jaeger)
        server_stop(&fx.jaeger.query);
    rig_close(&fx.rig);
    return 0;
}

static void send_calls(const char *form)
{
    AUTO_FREE char *python = server_cached(PYTHON);
    AUTO_FREE char *ours = mem_printf("http://127.0.0.1:%d/v1/traces", fx.port);
    AUTO_FREE char *theirs = mem_printf("%s/v1/traces", fx.jaeger.otlp.url);
    const char *const argv[] = {
        python, REMAP_SOURCE_DIR "/tests/contract/otlp/send.py", CALLS, form, ours,
        fx.has_jaeger ? theirs : NULL, NULL};
    assert_true(server_run(argv));
}

static int64_t of_cycle(const char *what)
{
    AUTO_FREE char *sql = mem_printf("SELECT coalesce(%s, 0) FROM v_edges WHERE cycle_id = %lld", what,
                                     (long long)fx.cycles);
    return rig_number(&fx.rig, sql);
}

/* Its edges, one a line. Caller frees. */
static char *edges_of(const char *app)
{
    struct buf answer = BUF_INIT;
    AUTO_FREE char *command =
        mem_printf("{\"v\":1,\"command\":\"trigger\",\"app\":\"%s\"}", app);
    if (rig_ask(&fx.rig, command, &answer) < 0)
        fail_msg("%s", answer.data);
    buf_wipe(&answer);
    AUTO_FREE char *ended = mem_printf(
        "SELECT count(*) FROM v_cycles WHERE cycle_id = %lld AND ended_ms IS NOT NULL",
        (long long)++fx.cycles);
    rig_until(&fx.rig, ended);
    AUTO_FREE char *failed = mem_printf(
        "SELECT reason FROM v_cycles WHERE cycle_id = %lld AND state <> 'done'",
        (long long)fx.cycles);
    AUTO_FREE char *reason = rig_text(&fx.rig, failed);
    assert_string_equal(reason, "");
    fx.calls = of_cycle("min(count)");
    AUTO_FREE char *sql = mem_printf(
        "SELECT group_concat(line, char(10)) FROM (SELECT e.src || '>' || e.dst || ' ' || e.count || "
        "' ' || coalesce(e.bytes, '?') || (e.mean_ms IS NULL) AS line FROM v_edges e WHERE "
        "e.cycle_id = %lld ORDER BY line)",
        (long long)fx.cycles);
    return rig_text(&fx.rig, sql);
}

static void test_calls_when_sent_by_the_sdk_then_the_edges_that_jaeger_shows(void **state)
{
    (void)state;
    send_calls("PLAIN");
    send_calls("GZIP");
    char *received = NULL; /* complete once the newest slice of time is in the window */
    for (int64_t until = clock_mono_ms() + RIG_PATIENCE_MS; fx.calls < 560;) {
        free(received);
        received = edges_of("received");
        assert_true(clock_mono_ms() < until);
    }
    print_message("%s\n", received);
    assert_int_equal(of_cycle("count(*)"), 4);
    assert_int_equal(of_cycle("min(count)"), 560);
    assert_int_equal(of_cycle("max(count)"), 560);
    assert_int_equal(of_cycle("sum(bytes)"), 560 * 103); /* (0 + … + 6) / 7 = 3 */
    if (!fx.has_jaeger) {
        print_message("without Jaeger there is nothing to compare with\n");
        free(received);
        return;
    }
    char *asked = NULL; /* it stores after it has answered */
    for (int64_t until = clock_mono_ms() + RIG_PATIENCE_MS; !asked || strcmp(received, asked) != 0;) {
        if (clock_mono_ms() > until)
            fail_msg("%s\nis not\n%s", received, asked);
        free(asked);
        asked = edges_of("asked");
    }
    free(asked);
    free(received);
}

int main(void)
{
    AUTO_FREE char *python = server_cached(PYTHON);
    if (!python) {
        printf("SKIPPED no OpenTelemetry SDK in the cache (etc/test-servers fetches it from PyPI)\n");
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls_when_sent_by_the_sdk_then_the_edges_that_jaeger_shows),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
