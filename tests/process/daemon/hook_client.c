/* hook_client.c - posts by libcurl (hook_client.h). */
#include "tests/process/daemon/hook_client.h"

#include <curl/curl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/clock.h"
#include "model/base/file.h"
#include "model/base/mem.h"

/* The monitor says on stderr where it listens; the newest line counts. */
int hook_client_port(struct rig *rig)
{
    static const char mark[] = "webhooks listen=127.0.0.1:0 port=";
    for (int64_t until = clock_mono_ms() + RIG_PATIENCE_MS;;) {
        struct err err = ERR_INIT;
        AUTO_BUF struct buf log = BUF_INIT;
        const char *at = NULL;
        if (file_read(rig->log, 1 << 22, &log, &err) == 0)
            for (const char *p = log.data; (p = strstr(p, mark)) != NULL; p++)
                at = p;
        if (at)
            return atoi(at + sizeof mark - 1);
        assert_true(clock_mono_ms() < until);
        clock_sleep_ms(10);
    }
}

static size_t take(char *data, size_t size, size_t n, void *ctx)
{
    buf_add(ctx, data, size * n);
    return size * n;
}

long hook_client_post(int port, const char *path, const char *const *headers,
                      const char *body, size_t size, struct buf *answer)
{
    AUTO_FREE char *url = mem_printf("http://127.0.0.1:%d%s", port, path);
    struct curl_slist *list = NULL;
    long status = 0;
    CURL *curl = curl_easy_init();
    for (size_t i = 0; headers[i]; i++)
        list = curl_slist_append(list, headers[i]);
    buf_clear(answer);
    buf_puts(answer, "");
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, list);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)size);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)RIG_PATIENCE_MS);
    CURLcode code = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    if (code != CURLE_OK)
        print_message("%s: %s\n", url, curl_easy_strerror(code));
    curl_slist_free_all(list);
    curl_easy_cleanup(curl);
    return status;
}
