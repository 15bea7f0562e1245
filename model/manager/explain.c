/* explain.c - see explain.h. */
#include "model/manager/explain.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "model/base/mem.h"

/* Sums of replica shares such as 1/3 + 2/3 miss 1 by rounding. */
#define SAME 1e-9
/* A sentence names at most so many partners of a moved instance. */
#define MAX_NAMED 3

struct context {
    const struct decision *d;
    const struct model *model;
    int *before, *after, *planned; /* hosts of instances; planned: all moves, after: those standing */
    int *move_of; /* per instance: the index of its move in the plan, -1 */
};

const char *honoured_name(enum honoured honoured)
{
    static const char *const names[] = {"kept", "brought", "partly", "not", "less"};
    return names[honoured];
}

void explanation_free(struct explanation *e)
{
    if (!e) {
        return;
    }
    for (size_t i = 0; i < e->n_affinities; i++) {
        free(e->affinities[i].text);
    }
    for (size_t i = 0; i < e->n_moves; i++) {
        free(e->moves[i].text);
    }
    for (size_t i = 0; i < e->n_partners; i++) {
        free(e->partners[i].text);
    }
    free(e->affinities);
    free(e->moves);
    free(e->partners);
    free(e->where);
    free(e);
}

/* --- placements --- */

static bool move_stands(const struct decision *d, int64_t seq)
{
    static const char *const lost[] = {"discarded", "failed", "undone", "missed", "displaced"};
    const struct move_row *row = decision_move(d, seq);
    for (size_t i = 0; row && i < ARRAY_LEN(lost); i++) {
        if (strcmp(row->state, lost[i]) == 0) {
            return false;
        }
    }
    return true;
}

static void context_fill(struct context *c, const struct decision *d)
{
    size_t n = d->model->n_instances;
    *c = (struct context){.d = d, .model = d->model, .before = model_placement(d->model),
                          .after = model_placement(d->model), .planned = model_placement(d->model),
                          .move_of = mem_array(n + 1, sizeof *c->move_of)};
    for (size_t i = 0; i < n; i++) {
        c->move_of[i] = -1;
    }
    for (size_t m = 0; d->plan && m < d->plan->n_moves; m++) {
        const struct move *move = &d->plan->moves[m];
        bool stands = move_stands(d, move->seq);
        for (size_t i = 0; i < n && i < d->plan->n_placement; i++) {
            bool its = move->instance < 0 ? d->model->instances[i].service == move->service &&
                                                d->plan->placement[i] != c->before[i]
                                          : (int)i == move->instance;
            if (its) {
                c->move_of[i] = (int)m;
                c->planned[i] = d->plan->placement[i];
                c->after[i] = stands ? d->plan->placement[i] : c->before[i];
            }
        }
    }
}

static void context_wipe(struct context *c)
{
    free(c->before);
    free(c->after);
    free(c->planned);
    free(c->move_of);
}

/* The share of the pair's traffic that can stay on a host: its score at degree 1. */
static double pair_share(const struct context *c, const struct affinity *row, const int *placement)
{
    struct affinity one = *row;
    one.degree = 1;
    return placement_score(c->model, &one, 1, placement);
}

/* --- words --- */

static const char *end_name(const struct context *c, enum level level, int end)
{
    return model_end_name(c->model, level, end);
}

static int end_service(const struct context *c, enum level level, int end)
{
    return level == LEVEL_SERVICE ? end : c->model->instances[end].service;
}

static bool end_has(const struct context *c, enum level level, int end, size_t instance)
{
    return level == LEVEL_SERVICE ? c->model->instances[instance].service == end
                                  : (size_t)end == instance;
}

/* "n1", or for a service "n1 n2 (2)": hosts with the number of replicas where it is not one. */
static char *end_where(const struct context *c, enum level level, int end, const int *placement)
{
    struct buf text = BUF_INIT;
    AUTO_FREE int *counts = mem_array(c->model->n_hosts + 1, sizeof *counts);
    int nowhere = 0;
    for (size_t i = 0; i < c->model->n_instances; i++) {
        if (!end_has(c, level, end, i)) {
            continue;
        }
        if (placement[i] < 0) {
            nowhere++;
        } else {
            counts[placement[i]]++;
        }
    }
    for (size_t h = 0; h < c->model->n_hosts; h++) {
        if (counts[h]) {
            buf_printf(&text, "%s%s", text.size ? " " : "", c->model->hosts[h].name);
        }
        if (counts[h] > 1) {
            buf_printf(&text, " (%d)", counts[h]);
        }
    }
    if (nowhere || !text.size) {
        buf_printf(&text, "%snot placed", text.size ? ", " : "");
    }
    return buf_take(&text);
}

