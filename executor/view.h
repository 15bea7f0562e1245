/* view.h - the cluster as a fresh inspection shows it, joined with what the plan's model knows: who
 * is who after renames, and how much everybody uses (an inspection of the cluster alone has no
 * usage). */
#ifndef REMAP_EXECUTOR_VIEW_H
#define REMAP_EXECUTOR_VIEW_H

#include "executor/record.h"
#include "model/model.h"

/* Names change when replicas move: the present name of each instance of the plan's model, and the
 * names of others that this cycle has met. */
struct lineage {
    char **now; /* by instance of the plan's model */
    size_t n_now;
    char **others;
    size_t n_others;
};

void lineage_init(struct lineage *lineage, const struct model *planned);
void lineage_wipe(struct lineage *lineage);
/* `from` is called `to` from now on. */
void lineage_rename(struct lineage *lineage, const char *from, const char *to);
/* Follows all renames of outcomes, whatever their order. */
void lineage_follow(struct lineage *lineage, const struct outcomes *done);

struct view {
    struct model *model;         /* fresh, with usage and rules filled in */
    const struct model *planned; /* borrowed */
    int *planned_of;             /* instance here → in the plan's model; -1 unknown */
    int *here_of;                /* and back; -1: not there any more */
};

/* Takes the fresh model. Usage, reserves and (where the inspection has none) rules come from the
 * planned one; an unknown instance uses the mean of its service. */
void view_init(struct view *view, struct model *fresh, const struct model *planned,
               const struct lineage *lineage);
void view_wipe(struct view *view);

/* The instance here that is `planned`'s: itself, or when it is gone an unknown replica of its
 * service on the host (§5.6: replicas are alike), which then bears its name in the lineage. -1. */
int view_find(struct view *view, struct lineage *lineage, int planned, const char *host);

/* Replicas that came up since the plan was made: of services that have more than the plan's model
 * knew, the unknown ones. Returns their number; the caller frees *out. */
size_t view_newborn(const struct view *view, const struct lineage *lineage, int **out);

#endif
