/* yaml.c - the strict first pass over libyaml's events, and the check of its tree against a
 * libcyaml schema before libcyaml itself loads it. Why two passes: libcyaml 1.3.1 alone names the
 * wrong line, ignores second documents, reads 010 as 8 and lets aliases explode (design.md 7). */
#include "model/base/yaml.h"

#include <cyaml/cyaml.h>
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "model/base/file.h"
#include "model/base/names.h"

enum node_kind { NODE_SCALAR, NODE_LIST, NODE_MAP };

struct node {
    enum node_kind kind;
    int line;
    char *key;  /* as a member of a map; NULL elsewhere */
    char *text; /* scalar */
    size_t size;
    bool plain; /* scalar without quotes */
    struct node **items;
    size_t n_items;
};

struct ydoc {
    char *name;
    char *text;
    size_t size;
    struct node *root;
};

static void node_free(struct node *node)
{
    if (!node)
        return;
    for (size_t i = 0; i < node->n_items; i++)
        node_free(node->items[i]); /* as deep as YAML_MAX_DEPTH */
    free(node->items);
    free(node->key);
    free(node->text);
    free(node);
}

/* --- first pass: events into a tree --- */

struct builder {
    struct ydoc *doc;
    struct node *stack[YAML_MAX_DEPTH];
    size_t depth;
    char *key; /* of the member whose value comes next */
    size_t n_values;
};

static int error_at(const struct ydoc *doc, struct err *err, size_t line, const char *text)
{
    return err_set(err, ERR_CONFIG, "%s:%zu: %s", doc->name, line, text);
}

/* Is there a tab among the blanks that begin this line (from 1)? */
static bool line_begins_with_tab(const struct ydoc *doc, size_t line)
{
    const char *p = doc->text, *end = doc->text + doc->size;
    for (size_t at = 1; at < line && p < end; at++) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        p = newline ? newline + 1 : end;
    }
    while (p < end && *p == ' ')
        p++;
    return p < end && *p == '\t';
}

static int parser_error(const struct ydoc *doc, const yaml_parser_t *parser, struct err *err)
{
    size_t line = parser->problem_mark.line + 1;
    const char *problem = parser->problem ? parser->problem : "not YAML";
    if (parser->error == YAML_READER_ERROR) {
        line = 1;
        for (size_t i = 0; i < parser->problem_offset && i < doc->size; i++)
            line += doc->text[i] == '\n';
        return error_at(doc, err, line, problem);
    }
    if (line_begins_with_tab(doc, line))
        return error_at(doc, err, line, "a tab in the indentation; YAML wants spaces");
    if (parser->context)
        return err_set(err, ERR_CONFIG, "%s:%zu: %s (%s)", doc->name, line, problem,
                       parser->context);
    return error_at(doc, err, line, problem);
}

static const struct node *map_get(const struct node *map, const char *key, size_t size)
{
    for (size_t i = 0; i < map->n_items; i++)
        if (strlen(map->items[i]->key) == size && !memcmp(map->items[i]->key, key, size))
            return map->items[i];
    return NULL;
}

/* A scalar where a map expects its next key. */
static int builder_key(struct builder *b, const yaml_event_t *event, struct err *err)
{
    const struct node *map = b->stack[b->depth - 1];
    const char *key = (const char *)event->data.scalar.value;
    size_t size = event->data.scalar.length, line = event->start_mark.line + 1;
    if (size == 0 || size > 253 || strlen(key) != size)
        return error_at(b->doc, err, line, "a key is empty or longer than 253 bytes");
    /* Quadratic in the members of one map; every real map is short, so long ones are refused. */
    if (map->n_items >= 1000)
        return error_at(b->doc, err, line, "more than 1000 keys in one mapping");
    const struct node *twice = map_get(map, key, size);
    if (twice)
        return err_set(err, ERR_CONFIG, "%s:%zu: key \"%s\" is there twice (first in line %d)",
                       b->doc->name, line, key, twice->line);
    b->key = mem_strndup(key, size);
    return 0;
}

