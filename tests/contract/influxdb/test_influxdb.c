/* test_influxdb.c - the influxdb adapter against a real InfluxDB 1.x with authentication: both
 * layouts of Heapster, Telegraf's docker and kubernetes inputs, gaps, errors inside a status 200. */
#include "adapters/http/http.h"
#include "adapters/influxdb/influxdb.h"
#include "model/base/clock.h"
#include "adapters/identity.h"
#include "tests/support/server.h"
#include "tests/support/temp_dir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB INT64_C(1048576)
#define WINDOW 600 /* s */
#define STEP 30

static struct fixture {
    char *folder, *password, *wrong;
    struct server server;
    int64_t end; /* s */
} fx;

static const char config[] =
    "reporting-disabled = true\nbind-address = \"127.0.0.1:%d\"\n[meta]\ndir = \"%s/meta\"\n"
    "[data]\ndir = \"%s/data\"\nwal-dir = \"%s/wal\"\n[http]\nbind-address = \"127.0.0.1:%d\"\n"
    "auth-enabled = true\nping-auth-enabled = false\nlog-enabled = false\n"
    "[monitor]\nstore-enabled = false\n";

/* A statement of the administrator; before there is one, of anybody. */
static bool query(const char *text)
{
    AUTO_BUF struct buf body = BUF_INIT;
    buf_puts(&body, "q=");
    http_escape(&body, text);
    return server_post(&fx.server, "/query?u=admin&p=secret", "application/x-www-form-urlencoded",
                       body.data, body.size) == 200;
}

static bool write_lines(const char *db, const struct buf *lines)
{
    AUTO_FREE char *path = mem_printf("/write?db=%s&precision=s&u=admin&p=secret", db);
    return server_post(&fx.server, path, "text/plain", lines->data, lines->size) == 204;
}

/* One point every STEP seconds of [from, to). */
static void points(struct buf *out, const char *series, const char *fields, int64_t from, int64_t to)
{
    for (int64_t t = from; t < to; t += STEP)
        buf_printf(out, "%s %s %lld\n", series, fields, (long long)t);
}

static void whole(struct buf *out, const char *series, const char *fields)
{
    points(out, series, fields, fx.end - WINDOW, fx.end);
}

#define POD(name) ",type=pod,namespace_name=shop,pod_name=" name
#define PART(name, container) \
    ",type=pod_container,namespace_name=shop,pod_name=" name ",container_name=" container

static void fill_heapster(struct buf *out)
{
    int64_t half = fx.end - WINDOW / 2;
    whole(out, "cpu/usage_rate" POD("cart-1"), "value=300i");
    /* 100 then 900: mean 500. */
    points(out, "cpu/usage_rate" POD("cart-2"), "value=100i", fx.end - WINDOW, half);
    points(out, "cpu/usage_rate" POD("cart-2"), "value=900i", half, fx.end);
    points(out, "cpu/usage_rate" POD("cart-1"), "value=9000i", fx.end, fx.end + 300); /* too late */
    whole(out, "cpu/usage_rate,type=pod,namespace_name=other,pod_name=db-0", "value=3000i");
    whole(out, "cpu/usage_rate,type=node,nodename=n1", "value=1500i");
    whole(out, "memory/working_set" POD("cart-1"), "value=125829120i");
    whole(out, "memory/working_set,type=node,nodename=n1", "value=1073741824i");
}

static void fill_fields(struct buf *out)
{
    /* This version leaves pods without a rate: their containers have one. */
    whole(out, "cpu" PART("cart-1", "app"), "usage_rate=250i");
    whole(out, "cpu" PART("cart-1", "proxy"), "usage_rate=50i");
    whole(out, "memory" POD("cart-1"), "working_set=125829120i,rss=1i");
}

