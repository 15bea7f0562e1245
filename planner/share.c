/* share.c - parts of a search that end at marks or counts. */
#include "planner/share.h"

#include <stddef.h>
#include "model/base/clock.h"
#include "planner/anneal.h"

static struct effort part_of(struct share *share, const struct effort *whole)
{
    struct effort part = *whole;
    share->from = whole->done;
    share->next = 1;
    part.share = share;
    return part;
}

struct effort share_of_time(struct share *share, const struct effort *whole, int percent,
                            int until)
{
    int64_t now = clock_mono_ms();
    *share = (struct share){.deadline_ms = now + (whole->deadline_ms - now) * percent / 100,
                            .until = until};
    return part_of(share, whole);
}

struct effort share_of_counts(struct share *share, const struct effort *whole, int64_t counts)
{
    *share = (struct share){.stop = whole->done + counts};
    return part_of(share, whole);
}

int share_join(struct effort *whole, const struct effort *part)
{
    const struct share *share = part->share;
    whole->done = part->done;
    whole->cut = part->cut && !share->ended;
    whole->reported_ms = part->reported_ms;
    return share->ended && share->stop == 0 ? share->mark : 0;
}

bool share_ends(struct share *share, int64_t done)
{
    bool passed = false;
    if (share->stop > 0)
        return share->ended = done >= share->stop;
    while (done - share->from >= share->next && share->mark < SHARE_MARKS - 1) {
        share->mark++;
        share->next += share->next / 8 + 1;
        passed = true;
    }
    if (!passed)
        return share->ended;
    return share->ended = share->until < 0 ? clock_mono_ms() >= share->deadline_ms
                                           : share->until > 0 && share->mark >= share->until;
}
