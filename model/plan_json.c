/* plan_json.c - plan documents (contract.md 3), read and written. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/model_json.h"

static const char *const granularities[] = {"instance", "service", NULL};
static const char *const objectives[] = {"affinity", "hosts", NULL};
static const char *const statuses[] = {"optimal", "feasible", "infeasible", "timeout", NULL};

/* One line for people. */
#define WHY_MAX_BYTES 4096

const char *granularity_name(enum granularity granularity)
{
    return granularities[granularity];
}

const char *objective_name(enum objective objective)
{
    return objectives[objective];
}

const char *plan_status_name(enum plan_status status)
{
    return statuses[status];
}

static void put_text(struct buf *out, const char *key, const char *text)
{
    buf_printf(out, "\"%s\":", key);
    json_put_text(out, text);
    buf_add(out, ",", 1);
}

static void put_int(struct buf *out, const char *key, int64_t value)
{
    buf_printf(out, "\"%s\":", key);
    json_put_int(out, value);
    buf_add(out, ",", 1);
}

/* null where it is not given. */
static void put_real_if(struct buf *out, const char *key, bool given, double value)
{
    buf_printf(out, "\"%s\":", key);
    if (given)
        json_put_real(out, value);
    else
        buf_puts(out, "null");
    buf_add(out, ",", 1);
}

static void put_counts(struct buf *out, const char *key, const struct model *model,
                       const struct host_count *counts, size_t n)
{
    buf_printf(out, "\"%s\":[", key);
    for (size_t i = 0; i < n; i++) {
        buf_puts(out, i ? ",{\"host\":" : "{\"host\":");
        json_put_text(out, model->hosts[counts[i].host].name);
        buf_puts(out, ",\"count\":");
        json_put_int(out, counts[i].count);
        buf_add(out, "}", 1);
    }
    buf_add(out, "],", 2);
}

static void put_move(struct buf *out, const struct model *model, const struct move *move)
{
    buf_add(out, "{", 1);
    put_int(out, "seq", move->seq);
    if (move->instance >= 0) {
        put_text(out, "instance", model->instances[move->instance].name);
        put_text(out, "service", model->services[move->service].name);
        put_text(out, "source", move->source < 0 ? NULL : model->hosts[move->source].name);
        put_text(out, "target", model->hosts[move->target].name);
    } else {
        put_text(out, "service", model->services[move->service].name);
        put_text(out, "instance", NULL);
        put_counts(out, "sources", model, move->sources, move->n_sources);
        put_counts(out, "targets", model, move->targets, move->n_targets);
        put_int(out, "restarts", move->restarts);
    }
    buf_puts(out, "\"gain\":");
    json_put_real(out, move->gain);
    buf_add(out, "}", 1);
}

static void put_placement(struct buf *out, const struct plan *plan, const struct model *model)
{
    buf_puts(out, "\"placement\":[");
    for (size_t i = 0; i < plan->n_placement; i++) {
        buf_puts(out, i ? ",{" : "{");
        put_text(out, "instance", model->instances[i].name);
        buf_puts(out, "\"host\":");
        json_put_text(out, plan->placement[i] < 0 ? NULL : model->hosts[plan->placement[i]].name);
        buf_add(out, "}", 1);
    }
    buf_puts(out, "],");
}

static void put_discarded(struct buf *out, const struct plan *plan, const struct model *model)
{
    buf_puts(out, "\"discarded\":[");
    for (size_t i = 0; i < plan->n_discarded; i++) {
        const struct discarded *row = &plan->discarded[i];
        buf_puts(out, i ? ",{" : "{");
        put_text(out, "a", model_end_name(model, row->level, row->a));
        put_text(out, "b", model_end_name(model, row->level, row->b));
        put_real_if(out, "degree", true, row->degree);
        buf_puts(out, "\"why\":");
        json_put_text(out, row->why ? row->why : "");
        buf_add(out, "}", 1);
    }
    buf_puts(out, "],");
}

