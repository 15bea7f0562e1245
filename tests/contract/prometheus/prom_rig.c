/* prom_rig.c - a real Prometheus with blocks that promtool made from what a test writes, and a small
 * application to measure with it. */
#include "tests/contract/prometheus/prom_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/identity.h"
#include "model/base/clock.h"
#include "tests/support/temp_dir.h"

struct prom_rig prom_rig;

void rig_series(FILE *out, const char *name, int64_t from, int64_t to, double start, double rate)
{
    for (int64_t t = from; t <= to; t += SCRAPE)
        fprintf(out, "%s %.15g %lld\n", name, start + rate * (double)(t - from), (long long)t);
}

void rig_whole(FILE *out, const char *name, double start, double rate)
{
    rig_series(out, name, prom_rig.end - SPAN, prom_rig.end, start, rate);
}

static int serve(const char *blocks)
{
    AUTO_FREE char *program = server_program("prometheus");
    int port = server_free_port();
    AUTO_FREE char *listen = mem_printf("--web.listen-address=127.0.0.1:%d", port);
    AUTO_FREE char *path = mem_printf("--storage.tsdb.path=%s", blocks);
    const char *argv[] = {program, "--config.file=/dev/null", listen,
                          path,    "--web.enable-remote-write-receiver", NULL};
    server_start(&prom_rig.server, "prometheus", prom_rig.folder, port, argv);
    return server_wait(&prom_rig.server, "/-/ready") ? 0 : -1;
}

static void begin(void)
{
    prom_rig.folder = temp_dir_new();
    prom_rig.end = clock_wall_ms() / 1000 / SCRAPE * SCRAPE;
}

int prom_rig_open_empty(void)
{
    begin();
    AUTO_FREE char *blocks = mem_printf("%s/blocks", prom_rig.folder);
    return serve(blocks);
}

int prom_rig_open(void (*write)(FILE *out))
{
    begin();
    AUTO_FREE char *text = mem_printf("%s/data.om", prom_rig.folder);
    AUTO_FREE char *blocks = mem_printf("%s/blocks", prom_rig.folder);
    FILE *out = fopen(text, "we");
    write(out);
    fputs("# EOF\n", out);
    fclose(out);
    AUTO_FREE char *promtool = server_program("promtool");
    const char *make[] = {promtool, "tsdb", "create-blocks-from", "openmetrics", text, blocks, NULL};
    if (!server_run(make))
        return -1;
    return serve(blocks);
}

int prom_rig_close(void **state)
{
    (void)state;
    server_stop(&prom_rig.server);
    temp_dir_remove(prom_rig.folder);
    free(prom_rig.folder);
    return 0;
}

/* --- an application --- */

static const char *const spaces[] = {"shop", NULL}, *const all[] = {NULL};
const struct app_scope rig_app = {"shop", spaces, all};

struct inspection rig_inspection(void)
{
    struct err err = ERR_INIT;
    struct model *m = model_new();
    static const char *const services[] = {"shop/front", "shop/cart", "shop/db"};
    static const struct {
        const char *name;
        int service, host;
    } pods[] = {{"shop/front-1", 0, 0}, {"shop/cart-1", 1, 0}, {"shop/cart-2", 1, 1},
                {"shop/db-0", 2, 1}};
    assert_int_equal(model_add_host(m, "n1", &err), 0);
    assert_int_equal(model_add_host(m, "n2", &err), 1);
    for (size_t i = 0; i < ARRAY_LEN(services); i++)
        assert_int_equal(model_add_service(m, services[i], &err), i);
    for (size_t i = 0; i < ARRAY_LEN(pods); i++)
        assert_int_equal(model_add_instance(m, pods[i].name, pods[i].service, pods[i].host, &err),
                         i);
    struct inspection in = {.model = m, .identity = identity_new(m)};
    identity_add(in.identity, IDENTITY_HOST, "10.0.0.1", "n1");
    identity_add(in.identity, IDENTITY_HOST, "10.0.0.2", "n2");
    return in;
}

void rig_end(struct inspection *in)
{
    struct err err = ERR_INIT;
    in->model->has_messages = true; /* as the inspection does */
    if (model_check(in->model, &err))
        fail_msg("%s", err.text);
    model_free(in->model);
    identity_free(in->identity);
    inspection_wipe(in);
}

/* `extra`: names and values, ended by NULL. */
struct source rig_source(struct option options[RIG_MAX_OPTIONS], const char *const extra[])
{
    struct source source = {"prom", "prometheus", options, 1};
    options[0] = (struct option){"url", prom_rig.server.url};
    for (size_t i = 0; extra[i]; i += 2)
        options[source.n_options++] = (struct option){extra[i], extra[i + 1]};
    return source;
}

static struct window rig_window(int64_t end)
{
    return (struct window){(end - WINDOW) * 1000, end * 1000};
}

int rig_try_measure(const char *const extra[], struct inspection *in, struct err *err)
{
    struct option options[RIG_MAX_OPTIONS];
    struct source source = rig_source(options, extra);
    struct window window = rig_window(prom_rig.end);
    void *ctx;
    if (prometheus_metrics.open(&source, &ctx, err))
        return -1;
    int rc = prometheus_metrics.measure(ctx, &rig_app, &window, in, err);
    prometheus_metrics.close(ctx);
    return rc;
}

int rig_try_trace(const char *const extra[], int64_t end, struct inspection *in, struct err *err)
{
    struct option options[RIG_MAX_OPTIONS];
    struct source source = rig_source(options, extra);
    struct window window = rig_window(end);
    void *ctx;
    if (prometheus_messages.open(&source, &ctx, err))
        return -1;
    int rc = prometheus_messages.trace(ctx, &rig_app, &window, in, err);
    prometheus_messages.close(ctx);
    return rc;
}

void rig_measure(const char *const extra[], struct inspection *in)
{
    struct err err = ERR_INIT;
    if (rig_try_measure(extra, in, &err))
        fail_msg("%s", err.text);
}

void rig_trace(const char *const extra[], struct inspection *in)
{
    struct err err = ERR_INIT;
    if (rig_try_trace(extra, prom_rig.end, in, &err))
        fail_msg("%s", err.text);
}

void assert_near(double got, double wanted, double tolerance)
{
    if (fabs(got - wanted) > tolerance)
        fail_msg("%.9g is not %.9g ± %g", got, wanted, tolerance);
}

int64_t rig_cpu(const struct inspection *in, const char *name)
{
    return in->model->instances[model_instance(in->model, name)].cpu_used_millis;
}

int64_t rig_memory(const struct inspection *in, const char *name)
{
    return in->model->instances[model_instance(in->model, name)].mem_used_bytes;
}

/* The row between two services, whichever of their instances bear it. */
const struct message *rig_row(const struct inspection *in, const char *src, const char *dst)
{
    const struct model *m = in->model;
    for (size_t i = 0; i < m->n_messages; i++) {
        const struct message *row = &m->messages[i];
        int a = row->level == LEVEL_SERVICE ? row->src : m->instances[row->src].service;
        int b = row->level == LEVEL_SERVICE ? row->dst : m->instances[row->dst].service;
        if (!strcmp(m->services[a].name, src) && !strcmp(m->services[b].name, dst))
            return row;
    }
    return NULL;
}
