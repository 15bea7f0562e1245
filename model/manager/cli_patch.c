/* cli_patch.c - `remap show CYCLE -o patch`: moves of Kubernetes workloads that remap does not make
 * itself, as patches for whoever owns the manifests (interfaces.md 1.9 rule 1; contract.md 1).
 *
 * Two kinds of them: moves of the plan that were not made, and those that a plan would hold if
 * workloads whose affinity somebody owns were not pinned because of it. For these the stored
 * snapshot is planned again. */
#include "model/manager/cli_patch.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/json.h"
#include "model/manager/decision.h"
#include "model/manager/filter.h"
#include "model/model_json.h"

#define OWNED "affinity owned by " /* how adapters/kubernetes says it */
#define HOSTNAME "kubernetes.io/hostname"

/* --- whose affinity is owned --- */

static const char *owned_why(const struct model *model, int service)
{
    for (size_t i = 0; i < model->n_instances; i++) {
        const char *why = model->instances[i].pinned_why;
        if (model->instances[i].service == service && why &&
            strncmp(why, OWNED, strlen(OWNED)) == 0) {
            return why;
        }
    }
    return NULL;
}

static bool lift(struct model *model)
{
    bool any = false;
    for (size_t i = 0; i < model->n_instances; i++) {
        char **why = &model->instances[i].pinned_why;
        if (*why && strncmp(*why, OWNED, strlen(OWNED)) == 0) {
            free(*why);
            *why = NULL;
            any = true;
        }
    }
    return any;
}

/* The plan without those pins; NULL and no error where there is none of them. */
static struct plan *plan_lifted(const struct decision *d, struct err *err)
{
    AUTO(model) struct model *model = model_copy(d->model);
    AUTO_BUF struct buf request = BUF_INIT, result = BUF_INIT;
    int exit_code;
    if (!lift(model)) {
        return NULL;
    }
    buf_puts(&request, "{\"v\":1,\"options\":");
    buf_add(&request, d->options_text.data, d->options_text.size);
    buf_puts(&request, ",\"model\":");
    model_encode(model, &request);
    buf_puts(&request, ",\"analysis\":");
    if (d->analysis_text.size) {
        buf_add(&request, d->analysis_text.data, d->analysis_text.size);
    } else {
        buf_puts(&request, "null");
    }
    buf_puts(&request, "}");
    if (stage_filter_run(PARTY_PLANNER, MSG_PLAN, request.data, request.size, false, &result,
                         &exit_code, err)) {
        return NULL;
    }
    AUTO_JSON json_t *tree = json_parse(result.data, result.size, &json_limits_document, err);
    struct jval root = jval_root(tree);
    return tree ? plan_decode_value(&root, d->model, err) : NULL;
}

/* --- one patch --- */

/* The label that names the host among all others, or NULL. */
static const char *hostname_of(const struct model *model, int host)
{
    const char *own = NULL;
    for (size_t i = 0; i < model->hosts[host].n_labels; i++) {
        if (strcmp(model->hosts[host].labels[i].name, HOSTNAME) == 0) {
            own = model->hosts[host].labels[i].value;
        }
    }
    for (size_t h = 0; own && h < model->n_hosts; h++) {
        for (size_t i = 0; (int)h != host && i < model->hosts[h].n_labels; i++) {
            const struct label *label = &model->hosts[h].labels[i];
            if (strcmp(label->name, HOSTNAME) == 0 && strcmp(label->value, own) == 0) {
                return NULL;
            }
        }
    }
    return own;
}

static void put_term(const struct model *model, int host, struct buf *out)
{
    const char *label = hostname_of(model, host);
    buf_printf(out, "            - weight: 100\n              preference:\n"
                    "                %s:\n                - key: %s\n"
                    "                  operator: In\n                  values: [",
               label ? "matchExpressions" : "matchFields", label ? HOSTNAME : "metadata.name");
    json_put_text(out, label ? label : model->hosts[host].name);
    buf_puts(out, "]\n");
}

/* "Deployment", "shop", "web" of "shop/web" or "shop/Deployment/web"; false where the name is none of
 * a cluster with namespaces. */