/* " by move 1" or " by moves 1 and 4": those that touch an end of the pair; "" for none. */
static void put_moves_of(const struct context *c, const struct affinity *row, bool standing,
                         struct buf *out)
{
    AUTO_BUF struct buf seqs = BUF_INIT;
    int last = -1, n = 0;
    for (size_t i = 0; i < c->model->n_instances; i++) {
        int m = c->move_of[i];
        bool its = end_has(c, row->level, row->a, i) || end_has(c, row->level, row->b, i);
        if (m < 0 || !its || m == last || move_stands(c->d, c->d->plan->moves[m].seq) != standing) {
            continue;
        }
        buf_printf(&seqs, "%s%d", n ? ", " : "", c->d->plan->moves[m].seq);
        last = m;
        n++;
    }
    if (n) {
        buf_printf(out, "move%s %s", n > 1 ? "s" : "", seqs.data);
    }
}

/* --- affinities --- */

static const char *discarded_why(const struct context *c, const struct affinity *row)
{
    const struct plan *plan = c->d->plan;
    for (size_t i = 0; plan && i < plan->n_discarded; i++) {
        const struct discarded *x = &plan->discarded[i];
        if (x->level == row->level && ((x->a == row->a && x->b == row->b) ||
                                       (x->a == row->b && x->b == row->a))) {
            return x->why;
        }
    }
    return NULL;
}

/* The first reason why moves that would have helped were not made. */
static const char *lost_why(const struct context *c, const struct affinity *row, int64_t *seq,
                            const char **state)
{
    for (size_t i = 0; i < c->model->n_instances; i++) {
        int m = c->move_of[i];
        if (m < 0 || !(end_has(c, row->level, row->a, i) || end_has(c, row->level, row->b, i))) {
            continue;
        }
        const struct move_row *made = decision_move(c->d, c->d->plan->moves[m].seq);
        if (made && !move_stands(c->d, made->seq)) {
            *seq = made->seq;
            *state = made->state;
            return made->reason ? made->reason : "";
        }
    }
    return NULL;
}

/* Why the replicas of an end may not move: the reason that holds for all of them. */
static const char *end_fixed_why(const struct context *c, enum level level, int end)
{
    const char *why = NULL;
    for (size_t i = 0; i < c->model->n_instances; i++) {
        if (end_has(c, level, end, i)) {
            why = instance_fixed_why(c->model, (int)i, false);
            if (!why) {
                return NULL;
            }
        }
    }
    return why;
}

/* A row of degree 0 that has traffic: it was not to count (interfaces.md 1.9 rule 14; contract.md 7). */
static void put_counts_not(const struct context *c, const struct affinity *row, struct buf *out)
{
    const struct service *a = &c->model->services[end_service(c, row->level, row->a)];
    const struct service *b = &c->model->services[end_service(c, row->level, row->b)];
    if (a->tenant && b->tenant && strcmp(a->tenant, b->tenant) != 0) {
        buf_printf(out, "their tenants differ (%s, %s): such traffic places nothing", a->tenant,
                   b->tenant);
    } else {
        buf_puts(out, "their traffic weighs nothing, so nothing is gained together");
    }
}

/* What was lost of the plan, or what the plan itself says, after `lead`; false where neither speaks of them. */
static bool put_known_why(const struct context *c, const struct affinity *row, const char *lead,
                          struct buf *out)
{
    int64_t seq = 0;
    const char *state = NULL, *why = NULL;
    double planned = pair_share(c, row, c->planned);
    if (planned > pair_share(c, row, c->after) + SAME && (why = lost_why(c, row, &seq, &state))) {
        buf_printf(out, "%smove %" PRId64 " would have brought them %s, but %s%s%s%s", lead, seq,
                   planned > 1 - SAME ? "together" : "closer",
                   strcmp(state, "failed") == 0 ? "" : "was ", state, *why ? ": " : "", why);
        return true;
    }
    why = discarded_why(c, row);
    if (why) {
        buf_printf(out, "%s%s", lead, why);
    }
    return why != NULL;
}