/* Adds a value to what is open; containers are opened. */
static int builder_value(struct builder *b, const yaml_event_t *event, enum node_kind kind,
                         struct err *err)
{
    size_t line = event->start_mark.line + 1;
    struct node *parent = b->depth ? b->stack[b->depth - 1] : NULL;
    if (parent && parent->kind == NODE_MAP && !b->key)
        return error_at(b->doc, err, line, "a key must be a plain word");
    if (++b->n_values > YAML_MAX_VALUES)
        return error_at(b->doc, err, line, "more than 200000 values");
    if (kind != NODE_SCALAR && b->depth == YAML_MAX_DEPTH)
        return error_at(b->doc, err, line, "nested deeper than 32 levels");
    struct node *node = mem_alloc(sizeof *node);
    node->kind = kind;
    node->line = (int)line;
    if (parent && parent->kind == NODE_MAP)
        node->key = steal(b->key);
    if (kind == NODE_SCALAR) {
        node->size = event->data.scalar.length;
        node->text = mem_strndup((const char *)event->data.scalar.value, node->size);
        node->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    }
    if (parent)
        *ARRAY_PUSH(parent->items, parent->n_items) = node;
    else
        b->doc->root = node;
    if (kind != NODE_SCALAR)
        b->stack[b->depth++] = node;
    else if (strlen(node->text) != node->size)
        return error_at(b->doc, err, line, "a NUL byte in a text");
    return 0;
}

static int refuse_anchor(struct builder *b, const yaml_event_t *event, const yaml_char_t *anchor,
                         const yaml_char_t *tag, struct err *err)
{
    size_t line = event->start_mark.line + 1;
    if (anchor)
        return error_at(b->doc, err, line, "anchors (&name) are not supported");
    if (tag)
        return error_at(b->doc, err, line, "tags (!name) are not supported");
    return 0;
}

static int builder_scalar(struct builder *b, const yaml_event_t *event, struct err *err)
{
    if (refuse_anchor(b, event, event->data.scalar.anchor, event->data.scalar.tag, err))
        return -1;
    if (b->depth && b->stack[b->depth - 1]->kind == NODE_MAP && !b->key)
        return builder_key(b, event, err);
    return builder_value(b, event, NODE_SCALAR, err);
}

/* One event; *done at the end of the stream. */
static int builder_event(struct builder *b, const yaml_event_t *event, bool *done,
                         struct err *err)
{
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (b->doc->root)
            return error_at(b->doc, err, event->start_mark.line + 1,
                            "a second document begins here; one is expected");
        return 0;
    case YAML_ALIAS_EVENT:
        return error_at(b->doc, err, event->start_mark.line + 1,
                        "aliases (*name) are not supported");
    case YAML_SCALAR_EVENT:
        return builder_scalar(b, event, err);
    case YAML_SEQUENCE_START_EVENT:
        if (refuse_anchor(b, event, event->data.sequence_start.anchor,
                          event->data.sequence_start.tag, err))
            return -1;
        return builder_value(b, event, NODE_LIST, err);
    case YAML_MAPPING_START_EVENT:
        if (refuse_anchor(b, event, event->data.mapping_start.anchor,
                          event->data.mapping_start.tag, err))
            return -1;
        return builder_value(b, event, NODE_MAP, err);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        b->depth--;
        return 0;
    case YAML_STREAM_END_EVENT:
        *done = true;
        return 0;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        return 0;
    }
    return 0;
}

static int build(struct ydoc *doc, struct err *err)
{
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        abort(); /* out of memory: base/mem.c ends the process too */
    /* Without this a byte order mark would switch to UTF-16 and every offset would lie. */
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)doc->text, doc->size);
    struct builder b = {.doc = doc};
    int rc = 0;
    for (bool done = false; !done && rc == 0;) {
        yaml_event_t event;
        if (!yaml_parser_parse(&parser, &event)) {
            rc = parser_error(doc, &parser, err);
            break;
        }
        rc = builder_event(&b, &event, &done, err);
        yaml_event_delete(&event);
    }
    free(b.key);
    yaml_parser_delete(&parser);
    return rc;
}

