/* json_read.h - the quick way of json_parse, nothing for others. */
#ifndef REMAP_BASE_JSON_READ_H
#define REMAP_BASE_JSON_READ_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* The tree that json_loadb(…, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY) makes, or NULL where it would
 * make none or this reader is not sure: ask jansson then. The text is valid UTF-8, has no zero byte
 * and no more levels than a stack bears. */
json_t *json_read(const char *text, size_t size);

#endif
