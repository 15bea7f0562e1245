/* server.c - sockets and libmicrohttpd around api.c: collects bodies, holds back slow answers. */
#include "adapters/simulated/server/server.h"

#include "adapters/simulated/server/api.h"
#include "model/base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define MAX_CONNECTIONS 128 /* a monitor, an executor, and people with curl */
#define IDLE_SECONDS 120    /* a kept connection of a daemon that inspects every minute */

struct exchange { /* one request being read or answered */
    struct server *server;
    struct MHD_Connection *connection;
    struct buf body;
    bool too_large, answered;
    struct api_answer answer;
    int64_t due_ms; /* monotonic; of a suspended answer */
    struct exchange *next;
};

struct server {
    struct sim *sim;
    char *path;
    struct MHD_Daemon *daemon;
    struct exchange *waiting; /* suspended, any order */
};

static const char *query_value(void *ctx, const char *name)
{
    return MHD_lookup_connection_value(ctx, MHD_GET_ARGUMENT_KIND, name);
}

static enum MHD_Result send_answer(struct exchange *x)
{
    if (x->answer.drop)
        return MHD_NO; /* closes the connection */
    struct buf *body = &x->answer.body;
    struct MHD_Response *response = MHD_create_response_from_buffer(
        body->size, body->data ? body->data : (void *)"", MHD_RESPMEM_MUST_COPY);
    if (!response)
        return MHD_NO;
    MHD_add_response_header(response, "Content-Type", x->answer.content_type);
    enum MHD_Result queued =
        MHD_queue_response(x->connection, (unsigned)x->answer.status, response);
    MHD_destroy_response(response);
    return queued;
}

static void handle(struct exchange *x, const char *url, const char *method)
{
    struct api_request req = {.method = method,
                              .path = url,
                              .query = query_value,
                              .query_ctx = x->connection,
                              .body = x->body.data,
                              .size = x->too_large ? API_MAX_BODY + 1 : x->body.size,
                              .wall_ms = clock_wall_ms()};
    api_handle(x->server->sim, &req, &x->answer);
    x->answered = true;
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *size, void **per_request)
{
    (void)version;
    struct exchange *x = *per_request;
    if (!x) {
        x = mem_alloc(sizeof *x);
        x->server = ctx;
        x->connection = connection;
        *per_request = x;
        return MHD_YES;
    }
    if (*size) {
        x->too_large |= *size > API_MAX_BODY - x->body.size;
        if (!x->too_large)
            buf_add(&x->body, data, *size);
        *size = 0;
        return MHD_YES;
    }
    if (!x->answered) {
        handle(x, url, method);
        if (x->answer.delay_ms > 0) {
            x->due_ms = clock_mono_ms() + x->answer.delay_ms;
            x->next = x->server->waiting;
            x->server->waiting = x;
            MHD_suspend_connection(connection);
            return MHD_YES;
        }
    }
    return send_answer(x);
}

static void on_done(void *ctx, struct MHD_Connection *connection, void **per_request,
                    enum MHD_RequestTerminationCode code)
{
    (void)ctx, (void)connection, (void)code;
    struct exchange *x = *per_request;
    if (!x)
        return;
    for (struct exchange **at = &x->server->waiting; *at; at = &(*at)->next) {
        if (*at == x) {
            *at = x->next;
            break;
        }
    }
    buf_wipe(&x->body);
    buf_wipe(&x->answer.body);
    free(x);
    *per_request = NULL;
}

static int set_address(const char *path, struct sockaddr_un *address, struct err *err)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (!*path || strlen(path) >= sizeof address->sun_path)
        return err_set(err, ERR_USAGE, "socket path must have 1 to %zu bytes: %.120s",
                       sizeof address->sun_path - 1, path);
    memcpy(address->sun_path, path, strlen(path));
    return 0;
}

/* A socket file that nobody listens on is left from a killed process. */
static int remove_stale(const char *path, const struct sockaddr_un *address, struct err *err)
{
    struct stat st;
    if (lstat(path, &st))
        return 0;
    if (!S_ISSOCK(st.st_mode))
        return err_set(err, ERR_CONFLICT, "%s: exists and is not a socket", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return err_set(err, ERR_IO, "socket: %s", strerror(errno));
    bool alive = !connect(fd, (const struct sockaddr *)address, sizeof *address);
    close(fd);
    if (alive)
        return err_set(err, ERR_CONFLICT, "%s: another process listens there", path);
    if (unlink(path))
        return err_set(err, ERR_IO, "%s: %s", path, strerror(errno));
    return 0;
}

static int listen_at(const char *path, struct err *err)
{
    struct sockaddr_un address;
    if (set_address(path, &address, err) || remove_stale(path, &address, err))
        return -1;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    mode_t mask = umask(0177);
    int result = fd < 0 ? -1 : bind(fd, (const struct sockaddr *)&address, sizeof address);
    int why = errno;
    umask(mask);
    if (!result && !listen(fd, MAX_CONNECTIONS))
        return fd;
    if (!result)
        why = errno;
    if (fd >= 0)
        close(fd);
    return err_set(err, ERR_IO, "%s: %s", path, strerror(why));
}

struct server *server_new(const char *path, struct sim *sim, struct err *err)
{
    int fd = listen_at(path, err);
    if (fd < 0)
        return NULL;
    AUTO(server) struct server *server = mem_alloc(sizeof *server);
    server->sim = sim;
    server->path = mem_strdup(path);
    server->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request, server,
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_NOTIFY_COMPLETED, on_done, NULL,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)MAX_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)IDLE_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)32768, MHD_OPTION_END);
    if (!server->daemon) {
        close(fd);
        err_set(err, ERR_INTERNAL, "libmicrohttpd does not start");
        return NULL;
    }
    return steal(server);
}

static void resume(struct server *server, int64_t now_ms)
{
    for (struct exchange **at = &server->waiting; *at;) {
        struct exchange *x = *at;
        if (x->due_ms > now_ms) {
            at = &x->next;
            continue;
        }
        *at = x->next;
        MHD_resume_connection(x->connection);
    }
}

void server_free(struct server *server)
{
    if (!server)
        return;
    if (server->daemon) {
        resume(server, INT64_MAX); /* libmicrohttpd wants none suspended when it stops */
        MHD_stop_daemon(server->daemon);
        unlink(server->path);
    }
    free(server->path);
    free(server);
}

int server_fd(const struct server *server)
{
    return MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
}

void server_run(struct server *server)
{
    resume(server, clock_mono_ms());
    MHD_run(server->daemon);
}

int64_t server_wait_ms(const struct server *server)
{
    int64_t wait = -1;
    MHD_UNSIGNED_LONG_LONG ms;
    if (MHD_get_timeout(server->daemon, &ms) == MHD_YES)
        wait = (int64_t)ms;
    for (const struct exchange *x = server->waiting; x; x = x->next) {
        int64_t left = x->due_ms - clock_mono_ms();
        if (left < 0)
            left = 0;
        if (wait < 0 || left < wait)
            wait = left;
    }
    return wait;
}
