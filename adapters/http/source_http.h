/* source_http.h - the options that every source over HTTP takes, and the client they make. */
#ifndef REMAP_ADAPTERS_SOURCE_HTTP_H
#define REMAP_ADAPTERS_SOURCE_HTTP_H

#include "adapters/adapter.h"
#include "adapters/http/http.h"

/* Rows of an option_spec array. Files are read again for each inspection, so that a rotated secret
 * needs no restart. */
#define SOURCE_HTTP_OPTIONS                                                                        \
    {"url", "base URL, with a path prefix where there is one", NULL, true},                        \
        {"token_file", "file with a bearer token", NULL, false},                                   \
        {"user", "name for basic authentication", NULL, false},                                    \
        {"password_file", "file with its password", NULL, false},                                  \
        {"ca_file", "certificates (PEM) to trust, instead of the system's", NULL, false},          \
        {"cert_file", "own certificate (PEM), for mutual TLS", NULL, false},                       \
        {"key_file", "its key (PEM)", NULL, false},                                                \
        {"headers", "further request headers, \"Name: value\", one a line", NULL, false},          \
        {"headers_file", "file with further headers, one a line", NULL, false},                    \
        {"timeout", "for one answer", "10s", false},                                               \
        {"attempts", "of a request that meets no answer, a time-out, 429 or 5xx", "2", false},     \
        {"compression", "of answers: on, off, or auto: off where the URL names this machine",      \
         "auto", false},                                                                           \
        {"max_mib", "largest answer, in MiB", "256", false}

/* ERR_CONFIG names the option. The caller frees *out. */
int source_http_open(const struct source *source, struct http **out, struct err *err);

/* The number of an option that is a whole number from `min` to `max`. */
int source_number(const struct source *source, const char *name, const char *fallback, int64_t min,
                  int64_t max, int64_t *out, struct err *err);
/* The same for a duration above 0. */
int source_duration(const struct source *source, const char *name, const char *fallback,
                    int64_t *out_ms, struct err *err);
/* The same for a wait that can be left out: 0s or more. */
int source_wait(const struct source *source, const char *name, const char *fallback,
                int64_t *out_ms, struct err *err);

#endif
