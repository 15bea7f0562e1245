/* cli.c - the frame of the command line: words into options by the command's own table, help out of
 * the same table, and where configuration, store and run directory are (contract.md 1). */
#include "model/manager/cli.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/base/clock.h"
#include "model/base/file.h"
#include "model/base/names.h"
#include "model/manager/table.h"

struct cli_given {
    const struct cli_option *option;
    const char *value; /* NULL for a flag */
};

static const struct cli_option option_output = {
    'o', "output", "FORMAT", "text (for people) or json (one document)", false};
static const struct cli_option option_help = {'h', "help", NULL, "show this and exit", false};
static const struct cli_option option_config = {
    'c', "config", "FILE",
    "the configuration; default $REMAP_CONFIG, else /etc/remap/remap.yaml", false};
static const struct cli_option option_store = {
    0, "store", "FILE",
    "the database; default from the configuration, else $STATE_DIRECTORY/store.db", false};
static const struct cli_option option_run_dir = {
    0, "run-dir", "DIR",
    "where the daemon's bus is; default from the configuration, else $RUNTIME_DIRECTORY", false};

/* --- the options that a command takes --- */

/* All of them, own ones first; NULL-terminated; caller frees the array. */
static const struct cli_option **options_of(const struct cli_command *command)
{
    const struct cli_option **all = NULL;
    size_t n = 0;
    for (const struct cli_option *o = command->options; o && o->name; o++)
        *ARRAY_PUSH(all, n) = o;
    if (command->common & CLI_CONFIG)
        *ARRAY_PUSH(all, n) = &option_config;
    if (command->common & CLI_STORE)
        *ARRAY_PUSH(all, n) = &option_store;
    if (command->common & CLI_RUN_DIR)
        *ARRAY_PUSH(all, n) = &option_run_dir;
    if (command->outputs)
        *ARRAY_PUSH(all, n) = &option_output;
    *ARRAY_PUSH(all, n) = &option_help;
    (void)ARRAY_PUSH(all, n); /* NULL ends it */
    return all;
}

static const struct cli_option *option_long(const struct cli_option *const *all,
                                            const char *name, size_t size)
{
    for (; *all; all++)
        if (strlen((*all)->name) == size && memcmp((*all)->name, name, size) == 0)
            return *all;
    return NULL;
}

static const struct cli_option *option_short(const struct cli_option *const *all, char letter)
{
    for (; *all; all++)
        if ((*all)->letter == letter)
            return *all;
    return NULL;
}

static int unknown_long(const struct cli_option *const *all, const char *word, struct err *err)
{
    const char **names = NULL;
    size_t n = 0;
    for (; *all; all++)
        *ARRAY_PUSH(names, n) = (*all)->name;
    (void)ARRAY_PUSH(names, n);
    AUTO_FREE char *name = mem_strndup(word + 2, strcspn(word + 2, "="));
    const char *near = names_nearest(name, names);
    free(names);
    if (near)
        return err_set(err, ERR_USAGE, "unknown option --%s; did you mean --%s?", name, near);
    return err_set(err, ERR_USAGE, "unknown option --%s", name);
}

/* --- parsing --- */

static void given_add(struct cli *cli, const struct cli_option *option, const char *value)
{
    *ARRAY_PUSH(cli->given, cli->n_given) = (struct cli_given){option, value};
}

static bool is_option(const char *word)
{
    return word[0] == '-' && word[1] != '\0';
}

/* One option word at argv[*i], with its values; *i ends at the last word used. */
static int parse_option(struct cli *cli, const struct cli_option *const *all, int argc,
                        char **argv, int *i, struct err *err)
{
    const char *word = argv[*i], *value = NULL;
    const struct cli_option *option;
    char shown[64];
    if (word[1] == '-') {
        size_t size = strcspn(word + 2, "=");
        option = option_long(all, word + 2, size);
        if (!option)
            return unknown_long(all, word, err);
        value = word[2 + size] ? word + 3 + size : NULL;
        snprintf(shown, sizeof shown, "--%s", option->name);
    } else {
        option = option_short(all, word[1]);
        if (!option)
            return err_set(err, ERR_USAGE, "unknown option -%c", word[1]);
        value = word[2] ? word + 2 : NULL;
        if (value && !option->value)
            return err_set(err, ERR_USAGE, "unknown option %s", word);
        snprintf(shown, sizeof shown, "-%c", option->letter);
    }
    if (!option->value) {
        if (value)
            return err_set(err, ERR_USAGE, "%s takes no value", shown);
        given_add(cli, option, NULL);
        return 0;
    }
    if (!value) {
        if (*i + 1 >= argc || (is_option(argv[*i + 1]) && argv[*i + 1][1] == '-'))
            return err_set(err, ERR_USAGE, "%s wants %s", shown, option->value);
        value = argv[++*i];
    }
    given_add(cli, option, value);
    while (option->many && *i + 1 < argc && !is_option(argv[*i + 1]))
        given_add(cli, option, argv[++*i]);
    return 0;
}

