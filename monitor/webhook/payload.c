/* payload.c - what the providers share: headers, forms, values by path, the interval label (§6.6:
 * "this information is part of the event signalled during the deployment"). */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "model/base/clock.h"
#include "model/base/json.h"
#include "model/base/mem.h"
#include "model/base/utf8.h"
#include "monitor/webhook/hook.h"
#include "monitor/webhook/verify.h"

/* As a tree each "[]," costs forty times its bytes: 60,000 containers are a few MB. A report of a
 * pipeline with thousands of jobs has some 10,000. */
static const struct json_limits limits = {HOOK_MAX_BODY, 64, 60000};

const char *hook_header(const struct hook_request *request, const char *name)
{
    for (size_t i = 0; i < request->n_headers; i++)
        if (strcasecmp(request->headers[i].name, name) == 0)
            return request->headers[i].value;
    return NULL;
}

bool hook_is_form(const struct hook_request *request)
{
    static const char form[] = "application/x-www-form-urlencoded";
    const char *type = hook_header(request, "Content-Type");
    return type && strncasecmp(type, form, sizeof form - 1) == 0;
}

enum hook_verdict hook_say(struct hook_event *out, enum hook_verdict verdict, const char *fmt, ...)
{
    char text[sizeof out->why * 2];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    hook_copy(out->why, sizeof out->why, text);
    return verdict;
}

json_t *hook_parse(const char *text, size_t size, struct hook_event *out)
{
    struct err err = ERR_INIT;
    json_t *tree = json_parse(text, size, &limits, &err);
    if (tree && json_is_object(tree))
        return tree;
    hook_say(out, HOOK_MALFORMED, "%s", tree ? "not an object" : err.text);
    json_decref(tree);
    return NULL;
}

/* --- forms --- */

