/* test_executor_killed.c - the executor on a real API server, dying before and after each of its
 * calls, to the server and to the manager: no workload is rolled out twice, what the store and the
 * cluster say of a move agrees, and a move that fails is put back byte for byte (design.md 3;
 * interfaces.md 1.9 rules 2 and 15). The server itself dies too. */
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
#include "tests/support/scripted_cluster.h"

#define NODES 3
#define WAIT_MS 300000
#define LOOK_MS 1000 /* for a rollout that will not get on */

static struct kube_cluster *cluster;
static struct shop shop;
static bool counting; /* the executor's calls, not the test's own */
static int64_t cycles;
static void (*before_patch)(const char *path); /* between what is read of a workload and its patch */
static void (*after_patch)(const char *path);  /* its patch is on its way, or about to be */
static int64_t together; /* patches that were on their ways while others were begun */
static int64_t asked; /* so many calls, and the move is asked for; the looks after it are a matter of time */

/* --- the calls --- */

static bool lives(void)
{
    return !counting || scripted_alive();
}

static int dead(struct err *err)
{
    return err_set(err, ERR_REFUSED, "dead");
}

int __real_kube_api_get(struct kube_api *, const char *, json_t **, struct kube_status *,
                        struct err *);
int __wrap_kube_api_get(struct kube_api *, const char *, json_t **, struct kube_status *,
                        struct err *);
int __wrap_kube_api_get(struct kube_api *api, const char *path, json_t **out,
                        struct kube_status *status, struct err *err)
{
    if (!lives())
        return dead(err);
    int rc = __real_kube_api_get(api, path, out, status, err);
    if (lives())
        return rc;
    if (rc == 0 && out)
        json_decref(*out);
    return dead(err);
}

int __real_kube_api_list(struct kube_api *, const char *,
                         int (*)(void *, const json_t *, bool, struct err *), void *, char **,
                         struct kube_status *, struct err *);
int __wrap_kube_api_list(struct kube_api *, const char *,
                         int (*)(void *, const json_t *, bool, struct err *), void *, char **,
                         struct kube_status *, struct err *);
int __wrap_kube_api_list(struct kube_api *api, const char *path,
                         int (*page)(void *, const json_t *, bool, struct err *), void *ctx,
                         char **version, struct kube_status *status, struct err *err)
{
    if (!lives())
        return dead(err);
    return __real_kube_api_list(api, path, page, ctx, version, status, err);
}

int __real_kube_api_send(struct kube_api *, const char *, const char *, const char *,
                         const json_t *, json_t **, struct kube_status *, struct err *);
int __wrap_kube_api_send(struct kube_api *, const char *, const char *, const char *,
                         const json_t *, json_t **, struct kube_status *, struct err *);
int __wrap_kube_api_send(struct kube_api *api, const char *method, const char *path,
                         const char *type, const json_t *body, json_t **out,
                         struct kube_status *status, struct err *err)
{
    if (!lives())
        return dead(err);
    int rc = __real_kube_api_send(api, method, path, type, body, out, status, err);
    if (lives())
        return rc;
    if (rc == 0 && out)
        json_decref(*out);
    return dead(err);
}

int __real_kube_api_send_end(struct kube_api *, struct kube_sent *, json_t **,
                             struct kube_status *, struct err *);
int __wrap_kube_api_send_end(struct kube_api *, struct kube_sent *, json_t **,
                             struct kube_status *, struct err *);
int __wrap_kube_api_send_end(struct kube_api *api, struct kube_sent *sent, json_t **out,
                             struct kube_status *status, struct err *err)
{
    bool lived = lives();
    int rc = __real_kube_api_send_end(api, sent, out, status, err);
    if (lived && lives())
        return rc;
    if (rc == 0 && out)
        json_decref(*out);
    return dead(err);
}

struct kube_sent *__real_kube_api_send_begin(struct kube_api *, const char *, const char *,
                                             const char *, const json_t *, struct err *);
struct kube_sent *__wrap_kube_api_send_begin(struct kube_api *, const char *, const char *,
                                             const char *, const json_t *, struct err *);
