/* test_cli.c - words of the command line into options, places of configuration and store, tables. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/manager/cli.h"
#include "model/manager/table.h"

/* A command that writes down what it was given. */
static struct buf seen;

static int probe_run(struct cli *cli, struct err *err)
{
    int64_t number = -1, limit = -1;
    double weight = -1;
    int choice = -1;
    static const char *const choices[] = {"one", "two", NULL};
    if (cli_opt_int(cli, "number", 0, 9, &number, err) ||
        cli_opt_real(cli, "weight", 0, 1, &weight, err) ||
        cli_opt_duration(cli, "limit", &limit, err) ||
        cli_opt_choice(cli, "choice", choices, &choice, err))
        return -1;
    const char **files;
    size_t n = cli_many(cli, "files", &files);
    buf_printf(&seen, "flag=%d number=%d weight=%g limit=%d choice=%d out=%d files=",
               cli_flag(cli, "flag"), (int)number, weight, (int)limit, choice, cli->output);
    for (size_t i = 0; i < n; i++)
        buf_printf(&seen, "%s,", files[i]);
    free(files);
    buf_puts(&seen, " args=");
    for (size_t i = 0; i < cli->n_args; i++)
        buf_printf(&seen, "%s,", cli->args[i]);
    return 7;
}

static int store_run(struct cli *cli, struct err *err)
{
    const char *store, *run_dir;
    if (cli_store_path(cli, &store, err) || cli_run_dir(cli, &run_dir, err))
        return -1;
    buf_printf(&seen, "%s %s", store, run_dir);
    return 0;
}

static const struct cli_option probe_options[] = {
    {'f', "flag", NULL, "a flag", false},
    {'n', "number", "N", "a number", false},
    {0, "weight", "W", "a weight", false},
    {0, "limit", "DUR", "a duration", false},
    {0, "choice", "C", "one or two", false},
    {0, "files", "FILE", "files", true},
    {0, NULL, NULL, NULL, false},
};
static const struct cli_command cmd_probe = {
    .name = "probe", .args = "A [B]", .min_args = 1, .max_args = 2, .summary = "for the test",
    .examples = "remap probe a\n", .options = probe_options, .outputs = CLI_TEXT | CLI_JSON,
    .run = probe_run};
static const struct cli_command cmd_store = {
    .name = "where", .summary = "for the test", .examples = "remap where\n",
    .common = CLI_CONFIG | CLI_STORE | CLI_RUN_DIR, .run = store_run};
const struct cli_command *const cli_commands[] = {&cmd_probe, &cmd_store, NULL};

/* Runs "remap WORDS…"; what goes to stderr is caught. */
static char complaint[4096];

static int remap(const char *words)
{
    char copy[1000], name[] = "remap", *argv[20] = {name};
    int argc = 1;
    snprintf(copy, sizeof copy, "%s", words);
    for (char *w = strtok(copy, " "); w; w = strtok(NULL, " "))
        argv[argc++] = w;
    buf_clear(&seen);
    FILE *file = tmpfile();
    fflush(stderr);
    int saved = dup(STDERR_FILENO);
    dup2(fileno(file), STDERR_FILENO);
    int rc = cli_main(argc, argv);
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
    rewind(file);
    complaint[fread(complaint, 1, sizeof complaint - 1, file)] = '\0';
    fclose(file);
    return rc;
}

