/* test_rules.c - the rules of conduct that the model carries (interfaces.md 1.9), one by one: what pods
 * ask of each other, of nodes and of volumes, and what users wish by annotations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "adapters/kubernetes/kube.h"
#include "adapters/kubernetes/mark.h"
#include "adapters/kubernetes/objects.h"
#include "adapters/kubernetes/standing.h"
#include "model/base/clock.h"
#include "model/base/json.h"
#include "model/model.h"
#include "model/rules.h"

struct fixture {
    struct kube_objects *objects;
    struct model *model;
    struct inspection in;
    struct kube_choice choice;
    struct err err;
};

static int setup(void **state)
{
    struct fixture *f = mem_alloc(sizeof *f);
    f->objects = kube_objects_new();
    f->model = model_new();
    f->in.model = f->model;
    f->choice.now_ms = INT64_C(1000000000000);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    kube_objects_free(f->objects);
    inspection_wipe(&f->in);
    model_free(f->model);
    free(f);
    return 0;
}

/* Single quotes stand for double ones, so that objects can be read. */
static json_t *parsed(struct fixture *f, const char *fmt, va_list args)
{
    char text[4096];
    vsnprintf(text, sizeof text, fmt, args);
    for (char *c = text; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    json_t *tree = json_parse(text, strlen(text), &json_limits_document, &f->err);
    if (!tree)
        fail_msg("%s in %s", f->err.text, text);
    return tree;
}

static json_t *json(struct fixture *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static json_t *json(struct fixture *f, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    json_t *tree = parsed(f, fmt, args);
    va_end(args);
    return tree;
}

static void put(struct fixture *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(struct fixture *f, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    AUTO_JSON json_t *tree = parsed(f, fmt, args);
    va_end(args);
    if (kube_objects_add(f->objects, tree, &f->err))
        fail_msg("%s in %s", f->err.text, fmt);
}

static void node(struct fixture *f, const char *name, const char *labels, const char *more,
                 const char *spec)
{
    put(f,
        "{'kind':'Node','metadata':{'name':'%s','labels':{'kubernetes.io/hostname':'%s'%s}%s},"
        "'spec':{%s},'status':{'allocatable':{'cpu':'4','memory':'8Gi','pods':'110'},"
        "'conditions':[{'type':'Ready','status':'True'}]}}",
        name, name, labels, more, spec);
}

#define ZONE(z) ",'topology.kubernetes.io/zone':'" z "'"

/* n1 and n2 in zone a, n3 and n4 in zone b. */
static void four_nodes(struct fixture *f)
{
    node(f, "n1", ZONE("a"), "", "");
    node(f, "n2", ZONE("a"), "", "");
    node(f, "n3", ZONE("b"), "", "");
    node(f, "n4", ZONE("b"), "", "");
}

/* The ReplicaSet of a Deployment. */
static void replica_set(struct fixture *f, const char *name)
{
    put(f,
        "{'kind':'ReplicaSet','metadata':{'namespace':'shop','name':'%s-1','uid':'r-%s',"
        "'ownerReferences':[{'kind':'Deployment','name':'%s','uid':'d-%s','controller':true}]}}",
        name, name, name, name);
}

/* A Deployment with its ReplicaSet. */
static void workload(struct fixture *f, const char *name, const char *annotations)
{
    put(f,
        "{'kind':'Deployment','metadata':{'namespace':'shop','name':'%s','uid':'d-%s',"
        "'annotations':{%s}},'spec':{'replicas':1}}",
        name, name, annotations);
    replica_set(f, name);
}

/* A pod of it, "shop/NAME-HOST". */
static void pod(struct fixture *f, const char *name, const char *host, const char *spec)
{
    put(f,
        "{'kind':'Pod','metadata':{'namespace':'shop','name':'%s-%s','uid':'p-%s-%s',"
        "'labels':{'app':'%s'},'ownerReferences':[{'kind':'ReplicaSet','name':'%s-1','uid':'r-%s',"
        "'controller':true}]},'spec':{'nodeName':'%s'%s},'status':{'phase':'Running'}}",
        name, host, name, host, name, name, name, host, spec);
}

static void build(struct fixture *f)
{
    if (kube_objects_model(f->objects, &f->choice, &f->in, &f->err) ||
        model_check(f->model, &f->err))
        fail_msg("%s", f->err.text);
}

static int service(const struct fixture *f, const char *name)
{
    char full[100];
    snprintf(full, sizeof full, "shop/%s", name);
    int at = model_service(f->model, full);
    if (at < 0)
        fail_msg("no service %s", full);
    return at;
}

/* The rule of this kind that names the service first; NULL: none. */
static const struct rule *rule(const struct fixture *f, enum rule_kind kind, const char *name)
{
    for (size_t i = 0; i < f->model->n_rules; i++)
        if (f->model->rules[i].kind == kind && f->model->rules[i].services[0] == service(f, name))
            return &f->model->rules[i];
    return NULL;
}

/* The hosts where the service may run, "n1 n3". */
static const char *allowed(const struct fixture *f, const char *name, char out[100])
{
    const struct rule *found = rule(f, RULE_ALLOWED, name);
    out[0] = 0;
    for (size_t i = 0; found && i < found->n_hosts; i++)
        snprintf(out + strlen(out), 100 - strlen(out), "%s%s", i ? " " : "",
                 f->model->hosts[found->hosts[i]].name);
    return out;
}

static const char *pinned(const struct fixture *f, const char *instance)
{
    char full[100];
    snprintf(full, sizeof full, "shop/%s", instance);
    int at = model_instance(f->model, full);
    if (at < 0)
        fail_msg("no instance %s", full);
    return f->model->instances[at].pinned_why;
}

static bool noted(const struct fixture *f, const char *text)
{
    for (size_t i = 0; i < f->in.n_notes; i++)
        if (strstr(f->in.notes[i].text, text))
            return true;
    return false;
}

#define TERM(app, key) "{'topologyKey':'" key "','labelSelector':{'matchLabels':{'app':'" app "'}}}"
#define HOST_KEY "kubernetes.io/hostname"
#define ZONE_KEY "topology.kubernetes.io/zone"
#define ANTI(app, key)                                                                             \
    ",'affinity':{'podAntiAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':["           \
    TERM(app, key) "]}}"
#define WITH(app, key)                                                                             \
    ",'affinity':{'podAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':["               \
    TERM(app, key) "]}}"
#define SOFT_ANTI(app, key)                                                                        \
    ",'affinity':{'podAntiAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':["          \
    "{'weight':100,'podAffinityTerm':" TERM(app, key) "}]}}"

static void test_anti_affinity_when_of_itself_then_one_per_host(void **state)
{
    struct fixture *f = *state;
    four_nodes(f);
    workload(f, "db", "");
    pod(f, "db", "n1", ANTI("db", HOST_KEY));
    pod(f, "db", "n3", ANTI("db", HOST_KEY));
    build(f);
    const struct rule *apart = rule(f, RULE_APART, "db");
    assert_non_null(apart);
    assert_int_equal(apart->n_services, 1);
    assert_int_equal(apart->max_per_host, 1);
}

static void test_anti_affinity_when_of_a_neighbour_then_both_keep_apart(void **state)
{
    struct fixture *f = *state;
    four_nodes(f);
    workload(f, "web", "");
    workload(f, "db", "");
    pod(f, "web", "n1", "");
    pod(f, "db", "n2", ANTI("web", HOST_KEY));
    build(f);
    const struct rule *apart = rule(f, RULE_APART, "db");
    assert_non_null(apart);
    assert_int_equal(apart->n_services, 2);
    AUTO_FREE int *held = mem_array(f->model->n_hosts * f->model->n_services, sizeof *held);
    held[1 * (int)f->model->n_services + service(f, "db")] = 1;
    assert_non_null(model_rule_problem(f->model, held, service(f, "web"), 1));
    assert_null(model_rule_problem(f->model, held, service(f, "web"), 2));
}

static void test_anti_affinity_when_of_a_foreign_pod_then_its_host_is_closed(void **state)
{
    struct fixture *f = *state;
    static const char *const services[] = {"shop/web", NULL}, *const all[] = {NULL};
    const struct app_scope app = {"shop", all, services};
    char hosts[100];
    f->choice.app = &app;
    four_nodes(f);
    workload(f, "web", "");
    workload(f, "db", "");
    pod(f, "web", "n1", "");
    pod(f, "db", "n2", ANTI("web", HOST_KEY)); /* not of the app */
    build(f);
    assert_string_equal(allowed(f, "web", hosts), "n1 n3 n4");
}

static void test_anti_affinity_when_against_a_foreign_pod_then_its_zone_is_closed(void **state)
{
    struct fixture *f = *state;
    static const char *const services[] = {"shop/web", NULL}, *const all[] = {NULL};
    const struct app_scope app = {"shop", all, services};
    char hosts[100];
    f->choice.app = &app;
    four_nodes(f);
    workload(f, "web", "");
    workload(f, "db", "");
    pod(f, "web", "n1", ANTI("db", ZONE_KEY));
    pod(f, "db", "n4", "");
    build(f);
    assert_string_equal(allowed(f, "web", hosts), "n1 n2");
}

static void test_anti_affinity_when_over_zones_then_spread_over_zones(void **state)
{
    struct fixture *f = *state;
    four_nodes(f);
    workload(f, "db", "");
    pod(f, "db", "n1", ANTI("db", ZONE_KEY));
    pod(f, "db", "n3", ANTI("db", ZONE_KEY));
    build(f);
    const struct rule *spread = rule(f, RULE_SPREAD, "db");
    assert_non_null(spread);
    assert_true(spread->per_zone);
    assert_int_equal(rule_spread_max(spread, 2), 1);
}

static void test_anti_affinity_when_over_zones_between_two_then_each_keeps_to_its_own(void **state)
{
    struct fixture *f = *state;
    char hosts[100];
    four_nodes(f);
    workload(f, "web", "");
    workload(f, "db", "");
    pod(f, "web", "n1", ANTI("db", ZONE_KEY));
    pod(f, "db", "n3", "");
    build(f);
    assert_string_equal(allowed(f, "web", hosts), "n1 n2");
    assert_string_equal(allowed(f, "db", hosts), "n3 n4");
}

static void test_anti_affinity_when_over_an_unknown_key_then_pinned(void **state)
{
    struct fixture *f = *state;
    four_nodes(f);
    workload(f, "db", "");
    pod(f, "db", "n1", ANTI("db", "rack"));
    build(f);
    assert_non_null(strstr(pinned(f, "db-n1"), "over rack"));
}

static void test_anti_affinity_when_of_another_namespace_then_none(void **state)
{
    struct fixture *f = *state;
    four_nodes(f);
    workload(f, "web", "");
    workload(f, "db", "");
    pod(f, "web", "n1", "");
    pod(f, "db", "n2",
        ",'affinity':{'podAntiAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{"
        "'topologyKey':'kubernetes.io/hostname','namespaces':['other'],"
        "'labelSelector':{'matchLabels':{'app':'web'}}}]}}");
    build(f);
    assert_null(rule(f, RULE_APART, "db"));
}

static void test_affinity_when_of_one_service_then_together(void **state)
{
    struct fixture *f = *state;
    four_nodes(f);
    workload(f, "web", "");
    workload(f, "cache", "");
    pod(f, "web", "n1", "");
    pod(f, "cache", "n1", WITH("web", HOST_KEY));
    build(f);
    const struct rule *together = rule(f, RULE_TOGETHER, "cache");
    assert_non_null(together);
    assert_int_equal(together->services[1], service(f, "web"));
}

static void test_affinity_when_over_zones_then_the_zones_of_the_other(void **state)
{
    struct fixture *f = *state;
    char hosts[100];
    four_nodes(f);
    workload(f, "web", "");
    workload(f, "cache", "");
    pod(f, "web", "n4", "");
    pod(f, "cache", "n3", WITH("web", ZONE_KEY));
    build(f);
    assert_string_equal(allowed(f, "cache", hosts), "n3 n4");
}

static void test_rule_10_when_anti_affinity_is_preferred_then_spread_unless_turned_off(void **state)
{
    for (int off = 0; off < 2; off++) {
        void *fresh = NULL;
        setup(&fresh);
        struct fixture *f = fresh;
        f->choice.ignore_soft = off;
        four_nodes(f);
        workload(f, "web", "");
        for (int i = 1; i <= 4; i++) {
            char host[4];
            snprintf(host, sizeof host, "n%d", i);
            pod(f, "web", host, SOFT_ANTI("web", HOST_KEY));
        }
        build(f);
        const struct rule *spread = rule(f, RULE_SPREAD, "web");
        assert_int_equal(rule_spread_max(spread, 4), off ? 2 : 1); /* 2: rule 4 */
        teardown(&fresh);
    }
    (void)state;
}

static void test_rule_10_when_pods_are_spread_then_as_far_as_the_skew_lets(void **state)
{
#define SPREAD(key, skew, action)                                                                  \
    ",'topologySpreadConstraints':[{'maxSkew':" skew ",'topologyKey':'" key                        \
    "','whenUnsatisfiable':'" action "','labelSelector':{'matchLabels':{'app':'web'}}}]"
    static const struct {
        const char *spec;
        bool ignore_soft, per_zone;
        int64_t max; /* of 4 replicas; 0: no such rule */
    } cases[] = {
        {SPREAD(ZONE_KEY, "1", "DoNotSchedule"), false, true, 2}, /* 2 + 2, or 3 + 1 is skew 2 */
        {SPREAD(ZONE_KEY, "2", "DoNotSchedule"), false, true, 3},
        {SPREAD(ZONE_KEY, "1", "ScheduleAnyway"), false, true, 2},
        {SPREAD(ZONE_KEY, "1", "ScheduleAnyway"), true, true, 0},
        {SPREAD(HOST_KEY, "1", "DoNotSchedule"), false, false, 1},
    };
    (void)state;
    for (size_t c = 0; c < ARRAY_LEN(cases); c++) {
        void *fresh = NULL;
        setup(&fresh);
        struct fixture *f = fresh;
        f->choice.ignore_soft = cases[c].ignore_soft;
        four_nodes(f);
        workload(f, "web", "");
        for (int i = 1; i <= 4; i++) {
            char host[4];
            snprintf(host, sizeof host, "n%d", i);
            pod(f, "web", host, cases[c].spec);
        }
        build(f);
        const struct rule *found = rule(f, RULE_SPREAD, "web");
        int64_t max = found && found->per_zone == cases[c].per_zone ? rule_spread_max(found, 4) : 0;
        assert_int_equal(max, cases[c].max);
        teardown(&fresh);
    }
}

static void test_ports_when_two_services_take_one_of_the_host_then_apart(void **state)
{
    struct fixture *f = *state;
#define PORT(p) ",'containers':[{'name':'c','ports':[{'containerPort':80,'hostPort':" p "}]}]"
    four_nodes(f);
    workload(f, "web", "");
    workload(f, "proxy", "");
    workload(f, "other", "");
    pod(f, "web", "n1", PORT("8080"));
    pod(f, "proxy", "n2", PORT("8080"));
    pod(f, "other", "n3", PORT("9090"));
    build(f);
    int both = 0;
    for (size_t i = 0; i < f->model->n_rules; i++)
        both += f->model->rules[i].kind == RULE_APART && f->model->rules[i].n_services == 2;
    assert_int_equal(both, 1);
    AUTO_FREE int *held = mem_array(f->model->n_hosts * f->model->n_services, sizeof *held);
    held[1 * (int)f->model->n_services + service(f, "proxy")] = 1;
    assert_non_null(model_rule_problem(f->model, held, service(f, "web"), 1));
    assert_null(model_rule_problem(f->model, held, service(f, "other"), 1));
}

static void test_rule_4_when_several_replicas_then_no_host_holds_more_than_half(void **state)
{
    struct fixture *f = *state;
    four_nodes(f);
    workload(f, "web", "");
    pod(f, "web", "n1", "");
    pod(f, "web", "n2", "");
    pod(f, "web", "n3", "");
    build(f);
    assert_int_equal(rule_spread_max(rule(f, RULE_SPREAD, "web"), 3), 2);
}

static void test_rule_4_when_an_autoscaler_scales_then_quiet(void **state)
{
    struct fixture *f = *state;
    four_nodes(f);
    workload(f, "web", "");
    workload(f, "db", "");
    pod(f, "web", "n1", "");
    put(f, "{'kind':'HorizontalPodAutoscaler','metadata':{'namespace':'shop','name':'h'},"
           "'spec':{'maxReplicas':5,'scaleTargetRef':{'kind':'Deployment','name':'web'}},"
           "'status':{'currentReplicas':1,'desiredReplicas':3}}");
    build(f);
    assert_true(f->model->services[service(f, "web")].rollout);
    assert_false(f->model->services[service(f, "db")].rollout);
}

/* An autoscaler of the Deployment; `status`: what it says, as members. */
static void scaler(struct fixture *f, const char *of, const char *status)
{
    AUTO_JSON json_t *object = json(
        f,
        "{'metadata':{'namespace':'shop','name':'h-%s','uid':'h-%s'},'spec':{'maxReplicas':9,"
        "'scaleTargetRef':{'kind':'Deployment','name':'%s'}},'status':{%s}}",
        of, of, of, status);
    kube_objects_put(f->objects, "HorizontalPodAutoscaler", object);
}

/* What standing.c adds to a Deployment that it judges. */
static void judged(struct fixture *f, const char *name, int64_t surge, const char *resources)
{
    for (size_t i = 0; i < kube_places(f->objects, KUBE_DEPLOYMENT); i++) {
        struct kube_workload *w = kube_at(f->objects, KUBE_DEPLOYMENT, i);
        if (strcmp(w->meta.name, name) != 0)
            continue;
        w->surge = surge;
        json_decref(w->pod_spec);
        w->pod_spec = json(f, "{'containers':[{'resources':{%s}}]}", resources);
        return;
    }
    fail_msg("no Deployment %s", name);
}

static void test_rule_4_when_an_autoscaler_cannot_be_trusted_then_pinned_up_front(void **state)
{
    struct fixture *f = *state;
    four_nodes(f);
    f->choice.scaling_ms = 5 * 60 * 1000;
    static const struct {
        const char *name, *status, *why;
    } rows[] = {
        {"blind", "'currentReplicas':1", "h-blind does not know yet how many replicas it wants"},
        {"recent", "'currentReplicas':1,'desiredReplicas':1,'lastScaleTime':'2001-09-09T01:43:00Z'",
         "h-recent scaled it at 2001-09-09T01:43:00Z, quiet for 5m"},
        {"old", "'currentReplicas':1,'desiredReplicas':1,'lastScaleTime':'2001-09-09T01:40:00Z'",
         NULL},
        {"single", "'currentReplicas':1,'desiredReplicas':1",
         "h-single scales it: it would be pinned to a single host"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        workload(f, rows[i].name, "");
        pod(f, rows[i].name, "n1", "");
        scaler(f, rows[i].name, rows[i].status);
    }
    judged(f, "single", 1, "");
    build(f);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_FREE char *name = mem_printf("%s-n1", rows[i].name);
        if (rows[i].why)
            assert_string_equal(pinned(f, name), rows[i].why);
        else
            assert_null(pinned(f, name));
    }
}

static void test_rule_4_when_scaled_down_then_planned_at_the_most_of_the_window(void **state)
{
    struct fixture *f = *state;
    four_nodes(f);
    workload(f, "web", "");
    pod(f, "web", "n1", ",'containers':[{'resources':{'requests':{'cpu':'100m','memory':'10Mi'}}}]");
    pod(f, "web", "n2", ",'containers':[{'resources':{'requests':{'cpu':'100m','memory':'10Mi'}}}]");
    scaler(f, "web", "'currentReplicas':6,'desiredReplicas':6");
    scaler(f, "web", "'currentReplicas':2,'desiredReplicas':2");
    f->choice.now_ms = clock_wall_ms();
    f->choice.peak_ms = INT64_C(3600) * 1000;
    build(f);
    int at = model_instance(f->model, "shop/web-n1");
    assert_int_equal(f->model->instances[at].cpu_request_millis, 300); /* six of 100 on two */
    assert_int_equal(f->model->instances[at].mem_request_bytes, 3 * (10 << 20));
    model_free(f->model);
    f->in.model = f->model = model_new();
    f->choice.now_ms += 2 * f->choice.peak_ms; /* long after it was scaled down */
    build(f);
    assert_int_equal(f->model->instances[at].cpu_request_millis, 100);
}

static void test_rule_7_when_the_namespace_has_no_room_for_a_surge_then_pinned_up_front(void **state)
{
    struct fixture *f = *state;
    four_nodes(f);
    static const struct {
        const char *cpu, *why;
        int64_t surge;
    } rows[] = {
        {"100m", NULL, 1},
        {"101m", "ResourceQuota q has no room for the surge: requests.cpu", 1},
        {"60m", "ResourceQuota q has no room for the surge: requests.cpu", 2},
        {"300m", NULL, 0}, /* stops first */
    };
    put(f, "{'kind':'ResourceQuota','metadata':{'namespace':'shop','name':'q','uid':'q'},'spec':{},"
           "'status':{'hard':{'requests.cpu':'1'},'used':{'requests.cpu':'900m'}}}");
    put(f, "{'kind':'ResourceQuota','metadata':{'namespace':'bank','name':'full','uid':'f'},'spec':{},"
           "'status':{'hard':{'pods':'1'},'used':{'pods':'1'}}}");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_FREE char *name = mem_printf("w%zu", i);
        AUTO_FREE char *spec = mem_printf(
            ",'containers':[{'resources':{'requests':{'cpu':'%s','memory':'1Mi'}}}]", rows[i].cpu);
        workload(f, name, "");
        pod(f, name, "n1", spec);
        judged(f, name, rows[i].surge, "");
    }
    build(f);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_FREE char *name = mem_printf("w%zu-n1", i);
        if (rows[i].why)
            assert_string_equal(pinned(f, name), rows[i].why);
        else
            assert_null(pinned(f, name));
    }
}

static void test_rule_7_when_a_limit_range_keeps_new_pods_out_then_pinned_up_front(void **state)
{
    struct fixture *f = *state;
    four_nodes(f);
    static const struct {
        const char *resources, *why;
    } rows[] = {
        {"'resources':{}", NULL},
        {"'requests':{'cpu':'500m'},'limits':{'cpu':'700m'}", NULL},
        {"'limits':{'cpu':'1100m'}", "LimitRange r would not let its new pods in: max cpu of a "
                                     "Container"},
        {"'requests':{'memory':'1Mi'}", "LimitRange r would not let its new pods in: min memory of a "
                                        "Container"},
        {"'requests':{'cpu':'900m'}", "LimitRange r would not let its new pods in: max cpu of a Pod"},
    };
    put(f, "{'kind':'LimitRange','metadata':{'namespace':'shop','name':'r','uid':'r'},'spec':{"
           "'limits':[{'type':'PersistentVolumeClaim','max':{'cpu':'1m'}},{'type':'Container','max':{"
           "'cpu':'1'},'min':{'memory':'2Mi'}},{'type':'Pod','max':{'cpu':'800m'}}]}}");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_FREE char *name = mem_printf("w%zu", i);
        workload(f, name, "");
        pod(f, name, "n1", "");
        judged(f, name, 1, rows[i].resources);
    }
    build(f);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_FREE char *name = mem_printf("w%zu-n1", i);
        if (rows[i].why)
            assert_string_equal(pinned(f, name), rows[i].why);
        else
            assert_null(pinned(f, name));
    }
}

