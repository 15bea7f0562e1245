/* source_http.c - a source's options into an HTTP client (source_http.h; interfaces.md 0). */
#include "adapters/http/source_http.h"

#include "model/base/clock.h"
#include "model/base/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define HEADERS_MAX_BYTES 65536 /* servers refuse a request with more */
#define MAX_ATTEMPTS 10
#define MAX_MIB 4096

int source_number(const struct source *source, const char *name, const char *fallback, int64_t min,
                  int64_t max, int64_t *out, struct err *err)
{
    const char *text = source_option(source, name, fallback);
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (!*text || *end || errno || number < min || number > max)
        return err_set(err, ERR_CONFIG, "%s: %s must be a whole number from %lld to %lld, not %.40s",
                       source->name, name, (long long)min, (long long)max, text);
    *out = number;
    return 0;
}

int source_wait(const struct source *source, const char *name, const char *fallback,
                int64_t *out_ms, struct err *err)
{
    if (duration_parse(source_option(source, name, fallback), out_ms, err))
        return err_prefix(err, "%s: %s", source->name, name);
    return 0;
}

int source_duration(const struct source *source, const char *name, const char *fallback,
                    int64_t *out_ms, struct err *err)
{
    if (source_wait(source, name, fallback, out_ms, err))
        return -1;
    return *out_ms > 0 ? 0
                       : err_set(err, ERR_CONFIG, "%s: %s must be above 0", source->name, name);
}

struct header_list {
    const char **lines; /* into `text`; ended by NULL */
    size_t n_lines;
    struct buf text;
};

static void headers_wipe(struct header_list *list)
{
    if (list->text.data)
        explicit_bzero(list->text.data, list->text.size);
    buf_wipe(&list->text);
    free(list->lines);
}

/* Empty lines are none. */
static void headers_split(struct header_list *list)
{
    char *rest = list->text.data;
    for (char *line; rest && (line = strsep(&rest, "\r\n"));)
        if (*line)
            *ARRAY_PUSH(list->lines, list->n_lines) = line;
    *ARRAY_PUSH(list->lines, list->n_lines) = NULL;
}

static int headers_read(const struct source *source, struct header_list *list, struct err *err)
{
    const char *path = source_option(source, "headers_file", NULL);
    buf_puts(&list->text, source_option(source, "headers", ""));
    buf_puts(&list->text, "\n");
    if (path && file_read(path, HEADERS_MAX_BYTES, &list->text, err))
        return err_prefix(err, "%s: headers_file", source->name);
    headers_split(list);
    return 0;
}

static int options_clash(const struct source *source, struct err *err)
{
    static const char *const needs[][2] = {
        {"password_file", "user"}, {"cert_file", "key_file"}, {"key_file", "cert_file"}};
    for (size_t i = 0; i < ARRAY_LEN(needs); i++)
        if (source_option(source, needs[i][0], NULL) && !source_option(source, needs[i][1], NULL))
            return err_set(err, ERR_CONFIG, "%s: %s needs %s", source->name, needs[i][0],
                           needs[i][1]);
    if (source_option(source, "user", NULL) && source_option(source, "token_file", NULL))
        return err_set(err, ERR_CONFIG, "%s: user and token_file exclude each other",
                       source->name);
    return 0;
}

/* They are read at each connection, but libcurl does not tell which of them it missed. */
static int files_check(const struct source *source, struct err *err)
{
    static const char *const names[] = {"ca_file", "cert_file", "key_file"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *path = source_option(source, names[i], NULL);
        if (path && access(path, R_OK))
            return err_set(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, "%s: %s %s: %s",
                           source->name, names[i], path, strerror(errno));
    }
    return 0;
}

/* On the way over a network gzip makes traces and series 20 to 50 times smaller; on the machine itself
 * it only costs both ends the time: a Zipkin's pages took it half as much again. */
static bool is_this_machine(const char *url)
{
    const char *host = strstr(url, "://");
    host = host ? host + 3 : url;
    const char *at = memchr(host, '@', strcspn(host, "/"));
    host = at ? at + 1 : host;
    size_t size = *host == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":/");
    return (size == 9 && !strncasecmp(host, "localhost", 9)) || !strncmp(host, "127.", 4) ||
           (size == 5 && !strncmp(host, "[::1]", 5));
}

static int read_compression(const struct source *source, bool *none, struct err *err)
{
    const char *text = source_option(source, "compression", "auto");
    if (!strcmp(text, "auto"))
        *none = is_this_machine(source_option(source, "url", ""));
    else if (!strcmp(text, "on") || !strcmp(text, "off"))
        *none = !strcmp(text, "off");
    else
        return err_set(err, ERR_CONFIG, "%s: compression must be auto, on or off, not %.40s",
                       source->name, text);
    return 0;
}

int source_http_open(const struct source *source, struct http **out, struct err *err)
{
    int64_t timeout_ms, attempts, mib;
    bool no_compression = false;
    if (options_clash(source, err) || files_check(source, err) ||
        source_duration(source, "timeout", "10s", &timeout_ms, err) ||
        source_number(source, "attempts", "2", 1, MAX_ATTEMPTS, &attempts, err) ||
        source_number(source, "max_mib", "256", 1, MAX_MIB, &mib, err) ||
        read_compression(source, &no_compression, err))
        return -1;
    struct header_list headers = {0};
    struct http *http = NULL;
    if (!headers_read(source, &headers, err)) {
        const struct http_options options = {
            .base_url = source_option(source, "url", ""),
            .headers = headers.lines,
            .token_file = source_option(source, "token_file", NULL),
            .user = source_option(source, "user", NULL),
            .password_file = source_option(source, "password_file", NULL),
            .ca_file = source_option(source, "ca_file", NULL),
            .cert_file = source_option(source, "cert_file", NULL),
            .key_file = source_option(source, "key_file", NULL),
            .no_compression = no_compression,
            .total_timeout_ms = timeout_ms,
            .max_bytes = (size_t)mib << 20,
            .attempts = (int)attempts};
        http = http_new(&options, err);
        if (!http)
            err_prefix(err, "%s", source->name);
    }
    headers_wipe(&headers);
    *out = http;
    return http ? 0 : -1;
}
