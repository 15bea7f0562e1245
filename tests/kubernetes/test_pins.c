/* test_pins.c - pins on a real API server, with the real controllers and scheduler: placed, settled,
 * missed, failed, reverted, put back (interfaces.md 1.5 to 1.9). The matrix of rule 2 is in
 * test_undo_matrix.c. */
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
#include "adapters/kubernetes/mark.h"
#include "model/base/clock.h"
#include "model/base/json.h"
#include "tests/support/kube_shop.h"

#define NODES 6
#define NODE(name) ((const char *const[]){name, NULL})

static struct kube_cluster *cluster;
static struct shop shop;
static void *pins; /* an orchestrator with default options */

static void placed(void *ctx, int64_t seq, const char *name, const char *const *nodes, int64_t each,
                   char **saved)
{
    struct err err = ERR_INIT;
    if (shop_place(ctx, &shop, seq, name, nodes, each, saved, &err))
        fail_msg("%s: %s", name, err.text);
}

static void refused(void *ctx, int64_t seq, const char *name, const char *const *nodes,
                    const char *reason)
{
    struct err err = ERR_INIT;
    AUTO_FREE char *saved = NULL;
    if (shop_place(ctx, &shop, seq, name, nodes, 1, &saved, &err) == 0)
        fail_msg("%s was placed", name);
    if (err.kind != ERR_CONFLICT || !strstr(err.text, reason))
        fail_msg("%s: %s: %s", name, err_kind_name(err.kind), err.text);
    assert_null(saved);
}

static void settles(void *ctx, int64_t seq, const char *name, enum settle_state state)
{
    struct settle_report r = shop_settle(ctx, &shop, seq, name);
    if (r.state != state)
        fail_msg("%s: state %d, not %d: %s", name, r.state, state, r.detail);
}

static void kubectl(const char *const *arguments)
{
    if (!kube_cluster_kubectl(cluster, NULL, NULL, arguments))
        fail_msg("kubectl %s %s", arguments[0], arguments[1]);
}
#define DO(...) kubectl((const char *const[]){"-n", "shop", __VA_ARGS__, NULL})

static void test_move_when_there_is_room_lands_where_it_was_sent_and_comes_back(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    AUTO_FREE char *saved = NULL, *again = NULL, *pinned = NULL, *back = NULL;
    assert_true(shop_deploy(&shop, "plain", 2, ""));
    AUTO_FREE char *target = shop_other_node(&shop, "plain", NODES);
    placed(pins, 1, "plain", NODE(target), 2, &saved);
    settles(pins, 1, "plain", SETTLE_APPLIED);
    assert_int_equal(shop_pods_on(&shop, "plain", target), 2);
    int64_t generation = shop_generation(&shop, "plain");
    placed(pins, 1, "plain", NODE(target), 2, &again); /* the same move again changes nothing */
    assert_int_equal(shop_generation(&shop, "plain"), generation);
    assert_string_equal(saved, again);
    pinned = shop_affinity(&shop, "plain");
    assert_non_null(strstr(pinned, target));

    assert_int_equal(shop_undo(pins, &shop, 1, "plain", saved, &err), 0);
    settles(pins, 1, "plain", SETTLE_APPLIED);
    back = shop_affinity(&shop, "plain");
    assert_string_equal(back, "absent");
    generation = shop_generation(&shop, "plain");
    assert_int_equal(shop_undo(pins, &shop, 1, "plain", saved, &err), 0); /* nor does the undo */
    assert_int_equal(shop_generation(&shop, "plain"), generation);
    AUTO_JSON json_t *workload = shop_get(&shop, "deployments", "plain");
    assert_null(kube_text(kube_path(workload, "metadata", "annotations"), MARK_ANNOTATION));
}

static void test_move_when_a_new_process_asks_knows_its_mark(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    AUTO_FREE char *saved = NULL, *again = NULL, *back = NULL;
    void *later = shop_orchestrator(&shop, NULL);
    assert_true(shop_deploy(&shop, "marked", 1, ""));
    AUTO_FREE char *target = shop_other_node(&shop, "marked", NODES);
    placed(pins, 1, "marked", NODE(target), 1, &saved);
    placed(later, 1, "marked", NODE(target), 1, &again);
    assert_string_equal(saved, again);
    settles(later, 1, "marked", SETTLE_APPLIED);
    assert_int_equal(shop_undo(later, &shop, 1, "marked", NULL, &err), 0); /* the mark is enough */
    back = shop_affinity(&shop, "marked");
    assert_string_equal(back, "absent");
    kubernetes_orchestrator.close(later);
}

