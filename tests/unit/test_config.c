/* test_config.c - the configuration: the shipped files, defaults, and every kind of refusal. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "model/base/file.h"
#include "model/config.h"
#include "model/config_keys.h"
#include "model/config_text.h"

#define SOURCES "sources: [{name: c, type: simulated}]\n"

static struct config *parse(const char *text, struct err *err)
{
    return config_parse(text, strlen(text), "r.yaml", err);
}

static void test_read_when_shipped_files_then_accepted(void **state)
{
    (void)state;
    static const char *const files[] = {REMAP_SOURCE_DIR "/etc/remap.yaml",
                                        REMAP_SOURCE_DIR "/etc/remap-minimal.yaml"};
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        struct err err = ERR_INIT;
        AUTO(config) struct config *config = config_read(files[i], &err);
        assert_string_equal(err.text, "");
        assert_non_null(config);
        assert_int_equal(config->n_apps, 1);
        assert_int_equal(config->apps[0].mode, MODE_OBSERVE);
    }
}

/* A line "KEY:" or "#KEY:" at this depth. */
static bool mentions(const char *text, const char *key, int indent)
{
    AUTO_BUF struct buf plain = BUF_INIT, commented = BUF_INIT;
    buf_printf(&plain, "\n%*s%s:", indent, "", key);
    buf_printf(&commented, "\n%*s#%s:", indent, "", key);
    return strstr(text, plain.data) || strstr(text, commented.data);
}

static void test_shipped_file_when_searched_then_every_key_is_there(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    AUTO_BUF struct buf text = BUF_INIT;
    assert_int_equal(file_read(REMAP_SOURCE_DIR "/etc/remap.yaml", 1 << 20, &text, &err), 0);
    size_t n_top = 0, n_app = 0;
    for (const struct key *k = config_top_keys; k->name; k++, n_top++)
        if (!mentions(text.data, k->name, 0))
            fail_msg("etc/remap.yaml does not mention %s", k->name);
    for (const struct key *k = config_app_keys; k->name; k++, n_app++)
        if (strcmp(k->name, "name") != 0 && !mentions(text.data, k->name, 4))
            fail_msg("etc/remap.yaml does not mention apps[].%s", k->name);
    for (const struct list_key *k = config_app_lists; k->name; k++)
        if (!mentions(text.data, k->name, 4))
            fail_msg("etc/remap.yaml does not mention apps[].%s", k->name);
    assert_true(n_top < CONFIG_MAX_KEYS && n_app < CONFIG_MAX_KEYS);
    const struct key *const hooks[] = {config_webhooks_keys, config_provider_keys,
                                       config_route_keys};
    for (size_t i = 0; i < ARRAY_LEN(hooks); i++)
        for (const struct key *k = hooks[i]; k->name; k++)
            if (!strstr(text.data, k->name))
                fail_msg("etc/remap.yaml does not mention webhooks: %s", k->name);
}

/* The section that is shipped as a comment is a valid one. */
static void test_shipped_webhooks_when_uncommented_then_read(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    AUTO_BUF struct buf text = BUF_INIT;
    AUTO_BUF struct buf plain = BUF_INIT;
    assert_int_equal(file_read(REMAP_SOURCE_DIR "/etc/remap.yaml", 1 << 20, &text, &err), 0);
    const char *from = strstr(text.data, "#webhooks:"), *to = strstr(text.data, "# ---- apps");
    assert_true(from && to);
    buf_add(&plain, text.data, (size_t)(from - text.data));
    for (const char *p = from; p < to; p++)
        if (*p != '#' || (p > from && p[-1] != '\n'))
            buf_add(&plain, p, 1);
    buf_puts(&plain, to);
    AUTO(config) struct config *config = parse(plain.data, &err);
    if (!config)
        fail_msg("%s", err.text);
    const struct config_webhooks *hooks = config->webhooks;
    assert_non_null(hooks);
    assert_string_equal(hooks->listen, "127.0.0.1:9471");
    assert_int_equal(hooks->rate, 60);
    assert_int_equal(hooks->replay_window_ms, 300000);
    assert_int_equal(hooks->n_providers, 5);
    assert_string_equal(hooks->providers[2].public_key_file, "/etc/remap/travis.pem");
    assert_int_equal(hooks->n_routes, 1);
    assert_string_equal(hooks->routes[0].repository, "acme/sock-shop");
    assert_string_equal(hooks->routes[0].workflows[0], "deploy.yml");
}

