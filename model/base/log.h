/* log.h - one line per fact on stderr, `key=value` or JSON. Programs log; libraries return errors.
 *
 * log_info("cycle", "id", log_i(42), "state", log_s("planning"), NULL) is not how it looks: the
 * format is printf's, with the fields written by the caller:
 *     log_info("cycle started cycle=%lld app=%s", …)
 * Values with spaces are quoted by the caller with %s of log_quote(). */
#ifndef REMAP_BASE_LOG_H
#define REMAP_BASE_LOG_H

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };
enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };

/* `program` is borrowed for the life of the process. Level and format may also come from
 * $REMAP_LOG_LEVEL (error|warn|info|debug) and $REMAP_LOG_FORMAT (text|json). */
void log_init(const char *program, enum log_level level, enum log_format format);
int log_level_from_name(const char *name, enum log_level *out);

void log_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