static void put_cycles(struct buf *out, const struct plan *plan)
{
    buf_puts(out, "\"cycles\":[");
    for (size_t i = 0; i < plan->n_cycles; i++) {
        buf_puts(out, i ? ",[" : "[");
        for (const int *seq = plan->cycles[i]; *seq; seq++) {
            if (seq != plan->cycles[i])
                buf_add(out, ",", 1);
            json_put_int(out, *seq);
        }
        buf_add(out, "]", 1);
    }
    buf_add(out, "]", 1);
}

static void put_scalars(struct buf *out, const struct plan *plan, bool measured)
{
    put_text(out, "requested", plan->requested ? plan->requested : "");
    put_text(out, "planner", plan->planner ? plan->planner : "");
    put_text(out, "why", plan->why ? plan->why : "");
    put_text(out, "objective", objective_name(plan->objective));
    put_text(out, "granularity", granularity_name(plan->granularity));
    put_text(out, "status", plan_status_name(plan->status));
    buf_printf(out, "\"cut\":%s,", plan->cut ? "true" : "false");
    if (plan->iterations)
        put_int(out, "iterations", plan->iterations);
    put_real_if(out, "affinity_before", true, plan->affinity_before);
    put_real_if(out, "affinity_after", true, plan->affinity_after);
    put_real_if(out, "affinity_bound", plan->has_bound, plan->affinity_bound);
    put_real_if(out, "gap", plan->has_bound, plan->has_bound ? plan_gap(plan) : 0);
    put_int(out, "hosts_before", plan->hosts_before);
    put_int(out, "hosts_after", plan->hosts_after);
    if (plan->hosts_bound < 0)
        buf_puts(out, "\"hosts_bound\":null,");
    else
        put_int(out, "hosts_bound", plan->hosts_bound);
    if (!isnan(plan->affinity_bound_hosts)) /* an addition to contract.md 3 */
        put_real_if(out, "affinity_bound_hosts", true, plan->affinity_bound_hosts);
    put_int(out, "restarts", plan->restarts);
    put_real_if(out, "coverage", plan->coverage >= 0, plan->coverage);
    if (measured)
        put_int(out, "solve_ms", plan->solve_ms);
}

/* Only where it was asked for: an addition to contract.md 3. */
static void put_frontier(struct buf *out, const struct plan *plan)
{
    for (size_t i = 0; i < plan->n_frontier; i++) {
        const struct frontier_point *point = &plan->frontier[i];
        buf_puts(out, i ? ",{" : ",\"frontier\":[{");
        put_int(out, "restarts", point->restarts);
        put_int(out, "hosts", point->hosts);
        buf_puts(out, "\"affinity\":");
        json_put_real(out, point->affinity);
        buf_puts(out, i + 1 == plan->n_frontier ? "}]" : "}");
    }
}

void plan_encode(const struct plan *plan, const struct model *model, bool measured,
                 struct buf *out)
{
    buf_puts(out, "{\"v\":1,");
    put_scalars(out, plan, measured);
    buf_puts(out, "\"moves\":[");
    for (size_t i = 0; i < plan->n_moves; i++) {
        if (i)
            buf_add(out, ",", 1);
        put_move(out, model, &plan->moves[i]);
    }
    buf_puts(out, "],");
    put_placement(out, plan, model);
    put_discarded(out, plan, model);
    buf_printf(out, "\"unordered\":%s,", plan->unordered ? "true" : "false");
    put_cycles(out, plan);
    put_frontier(out, plan);
    buf_puts(out, "}");
}

static int read_host_ref(const struct model *model, const struct jval *v, int *out,
                         struct err *err)
{
    const char *name;

    if (jval_name(v, &name, err) < 0)
        return -1;
    *out = model_host(model, name);
    return *out >= 0 ? 0 : jval_error(v, err, "there is no host %s", name);
}

static int read_nullable_host(const struct model *model, const struct jval *object,
                              const char *key, int *out, struct err *err)
{
    struct jval v = jval_get(object, key);

    *out = -1;
    return jval_null(&v) ? 0 : read_host_ref(model, &v, out, err);
}

static int read_counts(const struct model *model, const struct jval *list,
                       struct host_count **out, size_t *n_out, struct err *err)
{
    static const char *const keys[] = {"host", "count", NULL};
    size_t n;

