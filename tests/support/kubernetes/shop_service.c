/* shop_service.c - a microservice for real nodes: answers a request after it has called the
 * services it needs, tells a collector of spans (OTLP/JSON) what it did, and is a client that
 * counts failures.
 *
 *   shop-service serve                 SERVICE its name, CALLS "carts*2,user", PORT (8080); WORK_US
 * of CPU for each request; COLLECTOR host:port, TOKEN its bearer token; NAMESPACE and POD where it
 * runs shop-service load URL PER_SECOND   calls it for ever; a line a second: "requests N failed N"
 *
 * A service that is called is found by the variables that Kubernetes gives to pods
 * (CARTS_SERVICE_HOST, CARTS_SERVICE_PORT). SIGTERM: not ready any more, and serves for some
 * seconds, as long as it takes until nobody is sent here. */
#include <curl/curl.h>
#include <microhttpd.h>
#include <ctype.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>
#include "model/base/buf.h"
#include "model/base/clock.h"
#include "model/base/mem.h"

#define MAX_CALLS 16
#define CALL_MS 20000 /* of a call, with all that it calls: 20 ms on a quiet machine */
#define LINGER_S 8     /* kube-proxy knows of an endpoint's end within a second or two */
#define FLUSH_MS 1000
#define MAX_SPANS_BYTES (2 << 20) /* half of what the receiver takes at once */

struct call {
    char name[64];
    char url[128];
    int times;
};

struct service {
    const char *name, *space, *pod, *collector, *token;
    struct call calls[MAX_CALLS];
    size_t n_calls;
    long work_us;
    atomic_bool ending;
    pthread_mutex_t lock;      /* of the rest */
    struct buf client, server; /* JSON objects of spans, with commas */
};

struct trace {
    char id[33], span[17], parent[17];
};

static const char *setting(const char *name, const char *fallback)
{
    const char *value = getenv(name);
    return value && *value ? value : fallback;
}

static void random_id(char *out, size_t bytes)
{
    unsigned char raw[16];
    if (getrandom(raw, bytes, 0) != (ssize_t)bytes)
        abort();
    for (size_t i = 0; i < bytes; i++)
        snprintf(out + 2 * i, 3, "%02x", raw[i]);
}

/* The address of a service from the variables that its Service makes. */
static void find_service(struct call *call)
{
    char upper[64], host[96], port[96];
    size_t i = 0;
    for (; call->name[i]; i++)
        upper[i] = call->name[i] == '-' ? '_' : (char)toupper((unsigned char)call->name[i]);
    upper[i] = '\0';
    snprintf(host, sizeof host, "%s_SERVICE_HOST", upper);
    snprintf(port, sizeof port, "%s_SERVICE_PORT", upper);
    snprintf(call->url, sizeof call->url, "http://%s:%s/", setting(host, call->name),
             setting(port, "8080"));
}

static void read_calls(struct service *service)
{
    AUTO_FREE char *text = mem_strdup(setting("CALLS", ""));
    char *rest = text;
    for (char *one; (one = strsep(&rest, ","));) {
        if (!*one || service->n_calls == MAX_CALLS)
            continue;
        struct call *call = &service->calls[service->n_calls++];
        const char *name = strsep(&one, "*");
        snprintf(call->name, sizeof call->name, "%s", name);
        call->times = one ? atoi(one) : 1;
        find_service(call);
    }
}

/* Until the collector has it; what is more than it would take is dropped. */
static void note_span(struct service *service, struct buf *spans, const struct trace *trace,
                      int kind, int64_t start_ms)
{
    if (!service->collector)
        return;
    pthread_mutex_lock(&service->lock);
    if (spans->size < MAX_SPANS_BYTES) {
        buf_printf(spans, "%s{\"traceId\":\"%s\",\"spanId\":\"%s\",", spans->size ? "," : "",
                   trace->id, trace->span);
        if (trace->parent[0])
            buf_printf(spans, "\"parentSpanId\":\"%s\",", trace->parent);
        buf_printf(spans,
                   "\"name\":\"GET\",\"kind\":%d,\"startTimeUnixNano\":\"%lld000000\","
                   "\"endTimeUnixNano\":\"%lld000000\"}",
                   kind, (long long)start_ms, (long long)clock_wall_ms());
    }
    pthread_mutex_unlock(&service->lock);
}

static size_t swallow(char *text, size_t size, size_t count, void *unused)
{
    (void)text;
    (void)unused;
    return size * count;
}

/* True when it was answered 200. */
static bool get(const char *url, const char *header)
{
    long status = 0;
    CURL *curl = curl_easy_init();
    struct curl_slist *headers = header ? curl_slist_append(NULL, header) : NULL;
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)CALL_MS);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, swallow);
    CURLcode rc = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    curl_slist_free_all(headers);
    curl_easy_cleanup(curl);
    return rc == CURLE_OK && status == 200;
}

static bool call_others(struct service *service, const struct trace *trace)
{
    for (size_t i = 0; i < service->n_calls; i++) {
        for (int n = 0; n < service->calls[i].times; n++) {
            char header[128];
            struct trace own = {{0}, {0}, {0}};
            int64_t start = clock_wall_ms();
            memcpy(own.id, trace->id, sizeof own.id);
            memcpy(own.parent, trace->span, sizeof own.parent);
            random_id(own.span, 8);
            snprintf(header, sizeof header, "traceparent: 00-%s-%s-01", own.id, own.span);
            if (!get(service->calls[i].url, header))
                return false;
            note_span(service, &service->client, &own, 3, start);
        }
    }
    return true;
}

