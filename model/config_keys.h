/* config_keys.h - the keys of the configuration as data: one table each for the file's top level
 * and for an app. The libcyaml schema, the conversion, the defaults, the reference text and the
 * test of etc/remap.yaml all come from here. Private to model/config*.c and its tests. */
#ifndef REMAP_CONFIG_KEYS_H
#define REMAP_CONFIG_KEYS_H

#include <stddef.h>
#include <stdint.h>

enum key_kind {
    KEY_TEXT,     /* char * */
    KEY_NAME,     /* char *; a name of contract.md 2 */
    KEY_LISTEN,   /* char *; ADDRESS:PORT or off */
    KEY_DURATION, /* int64_t ms */
    KEY_SIZE,     /* int64_t bytes */
    KEY_COUNT,    /* int64_t; "none" is -1 */
    KEY_RATIO,    /* double */
    KEY_FLAG,     /* bool */
    KEY_CHOICE    /* enum or int: first + index in choices */
};

struct key {
    const char *name;
    enum key_kind kind;
    size_t offset;        /* in struct config or struct config_app */
    const char *fallback; /* text of the default, read like a given one; NULL: none */
    const char *help;
    double min, max;            /* of durations (ms), sizes, counts, ratios */
    const char *const *choices; /* NULL-terminated */
    int first;
};

/* Ended by a NULL name. No more than CONFIG_MAX_KEYS each (a test counts). */
#define CONFIG_MAX_KEYS 40
extern const struct key config_top_keys[];
extern const struct key config_app_keys[];
/* The section `drift` of an app; offsets in struct config_app. */
extern const struct key config_drift_keys[];
/* The lists of an app, which are not in the table above: name and help. */
struct list_key {
    const char *name, *help;
};
extern const struct list_key config_app_lists[];
/* The section `webhooks`, its providers and its routes (config_webhooks.c). */
extern const struct key config_webhooks_keys[], config_provider_keys[], config_route_keys[];
extern const struct list_key config_route_lists[];

#endif
