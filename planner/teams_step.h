/* teams_step.h - what the steps of a search over whole services are made of (teams_pull.c,
 * teams_budget.c). False from any: the step is taken back. */
#ifndef REMAP_PLANNER_TEAMS_STEP_H
#define REMAP_PLANNER_TEAMS_STEP_H

#include "planner/teams.h"

struct team *teams_of(const struct teams *teams, int instance);
struct team *teams_of_group(const struct teams *teams, int group);
/* A service that this step has put somewhere stays there. */
bool team_stamped(const struct teams *teams, const struct team *team);
void team_stamp(const struct teams *teams, const struct team *team);
/* How many of its replicas are on the host. */
int team_on(const struct teams *teams, const struct team *team, int host);

/* Blocks of services leave the host until it is not too full. */
bool teams_relieve(struct teams *teams, int host);
/* The same for all hosts that the step touched. */
bool teams_mend(struct teams *teams);

/* Sends services home until no more moves are made than there are. */
bool teams_keep_budget(struct teams *teams);
/* Brings a cluster to hosts that have room for it, or to where one of its services is. */
bool teams_step_room(struct teams *teams);

#endif
