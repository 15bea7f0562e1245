/* transfer.h - one attempt of one request on one curl handle, whoever drives it: http.c one after the
 * other, gather.c several at once. For the files of this folder. */
#ifndef REMAP_ADAPTERS_HTTP_TRANSFER_H
#define REMAP_ADAPTERS_HTTP_TRANSFER_H

#include "adapters/http/connection.h"

#define HTTP_IDLE_MS 50 /* a webhook is answered within 100 ms (contract.md 5) */

typedef int http_sink_f(void *ctx, const char *data, size_t size, struct err *err);

struct http_request { /* all borrowed */
    const char *method, *path, *content_type;
    const void *body;
    size_t size;
    http_sink_f *sink; /* NULL: to the answer's body */
    void *sink_ctx;
    bool asks; /* changes nothing: may be repeated */
};

struct http_transfer {
    struct http_answer *answer;
    size_t max_bytes, seen, sent;
    bool too_large, sink_failed;
    const struct http_request *request;
    struct err *err;
    CURL *curl;
    struct curl_slist *headers;
    char details[CURL_ERROR_SIZE]; /* libcurl's own words */
};

/* Clears the answer and sets up the handle; the rest is libcurl's, until http_transfer_end(). -1: a secret
 * cannot be read, and there is nothing to end. `answer`, `request` and `err` stay borrowed. */
int http_transfer_begin(struct http_transfer *transfer, struct http *http, CURL *curl,
                        const struct http_request *request, struct http_answer *answer,
                        struct err *err);
/* 0 for a status of 200 to 299. */
int http_transfer_end(struct http_transfer *transfer, CURLcode code);

/* Whether it may be tried again after what it ended with, and the pause before that. */
bool http_transfer_again(struct http *http, const struct http_transfer *transfer,
                         int64_t *pause_ms);

/* Prefixes the error with method and URL. */
int http_explain(const struct http *http, const struct http_request *request, struct err *err);

#endif
