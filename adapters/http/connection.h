/* connection.h - the inside of a client, for the files of this folder. */
#ifndef REMAP_ADAPTERS_HTTP_CONNECTION_H
#define REMAP_ADAPTERS_HTTP_CONNECTION_H

#include <curl/curl.h>
#include "adapters/http/http.h"

struct http {
    CURL *curl;
    CURLM *multi; /* NULL: none has been needed */
    char *base;   /* without a slash at the end */
    char *shown;  /* the same without user and password */
    char *unix_socket, *token_file, *user, *password, *password_file, *ca_file, *cert_file,
        *key_file, *ca_pem, *cert_pem, *key_pem, *proxy, *bearer;
    struct curl_slist *connect_to; /* NULL: where the URL says */
    bool no_verify, no_compression, keep_writes;
    struct curl_slist *headers;
    int64_t connect_timeout_ms, total_timeout_ms, backoff_ms, backoff_max_ms;
    size_t max_bytes;
    bool any_name;
    int attempts;
    uint64_t random; /* state of the jitter: timing only, no result depends on it */
};

/* Sets everything that belongs to the server and its credentials, on a handle that is new or has ended;
 * the caller adds its callbacks and the time-out, and frees *headers after the transfer (it may append
 * to them and set them again). ERR_NOT_FOUND, ERR_IO, ERR_CONFIG: a secret cannot be read. */
int http_prepare(struct http *http, CURL *c, const char *path, struct curl_slist **headers,
                 struct err *err);

#endif
