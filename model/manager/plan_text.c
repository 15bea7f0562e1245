/* plan_text.c - a plan document (contract.md 3) as text for people. */
#include "model/manager/plan_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/json.h"
#include "model/manager/table.h"
#include "model/model_json.h"

/* More lines than these nobody reads on a terminal; -o json has all. */
#define MAX_HOSTS 60
#define MAX_DISCARDED 10

static void put_counts(const struct model *model, const struct host_count *counts, size_t n,
                       struct buf *out)
{
    for (size_t i = 0; i < n; i++)
        buf_printf(out, "%s%s×%lld", i ? " " : "", model->hosts[counts[i].host].name,
                   (long long)counts[i].count);
}

static const char *host_name(const struct model *model, int host)
{
    return host < 0 ? NULL : model->hosts[host].name;
}

static void put_moves(const struct plan *plan, const struct model *model, struct buf *out)
{
    static const char *const titles[] = {">#", "service", "instance", "from", "to", ">gain",
                                         NULL};
    AUTO(table) struct table *table = table_new(titles);
    for (size_t i = 0; i < plan->n_moves; i++) {
        const struct move *m = &plan->moves[i];
        table_printf(table, "%d", m->seq);
        table_cell(table, model->services[m->service].name);
        if (m->instance >= 0) {
            table_cell(table, model->instances[m->instance].name);
            table_cell(table, host_name(model, m->source));
            table_cell(table, host_name(model, m->target));
        } else {
            AUTO_BUF struct buf from = BUF_INIT, to = BUF_INIT;
            put_counts(model, m->sources, m->n_sources, &from);
            put_counts(model, m->targets, m->n_targets, &to);
            table_cell(table, NULL);
            table_cell(table, from.data);
            table_cell(table, to.data);
        }
        table_printf(table, "%+.4f", m->gain);
    }
    buf_puts(out, plan->unordered
                      ? "\nMoves (no order keeps every host within its capacity):\n"
                      : "\nMoves, in this order:\n");
    table_put(table, 2, out);
}

/* One host before and after; loads are those of the model's own instances. */
struct host_view {
    struct load before, after;
};

static struct host_view *host_views(const struct plan *plan, const struct model *model)
{
    struct host_view *views = mem_array(model->n_hosts, sizeof *views);
    for (size_t i = 0; i < model->n_instances; i++) {
        struct load need = instance_load(&model->instances[i]);
        if (model->instances[i].host >= 0)
            load_add(&views[model->instances[i].host].before, &need);
        if (i < plan->n_placement && plan->placement[i] >= 0)
            load_add(&views[plan->placement[i]].after, &need);
    }
    return views;
}

static void cell_share(struct table *table, int64_t used, int64_t cap)
{
    if (cap > 0)
        table_printf(table, "%.0f%%", 100.0 * (double)used / (double)cap);
    else
        table_cell(table, NULL);
}

static void put_hosts(const struct plan *plan, const struct model *model, struct buf *out)
{
    static const char *const titles[] = {"host", ">instances", ">after", ">cpu", ">after",
                                         ">memory", ">after", NULL};
    AUTO(table) struct table *table = table_new(titles);
    AUTO_FREE struct host_view *views = host_views(plan, model);
    size_t shown = model->n_hosts < MAX_HOSTS ? model->n_hosts : MAX_HOSTS;
    for (size_t h = 0; h < shown; h++) {
        const struct host *host = &model->hosts[h];
        const struct host_view *v = &views[h];
        table_cell(table, host->name);
        table_printf(table, "%lld", (long long)v->before.pods);
        table_printf(table, "%lld", (long long)v->after.pods);
        cell_share(table, host->cpu_used_millis + v->before.cpu_millis, host->cpu_cap_millis);
        cell_share(table, host->cpu_used_millis + v->after.cpu_millis, host->cpu_cap_millis);
        cell_share(table, host->mem_used_bytes + v->before.mem_bytes, host->mem_cap_bytes);
        cell_share(table, host->mem_used_bytes + v->after.mem_bytes, host->mem_cap_bytes);
    }
    buf_puts(out, "\nHosts before and after:\n");
    table_put(table, 2, out);
    if (shown < model->n_hosts)
        buf_printf(out, "  … and %zu more\n", model->n_hosts - shown);
}

