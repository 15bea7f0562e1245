/* test_objects.c - API objects into the model: hosts, owners, requests, pins, names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "adapters/kubernetes/objects.h"
#include "model/base/json.h"
#include "model/model_json.h"
#include "adapters/identity.h"

struct fixture {
    struct kube_objects *objects;
    struct model *model;
    struct identity *identity;
    struct inspection in;
    struct err err;
};

static int setup(void **state)
{
    struct fixture *f = mem_alloc(sizeof *f);
    f->objects = kube_objects_new();
    f->model = model_new();
    f->identity = identity_new(f->model);
    f->in = (struct inspection){.model = f->model, .identity = f->identity};
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    kube_objects_free(f->objects);
    identity_free(f->identity);
    inspection_wipe(&f->in);
    model_free(f->model);
    free(f);
    return 0;
}

/* Single quotes stand for double ones, so that objects can be read. */
static json_t *parse(const char *text)
{
    char *copy = mem_strdup(text);
    for (char *c = copy; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    struct err err = ERR_INIT;
    json_t *tree = json_parse(copy, strlen(copy), &json_limits_document, &err);
    if (!tree)
        fail_msg("%s in %s", err.text, copy);
    free(copy);
    return tree;
}

static int add(struct fixture *f, const char *text)
{
    AUTO_JSON json_t *tree = parse(text);
    return kube_objects_add(f->objects, tree, &f->err);
}

static void must_add(struct fixture *f, const char *text)
{
    if (add(f, text))
        fail_msg("%s", f->err.text);
}

static void build(struct fixture *f, const struct app_scope *app)
{
    const struct kube_choice choice = {.app = app};
    if (kube_objects_model(f->objects, &choice, &f->in, &f->err) || model_check(f->model, &f->err))
        fail_msg("%s", f->err.text);
}

#define READY "'conditions':[{'type':'Ready','status':'True'}]"
#define ALLOCATABLE "'allocatable':{'cpu':'3920m','memory':'7Gi','pods':'110'}"

static void node(struct fixture *f, const char *name, const char *meta, const char *spec,
                 const char *status)
{
    AUTO_FREE char *text =
        mem_printf("{'kind':'Node','metadata':{'name':'%s'%s},'spec':{%s},'status':{%s}}", name,
                   meta, spec, status);
    must_add(f, text);
}

static void pod(struct fixture *f, const char *name, const char *owner, const char *meta,
                const char *spec, const char *status)
{
    AUTO_FREE char *text = mem_printf(
        "{'kind':'Pod','metadata':{'namespace':'shop','name':'%s','ownerReferences':[%s]%s},"
        "'spec':{'nodeName':'n1'%s},'status':{'phase':'Running'%s}}",
        name, owner, meta, spec, status);
    must_add(f, text);
}

#define OWNER(kind, name, uid)                                                                 \
    "{'kind':'" kind "','name':'" name "','uid':'" uid "','controller':true}"

static void workload(struct fixture *f, const char *kind, const char *name, const char *uid,
                     const char *owner, const char *spec)
{
    AUTO_FREE char *text =
        mem_printf("{'kind':'%s','metadata':{'namespace':'shop','name':'%s','uid':'%s',"
                   "'ownerReferences':[%s]},'spec':{%s}}",
                   kind, name, uid, owner, spec);
    must_add(f, text);
}

/* Deployment cart, its ReplicaSet, node n1. */
static void basics(struct fixture *f)
{
    node(f, "n1", "", "", ALLOCATABLE "," READY);
    workload(f, "Deployment", "cart", "d1", "", "'replicas':1");
    workload(f, "ReplicaSet", "cart-7d9f", "r1", OWNER("Deployment", "cart", "d1"), "");
}

static const struct instance *instance(const struct fixture *f, const char *name)
{
    int at = model_instance(f->model, name);
    if (at < 0)
        fail_msg("no instance %s", name);
    return &f->model->instances[at];
}

static void test_node_when_decoded_then_allocatable_and_labels(void **state)
{
    struct fixture *f = *state;
    node(f, "n1",
         ",'labels':{'topology.kubernetes.io/zone':'z1','topology.kubernetes.io/region':'r1','x':'y'}",
         "", "'capacity':{'cpu':'4','memory':'8Gi','pods':'250'}," ALLOCATABLE "," READY);
    build(f, NULL);
    const struct host *host = &f->model->hosts[0];
    assert_string_equal(host->name, "n1");
    assert_int_equal(host->cpu_cap_millis, 3920);
    assert_int_equal(host->mem_cap_bytes, INT64_C(7) << 30);
    assert_int_equal(host->pods_cap, 110);
    assert_string_equal(host->zone, "z1");
    assert_string_equal(host->region, "r1");
    assert_int_equal(host->n_labels, 3);
    assert_true(host->schedulable);
}

static void test_node_when_something_keeps_pods_away_then_not_schedulable(void **state)
{
    static const struct {
        const char *spec, *status;
        bool schedulable;
    } rows[] = {
        {"", READY, true},
        {"'unschedulable':true", READY, false},
        {"", "'conditions':[]", false},
        {"", "'conditions':[{'type':'Ready','status':'Unknown'}]", false},
        {"", "'conditions':[{'type':'Ready','status':'True'},{'type':'DiskPressure','status':'True'}]",
         false},
        {"", "'conditions':[{'type':'Ready','status':'True'},{'type':'DiskPressure','status':'False'}]",
         true},
        {"'taints':[{'key':'a','effect':'NoSchedule'}]", READY, false},
        {"'taints':[{'key':'a','effect':'NoExecute'}]", READY, false},
        {"'taints':[{'key':'a','effect':'PreferNoSchedule'}]", READY, true},
    };
    struct fixture *f = *state;
    char name[16];
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        snprintf(name, sizeof name, "n%zu", i);
        AUTO_FREE char *status = mem_printf(ALLOCATABLE ",%s", rows[i].status);
        node(f, name, "", rows[i].spec, status);
    }
    build(f, NULL);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        snprintf(name, sizeof name, "n%zu", i);
        assert_int_equal(f->model->hosts[model_host(f->model, name)].schedulable,
                         rows[i].schedulable);
    }
}