static void put_why_not(const struct context *c, const struct affinity *row, struct buf *out)
{
    if (row->degree <= 0) {
        put_counts_not(c, row, out);
        return;
    }
    const char *a = end_name(c, row->level, row->a), *b = end_name(c, row->level, row->b);
    if (put_known_why(c, row, "", out)) {
        return;
    }
    if (!c->d->plan) {
        buf_puts(out, "the cycle made no plan");
        return;
    }
    const char *fixed_a = end_fixed_why(c, row->level, row->a);
    const char *fixed_b = end_fixed_why(c, row->level, row->b);
    if (fixed_a && fixed_b) {
        buf_printf(out, "neither may move (%s: %s; %s: %s)", a, fixed_a, b, fixed_b);
        return;
    }
    if (fixed_a || fixed_b) {
        buf_printf(out, "%s may not move (%s), and ", fixed_a ? a : b, fixed_a ? fixed_a : fixed_b);
    }
    buf_puts(out, "the planner found no better place for both with the room there is");
}

static enum honoured judge(double before, double after)
{
    if (after < before - SAME) {
        return HONOURED_LESS;
    }
    if (after > 1 - SAME) {
        return before > 1 - SAME ? HONOURED_KEPT : HONOURED_BROUGHT;
    }
    return after > before + SAME ? HONOURED_PARTLY : HONOURED_NOT;
}

static char *affinity_text(const struct context *c, const struct explained_affinity *x)
{
    struct buf out = BUF_INIT;
    const struct affinity *row = x->row;
    const char *a = end_name(c, row->level, row->a), *b = end_name(c, row->level, row->b);
    AUTO_FREE char *at_a = end_where(c, row->level, row->a, c->after);
    AUTO_FREE char *at_b = end_where(c, row->level, row->b, c->after);
    if (x->honoured == HONOURED_NOT) {
        buf_printf(&out, "%s (%s) and %s (%s) ", a, at_a, b, at_b);
    } else {
        buf_printf(&out, "%s and %s ", a, b);
    }
    switch (x->honoured) {
    case HONOURED_KEPT:
        buf_printf(&out, "stay together on %s", at_a);
        break;
    case HONOURED_BROUGHT:
        buf_printf(&out, "come together on %s by ", at_a);
        put_moves_of(c, row, true, &out);
        break;
    case HONOURED_PARTLY:
        buf_printf(&out, "come closer by ");
        put_moves_of(c, row, true, &out);
        buf_printf(&out, ": %.1f%% of their traffic can stay on a host, %.1f%% before",
                   100 * x->share_after, 100 * x->share_before);
        put_known_why(c, row, "; ", &out);
        break;
    case HONOURED_LESS:
        buf_printf(&out, "part by ");
        put_moves_of(c, row, true, &out);
        buf_printf(&out, ": %.1f%% of their traffic can stay on a host, %.1f%% before",
                   100 * x->share_after, 100 * x->share_before);
        if (!put_known_why(c, row, "; ", &out)) {
            buf_puts(&out, "; other partners weigh more");
        }
        break;
    case HONOURED_NOT:
        buf_puts(&out, "stay apart: ");
        if (x->share_after > SAME) {
            buf_printf(&out, "%.1f%% of their traffic can stay on a host; ", 100 * x->share_after);
        }
        put_why_not(c, row, &out);
        break;
    }
    return buf_take(&out);
}

static void explain_affinities(const struct context *c, int service, size_t max,
                               struct explanation *out)
{
    const struct analysis *analysis = c->d->analysis;
    for (size_t i = 0; analysis && i < analysis->n_rows; i++) {
        const struct affinity *row = &analysis->rows[i];
        if (service >= 0 && end_service(c, row->level, row->a) != service &&
            end_service(c, row->level, row->b) != service) {
            continue;
        }
        if (out->n_affinities >= max) {
            out->n_more++;
            continue;
        }
        struct explained_affinity *x = ARRAY_PUSH(out->affinities, out->n_affinities);
        x->row = row;
        x->share_before = pair_share(c, row, c->before);
        x->share_after = pair_share(c, row, c->after);
        x->honoured = judge(x->share_before, x->share_after);
        x->text = affinity_text(c, x);
    }
}

/* --- moves --- */

