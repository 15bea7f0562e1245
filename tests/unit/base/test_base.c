/* test_base.c - err, mem, buf, utf8, clock, names, file, log. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "model/base/buf.h"
#include "model/base/clock.h"
#include "model/base/err.h"
#include "model/base/file.h"
#include "model/base/log.h"
#include "model/base/mem.h"
#include "model/base/names.h"
#include "model/base/pairs.h"
#include "model/base/utf8.h"

static void test_err_prefix_when_text_is_there_puts_it_before(void **state)
{
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(err_set(&err, ERR_INPUT, "host %s is full", "h1"), -1);
    assert_int_equal(err_prefix(&err, "move %d", 3), -1);
    assert_string_equal(err.text, "move 3: host h1 is full");
    assert_int_equal(err.kind, ERR_INPUT);
}

static void test_err_set_when_argument_is_its_own_text_keeps_it(void **state)
{
    struct err err = ERR_INIT;

    (void)state;
    err_set(&err, ERR_INPUT, "inner");
    err_set(&err, ERR_CONFIG, "outer (%s)", err.text);
    assert_string_equal(err.text, "outer (inner)");
}

static void test_err_set_when_text_is_hostile_is_one_line_of_utf8(void **state)
{
    struct err err = ERR_INIT;
    char big[2000];

    (void)state;
    err_set(&err, ERR_INPUT, "a\nb\x01\xff");
    assert_string_equal(err.text, "a b ?");
    /* 499 bytes end inside the last of these two-byte letters */
    for (size_t i = 0; i + 2 < sizeof big; i += 2)
        memcpy(big + i, "\xc3\xa4", 3);
    err_set(&err, ERR_INPUT, "%s", big);
    assert_int_equal(strlen(err.text), 498);
    assert_int_equal(utf8_check(err.text, strlen(err.text)), 498);
    err_prefix(&err, "%s", big);
    assert_int_equal(strlen(err.text), 498);
}

static void test_err_exit_code_when_kind_is_known_follows_contract(void **state)
{
    (void)state;
    assert_int_equal(err_exit_code(ERR_NONE), 0);
    assert_int_equal(err_exit_code(ERR_USAGE), 2);
    assert_int_equal(err_exit_code(ERR_TOO_LARGE), 2);
    assert_int_equal(err_exit_code(ERR_INFEASIBLE), 3);
    assert_int_equal(err_exit_code(ERR_TIMEOUT), 4);
    assert_int_equal(err_exit_code(ERR_IO), 1);
    for (int kind = ERR_NONE; kind <= ERR_INTERNAL; kind++)
        assert_int_equal(err_kind_from_name(err_kind_name((enum err_kind)kind)), kind);
    assert_int_equal(err_kind_from_name("martian"), ERR_INTERNAL);
}

static void test_array_push_when_grown_keeps_elements_and_zeroes_new_ones(void **state)
{
    AUTO_FREE int64_t *numbers = NULL;
    size_t n = 0;

    (void)state;
    for (int64_t i = 0; i < 1000; i++) {
        int64_t *last = ARRAY_PUSH(numbers, n);
        assert_int_equal(*last, 0);
        *last = i;
    }
    assert_int_equal(n, 1000);
    for (int64_t i = 0; i < 1000; i++)
        assert_int_equal(numbers[i], i);
}

static void test_array_push_when_array_came_with_exact_size_makes_room(void **state)
{
    (void)state;
    for (size_t size = 0; size < 40; size++) {
        size_t n = size;
        AUTO_FREE int64_t *numbers = mem_array(size, sizeof *numbers);
        for (int i = 0; i < 3; i++)
            *ARRAY_PUSH(numbers, n) = 7;
        assert_int_equal(n, size + 3);
        assert_int_equal(numbers[size + 2], 7);
    }
}

static void test_mem_strings_when_copied_are_whole(void **state)
{
    AUTO_FREE char *a = mem_strdup("remap"), *b = mem_strndup("remap", 3);
    AUTO_FREE char *c = mem_printf("%s-%d", "x", 7), *d = mem_strndup("ab", 9);

    (void)state;
    assert_string_equal(a, "remap");
    assert_string_equal(b, "rem");
    assert_string_equal(c, "x-7");
    assert_string_equal(d, "ab");
    assert_null(mem_strdup(NULL));
    char *given = steal(a);
    assert_null(a);
    free(given);
}