/* Who dies after it has sent leaves the request with the server. */
struct kube_sent *__wrap_kube_api_send_begin(struct kube_api *api, const char *method,
                                             const char *path, const char *type,
                                             const json_t *body, struct err *err)
{
    struct err unheard = ERR_INIT;
    if (before_patch)
        before_patch(path);
    struct kube_sent *sent =
        lives() ? __real_kube_api_send_begin(api, method, path, type, body, err) : NULL;
    together += sent != NULL;
    if (sent && after_patch)
        after_patch(path);
    if (sent && lives())
        return sent;
    if (sent)
        (void)__real_kube_api_send_end(api, sent, NULL, NULL, &unheard);
    (void)dead(err);
    return NULL;
}

/* --- a world: the shop as a model, and a plan that moves one service, or several --- */

struct world {
    struct model *model;
    struct scripted *s;
    char *options, *target, *affinity;
    int64_t generation;
};

static struct model *look(void)
{
    struct err err = ERR_INIT;
    const struct option options[] = {{"kubeconfig", cluster->kubeconfig},
                                     {"min_node_age", "0s"},
                                     {"soak", "0s"},
                                     {"foreign_affinity", "merge"}};
    const struct source source = {"shop", "kubernetes", options, ARRAY_LEN(options)};
    const char *const spaces[] = {shop.space, NULL}, *const none[] = {NULL};
    const struct app_scope app = {.name = "app", .namespaces = spaces, .services = none};
    struct inspection in = {.model = model_new()};
    void *ctx = NULL;
    if (kubernetes_cluster.open(&source, &ctx, &err) ||
        kubernetes_cluster.inspect(ctx, &app, &in, &err))
        fail_msg("%s", err.text);
    kubernetes_cluster.close(ctx);
    inspection_wipe(&in);
    in.model->has_affinities = true;
    return in.model;
}

/* As it is when the API server's caches have seen the end of the service's last rollout. */
static struct model *look_quiet(const char *service)
{
    int64_t until = clock_mono_ms() + SHOP_WAIT_MS;
    for (;;) {
        struct model *model = look();
        const char *why = NULL;
        int moved = model_service(model, service);
        size_t n = 0;
        for (size_t i = 0; i < model->n_instances; i++)
            if (model->instances[i].service == moved) {
                n++;
                why = model->instances[i].pinned_why ? model->instances[i].pinned_why : why;
            }
        if (n == 1 && !why)
            return model;
        if (clock_mono_ms() > until)
            fail_msg("%s: %zu replicas: %s", service, n, why ? why : "may move");
        model_free(model);
    }
}

/* The service goes to a node where it is not. */
static struct world world_of(const char *name, const char *more)
{
    AUTO_FREE char *service = mem_printf("%s/%s", shop.space, name);
    struct world w = {.model = look_quiet(service), .target = shop_other_node(&shop, name, NODES)};
    AUTO_FREE int *placement = mem_array(w.model->n_instances + 1, sizeof *placement);
    int moved = model_service(w.model, service), target = model_host(w.model, w.target);
    assert_true(moved >= 0 && target >= 0);
    for (size_t i = 0; i < w.model->n_instances; i++)
        placement[i] = w.model->instances[i].service == moved ? target : w.model->instances[i].host;
    w.s = scripted_new(w.model);
    w.s->granularity = PER_SERVICE;
    w.s->cluster = &kubernetes_cluster;
    w.s->orchestrator = &kubernetes_orchestrator;
    w.s->cycle = ++cycles;
    w.s->ready_timeout_ms = WAIT_MS;
    w.options = mem_printf("[{\"name\":\"kubeconfig\",\"value\":\"%s\"},{\"name\":\"soak\",\"value\":"
                           "\"0s\"},{\"name\":\"min_node_age\",\"value\":\"0s\"}%s]",
                           cluster->kubeconfig, more);
    w.s->options = w.options;
    scripted_plan(w.s, placement);
    w.affinity = shop_affinity(&shop, name);
    w.generation = shop_generation(&shop, name);
    return w;
}

static void world_free(struct world *w)
{
    scripted_free(w->s);
    model_free(w->model);
    free(w->options);
    free(w->target);
    free(w->affinity);
}

