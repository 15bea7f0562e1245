/* bench_otlp.c - spans per second that a receiver of `remap run` takes over OTLP/HTTP, with the memory
 * of its monitor, beside a real Jaeger that gets the same bodies in the same run. Prints; passes or
 * fails nothing. A second monitor then gets as many halves whose other half never comes.
 *
 * remap-bench-otlp [SPANS] */
#include <curl/curl.h>
#include <inttypes.h>
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
#include "tests/support/otlp_body.h"
#include "tests/support/temp_dir.h"

#define SPANS_PER_REQUEST 8192 /* a Collector's default batch */
#define SERVICES 50

/* Of each trace one span, of a client that nobody answers. */
static void make_halves(uint64_t *trace, struct buf *out)
{
    AUTO_FREE struct sample_span *spans = mem_array(SPANS_PER_REQUEST, sizeof *spans);
    int64_t at = (clock_wall_ms() - 30000) * 1000;
    for (size_t n = 0; n < SPANS_PER_REQUEST; n++)
        spans[n] = (struct sample_span){"a", NULL, ++*trace, 1, 0, CLIENT, at, 9000,
                                        {{NULL, NULL, 0}}};
    otlp_body_protobuf(spans, SPANS_PER_REQUEST, out);
}

/* Calls through a chain of services: of each call the client's and the server's half. */
static void make_body(uint64_t *trace, struct buf *out)
{
    AUTO_FREE struct sample_span *spans = mem_array(SPANS_PER_REQUEST, sizeof *spans);
    static char names[SERVICES][16];
    int64_t at = (clock_wall_ms() - 30000) * 1000;
    for (int i = 0; i < SERVICES; i++)
        snprintf(names[i], sizeof names[i], "service-%d", i);
    for (size_t n = 0; n + 8 <= SPANS_PER_REQUEST; ++*trace)
        for (int call = 0; call < 4; call++) {
            uint64_t id = (uint64_t)call * 2 + 1;
            int caller = (int)((*trace * 7 + (uint64_t)call) % SERVICES);
            spans[n++] = (struct sample_span){names[caller], NULL, *trace + 1, id, id - 1, CLIENT, at,
                                              9000, {{NULL, NULL, 0}}};
            spans[n++] = (struct sample_span){names[(caller + 1) % SERVICES], NULL, *trace + 1, id + 1,
                                              id, SERVER, at, 5000,
                                              {{"http.response.body.size", NULL, 300}}};
        }
    otlp_body_protobuf(spans, SPANS_PER_REQUEST, out);
}

static size_t drop(char *data, size_t size, size_t n, void *ctx)
{
    (void)data;
    (void)ctx;
    return size * n;
}

static long post(CURL *curl, const char *url, const struct buf *body)
{
    struct curl_slist *list = curl_slist_append(NULL, "Content-Type: application/x-protobuf");
    long status = 0;
    list = curl_slist_append(list, "Expect:");
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, list);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, drop);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body->data);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body->size);
    if (curl_easy_perform(curl) == CURLE_OK)
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    curl_slist_free_all(list);
    return status;
}

static int64_t peak_kib(pid_t pid)
{
    struct err err = ERR_INIT;
    AUTO_BUF struct buf text = BUF_INIT;
    AUTO_FREE char *path = mem_printf("/proc/%ld/status", (long)pid);
    if (file_read(path, 1 << 16, &text, &err))
        return -1;
    const char *at = strstr(text.data, "VmHWM:");
    return at ? strtoll(at + 6, NULL, 10) : -1;
}

static void run(const char *name, const char *url, const struct buf *bodies, size_t n, pid_t pid)
{
    int64_t taken = 0, refused = 0, failed = 0;
    CURL *curl = curl_easy_init();
    int64_t began = clock_mono_ms();
    for (size_t i = 0; i < n; i++) {
        long status = post(curl, url, &bodies[i]);
        *(status == 200 ? &taken : status == 429 ? &refused : &failed) += SPANS_PER_REQUEST;
    }
    int64_t took = clock_mono_ms() - began;
    curl_easy_cleanup(curl);
    printf("%-8s %9" PRId64 " spans in %6" PRId64 " ms  %8" PRId64 " spans/s  refused %" PRId64
           "  failed %" PRId64 "  peak %" PRId64 " MiB\n",
           name, taken, took, taken * 1000 / (took ? took : 1), refused, failed, peak_kib(pid) / 1024);
    fflush(stdout);
}

static void configure(struct rig *rig, int port)
{
    struct err err = ERR_INIT;
    AUTO_FREE char *text = mem_printf(
        "store: %s\nrun_dir: %s\nhttp_listen: \"off\"\nlog_level: error\nsources:\n"
        "  - {name: cluster, type: simulated, options: [{name: socket, value: %s}]}\n"
        "  - {name: spans, type: otlp, options: [{name: listen, value: \"127.0.0.1:%d\"}]}\n"
        "apps:\n  - {name: rig, cluster: cluster, messages: [spans], interval: 1h, window: 10m}\n",
        rig->store, rig->run_dir, rig->socket, port);
    if (file_write_atomic(rig->config, text, strlen(text), 0644, &err))
        abort();
}

static void run_remap(const char *name, const struct buf *bodies, size_t n)
{
    struct rig rig;
    int port = server_free_port();
    AUTO_FREE char *url = mem_printf("http://127.0.0.1:%d/v1/traces", port);
    rig_open(&rig, 1, "", "");
    configure(&rig, port);
    rig_start(&rig, true);
    run(name, url, bodies, n, rig_pid(&rig, "monitor"));
    rig_stop(&rig);
    rig_close(&rig);
}

static void run_jaeger(const struct buf *bodies, size_t n)
{
    struct jaeger_server jaeger;
    AUTO_FREE char *program = server_cached(JAEGER_PROGRAM);
    AUTO_FREE char *folder = temp_dir_new();
    if (!program) {
        printf("jaeger   is not in the cache (etc/test-servers)\n");
    } else if (jaeger_server_start(&jaeger, folder, "/tracing")) {
        AUTO_FREE char *url = mem_printf("%s/v1/traces", jaeger.otlp.url);
        run("jaeger", url, bodies, n, jaeger.query.pid);
        server_stop(&jaeger.query);
    }
    temp_dir_remove(folder);
}

int main(int argc, char **argv)
{
    size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) / SPANS_PER_REQUEST : 122;
    struct buf *bodies = mem_array(n + 1, sizeof *bodies);
    uint64_t trace = 0;
    curl_global_init(CURL_GLOBAL_DEFAULT);
    for (size_t i = 0; i < n; i++)
        make_body(&trace, &bodies[i]);
    printf("%zu requests of %d spans, %zu KiB each\n", n, SPANS_PER_REQUEST, bodies[0].size / 1024);
    run_remap("remap", bodies, n);
    run_jaeger(bodies, n);
    for (size_t i = 0; i < n; i++) {
        buf_clear(&bodies[i]);
        make_halves(&trace, &bodies[i]);
    }
    run_remap("halves", bodies, n);
    for (size_t i = 0; i < n; i++)
        buf_wipe(&bodies[i]);
    free(bodies);
    curl_global_cleanup();
    return 0;
}
