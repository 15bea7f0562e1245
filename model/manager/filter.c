/* filter.c - finding the stage programs, and one of them as a filter: request down its stdin,
 * result up its stdout, both at once, so that neither pipe can fill up and stop the other. */
#include "model/manager/filter.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "model/base/mem.h"

/* A line of a stage on stderr; longer ones are cut here. */
#define LINE_MAX_BYTES 4096

int program_dir(char out[PATH_MAX], struct err *err)
{
    ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - 1);
    if (n <= 0) {
        return err_set(err, ERR_IO, "/proc/self/exe: %s", strerror(errno));
    }
    out[n] = '\0';
    *strrchr(out, '/') = '\0';
    return 0;
}

int program_path(const char *name, const char *dir, char **out, struct err *err)
{
    char own[PATH_MAX];
    if (dir) {
        AUTO_FREE char *only = mem_printf("%s/%s", dir, name);
        if (access(only, X_OK) != 0) {
            return err_set(err, ERR_CONFIG, "%s: %s", only, strerror(errno));
        }
        *out = steal(only);
        return 0;
    }
    if (program_dir(own, err) < 0) {
        return -1;
    }
    /* A build tree; an installed tree that was moved as a whole; the installed tree. */
    char *places[] = {mem_printf("%s/%s", own, name),
                      mem_printf("%s/../libexec/remap/%s", own, name),
                      mem_printf("%s/%s", REMAP_LIBEXECDIR, name)};
    int rc = -1;
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        if (rc < 0 && access(places[i], X_OK) == 0) {
            *out = steal(places[i]);
            rc = 0;
        }
        free(places[i]);
    }
    if (rc < 0) {
        err_set(err, ERR_CONFIG, "%s is neither in %s nor in %s", name, own, REMAP_LIBEXECDIR);
    }
    return rc;
}

int stage_path(enum party stage, const char *stages_dir, char **out, struct err *err)
{
    AUTO_FREE char *name = mem_printf("remap-%s", party_name(stage));
    return program_path(name, stages_dir, out, err);
}

struct filter {
    pid_t pid;
    int in, out, err; /* our ends; -1 when closed */
    const char *name; /* "remap-planner": the lines of its own errors begin so */
    const char *request;
    size_t size, sent;
    struct buf *result;
    struct buf line;  /* of stderr, not yet complete */
    struct buf fault; /* the newest line that is an error of the stage itself */
};

static void fd_close(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
        *fd = -1;
    }
}

static void filter_wipe(struct filter *filter)
{
    fd_close(&filter->in);
    fd_close(&filter->out);
    fd_close(&filter->err);
    buf_wipe(&filter->line);
    buf_wipe(&filter->fault);
}

static void child_exec(const char *path, const char *name, const char *type, bool progress,
                       const int in[2], const int out[2], const int err[2])
{
    dup2(in[0], STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    signal(SIGPIPE, SIG_DFL);
    execl(path, name, "--filter", type, progress ? "--progress" : (char *)NULL, (char *)NULL);
    _exit(127);
}

static int filter_start(struct filter *filter, const char *path, const char *type, bool progress,
                        struct err *err)
{
    int pipes[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}};
    for (size_t i = 0; i < ARRAY_LEN(pipes); i++) {
        if (pipe2(pipes[i], O_CLOEXEC) < 0) {
            err_set(err, ERR_IO, "pipe: %s", strerror(errno));
            for (size_t k = 0; k < i; k++) {
                close(pipes[k][0]);
                close(pipes[k][1]);
            }
            return -1;
        }
    }
    filter->pid = fork();
    if (filter->pid == 0) {
        child_exec(path, filter->name, type, progress, pipes[0], pipes[1], pipes[2]);
    }
    close(pipes[0][0]);
    close(pipes[1][1]);
    close(pipes[2][1]);
    filter->in = pipes[0][1];
    filter->out = pipes[1][0];
    filter->err = pipes[2][0];
    if (filter->pid < 0) {
        return err_set(err, ERR_IO, "fork: %s", strerror(errno));
    }
    fcntl(filter->in, F_SETFL, O_NONBLOCK);
    return 0;
}

/* The stage's own error ("remap-planner: …") is kept for *err, all else is shown. */
static void filter_line(struct filter *filter)
{
    const char *line = filter->line.data;
    size_t length = strlen(filter->name);
    if (line && strncmp(line, filter->name, length) == 0 && strncmp(line + length, ": ", 2) == 0) {
        buf_clear(&filter->fault);
        buf_puts(&filter->fault, line + length + 2);
    } else if (line) {
        fprintf(stderr, "%s\n", line);
    }
    buf_clear(&filter->line);
}

