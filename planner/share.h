/* share.h - a part of a search that ends before the whole does, at a count that can be repeated.
 *
 * It ends with its share of the time, but looks at the clock at marks alone: counts since it began, each an
 * eighth larger than the last. The number of a mark says where it ended. Or it ends at a count. */
#ifndef REMAP_PLANNER_SHARE_H
#define REMAP_PLANNER_SHARE_H

#include <stdbool.h>
#include <stdint.h>

struct effort;

/* Numbers of marks are below that: the last ones are at some 10^13. */
#define SHARE_MARKS 256

struct share {
    int64_t deadline_ms;
    int64_t from; /* the count at which it began */
    int64_t stop; /* ends at that count; 0: at a mark */
    int until;    /* the mark to end at; 0: at none; -1: the first after the deadline */
    int mark;     /* the last one that it came by */
    int64_t next; /* the count of the next, since `from` */
    bool ended;   /* by one of these */
};

/* The part of `whole` that ends with `percent` of the time that is left, or at the mark `until` (as
 * above). *share must live as long as the part. */
struct effort share_of_time(struct share *share, const struct effort *whole, int percent,
                            int until);
/* The part that ends after `counts` more. */
struct effort share_of_counts(struct share *share, const struct effort *whole, int64_t counts);
/* Goes on with the whole after the part. Returns the mark that ended it, 0 where none did. */
int share_join(struct effort *whole, const struct effort *part);

/* For effort_spend(). */
bool share_ends(struct share *share, int64_t done);

#endif