static void test_rule_11_when_argo_has_taken_a_deployment_over_then_pinned(void **state)
{
    struct fixture *f = *state;
    four_nodes(f);
    workload(f, "web", "");
    pod(f, "web", "n1", "");
    put(f, "{'kind':'Rollout','metadata':{'namespace':'shop','name':'canary'},"
           "'spec':{'workloadRef':{'kind':'Deployment','name':'web'}}}");
    build(f);
    assert_string_equal(pinned(f, "web-n1"), "its Deployment belongs to the Argo Rollout canary");
}

static void test_rule_12_when_a_node_is_young_then_it_receives_nothing(void **state)
{
    struct fixture *f = *state;
    node(f, "old", "", ",'creationTimestamp':'2001-09-09T01:00:00Z'", "");
    node(f, "new", "", ",'creationTimestamp':'2001-09-09T01:45:00Z'", "");
    f->choice.min_node_age_ms = 600000; /* now: 01:46:40 */
    build(f);
    assert_true(f->model->hosts[model_host(f->model, "old")].schedulable);
    assert_false(f->model->hosts[model_host(f->model, "new")].schedulable);
    assert_true(noted(f, "too young"));
}

static void test_rule_12_when_a_node_is_to_go_then_it_receives_nothing(void **state)
{
    static const char *const taints[] = {"karpenter.sh/disrupted", "ToBeDeletedByClusterAutoscaler",
                                         "DeletionCandidateOfClusterAutoscaler"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(taints); i++) {
        void *fresh = NULL;
        setup(&fresh);
        struct fixture *f = fresh;
        char spec[200];
        /* PreferNoSchedule: the scheduler itself would still send pods there. */
        snprintf(spec, sizeof spec, "'taints':[{'key':'%s','effect':'PreferNoSchedule'}]", taints[i]);
        node(f, "n1", "", "", spec);
        build(f);
        assert_false(f->model->hosts[0].schedulable);
        teardown(&fresh);
    }
}

