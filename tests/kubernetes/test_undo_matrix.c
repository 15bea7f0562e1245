/* test_undo_matrix.c - rule 2 of interfaces.md 1.9: whatever a template had as affinity, whoever
 * deploys it, after a move and its undo it is byte for byte as it was, and the owner's own re-apply
 * meets no conflict and starts no rollout. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "adapters/kubernetes/kube.h"
#include "adapters/kubernetes/kubernetes.h"
#include "model/base/json.h"
#include "tests/support/kube_shop.h"

#define NODES 4

static struct kube_cluster *cluster;
static struct shop shop;

static const struct {
    const char *name, *more;
    bool preferred;
} befores[] = {
    {"absent", "", false},
    {"empty", ",\"affinity\":{}", false},
    {"preferred",
     ",\"affinity\":{\"nodeAffinity\":{\"preferredDuringSchedulingIgnoredDuringExecution\":[{"
     "\"weight\":7,\"preference\":{\"matchExpressions\":[{\"key\":\"disk\",\"operator\":\"In\","
     "\"values\":[\"ssd\"]}]}}]}}",
     true},
    {"required",
     ",\"affinity\":{\"nodeAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":{"
     "\"nodeSelectorTerms\":[{\"matchExpressions\":[{\"key\":\"kubernetes.io/os\",\"operator\":"
     "\"In\",\"values\":[\"linux\"]}]}]}}}",
     false},
};

/* Helm 3 sends what a three-way merge says, as kubectl apply does, under a name of its own; Argo CD
 * applies on the server and forces. */
static const struct {
    const char *name;
    const char *arguments[4];
    bool updates;
} managers[] = {
    {"client", {NULL}, true},
    {"server", {"--server-side", "--field-manager=ci", NULL}, false},
    {"helm", {"--field-manager=helm", NULL}, true},
    {"argo", {"--server-side", "--force-conflicts", "--field-manager=argocd-controller", NULL}, false},
};

struct cell {
    char name[64];
    char *manifest, *affinity, *saved;
    const char *const *arguments;
    int64_t generation;
};

static struct cell cells[ARRAY_LEN(befores)][ARRAY_LEN(managers)];

#define EACH_CELL(b, m)                                                                            \
    for (size_t b = 0; b < ARRAY_LEN(befores); b++)                                                \
        for (size_t m = 0; m < ARRAY_LEN(managers); m++)

static void reapply_changes_nothing(const struct cell *cell, const char *when)
{
    int64_t before = shop_generation(&shop, cell->name);
    if (!shop_apply(&shop, cell->manifest, cell->arguments))
        fail_msg("%s: the owner's re-apply fails %s", cell->name, when);
    if (shop_generation(&shop, cell->name) != before)
        fail_msg("%s: the owner's re-apply starts a rollout %s", cell->name, when);
}

/* ReplicaSets: one for each template that it has had. */
static int count_sets(const char *name)
{
    struct err err = ERR_INIT;
    AUTO_JSON json_t *list = NULL;
    AUTO_FREE char *path = mem_printf(
        "/apis/apps/v1/namespaces/%s/replicasets?labelSelector=app%%3D%s", shop.space, name);
    assert_int_equal(kube_api_get(shop.api, path, &list, NULL, &err), 0);
    return (int)json_array_size(json_object_get(list, "items"));
}

static void cell_place(void *pins, struct cell *cell, bool allowed)
{
    struct err err = ERR_INIT;
    AUTO_FREE char *target = shop_other_node(&shop, cell->name, NODES);
    cell->generation = shop_generation(&shop, cell->name);
    cell->affinity = shop_affinity(&shop, cell->name);
    int rc = shop_place(pins, &shop, 1, cell->name, (const char *const[]){target, NULL}, 1,
                        &cell->saved, &err);
    if (rc && allowed)
        fail_msg("%s: %s", cell->name, err.text);
    if (!rc && !allowed)
        fail_msg("%s was placed into a list that somebody owns", cell->name);
    if (!allowed && !strstr(err.text, "affinity owned by"))
        fail_msg("%s: %s", cell->name, err.text);
}

