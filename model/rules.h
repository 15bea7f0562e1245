/* rules.h - placement rules asked many times: counts per rule are kept, so that a question costs
 * the rules of the one service it is about. */
#ifndef REMAP_MODEL_RULES_H
#define REMAP_MODEL_RULES_H

#include "model/model.h"

struct rule_tally;

/* Counts `placement` (host of each instance, -1 unplaced; NULL: the model's own). Borrows the
 * model. */
struct rule_tally *rule_tally_new(const struct model *model, const int *placement);
void rule_tally_free(struct rule_tally *tally);
AUTO_DEFINE(rule_tally)

/* An instance of `service` comes to `host` (+1) or leaves it (-1). */
void rule_tally_add(struct rule_tally *tally, int service, int host, int by);

/* NULL when apart, allowed and spread let one more instance of `service` on `host`, else a static
 * text. Take a moving instance away from its source before asking. */
const char *rule_tally_problem(const struct rule_tally *tally, int service, int host);

/* Most instances of its service that a spread rule lets on one host or zone. */
int64_t rule_spread_max(const struct rule *rule, int64_t replicas);

/* Zone of each host as a number from 0, equal where region and zone are; a host without a zone is
 * one of its own. n_hosts long; caller frees. */
int *model_zones(const struct model *model);

const char *rule_kind_name(enum rule_kind kind); /* "apart", … */

#endif
