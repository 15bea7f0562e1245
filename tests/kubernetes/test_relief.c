/* test_relief.c - pins that do harm, on a real API server with the real scheduler and controllers
 * (interfaces.md 1.9 rule 3): which are taken off, and which are not. */
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

#define NODES 4
#define NODE(name) ((const char *const[]){name, NULL})
#define NO_LIMIT ((struct relief_budget){-1, -1, false})

static struct kube_cluster *cluster;
static struct shop shop;
static void *pins; /* pin: required, without patience */

static void kubectl(const char *const *arguments)
{
    if (!kube_cluster_kubectl(cluster, NULL, NULL, arguments))
        fail_msg("kubectl %s %s", arguments[0], arguments[1]);
}
#define DO(...) kubectl((const char *const[]){__VA_ARGS__, NULL})

/* What relieve() told last, and how often it told something. */
static struct {
    int n;
    bool done;
    int64_t restarts;
    char service[100], why[300];
} last;

static void told(void *arg, const struct relief *relief)
{
    (void)arg;
    last.n++;
    last.done = relief->done;
    last.restarts = relief->restarts;
    snprintf(last.service, sizeof last.service, "%s", relief->service);
    snprintf(last.why, sizeof last.why, "%s", relief->why);
}

/* How much it tells of this one workload. */
static int relieve(void *ctx, const char *name, struct relief_budget budget)
{
    struct err err = ERR_INIT;
    AUTO_FREE char *service = mem_printf("shop/%s", name);
    const struct app_scope app = {.name = "shop",
                                  .namespaces = (const char *const[]){"shop", NULL},
                                  .services = (const char *const[]){service, NULL}};
    memset(&last, 0, sizeof last);
    if (kubernetes_orchestrator.relieve(ctx, &app, &budget, told, NULL, &err))
        fail_msg("%s: %s", name, err.text);
    return last.n;
}

static void stop_node(const char *name);

/* Until something is told; the world takes its time to come to where it will be. `stopped`: a node
 * that whoever looked after it may bring to life once more; NULL: none. */
static void relieves(void *ctx, const char *name, struct relief_budget budget, const char *stopped)
{
    int64_t until = clock_mono_ms() + SHOP_WAIT_MS;
    while (relieve(ctx, name, budget) == 0) {
        if (clock_mono_ms() > until)
            fail_msg("%s: nothing was told", name);
        if (stopped)
            stop_node(stopped);
    }
}

static void pin_to(void *ctx, const char *name, const char *node, int64_t replicas)
{
    struct err err = ERR_INIT;
    AUTO_FREE char *saved = NULL;
    if (shop_place(ctx, &shop, 1, name, NODE(node), replicas, &saved, &err))
        fail_msg("%s: %s", name, err.text);
    struct settle_report r = shop_settle(ctx, &shop, 1, name);
    if (r.state != SETTLE_APPLIED)
        fail_msg("%s: %s", name, r.detail);
}

static const char *stale_of(const char *name, char out[200])
{
    AUTO_JSON json_t *workload = shop_get(&shop, "deployments", name);
    struct err err = ERR_INIT;
    AUTO(mark) struct mark *mark = mark_of(workload, &err);
    if (!mark)
        fail_msg("%s bears no mark: %s", name, err.text);
    snprintf(out, 200, "%s", mark->stale ? mark->stale : "");
    return out;
}

/* Nobody looks after the node any more, and it says that it has not been ready for five minutes. */
static void stop_node(const char *name)
{
    char at[CLOCK_TEXT_SIZE], since[CLOCK_TEXT_SIZE];
    AUTO_FREE char *patch = mem_printf(
        "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\",\"reason\":\"Stopped\","
        "\"lastHeartbeatTime\":\"%.19sZ\",\"lastTransitionTime\":\"%.19sZ\"}]}}",
        clock_iso(clock_wall_ms(), at), clock_iso(clock_wall_ms() - INT64_C(5) * 60 * 1000, since));
    DO("annotate", "node", name, "kwok.x-k8s.io/node-");
    DO("patch", "node", name, "--subresource=status", "--type=strategic", "-p", patch);
}

static void test_rule_3_cordon_alone_takes_no_pin_off_but_a_pod_that_waits_for_it_does(void **state)
{
    (void)state;
    AUTO_FREE char *before = NULL, *after = NULL;
    assert_true(shop_deploy(&shop, "drained", 1, ""));
    before = shop_affinity(&shop, "drained");
    AUTO_FREE char *node = shop_other_node(&shop, "drained", NODES);
    pin_to(pins, "drained", node, 1);
    int64_t generation = shop_generation(&shop, "drained");
    if (!shop_cordon(&shop, node))
        fail_msg("%s still takes pods", node);
    assert_int_equal(relieve(pins, "drained", NO_LIMIT), 0);
    assert_int_equal(shop_generation(&shop, "drained"), generation);
    DO("-n", "shop", "delete", "pod", "-l", "app=drained");

    relieves(pins, "drained", (struct relief_budget){-1, -1, true}, NULL);
    assert_false(last.done); /* only told, of an app that proposes */
    assert_int_equal(shop_generation(&shop, "drained"), generation);
    relieves(pins, "drained", (struct relief_budget){0, 0, false}, NULL);
    assert_true(last.done); /* nothing of it runs, so nothing restarts */
    assert_int_equal(last.restarts, 0);
    assert_string_equal(last.service, "shop/drained");
    assert_non_null(strstr(last.why, "waits for one of its nodes, and others would take it"));
    assert_true(shop_ready(&shop, "drained"));
    after = shop_affinity(&shop, "drained");
    assert_string_equal(before, after);
    assert_int_equal(relieve(pins, "drained", NO_LIMIT), 0); /* once */
    DO("uncordon", node);
}