static void test_rule_12_when_nodes_differ_in_kind_then_pods_stay_on_theirs(void **state)
{
    (void)state;
    for (int any = 0; any < 2; any++) {
        void *fresh = NULL;
        char hosts[100];
        setup(&fresh);
        struct fixture *f = fresh;
        f->choice.any_pool = any;
        node(f, "n1", ",'kubernetes.io/arch':'amd64'", "", "");
        node(f, "n2", ",'kubernetes.io/arch':'arm64'", "", "");
        node(f, "n3", ",'kubernetes.io/arch':'amd64'", "", "");
        node(f, "n4", ",'kubernetes.io/arch':'amd64','karpenter.sh/capacity-type':'spot'", "", "");
        workload(f, "web", "");
        pod(f, "web", "n1", "");
        build(f);
        assert_string_equal(allowed(f, "web", hosts), any ? "" : "n1 n3");
        teardown(&fresh);
    }
}

static void volumes(struct fixture *f, const char *volume)
{
    put(f, "{'kind':'PersistentVolumeClaim','metadata':{'namespace':'shop','name':'data'},"
           "'spec':{'volumeName':'pv','accessModes':['ReadWriteOnce']}}");
    put(f, "{'kind':'PersistentVolume','metadata':{'name':'pv'},'spec':{%s}}", volume);
}