static int parse_output(struct cli *cli, struct err *err)
{
    static const char *const names[] = {"text", "json", "patch"};
    const char *value = cli_opt(cli, "output");
    cli->output = CLI_TEXT;
    if (!value)
        return 0;
    AUTO_BUF struct buf known = BUF_INIT;
    for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
        if (!(cli->command->outputs & 1u << i))
            continue;
        if (strcmp(value, names[i]) == 0) {
            cli->output = (enum cli_output)(1u << i);
            return 0;
        }
        buf_printf(&known, "%s%s", known.size ? ", " : "", names[i]);
    }
    return err_set(err, ERR_USAGE, "-o must be one of %s, not \"%.40s\"", known.data, value);
}

static int parse_words(struct cli *cli, int argc, char **argv, struct err *err)
{
    const struct cli_option **all = options_of(cli->command);
    int rc = 0;
    bool only_args = false;
    cli->args = mem_array((size_t)argc + 1, sizeof *cli->args);
    for (int i = 0; i < argc && rc == 0; i++) {
        if (!only_args && strcmp(argv[i], "--") == 0)
            only_args = true;
        else if (!only_args && is_option(argv[i]))
            rc = parse_option(cli, all, argc, argv, &i, err);
        else
            cli->args[cli->n_args++] = argv[i];
    }
    free(all);
    if (rc || cli_flag(cli, "help"))
        return rc;
    if (cli->n_args > cli->command->max_args)
        return err_set(err, ERR_USAGE, "unexpected argument \"%.60s\"",
                       cli->args[cli->command->max_args]);
    if (cli->n_args < cli->command->min_args)
        return err_set(err, ERR_USAGE, "missing argument: %s", cli->command->args);
    cli->config_path = cli_opt(cli, "config");
    cli->store = cli_opt(cli, "store");
    cli->run_dir = cli_opt(cli, "run-dir");
    return parse_output(cli, err);
}

/* --- help --- */

static void help_option(struct table *table, const struct cli_option *option,
                        const struct cli_command *command)
{
    char letter[8] = "    ";
    if (option->letter)
        snprintf(letter, sizeof letter, "-%c, ", option->letter);
    table_printf(table, "%s--%s%s%s%s", letter, option->name, option->value ? " " : "",
                 option->value ? option->value : "", option->many ? "…" : "");
    if (option == &option_output && command->outputs & CLI_PATCH)
        table_cell(table, "text (for people), json (one document) or patch");
    else
        table_cell(table, option->help);
}

#define HELP_COLUMNS 100

/* Paragraphs wrapped to a screen; lines that begin with a blank stay as they are. */
static void help_about(const char *text, struct buf *out)
{
    size_t column = 0;
    while (*text) {
        size_t blanks = strspn(text, " "), n = strcspn(text + blanks, " \n");
        bool fresh = column == 0;
        if (!fresh && column + blanks + n > HELP_COLUMNS) {
            buf_puts(out, "\n");
            fresh = true;
            column = 0;
        }
        size_t keep = fresh && column == 0 && blanks == 1 ? 0 : blanks;
        buf_printf(out, "%*s%.*s", (int)keep, "", (int)n, text + blanks);
        column += keep + n;
        text += blanks + n;
        if (*text == '\n') {
            buf_puts(out, "\n");
            column = 0;
            text++;
        }
    }
    buf_puts(out, "\n");
}