/* Partners that the moved service gets nearer to (`closer`), or further from, strongest first. */
static void put_partners(const struct context *c, const struct move *move, bool closer,
                         struct buf *out)
{
    const struct analysis *analysis = c->d->analysis;
    int named = 0;
    for (size_t i = 0; analysis && i < analysis->n_rows && named <= MAX_NAMED; i++) {
        const struct affinity *row = &analysis->rows[i];
        bool is_a = row->level == LEVEL_SERVICE || move->instance < 0
                        ? end_service(c, row->level, row->a) == move->service
                        : row->a == move->instance;
        bool is_b = row->level == LEVEL_SERVICE || move->instance < 0
                        ? end_service(c, row->level, row->b) == move->service
                        : row->b == move->instance;
        double change = pair_share(c, row, c->planned) - pair_share(c, row, c->before);
        if (is_a == is_b || (closer ? change <= SAME : change >= -SAME)) {
            continue;
        }
        if (named == MAX_NAMED) {
            buf_puts(out, " and others");
        } else {
            buf_printf(out, "%s%s (%.4f)", named ? ", " : closer ? " to join " : "; leaves ",
                       end_name(c, row->level, is_a ? row->b : row->a), row->degree);
        }
        named++;
    }
}

static void put_counts(const struct context *c, const struct host_count *counts, size_t n,
                       struct buf *out)
{
    for (size_t i = 0; i < n; i++) {
        buf_printf(out, "%s%s=%" PRId64, i ? " " : "", c->model->hosts[counts[i].host].name,
                   counts[i].count);
    }
}

static char *move_text(const struct context *c, const struct move *move)
{
    struct buf out = BUF_INIT;
    if (move->instance < 0) {
        buf_printf(&out, "%s: replicas from ", c->model->services[move->service].name);
        put_counts(c, move->sources, move->n_sources, &out);
        buf_puts(&out, " to ");
        put_counts(c, move->targets, move->n_targets, &out);
    } else {
        buf_printf(&out, "%s from %s to %s", c->model->instances[move->instance].name,
                   move->source < 0 ? "nowhere" : c->model->hosts[move->source].name,
                   c->model->hosts[move->target].name);
    }
    put_partners(c, move, true, &out);
    put_partners(c, move, false, &out);
    buf_printf(&out, "; gain %+.4f", move->gain);
    if (move->restarts > 1) {
        buf_printf(&out, ", %" PRId64 " replicas restart", move->restarts);
    }
    const struct move_row *row = decision_move(c->d, move->seq);
    if (row) {
        buf_printf(&out, ". %s%s%s", row->state, row->reason ? ": " : "",
                   row->reason ? row->reason : "");
        if (row->instance_now) {
            buf_printf(&out, ", now %s", row->instance_now);
        }
    }
    return buf_take(&out);
}

static void explain_moves(const struct context *c, int service, struct explanation *out)
{
    const struct plan *plan = c->d->plan;
    for (size_t i = 0; plan && i < plan->n_moves; i++) {
        if (service < 0 || plan->moves[i].service == service) {
            struct explained_move *x = ARRAY_PUSH(out->moves, out->n_moves);
            x->seq = plan->moves[i].seq;
            x->text = move_text(c, &plan->moves[i]);
        }
    }
}

/* --- partners of one service --- */

static void explain_partners(const struct context *c, int service, struct explanation *out)
{
    const struct analysis *analysis = c->d->analysis;
    out->where = end_where(c, LEVEL_SERVICE, service, c->after);
    if (!analysis) {
        return;
    }
    bool sums = analysis->n_service_rows > 0;
    const struct affinity *rows = sums ? analysis->service_rows : analysis->rows;
    size_t n = sums ? analysis->n_service_rows : analysis->n_rows;
    for (size_t i = 0; i < n; i++) {
        const struct affinity *row = &rows[i];
        if (row->level != LEVEL_SERVICE || (row->a != service && row->b != service)) {
            continue;
        }
        struct explained_partner *x = ARRAY_PUSH(out->partners, out->n_partners);
        x->service = row->a == service ? row->b : row->a;
        x->degree = row->degree;
        AUTO_FREE char *where = end_where(c, LEVEL_SERVICE, x->service, c->after);
        x->text = mem_printf("%s on %s", c->model->services[x->service].name, where);
    }
}

struct explanation *explain(const struct decision *decision, int service, size_t max)
{
    struct explanation *out = mem_alloc(sizeof *out);
    struct context c;
    context_fill(&c, decision);
    explain_affinities(&c, service, max, out);
    explain_moves(&c, service, out);
    if (service >= 0) {
        explain_partners(&c, service, out);
    }
    context_wipe(&c);
    return out;
}