#define CLAIM ",'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'data'}}]"

static void test_volume_when_of_one_zone_then_pods_stay_in_it(void **state)
{
    struct fixture *f = *state;
    char hosts[100];
    four_nodes(f);
    volumes(f, "'csi':{},'nodeAffinity':{'required':{'nodeSelectorTerms':[{'matchExpressions':[{"
               "'key':'topology.kubernetes.io/zone','operator':'In','values':['b']}]}]}}");
    workload(f, "db", "");
    pod(f, "db", "n3", CLAIM);
    build(f);
    assert_string_equal(allowed(f, "db", hosts), "n3 n4");
    assert_true(f->model->services[service(f, "db")].stateful);
}

static void test_volume_when_local_then_pinned(void **state)
{
    struct fixture *f = *state;
    four_nodes(f);
    volumes(f, "'local':{'path':'/mnt'}");
    workload(f, "db", "");
    pod(f, "db", "n3", CLAIM);
    build(f);
    assert_string_equal(pinned(f, "db-n3"), "volume pv of claim data is on its node only");
}

static void test_rule_14_annotations_when_wished_then_rules_of_the_own_namespace(void **state)
{
    struct fixture *f = *state;
    four_nodes(f);
    workload(f, "web", "'remap/keep-with':'cache','remap/keep-apart':'db, gone'");
    workload(f, "cache", "");
    workload(f, "db", "'remap/keep-with':'bank/ledger'");
    pod(f, "web", "n1", "");
    pod(f, "cache", "n1", "");
    pod(f, "db", "n2", "");
    build(f);
    assert_int_equal(rule(f, RULE_TOGETHER, "web")->services[1], service(f, "cache"));
    assert_int_equal(rule(f, RULE_APART, "web")->services[1], service(f, "db"));
    assert_true(noted(f, "names shop/gone, which is not there"));
    /* Rule 14: others' pods are no neighbours to be chosen. */
    assert_null(rule(f, RULE_TOGETHER, "db"));
    assert_true(noted(f, "bank/ledger, which is of another namespace"));
}