static void put_discarded(const struct plan *plan, const struct model *model, struct buf *out)
{
    static const char *const titles[] = {">degree", "between", "and", "why", NULL};
    AUTO(table) struct table *table = table_new(titles);
    size_t shown = plan->n_discarded < MAX_DISCARDED ? plan->n_discarded : MAX_DISCARDED;
    for (size_t i = 0; i < shown; i++) {
        const struct discarded *d = &plan->discarded[i];
        table_printf(table, "%.4f", d->degree);
        table_cell(table, model_end_name(model, d->level, d->a));
        table_cell(table, model_end_name(model, d->level, d->b));
        table_cell(table, d->why);
    }
    buf_puts(out, "\nConsidered and not done:\n");
    table_put(table, 2, out);
    if (shown < plan->n_discarded)
        buf_printf(out, "  … and %zu more\n", plan->n_discarded - shown);
}

static void put_frontier(const struct plan *plan, struct buf *out)
{
    static const char *const titles[] = {">restarts", ">affinity", ">hosts", NULL};
    AUTO(table) struct table *table = table_new(titles);
    for (size_t i = 0; i < plan->n_frontier; i++) {
        table_printf(table, "%lld", (long long)plan->frontier[i].restarts);
        table_printf(table, "%.4f", plan->frontier[i].affinity);
        table_printf(table, "%lld", (long long)plan->frontier[i].hosts);
    }
    buf_puts(out, "\nWhat fewer restarts buy:\n");
    table_put(table, 2, out);
}

static void put_summary(const struct plan *plan, const struct model *model, struct buf *out)
{
    buf_printf(out, "%s plan by %s", plan_status_name(plan->status), plan->planner);
    if (strcmp(plan->requested, plan->planner) != 0)
        buf_printf(out, " (asked for: %s)", plan->requested);
    buf_printf(out, ", objective %s, granularity %s%s\n", objective_name(plan->objective),
               granularity_name(plan->granularity), plan->cut ? ", cut by the clock" : "");
    if (plan->why && *plan->why)
        buf_printf(out, "%s\n", plan->why);
    buf_printf(out, "  affinity kept on hosts  %.4f → %.4f", plan->affinity_before,
               plan->affinity_after);
    if (plan->has_bound)
        buf_printf(out, "  (at most %.4f, gap %.2f%%)", plan->affinity_bound,
                   100 * plan_gap(plan));
    buf_printf(out, "\n  hosts in use            %lld → %lld", (long long)plan->hosts_before,
               (long long)plan->hosts_after);
    if (plan->hosts_bound >= 0)
        buf_printf(out, "  (at least %lld%s)", (long long)plan->hosts_bound,
                   plan->objective != OBJECTIVE_HOSTS         ? ""
                   : plan->hosts_bound >= plan->hosts_after ? ": proven the fewest"
                                                              : ": open whether fewer would do");
    if (!isnan(plan->affinity_bound_hosts))
        buf_printf(out, "\n  kept on so few hosts    at most %.4f", plan->affinity_bound_hosts);
    buf_printf(out, "\n  moves                   %zu, %lld replica%s restart%s\n", plan->n_moves,
               (long long)plan->restarts, plan->restarts == 1 ? "" : "s",
               plan->restarts == 1 ? "s" : "");
    if (plan->coverage >= 0)
        buf_printf(out, "  traffic that was joined %.1f%%\n", 100 * plan->coverage);
    size_t unplaced = 0;
    for (size_t i = 0; i < plan->n_placement; i++)
        unplaced += plan->placement[i] < 0;
    if (unplaced)
        buf_printf(out, "  instances without host  %zu of %zu\n", unplaced, model->n_instances);
    buf_printf(out, "  time                    %lld ms\n", (long long)plan->solve_ms);
}

void plan_text(const struct plan *plan, const struct model *model, struct buf *out)
{
    put_summary(plan, model, out);
    if (plan->n_moves)
        put_moves(plan, model, out);
    else
        buf_puts(out, "\nNothing to move.\n");
    if (model->n_hosts)
        put_hosts(plan, model, out);
    if (plan->n_discarded)
        put_discarded(plan, model, out);
    if (plan->n_frontier)
        put_frontier(plan, out);
}

int plan_text_document(json_t *document, const struct model *model, struct buf *out,
                       struct err *err)
{
    struct jval root = jval_root(document);
    AUTO(plan) struct plan *plan = plan_decode_value(&root, model, err);
    if (!plan)
        return -1;
    plan_text(plan, model, out);
    return 0;
}
