/* log.c - one line per fact on stderr. The level, format and program name are the process's: the
 * one global that style.md 3 allows. */
#include "model/base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/base/buf.h"
#include "model/base/clock.h"
#include "model/base/file.h"
#include "model/base/json.h"
#include "model/base/mem.h"
#include "model/base/utf8.h"

static struct {
    const char *program;
    enum log_level level;
    enum log_format format;
} state = {"remap", LOG_LEVEL_INFO, LOG_FORMAT_TEXT};

static const char *const level_names[] = {
    [LOG_LEVEL_ERROR] = "error",
    [LOG_LEVEL_WARN] = "warn",
    [LOG_LEVEL_INFO] = "info",
    [LOG_LEVEL_DEBUG] = "debug",
};

int log_level_from_name(const char *name, enum log_level *out)
{
    for (size_t i = 0; i < ARRAY_LEN(level_names); i++) {
        if (strcmp(level_names[i], name) == 0) {
            *out = (enum log_level)i;
            return 0;
        }
    }
    return -1;
}

void log_init(const char *program, enum log_level level, enum log_format format)
{
    const char *env_level = getenv("REMAP_LOG_LEVEL");
    const char *env_format = getenv("REMAP_LOG_FORMAT");

    state.program = program;
    state.level = level;
    state.format = format;
    if (env_level && log_level_from_name(env_level, &state.level) < 0)
        log_warn("REMAP_LOG_LEVEL is not error, warn, info or debug: ignored");
    if (env_format && strcmp(env_format, "json") == 0)
        state.format = LOG_FORMAT_JSON;
    else if (env_format && strcmp(env_format, "text") == 0)
        state.format = LOG_FORMAT_TEXT;
    else if (env_format)
        log_warn("REMAP_LOG_FORMAT is not text or json: ignored");
}

bool log_enabled(enum log_level level)
{
    return level <= state.level;
}

/* One line stays one line, and a terminal is never sent escape sequences from outside. */
static void put_printable(struct buf *out, const char *text)
{
    for (size_t size = strlen(text); size > 0;) {
        size_t step = utf8_step(text, size);
        if (step == 1 && ((unsigned char)*text < 0x20 || *text == 0x7f))
            buf_printf(out, *text == '\n' ? "\\n" : "\\x%02x", (unsigned char)*text);
        else if (step == 0)
            buf_printf(out, "\\x%02x", (unsigned char)*text);
        else
            buf_add(out, text, step);
        step = step ? step : 1;
        text += step;
        size -= step;
    }
}

static void log_line(enum log_level level, const char *fmt, va_list ap)
{
    AUTO_BUF struct buf line = BUF_INIT;
    char at[CLOCK_TEXT_SIZE], *text;
    struct err err = ERR_INIT;

    if (!log_enabled(level) || vasprintf(&text, fmt, ap) < 0)
        return;
    clock_iso(clock_wall_ms(), at);
    if (state.format == LOG_FORMAT_JSON) {
        buf_printf(&line, "{\"at\":\"%s\",\"level\":\"%s\",\"program\":", at, level_names[level]);
        json_put_text(&line, state.program);
        buf_puts(&line, ",\"text\":");
        json_put_text(&line, text);
        buf_puts(&line, "}\n");
    } else {
        buf_printf(&line, "%s %s %s: ", at, state.program, level_names[level]);
        put_printable(&line, text);
        buf_puts(&line, "\n");
    }
    free(text);
    /* Nobody is left to tell when stderr is gone. */
    (void)file_write_fd(STDERR_FILENO, line.data, line.size, &err);
}

void log_error(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    log_line(LOG_LEVEL_ERROR, fmt, ap);
    va_end(ap);
}

void log_warn(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    log_line(LOG_LEVEL_WARN, fmt, ap);
    va_end(ap);
}

void log_info(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    log_line(LOG_LEVEL_INFO, fmt, ap);
    va_end(ap);
}

void log_debug(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    log_line(LOG_LEVEL_DEBUG, fmt, ap);
    va_end(ap);
}

const char *log_quote(const char *text, char out[LOG_QUOTE_SIZE])
{
    static const char cut[] = "…\"";
    size_t n = 0, left = strlen(text);

    if (*text && !strpbrk(text, " \t\n\r\"\\="))
        return text;
    out[n++] = '"';
    while (left > 0) {
        size_t step = utf8_step(text, left);
        step = step ? step : 1;
        if (n + step + 1 + sizeof cut > LOG_QUOTE_SIZE) {
            memcpy(out + n, cut, sizeof cut);
            return out;
        }
        if (*text == '"' || *text == '\\')
            out[n++] = '\\';
        memcpy(out + n, text, step);
        n += step;
        text += step;
        left -= step;
    }
    out[n++] = '"';
    out[n] = '\0';
    return out;
}
