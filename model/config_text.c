/* config_text.c - texts of configuration values: durations, sizes, counts, ratios, choices, listen
 * addresses; and the refusal of secrets that stand in the file itself. */
#include "model/config_text.h"
#include "model/config_reading.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/clock.h"
#include "model/base/names.h"

struct why {
    char *text;
    size_t size;
};

static int say(const struct why *why, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int say(const struct why *why, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(why->text, why->size, fmt, args);
    va_end(args);
    return -1;
}

/* Decimal digits only, no leading zeros, at most 10^15. */
static int whole_parse(const char *text, int64_t *out)
{
    size_t n = strspn(text, "0123456789");
    if (n == 0 || n > 16 || text[n] || (n > 1 && text[0] == '0'))
        return -1;
    *out = strtoll(text, NULL, 10);
    return 0;
}

int size_parse(const char *text, int64_t *out_bytes)
{
    static const struct {
        const char *name;
        int64_t bytes;
    } units[] = {{"", 1},          {"B", 1},          {"KiB", 1 << 10}, {"MiB", 1 << 20},
                 {"GiB", 1 << 30}, {"TiB", INT64_C(1) << 40}};
    size_t n = strspn(text, "0123456789");
    char digits[17];
    int64_t count;
    if (n == 0 || n >= sizeof digits)
        return -1;
    memcpy(digits, text, n);
    digits[n] = '\0';
    if (whole_parse(digits, &count))
        return -1;
    const char *unit = text + n + strspn(text + n, " ");
    for (size_t i = 0; i < ARRAY_LEN(units); i++)
        if (strcmp(unit, units[i].name) == 0 && count <= INT64_MAX / units[i].bytes) {
            *out_bytes = count * units[i].bytes;
            return 0;
        }
    return -1;
}

static int set_duration(const struct key *key, const char *text, int64_t *out,
                        const struct why *why)
{
    struct err err = ERR_INIT;
    char low[CLOCK_TEXT_SIZE], high[CLOCK_TEXT_SIZE];
    int64_t ms;
    if (duration_parse(text, &ms, &err))
        return say(why, "must be a duration such as 500ms, 10s, 5m, 2h or 30d, not \"%.40s\"",
                   text);
    if ((double)ms < key->min || (double)ms > key->max)
        return say(why, "must be from %s to %s, not %s", duration_text((int64_t)key->min, low),
                   duration_text((int64_t)key->max, high), text);
    *out = ms;
    return 0;
}

static int set_size(const struct key *key, const char *text, int64_t *out, const struct why *why)
{
    int64_t bytes;
    if (size_parse(text, &bytes))
        return say(why, "must be a size such as 512MiB or 1GiB, not \"%.40s\"", text);
    if ((double)bytes < key->min || (double)bytes > key->max)
        return say(why, "must be from %.0f to %.0f bytes, not %s", key->min, key->max, text);
    *out = bytes;
    return 0;
}

static int set_count(const struct key *key, const char *text, int64_t *out, const struct why *why)
{
    int64_t value = -1;
    bool none = strcmp(text, "none") == 0;
    if (!none && (whole_parse(text, &value) || (double)value < key->min ||
                  (double)value > key->max))
        return say(why, "must be none or an integer from %.0f to %.0f, not \"%.40s\"%s", key->min,
                   key->max, text,
                   strcmp(text, "0") == 0 && strncmp(key->name, "max_", 4) == 0
                       ? " (none: no limit; to make no moves: mode: observe)"
                       : "");
    *out = value;
    return 0;
}

static int set_ratio(const struct key *key, const char *text, double *out, const struct why *why)
{
    char *end;
    double value = strtod(text, &end);
    bool decimal = strspn(text, "0123456789.eE+-") == strlen(text);
    if (!decimal || *end || !isfinite(value) || value < key->min || value > key->max)
        return say(why, "must be a number from %g to %g, not \"%.40s\"", key->min, key->max,
                   text);
    *out = value;
    return 0;
}

static int set_flag(const char *text, bool *out, const struct why *why)
{
    if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
        return say(why, "must be true or false, not \"%.40s\"", text);
    *out = text[0] == 't';
    return 0;
}

static int set_choice(const struct key *key, const char *text, int *out, const struct why *why)
{
    for (int i = 0; key->choices[i]; i++)
        if (strcmp(key->choices[i], text) == 0) {
            *out = key->first + i;
            return 0;
        }
    AUTO_BUF struct buf all = BUF_INIT;
    for (int i = 0; key->choices[i]; i++)
        buf_printf(&all, "%s%s", i ? ", " : "", key->choices[i]);
    return say(why, "must be one of %s, not \"%.40s\"", all.data, text);
}

/* ADDRESS:PORT, [IPv6]:PORT or off. */
static int check_listen(const char *text, const struct why *why)
{
    const char *colon = strrchr(text, ':');
    int64_t port;
    if (strcmp(text, "off") == 0)
        return 0;
    bool bracketed = text[0] == '[' && colon && colon > text && colon[-1] == ']';
    bool plain = text[0] != '[' && colon && colon > text && strchr(text, ':') == colon;
    if ((!bracketed && !plain) || whole_parse(colon + 1, &port) || port > 65535)
        return say(why, "must be ADDRESS:PORT or off, not \"%.60s\"", text);
    return 0;
}

int config_text_set(const struct key *key, const char *text, void *base, char *why_text,
                    size_t size)
{
    void *at = (char *)base + key->offset;
    const struct why why = {why_text, size};
    const char *problem;
    switch (key->kind) {
    case KEY_NAME:
        if ((problem = name_problem(text, strlen(text))))
            return say(&why, "%s", problem);
        break;
    case KEY_LISTEN:
        if (check_listen(text, &why))
            return -1;
        break;
    case KEY_TEXT:
        break;
    case KEY_DURATION:
        return set_duration(key, text, at, &why);
    case KEY_SIZE:
        return set_size(key, text, at, &why);
    case KEY_COUNT:
        return set_count(key, text, at, &why);
    case KEY_RATIO:
        return set_ratio(key, text, at, &why);
    case KEY_FLAG:
        return set_flag(text, at, &why);
    case KEY_CHOICE:
        return set_choice(key, text, at, &why);
    }
    free(*(char **)at);
    *(char **)at = mem_strdup(text);
    return 0;
}

/* --- windows --- */

bool config_app_open(const struct config_app *app, int64_t wall_ms)
{
    for (size_t i = 0; i < app->n_windows; i++)
        if (week_open(&app->windows[i], wall_ms))
            return true;
    return app->n_windows == 0;
}

/* --- secrets --- */

const char *config_secret_problem(const char *name, const char *value)
{
    static const char *const secrets[] = {"token", "password", "secret", "passphrase", "api_key",
                                          "private_key"};
    size_t n = strlen(name);
    for (size_t i = 0; i < ARRAY_LEN(secrets); i++) {
        size_t k = strlen(secrets[i]);
        if (n >= k && strcmp(name + n - k, secrets[i]) == 0)
            return "a secret must not stand in this file: put it into a file of its own and name "
                   "that with the _file option";
    }
    const char *authority = strstr(value, "://");
    if (authority) {
        authority += 3;
        size_t host = strcspn(authority, "/?#");
        const char *at = memchr(authority, '@', host);
        if (at && memchr(authority, ':', (size_t)(at - authority)))
            return "a password must not stand in a URL: use the _file options";
    }
    return NULL;
}

/* --- names and reference --- */

const char *app_mode_name(enum app_mode mode)
{
    switch (mode) {
    case MODE_OBSERVE:
        return "observe";
    case MODE_PROPOSE:
        return "propose";
    case MODE_ACT:
        return "act";
    }
    return "?";
}

static void reference_line(struct buf *out, const char *prefix, const char *name,
                           const char *fallback, const char *help)
{
    char full[64];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    buf_printf(out, "%-22s %-15s %s\n", full, fallback, help);
}

static void reference_keys(struct buf *out, const char *prefix, const struct key *keys)
{
    for (; keys->name; keys++) {
        AUTO_BUF struct buf help = BUF_INIT;
        buf_puts(&help, keys->help);
        if (keys->kind == KEY_CHOICE)
            for (int i = 0; keys->choices[i]; i++)
                buf_printf(&help, "%s%s", i ? " | " : " [", keys->choices[i]);
        buf_puts(&help, keys->kind == KEY_CHOICE ? "]" : "");
        reference_line(out, prefix, keys->name, keys->fallback ? keys->fallback : "-", help.data);
    }
}

void config_reference(struct buf *out)
{
    reference_line(out, "", "KEY", "DEFAULT", "MEANING");
    reference_keys(out, "", config_top_keys);
    reference_line(out, "sources[].", "name", "-", "required");
    reference_line(out, "sources[].", "type", "-", "required: the adapter");
    reference_line(out, "sources[].", "options", "[]",
                   "{name, value}: what the adapter wants; `remap check` says what it knows");
    reference_keys(out, "apps[].", config_app_keys);
    for (const struct list_key *list = config_app_lists; list->name; list++)
        reference_line(out, "apps[].", list->name, "[]", list->help);
    reference_keys(out, "apps[].drift.", config_drift_keys);
    config_webhooks_reference(out, reference_keys, reference_line);
}