/* What the shipped file shows as defaults is what an app without those keys gets. */
static void test_shipped_file_when_compared_then_its_values_are_the_defaults(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    AUTO(config) struct config *full = config_read(REMAP_SOURCE_DIR "/etc/remap.yaml", &err);
    AUTO(config) struct config *bare =
        parse(SOURCES "apps: [{name: sock-shop, cluster: c}]\n", &err);
    assert_non_null(full);
    assert_non_null(bare);
    for (const struct key *k = config_app_keys; k->name; k++) {
        const char *a = (const char *)&full->apps[0] + k->offset;
        const char *b = (const char *)&bare->apps[0] + k->offset;
        size_t size = k->kind == KEY_FLAG ? sizeof(bool) : k->kind == KEY_CHOICE ? sizeof(int) : 8;
        bool text = k->kind == KEY_TEXT || k->kind == KEY_NAME || k->kind == KEY_LISTEN;
        if (!text && memcmp(a, b, size) != 0)
            fail_msg("apps[].%s: the shipped value is not the default", k->name);
    }
    assert_int_equal(full->retention_ms, bare->retention_ms);
    assert_int_equal(full->retention_bytes, bare->retention_bytes);
    assert_int_equal(full->stage_deadline_ms, bare->stage_deadline_ms);
    assert_int_equal(full->log_level, bare->log_level);
    assert_string_equal(full->http_listen, bare->http_listen);
}

static void test_parse_when_bare_then_defaults_of_the_contract(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    AUTO(config) struct config *config =
        parse(SOURCES "apps: [{name: a, cluster: c, interval: 5m}]\n", &err);
    assert_non_null(config);
    const struct config_app *app = config_app(config, "a");
    assert_int_equal(app->mode, MODE_OBSERVE);
    assert_int_equal(app->interval_ms, 300000);
    assert_int_equal(app->window_ms, 300000);
    assert_int_equal(app->time_limit_ms, 10000);
    assert_int_equal(app->max_moves, -1);
    assert_int_equal(app->granularity, -1);
    assert_true(app->weight == 0.5);
    assert_string_equal(app->planner, "auto");
    assert_string_equal(app->orchestrator, "c");
    assert_string_equal(config->http_listen, "127.0.0.1:9470");
    assert_int_equal(config->retention_ms, INT64_C(30) * 24 * 3600 * 1000);
    assert_int_equal(config->retention_bytes, 1 << 30);
    assert_null(config->store);
    assert_null(config_app(config, "b"));
}

struct refusal {
    const char *text, *error;
};

