/* hba.c - HBA (paper §5.5.1 Algorithm 1, §6.3.1): one pass over the pairs in descending affinity.
 */
#include "planner/hba.h"

#include <stdlib.h>
#include <string.h>
#include "model/base/buf.h"
#include "planner/homeward.h"
#include "planner/rules.h"

/* Copies of all names beside each other: a reason may be written for each of 10^6 pairs, and names
 * spread over the heap would cost more than all the rest. */
struct labels {
    char *text;
    size_t *hosts, *instances; /* host h: text + hosts[h] … text + hosts[h + 1], without a zero */
};

struct hba {
    const struct model *model;
    const struct plan_options *options;
    struct plan *plan;
    struct load *offer, *used; /* by host */
    int *at;                   /* host of each instance, now */
    bool *settled;             /* moved, or pinned beside a partner */
    struct rules *rules;       /* NULL without rules */
    int *by_service;           /* instances grouped by service, in name order */
    size_t *first;             /* of service s: by_service[first[s]] … by_service[first[s + 1]] */
    struct labels labels;
};

static const char *name_of(const struct hba *hba, int instance)
{
    return hba->model->instances[instance].name;
}

static void labels_init(struct labels *labels, const struct model *model)
{
    struct buf text = {0};
    labels->hosts = mem_array(model->n_hosts + 1, sizeof *labels->hosts);
    labels->instances = mem_array(model->n_instances + 1, sizeof *labels->instances);
    for (size_t h = 0; h < model->n_hosts; h++) {
        labels->hosts[h] = text.size;
        buf_puts(&text, model->hosts[h].name);
    }
    labels->hosts[model->n_hosts] = text.size;
    for (size_t i = 0; i < model->n_instances; i++) {
        labels->instances[i] = text.size;
        buf_puts(&text, model->instances[i].name);
    }
    labels->instances[model->n_instances] = text.size;
    labels->text = text.data;
}

static void labels_wipe(struct labels *labels)
{
    free(labels->text);
    free(labels->hosts);
    free(labels->instances);
}

/* NULL when the instance can move to the host now, else why not. */
static const char *refusal(const struct hba *hba, int instance, int target)
{
    const struct model *model = hba->model;
    const struct instance *who = &model->instances[instance];
    const char *why = NULL;
    if (hba->settled[instance])
        return "settled beside a stronger partner";
    if ((why = instance_fixed_why(model, instance, false)))
        return why;
    if (hba->options->max_moves >= 0 && (int64_t)hba->plan->n_moves >= hba->options->max_moves)
        return hba->options->max_moves == 0 ? "no moves are allowed" : "no moves left";
    if (!model->hosts[target].schedulable)
        return "the host is not schedulable";
    struct load need = instance_load(who);
    if (!load_fits(&hba->offer[target], &hba->used[target], &need, &why))
        return why;
    return rules_problem(hba->rules, who->service, hba->at[instance], target);
}

/* "i to h: why" */
static size_t put_refusal(const struct labels *labels, char *out, int i, int h, const char *why)
{
    size_t name = labels->instances[i + 1] - labels->instances[i];
    size_t host = labels->hosts[h + 1] - labels->hosts[h], size = strlen(why);
    memcpy(out, labels->text + labels->instances[i], name);
    memcpy(out + name, " to ", 4);
    memcpy(out + name + 4, labels->text + labels->hosts[h], host);
    memcpy(out + name + host + 4, ": ", 2);
    memcpy(out + name + host + 6, why, size);
    return name + host + size + 6;
}

/* Why neither partner can join the other; for the caller to free. */
static char *reasons(const struct hba *hba, int i, int j, const char *why_i, const char *why_j)
{
    const struct labels *n = &hba->labels;
    int host_i = hba->at[i], host_j = hba->at[j];
    size_t size = n->instances[i + 1] - n->instances[i] + n->instances[j + 1] - n->instances[j] +
                  n->hosts[host_i + 1] - n->hosts[host_i] + n->hosts[host_j + 1] -
                  n->hosts[host_j] + strlen(why_i) + strlen(why_j) + 14;
    char *text = mem_resize(NULL, size + 1, 1);
    size_t at = put_refusal(n, text, j, host_i, why_j);
    memcpy(text + at, "; ", 2);
    at += 2;
    at += put_refusal(n, text + at, i, host_j, why_i);
    text[at] = '\0';
    return text;
}

static void hba_move(struct hba *hba, int instance, int target)
{
    struct load need = instance_load(&hba->model->instances[instance]);
    int service = hba->model->instances[instance].service, source = hba->at[instance];
    load_sub(&hba->used[source], &need);
    load_add(&hba->used[target], &need);
    rules_move(hba->rules, service, source, target);
    hba->at[instance] = target;
    struct move *move = ARRAY_PUSH(hba->plan->moves, hba->plan->n_moves);
    *move = (struct move){.seq = (int)hba->plan->n_moves,
                          .service = service,
                          .instance = instance,
                          .source = source,
                          .target = target,
                          .restarts = 1};
}

/* One pair, i the smaller name. True when the partners end on one host; else *why (if wanted) gets
 * the reasons, for the caller to free. */
