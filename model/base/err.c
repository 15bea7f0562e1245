/* err.c - one error, one line (style.md 3; after flux's errprintf). */
#include "model/base/err.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "model/base/mem.h"
#include "model/base/utf8.h"

struct kind_facts {
    const char *name;
    int exit_code;
};

static const struct kind_facts kinds[] = {
    [ERR_NONE] = {"none", 0},
    [ERR_USAGE] = {"usage", 2},
    [ERR_CONFIG] = {"config", 2},
    [ERR_INPUT] = {"input", 2},
    [ERR_TOO_LARGE] = {"too_large", 2},
    [ERR_INFEASIBLE] = {"infeasible", 3},
    [ERR_TIMEOUT] = {"timeout", 4},
    [ERR_NOT_FOUND] = {"not_found", 1},
    [ERR_CONFLICT] = {"conflict", 1},
    [ERR_REFUSED] = {"refused", 1},
    [ERR_UNREACHABLE] = {"unreachable", 1},
    [ERR_IO] = {"io", 1},
    [ERR_INTERNAL] = {"internal", 1},
};

/* Keeps the promise of the header: valid UTF-8 in one line, whatever was printed into it. */
static void text_tidy(char *text)
{
    size_t size = strlen(text), i = 0;

    while (i < size) {
        size_t step = utf8_step(text + i, size - i);
        if (step == 0) {
            /* A character that the end of the buffer cut is dropped, a wrong byte replaced. */
            if (size - i < 4 && utf8_is_cut(text + i, size - i)) {
                text[i] = '\0';
                return;
            }
            text[i] = '?';
            step = 1;
        } else if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f) {
            text[i] = ' ';
        }
        i += step;
    }
}

int err_set(struct err *err, enum err_kind kind, const char *fmt, ...)
{
    char text[sizeof err->text]; /* the arguments may point into err->text */
    va_list ap;

    assert(err);
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    text_tidy(text);
    err->kind = kind;
    memcpy(err->text, text, sizeof text);
    return -1;
}

int err_prefix(struct err *err, const char *fmt, ...)
{
    char text[sizeof err->text];
    va_list ap;

    assert(err);
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    strncat(text, ": ", sizeof text - 1 - strlen(text));
    strncat(text, err->text, sizeof text - 1 - strlen(text));
    text_tidy(text);
    memcpy(err->text, text, sizeof text);
    return -1;
}

int err_exit_code(enum err_kind kind)
{
    assert((size_t)kind < ARRAY_LEN(kinds));
    return kinds[kind].exit_code;
}

const char *err_kind_name(enum err_kind kind)
{
    assert((size_t)kind < ARRAY_LEN(kinds));
    return kinds[kind].name;
}

enum err_kind err_kind_from_name(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (strcmp(kinds[i].name, name) == 0)
            return (enum err_kind)i;
    return ERR_INTERNAL;
}
