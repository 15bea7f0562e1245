/* bench_import.c - what an import costs: spans per second and peak memory of remap-monitor for
 * recordings of several shapes, written to a temporary file first.
 *
 *     remap-bench-import [SPANS]     default 2,000,000 per shape
 * Goals: 200,000 spans/s at 64 MB whatever the size. Nothing is asserted: times are this machine's. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "model/base/mem.h"

struct shape {
    const char *name;
    int per_trace;   /* spans of one trace */
    int interleaved; /* traces whose spans come mixed */
    bool otlp;
};

static const struct shape shapes[] = {
    {"traces one after the other", 44, 1, false},
    {"1,000 traces mixed", 44, 1000, false},
    {"every span a trace", 1, 1, false},
    {"window overfull (late spans)", 400, 1000, false},
    {"OTLP, 1,000 traces mixed", 44, 1000, true},
};

static double now_s(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void zipkin_span(FILE *f, unsigned long long trace, int i)
{
    int service = i / 2 % 20;
    const char *kind = i % 2 ? "CLIENT" : "SERVER";
    fprintf(f,
            "{\"traceId\":\"%032llx\",\"id\":\"%016x\",\"parentId\":\"%016x\",\"kind\":\"%s\","
            "\"name\":\"hipstershop.ProductCatalogService/GetProduct\",\"timestamp\":1661140374351910,"
            "\"duration\":5572,\"localEndpoint\":{\"serviceName\":\"service-%d\"},\"tags\":{\"pod\":"
            "\"service-%d-579b9bff58-t2dbm\",\"http.method\":\"GET\",\"http.request.size\":\"512\"}}\n",
            trace, i + 1, i, kind, service, service);
}

static void otlp_span(FILE *f, unsigned long long trace, int i)
{
    fprintf(f,
            "{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"service.name\",\"value\":{"
            "\"stringValue\":\"service-%d\"}},{\"key\":\"k8s.pod.name\",\"value\":{\"stringValue\":"
            "\"service-%d-579b9bff58-t2dbm\"}}]},\"scopeSpans\":[{\"scope\":{\"name\":\"http\"},"
            "\"spans\":[{\"traceId\":\"%032llx\",\"spanId\":\"%016x\",\"parentSpanId\":\"%016x\","
            "\"kind\":%d,\"startTimeUnixNano\":\"1661140374351910000\",\"endTimeUnixNano\":"
            "\"1661140374357482000\",\"attributes\":[{\"key\":\"http.request.body.size\",\"value\":{"
            "\"intValue\":\"512\"}}]}]}]}]}\n",
            i / 2 % 20, i / 2 % 20, trace, i + 1, i, i % 2 ? 3 : 2);
}

static long write_spans(FILE *f, const struct shape *shape, long wanted)
{
    long written = 0;
    unsigned long long base = 1;
    while (written < wanted) {
        for (int i = 0; i < shape->per_trace; i++)
            for (int t = 0; t < shape->interleaved; t++, written++)
                (shape->otlp ? otlp_span : zipkin_span)(f, base + (unsigned)t, i);
        base += (unsigned)shape->interleaved;
    }
    return written;
}

/* Seconds, or below 0; *peak_kb of the child alone. */
static double run(const char *path, long *peak_kb)
{
    AUTO_FREE char *command = mem_printf("printf '{\"v\":1,\"traces\":[\"%s\"]}' | exec %s/remap-monitor "
                                         "--filter import 2>/dev/null >/dev/null",
                                         path, REMAP_BIN_DIR);
    struct rusage usage;
    int status = 0;
    double start = now_s();
    pid_t pid = fork();
    if (pid == 0) {
        execl("/bin/bash", "bash", "-c", command, (char *)NULL);
        _exit(127);
    }
    if (pid < 0 || wait4(pid, &status, 0, &usage) < 0 || status != 0)
        return -1;
    *peak_kb = usage.ru_maxrss;
    return now_s() - start;
}

static int bench(const struct shape *shape, long wanted)
{
    char path[] = "/tmp/remap-bench-XXXXXX";
    int fd = mkstemp(path);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    if (!f) {
        perror(path);
        return -1;
    }
    long n = write_spans(f, shape, wanted), peak_kb = 0;
    fclose(f);
    struct stat st;
    double seconds = stat(path, &st) == 0 ? run(path, &peak_kb) : -1;
    unlink(path);
    if (seconds < 0) {
        fprintf(stderr, "remap-bench-import: %s: the import failed\n", shape->name);
        return -1;
    }
    printf("%-30s %9ld %6.0f %10.0f %8.1f\n", shape->name, n, (double)st.st_size / 1e6,
           (double)n / seconds, (double)peak_kb / 1024);
    return 0;
}

int main(int argc, char **argv)
{
    long wanted = argc > 1 ? atol(argv[1]) : 2000000;
    puts("goal: 200,000 spans/s at 64 MB");
    puts("shape                              spans     MB    spans/s  peak MB");
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
        if (bench(&shapes[i], wanted) < 0)
            return 1;
    return 0;
}