static void test_buf_when_written_stays_terminated(void **state)
{
    AUTO_BUF struct buf buf = BUF_INIT;

    (void)state;
    buf_puts(&buf, "abc");
    for (int i = 0; i < 100; i++)
        buf_printf(&buf, "%03d,", i);
    assert_int_equal(buf.size, 403);
    assert_int_equal(strlen(buf.data), 403);
    assert_memory_equal(buf.data + 399, "099,", 5);
    buf_clear(&buf);
    assert_string_equal(buf.data, "");
    buf_add(&buf, "x\0y", 3);
    assert_int_equal(buf.size, 3);
    char *text = buf_take(&buf);
    assert_memory_equal(text, "x\0y", 4);
    free(text);
    assert_null(buf.data);
    text = buf_take(&buf);
    assert_string_equal(text, "");
    free(text);
}

static void test_buf_printf_when_text_is_long_grows_once_more(void **state)
{
    AUTO_BUF struct buf buf = BUF_INIT;
    AUTO_FREE char *big = mem_alloc(10001);

    (void)state;
    memset(big, 'x', 10000);
    buf_printf(&buf, "<%s>", big);
    assert_int_equal(buf.size, 10002);
    assert_int_equal(buf.data[10001], '>');
}

static void test_utf8_check_when_bytes_are_wrong_gives_their_offset(void **state)
{
    static const struct {
        const char *text;
        size_t valid; /* SIZE_MAX: all of it */
    } rows[] = {
        {"", SIZE_MAX},
        {"plain ascii text, more than eight", SIZE_MAX},
        {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", SIZE_MAX},
        {"\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf", SIZE_MAX},
        {"0123456789\xff", 10},
        {"a\x80", 1},
        {"\xc0\x80", 0},             /* overlong */
        {"\xc1\xbf", 0},             /* overlong */
        {"\xe0\x9f\xbf", 0},         /* overlong */
        {"\xf0\x8f\xbf\xbf", 0},     /* overlong */
        {"\xed\xa0\x80", 0},         /* surrogate */
        {"\xf4\x90\x80\x80", 0},     /* above U+10FFFF */
        {"\xf5\x80\x80\x80", 0},
        {"ab\xe2\x82", 2},           /* cut */
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        size_t size = strlen(rows[i].text);
        size_t want = rows[i].valid == SIZE_MAX ? size : rows[i].valid;
        assert_int_equal(utf8_check(rows[i].text, size), want);
    }
    assert_true(utf8_is_cut("\xe2\x82", 2));
    assert_false(utf8_is_cut("\xe2\x41", 2));
}

static void test_clock_iso_when_given_ms_writes_utc(void **state)
{
    static const struct {
        int64_t ms;
        const char *text;
    } rows[] = {
        {0, "1970-01-01T00:00:00Z"},
        {-1, "1969-12-31T23:59:59.999Z"},
        {1795230302123, "2026-11-21T03:05:02.123Z"},
        {1795230302000, "2026-11-21T03:05:02Z"},
    };
    char out[CLOCK_TEXT_SIZE];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_string_equal(clock_iso(rows[i].ms, out), rows[i].text);
    assert_string_equal(clock_iso(INT64_MAX, out), "292278994-08-17T07:12:55.807Z");
    assert_non_null(clock_iso(INT64_MIN, out));
}

static void test_clock_mono_when_slept_has_moved(void **state)
{
    int64_t start = clock_mono_ms();

    (void)state;
    clock_sleep_ms(2);
    assert_true(clock_mono_ms() - start >= 2);
    assert_true(clock_wall_ms() > INT64_C(1500000000000));
}

static void test_duration_parse_when_valid_gives_ms(void **state)
{
    static const struct {
        const char *text;
        int64_t ms;
    } rows[] = {
        {"0", 0},          {"0s", 0},         {"500ms", 500},       {"10s", 10000},
        {"1.5s", 1500},    {"0.25h", 900000}, {"5m", 300000},       {"2h", 7200000},
        {"1m30s", 90000},  {"30d", INT64_C(2592000000)},            {"0.001s", 1},
        {"3653d", INT64_C(315619200000)},
    };
    struct err err = ERR_INIT;
    int64_t ms;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(duration_parse(rows[i].text, &ms, &err), 0);
        assert_int_equal(ms, rows[i].ms);
    }
}