static void test_rule_3_required_pin_when_none_of_its_nodes_is_ready_for_long_is_taken_off(
    void **state)
{
    (void)state;
    void *patient = shop_orchestrator(&shop, (const char *const[]){"pin", "required", NULL});
    void *brief = shop_orchestrator(
        &shop, (const char *const[]){"pin", "required", "unready_after", "4m", NULL});
    assert_true(shop_deploy(&shop, "lost", 2, ""));
    AUTO_FREE char *before = shop_affinity(&shop, "lost");
    AUTO_FREE char *node = shop_other_node(&shop, "lost", NODES);
    pin_to(pins, "lost", node, 2);
    int64_t generation = shop_generation(&shop, "lost");
    relieves(brief, "lost", (struct relief_budget){1, -1, false}, node);
    assert_false(last.done); /* two would restart */
    assert_int_equal(last.restarts, 2);
    relieves(brief, "lost", (struct relief_budget){-1, 1, false}, node);
    assert_false(last.done);
    assert_int_equal(relieve(patient, "lost", NO_LIMIT), 0); /* 5 of 10 minutes */
    assert_int_equal(shop_generation(&shop, "lost"), generation);
    relieves(brief, "lost", (struct relief_budget){2, 2, false}, node);
    assert_true(last.done);
    assert_non_null(strstr(last.why, "none of its nodes has been ready since "));
    AUTO_FREE char *after = shop_affinity(&shop, "lost");
    assert_string_equal(before, after);
    assert_int_equal(shop_generation(&shop, "lost"), generation + 1);
    kubernetes_orchestrator.close(patient);
    kubernetes_orchestrator.close(brief);
}

static void test_rule_3_stale_preferred_pin_is_left_and_marked_until_its_nodes_are_back(void **state)
{
    (void)state;
    char stale[200];
    void *soft = shop_orchestrator(&shop, NULL);
    assert_true(shop_deploy(&shop, "soft", 1, ""));
    AUTO_FREE char *node = shop_other_node(&shop, "soft", NODES);
    pin_to(soft, "soft", node, 1);
    assert_int_equal(relieve(soft, "soft", NO_LIMIT), 0);
    assert_string_equal(stale_of("soft", stale), "");
    AUTO_FREE char *pinned = shop_affinity(&shop, "soft");
    int64_t until = clock_mono_ms() + SHOP_WAIT_MS;
    do {
        stop_node(node);
        assert_int_equal(relieve(soft, "soft", NO_LIMIT), 0);
    } while (!stale_of("soft", stale)[0] && clock_mono_ms() < until);
    assert_string_equal(stale, "none of its nodes is ready");
    AUTO_FREE char *left = shop_affinity(&shop, "soft"); /* the template is as it was: no rollout */
    assert_string_equal(pinned, left);
    DO("annotate", "node", node, "kwok.x-k8s.io/node=fake");
    until = clock_mono_ms() + SHOP_WAIT_MS;
    do
        assert_int_equal(relieve(soft, "soft", NO_LIMIT), 0);
    while (stale_of("soft", stale)[0] && clock_mono_ms() < until);
    assert_string_equal(stale, "");
    AUTO_FREE char *next = shop_other_node(&shop, "soft", NODES);
    AUTO_FREE char *saved = NULL; /* the workload's next move replaces it */
    struct err err = ERR_INIT;
    if (shop_place(soft, &shop, 2, "soft", NODE(next), 1, &saved, &err))
        fail_msg("%s", err.text);
    assert_int_equal(shop_settle(soft, &shop, 2, "soft").state, SETTLE_APPLIED);
    kubernetes_orchestrator.close(soft);
}

static int bring_up(void **state)
{
    (void)state;
    cluster = kube_cluster_new(&(struct kube_cluster_options){.fake = NODES});
    if (!cluster)
        exit(0);
    shop_open(&shop, cluster, "shop");
    pins = shop_orchestrator(&shop, (const char *const[]){"pin", "required", "unschedulable_after",
                                                          "0s", "unready_after", "1h", NULL});
    return 0;
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
        cmocka_unit_test(test_rule_3_cordon_alone_takes_no_pin_off_but_a_pod_that_waits_for_it_does),
        cmocka_unit_test(
            test_rule_3_stale_preferred_pin_is_left_and_marked_until_its_nodes_are_back),
        cmocka_unit_test(
            test_rule_3_required_pin_when_none_of_its_nodes_is_ready_for_long_is_taken_off),
    };
    return cmocka_run_group_tests(tests, bring_up, take_down);
}