static void cell_undo(void *pins, struct cell *cell)
{
    struct err err = ERR_INIT;
    struct settle_report r = shop_settle(pins, &shop, 1, cell->name);
    if (r.state != SETTLE_APPLIED)
        fail_msg("%s: state %d: %s", cell->name, r.state, r.detail);
    if (shop_undo(pins, &shop, 1, cell->name, cell->saved, &err))
        fail_msg("%s: %s", cell->name, err.text);
    r = shop_settle(pins, &shop, 1, cell->name);
    if (r.state != SETTLE_APPLIED)
        fail_msg("%s: undo: state %d: %s", cell->name, r.state, r.detail);
    AUTO_FREE char *back = shop_affinity(&shop, cell->name);
    if (strcmp(back, cell->affinity) != 0)
        fail_msg("%s: %s is not %s", cell->name, back, cell->affinity);
    assert_int_equal(count_sets(cell->name), 2); /* it went back to the old one */
    reapply_changes_nothing(cell, "after the undo");
}

static void test_rule_2_undo_in_every_cell_restores_the_bytes_and_the_owner_applies_again(
    void **state)
{
    (void)state;
    void *pins = shop_orchestrator(&shop, NULL);
    EACH_CELL(b, m)
        cell_place(pins, &cells[b][m], !befores[b].preferred);
    EACH_CELL(b, m)
    {
        if (befores[b].preferred) { /* refused: nothing was written */
            assert_int_equal(shop_generation(&shop, cells[b][m].name), cells[b][m].generation);
            reapply_changes_nothing(&cells[b][m], "though nothing was written");
            continue;
        }
        assert_true(shop_ready(&shop, cells[b][m].name));
        reapply_changes_nothing(&cells[b][m], "while it is pinned");
        cell_undo(pins, &cells[b][m]);
    }
    kubernetes_orchestrator.close(pins);
}

static void test_rule_1_undo_of_a_merge_restores_the_owners_list(void **state)
{
    (void)state;
    void *pins = shop_orchestrator(&shop, (const char *const[]){"foreign_affinity", "merge", NULL});
    for (size_t m = 0; m < ARRAY_LEN(managers); m++) {
        struct cell *cell = &cells[2][m]; /* with a preferred list of their own */
        free(steal(cell->affinity));
        cell_place(pins, cell, managers[m].updates);
        if (!managers[m].updates)
            continue;
        AUTO_FREE char *merged = shop_affinity(&shop, cell->name);
        assert_non_null(strstr(merged, "ssd"));
        assert_non_null(strstr(merged, "fake-"));
        cell_undo(pins, cell);
    }
    kubernetes_orchestrator.close(pins);
}

static int bring_up(void **state)
{
    (void)state;
    cluster = kube_cluster_new(&(struct kube_cluster_options){.fake = NODES});
    if (!cluster)
        exit(0);
    shop_open(&shop, cluster, "shop");
    EACH_CELL(b, m)
    {
        struct cell *cell = &cells[b][m];
        snprintf(cell->name, sizeof cell->name, "%s-%s", befores[b].name, managers[m].name);
        cell->manifest = shop_manifest(&shop, cell->name, 1, "", befores[b].more);
        cell->arguments = managers[m].arguments;
        if (!shop_apply(&shop, cell->manifest, cell->arguments))
            return -1;
    }
    EACH_CELL(b, m)
        if (!shop_ready(&shop, cells[b][m].name))
            return -1;
    return 0;
}

static int take_down(void **state)
{
    (void)state;
    EACH_CELL(b, m)
    {
        free(cells[b][m].manifest);
        free(cells[b][m].affinity);
        free(cells[b][m].saved);
    }
    shop_close(&shop);
    kube_cluster_free(steal(cluster));
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            test_rule_2_undo_in_every_cell_restores_the_bytes_and_the_owner_applies_again),
        cmocka_unit_test(test_rule_1_undo_of_a_merge_restores_the_owners_list),
    };
    return cmocka_run_group_tests(tests, bring_up, take_down);
}