static void work(long us)
{
    struct timespec begin, now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    do {
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while ((now.tv_sec - begin.tv_sec) * 1000000 + (now.tv_nsec - begin.tv_nsec) / 1000 < us);
}

/* A request with the header of a caller belongs to its trace, any other begins one. */
static void begin_trace(struct MHD_Connection *connection, struct trace *trace)
{
    const char *from = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "traceparent");
    random_id(trace->span, 8);
    if (!from || sscanf(from, "00-%32[0-9a-f]-%16[0-9a-f]-", trace->id, trace->parent) != 2) {
        random_id(trace->id, 16);
        trace->parent[0] = '\0';
    }
}

static enum MHD_Result answer(void *of, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *body,
                              size_t *body_size, void **request)
{
    (void)method;
    (void)version;
    (void)body;
    (void)body_size;
    (void)request;
    struct service *service = of;
    bool ok = !atomic_load(&service->ending);
    if (strcmp(url, "/ready") != 0) {
        struct trace trace = {{0}, {0}, {0}};
        int64_t start = clock_wall_ms();
        begin_trace(connection, &trace);
        work(service->work_us);
        ok = call_others(service, &trace);
        note_span(service, &service->server, &trace, 2, start);
    }
    static char good[] = "ok\n", bad[] = "failed\n";
    char *text = ok ? good : bad;
    struct MHD_Response *response =
        MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_PERSISTENT);
    /* A connection for each request: Services choose a pod for each connection. */
    MHD_add_response_header(response, "Connection", "close");
    enum MHD_Result result = MHD_queue_response(connection, ok ? 200 : 503, response);
    MHD_destroy_response(response);
    return result;
}

static void flush(struct service *service)
{
    AUTO_BUF struct buf body = BUF_INIT;
    pthread_mutex_lock(&service->lock);
    bool any = service->client.size || service->server.size;
    if (any)
        buf_printf(&body,
                   "{\"resourceSpans\":[{\"resource\":{\"attributes\":["
                   "{\"key\":\"service.name\",\"value\":{\"stringValue\":\"%s\"}},"
                   "{\"key\":\"k8s.namespace.name\",\"value\":{\"stringValue\":\"%s\"}},"
                   "{\"key\":\"k8s.pod.name\",\"value\":{\"stringValue\":\"%s\"}}]},"
                   "\"scopeSpans\":[{\"spans\":[%s%s%s]}]}]}",
                   service->name, service->space, service->pod,
                   service->client.size ? service->client.data : "",
                   service->client.size && service->server.size ? "," : "",
                   service->server.size ? service->server.data : "");
    buf_clear(&service->client);
    buf_clear(&service->server);
    pthread_mutex_unlock(&service->lock);
    if (!any)
        return;
    AUTO_FREE char *url = mem_printf("http://%s/v1/traces", service->collector);
    AUTO_FREE char *token = mem_printf("Authorization: Bearer %s", service->token);
    struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
    headers = curl_slist_append(headers, token);
    CURL *curl = curl_easy_init();
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body.data);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, (long)body.size);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)CALL_MS);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, swallow);
    curl_easy_perform(curl); /* lost where nobody listens: a service does not wait for that */
    curl_slist_free_all(headers);
    curl_easy_cleanup(curl);
}

static int serve(void)
{
    struct service service = {.name = setting("SERVICE", "service"),
                              .space = setting("NAMESPACE", "default"),
                              .pod = setting("POD", ""),
                              .collector = setting("COLLECTOR", NULL),
                              .token = setting("TOKEN", ""),
                              .work_us = atol(setting("WORK_US", "0")),
                              .lock = PTHREAD_MUTEX_INITIALIZER};
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    pthread_sigmask(SIG_BLOCK, &ends, NULL); /* the threads of the server inherit it */
    read_calls(&service);
    struct MHD_Daemon *server = MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION,
        (uint16_t)atoi(setting("PORT", "8080")), NULL, NULL, answer, &service, MHD_OPTION_END);
    if (!server) {
        perror("listen");
        return 1;
    }
    const struct timespec tick = {.tv_nsec = FLUSH_MS % 1000 * 1000000, .tv_sec = FLUSH_MS / 1000};
    while (sigtimedwait(&ends, NULL, &tick) < 0)
        flush(&service);
    atomic_store(&service.ending, true);
    for (int i = 0; i < LINGER_S; i++) {
        sleep(1);
        flush(&service);
    }
    MHD_stop_daemon(server);
    flush(&service);
    buf_wipe(&service.client);
    buf_wipe(&service.server);
    return 0;
}

static _Noreturn void load(const char *url, int per_second)
{
    const struct timespec pause = {.tv_nsec = 1000000000L / per_second};
    long long requests = 0, failed = 0;
    for (;;) {
        for (int i = 0; i < per_second; i++) {
            requests++;
            if (!get(url, NULL))
                failed++;
            nanosleep(&pause, NULL);
        }
        printf("requests %lld failed %lld\n", requests, failed);
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
    if (argc == 2 && !strcmp(argv[1], "serve"))
        return serve();
    if (argc == 4 && !strcmp(argv[1], "load") && atoi(argv[3]) > 0)
        load(argv[2], atoi(argv[3]));
    fprintf(stderr, "usage: shop-service serve | load URL PER_SECOND\n");
    return 2;
}