static void test_rule_13_nodes_when_they_share_a_hostname_label_then_neither_is_schedulable(
    void **state)
{
    struct fixture *f = *state;
    node(f, "n1", ",'labels':{'kubernetes.io/hostname':'x'}", "", ALLOCATABLE "," READY);
    node(f, "n2", ",'labels':{'kubernetes.io/hostname':'x'}", "", ALLOCATABLE "," READY);
    node(f, "n3", ",'labels':{'kubernetes.io/hostname':'y'}", "", ALLOCATABLE "," READY);
    build(f, NULL);
    assert_false(f->model->hosts[0].schedulable);
    assert_false(f->model->hosts[1].schedulable);
    assert_true(f->model->hosts[2].schedulable);
}

static void test_pod_when_owned_through_a_replica_set_then_service_is_the_deployment(void **state)
{
    struct fixture *f = *state;
    basics(f);
    pod(f, "cart-7d9f-x2x", OWNER("ReplicaSet", "cart-7d9f", "r1"), "", "", "");
    build(f, NULL);
    const struct instance *cart = instance(f, "shop/cart-7d9f-x2x");
    assert_string_equal(f->model->services[cart->service].name, "shop/cart");
    assert_string_equal(f->model->services[cart->service].app, "shop");
    assert_int_equal(cart->host, 0);
    assert_null(cart->pinned_why);
}

static void test_pods_when_nobody_may_move_them_then_pinned_with_the_reason(void **state)
{
    static const struct {
        const char *name, *owner, *meta, *why;
    } rows[] = {
        {"ds-1", OWNER("DaemonSet", "agent", "ds"), "", "pod of a DaemonSet"},
        {"job-1", OWNER("Job", "import", "j1"), "", "pod of a Job"},
        {"static-1", OWNER("Node", "n1", "n1"), ",'annotations':{'kubernetes.io/config.mirror':'h'}",
         "static pod of its node"},
        {"bare-1", "", "", "bare pod"},
        {"roll-1", OWNER("ReplicaSet", "roll-5", "r5"), "",
         "owned by Rollout roll, which remap does not steer"},
        {"lone-1", OWNER("ReplicaSet", "lone", "r6"), "",
         "owned by ReplicaSet lone, which remap does not steer"},
        {"gone-1", OWNER("ReplicaSet", "gone", "r9"), "",
         "owned by ReplicaSet gone, which remap does not steer"},
        {"op-1", OWNER("StatefulSet", "op", "s7"), "", "its StatefulSet is owned by Database op"},
        {"paused-1", OWNER("ReplicaSet", "paused-5", "r8"), "", "its Deployment is paused"},
        {"never-1", OWNER("ReplicaSet", "cart-7d9f", "r1"), ",'annotations':{'remap/move':'never'}",
         "annotated remap/move: never"},
    };
    struct fixture *f = *state;
    basics(f);
    workload(f, "DaemonSet", "agent", "ds", "", "");
    workload(f, "ReplicaSet", "roll-5", "r5", OWNER("Rollout", "roll", "x"), "");
    workload(f, "ReplicaSet", "lone", "r6", "", "");
    workload(f, "StatefulSet", "op", "s7", OWNER("Database", "op", "y"), "");
    workload(f, "Deployment", "paused", "d8", "", "'paused':true");
    workload(f, "ReplicaSet", "paused-5", "r8", OWNER("Deployment", "paused", "d8"), "");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        pod(f, rows[i].name, rows[i].owner, rows[i].meta, "", "");
    build(f, NULL);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_FREE char *name = mem_printf("shop/%s", rows[i].name);
        assert_non_null(instance(f, name)->pinned_why);
        assert_string_equal(instance(f, name)->pinned_why, rows[i].why);
    }
}