static void test_annotation_weight_when_wished_then_the_services_of_the_model_have_it(void **state)
{
    struct fixture *f = *state;
    four_nodes(f);
    workload(f, "web", "'remap/weight':'2.5'");
    workload(f, "cache", "'remap/weight':'0'");
    workload(f, "db", "'remap/weight':'1e3'");
    workload(f, "mail", "'remap/weight':'1001'");
    workload(f, "plain", "'remap/move':'always'");
    static const char *const names[] = {"web", "cache", "db", "mail", "plain"};
    static const double weights[] = {2.5, 0, 1, 1, 1};
    for (size_t i = 0; i < 5; i++)
        pod(f, names[i], "n1", "");
    build(f);
    for (size_t i = 0; i < 5; i++)
        assert_true(f->model->services[service(f, names[i])].weight == weights[i]);
    assert_true(noted(f, "remap/weight of shop/db is no number from 0 to 1000: 1e3"));
    assert_true(noted(f, "remap/weight of shop/mail is no number from 0 to 1000: 1001"));
}

static void test_annotation_window_when_closed_then_pinned_with_its_words(void **state)
{
    struct fixture *f = *state; /* it is Sunday, 2001-09-09 01:46:40 */
    four_nodes(f);
    workload(f, "open", "'remap/window':'Mon-Fri 22:00-06:00; Sun 01:00-02:00'");
    workload(f, "closed", "'remap/window':'Sun 02:00-03:00'");
    workload(f, "odd", "'remap/window':'at night'");
    pod(f, "open", "n1", "");
    pod(f, "closed", "n1", "");
    pod(f, "odd", "n1", "");
    build(f);
    assert_null(pinned(f, "open-n1"));
    assert_string_equal(pinned(f, "closed-n1"),
                        "annotated remap/window: Sun 02:00-03:00 (UTC): not now");
    assert_string_equal(pinned(f, "odd-n1"), "annotated remap/window: at night, which is no time of "
                                             "the week such as Mon-Fri 22:00-06:00");
}