static void test_second_move_when_undone_returns_to_the_first_and_release_to_the_original(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    AUTO_FREE char *first = NULL, *second = NULL, *third = NULL;
    int64_t restarts = 0;
    const struct app_scope app = {.name = "shop"};
    assert_true(shop_deploy(&shop, "twice", 1, ",\"affinity\":{}"));
    AUTO_FREE char *one = shop_other_node(&shop, "twice", NODES);
    placed(pins, 1, "twice", NODE(one), 1, &first);
    settles(pins, 1, "twice", SETTLE_APPLIED);
    AUTO_FREE char *pinned = shop_affinity(&shop, "twice");
    AUTO_FREE char *two = shop_other_node(&shop, "twice", NODES);
    placed(pins, 2, "twice", NODE(two), 1, &second);
    settles(pins, 2, "twice", SETTLE_APPLIED);
    assert_int_equal(shop_undo(pins, &shop, 1, "twice", first, &err), -1);
    assert_non_null(strstr(err.text, "was moved again"));
    assert_int_equal(shop_undo(pins, &shop, 2, "twice", second, &err), 0);
    settles(pins, 2, "twice", SETTLE_APPLIED);
    AUTO_FREE char *back = shop_affinity(&shop, "twice");
    assert_string_equal(back, pinned);
    placed(pins, 3, "twice", NODE(two), 1, &third); /* what an undo wrote is in nobody's way */
    settles(pins, 3, "twice", SETTLE_APPLIED);
    assert_int_equal(shop_undo(pins, &shop, 3, "twice", third, &err), 0);
    settles(pins, 3, "twice", SETTLE_APPLIED);
    AUTO_FREE char *again = shop_affinity(&shop, "twice");
    assert_string_equal(again, pinned);

    assert_int_equal(kubernetes_orchestrator.release(pins, &app, "shop/twice", true, &restarts, &err),
                     0);
    assert_int_equal(restarts, 1); /* said first … */
    AUTO_FREE char *still = shop_affinity(&shop, "twice");
    assert_string_equal(still, pinned);
    restarts = 0;
    if (kubernetes_orchestrator.release(pins, &app, "shop/twice", false, &restarts, &err))
        fail_msg("%s", err.text);
    assert_int_equal(restarts, 1); /* … then done */
    AUTO_FREE char *original = shop_affinity(&shop, "twice");
    assert_string_equal(original, "{}"); /* not absent: that would be a rollout more at their apply */
    assert_int_equal(kubernetes_orchestrator.release(pins, &app, "shop/twice", false, &restarts, &err),
                     0);
    assert_int_equal(restarts, 0);
}

static void test_undo_when_somebody_released_meanwhile_takes_out_only_the_pin(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    AUTO_FREE char *saved = NULL;
    assert_true(shop_deploy(&shop, "released", 1, ""));
    AUTO_FREE char *target = shop_other_node(&shop, "released", NODES);
    placed(pins, 1, "released", NODE(target), 1, &saved);
    settles(pins, 1, "released", SETTLE_APPLIED);
    DO("patch", "deployment", "released", "--type=strategic", "-p",
       "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"main\",\"image\":\"main:2\"}],"
       "\"affinity\":{\"podAntiAffinity\":{\"preferredDuringSchedulingIgnoredDuringExecution\":["
       "{\"weight\":1,\"podAffinityTerm\":{\"topologyKey\":\"kubernetes.io/hostname\","
       "\"labelSelector\":{\"matchLabels\":{\"app\":\"x\"}}}}]}}}}}}");
    assert_int_equal(shop_undo(pins, &shop, 1, "released", saved, &err), 0);
    AUTO_FREE char *left = shop_affinity(&shop, "released");
    assert_non_null(strstr(left, "podAntiAffinity"));
    assert_null(strstr(left, "nodeAffinity"));
    AUTO_JSON json_t *workload = shop_get(&shop, "deployments", "released");
    AUTO_FREE char *text = json_dumps(workload, JSON_COMPACT);
    assert_non_null(strstr(text, "main:2"));
}