static void test_pods_when_a_volume_binds_them_then_stateful(void **state)
{
    static const struct {
        const char *spec;
        bool stateful;
    } rows[] = {
        {"", false},
        {",'volumes':[{'name':'v','emptyDir':{}}]", false},
        {",'volumes':[{'name':'v','configMap':{}}]", false},
        {",'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'c'}}]", true},
        {",'volumes':[{'name':'v','hostPath':{'path':'/x'}}],"
         "'containers':[{'name':'c','volumeMounts':[{'name':'v'}]}]",
         true},
        {",'volumes':[{'name':'v','hostPath':{'path':'/x'}}],"
         "'containers':[{'name':'c','volumeMounts':[{'name':'v','readOnly':true}]}]",
         false},
    };
    struct fixture *f = *state;
    node(f, "n1", "", "", ALLOCATABLE "," READY);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_FREE char *text = mem_printf(
            "{'kind':'Pod','metadata':{'namespace':'shop','name':'p%zu','ownerReferences':[{'kind':"
            "'ReplicaSet','name':'s%zu','uid':'u%zu','controller':true}]},'spec':{'nodeName':'n1'%s}}",
            i, i, i, rows[i].spec);
        must_add(f, text);
    }
    build(f, NULL);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_FREE char *name = mem_printf("shop/s%zu", i);
        int service = model_service(f->model, name);
        assert_true(service >= 0);
        assert_int_equal(f->model->services[service].stateful, rows[i].stateful);
    }
}

static void test_stateful_set_when_decoded_then_stateful(void **state)
{
    struct fixture *f = *state;
    basics(f);
    workload(f, "StatefulSet", "db", "s1", "", "");
    pod(f, "db-0", OWNER("StatefulSet", "db", "s1"), "", "", "");
    build(f, NULL);
    assert_true(f->model->services[model_service(f->model, "shop/db")].stateful);
    assert_null(instance(f, "shop/db-0")->pinned_why);
}

static void test_requests_when_decoded_then_effective_as_the_scheduler_counts(void **state)
{
#define ASKS(cpu, mem) "'resources':{'requests':{'cpu':'" cpu "','memory':'" mem "'}}"
    static const struct {
        const char *spec, *status;
        int64_t cpu, mem;
    } rows[] = {
        {"", "", 0, 0},
        {",'containers':[{" ASKS("100m", "1Ki") "},{" ASKS("0.1m", "1") "}]", "", 101, 1025},
        {",'containers':[{'resources':{'requests':{'cpu':1,'memory':100}}}]", "", 1000, 100},
        /* an init container that asks for more than what runs later */
        {",'containers':[{" ASKS("100m", "10") "}],'initContainers':[{" ASKS("300m", "5") "}]", "",
         300, 10},
        /* a sidecar counts with the containers, and beside later init containers */
        {",'containers':[{" ASKS("100m", "10") "}],'initContainers':[{'restartPolicy':'Always',"
         ASKS("50m", "7") "},{" ASKS("120m", "1") "}]",
         "", 170, 17},
        {",'containers':[{" ASKS("100m", "10") "}],'initContainers':[{" ASKS("120m", "1") "},"
         "{'restartPolicy':'Always'," ASKS("50m", "7") "}]",
         "", 150, 17},
        {",'containers':[{" ASKS("100m", "10") "}],'overhead':{'cpu':'20m','memory':'5'}", "", 120,
         15},
        /* for the whole pod, per resource */
        {",'containers':[{" ASKS("100m", "10") "}],'resources':{'requests':{'cpu':'400m'}}", "", 400,
         10},
        /* resized in place: what was granted still counts */
        {",'containers':[{'name':'c'," ASKS("100m", "10") "}]",
         ",'containerStatuses':[{'name':'c'," ASKS("250m", "4") "}]", 250, 10},
    };
    struct fixture *f = *state;
    basics(f);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_FREE char *name = mem_printf("p%zu", i);
        pod(f, name, OWNER("ReplicaSet", "cart-7d9f", "r1"), "", rows[i].spec, rows[i].status);
    }
    build(f, NULL);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_FREE char *name = mem_printf("shop/p%zu", i);
        assert_int_equal(instance(f, name)->cpu_request_millis, rows[i].cpu);
        assert_int_equal(instance(f, name)->mem_request_bytes, rows[i].mem);
    }
}