static void test_duration_parse_when_invalid_is_config_error(void **state)
{
    static const char *const rows[] = {"",      "10",     "s",       "-1s",   "1 s",  "1.s",
                                       ".",     "1..5s",  "1w",      "0.5ms", "1e3s", "3654d",
                                       "00.0001s", "99999999999999999999s", "9223372036854775807d",
                                       "3653d1ms", "5sm", "10s "};
    struct err err;
    int64_t ms = 77;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(duration_parse(rows[i], &ms, &err), -1);
        assert_int_equal(err.kind, ERR_CONFIG);
    }
    assert_int_equal(ms, 77);
}

static void test_duration_text_when_written_reads_back(void **state)
{
    static const struct {
        int64_t ms;
        const char *text;
    } rows[] = {
        {0, "0s"}, {250, "250ms"}, {90000, "1m30s"}, {86400000, "1d"}, {3600001, "1h1ms"},
        {-1500, "-1s500ms"},
    };
    char out[CLOCK_TEXT_SIZE];
    struct err err = ERR_INIT;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t ms;
        assert_string_equal(duration_text(rows[i].ms, out), rows[i].text);
        if (rows[i].ms >= 0) {
            assert_int_equal(duration_parse(out, &ms, &err), 0);
            assert_int_equal(ms, rows[i].ms);
        }
    }
}

static void test_names_when_many_finds_each(void **state)
{
    struct names names = NAMES_INIT;
    char *texts[5000];

    (void)state;
    assert_int_equal(names_get(&names, "x"), -1);
    for (int i = 0; i < 5000; i++) {
        texts[i] = mem_printf("service-%d", i);
        assert_int_equal(names_add(&names, texts[i], i), -1);
    }
    assert_int_equal(names_add(&names, "service-17", 9), 17);
    for (int i = 0; i < 5000; i++)
        assert_int_equal(names_get(&names, texts[i]), i);
    assert_int_equal(names_get(&names, "service-5000"), -1);
    names_wipe(&names);
    names_wipe(&names);
    for (int i = 0; i < 5000; i++)
        free(texts[i]);
}

static void test_pairs_when_many_keeps_each_number(void **state)
{
    struct pairs pairs = PAIRS_INIT;

    (void)state;
    assert_int_equal(pairs_get(&pairs, 0, 0, -1), -1);
    for (int a = 0; a < 60; a++)
        for (int b = 0; b < 60; b++)
            *pairs_at(&pairs, a, b) += 100 * a + b;
    *pairs_at(&pairs, INT32_MAX, INT32_MAX) = -5;
    for (int a = 0; a < 60; a++)
        for (int b = 0; b < 60; b++)
            assert_int_equal(pairs_get(&pairs, a, b, -1), 100 * a + b);
    assert_int_equal(pairs_get(&pairs, INT32_MAX, INT32_MAX, -1), -5);
    assert_int_equal(pairs_get(&pairs, 60, 0, -1), -1);
    pairs_wipe(&pairs);
    assert_int_equal(pairs_get(&pairs, 1, 1, 7), 7);
}

static void test_names_nearest_when_typo_finds_the_meant(void **state)
{
    static const char *const keys[] = {"cpu_cap_millis", "mem_cap_bytes", "name", "zone", NULL};

    (void)state;
    assert_string_equal(names_nearest("cpu_cap_milis", keys), "cpu_cap_millis");
    assert_string_equal(names_nearest("nmae", keys), "name");
    assert_string_equal(names_nearest("zones", keys), "zone");
    assert_null(names_nearest("latitude", keys));
    assert_null(names_nearest("", keys));
}