static void filter_lines(struct filter *filter, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '\n') {
            filter_line(filter);
        } else if (filter->line.size < LINE_MAX_BYTES) {
            buf_add(&filter->line, &text[i], 1);
        }
    }
}

static void filter_write(struct filter *filter)
{
    ssize_t n = filter->sent < filter->size
                    ? write(filter->in, filter->request + filter->sent, filter->size - filter->sent)
                    : 0;
    if (n > 0) {
        filter->sent += (size_t)n;
    }
    if (filter->sent == filter->size || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        fd_close(&filter->in); /* all is said, or it listens no more: its exit code says why */
    }
}

/* Reads once from *fd into the result (is_result) or the lines. */
static void filter_read(struct filter *filter, int *fd, bool is_result)
{
    char chunk[65536];
    ssize_t n = read(*fd, chunk, sizeof chunk);
    if (n > 0 && is_result) {
        buf_add(filter->result, chunk, (size_t)n);
    } else if (n > 0) {
        filter_lines(filter, chunk, (size_t)n);
    } else if (n == 0 || errno != EINTR) {
        fd_close(fd);
    }
}

static int filter_converse(struct filter *filter, struct err *err)
{
    while (filter->in >= 0 || filter->out >= 0 || filter->err >= 0) {
        struct pollfd fds[] = {
            {filter->in, POLLOUT, 0}, {filter->out, POLLIN, 0}, {filter->err, POLLIN, 0}};
        if (poll(fds, ARRAY_LEN(fds), -1) < 0 && errno != EINTR) {
            return err_set(err, ERR_IO, "poll: %s", strerror(errno));
        }
        if (fds[0].revents) {
            filter_write(filter);
        }
        if (fds[1].revents) {
            filter_read(filter, &filter->out, true);
        }
        if (fds[2].revents) {
            filter_read(filter, &filter->err, false);
        }
    }
    if (filter->line.size > 0) { /* the last one may lack its end */
        filter_line(filter);
    }
    return 0;
}

/* The kind whose exit code is the one that the stage ended with. */
static enum err_kind kind_of_exit(int code)
{
    return code == 2 ? ERR_INPUT : code == 3 ? ERR_INFEASIBLE : code == 4 ? ERR_TIMEOUT : ERR_IO;
}

static int filter_end(struct filter *filter, int *exit_code, struct err *err)
{
    int status;
    while (waitpid(filter->pid, &status, 0) < 0) {
        if (errno != EINTR) {
            return err_set(err, ERR_IO, "waitpid: %s", strerror(errno));
        }
    }
    if (WIFSIGNALED(status)) {
        return err_set(err, ERR_INTERNAL, "%s: signal %d (%s)", filter->name, WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
    }
    struct buf *result = filter->result;
    if (result->size && result->data[result->size - 1] == '\n') {
        result->data[--result->size] = '\0';
    }
    int code = WEXITSTATUS(status);
    bool refused = code == 2 && filter->fault.size > 0; /* else it is what a check found */
    if (code == 0 || (!refused && code <= 4 && result->size > 0)) {
        *exit_code = code;
        return 0;
    }
    if (filter->fault.size == 0) {
        return err_set(err, kind_of_exit(code), "%s: exit code %d", filter->name, code);
    }
    return err_set(err, kind_of_exit(code), "%s", filter->fault.data);
}

int stage_filter_run(enum party stage, enum message_type type, const char *request, size_t size,
                     bool progress, struct buf *result, int *exit_code, struct err *err)
{
    AUTO_FREE char *path = NULL, *name = mem_printf("remap-%s", party_name(stage));
    AUTO_BUF struct buf out = BUF_INIT;
    if (stage_path(stage, NULL, &path, err) < 0) {
        return -1;
    }
    struct filter filter = {.in = -1,
                            .out = -1,
                            .err = -1,
                            .name = name,
                            .request = request,
                            .size = size,
                            .result = &out};
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    sigaction(SIGPIPE, &ignore, &before); /* it may end before it has read everything */
    int done = filter_start(&filter, path, message_type_name(type), progress, err);
    if (done == 0) {
        done = filter_converse(&filter, err);
        struct err ended = ERR_INIT;
        int code = 0;
        if (filter_end(&filter, &code, &ended) < 0 && done == 0) {
            *err = ended;
            done = -1;
        }
        if (done == 0) {
            *exit_code = code;
            buf_add(result, out.data, out.size);
        }
    }
    sigaction(SIGPIPE, &before, NULL);
    filter_wipe(&filter);
    return done;
}