static void test_rule_11_pin_when_reverted_by_another_manager_is_told_and_rests(void **state)
{
    (void)state;
    AUTO_FREE char *saved = NULL;
    assert_true(shop_deploy(&shop, "fought", 1, ""));
    AUTO_FREE char *target = shop_other_node(&shop, "fought", NODES);
    placed(pins, 1, "fought", NODE(target), 1, &saved);
    settles(pins, 1, "fought", SETTLE_APPLIED);
    DO("patch", "deployment", "fought", "--type=json", "--field-manager=gitops", "-p",
       "[{\"op\":\"remove\",\"path\":\"/spec/template/spec/affinity\"}]");
    struct settle_report r = shop_settle(pins, &shop, 1, "fought");
    assert_int_equal(r.state, SETTLE_MISSED);
    assert_non_null(strstr(r.detail, "reverted by"));
    void *later = shop_orchestrator(&shop, NULL); /* whoever comes next reads it on the workload */
    refused(later, 2, "fought", NODE(target), "rests until the annotation remap/intent is removed");
    kubernetes_orchestrator.close(later);
    DO("annotate", "deployment", "fought", "remap/intent-");
    assert_true(shop_ready(&shop, "fought"));
    AUTO_FREE char *other = shop_other_node(&shop, "fought", NODES);
    AUTO_FREE char *again = NULL;
    placed(pins, 3, "fought", NODE(other), 1, &again);
}

static void test_rule_9_mark_when_removed_with_its_pin_is_not_written_again(void **state)
{
    (void)state;
    AUTO_FREE char *saved = NULL;
    assert_true(shop_deploy(&shop, "cleared", 1, ""));
    AUTO_FREE char *target = shop_other_node(&shop, "cleared", NODES);
    placed(pins, 1, "cleared", NODE(target), 1, &saved);
    DO("patch", "deployment", "cleared", "--type=json", "-p",
       "[{\"op\":\"remove\",\"path\":\"/spec/template/spec/affinity\"},{\"op\":\"remove\",\"path\":"
       "\"/metadata/annotations/remap~1intent\"}]");
    settles(pins, 1, "cleared", SETTLE_MISSED);
    refused(pins, 1, "cleared", NODE(target), "another hand");
}

static void test_rule_6_preferred_pin_when_a_neighbour_keeps_it_off_is_missed_and_stays(
    void **state)
{
    (void)state;
    AUTO_FREE char *saved = NULL;
    assert_true(shop_deploy(&shop, "guest", 1, ""));
    AUTO_FREE char *node = shop_other_node(&shop, "guest", NODES);
    /* Required anti-affinity of a neighbour is symmetric: it keeps the guest off silently. */
    AUTO_FREE char *jealous = mem_printf(
        ",\"nodeName\":\"%s\",\"affinity\":{\"podAntiAffinity\":{"
        "\"requiredDuringSchedulingIgnoredDuringExecution\":[{\"topologyKey\":\"kubernetes.io/hostname\","
        "\"labelSelector\":{\"matchLabels\":{\"app\":\"guest\"}}}]}}", node);
    assert_true(shop_deploy(&shop, "jealous", 1, jealous));
    placed(pins, 1, "guest", NODE(node), 1, &saved);
    struct settle_report r = shop_settle(pins, &shop, 1, "guest");
    assert_int_equal(r.state, SETTLE_MISSED);
    assert_non_null(strstr(r.detail, "0 of 1 replicas"));
    AUTO_FREE char *pin = shop_affinity(&shop, "guest");
    assert_non_null(strstr(pin, node));
    refused(pins, 2, "guest", NODE(node), "pinned there already"); /* nothing is written in vain */
}