static void help_command(const struct cli_command *command, struct buf *out)
{
    buf_printf(out, "remap %s - %s\n\nUsage: remap %s [options]%s%s\n", command->name,
               command->summary, command->name, command->args ? " " : "",
               command->args ? command->args : "");
    if (command->about) {
        buf_puts(out, "\n");
        help_about(command->about, out);
    }
    static const char *const titles[] = {"", "", NULL};
    AUTO(table) struct table *table = table_new(titles);
    const struct cli_option **all = options_of(command);
    for (const struct cli_option **o = all; *o; o++)
        help_option(table, *o, command);
    free(all);
    buf_puts(out, "\nOptions:\n");
    table_put(table, 2, out);
    buf_puts(out, "\nExamples:\n");
    for (const char *line = command->examples; *line;) {
        size_t n = strcspn(line, "\n");
        buf_printf(out, "  %.*s\n", (int)n, line);
        line += n + (line[n] == '\n');
    }
}

static void help_all(struct buf *out)
{
    buf_puts(out, "remap - places the microservices of a running application where their traffic "
                  "stays local\n\nUsage: remap COMMAND [options]\n       remap COMMAND --help\n"
                  "       remap --version\n\n");
    static const char *const titles[] = {"Commands:", "", NULL};
    AUTO(table) struct table *table = table_new(titles);
    for (const struct cli_command *const *c = cli_commands; *c; c++) {
        table_printf(table, "  %s", (*c)->name);
        table_cell(table, (*c)->summary);
    }
    table_put(table, 0, out);
    buf_puts(out,
             "\nExit codes: 0 done; 1 failure; 2 usage, configuration or input; 3 no feasible "
             "placement;\n4 time limit reached and nothing valid found.\n"
             "Documents go to stdout, messages to stderr. $REMAP_LOG_LEVEL and $REMAP_LOG_FORMAT\n"
             "set how much is logged and how.\n");
}

/* --- what was given --- */

static const struct cli_given *given_last(const struct cli *cli, const char *name)
{
    for (size_t i = cli->n_given; i-- > 0;)
        if (strcmp(cli->given[i].option->name, name) == 0)
            return &cli->given[i];
    return NULL;
}

bool cli_flag(const struct cli *cli, const char *name)
{
    return given_last(cli, name) != NULL;
}

const char *cli_opt(const struct cli *cli, const char *name)
{
    const struct cli_given *given = given_last(cli, name);
    return given ? given->value : NULL;
}

size_t cli_many(const struct cli *cli, const char *name, const char ***out)
{
    const char **values = NULL;
    size_t n = 0;
    for (size_t i = 0; i < cli->n_given; i++)
        if (strcmp(cli->given[i].option->name, name) == 0)
            *ARRAY_PUSH(values, n) = cli->given[i].value;
    *out = values;
    return n;
}

static int integer_parse(const char *text, int64_t *out)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    bool starts = (text[0] >= '0' && text[0] <= '9') || (text[0] == '-' && text[1]);
    if (!starts || *end || errno)
        return -1;
    *out = value;
    return 0;
}

int cli_opt_int(const struct cli *cli, const char *name, int64_t min, int64_t max, int64_t *out,
                struct err *err)
{
    const char *text = cli_opt(cli, name);
    int64_t value;
    if (!text)
        return 0;
    if (integer_parse(text, &value) || value < min || value > max)
        return err_set(err, ERR_USAGE, "--%s must be an integer from %lld to %lld, not \"%.40s\"",
                       name, (long long)min, (long long)max, text);
    *out = value;
    return 0;
}

int cli_opt_real(const struct cli *cli, const char *name, double min, double max, double *out,
                 struct err *err)
{
    const char *text = cli_opt(cli, name);
    if (!text)
        return 0;
    char *end;
    double value = strtod(text, &end);
    if (!*text || *end || strspn(text, "0123456789.eE+-") != strlen(text) || !isfinite(value) ||
        value < min || value > max)
        return err_set(err, ERR_USAGE, "--%s must be a number from %g to %g, not \"%.40s\"", name,
                       min, max, text);
    *out = value;
    return 0;
}

int cli_opt_duration(const struct cli *cli, const char *name, int64_t *out_ms, struct err *err)
{
    const char *text = cli_opt(cli, name);
    struct err why = ERR_INIT;
    if (text && duration_parse(text, out_ms, &why))
        return err_set(err, ERR_USAGE, "--%s must be a duration such as 500ms, 10s or 5m, not "
                       "\"%.40s\"", name, text);
    return 0;
}

