/* merge.h - one table of traffic from several sources that watch the same calls (paper §6.1).
 *
 * The rule, for each ordered pair of services: the source that tells most messages counts, since
 * sampled tracers and parts of a mesh see fewer; of equals the one that is listed first. Its rows
 * stay, those of the others go: never the sum. What its rows do not say, sizes and response times, is
 * taken as the mean per message from the other source that knows it for most messages. Of traffic
 * that fits nothing, the source with most of it counts as well. */
#ifndef REMAP_MONITOR_MERGE_H
#define REMAP_MONITOR_MERGE_H

#include "adapters/adapter.h"

struct merge {
    struct inspection *in;
    size_t *ends; /* rows of the model after each source */
    size_t n_ends, n_spoke; /* n_spoke: sources that had rows */
    int64_t unmapped_count, unmapped_bytes; /* of the source with most, told without an identity */
};

void merge_begin(struct merge *merge, struct inspection *in);
/* The next source has added its rows; `ok` false: it failed, and what it added goes. */
void merge_source(struct merge *merge, bool ok);
/* Leaves one source's rows for each pair, and a note where there was a choice. */
void merge_finish(struct merge *merge);
void merge_wipe(struct merge *merge);

#endif