#define APP "apps:\n  - name: a\n    cluster: c\n"
#define HOOKS SOURCES "apps: [{name: a, cluster: c}]\nwebhooks:\n"
#define GITHUB "  providers: [{name: github, secret_file: /s}]\n"
#define ROUTE "  routes: [{app: a, repository: o/r}]\n"
static const struct refusal refusals[] = {
    {HOOKS ROUTE, "r.yaml:4: webhooks: \"providers\" is missing"},
    {HOOKS GITHUB, "r.yaml:4: webhooks: \"routes\" is missing"},
    {HOOKS GITHUB "  routes: [{app: b, repository: o/r}]\n",
     "r.yaml:5: webhooks.routes[0].app: there is no such app"},
    {HOOKS GITHUB "  routes: [{app: a}]\n",
     "r.yaml:5: webhooks.routes[0]: \"repository\" is missing"},
    {HOOKS GITHUB "  routes: [{app: a, repository: o/r, provider: gitlab}]\n",
     "r.yaml:5: webhooks.routes[0].provider: is not among the providers above"},
    {HOOKS "  providers: [{name: github, secret: abc}]\n" ROUTE,
     "r.yaml:4: webhooks.providers[0].secret: unknown key"},
    {HOOKS "  providers: [{name: github}]\n" ROUTE,
     "r.yaml:4: webhooks.providers[0]: \"secret_file\" is missing"},
    {HOOKS "  providers: [{name: github, token_file: /t}]\n" ROUTE,
     "r.yaml:4: webhooks.providers[0].token_file: is gitlab's; this provider signs: secret_file"},
    {HOOKS "  providers: [{name: travis, secret_file: /s}]\n" ROUTE,
     "r.yaml:4: webhooks.providers[0]: travis wants public_key_file, and nothing else"},
    {HOOKS "  tls_key_file: /k\n" GITHUB ROUTE,
     "r.yaml:4: webhooks.tls_key_file: certificate and key are needed together"},
    {"apps: [{name: a, cluster: c}]\n", "r.yaml:1: \"sources\" is missing"},
    {SOURCES, "r.yaml:1: \"apps\" is missing"},
    {SOURCES "apps: []\n", "r.yaml:2: apps: must have at least 1 entries"},
    {SOURCES "apps: [{cluster: c}]\n", "r.yaml:2: apps[0]: \"name\" is missing"},
    {SOURCES "apps: [{name: a}]\n", "r.yaml:2: apps[0]: \"cluster\" is missing"},
    {SOURCES APP "    intervall: 5m\n",
     "r.yaml:5: apps[0].intervall: unknown key; did you mean \"interval\"?"},
    {SOURCES APP "    interval: 5\n", "r.yaml:5: apps[0].interval: must be a duration such as "
                                      "500ms, 10s, 5m, 2h or 30d, not \"5\""},
    {SOURCES APP "    interval: 100ms\n",
     "r.yaml:5: apps[0].interval: must be from 1s to 366d, not 100ms"},
    {SOURCES APP "    interval: [5m]\n",
     "r.yaml:5: apps[0].interval: must be a single value, not a list"},
    {SOURCES APP "    mode: acting\n",
     "r.yaml:5: apps[0].mode: must be one of observe, propose, act, not \"acting\""},
    {SOURCES APP "    weight: 1.5\n",
     "r.yaml:5: apps[0].weight: must be a number from 0 to 1, not \"1.5\""},
    {SOURCES APP "    weight: nan\n",
     "r.yaml:5: apps[0].weight: must be a number from 0 to 1, not \"nan\""},
    {SOURCES APP "    max_moves: 010\n", "r.yaml:5: apps[0].max_moves: must be none or an "
                                         "integer from 1 to 1000000, not \"010\""},
    {SOURCES APP "    max_moves: 0\n", "r.yaml:5: apps[0].max_moves: must be none or an integer "
                                       "from 1 to 1000000, not \"0\" (none: no limit; to make no "
                                       "moves: mode: observe)"},
    {SOURCES APP "    move_stateful: yes\n",
     "r.yaml:5: apps[0].move_stateful: must be true or false, not \"yes\""},
    {SOURCES APP "    metrics: [c, d]\n",
     "r.yaml:5: apps[0].metrics[1]: there is no source \"d\""},
    {SOURCES APP "    metrics: [c, c]\n", "r.yaml:5: apps[0].metrics[1]: is listed twice"},
    {"sources: [{name: cluster, type: x}]\napps: [{name: a, cluster: clutser}]\n",
     "r.yaml:2: apps[0].cluster: there is no source \"clutser\"; did you mean \"cluster\"?"},
    {SOURCES APP "    interval_min: 2h\n    interval_max: 1h\n",
     "r.yaml:5: apps[0].interval_min: is longer than interval_max"},
    {SOURCES APP "    windows: [\"Mon 8-20\"]\n",
     "r.yaml:5: apps[0].windows[0]: must be like \"Mon-Fri 22:00-06:00\" or "
     "\"Sat,Sun 00:00-24:00\" (UTC)"},
    {SOURCES APP "    aliases: [{name: x}]\n",
     "r.yaml:5: apps[0].aliases[0]: \"value\" is missing"},
    {SOURCES APP "    aliases: {x: y}\n",
     "r.yaml:5: apps[0].aliases: must be a list (- lines, or [a, b])"},
    {SOURCES APP "  - {name: a, cluster: c}\n",
     "r.yaml:5: apps[1].name: another app has this name"},
    {"sources: [{name: c, type: x}, {name: c, type: y}]\n" APP,
     "r.yaml:1: sources[1].name: another source has this name"},
    {"sources: [{name: c, type: x, options: [{name: token, value: abc}]}]\n" APP,
     "r.yaml:1: sources[0].options[0]: a secret must not stand in this file: put it into a file "
     "of its own and name that with the _file option"},
    {"sources: [{name: c, type: x, options: [{name: url, value: \"http://u:p@h/\"}]}]\n" APP,
     "r.yaml:1: sources[0].options[0]: a password must not stand in a URL: use the _file "
     "options"},
    {SOURCES APP "http_listen: 0.0.0.0:9470\n",
     "r.yaml:5: http_listen: is reachable from outside: set http_token_file, or listen on "
     "127.0.0.1"},
    {SOURCES APP "http_listen: 9470\n",
     "r.yaml:5: http_listen: must be ADDRESS:PORT or off, not \"9470\""},
    {SOURCES APP "http_listen: 127.0.0.1:99999\n",
     "r.yaml:5: http_listen: must be ADDRESS:PORT or off, not \"127.0.0.1:99999\""},
    {SOURCES APP "retention_size: 10GB\n",
     "r.yaml:5: retention_size: must be a size such as 512MiB or 1GiB, not \"10GB\""},
    {SOURCES APP "log_level: loud\n",
     "r.yaml:5: log_level: must be one of error, warn, info, debug, not \"loud\""},
    {SOURCES "apps: [{name: \"a\\x01\", cluster: c}]\n", NULL},
};

