/* http_api.h - /api/v1/NAME: the rows of the views as JSON. Knows nothing of connections. */
#ifndef REMAP_MANAGER_HTTP_API_H
#define REMAP_MANAGER_HTTP_API_H

#include "model/base/buf.h"
#include "model/base/err.h"
#include "model/store/store.h"

/* Parameters as they came, NULL when absent. */
struct http_query {
    const char *cycle; /* an id: only its rows */
    const char *app;   /* only this application's */
    const char *limit; /* rows at most; 1000 when absent, HTTP_API_MAX_ROWS at most */
};

/* 10^4 edges are about 2 MB of JSON and some 20 ms: what one request may hold the loop up. */
#define HTTP_API_MAX_ROWS 10000

/* Appends a JSON array; of the resources' paths when `name` is "". ERR_NOT_FOUND: no such resource; ERR_INPUT: a parameter; else the store's. */
int http_api_answer(struct store *store, const char *name, const struct http_query *query,
                    struct buf *out, struct err *err);

/* The resources, NULL-terminated, for the index. */
extern const char *const http_api_names[];

#endif