static void test_scope_when_namespace_is_excluded_then_its_pods_use_their_host(void **state)
{
    struct fixture *f = *state;
    static const char *const excluded[] = {"shop", NULL};
    f->choice.excluded = excluded;
    four_nodes(f);
    workload(f, "web", "");
    pod(f, "web", "n1", "");
    build(f);
    assert_int_equal(f->model->n_services, 0);
    assert_int_equal(f->model->hosts[0].pods_used, 1);
}

static void test_scope_when_a_pod_waits_for_the_scheduler_then_left_out_and_told(void **state)
{
    struct fixture *f = *state;
    four_nodes(f);
    workload(f, "cart", "");
    pod(f, "cart", "n1", "");
    put(f, "{'kind':'Pod','metadata':{'namespace':'shop','name':'cart-new','uid':'p-new',"
           "'ownerReferences':[{'kind':'ReplicaSet','name':'cart-1','uid':'r-cart',"
           "'controller':true}]},'spec':{},'status':{'phase':'Pending'}}");
    f->choice.placed_only = true;
    build(f);
    assert_int_equal(f->model->n_instances, 1);
    assert_string_equal(f->model->instances[0].name, "shop/cart-n1");
    assert_int_equal(f->in.n_notes, 1);
    assert_string_equal(f->in.notes[0].kind, "waiting");
    assert_int_equal(f->in.notes[0].count, 1);
}

