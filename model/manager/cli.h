/* cli.h - the front door's frame: commands as data (so that parsing, --help and the shell
 * completion come from one place), the common options, and what commands share.
 *
 * A command is one `const struct cli_command` beside its function and one line in commands.c.
 * Its function prints its document on stdout and returns an exit code (contract.md 1), or -1 with
 * *err set: main() then prints "remap COMMAND: text" on stderr and exits by err_exit_code(). */
#ifndef REMAP_MANAGER_CLI_H
#define REMAP_MANAGER_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "model/base/buf.h"
#include "model/base/err.h"
#include "model/config.h"

enum cli_output { CLI_TEXT = 1, CLI_JSON = 2, CLI_PATCH = 4 };

/* Common options that a command takes besides -o, --help: */
enum cli_common {
    CLI_CONFIG = 1,  /* -c, --config FILE */
    CLI_STORE = 2,   /* --store FILE */
    CLI_RUN_DIR = 4, /* --run-dir DIR */
};

struct cli_option {
    char letter;       /* 0: none */
    const char *name;  /* without the dashes; NULL ends the table */
    const char *value; /* "FILE", "N", …: what it takes; NULL: a flag */
    const char *help;
    bool many; /* may be repeated, and takes all words up to the next option */
};

struct cli;

struct cli_command {
    const char *name;
    const char *args; /* "CYCLE [SERVICE]"; NULL: none */
    size_t min_args, max_args;
    const char *summary;  /* one line of `remap --help` */
    const char *about;    /* further text of `remap COMMAND --help`; may be NULL */
    const char *examples; /* lines, each a command that works */
    const struct cli_option *options; /* NULL: none */
    unsigned common;      /* of enum cli_common */
    unsigned outputs;     /* of enum cli_output; 0: the command has no -o */
    int (*run)(struct cli *cli, struct err *err);
};

struct cli {
    const struct cli_command *command;
    enum cli_output output; /* -o; CLI_TEXT by default */
    const char *config_path, *store, *run_dir; /* as given, NULL when not */
    char **args; /* positional, borrowed from argv */
    size_t n_args;
    struct cli_given *given; /* options in the order given */
    size_t n_given;
    struct config *config;    /* read by cli_config() */
    char *store_path, *run_path; /* resolved by cli_store_path(), cli_run_dir() */
};

/* NULL-terminated, in the order of `remap --help`. */
extern const struct cli_command *const cli_commands[];

/* --- what was given --- */
bool cli_flag(const struct cli *cli, const char *name);
const char *cli_opt(const struct cli *cli, const char *name); /* the last one; NULL when absent */
/* All values of a repeated option, in order; *out is freed by the caller, its strings are not. */
size_t cli_many(const struct cli *cli, const char *name, const char ***out);
/* Absent leaves *out as it is. ERR_USAGE names the option. */
int cli_opt_int(const struct cli *cli, const char *name, int64_t min, int64_t max, int64_t *out,
                struct err *err);
int cli_opt_real(const struct cli *cli, const char *name, double min, double max, double *out,
                 struct err *err);
int cli_opt_duration(const struct cli *cli, const char *name, int64_t *out_ms, struct err *err);
/* Index into NULL-terminated choices. */
int cli_opt_choice(const struct cli *cli, const char *name, const char *const choices[], int *out,
                   struct err *err);
/* args[i] as a cycle id (from 1). */
int cli_arg_cycle(const struct cli *cli, size_t i, int64_t *out, struct err *err);

/* --- places --- */
/* The configuration of -c, $REMAP_CONFIG or the default path; read once. */
int cli_config(struct cli *cli, const struct config **out, struct err *err);
/* --store, else the configuration's (if there is one), else $STATE_DIRECTORY/store.db, else the
 * built-in path. A configuration that was named but cannot be read is an error; one that merely is
 * not there is none. Borrowed from cli. */
int cli_store_path(struct cli *cli, const char **out, struct err *err);
int cli_run_dir(struct cli *cli, const char **out, struct err *err);

/* --- output --- */
/* May stdout be coloured? A terminal, NO_COLOR unset, TERM not dumb. */
bool cli_colour(void);
/* Writes a JSON document and a newline to stdout. ERR_IO. */
int cli_print_json(const struct buf *text, struct err *err);
/* Flushes stdout; ERR_IO when the disk is full or the pipe is gone. main() calls it at the end. */
int cli_flush(struct err *err);

/* --- main.c --- */
int cli_main(int argc, char **argv);

/* The commands. */
extern const struct cli_command cmd_run, cmd_once;                            /* daemon.c */
extern const struct cli_command cmd_check, cmd_plan, cmd_analyze, cmd_import; /* cli_offline.c */
extern const struct cli_command cmd_status, cmd_history, cmd_show, cmd_events, cmd_explain,
    cmd_replay; /* cli_*.c over the store */
extern const struct cli_command cmd_trigger, cmd_apply, cmd_undo, cmd_pause, cmd_resume,
    cmd_release;                           /* cli_ask.c: the daemon is asked */
extern const struct cli_command cmd_demo; /* cli_demo.c */

#endif
