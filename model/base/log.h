/* log.h - one line per fact on stderr, `key=value` or JSON. Programs log; libraries return errors.
 *
 * The format is printf's, the fields are written by the caller:
 *     log_info("cycle started cycle=%" PRId64 " app=%s", id, app)
 * Values that may hold spaces go through log_quote(). A line is one write(2): lines of several
 * processes on one stderr do not mix. */
#ifndef REMAP_BASE_LOG_H
#define REMAP_BASE_LOG_H

#include <stdbool.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };
enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };

/* `program` is borrowed for the life of the process. $REMAP_LOG_LEVEL (error|warn|info|debug) and
 * $REMAP_LOG_FORMAT (text|json) win over the arguments. Before log_init: text, info. */
void log_init(const char *program, enum log_level level, enum log_format format);
int log_level_from_name(const char *name, enum log_level *out); /* -1 when unknown */
bool log_enabled(enum log_level level);

#define LOG_QUOTE_SIZE 256
/* `text` as it is when it needs no quotes, else quoted and escaped in `out`, cut with … at its
 * end. Returns either. */
const char *log_quote(const char *text, char out[LOG_QUOTE_SIZE]);

void log_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
