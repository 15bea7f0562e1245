/* rules.h - the rules of a model (contract.md 2) kept up to date while a planner moves instances one
 * by one: each question is answered in the number of rules that name the service, without looking at
 * the whole placement. Says the same as model_rule_problem() and model_rules_hold(). */
#ifndef REMAP_PLANNER_RULES_H
#define REMAP_PLANNER_RULES_H

#include "model/model.h"

struct rules;

/* Counts `placement` (host of each instance, -1 unplaced). NULL when the model has no rules; every
 * function accepts NULL. */
struct rules *rules_new(const struct model *model, const int *placement);
void rules_free(struct rules *rules);
AUTO_DEFINE(rules)

/* NULL when an instance of `service` may go from host `from` (-1: unplaced) to `to`, else a static
 * text. A "together" rule forbids what breaks it on a host where it was not broken. */
const char *rules_problem(const struct rules *rules, int service, int from, int to);
/* Which rule of the model that is; -1: none. */
int rules_problem_rule(const struct rules *rules, int service, int from, int to);
/* Counts one more broken constraint per unit: how far `to` is over its limits after such a move less
 * how far things were before (a soft form of the same question; may be negative). */
int rules_excess_change(const struct rules *rules, int service, int from, int to);
void rules_move(struct rules *rules, int service, int from, int to);
/* How far the counted placement is from holding: 0 when all rules hold. */
int64_t rules_excess(const struct rules *rules);

/* The rules of the service that a text of rules_problem() may mean, by their numbers; other texts as they
 * are. Caller frees. */
char *rules_which(const struct model *model, int service, const char *problem);

#endif
