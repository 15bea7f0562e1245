/* secret.h - secrets in files, read again at every use so that they can be changed. */
#ifndef REMAP_MONITOR_SECRET_H
#define REMAP_MONITOR_SECRET_H

#include <stdbool.h>
#include "model/base/err.h"

/* The file's text without the line end that editors leave. ERR_CONFIG where that is nothing; the
 * errors of file_read(). Caller ends it with secret_free(). */
int secret_read(const char *path, const char **out, struct err *err);
/* Is `given` the secret? The time that it takes tells no more than its length; nothing is no secret. */
bool secret_equal(const char *given, const char *secret);
void secret_free(const char *secret); /* overwrites it; accepts NULL */

#endif
