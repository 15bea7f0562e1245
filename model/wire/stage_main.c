/* stage_main.c - the command line of a stage program, and its second way to run: as a filter from
 * stdin to stdout, without ZeroMQ (design.md 3: fixture = bug report = fuzz input = replay). */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "model/base/file.h"
#include "model/base/log.h"
#include "model/base/mem.h"
#include "model/wire/stage_run.h"

enum { OPT_BUS = 256, OPT_FILTER, OPT_LIFELINE, OPT_PROGRESS, OPT_RUN_DIR, OPT_VERSION };

static const struct option long_options[] = {
    {"bus", required_argument, NULL, OPT_BUS},
    {"filter", no_argument, NULL, OPT_FILTER},
    {"help", no_argument, NULL, 'h'},
    {"lifeline", required_argument, NULL, OPT_LIFELINE},
    {"progress", no_argument, NULL, OPT_PROGRESS},
    {"run-dir", required_argument, NULL, OPT_RUN_DIR},
    {"version", no_argument, NULL, OPT_VERSION},
    {NULL, 0, NULL, 0},
};

static void stage_usage(const struct stage_program *program, FILE *to)
{
    const char *name = party_name(program->party);
    fprintf(to,
            "remap-%s: %s\n\n"
            "Usage: remap-%s --filter [--progress] [TYPE] < request.json > result.json\n"
            "       remap-%s --bus ENDPOINT --lifeline FD --run-dir DIR   (by `remap run`)\n\n"
            "  --filter     answer one request from stdin on stdout; TYPE is",
            name, program->summary, name, name);
    for (size_t i = 0; i < program->n_handlers; i++) {
        fprintf(to, "%s %s%s", i ? "," : "", message_type_name(program->handlers[i].type),
                i ? "" : " (default)");
    }
    fprintf(to, "\n"
                "  --progress   with --filter: progress lines on stderr\n"
                "  --bus        serve the manager that listens there\n"
                "  --lifeline   descriptor of a pipe; its end is the manager's\n"
                "  --run-dir    run directory, for the lock that every stage holds\n"
                "  --help, --version\n\n"
                "Exit codes: 0 done, 1 failure, 2 input, 3 infeasible, 4 time limit.\n");
}

static int stage_filter(struct stage *stage, struct err *err)
{
    AUTO_BUF struct buf request_text = BUF_INIT, result = BUF_INIT;
    if (file_read("-", WIRE_MAX_BODY, &request_text, err) < 0) {
        return err_exit_code(err->kind);
    }
    struct envelope env = {.type = stage->options.filter_type, .attempt = 1};
    struct stage_request request = {&env, request_text.data ? request_text.data : "",
                                    request_text.size};
    const struct stage_handler *handler = stage_handler_find(stage->program, env.type);
    int exit_code = 0;
    stage->loop = loop_new();
    stage->request = env;
    int done = handler->handle(stage, &request, &result, &exit_code, err);
    loop_free(stage->loop);
    if (done < 0) {
        return err_exit_code(err->kind);
    }
    buf_puts(&result, "\n");
    if (file_write_fd(STDOUT_FILENO, result.data, result.size, err) < 0) {
        return err_exit_code(err->kind);
    }
    return exit_code;
}

/* -1: go on; else the exit code. */
static int stage_parse(const struct stage_program *program, int argc, char **argv,
                       struct stage_options *out, struct err *err)
{
    *out = (struct stage_options){.lifeline = -1, .filter_type = program->handlers[0].type};
    for (int c; (c = getopt_long(argc, argv, "h", long_options, NULL)) != -1;) {
        switch (c) {
        case OPT_BUS:
            out->bus = optarg;
            break;
        case OPT_FILTER:
            out->filter = true;
            break;
        case OPT_LIFELINE: {
            char *end;
            long fd = strtol(optarg, &end, 10);
            if (*end || end == optarg || fd < 0 || fd > 65535) {
                err_set(err, ERR_USAGE, "--lifeline %s: must be a descriptor", optarg);
                return 2;
            }
            out->lifeline = (int)fd;
            break;
        }
        case OPT_PROGRESS:
            out->progress = true;
            break;
        case OPT_RUN_DIR:
            out->run_dir = optarg;
            break;
        case OPT_VERSION:
            printf("remap-%s %s\n", party_name(program->party), REMAP_VERSION);
            return 0;
        case 'h':
            stage_usage(program, stdout);
            return 0;
        default: /* getopt has said which */
            return 2;
        }
    }
    if (out->filter && optind < argc) {
        int type = message_type_from_name(argv[optind]);
        if (type < 0 || !stage_handler_find(program, (enum message_type)type)) {
            err_set(err, ERR_USAGE, "--filter %s: no such request here; see --help", argv[optind]);
            return 2;
        }
        out->filter_type = (enum message_type)type;
        optind++;
    }
    if (optind < argc) {
        err_set(err, ERR_USAGE, "%s: unexpected; see --help", argv[optind]);
        return 2;
    }
    if (!out->filter == !out->bus) {
        err_set(err, ERR_USAGE, "one of --filter and --bus is needed; see --help");
        return 2;
    }
    return -1;
}

int stage_main(const struct stage_program *program, int argc, char **argv)
{
    AUTO_FREE char *name = mem_printf("remap-%s", party_name(program->party));
    log_init(name, LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
    struct stage stage = {.program = program, .outbox = OUTBOX_INIT};
    struct err err = ERR_INIT;
    int code = stage_parse(program, argc, argv, &stage.options, &err);
    if (code < 0) {
        if (stage.options.filter) {
            code = stage_filter(&stage, &err);
        } else {
            code = stage_bus_run(&stage, &err) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
        }
    }
    if (err.kind != ERR_NONE) {
        fprintf(stderr, "%s: %s\n", name, err.text);
    }
    return code;
}