static void test_pods_when_not_of_the_model_then_they_use_their_host(void **state)
{
    static const char *const spaces[] = {"other", NULL}, *const all[] = {NULL};
    struct app_scope app = {"a", spaces, all};
    struct fixture *f = *state;
    basics(f);
    pod(f, "p", "", "", ",'containers':[{'resources':{'requests':{'cpu':'1','memory':'2Ki'}}}]", "");
    pod(f, "q", "", "", "", ",'phase2':'x'");
    build(f, &app);
    assert_int_equal(f->model->n_services, 0);
    assert_int_equal(f->model->n_instances, 0);
    assert_int_equal(f->model->hosts[0].cpu_requested_millis, 1000);
    assert_int_equal(f->model->hosts[0].mem_requested_bytes, 2048);
    assert_int_equal(f->model->hosts[0].pods_used, 2);
}

static void test_pods_when_ending_or_ended_then_no_instances(void **state)
{
    struct fixture *f = *state;
    basics(f);
    pod(f, "ending", "", ",'deletionTimestamp':'2026-11-21T00:00:00Z'",
        ",'containers':[{'resources':{'requests':{'cpu':'1'}}}]", "");
    must_add(f, "{'kind':'Pod','metadata':{'namespace':'shop','name':'done'},"
                "'spec':{'nodeName':'n1','containers':[{'resources':{'requests':{'cpu':'1'}}}]},"
                "'status':{'phase':'Succeeded'}}");
    build(f, NULL);
    assert_int_equal(f->model->n_instances, 0);
    assert_int_equal(f->model->hosts[0].cpu_requested_millis, 1000); /* until it is gone */
    assert_int_equal(f->model->hosts[0].pods_used, 1);
}

static void test_pod_when_not_scheduled_then_unplaced(void **state)
{
    struct fixture *f = *state;
    basics(f);
    must_add(f, "{'kind':'Pod','metadata':{'namespace':'shop','name':'new','ownerReferences':["
                "{'kind':'ReplicaSet','name':'cart-7d9f','uid':'r1','controller':true}]},"
                "'spec':{},'status':{'phase':'Pending'}}");
    build(f, NULL);
    assert_int_equal(instance(f, "shop/new")->host, -1);
}

static void test_rule_13_names_when_two_kinds_share_one_then_kind_is_in_it(void **state)
{
    struct fixture *f = *state;
    basics(f);
    workload(f, "StatefulSet", "cart", "s1", "", "");
    pod(f, "cart-0", OWNER("StatefulSet", "cart", "s1"), "", "", "");
    pod(f, "cart-7d9f-a", OWNER("ReplicaSet", "cart-7d9f", "r1"), "", "", "");
    build(f, NULL);
    assert_true(model_service(f->model, "shop/statefulset/cart") >= 0);
    assert_true(model_service(f->model, "shop/deployment/cart") >= 0);
    assert_true(model_service(f->model, "shop/cart") < 0);
}

static void test_rule_13_names_when_a_pod_bears_a_services_name_then_kind_is_in_the_services(
    void **state)
{
    struct fixture *f = *state;
    basics(f);
    workload(f, "StatefulSet", "web", "s1", "", "");
    workload(f, "Deployment", "web-0", "d2", "", "");
    pod(f, "web-0", OWNER("StatefulSet", "web", "s1"), "", "", "");
    build(f, NULL); /* model_check would refuse it */
    assert_true(model_service(f->model, "shop/deployment/web-0") >= 0);
    assert_true(model_instance(f->model, "shop/web-0") >= 0);
}

