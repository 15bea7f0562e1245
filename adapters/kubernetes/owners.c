/* owners.c - see owners.h. An entry's fieldsV1 is a tree: "f:NAME" a member, "k:{…}" a list element
 * by key, "." the thing itself; an empty object ends a path. Entries of a subresource (status,
 * scale) speak of other things. */
#include "adapters/kubernetes/owners.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "adapters/kubernetes/kube.h"

/* The sub-tree of an entry at the path, NULL where the entry has nothing there. */
static const json_t *entry_at(const json_t *entry, const owners_path path)
{
    const json_t *at = kube_get(entry, "fieldsV1");
    char key[80];
    for (size_t i = 0; path[i]; i++) {
        snprintf(key, sizeof key, "f:%.70s", path[i]);
        at = kube_get(at, key);
    }
    return at;
}

static bool is_ours(const json_t *entry)
{
    const char *manager = kube_text(entry, "manager");
    return manager && strcmp(manager, OWNERS_SELF) == 0;
}

static bool is_of_part(const json_t *entry)
{
    const char *part = kube_text(entry, "subresource");
    return part && part[0];
}

static struct owner owner_of(const json_t *entry)
{
    const char *manager = kube_text(entry, "manager"), *operation = kube_text(entry, "operation");
    const char *when = kube_text(entry, "time");
    return (struct owner){.manager = manager && manager[0] ? manager : "(unnamed)",
                          .apply = operation && strcmp(operation, "Apply") == 0,
                          .time_ms = when ? owners_time_ms(when) : -1};
}

bool owners_of(const json_t *workload, const owners_path path, struct owner *out)
{
    size_t i;
    const json_t *entry;
    bool found = false;
    json_array_foreach(kube_path(workload, "metadata", "managedFields"), i, entry)
    {
        if (is_ours(entry) || is_of_part(entry) || !entry_at(entry, path))
            continue;
        struct owner one = owner_of(entry);
        if (!found || (one.apply && !out->apply))
            *out = one;
        found = true;
    }
    return found;
}

bool owners_newest(const json_t *workload, const owners_path path, struct owner *out)
{
    size_t i;
    const json_t *entry;
    bool found = false;
    json_array_foreach(kube_path(workload, "metadata", "managedFields"), i, entry)
    {
        if (is_ours(entry) || is_of_part(entry) || !entry_at(entry, path))
            continue;
        struct owner one = owner_of(entry);
        if (!found || one.time_ms > out->time_ms)
            *out = one;
        found = true;
    }
    return found;
}

bool owners_own(const json_t *workload, const owners_path path)
{
    size_t i;
    const json_t *entry;
    json_array_foreach(kube_path(workload, "metadata", "managedFields"), i, entry)
        if (is_ours(entry) && !is_of_part(entry) && entry_at(entry, path))
            return true;
    return false;
}

bool owners_patched(const json_t *workload)
{
    size_t i;
    const json_t *entry;
    json_array_foreach(kube_path(workload, "metadata", "managedFields"), i, entry)
        if (is_ours(entry) && !is_of_part(entry) && !owner_of(entry).apply)
            return true;
    return false;
}

int64_t owners_time_ms(const char *text)
{
    struct tm tm = {0};
    int end = 0;
    if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour,
               &tm.tm_min, &tm.tm_sec, &end) != 6)
        return -1;
    size_t fraction = text[end] == '.' ? 1 + strspn(text + end + 1, "0123456789") : 0;
    if (strcmp(text + end + fraction, "Z") != 0)
        return -1;
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    if (tm.tm_year < 70 || tm.tm_mon < 0 || tm.tm_mon > 11 || tm.tm_mday < 1 || tm.tm_mday > 31)
        return -1;
    return (int64_t)timegm(&tm) * 1000;
}