static int attempt(struct world *w, int64_t calls)
{
    w->s->calls_left = calls;
    counting = true;
    int rc = scripted_attempt(w->s);
    counting = false;
    w->s->calls_left = -1;
    return rc;
}

/* Attempts until one comes through; the manager makes three. */
static void attempts(struct world *w)
{
    for (int i = 0; i < 3; i++)
        if (attempt(w, -1) == 0)
            return;
    fail_msg("%s", w->s->stopped);
}

static void is_state(const struct world *w, int64_t seq, const char *state)
{
    const struct outcome *o = scripted_outcome(w->s, seq);
    if (strcmp(scripted_state(w->s, seq), state) != 0)
        fail_msg("cycle %lld: move %lld is %s, not %s: %s", (long long)w->s->cycle, (long long)seq,
                 scripted_state(w->s, seq), state, o && o->reason ? o->reason : w->s->stopped);
}

static void bears_mark(const char *name, int64_t cycle)
{
    struct err err = ERR_INIT;
    AUTO_JSON json_t *workload = shop_get(&shop, "deployments", name);
    AUTO(mark) struct mark *mark = mark_of(workload, &err);
    assert_non_null(mark);
    assert_int_equal(mark->cycle, cycle);
    assert_int_equal(mark->seq, 1);
}

static void test_executor_when_killed_before_or_after_any_call_moves_once(void **state)
{
    (void)state;
    int64_t calls = 0;
    assert_true(shop_deploy(&shop, "moved", 1, ""));
    for (bool died = true; died; calls++) {
        struct world w = world_of("moved", "");
        assert_int_equal(w.s->plan->n_moves, 1);
        w.s->max_parallel = 1 + calls % 2; /* waited for, or looked at now and then */
        died = attempt(&w, calls) < 0;
        if (died && asked == 0 && w.s->max_parallel == 1 &&
            shop_generation(&shop, "moved") > w.generation)
            asked = calls;
        if (died)
            attempts(&w);
        is_state(&w, 1, "applied");
        assert_int_equal(shop_generation(&shop, "moved"), w.generation + 1); /* one rollout */
        assert_int_equal(shop_pods_on(&shop, "moved", w.target), 1);
        bears_mark("moved", w.s->cycle);
        world_free(&w);
    }
    print_message("%lld points to die at\n", (long long)calls);
    assert_true(calls > 15);
    assert_true(asked > 0);
}

#define TOGETHER 3
#define CROWD 5
#define GONE_MS 5000 /* the server comes back no earlier than the move is given up */

/* The plan of a world of the first, with the others on their ways too: each to the node after its own. */
static void plan_together(struct world *w, const char *const *names, size_t n)
{
    AUTO_FREE int *placement = mem_array(w->model->n_instances + 1, sizeof *placement);
    for (size_t i = 0; i < w->model->n_instances; i++) {
        const struct instance *x = &w->model->instances[i];
        placement[i] = x->host;
        for (size_t k = 0; k < n; k++) {
            AUTO_FREE char *service = mem_printf("%s/%s", shop.space, names[k]);
            if (x->service == model_service(w->model, service))
                placement[i] = (x->host + 1) % (int)w->model->n_hosts;
        }
    }
    plan_free(w->s->plan);
    scripted_plan(w->s, placement);
    assert_int_equal(w->s->plan->n_moves, n);
    w->s->max_parallel = (int64_t)n;
}

/* Their patches are on their ways at the same time. Every third point. */
static void test_executor_when_killed_among_moves_sent_together_moves_each_once(void **state)
{
    (void)state;
    static const char *const names[TOGETHER] = {"left", "middle", "right"};
    int64_t calls = 0;
    for (size_t k = 0; k < TOGETHER; k++)
        assert_true(shop_deploy(&shop, names[k], 1, ""));
    for (bool died = true; died; calls += 3) {
        int64_t before[TOGETHER];
        for (size_t k = 1; k < TOGETHER; k++) {
            AUTO_FREE char *service = mem_printf("%s/%s", shop.space, names[k]);
            model_free(look_quiet(service));
        }
        struct world w = world_of(names[0], "");
        plan_together(&w, names, TOGETHER);
        for (size_t k = 0; k < TOGETHER; k++)
            before[k] = shop_generation(&shop, names[k]);
        died = attempt(&w, calls) < 0;
        if (died)
            attempts(&w);
        for (size_t k = 0; k < TOGETHER; k++) {
            struct err err = ERR_INIT;
            is_state(&w, (int64_t)k + 1, "applied");
            assert_int_equal(shop_generation(&shop, names[k]), before[k] + 1); /* one rollout */
            AUTO_JSON json_t *workload = shop_get(&shop, "deployments", names[k]);
            AUTO(mark) struct mark *mark = mark_of(workload, &err);
            assert_non_null(mark);
            assert_int_equal(mark->cycle, w.s->cycle);
        }
        world_free(&w);
    }
    print_message("%lld points to die at\n", (long long)calls);
    assert_true(calls > 30);
    assert_true(together >= TOGETHER);
}