static void fill_telegraf(struct buf *out)
{
    whole(out, "docker_container_cpu,container_name=shop.1.x,com.docker.swarm.task.name=cart-1,"
               "cpu=cpu-total", "usage_percent=30");
    whole(out, "docker_container_cpu,container_name=shop.1.x,com.docker.swarm.task.name=cart-1,"
               "cpu=cpu0", "usage_percent=17");
    whole(out, "docker_container_mem,container_name=shop.1.x,com.docker.swarm.task.name=cart-1",
          "usage=125829120i");
    whole(out, "cpu,host=n1,cpu=cpu-total", "usage_idle=62.5");
    whole(out, "mem,host=n1", "used=1073741824i");
    whole(out, "kubernetes_pod_container,namespace=shop,pod_name=db-0,container_name=db",
          "cpu_usage_nanocores=200000000i,memory_working_set_bytes=67108864i");
    whole(out, "kubernetes_pod_container,namespace=shop,pod_name=db-0,container_name=log",
          "cpu_usage_nanocores=50000000i,memory_working_set_bytes=1048576i");
    whole(out, "kubernetes_node,node_name=n2",
          "cpu_usage_nanocores=1000000000i,memory_working_set_bytes=536870912i");
    /* Larger than any integer: printed without a point. */
    whole(out, "huge,pod=cart-1", "value=9.3e19");
    whole(out, "words,pod=cart-1", "value=\"much\"");
}

static bool fill(void)
{
    AUTO_BUF struct buf k8s = BUF_INIT;
    AUTO_BUF struct buf fields = BUF_INIT;
    AUTO_BUF struct buf telegraf = BUF_INIT;
    fill_heapster(&k8s);
    fill_fields(&fields);
    fill_telegraf(&telegraf);
    return query("CREATE USER admin WITH PASSWORD 'secret' WITH ALL PRIVILEGES") &&
           query("CREATE DATABASE k8s WITH NAME \"default\"") && query("CREATE DATABASE fields") &&
           query("CREATE DATABASE telegraf") && query("CREATE USER remap WITH PASSWORD 'reader'") &&
           query("GRANT READ ON k8s TO remap") && query("GRANT READ ON fields TO remap") &&
           query("GRANT READ ON telegraf TO remap") &&
           query("CREATE USER nobody WITH PASSWORD 'reader'") && write_lines("k8s", &k8s) &&
           write_lines("fields", &fields) && write_lines("telegraf", &telegraf);
}

static int setup(void **state)
{
    (void)state;
    fx.folder = temp_dir_new();
    fx.end = clock_wall_ms() / 1000 / STEP * STEP - 300;
    fx.password = mem_printf("%s/password", fx.folder);
    fx.wrong = mem_printf("%s/wrong", fx.folder);
    server_write_file(fx.password, "reader\n");
    server_write_file(fx.wrong, "redaer\n");
    int port = server_free_port();
    AUTO_FREE char *text =
        mem_printf(config, server_free_port(), fx.folder, fx.folder, fx.folder, port);
    AUTO_FREE char *path = mem_printf("%s/influxdb.conf", fx.folder);
    server_write_file(path, text);
    AUTO_FREE char *program = server_program("influxd");
    const char *argv[] = {program, "run", "-config", path, NULL};
    server_start(&fx.server, "influxdb", fx.folder, port, argv);
    return server_wait(&fx.server, "/ping") && fill() ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    server_stop(&fx.server);
    temp_dir_remove(fx.folder);
    free(fx.folder);
    free(fx.password);
    free(fx.wrong);
    return 0;
}

/* --- an application --- */

static const char *const spaces[] = {"shop", NULL}, *const all[] = {NULL};
static const struct app_scope app = {"shop", spaces, all};

static struct inspection new_inspection(void)
{
    struct err err = ERR_INIT;
    struct model *m = model_new();
    static const char *const pods[] = {"shop/cart-1", "shop/cart-2", "shop/db-0"};
    assert_int_equal(model_add_host(m, "n1", &err), 0);
    assert_int_equal(model_add_host(m, "n2", &err), 1);
    m->hosts[0].cpu_cap_millis = 4000;
    assert_int_equal(model_add_service(m, "shop/cart", &err), 0);
    assert_int_equal(model_add_service(m, "shop/db", &err), 1);
    for (size_t i = 0; i < ARRAY_LEN(pods); i++)
        assert_int_equal(model_add_instance(m, pods[i], i == 2, i == 2, &err), i);
    return (struct inspection){.model = m, .identity = identity_new(m)};
}

