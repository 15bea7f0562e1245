/* verify.c - proofs of webhooks, by OpenSSL's libcrypto (interfaces.md 6). */
#include "monitor/webhook/verify.h"

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "model/base/mem.h"

#define SHA256_SIZE 32
#define SIGNATURE_MAX 1024 /* base64 of RSA 4096 is 684 characters */

static bool hmac(const void *secret, size_t secret_size, const void *data, size_t size,
                 unsigned char out[SHA256_SIZE])
{
    unsigned n = 0;
    return secret_size > 0 && secret_size <= 4096 &&
           HMAC(EVP_sha256(), secret, (int)secret_size, data, size, out, &n) && n == SHA256_SIZE;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

bool verify_hmac_hex(const char *secret, const void *data, size_t size, const char *hex)
{
    unsigned char expected[SHA256_SIZE], given[SHA256_SIZE];
    if (strlen(hex) != (size_t)2 * SHA256_SIZE) {
        return false;
    }
    for (size_t i = 0; i < SHA256_SIZE; i++) {
        int high = hex_digit(hex[2 * i]), low = hex_digit(hex[2 * i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        given[i] = (unsigned char)(high << 4 | low);
    }
    return hmac(secret, strlen(secret), data, size, expected) &&
           CRYPTO_memcmp(expected, given, SHA256_SIZE) == 0;
}

int verify_base64(const char *text, size_t size, unsigned char *out)
{
    if (size == 0 || size % 4 || size > 1 << 20) {
        return -1;
    }
    size_t padding = (text[size - 1] == '=') + (size_t)(text[size - 2] == '=');
    for (size_t i = 0; i < size - padding; i++) { /* EVP_DecodeBlock() also takes white space */
        char c = text[i];
        if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
              c == '+' || c == '/')) {
            return -1;
        }
    }
    int n = EVP_DecodeBlock(out, (const unsigned char *)text, (int)size);
    return n < 0 ? -1 : n - (int)padding;
}

bool verify_hmac_base64(const void *secret, size_t secret_size, const void *data, size_t size,
                        const char *base64, size_t base64_size)
{
    unsigned char expected[SHA256_SIZE], given[SHA256_SIZE + 4];
    return base64_size == 44 && verify_base64(base64, base64_size, given) == SHA256_SIZE &&
           hmac(secret, secret_size, data, size, expected) &&
           CRYPTO_memcmp(expected, given, SHA256_SIZE) == 0;
}

static EVP_PKEY *read_key(const char *pem)
{
    BIO *bio = BIO_new_mem_buf(pem, -1);
    EVP_PKEY *key = bio ? PEM_read_bio_PUBKEY(bio, NULL, NULL, NULL) : NULL;
    BIO_free(bio);
    ERR_clear_error();
    if (key && EVP_PKEY_get_base_id(key) != EVP_PKEY_RSA) {
        EVP_PKEY_free(key);
        key = NULL;
    }
    return key;
}

bool verify_key_usable(const char *pem)
{
    EVP_PKEY *key = read_key(pem);
    EVP_PKEY_free(key);
    return key != NULL;
}

bool verify_rsa_sha1(const char *pem, const void *data, size_t size, const char *base64)
{
    unsigned char signature[SIGNATURE_MAX];
    size_t n = strlen(base64);
    int signature_size = n <= SIGNATURE_MAX ? verify_base64(base64, n, signature) : -1;
    EVP_PKEY *key = signature_size > 0 ? read_key(pem) : NULL;
    EVP_MD_CTX *ctx = key ? EVP_MD_CTX_new() : NULL;
    bool good = ctx && EVP_DigestVerifyInit(ctx, NULL, EVP_sha1(), NULL, key) == 1 &&
                EVP_DigestVerify(ctx, signature, (size_t)signature_size, data, size) == 1;
    EVP_MD_CTX_free(ctx);
    EVP_PKEY_free(key);
    ERR_clear_error();
    return good;
}

bool verify_time(const char *seconds, int64_t now_ms, int64_t window_ms)
{
    size_t n = strspn(seconds, "0123456789");
    if (n == 0 || n > 11 || seconds[n]) {
        return false;
    }
    int64_t off_ms = now_ms - strtoll(seconds, NULL, 10) * 1000;
    return off_ms <= window_ms && off_ms >= -window_ms;
}

void verify_digest(const void *data, size_t size, char out[65])
{
    unsigned char digest[SHA256_SIZE] = {0};
    EVP_Digest(data, size, digest, NULL, EVP_sha256(), NULL);
    for (size_t i = 0; i < SHA256_SIZE; i++) {
        snprintf(out + 2 * i, 3, "%02x", digest[i]);
    }
}