/* --- others write at the same time --- */

static const char *const crowd[CROWD] = {"deleted", "denied", "noted", "plain", "released"};
static int64_t crowd_seq[CROWD]; /* the moves */

/* The last of them with a list of its owner's, into which we write by patch. */
#define OWN                                                                                        \
    ",\"affinity\":{\"nodeAffinity\":{\"preferredDuringSchedulingIgnoredDuringExecution\":"          \
    "[{\"weight\":1,\"preference\":{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Exists\"}]}}]}}"

static struct world crowd_world(bool owned)
{
    for (size_t k = 0; k < CROWD; k++) {
        AUTO_FREE char *service = mem_printf("%s/%s", shop.space, crowd[k]);
        assert_true(shop_deploy(&shop, crowd[k], 1, owned && k == CROWD - 1 ? OWN : ""));
        model_free(look_quiet(service));
    }
    struct world w = world_of("plain", ",{\"name\":\"foreign_affinity\",\"value\":\"merge\"}");
    plan_together(&w, crowd, CROWD);
    for (size_t i = 0; i < CROWD; i++)
        for (size_t k = 0; k < CROWD; k++) {
            AUTO_FREE char *service = mem_printf("%s/%s", shop.space, crowd[k]);
            if (w.s->plan->moves[i].service == model_service(w.model, service))
                crowd_seq[k] = w.s->plan->moves[i].seq;
        }
    return w;
}

static void people_write(const char *path)
{
    if (strstr(path, "/deployments/deleted?"))
        assert_true(KUBECTL(cluster, NULL, NULL, "-n", shop.space, "delete", "deployment", "deleted"));
    if (strstr(path, "/deployments/noted?"))
        assert_true(KUBECTL(cluster, NULL, NULL, "-n", shop.space, "label", "--overwrite",
                            "deployment", "noted", "by=hand")); /* not its generation */
    if (strstr(path, "/deployments/released?"))
        assert_true(KUBECTL(cluster, NULL, NULL, "-n", shop.space, "set", "image",
                            "deployment/released", "*=elsewhere:2"));
}

/* Nobody may change what we say of `denied`. */
static void deny(void)
{
    static const char policy[] =
        "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[{\"apiVersion\":"
        "\"admissionregistration.k8s.io/v1\",\"kind\":\"ValidatingAdmissionPolicy\",\"metadata\":{"
        "\"name\":\"denied\"},\"spec\":{\"matchConstraints\":{\"resourceRules\":[{\"apiGroups\":"
        "[\"apps\"],\"apiVersions\":[\"v1\"],\"operations\":[\"UPDATE\"],\"resources\":"
        "[\"deployments\"]}]},\"validations\":[{\"expression\":\"object.metadata.name != 'denied' || "
        "!has(object.metadata.annotations) || !('remap/intent' in object.metadata.annotations)\"}]}},"
        "{\"apiVersion\":\"admissionregistration.k8s.io/v1\",\"kind\":"
        "\"ValidatingAdmissionPolicyBinding\",\"metadata\":{\"name\":\"denied\"},\"spec\":{"
        "\"policyName\":\"denied\",\"validationActions\":[\"Deny\"]}}]}";
    int64_t until = clock_mono_ms() + SHOP_WAIT_MS;
    assert_true(KUBECTL(cluster, policy, NULL, "apply", "-f", "-"));
    while (KUBECTL(cluster, NULL, NULL, "-n", shop.space, "annotate", "--dry-run=server",
                   "deployment", "denied", "remap/intent=x"))
        assert_true(clock_mono_ms() < until);
}