static void test_rule_6_pod_when_evicted_afterwards_is_displaced(void **state)
{
    (void)state;
    AUTO_FREE char *saved = NULL;
    assert_true(shop_deploy(&shop, "evicted", 1, ""));
    AUTO_FREE char *node = shop_other_node(&shop, "evicted", NODES);
    placed(pins, 1, "evicted", NODE(node), 1, &saved);
    settles(pins, 1, "evicted", SETTLE_APPLIED);
    if (!shop_cordon(&shop, node))
        fail_msg("%s still takes pods", node);
    DO("delete", "pod", "-l", "app=evicted", "--force", "--grace-period=0");
    assert_true(shop_ready(&shop, "evicted"));
    struct settle_report r = {.state = SETTLE_APPLIED};
    for (int64_t until = clock_mono_ms() + SHOP_WAIT_MS;
         (r.state == SETTLE_APPLIED || r.state == SETTLE_WAITING) && clock_mono_ms() < until;)
        r = shop_settle(pins, &shop, 1, "evicted");
    DO("uncordon", node);
    assert_int_equal(r.state, SETTLE_DISPLACED);
}

static void test_rule_5_required_pins_on_two_hosts_are_exact_and_even(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    AUTO_FREE char *saved = NULL;
    void *hard = shop_orchestrator(&shop, (const char *const[]){"pin", "required", NULL});
    assert_true(shop_deploy(&shop, "even", 4, ""));
    placed(hard, 1, "even", (const char *const[]){"fake-2", "fake-5", NULL}, 2, &saved);
    settles(hard, 1, "even", SETTLE_APPLIED);
    assert_int_equal(shop_pods_on(&shop, "even", "fake-2"), 2);
    assert_int_equal(shop_pods_on(&shop, "even", "fake-5"), 2);
    assert_int_equal(shop_undo(hard, &shop, 1, "even", saved, &err), 0);
    settles(hard, 1, "even", SETTLE_APPLIED);
    AUTO_JSON json_t *workload = shop_get(&shop, "deployments", "even");
    const json_t *spec = kube_get(kube_path(workload, "spec", "template"), "spec");
    assert_null(json_object_get(spec, "affinity"));
    assert_null(json_object_get(spec, "topologySpreadConstraints"));
    kubernetes_orchestrator.close(hard);
}

/* Do all the user's terms ask for just these hosts, and is there one constraint that spreads over
 * them? */
static void pinned_in_every_term(const char *name, const char *hosts)
{
    AUTO_JSON json_t *workload = shop_get(&shop, "deployments", name);
    const json_t *spec = kube_get(kube_path(workload, "spec", "template"), "spec");
    const json_t *terms =
        kube_get(kube_get(kube_path(spec, "affinity", "nodeAffinity"),
                          "requiredDuringSchedulingIgnoredDuringExecution"),
                 "nodeSelectorTerms");
    const json_t *term;
    size_t i;
    assert_int_equal(json_array_size(terms), 2);
    assert_int_equal(json_array_size(kube_get(spec, "topologySpreadConstraints")), 1);
    json_array_foreach(terms, i, term)
    {
        const json_t *asked = kube_get(term, "matchExpressions");
        assert_int_equal(json_array_size(asked), 2); /* the user's, and ours */
        assert_string_equal(kube_text(json_array_get(asked, 0), "key"),
                            i == 0 ? "kubernetes.io/os" : "kubernetes.io/hostname");
        AUTO_FREE char *values =
            json_dumps(kube_get(json_array_get(asked, 1), "values"), JSON_COMPACT);
        assert_string_equal(values, hosts);
    }
}

static char *template_fields(const char *name)
{
    AUTO_JSON json_t *workload = shop_get(&shop, "deployments", name);
    const json_t *spec = kube_get(kube_path(workload, "spec", "template"), "spec");
    AUTO_JSON json_t *fields = json_pack("[O?,O?]", json_object_get(spec, "affinity"),
                                         json_object_get(spec, "topologySpreadConstraints"));
    return json_dumps(fields, JSON_COMPACT);
}

