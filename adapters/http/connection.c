/* connection.c - where a client's requests go and what they bear: URL, TLS, credentials (http.h). */
#include "adapters/http/connection.h"

#include <stdlib.h>
#include <string.h>

#include "model/base/clock.h"
#include "model/base/file.h"

#define TOKEN_MAX_BYTES 65536 /* bound tokens are 1 to 2 KiB; certificates in them stay below 64 */

/* The URL as people may see it: no user, no password, no query. */
static char *url_shown(const char *url)
{
    const char *scheme_end = strstr(url, "://");
    const char *host = scheme_end ? scheme_end + 3 : url;
    size_t authority = strcspn(host, "/?#");
    const char *at = NULL;
    for (size_t i = 0; i < authority; i++)
        if (host[i] == '@')
            at = host + i;
    const char *rest = at ? at + 1 : host;
    return mem_printf("%.*s%.*s", (int)(host - url), url, (int)strcspn(rest, "?#"), rest);
}

static int options_check(const struct http_options *o, const char *base, struct err *err)
{
    if (strncmp(base, "http://", 7) != 0 && strncmp(base, "https://", 8) != 0)
        return err_set(err, ERR_CONFIG, "URL must begin with http:// or https://");
    if (strpbrk(base, "?#\r\n "))
        return err_set(err, ERR_CONFIG, "base URL has a query, a fragment or a space");
    for (size_t i = 0; o->headers && o->headers[i]; i++)
        if (!strchr(o->headers[i], ':') || strpbrk(o->headers[i], "\r\n"))
            return err_set(err, ERR_CONFIG, "header %zu is not \"Name: value\" in one line", i + 1);
    return 0;
}

/* The URL then bears the name that the certificate must have, and the connection goes where the URL
 * went before. */
static void use_server_name(struct http *http, const char *name)
{
    const char *host = strstr(http->base, "://") + 3;
    const char *at = memchr(host, '@', strcspn(host, "/"));
    host = at ? at + 1 : host;
    size_t host_size = *host == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":/");
    const char *rest = host + (host_size < strlen(host) ? host_size : strlen(host));
    int port_size = *rest == ':' ? (int)strcspn(rest + 1, "/") : 0;
    AUTO_FREE char *to = mem_printf("::%.*s:%.*s", (int)(rest - host), host, port_size, rest + 1);
    http->connect_to = curl_slist_append(NULL, to);
    char *base = mem_printf("%.*s%s%s", (int)(host - http->base), http->base, name, rest);
    free(http->base);
    http->base = base;
}

static int64_t or_default(int64_t value, int64_t fallback)
{
    return value > 0 ? value : fallback;
}

struct http *http_new(const struct http_options *o, struct err *err)
{
    const char *base = o->base_url ? o->base_url : "http://localhost";
    if (options_check(o, base, err))
        return NULL;
    struct http *http = mem_alloc(sizeof *http);
    size_t size = strlen(base);
    while (size && base[size - 1] == '/')
        size--;
    http->base = mem_strndup(base, size);
    http->shown = url_shown(http->base);
    http->unix_socket = mem_strdup(o->unix_socket);
    http->token_file = mem_strdup(o->token_file);
    http->user = mem_strdup(o->user);
    http->password = mem_strdup(o->password);
    http->password_file = mem_strdup(o->password_file);
    http->ca_file = mem_strdup(o->ca_file);
    http->any_name = o->any_name && o->ca_file;
    http->cert_file = mem_strdup(o->cert_file);
    http->key_file = mem_strdup(o->key_file);
    http->ca_pem = mem_strdup(o->ca_pem);
    http->cert_pem = mem_strdup(o->cert_pem);
    http->key_pem = mem_strdup(o->key_pem);
    http->proxy = mem_strdup(o->proxy);
    http->no_verify = o->no_verify;
    http->no_compression = o->no_compression;
    http->keep_writes = o->keep_writes;
    if (o->server_name)
        use_server_name(http, o->server_name);
    for (size_t i = 0; o->headers && o->headers[i]; i++)
        http->headers = curl_slist_append(http->headers, o->headers[i]);
    http->connect_timeout_ms = or_default(o->connect_timeout_ms, 2000);
    http->total_timeout_ms = or_default(o->total_timeout_ms, 10000);
    http->backoff_ms = or_default(o->backoff_ms, 100);
    http->backoff_max_ms = or_default(o->backoff_max_ms, 5000);
    http->max_bytes = o->max_bytes ? o->max_bytes : (size_t)64 << 20;
    http->attempts = o->attempts > 0 ? o->attempts : 4;
    http->random = (uint64_t)clock_mono_ms() ^ (uint64_t)(uintptr_t)http;
    http->curl = curl_easy_init();
    if (!http->curl) {
        http_free(http);
        err_set(err, ERR_INTERNAL, "libcurl does not start");
        return NULL;
    }
    return http;
}

void http_set_bearer(struct http *http, const char *token)
{
    if (http->bearer)
        explicit_bzero(http->bearer, strlen(http->bearer));
    free(http->bearer);
    http->bearer = mem_strdup(token);
}

int64_t http_timeout_ms(const struct http *http)
{
    return http->total_timeout_ms;
}