struct ydoc *ydoc_parse(const char *text, size_t size, const char *name, struct err *err)
{
    if (size > YAML_MAX_BYTES) {
        err_set(err, ERR_TOO_LARGE, "%s: larger than 1 MiB", name);
        return NULL;
    }
    AUTO(ydoc) struct ydoc *doc = mem_alloc(sizeof *doc);
    doc->name = mem_strdup(name);
    doc->text = mem_strndup(text ? text : "", text ? size : 0);
    doc->size = size;
    const char *nul = size ? memchr(text, '\0', size) : NULL;
    if (nul) {
        err_set(err, ERR_CONFIG, "%s: a NUL byte at offset %zu", name, (size_t)(nul - text));
        return NULL;
    }
    if (build(doc, err))
        return NULL;
    if (!doc->root) {
        err_set(err, ERR_CONFIG, "%s: is empty", name);
        return NULL;
    }
    return steal(doc);
}

struct ydoc *ydoc_read(const char *path, struct err *err)
{
    AUTO_BUF struct buf text = BUF_INIT;
    if (file_read(path, YAML_MAX_BYTES, &text, err))
        return NULL;
    return ydoc_parse(text.data, text.size, path, err);
}

void ydoc_free(struct ydoc *doc)
{
    if (!doc)
        return;
    node_free(doc->root);
    free(doc->name);
    free(doc->text);
    free(doc);
}

/* --- places --- */

/* The value at `path`, or the deepest one above it (*exact false). */
static const struct node *node_at(const struct ydoc *doc, const char *path, bool *exact)
{
    const struct node *node = doc->root;
    *exact = false;
    for (const char *p = path; *p;) {
        const struct node *next = NULL;
        if (*p == '[') {
            char *end;
            unsigned long i = strtoul(p + 1, &end, 10);
            if (node->kind == NODE_LIST && i < node->n_items)
                next = node->items[i];
            p = *end ? end + 1 : end;
        } else {
            if (*p == '.')
                p++;
            size_t n = strcspn(p, ".[");
            if (node->kind == NODE_MAP)
                next = map_get(node, p, n);
            p += n;
        }
        if (!next)
            return node;
        node = next;
    }
    *exact = true;
    return node;
}

bool ydoc_has(const struct ydoc *doc, const char *path)
{
    bool exact;
    node_at(doc, path, &exact);
    return exact;
}

int ydoc_line(const struct ydoc *doc, const char *path)
{
    bool exact;
    return node_at(doc, path, &exact)->line;
}

static int verror(const struct ydoc *doc, struct err *err, int line, const char *path,
                  const char *fmt, va_list args)
{
    char text[400];
    vsnprintf(text, sizeof text, fmt, args);
    return err_set(err, ERR_CONFIG, "%s:%d: %s%s%s", doc->name, line, path, *path ? ": " : "",
                   text);
}

int ydoc_error(const struct ydoc *doc, struct err *err, const char *path, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    verror(doc, err, ydoc_line(doc, path), path, fmt, args);
    va_end(args);
    return -1;
}

/* --- second pass: the tree against a schema --- */

/* Where the walk is: a chain on the stack, written out only for errors. */
struct place {
    const struct place *up;
    const struct node *node;
    size_t index;
};

struct walk {
    const struct ydoc *doc;
    struct err *err;
};

static void place_text(const struct place *place, struct buf *out)
{
    if (!place->up)
        return;
    place_text(place->up, out);
    if (place->node->key)
        buf_printf(out, "%s%s", place->up->up ? "." : "", place->node->key);
    else
        buf_printf(out, "[%zu]", place->index);
}

