/* scope.h - which namespaces and services are an application's. */
#ifndef REMAP_KUBERNETES_SCOPE_H
#define REMAP_KUBERNETES_SCOPE_H

#include "adapters/adapter.h"

/* Is it one of the list, which ends with NULL? No list holds nothing. */
bool scope_lists(const char *const *list, const char *name);
/* Is the namespace the app's? An app without a list has all; so does none (NULL). */
bool scope_has_space(const struct app_scope *app, const char *space);
/* Is the service, by its whole name (`namespace/name`)? The app's list may hold the name alone. */
bool scope_has_service(const struct app_scope *app, const char *full);

#endif
