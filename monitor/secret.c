/* secret.c - secrets in files (secret.h). */
#include "monitor/secret.h"

#include <openssl/crypto.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/file.h"
#include "model/base/mem.h"

#define SECRET_MAX_BYTES 16384 /* a public key of RSA 4096 in PEM is 800 bytes */

int secret_read(const char *path, const char **out, struct err *err)
{
    AUTO_BUF struct buf text = BUF_INIT;
    int rc = file_read(path, SECRET_MAX_BYTES, &text, err);
    size_t n = rc ? 0 : text.size;
    while (n > 0 && (text.data[n - 1] == '\n' || text.data[n - 1] == '\r'))
        n--;
    if (rc == 0 && (n == 0 || memchr(text.data, '\0', n)))
        rc = err_set(err, ERR_CONFIG, "%s: holds no secret", path);
    if (rc == 0)
        *out = mem_strndup(text.data, n);
    if (text.data)
        OPENSSL_cleanse(text.data, text.cap);
    return rc;
}

bool secret_equal(const char *given, const char *secret)
{
    size_t n = strlen(secret);
    return n > 0 && strlen(given) == n && CRYPTO_memcmp(given, secret, n) == 0;
}

void secret_free(const char *secret)
{
    char *text = (char *)(uintptr_t)secret;
    if (text)
        OPENSSL_cleanse(text, strlen(text));
    free(text);
}