static void test_name_problem_when_name_is_bad_says_what(void **state)
{
    char longest[254];

    (void)state;
    memset(longest, 'x', sizeof longest);
    assert_null(name_problem("sock-shop/carts", 15));
    assert_null(name_problem("K\xc3\xb6ln", 5));
    assert_null(name_problem(longest, 253));
    assert_string_equal(name_problem(longest, 254), "is longer than 253 bytes");
    assert_string_equal(name_problem("", 0), "is empty");
    assert_string_equal(name_problem("a\nb", 3), "holds a control character");
    assert_string_equal(name_problem("a\0b", 3), "holds a control character");
    assert_string_equal(name_problem("\x7f", 1), "holds a control character");
    assert_string_equal(name_problem("\xc2\x85", 2), "holds a control character");
    assert_string_equal(name_problem("\xff", 1), "is not valid UTF-8");
}

/* A folder of its own for each test. */
static int folder_make(void **state)
{
    char template[] = "/tmp/remap-base-XXXXXX";

    *state = mem_strdup(mkdtemp(template));
    return *state ? 0 : -1;
}

static int folder_remove(void **state)
{
    AUTO_FREE char *command = mem_printf("rm -rf '%s'", (char *)*state);
    int rc = system(command);

    free(*state);
    return rc;
}

static void test_file_write_atomic_when_written_reads_back(void **state)
{
    AUTO_FREE char *path = mem_printf("%s/x", (char *)*state);
    AUTO_FREE char *tmp = mem_printf("%s/x.tmp", (char *)*state);
    AUTO_BUF struct buf buf = BUF_INIT;
    struct err err = ERR_INIT;
    struct stat st;

    assert_int_equal(file_write_atomic(path, "old", 3, 0640, &err), 0);
    assert_int_equal(file_write_atomic(path, "n\0w", 3, 0640, &err), 0);
    buf_puts(&buf, "before ");
    assert_int_equal(file_read(path, 3, &buf, &err), 0);
    assert_int_equal(buf.size, 10);
    assert_memory_equal(buf.data, "before n\0w", 11);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_int_equal(stat(tmp, &st), -1);
}

static void test_file_read_when_too_large_or_missing_says_so(void **state)
{
    AUTO_FREE char *path = mem_printf("%s/x", (char *)*state);
    AUTO_BUF struct buf buf = BUF_INIT;
    struct err err = ERR_INIT;

    assert_int_equal(file_read(path, 10, &buf, &err), -1);
    assert_int_equal(err.kind, ERR_NOT_FOUND);
    assert_int_equal(file_write_atomic(path, "0123456789A", 11, 0600, &err), 0);
    assert_int_equal(file_read(path, 10, &buf, &err), -1);
    assert_int_equal(err.kind, ERR_TOO_LARGE);
    assert_int_equal(file_read(*state, 10, &buf, &err), -1);
    assert_int_equal(err.kind, ERR_IO);
    /* no size known before: the limit holds while reading */
    assert_int_equal(file_read("/dev/zero", 100000, &buf, &err), -1);
    assert_int_equal(err.kind, ERR_TOO_LARGE);
}

static void test_file_write_atomic_when_folder_is_missing_is_io_error(void **state)
{
    AUTO_FREE char *path = mem_printf("%s/no/x", (char *)*state);
    struct err err = ERR_INIT;

    assert_int_equal(file_write_atomic(path, "x", 1, 0600, &err), -1);
    assert_int_equal(err.kind, ERR_IO);
    assert_non_null(strstr(err.text, path));
}