static int complain(const struct walk *w, const struct place *place, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static int complain(const struct walk *w, const struct place *place, const char *fmt, ...)
{
    AUTO_BUF struct buf path = BUF_INIT;
    place_text(place, &path);
    va_list args;
    va_start(args, fmt);
    verror(w->doc, w->err, place->node->line, path.data ? path.data : "", fmt, args);
    va_end(args);
    return -1;
}

static int check_value(const struct walk *w, const struct place *place,
                       const cyaml_schema_value_t *schema);

/* The nearest of the schema's keys, or NULL. */
static const char *nearest_key(const cyaml_schema_field_t *fields, const char *key)
{
    const char **known = NULL;
    size_t n = 0;
    for (const cyaml_schema_field_t *f = fields; f->key; f++)
        *ARRAY_PUSH(known, n) = f->key;
    (void)ARRAY_PUSH(known, n); /* NULL ends the list */
    const char *nearest = names_nearest(key, known);
    free(known);
    return nearest;
}

static int check_map(const struct walk *w, const struct place *place,
                     const cyaml_schema_value_t *schema)
{
    const struct node *node = place->node;
    if (node->kind != NODE_MAP)
        return complain(w, place, "must be a mapping (key: value lines)");
    for (size_t i = 0; i < node->n_items; i++) {
        const struct place member = {place, node->items[i], 0};
        const cyaml_schema_field_t *f = schema->mapping.fields;
        while (f->key && strcmp(f->key, member.node->key) != 0)
            f++;
        if (!f->key) {
            const char *near = nearest_key(schema->mapping.fields, member.node->key);
            return near ? complain(w, &member, "unknown key; did you mean \"%s\"?", near)
                        : complain(w, &member, "unknown key");
        }
        if (check_value(w, &member, &f->value))
            return -1;
    }
    for (const cyaml_schema_field_t *f = schema->mapping.fields; f->key; f++)
        if (!(f->value.flags & CYAML_FLAG_OPTIONAL) && !map_get(node, f->key, strlen(f->key)))
            return complain(w, place, "\"%s\" is missing", f->key);
    return 0;
}

static int check_list(const struct walk *w, const struct place *place,
                      const cyaml_schema_value_t *schema)
{
    const struct node *node = place->node;
    if (node->kind != NODE_LIST)
        return complain(w, place, "must be a list (- lines, or [a, b])");
    if (node->n_items < schema->sequence.min)
        return complain(w, place, "must have at least %u entries", schema->sequence.min);
    if (node->n_items > schema->sequence.max)
        return complain(w, place, "must have at most %u entries", schema->sequence.max);
    for (size_t i = 0; i < node->n_items; i++) {
        const struct place entry = {place, node->items[i], i};
        if (check_value(w, &entry, schema->sequence.entry))
            return -1;
    }
    return 0;
}

/* [-]digits without leading zeros, within the field's size. */
static int check_int(const struct walk *w, const struct place *place,
                     const cyaml_schema_value_t *schema)
{
    const char *text = place->node->text, *digits = text + (*text == '-');
    bool is_signed = schema->type == CYAML_INT;
    if (!*digits || strspn(digits, "0123456789") != strlen(digits) ||
        (!is_signed && digits != text))
        return complain(w, place, "must be %s, not \"%.40s\"",
                        is_signed ? "an integer" : "an integer of 0 or more", text);
    if (digits[0] == '0' && digits[1])
        return complain(w, place, "must not begin with zeros: \"%.40s\"", text);
    errno = 0;
    bool fits;
    if (is_signed) {
        long long value = strtoll(text, NULL, 10);
        int64_t max = schema->data_size >= 8
                          ? INT64_MAX
                          : (INT64_C(1) << (8 * schema->data_size - 1)) - 1;
        fits = !errno && value <= max && value >= -max;
    } else {
        unsigned long long value = strtoull(text, NULL, 10);
        fits = !errno && (schema->data_size >= 8 || value >> (8 * schema->data_size) == 0);
    }
    return fits ? 0 : complain(w, place, "is too large: %.40s", text);
}

static int check_float(const struct walk *w, const struct place *place)
{
    const char *text = place->node->text;
    char *end;
    bool decimal = strspn(text, "0123456789.eE+-") == strlen(text) && strpbrk(text, "0123456789");
    errno = 0;
    double value = strtod(text, &end);
    if (!decimal || *end || (errno && value != 0))
        return complain(w, place, "must be a number, not \"%.40s\"", text);
    return 0;
}

static int check_enum(const struct walk *w, const struct place *place,
                      const cyaml_schema_value_t *schema)
{
    AUTO_BUF struct buf choices = BUF_INIT;
    for (uint32_t i = 0; i < schema->enumeration.count; i++) {
        if (strcmp(schema->enumeration.strings[i].str, place->node->text) == 0)
            return 0;
        buf_printf(&choices, "%s%s", i ? ", " : "", schema->enumeration.strings[i].str);
    }
    return complain(w, place, "must be one of %s, not \"%.40s\"", choices.data,
                    place->node->text);
}

static bool has_no_value(const struct node *node)
{
    static const char *const nothing[] = {"", "~", "null", "Null", "NULL", NULL};
    for (int i = 0; node->kind == NODE_SCALAR && node->plain && nothing[i]; i++)
        if (strcmp(node->text, nothing[i]) == 0)
            return true;
    return false;
}

static int check_scalar(const struct walk *w, const struct place *place,
                        const cyaml_schema_value_t *schema)
{
    const struct node *node = place->node;
    if (node->kind != NODE_SCALAR)
        return complain(w, place, "must be a single value, not a %s",
                        node->kind == NODE_LIST ? "list" : "mapping");
    if (has_no_value(node))
        return complain(w, place, "has no value; give one or remove the key");
    switch (schema->type) {
    case CYAML_INT:
    case CYAML_UINT:
        return check_int(w, place, schema);
    case CYAML_FLOAT:
        return check_float(w, place);
    case CYAML_BOOL:
        if (strcmp(node->text, "true") != 0 && strcmp(node->text, "false") != 0)
            return complain(w, place, "must be true or false, not \"%.40s\"", node->text);
        return 0;
    case CYAML_ENUM:
        return check_enum(w, place, schema);
    case CYAML_STRING:
        if (node->size < schema->string.min)
            return complain(w, place, "must not be empty");
        if (node->size > schema->string.max)
            return complain(w, place, "must have at most %u bytes", schema->string.max);
        return 0;
    default:
        abort(); /* a schema of ours with a type that this reader does not know */
    }
}

static int check_value(const struct walk *w, const struct place *place,
                       const cyaml_schema_value_t *schema)
{
    if (schema->type == CYAML_MAPPING)
        return check_map(w, place, schema);
    if (schema->type == CYAML_SEQUENCE)
        return check_list(w, place, schema);
    return check_scalar(w, place, schema);
}

static const cyaml_config_t loader = {
    .log_fn = NULL,
    .mem_fn = cyaml_mem,
    .log_level = CYAML_LOG_ERROR,
    .flags = CYAML_CFG_NO_ALIAS,
};

int ydoc_load(const struct ydoc *doc, const struct cyaml_schema_value *schema, void **out,
              struct err *err)
{
    const struct walk w = {doc, err};
    const struct place root = {NULL, doc->root, 0};
    if (check_value(&w, &root, schema))
        return -1;
    cyaml_data_t *data = NULL;
    cyaml_err_t rc = cyaml_load_data((const uint8_t *)doc->text, doc->size, &loader, schema, &data,
                                     NULL);
    if (rc != CYAML_OK)
        return err_set(err, ERR_CONFIG, "%s: %s", doc->name, cyaml_strerror(rc));
    *out = data;
    return 0;
}

void ydoc_unload(const struct cyaml_schema_value *schema, void *data)
{
    if (data)
        cyaml_free(&loader, schema, data, 0);
}

/* As deep as YAML_MAX_DEPTH. */
static json_t *node_json(const struct node *node)
{
    if (node->kind == NODE_SCALAR) {
        json_t *text = json_stringn(node->text, node->size);
        return text ? text : json_string(""); /* libyaml lets only UTF-8 through */
    }
    json_t *out = node->kind == NODE_MAP ? json_object() : json_array();
    for (size_t i = 0; i < node->n_items; i++) {
        if (has_no_value(node->items[i]))
            continue;
        json_t *item = node_json(node->items[i]);
        if (node->kind == NODE_LIST)
            json_array_append_new(out, item);
        else if (json_object_set_new(out, node->items[i]->key, item))
            abort(); /* keys are UTF-8 too, so it is memory */
    }
    return out;
}

json_t *ydoc_json(const struct ydoc *doc)
{
    return node_json(doc->root);
}