static void test_parse_when_wrong_then_line_key_and_problem(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
        struct err err = ERR_INIT;
        struct config *config = parse(refusals[i].text, &err);
        assert_null(config);
        assert_int_equal(err.kind, ERR_CONFIG);
        if (refusals[i].error)
            assert_string_equal(err.text, refusals[i].error);
    }
}

static void test_size_when_parsed_then_units_are_binary(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t bytes; /* -1: refused */
    } rows[] = {{"0", 0},        {"17", 17},        {"4KiB", 4096},
                {"2 MiB", 2 << 20}, {"1GiB", 1 << 30}, {"1TiB", INT64_C(1) << 40},
                {"1GB", -1},     {"", -1},          {"GiB", -1},
                {"-1", -1},      {"01", -1},        {"9999999999999999TiB", -1},
                {"1.5GiB", -1},  {"99999999999999999", -1}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t bytes = -1;
        int rc = size_parse(rows[i].text, &bytes);
        assert_int_equal(rc, rows[i].bytes < 0 ? -1 : 0);
        assert_int_equal(bytes, rows[i].bytes);
    }
}

/* 2026-11-21 is a Saturday. */
#define SAT_0000 INT64_C(1795219200000)
#define HOUR INT64_C(3600000)

static void test_window_when_asked_then_days_and_midnight_count(void **state)
{
    (void)state;
    static const struct {
        const char *window;
        int64_t at_ms;
        bool open;
    } rows[] = {
        {"Sat 08:00-20:00", SAT_0000 + 8 * HOUR, true},
        {"Sat 08:00-20:00", SAT_0000 + 20 * HOUR, false},
        {"Sat 08:00-20:00", SAT_0000 + 32 * HOUR, false},
        {"08:00-20:00", SAT_0000 + 33 * HOUR, true},
        {"Mon-Fri 22:00-06:00", SAT_0000 + 5 * HOUR, true},   /* began on Friday */
        {"Mon-Fri 22:00-06:00", SAT_0000 + 6 * HOUR, false},
        {"Mon-Fri 22:00-06:00", SAT_0000 + 23 * HOUR, false},
        {"Sat,Sun 00:00-24:00", SAT_0000 + 47 * HOUR, true},
        {"Sat,Sun 00:00-24:00", SAT_0000 + 48 * HOUR, false},
        {"Fri-Sun 10:00-11:00", SAT_0000 + 34 * HOUR, true},
        {"Sun-Mon 10:00-11:00", SAT_0000 + 58 * HOUR, true},
        {"Sun-Mon 10:00-11:00", SAT_0000 + 82 * HOUR, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct week window;
        assert_int_equal(week_parse(rows[i].window, &window), 0);
        const struct config_app app = {.windows = &window, .n_windows = 1};
        assert_int_equal(config_app_open(&app, rows[i].at_ms), rows[i].open);
    }
    const struct config_app always = {0};
    assert_true(config_app_open(&always, SAT_0000));
    static const char *const wrong[] = {"",          "Mon",           "Mon 08:00",
                                        "Mon08:00-09:00", "Mon 08:00-08:00", "Mon 24:00-08:00",
                                        "Mon 08:60-09:00", "Mon 8:00-9:00", "Mo 08:00-09:00",
                                        "Mon- 08:00-09:00", "Mon 08:00-09:00 "};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct week window;
        assert_int_equal(week_parse(wrong[i], &window), -1);
    }
    static const struct {
        const char *list;
        int rc;
        bool open;
    } lists[] = {{"Sat 00:00-01:00", 0, true},
                 {"Sun 00:00-01:00", 0, false},
                 {"Sun 00:00-01:00; Sat,Mon 00:00-01:00 ", 0, true},
                 {"Sat 00:00-01:00;", -1, false},
                 {"at night", -1, false},
                 {"", -1, false},
                 {"Sat 00:00-01:00; Sun,Sun,Sun,Sun,Sun,Sun,Sun,Sun,Sun,Sun,Sun,Sun,Sun,Sun,Sun,Sun 00:00-01:00",
                  -1, false}};
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        bool open = false;
        assert_int_equal(week_list_open(lists[i].list, SAT_0000, &open), lists[i].rc);
        assert_int_equal(open, lists[i].open);
    }
}

static void test_reference_when_written_then_every_key_with_default(void **state)
{
    (void)state;
    AUTO_BUF struct buf text = BUF_INIT;
    config_reference(&text);
    assert_non_null(strstr(text.data, "apps[].interval        10m "));
    assert_non_null(strstr(text.data, "[observe | propose | act]"));
    assert_non_null(strstr(text.data, "retention_size         1GiB "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read_when_shipped_files_then_accepted),
        cmocka_unit_test(test_shipped_file_when_searched_then_every_key_is_there),
        cmocka_unit_test(test_shipped_file_when_compared_then_its_values_are_the_defaults),
        cmocka_unit_test(test_parse_when_bare_then_defaults_of_the_contract),
        cmocka_unit_test(test_parse_when_wrong_then_line_key_and_problem),
        cmocka_unit_test(test_size_when_parsed_then_units_are_binary),
        cmocka_unit_test(test_window_when_asked_then_days_and_midnight_count),
        cmocka_unit_test(test_shipped_webhooks_when_uncommented_then_read),
        cmocka_unit_test(test_reference_when_written_then_every_key_with_default),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