static void end_inspection(struct inspection *in)
{
    struct err err = ERR_INIT;
    if (model_check(in->model, &err))
        fail_msg("%s", err.text);
    model_free(in->model);
    identity_free(in->identity);
    inspection_wipe(in);
}

#define MAX_OPTIONS 16

static struct source make_source(struct option options[MAX_OPTIONS], const char *user,
                                 const char *password, const char *const extra[])
{
    struct source source = {"influx", "influxdb", options, 3};
    options[0] = (struct option){"url", fx.server.url};
    options[1] = (struct option){"user", user};
    options[2] = (struct option){"password_file", password};
    for (size_t i = 0; extra[i]; i += 2)
        options[source.n_options++] = (struct option){extra[i], extra[i + 1]};
    return source;
}

static int try_measure(const char *user, const char *password, const char *const extra[],
                       struct inspection *in, struct err *err)
{
    struct option options[MAX_OPTIONS];
    struct source source = make_source(options, user, password, extra);
    const struct window window = {(fx.end - WINDOW) * 1000, fx.end * 1000};
    void *ctx;
    if (influxdb_metrics.open(&source, &ctx, err))
        return -1;
    int rc = influxdb_metrics.measure(ctx, &app, &window, in, err);
    influxdb_metrics.close(ctx);
    return rc;
}

static void measure(const char *const extra[], struct inspection *in)
{
    struct err err = ERR_INIT;
    if (try_measure("remap", fx.password, extra, in, &err))
        fail_msg("%s", err.text);
}

static const struct instance *pod(const struct inspection *in, const char *name)
{
    return &in->model->instances[model_instance(in->model, name)];
}

/* --- layouts --- */

static void test_heapster_when_mean_then_what_was_written(void **state)
{
    (void)state;
    struct inspection in = new_inspection();
    measure((const char *[]){NULL}, &in);
    assert_int_equal(pod(&in, "shop/cart-1")->cpu_used_millis, 300);
    assert_int_equal(pod(&in, "shop/cart-2")->cpu_used_millis, 500);
    assert_int_equal(pod(&in, "shop/db-0")->cpu_used_millis, 0); /* of another namespace */
    assert_int_equal(pod(&in, "shop/cart-1")->mem_used_bytes, 120 * MIB);
    assert_int_equal(in.model->hosts[0].cpu_used_millis, 1500 - 800);
    assert_int_equal(in.model->hosts[0].mem_used_bytes, (1024 - 120) * MIB);
    assert_non_null(note_find(&in, "no-sample", "shop/db-0"));
    end_inspection(&in);
}

static void test_heapster_when_percentile_then_peak(void **state)
{
    (void)state;
    struct inspection in = new_inspection();
    measure((const char *[]){"statistic", "p95", NULL}, &in);
    assert_int_equal(pod(&in, "shop/cart-2")->cpu_used_millis, 900);
    assert_int_equal(pod(&in, "shop/cart-1")->cpu_used_millis, 300);
    end_inspection(&in);
}

static void test_heapster_fields_when_pods_have_no_rate_then_their_containers(void **state)
{
    (void)state;
    struct inspection in = new_inspection();
    measure((const char *[]){"db", "fields", "preset", "heapster-fields", NULL}, &in);
    assert_int_equal(pod(&in, "shop/cart-1")->cpu_used_millis, 300);
    assert_int_equal(pod(&in, "shop/cart-1")->mem_used_bytes, 120 * MIB);
    assert_non_null(note_find(&in, "no-data", "CPU of hosts"));
    end_inspection(&in);
}

