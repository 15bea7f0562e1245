/* owners.h - who set what: metadata.managedFields (interfaces.md 1.5 "Who owns the list", 1.9 rules
 * 1, 9 and 11; kubernetes-sigs/structured-merge-diff:fieldpath/serialize.go). Pure. */
#ifndef REMAP_KUBERNETES_OWNERS_H
#define REMAP_KUBERNETES_OWNERS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define OWNERS_SELF "remap" /* our field manager (contract.md 7) */

struct owner {
    const char *manager; /* borrowed from the object; "(unnamed)" where it has no name */
    bool apply;          /* by server-side apply; else by update, which takes no offence */
    int64_t time_ms;     /* wall time of its newest change; -1 unknown */
};

/* A path of names below the object, ended by NULL: "spec", "template", … */
typedef const char *owners_path[8];

/* Another manager than ours that owns this very field (of an atomic list: the list). Where there are
 * several, one by server-side apply first. false: nobody. */
bool owners_of(const json_t *workload, const owners_path path, struct owner *out);

/* The newest change by others of anything at or below the path. */
bool owners_newest(const json_t *workload, const owners_path path, struct owner *out);

/* Do we own it? By apply or by update. */
bool owners_own(const json_t *workload, const owners_path path);

/* Have we patched it (undone a later move, marked a pin), so that we own something by update? An apply
 * of ours would be in conflict with ourselves then. */
bool owners_patched(const json_t *workload);

/* "2026-11-20T23:45:00Z", also with fractions, as wall time; -1 where it is no time of UTC. */
int64_t owners_time_ms(const char *text);

#endif