static int hex_value(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* '+' is a space, then %XX. */
static int form_decode(const char *text, size_t size, struct buf *out)
{
    for (size_t i = 0; i < size; i++) {
        char c = text[i] == '+' ? ' ' : text[i];
        if (c == '%') {
            int high = i + 2 < size ? hex_value(text[i + 1]) : -1;
            int low = i + 2 < size ? hex_value(text[i + 2]) : -1;
            if (high < 0 || low < 0)
                return -1;
            c = (char)(high << 4 | low);
            i += 2;
        }
        buf_add(out, &c, 1);
    }
    return 0;
}

int hook_form_payload(const char *body, size_t size, struct buf *out)
{
    static const char field[] = "payload=";
    for (const char *p = body, *end = body + size; p < end;) {
        const char *and = memchr(p, '&', (size_t)(end - p));
        const char *stop = and? and : end;
        if ((size_t)(stop - p) >= sizeof field - 1 && memcmp(p, field, sizeof field - 1) == 0) {
            p += sizeof field - 1;
            buf_reserve(out, (size_t)(stop - p) + 1);
            return form_decode(p, (size_t)(stop - p), out);
        }
        p = and? and+1 : end;
    }
    return -1;
}

/* --- values --- */

json_t *hook_value(const json_t *object, const char *path)
{
    const json_t *at = object;
    while (at && *path) {
        char key[64];
        size_t n = strcspn(path, ".");
        snprintf(key, sizeof key, "%.*s", (int)n, path);
        at = json_object_get(at, key); /* NULL for anything but an object */
        path += n + (path[n] == '.');
    }
    return (json_t *)(uintptr_t)at;
}

const char *hook_string(const json_t *object, const char *path)
{
    return json_string_value(hook_value(object, path));
}

void hook_id(const json_t *object, const char *path, char out[HOOK_ID_SIZE])
{
    const json_t *value = hook_value(object, path);
    out[0] = '\0';
    if (json_is_integer(value))
        snprintf(out, HOOK_ID_SIZE, "%lld", (long long)json_integer_value(value));
    else if (json_is_string(value))
        hook_copy(out, HOOK_ID_SIZE, json_string_value(value));
}

void hook_copy(char *out, size_t size, const char *text)
{
    size_t left = text ? strlen(text) : 0, n = 0;
    while (left > 0) {
        size_t step = utf8_step(text, left);
        bool plain = step > 1 || (step == 1 && (unsigned char)*text >= 0x20 && *text != 0x7f);
        if (n + (step ? step : 1) >= size)
            break;
        if (plain)
            memcpy(out + n, text, step);
        else
            out[n] = '?';
        n += plain ? step : 1;
        text += step ? step : 1;
        left -= step ? step : 1;
    }
    out[n] = '\0';
}

void hook_add(struct hook_names *names, const char *name)
{
    if (name && *name && names->n < HOOK_MAX_NAMES)
        hook_copy(names->names[names->n++], HOOK_NAME_SIZE, name);
}

const char *hook_branch(const char *ref)
{
    static const char *const prefixes[] = {"refs/heads/", "refs/tags/"};
    for (size_t i = 0; ref && i < ARRAY_LEN(prefixes); i++)
        if (strncmp(ref, prefixes[i], strlen(prefixes[i])) == 0)
            return ref + strlen(prefixes[i]);
    return ref;
}

/* --- the interval --- */

void hook_interval(struct hook_event *out, const char *value)
{
    struct err ignored = ERR_INIT;
    size_t digits = strspn(value, "0123456789");
    int64_t ms = -1;
    if (digits > 0 && digits <= 9 && !value[digits])
        ms = strtoll(value, NULL, 10) * 1000;
    else if (duration_parse(value, &ms, &ignored))
        ms = -1;
    out->interval_bad = ms <= 0;
    if (ms > 0)
        out->interval_ms = ms;
}

void hook_label(struct hook_event *out, const char *message)
{
    static const char key[] = "interval=";
    const char *label = message ? strstr(message, "[remap:") : NULL;
    size_t size = label ? strcspn(label, "]\n") : 0;
    const char *at = label ? strstr(label, key) : NULL;
    if (!at || at >= label + size || label[size] != ']')
        return;
    char value[40];
    at += sizeof key - 1;
    snprintf(value, sizeof value, "%.*s", (int)strcspn(at, " ,;]\n"), at);
    hook_interval(out, value);
}

/* --- judging --- */

const struct hook_provider *hook_provider_find(const char *name)
{
    static const struct hook_provider *const providers[] = {
        &hook_travis, &hook_github, &hook_gitlab, &hook_gitea, &hook_generic};
    for (size_t i = 0; i < ARRAY_LEN(providers); i++)
        if (strcmp(providers[i]->name, name) == 0)
            return providers[i];
    return NULL;
}

enum hook_verdict hook_judge(const struct hook_provider *provider,
                             const struct hook_request *request, const struct hook_proof *proof,
                             struct hook_event *out)
{
    memset(out, 0, sizeof *out);
    out->interval_ms = -1;
    enum hook_verdict verdict = provider->judge(request, proof, out);
    if (verdict == HOOK_DEPLOYED && out->interval_ms < 0 && request->interval)
        hook_interval(out, request->interval);
    if (verdict == HOOK_DEPLOYED && !out->delivery[0] && !out->deployment[0])
        verify_digest(request->body, request->size, out->delivery);
    return verdict;
}

void hook_delivery(const struct hook_provider *provider, const struct hook_event *event,
                   struct buf *out)
{
    buf_printf(out, "%s/%s/%s", provider->name, event->delivery, event->deployment);
}

static void put_named(struct buf *out, const char *word, const char *name)
{
    if (name && *name)
        buf_printf(out, " %s %s", word, name);
}

void hook_text(const struct hook_provider *provider, const struct hook_event *event,
               struct buf *out)
{
    char time[CLOCK_TEXT_SIZE];
    buf_puts(out, provider->name);
    buf_puts(out, ":");
    put_named(out, "deployment", event->deployment);
    put_named(out, "of", event->repository[0] ? event->repository : event->app);
    put_named(out, "at", event->branches.n ? event->branches.names[0] : NULL);
    put_named(out, "commit", event->commit);
    put_named(out, "to", event->environments.n ? event->environments.names[0] : NULL);
    put_named(out, "by", event->workflows.n ? event->workflows.names[0] : NULL);
    if (event->interval_ms >= 0)
        buf_printf(out, ", interval %s", duration_text(event->interval_ms, time));
    if (event->interval_bad)
        buf_puts(out, ", its interval label is no duration");
}