    if (jval_array(list, MODEL_MAX_INSTANCES, &n, err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        struct jval v = jval_at(list, i);
        struct host_count row;
        if (jval_object(&v, keys, err) < 0)
            return -1;
        struct jval host = jval_get(&v, "host"), count = jval_get(&v, "count");
        if (read_host_ref(model, &host, &row.host, err) < 0 ||
            jval_int(&count, 1, MODEL_MAX_INSTANCES, &row.count, err) < 0)
            return -1;
        *ARRAY_PUSH(*out, *n_out) = row;
    }
    return 0;
}

static int read_instance_move(const struct model *model, const struct jval *v, struct move *move,
                              struct err *err)
{
    static const char *const keys[] = {"seq", "instance", "service", "source", "target", "gain",
                                       NULL};
    struct jval instance = jval_get(v, "instance"), target = jval_get(v, "target");
    const char *name;

    if (jval_object(v, keys, err) < 0 || jval_name(&instance, &name, err) < 0)
        return -1;
    move->instance = model_instance(model, name);
    if (move->instance < 0)
        return jval_error(&instance, err, "there is no instance %s", name);
    if (read_nullable_host(model, v, "source", &move->source, err) < 0 ||
        read_host_ref(model, &target, &move->target, err) < 0)
        return -1;
    move->restarts = move->source >= 0;
    return 0;
}

static int read_service_move(const struct model *model, const struct jval *v, struct move *move,
                             struct err *err)
{
    static const char *const keys[] = {"seq",     "service",  "instance", "sources",
                                       "targets", "restarts", "gain",     NULL};
    struct jval instance = jval_get(v, "instance"), sources = jval_get(v, "sources"),
                targets = jval_get(v, "targets"), restarts = jval_get(v, "restarts");

    if (jval_object(v, keys, err) < 0)
        return -1;
    if (!jval_null(&instance))
        return jval_error(&instance, err, "must be null in a plan of services");
    if (read_counts(model, &sources, &move->sources, &move->n_sources, err) < 0 ||
        read_counts(model, &targets, &move->targets, &move->n_targets, err) < 0)
        return -1;
    return jval_int(&restarts, 0, MODEL_MAX_INSTANCES, &move->restarts, err);
}

static int read_move(struct plan *plan, const struct model *model, const struct jval *v,
                     struct err *err)
{
    struct jval seq = jval_get(v, "seq"), service = jval_get(v, "service"),
                gain = jval_get(v, "gain");
    int64_t number;
    const char *name;

    struct move *move = ARRAY_PUSH(plan->moves, plan->n_moves);
    move->instance = move->source = move->target = -1;
    int rc = plan->granularity == PER_SERVICE ? read_service_move(model, v, move, err)
                                              : read_instance_move(model, v, move, err);
    if (rc < 0 || jval_int(&seq, 1, MODEL_MAX_INSTANCES, &number, err) < 0 ||
        jval_real(&gain, -1e18, 1e18, &move->gain, err) < 0 || jval_name(&service, &name, err) < 0)
        return -1;
    move->seq = (int)number;
    move->service = model_service(model, name);
    return move->service >= 0 ? 0 : jval_error(&service, err, "there is no service %s", name);
}

static int read_placement(struct plan *plan, const struct model *model, const struct jval *list,
                          struct err *err)
{
    static const char *const keys[] = {"instance", "host", NULL};
    AUTO_FREE bool *seen = mem_array(model->n_instances, sizeof *seen);
    size_t n;

    if (jval_array(list, MODEL_MAX_INSTANCES, &n, err) < 0)
        return -1;
    if (n != model->n_instances)
        return jval_error(list, err, "has %zu instances, the model %zu", n, model->n_instances);
    plan->placement = mem_array(n, sizeof *plan->placement);
    plan->n_placement = n;
    for (size_t i = 0; i < n; i++) {
        struct jval v = jval_at(list, i);
        const char *name;
        if (jval_object(&v, keys, err) < 0)
            return -1;
        struct jval name_at = jval_get(&v, "instance");
        if (jval_name(&name_at, &name, err) < 0)
            return -1;
        int instance = model_instance(model, name);
        if (instance < 0 || seen[instance])
            return jval_error(&name_at, err, "%s is %s", name,
                              instance < 0 ? "no instance" : "there twice");
        seen[instance] = true;
        if (read_nullable_host(model, &v, "host", &plan->placement[instance], err) < 0)
            return -1;
    }
    return 0;
}

static int read_discarded(struct plan *plan, const struct model *model, const struct jval *v,
                          struct err *err)
{
    static const char *const keys[] = {"a", "b", "degree", "why", NULL};
    struct jval ends[2] = {jval_get(v, "a"), jval_get(v, "b")}, degree = jval_get(v, "degree"),
                why = jval_get(v, "why");
    struct discarded row;
    const char *names[2], *text;