int cli_opt_choice(const struct cli *cli, const char *name, const char *const choices[], int *out,
                   struct err *err)
{
    const char *text = cli_opt(cli, name);
    if (!text)
        return 0;
    AUTO_BUF struct buf known = BUF_INIT;
    for (int i = 0; choices[i]; i++) {
        if (strcmp(choices[i], text) == 0) {
            *out = i;
            return 0;
        }
        buf_printf(&known, "%s%s", i ? ", " : "", choices[i]);
    }
    return err_set(err, ERR_USAGE, "--%s must be one of %s, not \"%.40s\"", name, known.data,
                   text);
}

int cli_arg_cycle(const struct cli *cli, size_t i, int64_t *out, struct err *err)
{
    int64_t value;
    if (integer_parse(cli->args[i], &value) || value < 1)
        return err_set(err, ERR_USAGE, "\"%.40s\" is no cycle number (`remap history` lists them)",
                       cli->args[i]);
    *out = value;
    return 0;
}

/* --- places --- */

int cli_config(struct cli *cli, const struct config **out, struct err *err)
{
    if (!cli->config)
        cli->config = config_read(config_path(cli->config_path), err);
    if (!cli->config)
        return -1;
    *out = cli->config;
    return 0;
}

/* The configuration, if one was named or is at the default place; *out NULL otherwise. */
static int config_if_any(struct cli *cli, const struct config **out, struct err *err)
{
    bool named = cli->config_path || getenv("REMAP_CONFIG");
    *out = NULL;
    if (!cli->config && !named && access(config_path(NULL), F_OK) != 0)
        return 0;
    return cli_config(cli, out, err);
}

/* systemd gives a list with colons when several folders are configured; ours is the first. */
static char *env_folder(const char *variable)
{
    const char *value = getenv(variable);
    return value && *value ? mem_strndup(value, strcspn(value, ":")) : NULL;
}

int cli_store_path(struct cli *cli, const char **out, struct err *err)
{
    const struct config *config = NULL;
    if (!cli->store_path && cli->store)
        cli->store_path = mem_strdup(cli->store);
    if (!cli->store_path) {
        if (config_if_any(cli, &config, err))
            return -1;
        if (config && config->store) {
            cli->store_path = mem_strdup(config->store);
        } else {
            AUTO_FREE char *folder = env_folder("STATE_DIRECTORY");
            cli->store_path = mem_printf("%s/store.db", folder ? folder : "/var/lib/remap");
        }
    }
    *out = cli->store_path;
    return 0;
}

int cli_run_dir(struct cli *cli, const char **out, struct err *err)
{
    const struct config *config = NULL;
    if (!cli->run_path && cli->run_dir)
        cli->run_path = mem_strdup(cli->run_dir);
    if (!cli->run_path) {
        if (config_if_any(cli, &config, err))
            return -1;
        cli->run_path = config && config->run_dir ? mem_strdup(config->run_dir)
                                                  : env_folder("RUNTIME_DIRECTORY");
        if (!cli->run_path)
            cli->run_path = mem_strdup("/run/remap");
    }
    *out = cli->run_path;
    return 0;
}

/* --- output --- */

bool cli_colour(void)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return isatty(STDOUT_FILENO) && !(no && *no) && term && strcmp(term, "dumb") != 0;
}

int cli_flush(struct err *err)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return 0;
    return err_set(err, ERR_IO, "standard output: %s", strerror(errno));
}

int cli_print_json(const struct buf *text, struct err *err)
{
    if (text->size)
        fwrite(text->data, 1, text->size, stdout);
    if (!text->size || text->data[text->size - 1] != '\n')
        putchar('\n');
    return cli_flush(err);
}

/* --- the front door --- */

static const struct cli_command *command_find(const char *name)
{
    for (const struct cli_command *const *c = cli_commands; *c; c++)
        if (strcmp((*c)->name, name) == 0)
            return *c;
    return NULL;
}

