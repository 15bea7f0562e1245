/* quoted.h - JSON in tests that can be read: single quotes stand for double ones. */
#ifndef REMAP_TESTS_QUOTED_H
#define REMAP_TESTS_QUOTED_H

#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "model/base/json.h"
#include "model/base/mem.h"

/* Caller json_decref()s; the test fails where it cannot be read. */
static inline json_t *quoted(const char *text)
{
    struct err err = ERR_INIT;
    char *copy = mem_strdup(text);
    for (char *c = copy; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    json_t *tree = json_parse(copy, strlen(copy), &json_limits_document, &err);
    if (!tree)
        fail_msg("%s in %s", err.text, copy);
    free(copy);
    return tree;
}

#endif