static bool hba_pair(struct hba *hba, int i, int j, char **why)
{
    if (hba->at[i] < 0 || hba->at[j] < 0) {
        if (why)
            *why = mem_printf("%s is not placed", name_of(hba, hba->at[i] < 0 ? i : j));
        return false;
    }
    if (hba->at[i] != hba->at[j]) {
        const char *why_j = refusal(hba, j, hba->at[i]);
        const char *why_i = why_j ? refusal(hba, i, hba->at[j]) : NULL;
        if (why_i) {
            if (why)
                *why = reasons(hba, i, j, why_i, why_j);
            return false;
        }
        if (!why_j)
            hba_move(hba, j, hba->at[i]);
        else
            hba_move(hba, i, hba->at[j]);
    }
    hba->settled[i] = hba->settled[j] = true;
    return true;
}

static void hba_discard(struct hba *hba, const struct affinity *row, char *why)
{
    struct discarded *d = ARRAY_PUSH(hba->plan->discarded, hba->plan->n_discarded);
    *d = (struct discarded){row->level, row->a, row->b, row->degree, why};
}

/* A service row stands for the pairs of its instances, all of its degree, by smaller and then
 * larger name: a walk over both name-ordered lists, each name with all later ones of the other
 * side. */
static void hba_services(struct hba *hba, const struct affinity *row)
{
    const int *of[2] = {&hba->by_service[hba->first[row->a]], &hba->by_service[hba->first[row->b]]};
    size_t n[2] = {hba->first[row->a + 1] - hba->first[row->a],
                   hba->first[row->b + 1] - hba->first[row->b]};
    size_t at[2] = {0, 0};
    char *why = NULL;
    bool apart = false;
    while (at[0] < n[0] && at[1] < n[1]) {
        int side = strcmp(name_of(hba, of[0][at[0]]), name_of(hba, of[1][at[1]])) > 0;
        int i = of[side][at[side]++];
        for (size_t k = at[!side]; k < n[!side]; k++)
            apart |= !hba_pair(hba, i, of[!side][k], why ? NULL : &why);
    }
    if (apart)
        hba_discard(hba, row, why);
}

static void hba_rows(struct hba *hba, const struct affinity *rows, size_t n)
{
    for (size_t r = 0; r < n; r++) {
        const struct affinity *row = &rows[r];
        char *why = NULL;
        if (row->degree <= 0)
            continue;
        if (row->level == LEVEL_SERVICE)
            hba_services(hba, row);
        else if (!hba_pair(hba, row->a, row->b, &why))
            hba_discard(hba, row, why);
    }
}

static int by_name(const void *left, const void *right, void *ctx)
{
    const struct model *model = ctx;
    const struct instance *a = &model->instances[*(const int *)left];
    const struct instance *b = &model->instances[*(const int *)right];
    return strcmp(a->name, b->name);
}

/* Only service rows need the instances of a service. */
static void hba_group(struct hba *hba, const struct affinity *rows, size_t n)
{
    const struct model *model = hba->model;
    size_t r = 0;
    while (r < n && rows[r].level != LEVEL_SERVICE)
        r++;
    if (r == n)
        return;
    hba->first = mem_array(model->n_services + 2, sizeof *hba->first);
    hba->by_service = mem_array(model->n_instances, sizeof *hba->by_service);
    for (size_t i = 0; i < model->n_instances; i++)
        hba->first[model->instances[i].service + 2]++;
    for (size_t s = 0; s < model->n_services; s++)
        hba->first[s + 2] += hba->first[s + 1];
    for (size_t i = 0; i < model->n_instances; i++)
        hba->by_service[hba->first[model->instances[i].service + 1]++] = (int)i;
    for (size_t s = 0; s < model->n_services; s++)
        qsort_r(&hba->by_service[hba->first[s]], hba->first[s + 1] - hba->first[s],
                sizeof *hba->by_service, by_name, (void *)(uintptr_t)model);
}

static int hba_plan(const struct model *model, const struct analysis *analysis,
                    const struct plan_options *options, struct plan *out, struct err *err)
{
    struct hba hba = {.model = model, .options = options, .plan = out};
    hba.at = model_placement(model);
    hba.used = model_host_loads(model);
    hba.offer = mem_array(model->n_hosts, sizeof *hba.offer);
    for (size_t h = 0; h < model->n_hosts; h++)
        hba.offer[h] = host_offer(&model->hosts[h]);
    hba.settled = mem_array(model->n_instances, sizeof *hba.settled);
    hba.rules = rules_new(model, hba.at);
    labels_init(&hba.labels, model);
    hba_group(&hba, analysis->rows, analysis->n_rows);

    hba_rows(&hba, analysis->rows, analysis->n_rows);

    out->planner = mem_strdup("hba");
    out->why = mem_strdup("pairs in descending affinity, each at most once (HBA)");
    out->status = PLAN_FEASIBLE;
    out->placement = steal(hba.at);
    out->n_placement = model->n_instances;
    plan_measure(out, model, analysis->rows, analysis->n_rows);
    int result = options->min_gain > 0 ? homeward_plan(out, model, analysis, options, err) : 0;
    free(hba.used);
    free(hba.offer);
    free(hba.settled);
    rules_free(hba.rules);
    free(hba.by_service);
    free(hba.first);
    labels_wipe(&hba.labels);
    return result;
}

const struct planner hba_planner = {
    .name = "hba",
    .summary = "the paper's heuristic: pairs in descending affinity (Algorithm 1)",
    .takes = TAKES_MAX_MOVES | TAKES_MIN_GAIN,
    .plan = hba_plan,
};