static int unknown_command(const char *name)
{
    const char **names = NULL;
    size_t n = 0;
    for (const struct cli_command *const *c = cli_commands; *c; c++)
        *ARRAY_PUSH(names, n) = (*c)->name;
    (void)ARRAY_PUSH(names, n);
    const char *near = names_nearest(name, names);
    fprintf(stderr, "remap: unknown command \"%s\"%s%s%s (see `remap --help`)\n", name,
            near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
    free(names);
    return err_exit_code(ERR_USAGE);
}

static int print_text(const struct buf *text)
{
    struct err err = ERR_INIT;
    fwrite(text->data, 1, text->size, stdout);
    if (cli_flush(&err) == 0)
        return 0;
    fprintf(stderr, "remap: %s\n", err.text);
    return err_exit_code(err.kind);
}

static void cli_wipe(struct cli *cli)
{
    free(cli->args);
    free(cli->given);
    free(cli->store_path);
    free(cli->run_path);
    config_free(cli->config);
}

static int command_run(const struct cli_command *command, int argc, char **argv)
{
    struct cli cli = {.command = command};
    struct err err = ERR_INIT;
    int rc = parse_words(&cli, argc, argv, &err);
    if (rc == 0 && cli_flag(&cli, "help")) {
        AUTO_BUF struct buf text = BUF_INIT;
        help_command(command, &text);
        rc = print_text(&text);
    } else if (rc == 0) {
        rc = command->run(&cli, &err);
        if (rc >= 0 && cli_flush(&err))
            rc = -1;
    }
    if (rc < 0) {
        fprintf(stderr, "remap %s: %s\n", command->name, err.text);
        if (err.kind == ERR_USAGE)
            fprintf(stderr, "See `remap %s --help`.\n", command->name);
        rc = err_exit_code(err.kind);
    }
    cli_wipe(&cli);
    return rc;
}

/* contract.md 1 gives these to the front door, so they may stand before the command, too. */
static const struct cli_option *const front_options[] = {&option_config, &option_store,
                                                         &option_run_dir, &option_output, NULL};

/* How many words the front option at argv[0] takes, at most argc; 0: it is none. */
static int front_words(int argc, char **argv, const struct cli_option **option)
{
    const char *word = argv[0];
    bool whole;
    if (!is_option(word))
        return 0;
    if (word[1] == '-') {
        size_t size = strcspn(word + 2, "=");
        *option = option_long(front_options, word + 2, size);
        whole = word[2 + size] != '\0';
    } else {
        *option = option_short(front_options, word[1]);
        whole = word[2] != '\0';
    }
    if (!*option)
        return 0;
    return whole || argc == 1 ? 1 : 2;
}

/* The words before the command go behind it; what it has no use for is left out, so that
 * `remap -c FILE` can stand before any command. */
static int command_run_at(const struct cli_command *command, int argc, char **argv, int at)
{
    AUTO_FREE char **words = mem_array((size_t)argc + 1, sizeof *words);
    const struct cli_option **taken = options_of(command), *option = NULL;
    int n = 0;
    for (int i = 1; i < at;) {
        int step = front_words(argc - i, argv + i, &option);
        bool takes = option_long(taken, option->name, strlen(option->name));
        for (int k = 0; k < step; k++, i++)
            if (takes)
                words[n++] = argv[i];
    }
    free(taken);
    for (int i = at + 1; i < argc; i++)
        words[n++] = argv[i];
    return command_run(command, n, words);
}

int cli_main(int argc, char **argv)
{
    AUTO_BUF struct buf text = BUF_INIT;
    const struct cli_option *front = NULL;
    int at = 1;
    while (at < argc) {
        int step = front_words(argc - at, argv + at, &front);
        if (step == 0)
            break;
        at += step;
    }
    const char *word = at < argc ? argv[at] : "";
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
        buf_puts(&text, "remap " REMAP_VERSION "\n");
        return print_text(&text);
    }
    bool help = strcmp(word, "help") == 0;
    if (help && at + 1 < argc) {
        const struct cli_command *about = command_find(argv[at + 1]);
        if (!about)
            return unknown_command(argv[at + 1]);
        help_command(about, &text);
        return print_text(&text);
    }
    if (help || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        help_all(&text);
        return print_text(&text);
    }
    if (!*word) {
        help_all(&text);
        fputs(text.data, stderr);
        return err_exit_code(ERR_USAGE);
    }
    const struct cli_command *command = command_find(word);
    return command ? command_run_at(command, argc, argv, at) : unknown_command(word);
}