static void test_second_required_move_replaces_the_hosts_in_every_term_and_is_undone_alone(
    void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    AUTO_FREE char *first = NULL, *second = NULL;
    void *hard = shop_orchestrator(
        &shop, (const char *const[]){"pin", "required", "foreign_affinity", "merge", NULL});
    assert_true(shop_deploy(
        &shop, "firm", 4,
        ",\"affinity\":{\"nodeAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":{"
        "\"nodeSelectorTerms\":[{\"matchExpressions\":[{\"key\":\"kubernetes.io/os\","
        "\"operator\":\"In\",\"values\":[\"linux\"]}]},{\"matchExpressions\":[{\"key\":"
        "\"kubernetes.io/hostname\",\"operator\":\"Exists\"}]}]}}}"));
    AUTO_FREE char *original = template_fields("firm");
    placed(hard, 1, "firm", (const char *const[]){"fake-2", "fake-5", NULL}, 2, &first);
    settles(hard, 1, "firm", SETTLE_APPLIED);
    pinned_in_every_term("firm", "[\"fake-2\",\"fake-5\"]");
    AUTO_FREE char *pinned = template_fields("firm");

    placed(hard, 2, "firm", (const char *const[]){"fake-3", "fake-6", NULL}, 2, &second);
    settles(hard, 2, "firm", SETTLE_APPLIED);
    pinned_in_every_term("firm", "[\"fake-3\",\"fake-6\"]");
    assert_int_equal(shop_pods_on(&shop, "firm", "fake-3"), 2);
    assert_int_equal(shop_pods_on(&shop, "firm", "fake-6"), 2);

    assert_int_equal(shop_undo(hard, &shop, 2, "firm", second, &err), 0);
    settles(hard, 2, "firm", SETTLE_APPLIED);
    AUTO_FREE char *back = template_fields("firm");
    assert_string_equal(back, pinned);
    assert_int_equal(shop_pods_on(&shop, "firm", "fake-2"), 2);
    assert_int_equal(shop_pods_on(&shop, "firm", "fake-5"), 2);
    assert_int_equal(shop_undo(hard, &shop, 1, "firm", first, &err), 0);
    settles(hard, 1, "firm", SETTLE_APPLIED);
    AUTO_FREE char *at_last = template_fields("firm");
    assert_string_equal(at_last, original);
    AUTO_JSON json_t *workload = shop_get(&shop, "deployments", "firm");
    assert_null(kube_text(kube_path(workload, "metadata", "annotations"), MARK_ANNOTATION));
    kubernetes_orchestrator.close(hard);
}

static void test_required_pin_when_nobody_takes_its_pods_fails_before_the_deadline(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    AUTO_FREE char *saved = NULL;
    void *hard = shop_orchestrator(
        &shop, (const char *const[]){"pin", "required", "unschedulable_after", "0s", NULL});
    assert_true(shop_deploy(&shop, "stuck", 1,
                            ",\"affinity\":{\"podAntiAffinity\":{"
                            "\"requiredDuringSchedulingIgnoredDuringExecution\":[{\"topologyKey\":"
                            "\"kubernetes.io/hostname\",\"labelSelector\":{\"matchLabels\":{\"app\":"
                            "\"bully\"}}}]}}"));
    AUTO_FREE char *node = shop_other_node(&shop, "stuck", NODES);
    AUTO_FREE char *there = mem_printf(",\"nodeName\":\"%s\"", node);
    AUTO_FREE char *before = shop_affinity(&shop, "stuck");
    assert_true(shop_deploy(&shop, "bully", 1, there));
    placed(hard, 1, "stuck", NODE(node), 1, &saved);
    struct settle_report r = shop_settle(hard, &shop, 1, "stuck");
    assert_int_equal(r.state, SETTLE_FAILED);
    assert_non_null(strstr(r.detail, "finds no node"));
    assert_int_equal(shop_undo(hard, &shop, 1, "stuck", saved, &err), 0);
    settles(hard, 1, "stuck", SETTLE_APPLIED);
    AUTO_FREE char *after = shop_affinity(&shop, "stuck");
    assert_string_equal(before, after);
    kubernetes_orchestrator.close(hard);
}

static void test_rule_13_names_when_two_nodes_share_a_hostname_label_are_told_apart(void **state)
{
    (void)state;
    AUTO_FREE char *saved = NULL;
    AUTO_FREE char *manifest =
        shop_manifest(&shop, "named", 1, "", ",\"nodeSelector\":{\"pair\":\"yes\"}");
    DO("label", "node", "fake-3", "fake-4", "kubernetes.io/hostname=same", "pair=yes", "--overwrite");
    assert_true(shop_apply(&shop, manifest, NULL));
    assert_true(shop_ready(&shop, "named"));
    const char *target = shop_pods_on(&shop, "named", "fake-3") ? "fake-4" : "fake-3";
    placed(pins, 1, "named", NODE(target), 1, &saved);
    settles(pins, 1, "named", SETTLE_APPLIED);
    AUTO_FREE char *pin = shop_affinity(&shop, "named");
    assert_non_null(strstr(pin, "matchFields"));
    DO("label", "node", "fake-3", "kubernetes.io/hostname=fake-3", "pair-", "--overwrite");
    DO("label", "node", "fake-4", "kubernetes.io/hostname=fake-4", "pair-", "--overwrite");
}

static void test_rule_7_budget_when_it_allows_nothing_forbids_the_move(void **state)
{
    (void)state;
    AUTO_FREE char *manifest =
        shop_manifest(&shop, "guarded", 2, ",\"strategy\":{\"rollingUpdate\":{\"maxUnavailable\":1}}",
                      "");
    assert_true(shop_apply(&shop, manifest, NULL));
    assert_true(shop_ready(&shop, "guarded"));
    DO("create", "poddisruptionbudget", "guarded", "--selector=app=guarded", "--min-available=2");
    AUTO_FREE char *target = shop_other_node(&shop, "guarded", NODES);
    int64_t generation = shop_generation(&shop, "guarded");
    refused(pins, 1, "guarded", NODE(target), "PodDisruptionBudget guarded");
    assert_int_equal(shop_generation(&shop, "guarded"), generation);
}

static void test_rule_9_soak_when_just_deployed_forbids_the_move(void **state)
{
    (void)state;
    void *calm = shop_orchestrator(&shop, (const char *const[]){"soak", "1h", NULL});
    assert_true(shop_deploy(&shop, "fresh", 1, ""));
    AUTO_FREE char *target = shop_other_node(&shop, "fresh", NODES);
    refused(calm, 1, "fresh", NODE(target), "quiet for 1h");
    kubernetes_orchestrator.close(calm);
}

static void test_workload_when_gone_is_missed_and_its_undo_done(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    AUTO_FREE char *saved = NULL;
    assert_true(shop_deploy(&shop, "brief", 1, ""));
    AUTO_FREE char *target = shop_other_node(&shop, "brief", NODES);
    placed(pins, 1, "brief", NODE(target), 1, &saved);
    DO("delete", "deployment", "brief");
    settles(pins, 1, "brief", SETTLE_MISSED);
    assert_int_equal(shop_undo(pins, &shop, 1, "brief", saved, &err), 0);
    settles(pins, 1, "brief", SETTLE_APPLIED);
}

static int bring_up(void **state)
{
    (void)state;
    cluster = kube_cluster_new(&(struct kube_cluster_options){.fake = NODES});
    if (!cluster)
        exit(0);
    shop_open(&shop, cluster, "shop");
    pins = shop_orchestrator(&shop, NULL);
    return 0;
}

/* Pods that may not be made: no deadline need tell that. */
static void test_move_when_admission_refuses_its_pods_fails_before_the_deadline(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    AUTO_FREE char *saved = NULL;
    void *quick = shop_orchestrator(&shop, (const char *const[]){"unschedulable_after", "1s", NULL});
    assert_true(shop_deploy(&shop, "capped", 1, ""));
    /* An admission that refuses them, which no look before a move can see. */
    static const char refusal[] =
        "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: "
        "{name: no-pods}, spec: {failurePolicy: Fail, matchConstraints: {resourceRules: [{apiGroups: "
        "[''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}, validations: "
        "[{expression: \"!object.metadata.generateName.startsWith('capped-')\", message: "
        "no more of these}]}}\n---\n"
        "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, "
        "metadata: {name: no-pods}, spec: {policyName: no-pods, validationActions: [Deny]}}\n";
    assert_true(kube_cluster_kubectl(cluster, refusal, NULL,
                                     (const char *const[]){"apply", "-f", "-", NULL}));
    /* It is in force some time after it was written. */
    static const char probe[] = "{apiVersion: v1, kind: Pod, metadata: {generateName: capped-, "
                                "namespace: shop}, spec: {containers: [{name: c, image: c}]}}";
    while (kube_cluster_kubectl(
        cluster, probe, NULL,
        (const char *const[]){"create", "--dry-run=server", "-f", "-", NULL}))
        ;
    AUTO_FREE char *other = shop_other_node(&shop, "capped", NODES);
    placed(quick, 1, "capped", NODE(other), 1, &saved);
    struct settle_report r = shop_settle(quick, &shop, 1, "capped");
    assert_int_equal(r.state, SETTLE_FAILED);
    assert_non_null(strstr(r.detail, "no pod is made"));
    DO("delete", "validatingadmissionpolicybinding/no-pods", "validatingadmissionpolicy/no-pods");
    assert_int_equal(shop_undo(quick, &shop, 1, "capped", saved, &err), 0);
    settles(quick, 1, "capped", SETTLE_APPLIED);
    kubernetes_orchestrator.close(quick);
}

/* The first pod of a StatefulSet that goes cannot get ready: after the undo its controller would wait
 * for that pod for ever. */
static void test_stateful_set_when_its_pod_is_stuck_comes_back_all_the_same(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    AUTO_FREE char *saved = NULL;
    static const char set[] =
        "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {replicas: 2, "
        "serviceName: db, selector: {matchLabels: {app: db}}, template: {metadata: {labels: {app: "
        "db}}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: c, resources: "
        "{requests: {cpu: 100m}}}]}}}}";
    void *strict = shop_orchestrator(
        &shop, (const char *const[]){"pin", "required", "unschedulable_after", "1s", NULL});
    assert_true(kube_cluster_kubectl(cluster, set, NULL,
                                     (const char *const[]){"-n", "shop", "apply", "-f", "-", NULL}));
    DO("rollout", "status", "statefulset/db", "--timeout=300s");
    AUTO_FREE char *target = shop_other_node(&shop, "db", NODES);
    assert_true(kube_cluster_stop(cluster, "kube-scheduler"));
    placed(strict, 1, "db", NODE(target), 2, &saved);
    DO("cordon", target);
    assert_true(kube_cluster_start(cluster, "kube-scheduler"));
    struct settle_report r = shop_settle(strict, &shop, 1, "db");
    assert_int_equal(r.state, SETTLE_FAILED);
    assert_int_equal(shop_undo(strict, &shop, 1, "db", saved, &err), 0);
    settles(strict, 1, "db", SETTLE_APPLIED);
    assert_int_equal(shop_pods_on(&shop, "db", target), 0);
    DO("rollout", "status", "statefulset/db", "--timeout=300s");
    DO("uncordon", target);
    kubernetes_orchestrator.close(strict);
}

static int take_down(void **state)
{
    (void)state;
    kubernetes_orchestrator.close(pins);
    shop_close(&shop);
    kube_cluster_free(steal(cluster));
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_move_when_there_is_room_lands_where_it_was_sent_and_comes_back),
        cmocka_unit_test(test_move_when_a_new_process_asks_knows_its_mark),
        cmocka_unit_test(
            test_second_move_when_undone_returns_to_the_first_and_release_to_the_original),
        cmocka_unit_test(test_undo_when_somebody_released_meanwhile_takes_out_only_the_pin),
        cmocka_unit_test(test_rule_11_pin_when_reverted_by_another_manager_is_told_and_rests),
        cmocka_unit_test(test_rule_9_mark_when_removed_with_its_pin_is_not_written_again),
        cmocka_unit_test(
            test_rule_6_preferred_pin_when_a_neighbour_keeps_it_off_is_missed_and_stays),
        cmocka_unit_test(test_rule_6_pod_when_evicted_afterwards_is_displaced),
        cmocka_unit_test(test_rule_5_required_pins_on_two_hosts_are_exact_and_even),
        cmocka_unit_test(
            test_second_required_move_replaces_the_hosts_in_every_term_and_is_undone_alone),
        cmocka_unit_test(test_required_pin_when_nobody_takes_its_pods_fails_before_the_deadline),
        cmocka_unit_test(test_rule_13_names_when_two_nodes_share_a_hostname_label_are_told_apart),
        cmocka_unit_test(test_rule_7_budget_when_it_allows_nothing_forbids_the_move),
        cmocka_unit_test(test_rule_9_soak_when_just_deployed_forbids_the_move),
        cmocka_unit_test(test_workload_when_gone_is_missed_and_its_undo_done),
        cmocka_unit_test(test_move_when_admission_refuses_its_pods_fails_before_the_deadline),
        cmocka_unit_test(test_stateful_set_when_its_pod_is_stuck_comes_back_all_the_same),
    };
    return cmocka_run_group_tests(tests, bring_up, take_down);
}
