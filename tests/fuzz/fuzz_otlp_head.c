/* fuzz_otlp_head.c - any header values of a request for a receiver of spans: without the right proof
 * nobody sends, and every refusal is one of the protocol's. Lines of the input are the values. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "model/base/mem.h"
#include "monitor/receiver/head.h"

#define TOKEN "secret"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A file that holds the token, gone from the folder at once. */
static char *token_path(void)
{
    static char path[64];
    char name[] = "/tmp/remap-fuzz-XXXXXX";
    if (*path)
        return path;
    int fd = mkstemp(name);
    if (fd < 0 || write(fd, TOKEN "\n", sizeof TOKEN) != sizeof TOKEN)
        abort();
    unlink(name);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return path;
}

static void judge(struct head *head, const struct otlp_settings *settings)
{
    struct err err = ERR_INIT;
    struct head_verdict v = head_judge(head, settings, &err);
    bool proven = (settings->client_ca_file && head->known) ||
                  (settings->token_file && head->authorization &&
                   strncasecmp(head->authorization, "Bearer " TOKEN, 100) == 0 &&
                   strcmp(head->authorization + 7, TOKEN) == 0);
    bool open = !settings->token_file && !settings->client_ca_file;
    if (err.kind != ERR_NONE || !v.status != !v.reason)
        abort();
    if (v.status && v.status != 401 && v.status != 404 && v.status != 405 && v.status != 413 &&
        v.status != 415)
        abort();
    if (!v.status && !proven && !open && !(v.shows && head->local))
        abort();
    if (!v.status && !v.shows && (strcmp(head->path, "/v1/traces") || strcmp(head->method, "POST")))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_FREE char *text = mem_strndup((const char *)data, size);
    char *rest = text, *flags = strsep(&rest, "\n");
    struct head head = {.method = "POST", .path = "/v1/traces"};
    const char **const fields[] = {&head.authorization,    &head.content_type,
                                   &head.content_encoding, &head.content_length,
                                   &head.method,           &head.path};
    for (size_t i = 0; i < ARRAY_LEN(fields) && rest; i++) {
        char *line = strsep(&rest, "\n");
        if (*line)
            *fields[i] = line;
    }
    head.known = strchr(flags, 'k');
    head.local = strchr(flags, 'l');
    char name[] = "s", ca[] = "ca.pem";
    struct otlp_settings settings = {.name = name};
    if (strchr(flags, 't'))
        settings.token_file = token_path();
    if (strchr(flags, 'c'))
        settings.client_ca_file = ca;
    judge(&head, &settings);
    return 0;
}