void http_free(struct http *http)
{
    if (!http)
        return;
    if (http->curl)
        curl_easy_cleanup(http->curl);
    if (http->multi)
        curl_multi_cleanup(http->multi);
    curl_slist_free_all(http->headers);
    free(http->base);
    free(http->shown);
    free(http->unix_socket);
    free(http->token_file);
    free(http->user);
    if (http->password)
        explicit_bzero(http->password, strlen(http->password));
    free(http->password);
    free(http->password_file);
    free(http->ca_file);
    free(http->cert_file);
    free(http->key_file);
    free(http->ca_pem);
    free(http->cert_pem);
    if (http->key_pem)
        explicit_bzero(http->key_pem, strlen(http->key_pem));
    free(http->key_pem);
    free(http->proxy);
    curl_slist_free_all(http->connect_to);
    http_set_bearer(http, NULL);
    free(http);
}

static void add_bearer(struct curl_slist **list, const char *token, size_t size)
{
    char *line = mem_printf("Authorization: Bearer %.*s", (int)size, token);
    *list = curl_slist_append(*list, line);
    explicit_bzero(line, strlen(line));
    free(line);
}

static int token_header(const struct http *http, struct curl_slist **list, struct err *err)
{
    if (http->bearer)
        add_bearer(list, http->bearer, strlen(http->bearer));
    if (http->bearer || !http->token_file)
        return 0;
    AUTO_BUF struct buf token = BUF_INIT;
    if (file_read(http->token_file, TOKEN_MAX_BYTES, &token, err))
        return err_prefix(err, "token file");
    size_t size = strcspn(token.data ? token.data : "", " \t\r\n");
    int result = 0;
    if (!size)
        result = err_set(err, ERR_CONFIG, "token file %s is empty", http->token_file);
    else
        add_bearer(list, token.data, size);
    if (token.data)
        explicit_bzero(token.data, token.size);
    return result;
}

/* A password is everything up to the end of the first line. */
static int password_read(struct http *http, struct err *err)
{
    if (!http->password_file)
        return 0;
    AUTO_BUF struct buf text = BUF_INIT;
    if (file_read(http->password_file, TOKEN_MAX_BYTES, &text, err))
        return err_prefix(err, "password file");
    if (http->password)
        explicit_bzero(http->password, strlen(http->password));
    free(http->password);
    http->password =
        mem_strndup(text.data ? text.data : "", text.data ? strcspn(text.data, "\r\n") : 0);
    if (text.data)
        explicit_bzero(text.data, text.size);
    return 0;
}

static void set_blob(CURL *c, CURLoption option, const char *text)
{
    /* libcurl takes a void * and only copies it. */
    struct curl_blob blob = {(void *)(uintptr_t)text, text ? strlen(text) : 0, CURL_BLOB_COPY};
    if (text)
        curl_easy_setopt(c, option, &blob);
}

static void set_tls(const struct http *http, CURL *c)
{
    if (http->ca_file)
        curl_easy_setopt(c, CURLOPT_CAINFO, http->ca_file);
    if (http->cert_file)
        curl_easy_setopt(c, CURLOPT_SSLCERT, http->cert_file);
    if (http->key_file)
        curl_easy_setopt(c, CURLOPT_SSLKEY, http->key_file);
    set_blob(c, CURLOPT_CAINFO_BLOB, http->ca_pem);
    if (http->ca_file || http->ca_pem) /* only this: not the system's folder as well */
        curl_easy_setopt(c, CURLOPT_CAPATH, NULL);
    set_blob(c, CURLOPT_SSLCERT_BLOB, http->cert_pem);
    set_blob(c, CURLOPT_SSLKEY_BLOB, http->key_pem);
    if (http->any_name)
        curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 0L);
    if (http->no_verify) {
        curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 0L);
    }
}

int http_prepare(struct http *http, CURL *c, const char *path, struct curl_slist **headers,
                 struct err *err)
{
    struct curl_slist *list = NULL;
    AUTO_FREE char *url = mem_printf("%s%s", http->base, path);
    for (struct curl_slist *h = http->headers; h; h = h->next)
        list = curl_slist_append(list, h->data);
    if (token_header(http, &list, err) || password_read(http, err)) {
        curl_slist_free_all(list);
        return -1;
    }
    *headers = list;
    curl_easy_reset(c); /* keeps the connection */
    curl_easy_setopt(c, CURLOPT_URL, url);
    curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    /* Of answers that share a connection by HTTP/2, libcurl 7.88 now and then leaves the end of one in
     * its buffers until something else arrives: a list that never ends, a watch that is silent. */
    curl_easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    if (!http->no_compression)
        curl_easy_setopt(c, CURLOPT_ACCEPT_ENCODING, "");
    curl_easy_setopt(c, CURLOPT_USERAGENT, "remap/" REMAP_VERSION);
    curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, (long)http->connect_timeout_ms);
    if (http->unix_socket)
        curl_easy_setopt(c, CURLOPT_UNIX_SOCKET_PATH, http->unix_socket);
    set_tls(http, c);
    curl_easy_setopt(c, CURLOPT_HTTPHEADER, list);
    if (http->connect_to)
        curl_easy_setopt(c, CURLOPT_CONNECT_TO, http->connect_to);
    if (http->proxy)
        curl_easy_setopt(c, CURLOPT_PROXY, http->proxy);
    if (http->user) {
        curl_easy_setopt(c, CURLOPT_USERNAME, http->user);
        curl_easy_setopt(c, CURLOPT_PASSWORD, http->password ? http->password : "");
    }
    return 0;
}