static void test_service_when_it_has_replicas_then_no_host_may_hold_more_than_half(void **state)
{
    struct fixture *f = *state;
    basics(f);
    for (int i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "cart-%d", i);
        pod(f, name, OWNER("ReplicaSet", "cart-7d9f", "r1"), "", "", "");
    }
    build(f, NULL);
    assert_int_equal(f->model->n_rules, 1);
    assert_int_equal(f->model->rules[0].kind, RULE_SPREAD);
    int held[1] = {1};
    assert_null(model_rule_problem(f->model, held, 0, 0)); /* a second of three */
    held[0] = 2;
    assert_non_null(model_rule_problem(f->model, held, 0, 0));
}

/* n1 plain, n2 of pool fast, n3 tainted. */
static void three_nodes(struct fixture *f)
{
    node(f, "n1", "", "", ALLOCATABLE "," READY);
    node(f, "n2", ",'labels':{'pool':'fast','cores':'8'}", "", ALLOCATABLE "," READY);
    node(f, "n3", "", "'taints':[{'key':'only','value':'cart','effect':'NoSchedule'}]",
         ALLOCATABLE "," READY);
    workload(f, "Deployment", "cart", "d1", "", "");
    workload(f, "ReplicaSet", "cart-7d9f", "r1", OWNER("Deployment", "cart", "d1"), "");
}

