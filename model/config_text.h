/* config_text.h - the texts of configuration values: one text into one value. Private to
 * model/config*.c and its tests. */
#ifndef REMAP_CONFIG_TEXT_H
#define REMAP_CONFIG_TEXT_H

#include "model/config.h"
#include "model/config_keys.h"

/* Reads `text` as the key's kind within its range into base + offset. -1 and *why otherwise. */
int config_text_set(const struct key *key, const char *text, void *base, char *why, size_t size);
/* "1GiB", "512 MiB", "64KiB", "1000000" (bytes); -1 when it is none. */
int size_parse(const char *text, int64_t *out_bytes);
/* NULL, or why this source option is a secret in the open: secrets come as *_file paths. */
const char *config_secret_problem(const char *name, const char *value);

#endif