    if (jval_object(v, keys, err) < 0 || jval_name(&ends[0], &names[0], err) < 0 ||
        jval_name(&ends[1], &names[1], err) < 0 ||
        jval_real(&degree, 0, 1e18, &row.degree, err) < 0 ||
        jval_text(&why, WHY_MAX_BYTES, &text, err) < 0)
        return -1;
    if (model_ends(model, names[0], names[1], &row.level, &row.a, &row.b) < 0)
        return jval_error(v, err, "a or b is no instance or service");
    row.why = mem_strdup(text);
    *ARRAY_PUSH(plan->discarded, plan->n_discarded) = row;
    return 0;
}

static int read_cycle(struct plan *plan, const struct jval *v, struct err *err)
{
    size_t n;

    if (jval_array(v, MODEL_MAX_INSTANCES, &n, err) < 0)
        return -1;
    int **cycle = ARRAY_PUSH(plan->cycles, plan->n_cycles);
    *cycle = mem_array(n + 1, sizeof **cycle);
    for (size_t i = 0; i < n; i++) {
        struct jval at = jval_at(v, i);
        int64_t seq;
        if (jval_int(&at, 1, MODEL_MAX_INSTANCES, &seq, err) < 0)
            return -1;
        (*cycle)[i] = (int)seq;
    }
    return 0;
}

/* null leaves the default. */
static int read_nullable_real(const struct jval *root, const char *key, double *out, bool *given,
                              struct err *err)
{
    struct jval v = jval_get(root, key);

    if (jval_null(&v))
        return 0;
    if (given)
        *given = true;
    return jval_real(&v, -1e18, 1e18, out, err);
}

static int read_count(const struct jval *root, const char *key, int64_t *out, struct err *err)
{
    struct jval v = jval_get(root, key);

    return jval_int(&v, 0, MODEL_MAX_NUMBER, out, err);
}

static int read_texts(struct plan *plan, const struct jval *root, struct err *err)
{
    struct {
        const char *key;
        char **out;
    } texts[] = {{"requested", &plan->requested}, {"planner", &plan->planner}, {"why", &plan->why}};

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct jval v = jval_get(root, texts[i].key);
        const char *text;
        if (jval_text(&v, WHY_MAX_BYTES, &text, err) < 0)
            return -1;
        *texts[i].out = mem_strdup(text);
    }
    return 0;
}

