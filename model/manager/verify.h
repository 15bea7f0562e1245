/* verify.h - what a plan promised against what came true (design.md 4; issue: verification). Pure.
 *
 * `before` and `predicted` come from the model that was planned on; `realised` from one collected
 * after the settle time. Moved replicas have new names there, so each side is measured by its own
 * model and analysis. Unknown values are negative. */
#ifndef REMAP_MANAGER_VERIFY_H
#define REMAP_MANAGER_VERIFY_H

#include <stdint.h>
#include "model/affinity.h"
#include "model/plan.h"
#include "model/store/store.h"

/* Below this many messages in the window a share says little: its standard error,
 * sqrt(p(1-p)/n), is up to 0.09 at 30, about the default tolerance. */
#define VERIFY_MIN_MESSAGES 30

enum verify_answer {
    VERIFY_KEEP,
    VERIFY_WORSE,  /* than before, beyond the tolerance: to be undone */
    VERIFY_UNKNOWN /* too little traffic to judge: kept */
};

/* Fills `before` and `predicted` of *out, the rest with "unknown". `plan` is what was made. */
void verify_predict(const struct model *model, const struct analysis *analysis,
                    const struct plan *plan, struct savings *out);

/* Fills `realised`; what traffic tells stays unknown where there was too little to judge by. */
void verify_measure(const struct model *model, const struct analysis *analysis,
                    struct savings *out);

/* Compares; `why` (size bytes) gets words and numbers. Worse means, each beyond `tolerance`
 * relative to before: less traffic stays on a host, unless the plan said so; a longer response
 * time; or, when fewer hosts were the objective, more hosts than before. What `mends` a rule that was
 * broken is kept all the same. */
enum verify_answer verify_judge(const struct savings *savings, enum objective objective,
                                double tolerance, int64_t messages, bool mends, char *why,
                                size_t size);

#endif
