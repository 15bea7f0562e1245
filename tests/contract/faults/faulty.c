/* faulty.c - see faulty.h. */
#include "tests/contract/faults/faulty.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "model/base/mem.h"
#include "tests/support/server.h"

#define JSON FAULTY_JSON
#define EMPTY "Content-Length: 0\r\nConnection: close\r\n\r\n"
#define TEN "          "
#define NEST "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["
#define DEEP NEST NEST NEST NEST NEST NEST NEST NEST NEST NEST NEST NEST NEST NEST NEST NEST
#define KILO TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN

const struct fault faults[] = {
    {"slow", NULL, NULL, ERR_UNREACHABLE, ERR_NONE, "imeout"},
    {"half-closed", "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", NULL, ERR_UNREACHABLE,
     ERR_NONE, ""},
    {"no HTTP", "220 mail.example ESMTP\r\n", NULL, ERR_UNREACHABLE, ERR_NONE, ""},
    {"redirecting", "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n" EMPTY, NULL,
     ERR_REFUSED, ERR_NONE, "status 302"},
    {"garbage", JSON "<html>It works!</html>", NULL, ERR_INPUT, ERR_NONE, ""},
    {"empty", "HTTP/1.1 200 OK\r\n" EMPTY, NULL, ERR_INPUT, ERR_NONE, ""},
    {"cut JSON", JSON "{\"status\":\"success\",\"data\":", NULL, ERR_INPUT, ERR_NONE, ""},
    {"other JSON", JSON "{\"hello\":[\"world\"]}", NULL, ERR_INPUT, ERR_REFUSED, ""},
    {"a number", JSON "17", NULL, ERR_INPUT, ERR_NONE, ""},
    {"deep", JSON, DEEP, ERR_INPUT, ERR_TOO_LARGE, ""},
    {"ten gigabytes", JSON, KILO, ERR_TOO_LARGE, ERR_NONE, "above"},
    {"invalid UTF-8", JSON "{\"status\":\"\xff\xfe\",\"data\":null,\"results\":\"\xc3(\"}", NULL,
     ERR_INPUT, ERR_NONE, ""},
    {"unauthorized", "HTTP/1.1 401 Unauthorized\r\n" EMPTY, NULL, ERR_REFUSED, ERR_NONE,
     "status 401"},
    {"forbidden", "HTTP/1.1 403 Forbidden\r\n" EMPTY, NULL, ERR_REFUSED, ERR_NONE, "status 403"},
    {"not there", "HTTP/1.1 404 Not Found\r\n" EMPTY, NULL, ERR_NOT_FOUND, ERR_NONE, "status 404"},
    {"busy", "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7200\r\n" EMPTY, NULL, ERR_UNREACHABLE,
     ERR_NONE, "status 429"},
    {"broken", "HTTP/1.1 503 Service Unavailable\r\n" EMPTY, NULL, ERR_UNREACHABLE, ERR_NONE,
     "status 503"},
};
const size_t n_faults = ARRAY_LEN(faults);

static struct faulty {
    int fd;
    pthread_t thread;
    _Atomic(const struct fault *) fault;
    _Atomic(const char *) reads;
    atomic_bool stop;
    char url[64];
} fx;

bool faulty_send(int fd, const char *text, size_t size)
{
    while (size) {
        ssize_t sent = send(fd, text, size, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        text += sent;
        size -= (size_t)sent;
    }
    return true;
}

int faulty_listen(char url[64])
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) || listen(fd, 64) ||
        getsockname(fd, (struct sockaddr *)&address, &size))
        return -1;
    snprintf(url, 64, "http://127.0.0.1:%d", ntohs(address.sin_port));
    return fd;
}

static bool send_all(int fd, const char *text)
{
    return faulty_send(fd, text, strlen(text));
}

/* The head and, where it is short enough to come along, the body. True: it is a GET. */
static bool read_request(int fd)
{
    char text[16384];
    size_t size = 0;
    while (size < sizeof text - 1) {
        ssize_t got = recv(fd, text + size, sizeof text - 1 - size, 0);
        if (got <= 0)
            return false;
        size += (size_t)got;
        text[size] = '\0';
        const char *end = strstr(text, "\r\n\r\n");
        const char *length = strstr(text, "Content-Length: ");
        if (end && (!length || strlen(end + 4) >= (size_t)strtol(length + 16, NULL, 10)))
            return strncmp(text, "GET ", 4) == 0;
    }
    return false;
}

static void *serve(void *arg)
{
    char rest[64];
    (void)arg;
    for (;;) {
        int fd = accept(fx.fd, NULL, NULL);
        if (fx.stop || fd < 0) {
            if (fd >= 0)
                close(fd);
            return NULL;
        }
        const struct fault *fault = fx.fault;
        const char *reads = fx.reads;
        if (read_request(fd) && reads)
            (void)(send_all(fd, JSON) && send_all(fd, reads));
        else if (!fault->answer)
            while (recv(fd, rest, sizeof rest, 0) > 0) {
            }
        else if (send_all(fd, fault->answer) && fault->again)
            while (send_all(fd, fault->again)) {
            }
        close(fd);
    }
}

int faulty_start(void **state)
{
    (void)state;
    fx.fd = faulty_listen(fx.url);
    fx.fault = &faults[0];
    if (fx.fd < 0)
        return -1;
    return pthread_create(&fx.thread, NULL, serve, NULL);
}

int faulty_stop(void **state)
{
    (void)state;
    fx.stop = true;
    shutdown(fx.fd, SHUT_RDWR);
    pthread_join(fx.thread, NULL);
    close(fx.fd);
    return 0;
}

const char *faulty_url(void)
{
    return fx.url;
}

const char *faulty_timeout(void)
{
    const struct fault *fault = fx.fault;
    return fault->answer ? "60s" : "300ms";
}

void faulty_set(const struct fault *fault, const char *reads)
{
    fx.fault = fault;
    fx.reads = reads;
}

char *faulty_kubeconfig(const char *url)
{
    char *path = mem_printf("/tmp/remap-faults-%ld.kubeconfig", (long)getpid());
    AUTO_FREE char *text = mem_printf("apiVersion: v1\nkind: Config\ncurrent-context: x\n"
                                      "clusters:\n- name: x\n  cluster: {server: \"%s\"}\n"
                                      "contexts:\n- name: x\n  context: {cluster: x, user: x}\n"
                                      "users:\n- name: x\n  user: {token: not-a-secret}\n",
                                      url);
    server_write_file(path, text);
    return path;
}

int faulty_descriptors(void)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (dir && readdir(dir))
        n++;
    if (dir)
        closedir(dir);
    return n;
}
