/* template.c - PromQL texts of the configuration (prometheus.h). No parser of PromQL: what a query
 * must hold is told by its $words. */
#include "adapters/prometheus/prometheus.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static bool word_char(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* The size of the word after '$'; 0 where none follows, as in the regular expression "a$". */
static size_t word_size(const char *at)
{
    size_t n = 0;
    if (isdigit((unsigned char)at[0]))
        return 0; /* "$1" of label_replace() */
    while (word_char(at[n]))
        n++;
    return n;
}

bool prom_uses(const char *query, const char *name)
{
    size_t size = strlen(name);
    for (const char *at = query; (at = strchr(at, '$')); at++)
        if (word_size(at + 1) == size && memcmp(at + 1, name, size) == 0)
            return true;
    return false;
}

int prom_expand(const char *query, const struct prom_var *vars, size_t n_vars, struct buf *out,
                struct err *err)
{
    for (const char *at = query; *at;) {
        size_t size = *at == '$' ? word_size(at + 1) : 0;
        if (!size) {
            buf_add(out, at++, 1);
            continue;
        }
        const struct prom_var *var = NULL;
        for (size_t i = 0; i < n_vars && !var; i++)
            if (strlen(vars[i].name) == size && memcmp(vars[i].name, at + 1, size) == 0)
                var = &vars[i];
        if (!var)
            return err_set(err, ERR_CONFIG, "there is no $%.*s here", (int)size, at + 1);
        if (!*var->value && out->size && out->data[out->size - 1] == ',')
            out->data[--out->size] = '\0';
        buf_puts(out, var->value);
        at += 1 + size;
    }
    return 0;
}

void prom_metric_names(const char *query, struct buf *out)
{
    bool quoted = false;
    for (const char *at = query; *at; at++) {
        if (*at == '\\' && quoted && at[1]) {
            at++;
            continue;
        }
        if (*at == '"')
            quoted = !quoted;
        if (*at != '{' || quoted)
            continue;
        const char *from = at;
        while (from > query && (word_char(from[-1]) || from[-1] == ':'))
            from--;
        if (from == at)
            continue;
        AUTO_FREE char *name = mem_strndup(from, (size_t)(at - from));
        const char *known = out->data ? strstr(out->data, name) : NULL;
        size_t size = strlen(name);
        if (known && (known == out->data || known[-1] == '|') &&
            (known[size] == '\0' || known[size] == '|'))
            continue;
        buf_printf(out, "%s%s", out->size ? "|" : "", name);
    }
}

static const char *matcher_end(const char *at)
{
    if (!isalpha((unsigned char)*at) && *at != '_')
        return NULL;
    while (word_char(*at))
        at++;
    if (at[0] == '!' && (at[1] == '=' || at[1] == '~'))
        at += 2;
    else if (at[0] == '=')
        at += at[1] == '~' ? 2 : 1;
    else
        return NULL;
    if (*at++ != '"')
        return NULL;
    for (; *at != '"'; at++) {
        if (!*at || *at == '\n')
            return NULL;
        if (*at == '\\' && at[1])
            at++;
    }
    return at + 1;
}

int prom_matchers_check(const char *text, struct err *err)
{
    const char *at = text;
    while (*at) {
        const char *end = matcher_end(at);
        if (!end || (*end && *end != ',') || (*end == ',' && !end[1]))
            return err_set(err, ERR_CONFIG,
                           "matchers must be such as cluster=\"prod\",region=~\"eu.*\", not %.80s",
                           text);
        at = *end ? end + 1 : end;
    }
    return 0;
}

const char **prom_list(const char *text, size_t *n, char **owned)
{
    const char **list = NULL;
    char *rest = *owned = mem_strdup(text);
    *n = 0;
    for (char *item; (item = strsep(&rest, ", "));)
        if (*item)
            *ARRAY_PUSH(list, *n) = item;
    return list ? list : mem_array(1, sizeof *list);
}
