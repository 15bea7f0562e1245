/* analyzer.h - an analyzer turns the traffic of a model into affinities (the A of MAPE-K, paper
 * §5.4). Pure: no I/O, no clock, same input, same analysis. */
#ifndef REMAP_ANALYZER_ANALYZER_H
#define REMAP_ANALYZER_ANALYZER_H

#include "model/affinity.h"

struct analyzer {
    const char *name, *summary;
    /* `weight` in [0, 1] is w of Eq. 1. Caller owns *out. ERR_USAGE for a bad weight, ERR_INPUT
     * where totals leave int64. */
    int (*analyze)(const struct model *model, double weight, struct analysis **out,
                   struct err *err);
};

/* NULL-terminated; the first is the default. */
extern const struct analyzer *const analyzers[];
const struct analyzer *analyzer_find(const char *name);

#endif