static void test_telegraf_when_docker_then_task_names_and_percent(void **state)
{
    (void)state;
    struct inspection in = new_inspection();
    measure((const char *[]){"db", "telegraf", "preset", "telegraf-docker", NULL}, &in);
    assert_int_equal(pod(&in, "shop/cart-1")->cpu_used_millis, 300);
    assert_int_equal(pod(&in, "shop/cart-1")->mem_used_bytes, 120 * MIB);
    assert_int_equal(in.model->hosts[0].cpu_used_millis, 1500 - 300); /* 37.5 % of four cores */
    assert_int_equal(in.model->hosts[0].mem_used_bytes, (1024 - 120) * MIB);
    end_inspection(&in);
}

static void test_telegraf_when_kubernetes_then_containers_add_up(void **state)
{
    (void)state;
    struct inspection in = new_inspection();
    measure((const char *[]){"db", "telegraf", "preset", "telegraf-kubernetes", NULL}, &in);
    assert_int_equal(pod(&in, "shop/db-0")->cpu_used_millis, 250);
    assert_int_equal(pod(&in, "shop/db-0")->mem_used_bytes, 65 * MIB);
    assert_int_equal(in.model->hosts[1].cpu_used_millis, 1000 - 250);
    end_inspection(&in);
}

/* --- own queries and odd answers --- */

static void test_own_query_when_gaps_then_mean_of_what_there_is(void **state)
{
    (void)state;
    struct inspection in = new_inspection();
    measure((const char *[]){"preset", "none", "cpu_query",
                             "SELECT mean(\"value\") FROM \"cpu/usage_rate\" WHERE \"type\"='pod' "
                             "AND $time GROUP BY time(7s), \"namespace_name\",\"pod_name\" "
                             "fill(null)",
                             "cpu_unit", "millicores", "namespace_tag", "namespace_name", "pod_tag",
                             "pod_name", NULL},
            &in);
    assert_int_equal(pod(&in, "shop/cart-2")->cpu_used_millis, 500);
    end_inspection(&in);
}

static void test_own_query_when_number_above_every_integer_then_limit(void **state)
{
    (void)state;
    struct inspection in = new_inspection();
    measure((const char *[]){"db", "telegraf", "preset", "none", "memory_query",
                             "SELECT mean(\"value\") FROM \"huge\" WHERE $time GROUP BY \"pod\"",
                             "pod_tag", "pod", NULL},
            &in);
    assert_int_equal(pod(&in, "shop/cart-1")->mem_used_bytes, MODEL_MAX_NUMBER);
    end_inspection(&in);
}

static void test_own_query_when_texts_then_left_out_and_said(void **state)
{
    (void)state;
    struct inspection in = new_inspection();
    measure((const char *[]){"db", "telegraf", "preset", "none", "memory_query",
                             "SELECT \"value\" FROM \"words\" WHERE $time GROUP BY \"pod\"",
                             "pod_tag", "pod", NULL},
            &in);
    assert_non_null(note_find(&in, "not-a-number", "memory of pods"));
    end_inspection(&in);
}

static void test_query_when_measurement_is_unknown_then_said(void **state)
{
    (void)state;
    struct inspection in = new_inspection();
    measure((const char *[]){"db", "telegraf", "hosts", "none", NULL}, &in);
    assert_non_null(note_find(&in, "unknown-metric", "cpu/usage_rate"));
    end_inspection(&in);
}