static void test_pod_when_it_chooses_nodes_then_its_service_is_allowed_on_those_only(void **state)
{
#define TERMS(expressions)                                                                       \
    ",'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{"            \
    "'nodeSelectorTerms':[" expressions "]}}}"
#define MATCH(key, op, values)                                                                   \
    "{'matchExpressions':[{'key':'" key "','operator':'" op "','values':[" values "]}]}"
    static const struct {
        const char *spec, *hosts; /* of the rule; "" none */
        bool n3_schedulable;
        bool pinned;
    } rows[] = {
        {"", "", false, false},
        {",'nodeSelector':{'pool':'fast'}", "n2", false, false},
        {",'nodeSelector':{'pool':'slow'}", "", false, true},
        {TERMS(MATCH("pool", "In", "'slow','fast'")), "n2", false, false},
        {TERMS(MATCH("pool", "NotIn", "'fast'")), "n1", false, false},
        {TERMS(MATCH("pool", "Exists", "")), "n2", false, false},
        {TERMS(MATCH("pool", "DoesNotExist", "")), "n1", false, false},
        {TERMS(MATCH("cores", "Gt", "'4'")), "n2", false, false},
        {TERMS(MATCH("cores", "Lt", "'8'")), "", false, true},
        {TERMS(MATCH("pool", "In", "'slow'") "," MATCH("pool", "In", "'fast'")), "n2", false, false},
        {TERMS("{'matchFields':[{'key':'metadata.name','operator':'In','values':['n1']}]}"), "n1",
         false, false},
        {TERMS("{}"), "", false, true},
        {",'nodeSelector':{'pool':'fast'}" TERMS(MATCH("cores", "Exists", "")), "n2", false, false},
        {",'tolerations':[{'key':'only','value':'cart'}]", "", true, false},
        {",'tolerations':[{'key':'only','operator':'Exists','effect':'NoSchedule'}]", "", true, false},
        {",'tolerations':[{'operator':'Exists'}]", "", true, false},
        {",'tolerations':[{'key':'only','value':'other'}]", "", false, false},
        {",'tolerations':[{'key':'only','value':'cart','effect':'NoExecute'}]", "", false, false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        void *fresh = NULL;
        setup(&fresh);
        struct fixture *f = fresh;
        three_nodes(f);
        pod(f, "cart-7d9f-a", OWNER("ReplicaSet", "cart-7d9f", "r1"), "", rows[i].spec, "");
        build(f, NULL);
        assert_int_equal(f->model->hosts[2].schedulable, rows[i].n3_schedulable);
        assert_int_equal(f->model->n_rules, rows[i].hosts[0] ? 1 : 0);
        assert_int_equal(instance(f, "shop/cart-7d9f-a")->pinned_why != NULL, rows[i].pinned);
        if (f->model->n_rules) {
            assert_int_equal(f->model->rules[0].kind, RULE_ALLOWED);
            assert_int_equal(f->model->rules[0].n_hosts, 1);
            assert_string_equal(f->model->hosts[f->model->rules[0].hosts[0]].name, rows[i].hosts);
        }
        teardown(&fresh);
    }
}

static void test_taint_when_one_service_tolerates_it_then_the_others_are_kept_away_by_rule(
    void **state)
{
    struct fixture *f = *state;
    three_nodes(f);
    workload(f, "Deployment", "front", "d2", "", "");
    workload(f, "ReplicaSet", "front-5", "r2", OWNER("Deployment", "front", "d2"), "");
    pod(f, "cart-7d9f-a", OWNER("ReplicaSet", "cart-7d9f", "r1"), "",
        ",'tolerations':[{'operator':'Exists'}]", "");
    pod(f, "front-5-a", OWNER("ReplicaSet", "front-5", "r2"), "", "", "");
    build(f, NULL);
    assert_true(f->model->hosts[2].schedulable);
    assert_int_equal(f->model->n_rules, 1);
    int cart = model_service(f->model, "shop/cart"), front = model_service(f->model, "shop/front");
    AUTO_FREE int *none = mem_array(f->model->n_hosts * f->model->n_services, sizeof *none);
    assert_null(model_rule_problem(f->model, none, cart, 2));
    assert_non_null(model_rule_problem(f->model, none, front, 2));
    assert_null(model_rule_problem(f->model, none, front, 1));
}

static void test_deployment_when_it_rolls_then_service_says_so(void **state)
{
    struct fixture *f = *state;
    basics(f);
    must_add(f, "{'kind':'Deployment','metadata':{'namespace':'shop','name':'rolls','generation':2},"
                "'spec':{'replicas':2},'status':{'observedGeneration':2,'replicas':3,"
                "'updatedReplicas':1}}");
    must_add(f, "{'kind':'Deployment','metadata':{'namespace':'shop','name':'rests','generation':2},"
                "'spec':{'replicas':2},'status':{'observedGeneration':2,'replicas':2,"
                "'updatedReplicas':2}}");
    build(f, NULL);
    assert_true(f->model->services[model_service(f->model, "shop/rolls")].rollout);
    assert_false(f->model->services[model_service(f->model, "shop/rests")].rollout);
}

static void put(struct fixture *f, const char *kind, const char *name, int observed)
{
    AUTO_FREE char *text = mem_printf(
        "{'metadata':{'uid':'%s-%s','name':'%s','namespace':'n','generation':2},"
        "'spec':{'replicas':1},'status':{'observedGeneration':%d,'updatedReplicas':1,'replicas':1}}",
        kind, name, name, observed);
    AUTO_JSON json_t *object = parse(text);
    kube_objects_put(f->objects, kind, object);
}

static void test_service_when_asked_whether_it_rolls_then_as_put_in_last(void **state)
{
    struct fixture *f = *state;
    put(f, "Deployment", "front", 1);
    put(f, "StatefulSet", "db", 1);
    put(f, "Deployment", "db", 2);
    static const struct {
        const char *service;
        bool rolls;
    } rows[] = {{"n/front", true},       {"n/deployment/front", true},   {"n/statefulset/db", true},
                {"n/deployment/db", false}, {"n/statefulset/front", false}, {"n/fron", false},
                {"m/front", false},      {"n/front/x", false},           {"front", false}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(kube_objects_rolls(f->objects, rows[i].service), rows[i].rolls);
    put(f, "Deployment", "front", 2);
    assert_false(kube_objects_rolls(f->objects, "n/front"));
}

static void test_lists_when_items_carry_no_kind_then_the_lists(void **state)
{
    struct fixture *f = *state;
    must_add(f, "{'kind':'NodeList','items':[{'metadata':{'name':'n1'},'status':{" ALLOCATABLE "}}]}");
    must_add(f, "{'kind':'List','items':[{'kind':'Node','metadata':{'name':'n2'},'status':{"
                ALLOCATABLE "}},{'kind':'ConfigMap','metadata':{'name':'x'}}]}");
    must_add(f, "{'kind':'PodList','items':null}");
    build(f, NULL);
    assert_int_equal(f->model->n_hosts, 2);
}

static void test_addresses_when_traced_then_lead_to_pod_and_host(void **state)
{
    struct fixture *f = *state;
    node(f, "n1", "", "", ALLOCATABLE "," READY ",'addresses':[{'type':'InternalIP','address':'10.1.0.1'}]");
    pod(f, "p", "", "", "", ",'podIP':'10.2.0.7'");
    build(f, NULL);
    assert_int_equal(identity_find(f->identity, IDENTITY_HOST, "10.1.0.1"), 0);
    assert_int_equal(identity_find(f->identity, IDENTITY_INSTANCE, "10.2.0.7"), 0);
}

static void test_bad_objects_when_added_then_error_names_object_and_field(void **state)
{
    static const struct {
        const char *json, *error;
    } rows[] = {
        {"{'items':[]}", "kind must be a text"},
        {"{'kind':'List','items':{}}", "items must be an array"},
        {"{'kind':'List','items':[1]}", "items[0]: must be an object"},
        {"{'kind':'List','items':[{}]}", "items[0]: kind must be a text"},
        {"{'kind':'PodList','items':[{}]}", "items[0]: Pod ?: metadata.name must be a text"},
        {"{'kind':'Node','metadata':{'name':'n'}}",
         "Node n: status.allocatable must give cpu and memory"},
        {"{'kind':'Node','metadata':{'name':'n'},'status':{'allocatable':{'cpu':'1K','memory':'1'}}}",
         "Node n: status.allocatable: cpu: \"1K\" is no quantity"},
        {"{'kind':'Node','metadata':{'name':'n'},'status':{'allocatable':{'cpu':[],'memory':'1'}}}",
         "Node n: status.allocatable: cpu must be a quantity"},
        {"{'kind':'Pod','metadata':{'namespace':'a','name':'p'},'spec':{'containers':[{'name':'c',"
         "'resources':{'requests':{'cpu':'-1'}}}]}}",
         "Pod a/p: container c: cpu: -1 is negative"},
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        f->err = (struct err)ERR_INIT;
        assert_int_equal(add(f, rows[i].json), -1);
        assert_int_equal(f->err.kind, ERR_INPUT);
        assert_string_equal(f->err.text, rows[i].error);
    }
}

static void test_objects_when_one_is_there_twice_then_error(void **state)
{
    struct fixture *f = *state;
    basics(f);
    pod(f, "p", "", "", "", "");
    assert_int_equal(add(f, "{'kind':'Pod','metadata':{'namespace':'shop','name':'p'}}"), -1);
    assert_int_equal(f->err.kind, ERR_INPUT);
    assert_non_null(strstr(f->err.text, "shop/p"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_node_when_decoded_then_allocatable_and_labels),
        TEST(test_node_when_something_keeps_pods_away_then_not_schedulable),
        TEST(test_rule_13_nodes_when_they_share_a_hostname_label_then_neither_is_schedulable),
        TEST(test_pod_when_owned_through_a_replica_set_then_service_is_the_deployment),
        TEST(test_pods_when_nobody_may_move_them_then_pinned_with_the_reason),
        TEST(test_pods_when_a_volume_binds_them_then_stateful),
        TEST(test_stateful_set_when_decoded_then_stateful),
        TEST(test_requests_when_decoded_then_effective_as_the_scheduler_counts),
        TEST(test_pods_when_not_of_the_model_then_they_use_their_host),
        TEST(test_pods_when_ending_or_ended_then_no_instances),
        TEST(test_pod_when_not_scheduled_then_unplaced),
        TEST(test_rule_13_names_when_two_kinds_share_one_then_kind_is_in_it),
        TEST(test_rule_13_names_when_a_pod_bears_a_services_name_then_kind_is_in_the_services),
        TEST(test_service_when_it_has_replicas_then_no_host_may_hold_more_than_half),
        TEST(test_pod_when_it_chooses_nodes_then_its_service_is_allowed_on_those_only),
        TEST(test_taint_when_one_service_tolerates_it_then_the_others_are_kept_away_by_rule),
        TEST(test_deployment_when_it_rolls_then_service_says_so),
        TEST(test_service_when_asked_whether_it_rolls_then_as_put_in_last),
        TEST(test_lists_when_items_carry_no_kind_then_the_lists),
        TEST(test_addresses_when_traced_then_lead_to_pod_and_host),
        TEST(test_bad_objects_when_added_then_error_names_object_and_field),
        TEST(test_objects_when_one_is_there_twice_then_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
