/* yaml.h - strict reading of YAML written by people: configuration and scenarios (design.md 7).
 *
 * Two passes. ydoc_parse() (libyaml) builds a light tree that knows the line of every value and
 * refuses what makes YAML dangerous or surprising: aliases and anchors, tags, second documents,
 * doubled keys, tabs as indentation, more than 1 MiB, depth above 32. ydoc_load() checks the tree
 * against a libcyaml schema, so that every complaint carries file, line, path and, for a mistyped
 * key, the nearest known one; then libcyaml fills the structs. Integers are decimal without leading
 * zeros, booleans are true or false, a key without a value is an error.
 *
 *     remap.yaml:12: apps[0].intervall: unknown key; did you mean "interval"?
 *
 * (Names begin with ydoc_ because libyaml itself exports a yaml_free() that ours would replace.)
 *
 * Schema types understood: MAPPING, SEQUENCE, STRING, INT, UINT, FLOAT, BOOL, ENUM. Limits of a
 * schema (string length, entries) are enforced; ranges of numbers are the caller's, by
 * ydoc_error(). */
#ifndef REMAP_BASE_YAML_H
#define REMAP_BASE_YAML_H

#include <stdbool.h>
#include <jansson.h>
#include <stddef.h>
#include "model/base/err.h"
#include "model/base/mem.h"

struct cyaml_schema_value; /* <cyaml/cyaml.h> */
struct ydoc;

#define YAML_MAX_BYTES ((size_t)1 << 20)
#define YAML_MAX_DEPTH 32
/* 1 MiB of "- a\n" would be 262,144 values of about 100 bytes: 26 MB; nothing real needs a tenth. */
#define YAML_MAX_VALUES 200000

/* Reads a file. ERR_NOT_FOUND, ERR_IO, ERR_TOO_LARGE, ERR_CONFIG with `path:line: `. */
struct ydoc *ydoc_read(const char *path, struct err *err);
/* The same from memory; `name` stands for the file in errors. The text is copied. */
struct ydoc *ydoc_parse(const char *text, size_t size, const char *name, struct err *err);
void ydoc_free(struct ydoc *doc);
AUTO_DEFINE(ydoc)

/* Fills *out (allocated by libcyaml; top level must be a MAPPING with CYAML_FLAG_POINTER). The
 * caller frees with ydoc_unload(); strings may be stolen (set the member to NULL), they come from
 * malloc. ERR_CONFIG names line, path and problem. */
int ydoc_load(const struct ydoc *doc, const struct cyaml_schema_value *schema, void **out,
              struct err *err);
void ydoc_unload(const struct cyaml_schema_value *schema, void *data);

/* The whole document, for those of other programs (a kubeconfig), whose further keys are no concern of
 * ours: every single value is a text, members without a value are left out. Caller json_decref()s. */
json_t *ydoc_json(const struct ydoc *doc);

/* ERR_CONFIG "file:line: path: text" for a value that the schema cannot judge. `path` is like
 * "apps[0].interval"; where it is absent the line is that of the nearest thing above it. "" is the
 * document. Returns -1. */
int ydoc_error(const struct ydoc *doc, struct err *err, const char *path, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
bool ydoc_has(const struct ydoc *doc, const char *path);
/* Line of a value (from 1), of the nearest thing above it when absent. */
int ydoc_line(const struct ydoc *doc, const char *path);

#endif