static int read_scalars(struct plan *plan, const struct jval *root, struct err *err)
{
    struct jval objective = jval_get(root, "objective"), cut = jval_get(root, "cut"),
                granularity = jval_get(root, "granularity"), status = jval_get(root, "status"),
                hosts_bound = jval_get(root, "hosts_bound"),
                within = jval_get(root, "affinity_bound_hosts"),
                unordered = jval_get(root, "unordered"), version = jval_get(root, "v");
    int choices[3];
    int64_t v;
    double gap;

    if (jval_int(&version, 1, 1, &v, err) < 0 || read_texts(plan, root, err) < 0 ||
        jval_choice(&objective, objectives, &choices[0], err) < 0 ||
        jval_choice(&granularity, granularities, &choices[1], err) < 0 ||
        jval_choice(&status, statuses, &choices[2], err) < 0 ||
        jval_bool(&cut, &plan->cut, err) < 0 || jval_bool(&unordered, &plan->unordered, err) < 0)
        return -1;
    plan->objective = (enum objective)choices[0];
    plan->granularity = (enum granularity)choices[1];
    plan->status = (enum plan_status)choices[2];
    if (read_nullable_real(root, "affinity_bound", &plan->affinity_bound, &plan->has_bound, err) ||
        read_nullable_real(root, "coverage", &plan->coverage, NULL, err) < 0 ||
        read_nullable_real(root, "gap", &gap, NULL, err) < 0 ||
        (!jval_absent(&within) &&
         jval_real(&within, -1e18, 1e18, &plan->affinity_bound_hosts, err) < 0) ||
        (!jval_null(&hosts_bound) && read_count(root, "hosts_bound", &plan->hosts_bound, err) < 0))
        return -1;
    struct jval before = jval_get(root, "affinity_before"), after = jval_get(root, "affinity_after");
    if (jval_real(&before, -1e18, 1e18, &plan->affinity_before, err) < 0 ||
        jval_real(&after, -1e18, 1e18, &plan->affinity_after, err) < 0 ||
        read_count(root, "hosts_before", &plan->hosts_before, err) < 0 ||
        read_count(root, "hosts_after", &plan->hosts_after, err) < 0 ||
        read_count(root, "restarts", &plan->restarts, err) < 0 ||
        jval_opt_int(root, "iterations", 0, MODEL_MAX_NUMBER, &plan->iterations, err) < 0)
        return -1;
    return jval_opt_int(root, "solve_ms", 0, MODEL_MAX_NUMBER, &plan->solve_ms, err);
}

static int read_frontier(struct plan *plan, const struct jval *root, struct err *err)
{
    static const char *const keys[] = {"restarts", "hosts", "affinity", NULL};
    struct jval frontier = jval_get(root, "frontier");
    size_t n;

    if (jval_absent(&frontier))
        return 0;
    if (jval_array(&frontier, MODEL_MAX_INSTANCES, &n, err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        struct jval v = jval_at(&frontier, i), affinity = jval_get(&v, "affinity");
        struct frontier_point *point = ARRAY_PUSH(plan->frontier, plan->n_frontier);
        if (jval_object(&v, keys, err) < 0 ||
            read_count(&v, "restarts", &point->restarts, err) < 0 ||
            read_count(&v, "hosts", &point->hosts, err) < 0 ||
            jval_real(&affinity, 0, 1e30, &point->affinity, err) < 0)
            return -1;
    }
    return 0;
}

static int read_lists(struct plan *plan, const struct model *model, const struct jval *root,
                      struct err *err)
{
    struct jval moves = jval_get(root, "moves"), placement = jval_get(root, "placement"),
                discarded = jval_get(root, "discarded"), cycles = jval_get(root, "cycles");
    size_t n;

    if (jval_array(&moves, MODEL_MAX_INSTANCES, &n, err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        struct jval v = jval_at(&moves, i);
        if (read_move(plan, model, &v, err) < 0)
            return -1;
    }
    if (read_placement(plan, model, &placement, err) < 0 ||
        jval_array(&discarded, MODEL_MAX_ROWS, &n, err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        struct jval v = jval_at(&discarded, i);
        if (read_discarded(plan, model, &v, err) < 0)
            return -1;
    }
    if (jval_array(&cycles, MODEL_MAX_INSTANCES, &n, err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        struct jval v = jval_at(&cycles, i);
        if (read_cycle(plan, &v, err) < 0)
            return -1;
    }
    return read_frontier(plan, root, err);
}

struct plan *plan_decode_value(const struct jval *value, const struct model *model,
                               struct err *err)
{
    static const char *const keys[] = {
        "v", "requested", "planner", "why", "objective", "granularity", "status", "cut",
        "iterations", "affinity_before", "affinity_after", "affinity_bound", "gap", "hosts_before",
        "hosts_after", "hosts_bound", "affinity_bound_hosts", "restarts", "coverage", "solve_ms", "moves", "placement",
        "discarded", "unordered", "cycles", "frontier", NULL};
    AUTO(plan) struct plan *plan = plan_new();

    if (jval_object(value, keys, err) < 0 || read_scalars(plan, value, err) < 0 ||
        read_lists(plan, model, value, err) < 0)
        return NULL;
    return steal(plan);
}