/* The server's words for it are its own; the others of the plan come to their ends. */
static void test_moves_when_people_write_between_the_reads_and_the_patches_are_told_as_they_are(
    void **state)
{
    (void)state;
    struct world w = crowd_world(true);
    struct err err = ERR_INIT;
    int64_t before[CROWD];
    deny();
    for (size_t k = 0; k < CROWD; k++)
        before[k] = shop_generation(&shop, crowd[k]);
    before_patch = people_write;
    int rc = attempt(&w, -1);
    before_patch = NULL;
    if (rc)
        fail_msg("%s", w.s->stopped);
    is_state(&w, crowd_seq[0], "discarded");
    is_state(&w, crowd_seq[1], "failed");
    assert_int_equal(shop_generation(&shop, "denied"), before[1]);
    is_state(&w, crowd_seq[2], "applied");
    assert_int_equal(shop_generation(&shop, "noted"), before[2] + 1);
    is_state(&w, crowd_seq[3], "applied");
    assert_int_equal(shop_generation(&shop, "plain"), before[3] + 1);
    /* Theirs first; where it was at its end by then, ours after it. */
    bool placed = strcmp(scripted_state(w.s, crowd_seq[4]), "applied") == 0;
    if (!placed)
        is_state(&w, crowd_seq[4], "discarded");
    assert_int_equal(shop_generation(&shop, "released"), before[4] + 1 + placed);
    AUTO_JSON json_t *released = shop_get(&shop, "deployments", "released");
    AUTO(mark) struct mark *mark = mark_of(released, &err);
    assert_int_equal(mark != NULL, placed);
    if (mark) { /* ours was made of what theirs had left */
        AUTO_FREE char *template = mark_template(released);
        assert_string_equal(mark->template, template);
    }
    AUTO_FREE char *affinity = shop_affinity(&shop, "denied");
    assert_string_equal(affinity, "absent");
    assert_true(KUBECTL(cluster, NULL, NULL, "delete", "validatingadmissionpolicy,"
                        "validatingadmissionpolicybinding", "denied"));
    world_free(&w);
}

static int sent_by_now;

static void server_stops(const char *path)
{
    (void)path;
    if (++sent_by_now == 3)
        assert_true(kube_cluster_stop(cluster, "kube-apiserver"));
}

/* Some of the patches were answered, some heard and not answered, some not sent; of one the executor asks
 * until its time is over. What the store says in the end is what the cluster shows. */
static void test_moves_when_the_server_stops_among_their_patches_are_told_as_they_are(void **state)
{
    (void)state;
    struct world w = crowd_world(false);
    int64_t before[CROWD];
    char *affinity[CROWD];
    for (size_t k = 0; k < CROWD; k++) {
        before[k] = shop_generation(&shop, crowd[k]);
        affinity[k] = shop_affinity(&shop, crowd[k]);
    }
    w.s->ready_timeout_ms = GONE_MS;
    after_patch = server_stops;
    sent_by_now = 0;
    int rc = attempt(&w, -1);
    after_patch = NULL;
    assert_int_equal(rc, -1);
    assert_true(sent_by_now >= 3);
    assert_true(kube_cluster_start(cluster, "kube-apiserver"));
    w.s->ready_timeout_ms = WAIT_MS;
    attempts(&w);
    for (size_t k = 0; k < CROWD; k++) {
        const char *told = scripted_state(w.s, crowd_seq[k]);
        int64_t changes = shop_generation(&shop, crowd[k]) - before[k];
        AUTO_FREE char *now = shop_affinity(&shop, crowd[k]);
        if (strcmp(told, "applied") == 0) {
            assert_int_equal(changes, 1); /* one rollout */
            assert_string_not_equal(now, affinity[k]);
        } else {
            assert_true(strcmp(told, "failed") == 0 || strcmp(told, "discarded") == 0);
            assert_true(changes == 0 || changes == 2); /* there and back, where it had come there */
            assert_string_equal(now, affinity[k]);
        }
        free(affinity[k]);
    }
    world_free(&w);
}

