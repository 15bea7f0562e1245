/* server.c - starting and stopping real servers (server.h). */
#include "tests/support/server.h"

#include "adapters/http/http.h"
#include "model/base/clock.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define START_MS 300000 /* a guard: Java on a loaded machine; it takes 20 s on a quiet one */
#define STOP_MS 10000

/* Ports that the kernel gives to nobody who does not ask for them (ip_local_port_range). */
#define FIRST_PORT 20000
#define N_PORTS 10000

static bool is_free(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on); /* as servers do */
    bool free = bind(fd, (struct sockaddr *)&address, sizeof address) == 0 && listen(fd, 1) == 0;
    close(fd);
    return free;
}

/* An abstract socket of that name is ours until we end: no other test gets this port meanwhile. */
static bool claim(int port)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "remap-test-port-%d", port);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(fd, (struct sockaddr *)&name, sizeof name) == 0)
        return true;
    close(fd);
    return false;
}

int server_free_port(void)
{
    int first = (int)((clock_mono_ms() * 7 + getpid() * INT64_C(131)) % N_PORTS);
    for (int i = 0; i < N_PORTS; i++) {
        int port = FIRST_PORT + (first + i) % N_PORTS;
        if (claim(port) && is_free(port))
            return port;
    }
    fputs("no free port\n", stderr);
    abort();
}

char *server_program(const char *name)
{
    AUTO_FREE char *folders = mem_strdup(getenv("PATH") ? getenv("PATH") : "/usr/bin:/bin");
    char *rest = folders;
    for (char *folder; (folder = strsep(&rest, ":"));) {
        char *path = mem_printf("%s/%s", folder, name);
        if (!access(path, X_OK))
            return path;
        free(path);
    }
    return NULL;
}

char *server_cached(const char *name)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char *path = cache && *cache ? mem_printf("%s/remap/%s", cache, name)
                                 : mem_printf("%s/.cache/remap/%s", home ? home : "", name);
    if (!access(path, R_OK))
        return path;
    free(path);
    return NULL;
}

static pid_t spawn(const char *log, const char *const argv[])
{
    pid_t pid = fork();
    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int in = open("/dev/null", O_RDONLY), out = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    execv(argv[0], (char *const *)argv);
    _exit(127);
}

void server_start(struct server *server, const char *name, const char *folder, int port,
                  const char *const argv[])
{
    server->port = port;
    server->log = mem_printf("%s/%s.log", folder, name);
    snprintf(server->url, sizeof server->url, "http://127.0.0.1:%d", port);
    server->pid = spawn(server->log, argv);
}

static void print_log(const struct server *server)
{
    char line[400];
    FILE *file = fopen(server->log, "re");
    while (file && fgets(line, sizeof line, file))
        fprintf(stderr, "| %s", line);
    if (file)
        fclose(file);
}

bool server_wait(struct server *server, const char *path)
{
    int64_t end = clock_mono_ms() + START_MS;
    while (clock_mono_ms() < end) {
        long status = server_get(server, path, NULL);
        if (status >= 200 && status < 300)
            return true;
        int state;
        if (waitpid(server->pid, &state, WNOHANG) == server->pid) {
            server->pid = 0;
            break;
        }
        clock_sleep_ms(50);
    }
    print_log(server);
    return false;
}

void server_stop(struct server *server)
{
    int state;
    int64_t end = clock_mono_ms() + STOP_MS;
    if (server->pid > 0) {
        kill(server->pid, SIGTERM);
        while (waitpid(server->pid, &state, WNOHANG) == 0) {
            if (clock_mono_ms() > end) {
                kill(server->pid, SIGKILL);
                waitpid(server->pid, &state, 0);
                break;
            }
            clock_sleep_ms(10);
        }
    }
    server->pid = 0;
    free(steal(server->log));
}

bool server_run(const char *const argv[])
{
    int state;
    pid_t pid = spawn("/dev/null", argv);
    return waitpid(pid, &state, 0) == pid && WIFEXITED(state) && WEXITSTATUS(state) == 0;
}

static struct http *client(const struct server *server)
{
    struct err err = ERR_INIT;
    const struct http_options options = {
        .base_url = server->url, .attempts = 1, .total_timeout_ms = 60000};
    struct http *http = http_new(&options, &err);
    if (!http)
        abort();
    return http;
}

long server_post(const struct server *server, const char *path, const char *content_type,
                 const char *body, size_t size)
{
    struct err err = ERR_INIT;
    AUTO(http) struct http *http = client(server);
    AUTO_HTTP_ANSWER struct http_answer answer = HTTP_ANSWER_INIT;
    if (http_send(http, "POST", path, content_type, body, size, &answer, &err))
        fprintf(stderr, "%s\n", err.text);
    return answer.status;
}

long server_get(const struct server *server, const char *path, struct buf *out)
{
    struct err err = ERR_INIT;
    AUTO(http) struct http *http = client(server);
    AUTO_HTTP_ANSWER struct http_answer answer = HTTP_ANSWER_INIT;
    http_get(http, path, &answer, &err);
    if (out)
        buf_add(out, answer.body.data ? answer.body.data : "", answer.body.size);
    return answer.status;
}

void server_write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    if (!file || fputs(text, file) < 0 || fclose(file)) {
        perror(path);
        abort();
    }
}

const struct note *note_find(const struct inspection *in, const char *kind, const char *part)
{
    for (size_t i = 0; i < in->n_notes; i++)
        if (!strcmp(in->notes[i].kind, kind) && strstr(in->notes[i].text, part))
            return &in->notes[i];
    return NULL;
}