static bool split_name(const struct service *service, char **space, char **kind, char **name)
{
    char *parts = mem_strdup(service->name);
    char *first = strchr(parts, '/'), *second = first ? strchr(first + 1, '/') : NULL;
    *space = *kind = *name = NULL;
    if (first) {
        *first = '\0';
        if (second) {
            *second = '\0';
        }
        *space = mem_strdup(parts);
        *kind = mem_strdup(second ? first + 1 : service->stateful ? "StatefulSet" : "Deployment");
        *name = mem_strdup(second ? second + 1 : first + 1);
    }
    free(parts);
    return *name != NULL;
}

static void put_patch(const struct model *model, const struct move *move, const char *why,
                      struct buf *out)
{
    AUTO_FREE char *space, *kind, *name;
    if (move->n_targets == 0 ||
        !split_name(&model->services[move->service], &space, &kind, &name)) {
        return;
    }
    buf_printf(out, "%s# %s/%s:", out->size ? "---\n" : "", space, name);
    for (size_t i = 0; i < move->n_targets; i++) {
        buf_printf(out, "%s %" PRId64 " on %s", i ? "," : "", move->targets[i].count,
                   model->hosts[move->targets[i].host].name);
    }
    buf_printf(out, "; restarts %" PRId64 ", gains %.4f%s%s\n", move->restarts, move->gain,
               why ? "; " : "", why ? why : "");
    buf_printf(out, "apiVersion: apps/v1\nkind: %s\nmetadata:\n  name: ", kind);
    json_put_text(out, name);
    buf_puts(out, "\n  namespace: ");
    json_put_text(out, space);
    buf_puts(out, "\nspec:\n  template:\n    spec:\n      affinity:\n        nodeAffinity:\n"
                  "          preferredDuringSchedulingIgnoredDuringExecution:\n");
    for (size_t i = 0; i < move->n_targets; i++) {
        put_term(model, move->targets[i].host, out);
    }
}

/* --- all of them --- */

/* Was it left to others? What runs, has run or is still to be run by us is not. */
static bool is_offered(const struct decision *d, const struct move *move, const char **why)
{
    const struct move_row *row = decision_move(d, move->seq);
    *why = row ? row->reason : NULL;
    if (!row || strcmp(row->state, "planned") == 0) {
        return true;
    }
    return strcmp(row->state, "discarded") == 0 && row->reason && strstr(row->reason, OWNED);
}

static void put_patches(const struct decision *d, const struct plan *lifted, struct buf *out)
{
    const char *why;
    for (size_t i = 0; i < d->plan->n_moves; i++) {
        if (is_offered(d, &d->plan->moves[i], &why)) {
            put_patch(d->model, &d->plan->moves[i], why, out);
        }
    }
    for (size_t i = 0; lifted && i < lifted->n_moves; i++) {
        why = owned_why(d->model, lifted->moves[i].service);
        if (why) {
            put_patch(d->model, &lifted->moves[i], why, out);
        }
    }
}

int patch_offer(struct store *store, int64_t cycle, struct buf *out, struct err *err)
{
    AUTO_DECISION struct decision d = {0};
    struct err why = ERR_INIT;
    AUTO_BUF struct buf patches = BUF_INIT;
    if (decision_load(store, cycle, &d, err)) {
        return -1;
    }
    AUTO(plan) struct plan *lifted = d.plan ? plan_lifted(&d, &why) : NULL;
    if (why.kind) {
        *err = why;
        return -1;
    }
    if (d.plan) {
        put_patches(&d, lifted, &patches);
    }
    if (patches.size == 0) {
        return err_set(err, ERR_USAGE,
                       "cycle %" PRId64 ": has nothing to offer as a patch; patches are for moves "
                       "of Kubernetes workloads that remap does not make itself, such as those "
                       "whose affinity somebody else owns",
                       cycle);
    }
    buf_printf(out, "# Patches of cycle %" PRId64 " for the owners of these manifests: put them into\n"
                    "# the manifests, or try one with `kubectl patch --patch-file`. The API knows\n"
                    "# this list as a whole only: keep terms of your own in it.\n",
               cycle);
    buf_add(out, patches.data, patches.size);
    return 0;
}
