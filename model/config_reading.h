/* config_reading.h - what the files that read the configuration share: from the texts that libcyaml
 * left to values, with the place of every complaint. Private to model/config*.c. */
#ifndef REMAP_CONFIG_READING_H
#define REMAP_CONFIG_READING_H

#include <cyaml/cyaml.h>

#include "model/base/yaml.h"
#include "model/config.h"
#include "model/config_keys.h"

/* Limits: names as in contract.md 2 (253), paths as PATH_MAX (4096); more apps, sources or routes
 * than a thousand is a generated mistake. */
#define CONFIG_MAX_TEXT 4096
#define CONFIG_MAX_ENTRIES 1000

/* Where we are: for errors. */
struct reading {
    const struct ydoc *doc;
    struct err *err;
};

/* ERR_CONFIG for `key` of the thing whose path is `prefix` ("apps[0]."); key "": the thing itself.
 */
int config_bad(const struct reading *r, const char *prefix, const char *key, const char *why);
/* Sets every key of a table in *base, from its text or its default. */
int config_values_set(const struct reading *r, const char *prefix, const struct key *keys,
                      char **values, void *base);
/* A list of names without doubles. */
int config_list_set(const struct reading *r, const char *prefix, const char *name, char *const *raw,
                    size_t n, char ***out, size_t *count);
void config_texts_free(const struct key *keys, void *base);
void config_strings_free(char **strings, size_t n);

/* Fields of a libcyaml schema: an optional text, and a list (a pointer and a uint32_t). */
cyaml_schema_field_t config_text_field(const char *key, size_t offset);
cyaml_schema_field_t config_list_field(const char *key, size_t offset, size_t count_offset,
                                       const cyaml_schema_value_t *entry, size_t size,
                                       bool required);
extern const cyaml_schema_value_t config_text_entry; /* of a list of texts */

/* --- config_webhooks.c --- */
#define WEBHOOK_KEYS 8 /* at most, of each of its tables */
struct webhooks_schema {
    cyaml_schema_field_t provider_fields[WEBHOOK_KEYS], route_fields[WEBHOOK_KEYS];
    cyaml_schema_field_t fields[WEBHOOK_KEYS];
    cyaml_schema_value_t provider, route;
};
struct raw_webhooks;
/* The optional field `webhooks`, a pointer to what libcyaml fills. */
cyaml_schema_field_t config_webhooks_field(struct webhooks_schema *schema, size_t offset);
/* After the apps, because routes name them. */
int config_webhooks_set(const struct reading *r, const struct raw_webhooks *raw,
                        struct config *config);
void config_webhooks_free(struct config_webhooks *webhooks);
void config_webhooks_reference(struct buf *out,
                               void (*keys)(struct buf *, const char *, const struct key *),
                               void (*line)(struct buf *, const char *, const char *, const char *,
                                            const char *));

#endif
