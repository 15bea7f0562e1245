/* verify.h - proofs that a post comes from who knows the secret: libcrypto's HMAC and RSA, and
 * comparisons whose time tells nothing. */
#ifndef REMAP_MONITOR_VERIFY_H
#define REMAP_MONITOR_VERIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Is `hex` the HMAC-SHA256 of the bytes, in hexadecimal of either case? An empty secret proves
 * nothing. */
bool verify_hmac_hex(const char *secret, const void *data, size_t size, const char *hex);
/* The same in base64; the secret is given by its bytes. */
bool verify_hmac_base64(const void *secret, size_t secret_size, const void *data, size_t size,
                        const char *base64, size_t base64_size);
/* RSA-SHA1, PKCS#1 v1.5 (Travis), by a public key in PEM. */
bool verify_rsa_sha1(const char *pem, const void *data, size_t size, const char *base64);
/* Is it a public key that verify_rsa_sha1() can use? */
bool verify_key_usable(const char *pem);
/* Decimal seconds within window_ms of now_ms? */
bool verify_time(const char *seconds, int64_t now_ms, int64_t window_ms);
/* Decodes padded base64; the number of bytes, -1 when it is none. `out` holds size * 3 / 4. */
int verify_base64(const char *text, size_t size, unsigned char *out);
/* Lower-case hexadecimal SHA-256, 64 characters and a NUL. */
void verify_digest(const void *data, size_t size, char out[65]);

#endif
