/* source.c - what every adapter needs: the options of its source, and the notes of an inspection
 * (adapter.h). */
#include "adapters/adapter.h"
#include "model/base/mem.h"
#include "model/base/names.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *source_option(const struct source *source, const char *name, const char *fallback)
{
    for (size_t i = 0; i < source->n_options; i++)
        if (strcmp(source->options[i].name, name) == 0)
            return source->options[i].value;
    return fallback;
}

static const struct option_spec *spec_find(const struct option_spec *spec, const char *name)
{
    for (; spec && spec->name; spec++)
        if (strcmp(spec->name, name) == 0)
            return spec;
    return NULL;
}

static int unknown_option(const struct source *source, const char *name,
                          const struct option_spec *spec, struct err *err)
{
    size_t n = 0;
    while (spec && spec[n].name)
        n++;
    AUTO_FREE const char **known = mem_array(n + 1, sizeof *known);
    for (size_t i = 0; i < n; i++)
        known[i] = spec[i].name;
    const char *near = names_nearest(name, known);
    return err_set(err, ERR_CONFIG, "source %s (%s): unknown option %s%s%s%s", source->name,
                   source->type, name, near ? "; did you mean " : "", near ? near : "",
                   near ? "?" : "");
}

int source_check(const struct source *source, const struct option_spec *spec, struct err *err)
{
    for (size_t i = 0; i < source->n_options; i++) {
        const char *name = source->options[i].name;
        if (!spec_find(spec, name))
            return unknown_option(source, name, spec, err);
        for (size_t j = 0; j < i; j++)
            if (strcmp(source->options[j].name, name) == 0)
                return err_set(err, ERR_CONFIG, "source %s (%s): option %s is given twice",
                               source->name, source->type, name);
    }
    for (const struct option_spec *s = spec; s && s->name; s++)
        if (s->required && !source_option(source, s->name, NULL))
            return err_set(err, ERR_CONFIG, "source %s (%s): option %s is missing (%s)",
                           source->name, source->type, s->name, s->help);
    return 0;
}

void inspection_note(struct inspection *in, const char *kind, int64_t count, const char *fmt, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, fmt);
    if (vasprintf(&text, fmt, args) < 0)
        abort();
    va_end(args);
    struct note *note = ARRAY_PUSH(in->notes, in->n_notes);
    note->kind = mem_strdup(kind);
    note->text = text;
    note->count = count;
}

void inspection_wipe(struct inspection *in)
{
    for (size_t i = 0; i < in->n_notes; i++) {
        free(in->notes[i].kind);
        free(in->notes[i].text);
    }
    free(in->notes);
    in->notes = NULL;
    in->n_notes = 0;
}