static void test_scope_when_pods_are_selected_then_only_those(void **state)
{
    struct fixture *f = *state;
    AUTO_JSON json_t *selector = json_pack("{s:{s:s}}", "matchLabels", "app", "web");
    f->choice.selector = selector;
    four_nodes(f);
    workload(f, "web", "");
    workload(f, "db", "");
    pod(f, "web", "n1", "");
    pod(f, "db", "n2", "");
    build(f);
    assert_int_equal(f->model->n_services, 1);
    assert_int_equal(f->model->hosts[1].pods_used, 1);
}

/* --- our own pin is no wish of the user's --- */

static void on_judge(void *ctx, const char *kind, const json_t *object, struct kube_workload *out)
{
    standing_judge(ctx, kind, object, out);
}

static void on_released(void *ctx, const char *kind, const json_t *object)
{
    (void)ctx;
    (void)kind;
    (void)object;
}

#define IN(key, values) "{'key':'" key "','operator':'In','values':[" values "]}"
#define LEAF(values) "{'nodeSelectorTerms':[{'matchExpressions':[" values "]}]}"
#define REQUIRED(leaf)                                                                             \
    "'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':" leaf "}}"
#define USERS_LEAF LEAF(IN(ZONE_KEY, "'a'"))
#define PIN_LEAF LEAF(IN(ZONE_KEY, "'a'") "," IN(HOST_KEY, "'n1','n2'"))
#define PIN_SPREAD(labels)                                                                         \
    "'topologySpreadConstraints':[{'maxSkew':1,'topologyKey':'" HOST_KEY "',"                      \
    "'whenUnsatisfiable':'DoNotSchedule','labelSelector':{'matchLabels':{" labels "}}}]"

/* A mark on shop/web of a pin on n1 and n2; before it the user himself wanted zone a. */
static char *written_mark(struct fixture *f, const char *uid)
{
    AUTO(mark) struct mark *mark = mem_alloc(sizeof *mark);
    AUTO_JSON json_t *original = json(f, "{" REQUIRED(USERS_LEAF) "}");
    mark->uid = mem_strdup(uid);
    mark->template = mem_strdup("0");
    mark->seq = 1;
    mark->pin.kind = PIN_REQUIRED;
    pin_add(&mark->pin, "n1", "n1", 2);
    pin_add(&mark->pin, "n2", "n2", 2);
    mark->leaf = json(f, PIN_LEAF);
    mark->constraint = json(f, "{'topologyKey':'" HOST_KEY "'}");
    mark->original = pin_fields_decode(original);
    return mark_encode(mark);
}

/* Four pods of the Deployment that bears the mark; `affinity` stands in all templates. */
static struct fixture *with_pin(void **state, struct standing *standing, const char *uid,
                                const char *affinity)
{
    struct fixture *f = *state;
    AUTO_FREE char *written = written_mark(f, uid);
    kube_objects_judge(f->objects, on_judge, on_released, standing);
    four_nodes(f);
    node(f, "n5", ZONE("a"), "", "");
    replica_set(f, "web");
    AUTO_JSON json_t *deployment =
        json(f,
             "{'kind':'Deployment','metadata':{'namespace':'shop','name':'web','uid':'d-web',"
             "'annotations':{}},'spec':{'replicas':4,'template':{'spec':{%s," PIN_SPREAD(
                 "'app':'web'") "}}}}",
             affinity);
    json_object_set_new(json_object_get(json_object_get(deployment, "metadata"), "annotations"),
                        MARK_ANNOTATION, json_string(written));
    kube_objects_put(f->objects, "Deployment", deployment);
    for (int i = 0; i < 4; i++)
        put(f,
            "{'kind':'Pod','metadata':{'namespace':'shop','name':'web-%d','uid':'p-%d',"
            "'labels':{'app':'web','hash':'1'},'ownerReferences':[{'kind':'ReplicaSet',"
            "'name':'web-1','uid':'r-web','controller':true}]},'spec':{'nodeName':'n%d',"
            "%s," PIN_SPREAD("'app':'web','hash':'1'") "},'status':{'phase':'Running'}}",
            i, i, 1 + i % 2, affinity);
    build(f);
    return f;
}