/* A quota of a scope, which nobody can judge beforehand, refuses the new pod: the rollout does not
 * get on. Every fourth point, as each takes as long as a move may. */
static void test_executor_when_killed_before_or_after_calls_of_a_failure_puts_it_back(void **state)
{
    (void)state;
    struct shop all = shop;
    struct err err = ERR_INIT;
    shop_open(&shop, cluster, "narrow");
    AUTO_FREE char *manifest =
        shop_manifest(&shop, "kept", 1, ",\"progressDeadlineSeconds\":1", ",\"affinity\":{}");
    assert_true(shop_apply(&shop, manifest, NULL));
    assert_true(shop_ready(&shop, "kept"));
    AUTO_FREE char *path = kube_api_path("v1", "narrow", "resourcequotas", NULL);
    AUTO_JSON json_t *quota =
        json_pack("{s:s,s:s,s:{s:s},s:{s:{s:s},s:[s]}}", "apiVersion", "v1", "kind",
                  "ResourceQuota", "metadata", "name", "one", "spec", "hard", "pods", "1", "scopes",
                  "NotTerminating");
    assert_int_equal(
        kube_api_send(shop.api, "POST", path, "application/json", quota, NULL, NULL, &err), 0);
    int64_t calls = 0;
    for (bool died = true; died; calls += 4) {
        struct world w = world_of("kept", ",{\"name\":\"unschedulable_after\",\"value\":\"1s\"}");
        w.s->poll_ms = LOOK_MS; /* each look is a point too */
        died = attempt(&w, calls) < 0;
        if (died)
            attempts(&w);
        is_state(&w, 1, "failed");
        AUTO_FREE char *after = shop_affinity(&shop, "kept");
        assert_string_equal(after, w.affinity);
        assert_int_equal(shop_generation(&shop, "kept"), w.generation + 2); /* there and back */
        AUTO_JSON json_t *workload = shop_get(&shop, "deployments", "kept");
        assert_null(kube_text(kube_path(workload, "metadata", "annotations"), MARK_ANNOTATION));
        assert_true(shop_ready(&shop, "kept"));
        world_free(&w);
    }
    print_message("%lld points to die at\n", (long long)calls);
    assert_true(calls > 15);
    shop_close(&shop);
    shop = all;
}

static void test_plan_when_the_api_server_stops_in_the_middle_resumes(void **state)
{
    (void)state;
    assert_true(shop_deploy(&shop, "paused", 1, ""));
    struct world w = world_of("paused", "");
    assert_int_equal(attempt(&w, asked), -1); /* the move is under way */
    assert_true(kube_cluster_stop(cluster, "kube-apiserver"));
    assert_int_equal(attempt(&w, -1), -1); /* nothing is told of what cannot be seen */
    assert_string_not_equal(scripted_state(w.s, 1), "failed");
    assert_true(kube_cluster_start(cluster, "kube-apiserver"));
    attempts(&w);
    is_state(&w, 1, "applied");
    assert_int_equal(shop_generation(&shop, "paused"), w.generation + 1);
    assert_int_equal(shop_pods_on(&shop, "paused", w.target), 1);
    world_free(&w);
}

static int bring_up(void **state)
{
    (void)state;
    cluster = kube_cluster_new(&(struct kube_cluster_options){.fake = NODES});
    if (!cluster)
        exit(0);
    shop_open(&shop, cluster, "shop");
    return 0;
}

static int take_down(void **state)
{
    (void)state;
    shop_close(&shop);
    kube_cluster_free(steal(cluster));
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_executor_when_killed_before_or_after_any_call_moves_once),
        cmocka_unit_test(test_executor_when_killed_among_moves_sent_together_moves_each_once),
        cmocka_unit_test(
            test_moves_when_people_write_between_the_reads_and_the_patches_are_told_as_they_are),
        cmocka_unit_test(test_moves_when_the_server_stops_among_their_patches_are_told_as_they_are),
        cmocka_unit_test(test_plan_when_the_api_server_stops_in_the_middle_resumes),
        cmocka_unit_test(
            test_executor_when_killed_before_or_after_calls_of_a_failure_puts_it_back),
    };
    return cmocka_run_group_tests(tests, bring_up, take_down);
}
