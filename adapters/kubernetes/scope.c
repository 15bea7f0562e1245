/* scope.c - see scope.h; the names are those of interfaces.md 1.9, rule 13. */
#include "adapters/kubernetes/scope.h"

#include <string.h>

bool scope_lists(const char *const *list, const char *name)
{
    for (; list && *list; list++)
        if (strcmp(*list, name) == 0)
            return true;
    return false;
}

bool scope_has_space(const struct app_scope *app, const char *space)
{
    return !app || !app->namespaces || !app->namespaces[0] ||
           (space && scope_lists(app->namespaces, space));
}

bool scope_has_service(const struct app_scope *app, const char *full)
{
    if (!app || !app->services || !app->services[0] || scope_lists(app->services, full))
        return true;
    const char *slash = strrchr(full, '/');
    return slash && scope_lists(app->services, slash + 1);
}