static struct standing merging = {.pin = PIN_REQUIRED,
                                  .options = {.any_probe = true, .merge_foreign = true}};

/* The smallest share that a host may hold. */
static double share(const struct fixture *f)
{
    double least = 1;
    for (size_t i = 0; i < f->model->n_rules; i++)
        if (f->model->rules[i].kind == RULE_SPREAD && f->model->rules[i].max_share < least)
            least = f->model->rules[i].max_share;
    return least;
}

static void test_pin_when_ours_is_in_force_then_only_the_users_terms_count(void **state)
{
    char hosts[100];
    struct fixture *f = with_pin(state, &merging, "d-web", REQUIRED(PIN_LEAF));
    assert_string_equal(allowed(f, "web", hosts), "n1 n2 n5");
    assert_float_equal(share(f), 0.5, 1e-9); /* rule 4 alone, not as even as our constraint */
}

static void test_pin_when_its_mark_is_of_another_object_then_its_terms_count(void **state)
{
    char hosts[100];
    struct fixture *f = with_pin(state, &merging, "copied", REQUIRED(PIN_LEAF));
    assert_string_equal(allowed(f, "web", hosts), "n1 n2");
    assert_float_equal(share(f), 0.25, 1e-9);
}

static void test_pin_when_somebody_has_changed_it_then_his_terms_count(void **state)
{
    char hosts[100];
    struct fixture *f = with_pin(state, &merging, "d-web", REQUIRED(LEAF(IN(HOST_KEY, "'n4'"))));
    assert_string_equal(allowed(f, "web", hosts), "n4");
}

/* The command that offers it as a patch goes by how the reason begins. */
static void test_rule_1_when_somebody_owns_the_list_then_pinned_in_the_words_of_the_contract(void **state)
{
    struct standing offering = {.pin = PIN_REQUIRED, .options = {.any_probe = true}};
    const struct fixture *f = with_pin(state, &offering, "copied", REQUIRED(PIN_LEAF));
    assert_string_equal(pinned(f, "web-0"), "affinity owned by somebody who left no name");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_anti_affinity_when_of_itself_then_one_per_host),
        TEST(test_anti_affinity_when_of_a_neighbour_then_both_keep_apart),
        TEST(test_anti_affinity_when_of_a_foreign_pod_then_its_host_is_closed),
        TEST(test_anti_affinity_when_against_a_foreign_pod_then_its_zone_is_closed),
        TEST(test_anti_affinity_when_over_zones_then_spread_over_zones),
        TEST(test_anti_affinity_when_over_zones_between_two_then_each_keeps_to_its_own),
        TEST(test_anti_affinity_when_over_an_unknown_key_then_pinned),
        TEST(test_anti_affinity_when_of_another_namespace_then_none),
        TEST(test_affinity_when_of_one_service_then_together),
        TEST(test_affinity_when_over_zones_then_the_zones_of_the_other),
        TEST(test_rule_10_when_anti_affinity_is_preferred_then_spread_unless_turned_off),
        TEST(test_rule_10_when_pods_are_spread_then_as_far_as_the_skew_lets),
        TEST(test_ports_when_two_services_take_one_of_the_host_then_apart),
        TEST(test_rule_4_when_several_replicas_then_no_host_holds_more_than_half),
        TEST(test_rule_4_when_an_autoscaler_scales_then_quiet),
        TEST(test_rule_4_when_an_autoscaler_cannot_be_trusted_then_pinned_up_front),
        TEST(test_rule_4_when_scaled_down_then_planned_at_the_most_of_the_window),
        TEST(test_rule_7_when_the_namespace_has_no_room_for_a_surge_then_pinned_up_front),
        TEST(test_rule_7_when_a_limit_range_keeps_new_pods_out_then_pinned_up_front),
        TEST(test_rule_11_when_argo_has_taken_a_deployment_over_then_pinned),
        TEST(test_rule_12_when_a_node_is_young_then_it_receives_nothing),
        TEST(test_rule_12_when_a_node_is_to_go_then_it_receives_nothing),
        TEST(test_rule_12_when_nodes_differ_in_kind_then_pods_stay_on_theirs),
        TEST(test_volume_when_of_one_zone_then_pods_stay_in_it),
        TEST(test_volume_when_local_then_pinned),
        TEST(test_rule_14_annotations_when_wished_then_rules_of_the_own_namespace),
        TEST(test_annotation_weight_when_wished_then_the_services_of_the_model_have_it),
        TEST(test_annotation_window_when_closed_then_pinned_with_its_words),
        TEST(test_scope_when_namespace_is_excluded_then_its_pods_use_their_host),
        TEST(test_scope_when_a_pod_waits_for_the_scheduler_then_left_out_and_told),
        TEST(test_scope_when_pods_are_selected_then_only_those),
        TEST(test_pin_when_ours_is_in_force_then_only_the_users_terms_count),
        TEST(test_pin_when_its_mark_is_of_another_object_then_its_terms_count),
        TEST(test_pin_when_somebody_has_changed_it_then_his_terms_count),
        TEST(test_rule_1_when_somebody_owns_the_list_then_pinned_in_the_words_of_the_contract),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