static void test_words_when_valid_then_command_sees_them(void **state)
{
    (void)state;
    static const struct {
        const char *words, *seen;
    } rows[] = {
        {"probe a", "flag=0 number=-1 weight=-1 limit=-1 choice=-1 out=1 files= args=a,"},
        {"probe a -f b --number 4 --weight=0.5 --limit 2s --choice two -o json",
         "flag=1 number=4 weight=0.5 limit=2000 choice=1 out=2 files= args=a,b,"},
        {"probe --files x y z --flag a",
         "flag=1 number=-1 weight=-1 limit=-1 choice=-1 out=1 files=x,y,z, args=a,"},
        {"probe --files x --files=y -n3 -- a -f",
         "flag=0 number=3 weight=-1 limit=-1 choice=-1 out=1 files=x,y, args=a,-f,"},
        {"-o json --store x probe a",
         "flag=0 number=-1 weight=-1 limit=-1 choice=-1 out=2 files= args=a,"},
        {"-ojson -c x --run-dir=y probe a -o text",
         "flag=0 number=-1 weight=-1 limit=-1 choice=-1 out=1 files= args=a,"},
        {"probe -n1 -n2 -",
         "flag=0 number=2 weight=-1 limit=-1 choice=-1 out=1 files= args=-,"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(remap(rows[i].words), 7);
        assert_string_equal(seen.data, rows[i].seen);
        assert_string_equal(complaint, "");
    }
}

static void test_words_when_wrong_then_exit_2_and_the_word_named(void **state)
{
    (void)state;
    static const struct {
        const char *words, *complaint;
    } rows[] = {
        {"prove a", "remap: unknown command \"prove\"; did you mean \"probe\"?"},
        {"probe", "remap probe: missing argument: A [B]"},
        {"probe a b c", "remap probe: unexpected argument \"c\""},
        {"probe a --nubmer 3", "remap probe: unknown option --nubmer; did you mean --number?"},
        {"probe a -x", "remap probe: unknown option -x"},
        {"probe a --flag=1", "remap probe: --flag takes no value"},
        {"probe a --number", "remap probe: --number wants N"},
        {"probe a --number --flag", "remap probe: --number wants N"},
        {"probe a --number 10",
         "remap probe: --number must be an integer from 0 to 9, not \"10\""},
        {"probe a --number 4x",
         "remap probe: --number must be an integer from 0 to 9, not \"4x\""},
        {"probe a --weight nan",
         "remap probe: --weight must be a number from 0 to 1, not \"nan\""},
        {"probe a --limit 5", "remap probe: --limit must be a duration such as 500ms, 10s or 5m, "
                              "not \"5\""},
        {"probe a --choice three", "remap probe: --choice must be one of one, two, not \"three\""},
        {"probe a -o yaml", "remap probe: -o must be one of text, json, not \"yaml\""},
        {"probe a -o patch", "remap probe: -o must be one of text, json, not \"patch\""},
        {"-o yaml probe a", "remap probe: -o must be one of text, json, not \"yaml\""},
        {"-o json prove", "remap: unknown command \"prove\""},
        {"--number 3 probe a", "remap: unknown command \"--number\""},
        {"-c", "remap - places"},
        {"-c x", "remap - places"},
        {"probe a --store x", "remap probe: unknown option --store"},
        {"", "remap - places"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(remap(rows[i].words), 2);
        complaint[strlen(rows[i].complaint)] = '\0';
        assert_string_equal(complaint, rows[i].complaint);
        assert_int_equal(seen.size, 0);
    }
}

static void test_places_when_given_in_several_ways_then_the_nearest_wins(void **state)
{
    (void)state;
    char path[] = "/tmp/remap-test-cli-XXXXXX";
    int fd = mkstemp(path);
    static const char text[] = "store: /conf/s.db\nsources: [{name: c, type: simulated}]\n"
                               "apps: [{name: a, cluster: c}]\n";
    assert_int_equal(write(fd, text, strlen(text)), (int)strlen(text));
    close(fd);
    char words[200];
    unsetenv("REMAP_CONFIG");
    setenv("STATE_DIRECTORY", "/state/one:/state/two", 1);
    setenv("RUNTIME_DIRECTORY", "/runtime", 1);
    assert_int_equal(remap("where --store /given.db --run-dir /given"), 0);
    assert_string_equal(seen.data, "/given.db /given");
    assert_int_equal(remap("--store=/given.db --run-dir /given where"), 0);
    assert_string_equal(seen.data, "/given.db /given");
    snprintf(words, sizeof words, "where -c %s", path);
    assert_int_equal(remap(words), 0);
    assert_string_equal(seen.data, "/conf/s.db /runtime");
    setenv("REMAP_CONFIG", path, 1);
    assert_int_equal(remap("where"), 0);
    assert_string_equal(seen.data, "/conf/s.db /runtime");
    unlink(path);
    assert_int_equal(remap("where"), 2);
    assert_non_null(strstr(complaint, path));
    unsetenv("REMAP_CONFIG");
    if (access("/etc/remap/remap.yaml", F_OK) != 0) {
        assert_int_equal(remap("where"), 0);
        assert_string_equal(seen.data, "/state/one/store.db /runtime");
        unsetenv("STATE_DIRECTORY");
        unsetenv("RUNTIME_DIRECTORY");
        assert_int_equal(remap("where"), 0);
        assert_string_equal(seen.data, "/var/lib/remap/store.db /run/remap");
    }
}

static void test_table_when_put_then_columns_align_by_terminal_width(void **state)
{
    (void)state;
    static const char *const titles[] = {"name", ">count", "why", NULL};
    AUTO(table) struct table *table = table_new(titles);
    table_cell(table, "größe");
    table_printf(table, "%d", 7);
    table_cell(table, NULL);
    table_cell(table, "日本");
    table_printf(table, "%d", 1234567);
    table_cell(table, "a\033[2Jb");
    AUTO_BUF struct buf out = BUF_INIT;
    table_put(table, 2, &out);
    assert_int_equal(table_rows(table), 2);
    assert_string_equal(out.data, "  name     count  why\n"
                                  "  größe        7  -\n"
                                  "  日本   1234567  a?[2Jb\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words_when_valid_then_command_sees_them),
        cmocka_unit_test(test_words_when_wrong_then_exit_2_and_the_word_named),
        cmocka_unit_test(test_places_when_given_in_several_ways_then_the_nearest_wins),
        cmocka_unit_test(test_table_when_put_then_columns_align_by_terminal_width),
    };
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    buf_wipe(&seen);
    return rc;
}
