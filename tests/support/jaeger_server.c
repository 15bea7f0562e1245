/* jaeger_server.c - see jaeger_server.h. */
#include "tests/support/jaeger_server.h"

#include <stdio.h>
#include <stdlib.h>

#include "model/base/mem.h"

bool jaeger_server_start(struct jaeger_server *jaeger, const char *folder, const char *base_path)
{
    static const char *const listeners[] = {"query.http-server.host-port",
                                            "collector.zipkin.host-port",
                                            "collector.otlp.http.host-port",
                                            "query.grpc-server.host-port",
                                            "collector.grpc-server.host-port",
                                            "collector.http-server.host-port",
                                            "collector.otlp.grpc.host-port",
                                            "admin.http.host-port",
                                            "http-server.host-port",
                                            "processor.jaeger-binary.server-host-port",
                                            "processor.jaeger-compact.server-host-port",
                                            "processor.zipkin-compact.server-host-port"};
    AUTO_FREE char *program = server_cached(JAEGER_PROGRAM);
    AUTO_FREE char *base = mem_printf("--query.base-path=%s", base_path);
    /* One worker stores in the order of the posts: what is there of the last tells of all. */
    const char *argv[ARRAY_LEN(listeners) + 5] = {program, base, "--log-level=error",
                                                  "--collector.num-workers=1"};
    char *flags[ARRAY_LEN(listeners)];
    int ports[ARRAY_LEN(listeners)];
    for (size_t i = 0; i < ARRAY_LEN(listeners); i++) {
        ports[i] = server_free_port();
        flags[i] = mem_printf("--%s=127.0.0.1:%d", listeners[i], ports[i]);
        argv[i + 4] = flags[i];
    }
    server_start(&jaeger->query, "jaeger", folder, ports[0], argv);
    snprintf(jaeger->zipkin.url, sizeof jaeger->zipkin.url, "http://127.0.0.1:%d", ports[1]);
    snprintf(jaeger->otlp.url, sizeof jaeger->otlp.url, "http://127.0.0.1:%d", ports[2]);
    snprintf(jaeger->url, sizeof jaeger->url, "%s%s", jaeger->query.url, base_path);
    for (size_t i = 0; i < ARRAY_LEN(flags); i++)
        free(flags[i]);
    AUTO_FREE char *services = mem_printf("%s/api/services", base_path);
    return server_wait(&jaeger->query, services);
}