static void test_source_when_wrong_then_named_cause(void **state)
{
    (void)state;
    const struct {
        const char *user, *password, *options[5];
        enum err_kind kind;
        const char *text;
    } cases[] = {
        {"remap", fx.wrong, {NULL}, ERR_REFUSED, "authorization failed"},
        {"nobody", fx.password, {NULL}, ERR_REFUSED, "not authorized"},
        {"admin", fx.password, {NULL}, ERR_REFUSED, "authorization failed"},
        {"remap", fx.password, {"db", "zz"}, ERR_REFUSED, "requires READ on zz"},
        {"remap", fx.password, {"cpu_query", "SELECT bogus(v) FROM x WHERE $time"}, ERR_REFUSED,
         "undefined function"}, /* inside a status 200 */
        {"remap", fx.password, {"cpu_query", "SELECT FROM WHERE $time"}, ERR_CONFIG,
         "error parsing query"},
        {"remap", fx.password, {"cpu_query", "SELECT 1; DROP DATABASE k8s"}, ERR_CONFIG,
         "one statement"},
        {"remap", fx.password, {"cpu_query", "SELECT mean(v) FROM x"}, ERR_CONFIG,
         "must hold $time"},
        {"remap", fx.password, {"preset", "heapsters"}, ERR_CONFIG, "no preset heapsters"},
        {"remap", fx.password, {"cpu_unit", "hertz"}, ERR_CONFIG, "no cpu_unit hertz"},
        {"remap", fx.password, {"statistic", "median"}, ERR_CONFIG, "statistic must be"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err err = ERR_INIT;
        struct inspection in = new_inspection();
        int rc = try_measure(cases[i].user, cases[i].password, cases[i].options, &in, &err);
        if (rc != -1 || err.kind != cases[i].kind || !strstr(err.text, cases[i].text))
            fail_msg("%zu: %d %s: %s", i, rc, err_kind_name(err.kind), err.text);
        end_inspection(&in);
    }
}

static void test_database_when_missing_then_not_found(void **state)
{
    (void)state;
    AUTO_FREE char *secret = mem_printf("%s/admin", fx.folder);
    server_write_file(secret, "secret");
    struct err err = ERR_INIT;
    struct inspection in = new_inspection();
    assert_int_equal(try_measure("admin", secret, (const char *[]){"db", "zz", NULL}, &in, &err),
                     -1);
    assert_int_equal(err.kind, ERR_NOT_FOUND);
    assert_non_null(strstr(err.text, "database not found"));
    end_inspection(&in);
}

static void test_check_when_points_then_version_newest_and_counts(void **state)
{
    (void)state;
    struct option options[MAX_OPTIONS];
    struct source source = make_source(options, "remap", fx.password, (const char *[]){NULL});
    struct err err = ERR_INIT;
    struct source_report report;
    void *ctx;
    assert_int_equal(influxdb_metrics.open(&source, &ctx, &err), 0);
    if (influxdb_metrics.check(ctx, &app, &report, &err))
        fail_msg("%s", err.text);
    influxdb_metrics.close(ctx);
    assert_true(report.reachable);
    assert_int_equal(report.version[0], '1');
    assert_int_equal(report.newest_ms, (fx.end + 300 - STEP) * 1000);
    assert_string_equal(report.seen, "CPU of 2 pods and 1 hosts, memory of 1 pods");
}

int main(void)
{
    AUTO_FREE char *program = server_program("influxd");
    if (!program) {
        printf("SKIPPED no influxd on this machine (Debian package influxdb)\n");
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_heapster_when_mean_then_what_was_written),
        cmocka_unit_test(test_heapster_when_percentile_then_peak),
        cmocka_unit_test(test_heapster_fields_when_pods_have_no_rate_then_their_containers),
        cmocka_unit_test(test_telegraf_when_docker_then_task_names_and_percent),
        cmocka_unit_test(test_telegraf_when_kubernetes_then_containers_add_up),
        cmocka_unit_test(test_own_query_when_gaps_then_mean_of_what_there_is),
        cmocka_unit_test(test_own_query_when_number_above_every_integer_then_limit),
        cmocka_unit_test(test_own_query_when_texts_then_left_out_and_said),
        cmocka_unit_test(test_query_when_measurement_is_unknown_then_said),
        cmocka_unit_test(test_source_when_wrong_then_named_cause),
        cmocka_unit_test(test_database_when_missing_then_not_found),
        cmocka_unit_test(test_check_when_points_then_version_newest_and_counts),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
