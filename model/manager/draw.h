/* draw.h - a placement as a drawing for the terminal: a box per host with its services, bars of CPU
 * and memory, and the strongest traffic that crosses hosts marked at both ends. */
#ifndef REMAP_MANAGER_DRAW_H
#define REMAP_MANAGER_DRAW_H

#include <stdbool.h>
#include "model/base/buf.h"
#include "model/model.h"

struct draw_edge { /* traffic between two services, as a share of all */
    const char *a, *b;
    double share;
};

struct draw_style {
    int columns; /* of the terminal */
    bool colour;
};

/* `edges` strongest first; those whose ends are not together are marked ①…⑨ and listed below.
 * `before` (may be NULL): what came to a host since then is marked with +. */
void draw_placement(const struct model *model, const struct draw_edge *edges, size_t n_edges,
                    const struct model *before, const struct draw_style *style, struct buf *out);

/* Share of the traffic between two services that crosses hosts: 1 - Σ_host min(x_a/d_a, x_b/d_b)
 * (design: what a load balancer can keep local); 0 when one of them is not in the model. */
double draw_crossing(const struct model *model, const char *a, const char *b);

#endif
