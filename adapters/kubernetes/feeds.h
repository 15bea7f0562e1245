/* feeds.h - the objects of a cluster kept up to date: each kind is listed once and watched from there
 * on (interfaces.md 1.2), so that a later look costs what has changed since. Inside
 * adapters/kubernetes.
 *
 * A kind that may not be read (403) or does not exist (404) takes its feature away, not the
 * inspection; only nodes and pods are needed in any case. */
#ifndef REMAP_KUBERNETES_FEEDS_H
#define REMAP_KUBERNETES_FEEDS_H

#include "adapters/adapter.h"
#include "adapters/kubernetes/api.h"
#include "adapters/kubernetes/objects.h"

struct feeds;

/* Borrows both. */
struct feeds *feeds_new(struct kube_api *api, struct kube_objects *objects);
void feeds_free(struct feeds *feeds);
AUTO_DEFINE(feeds)

/* Everything that has happened until now is in the objects: the first time by lists, then by watches,
 * opened here and read until they fall silent; by a list again where a watch was lost for so long
 * that the server has forgotten what came after. `spaces` (ended by NULL; empty: all) are
 * the only namespaces looked at where a kind may not be read in all of them. */
int feeds_update(struct feeds *feeds, const char *const *spaces, struct err *err);

/* Takes in what the watches have, without waiting: to be called every second or so between updates,
 * or the server hangs up. Only watches that an update has opened. */
void feeds_turn(struct feeds *feeds);

/* Lists that were read, and lines of watches, so far. */
struct feeds_count {
    int64_t lists, lines;
};
struct feeds_count feeds_count(const struct feeds *feeds);

/* What could not be read and what that means, as notes. */
void feeds_note(const struct feeds *feeds, struct inspection *in);

#endif