static void test_file_make_dirs_when_path_is_deep_makes_all(void **state)
{
    AUTO_FREE char *path = mem_printf("%s/a//b/c/", (char *)*state);
    AUTO_FREE char *file = mem_printf("%s/a/file", (char *)*state);
    AUTO_FREE char *below = mem_printf("%s/a/file/d", (char *)*state);
    struct err err = ERR_INIT;
    struct stat st;

    assert_int_equal(file_make_dirs(path, 0700, &err), 0);
    assert_int_equal(file_make_dirs(path, 0700, &err), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    assert_int_equal(file_write_atomic(file, "", 0, 0600, &err), 0);
    assert_int_equal(file_make_dirs(file, 0700, &err), -1);
    assert_int_equal(file_make_dirs(below, 0700, &err), -1);
}

/* Runs `write_line` with stderr in a file and gives back what came out. */
static void log_capture(const char *folder, enum log_format format, struct buf *out)
{
    AUTO_FREE char *path = mem_printf("%s/log", folder);
    struct err err = ERR_INIT;
    int kept = dup(STDERR_FILENO);

    assert_non_null(freopen(path, "w", stderr));
    log_init("test", LOG_LEVEL_INFO, format);
    log_info("two\nlines \x1b[1m %s", "\"q\"");
    log_debug("unseen");
    fflush(stderr);
    dup2(kept, STDERR_FILENO);
    close(kept);
    log_init("test", LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
    assert_int_equal(file_read(path, 10000, out, &err), 0);
}

static void test_log_when_text_is_hostile_writes_one_clean_line(void **state)
{
    AUTO_BUF struct buf text = BUF_INIT, json = BUF_INIT;

    log_capture(*state, LOG_FORMAT_TEXT, &text);
    assert_non_null(strstr(text.data, "Z test info: two\\nlines \\x1b[1m \"q\"\n"));
    assert_int_equal(text.data + text.size - strchr(text.data, '\n'), 1);
    log_capture(*state, LOG_FORMAT_JSON, &json);
    assert_non_null(strstr(json.data, "\"level\":\"info\",\"program\":\"test\",\"text\":"
                                      "\"two\\nlines \\u001b[1m \\\"q\\\"\"}\n"));
}

static void test_log_quote_when_needed_quotes_and_cuts(void **state)
{
    char out[LOG_QUOTE_SIZE], big[1000];

    (void)state;
    assert_string_equal(log_quote("plain", out), "plain");
    assert_string_equal(log_quote("", out), "\"\"");
    assert_string_equal(log_quote("a \"b\"", out), "\"a \\\"b\\\"\"");
    memset(big, '"', sizeof big);
    big[sizeof big - 1] = '\0';
    log_quote(big, out);
    assert_true(strlen(out) < LOG_QUOTE_SIZE);
    assert_string_equal(out + strlen(out) - 4, "…\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_err_prefix_when_text_is_there_puts_it_before),
        cmocka_unit_test(test_err_set_when_argument_is_its_own_text_keeps_it),
        cmocka_unit_test(test_err_set_when_text_is_hostile_is_one_line_of_utf8),
        cmocka_unit_test(test_err_exit_code_when_kind_is_known_follows_contract),
        cmocka_unit_test(test_array_push_when_grown_keeps_elements_and_zeroes_new_ones),
        cmocka_unit_test(test_array_push_when_array_came_with_exact_size_makes_room),
        cmocka_unit_test(test_mem_strings_when_copied_are_whole),
        cmocka_unit_test(test_buf_when_written_stays_terminated),
        cmocka_unit_test(test_buf_printf_when_text_is_long_grows_once_more),
        cmocka_unit_test(test_utf8_check_when_bytes_are_wrong_gives_their_offset),
        cmocka_unit_test(test_clock_iso_when_given_ms_writes_utc),
        cmocka_unit_test(test_clock_mono_when_slept_has_moved),
        cmocka_unit_test(test_duration_parse_when_valid_gives_ms),
        cmocka_unit_test(test_duration_parse_when_invalid_is_config_error),
        cmocka_unit_test(test_duration_text_when_written_reads_back),
        cmocka_unit_test(test_names_when_many_finds_each),
        cmocka_unit_test(test_pairs_when_many_keeps_each_number),
        cmocka_unit_test(test_names_nearest_when_typo_finds_the_meant),
        cmocka_unit_test(test_name_problem_when_name_is_bad_says_what),
        cmocka_unit_test_setup_teardown(test_file_write_atomic_when_written_reads_back,
                                        folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(test_file_read_when_too_large_or_missing_says_so,
                                        folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(test_file_write_atomic_when_folder_is_missing_is_io_error,
                                        folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(test_file_make_dirs_when_path_is_deep_makes_all,
                                        folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(test_log_when_text_is_hostile_writes_one_clean_line,
                                        folder_make, folder_remove),
        cmocka_unit_test(test_log_quote_when_needed_quotes_and_cuts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
