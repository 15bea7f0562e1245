/* test_conduct.c - the rules of conduct at the moment of a move, one test of its own name for each
 * (interfaces.md 1.9); rollouts and their outcomes (1.7, 1.9 rule 6). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "adapters/kubernetes/conduct.h"
#include "adapters/kubernetes/kube.h"
#include "adapters/kubernetes/rollout.h"
#include "tests/support/quoted.h"

#define MINUTE INT64_C(60000)
#define NOW INT64_C(1795218300000) /* 2026-11-20T23:45:00Z */

/* A workload of two replicas on n1 that may go to n2 and n3; what a test sets replaces the part. */
struct scene {
    const char *workload, *meta, *spec, *status, *template, *pod_spec;
    const char *budgets, *quotas, *autoscalers, *services, *rollouts, *claims, *node, *sources;
    const char *target_pods, *scaler, *pods_on;
    enum pin_kind kind;
    int64_t replicas;
    size_t hosts;
    bool stateful;
    struct conduct_options options;
};

static struct scene scene(void)
{
    return (struct scene){.replicas = 2,
                          .hosts = 2,
                          .kind = PIN_PREFERRED,
                          .options = {.soak_ms = 60 * MINUTE,
                                      .scaling_ms = 5 * MINUTE,
                                      .min_node_age_ms = 10 * MINUTE}};
}

static const char *or(const char *text, const char *otherwise)
{
    return text ? text : otherwise;
}

static json_t *workload_of(const struct scene *s)
{
    AUTO_FREE char *text = mem_printf(
        "{'kind':'%s','metadata':{'name':'web','namespace':'shop','uid':'u','generation':3%s},"
        "'spec':{'replicas':%lld,'selector':{'matchLabels':{'app':'web'}}%s,'template':{'metadata':{"
        "'labels':{'app':'web'}},'spec':{'containers':[{'name':'main'%s,'resources':{'requests':{"
        "'cpu':'500m','memory':'1Gi'}}}]%s}}},'status':{'observedGeneration':3,'replicas':%lld,"
        "'updatedReplicas':%lld,'readyReplicas':%lld,'availableReplicas':%lld%s}}",
        s->stateful ? "StatefulSet" : "Deployment", or(s->meta, ""), (long long)s->replicas,
        or(s->spec, ""), or(s->template, ""), or(s->pod_spec, ""), (long long)s->replicas,
        (long long)s->replicas, (long long)s->replicas, (long long)s->replicas, or(s->status, ""));
    return quoted(text);
}

static json_t *node_named(const char *name, const char *more)
{
    AUTO_FREE char *text = mem_printf(
        "{'metadata':{'name':'%s','creationTimestamp':'2026-11-01T00:00:00Z','labels':{"
        "'kubernetes.io/arch':'amd64','kubernetes.io/hostname':'%s'}},'status':{'allocatable':{'cpu':"
        "'2','memory':'4Gi','pods':'10'},'conditions':[{'type':'Ready','status':'True'}]}}",
        name, name);
    json_t *node = quoted(text);
    if (more) {
        AUTO_JSON json_t *extra = quoted(more);
        json_object_update_recursive(node, extra);
    }
    return node;
}

static json_t *pod_on(const char *node, const char *more)
{
    AUTO_FREE char *text = mem_printf(
        "{'metadata':{'name':'web-%s','namespace':'shop','ownerReferences':[{'controller':true,'uid':"
        "'rs'}]},'spec':{'nodeName':'%s','containers':[{'name':'main','resources':{'requests':{'cpu':"
        "'500m','memory':'1Gi'}}}]},'status':{'phase':'Running'}}", node, node);
    json_t *pod = quoted(text);
    if (more) {
        AUTO_JSON json_t *extra = quoted(more);
        json_object_update_recursive(pod, extra);
    }
    return pod;
}

static json_t *list_of(const char *text)
{
    return text ? quoted(text) : json_array();
}

/* The rule that forbids it; NULL: none. `why` keeps the reason. */
static char why[300];

static const char *problem_with(const struct scene *s, const struct mark *mark)
{
    AUTO_JSON json_t *workload = workload_of(s), *pods = json_array(), *targets = json_array();
    AUTO_JSON json_t *budgets = list_of(s->budgets), *quotas = list_of(s->quotas);
    AUTO_JSON json_t *autoscalers = list_of(s->autoscalers), *services = list_of(s->services);
    AUTO_JSON json_t *rollouts = list_of(s->rollouts), *claims = list_of(s->claims);
    AUTO_JSON json_t *target_pods = list_of(s->target_pods), *sources = json_array();
    AUTO_PIN struct pin pin = {.kind = s->kind};
    for (int64_t i = 0; i < s->replicas; i++)
        json_array_append_new(pods, pod_on(or(s->pods_on, "n1"), NULL));
    pin_add(&pin, "n2", "n2", 1);
    json_array_append_new(targets, node_named("n2", s->node));
    if (s->hosts > 1) {
        pin_add(&pin, "n3", "n3", 1);
        json_array_append_new(targets, node_named("n3", NULL));
    }
    json_array_append_new(sources, node_named("n1", s->sources));
    struct conduct c = {.workload = workload,
                        .mark = mark,
                        .pin = &pin,
                        .pods = pods,
                        .budgets = budgets,
                        .quotas = quotas,
                        .autoscalers = autoscalers,
                        .services = services,
                        .rollouts = rollouts,
                        .claims = claims,
                        .targets = targets,
                        .sources = sources,
                        .target_pods = target_pods,
                        .scaler = s->scaler,
                        .now_ms = NOW,
                        .options = s->options};
    why[0] = '\0';
    return conduct_problem(&c, why, sizeof why);
}

static void forbidden(const struct scene *s, const char *rule, const char *reason)
{
    const char *problem = problem_with(s, NULL);
    if (!problem || strcmp(problem, rule) != 0 || !strstr(why, reason))
        fail_msg("%s: %s, not %s: %s", problem ? problem : "allowed", why, rule, reason);
}

static void allowed(const struct scene *s)
{
    const char *problem = problem_with(s, NULL);
    if (problem)
        fail_msg("%s: %s", problem, why);
}

static void test_move_when_nothing_speaks_against_it_is_allowed(void **state)
{
    (void)state;
    struct scene s = scene();
    allowed(&s);
}

/* --- 1 --- */

#define OWNED(operation, fields) \
    ",'managedFields':[{'manager':'helm','operation':'" operation "','time':'2026-11-01T00:00:00Z'," \
    "'fieldsV1':{'f:spec':{'f:template':{'f:spec':{'f:affinity':{'f:nodeAffinity':{" fields "}}}}}}}]"
#define PREFERRED "'f:preferredDuringSchedulingIgnoredDuringExecution':{}"
#define REQUIRED "'f:requiredDuringSchedulingIgnoredDuringExecution':{}"

static void test_rule_1_ownership_when_another_manager_has_the_list_forbids(void **state)
{
    (void)state;
    struct scene s = scene();
    s.meta = OWNED("Update", PREFERRED);
    forbidden(&s, "ownership", "affinity owned by helm");
    s.meta = OWNED("Update", REQUIRED); /* theirs is required, ours preferred: no conflict at all */
    allowed(&s);
    s.kind = PIN_REQUIRED;
    forbidden(&s, "ownership", "affinity owned by helm");
}

static void test_rule_1_ownership_when_merging_is_allowed_takes_updates_only(void **state)
{
    (void)state;
    struct scene s = scene();
    s.options.merge_foreign = true;
    s.meta = OWNED("Update", PREFERRED);
    allowed(&s);
    s.meta = OWNED("Apply", PREFERRED); /* their next apply would fail because of us: never */
    forbidden(&s, "ownership", "affinity owned by helm");
}

/* --- 4 --- */

#define HPA(status) \
    "[{'metadata':{'name':'auto'},'spec':{'scaleTargetRef':{'kind':'Deployment','name':'web'}}," \
    "'status':{" status "}}]"

static void test_rule_4_availability_when_an_autoscaler_scales_it_wants_two_hosts(void **state)
{
    (void)state;
    struct scene s = scene();
    s.autoscalers = HPA("'desiredReplicas':2");
    allowed(&s);
    s.hosts = 1;
    forbidden(&s, "scaling", "a single host");
}

static void test_quiet_when_an_autoscaler_is_at_work_or_was_just_now_forbids(void **state)
{
    (void)state;
    struct scene s = scene();
    s.autoscalers = HPA("'desiredReplicas':5");
    forbidden(&s, "scaling", "auto is scaling it to 5 replicas");
    s.autoscalers = HPA("'desiredReplicas':0"); /* no metrics */
    forbidden(&s, "scaling", "auto does not know yet how many replicas it wants");
    s.autoscalers = HPA("'desiredReplicas':2,'lastScaleTime':'2026-11-20T23:43:00Z'");
    forbidden(&s, "scaling", "quiet for 5m");
    s.autoscalers = HPA("'desiredReplicas':2,'lastScaleTime':'2026-11-20T23:39:00Z'");
    allowed(&s);
}

/* --- 7 --- */

static void test_rule_7_before_a_rollout_budgets_must_allow_what_it_may_take_down(void **state)
{
    (void)state;
    struct scene s = scene();
    s.budgets = "[{'metadata':{'name':'pdb'},'spec':{'selector':{'matchLabels':{'app':'web'}}},"
                "'status':{'disruptionsAllowed':0}}]";
    allowed(&s); /* 25 % of two is none */
    s.spec = ",'strategy':{'rollingUpdate':{'maxUnavailable':1,'maxSurge':1}}";
    forbidden(&s, "budgets", "PodDisruptionBudget pdb allows 0 pods to be down");
    s.budgets = "[{'spec':{'selector':{'matchLabels':{'app':'other'}}}}]";
    allowed(&s);
}

static void test_rule_7_before_a_rollout_a_surge_must_be_possible(void **state)
{
    (void)state;
    struct scene s = scene();
    s.spec = ",'strategy':{'type':'Recreate'}";
    forbidden(&s, "surge", "stops pods before it starts new ones");
    s.spec = ",'strategy':{'rollingUpdate':{'maxSurge':0}}";
    forbidden(&s, "surge", "stops pods before it starts new ones");
}

static void test_rule_7_before_a_rollout_of_one_replica_none_may_go_down(void **state)
{
    (void)state;
    struct scene s = scene();
    s.replicas = 1;
    s.hosts = 1;
    allowed(&s); /* 25 %: surge 1, unavailable 0 */
    s.spec = ",'strategy':{'rollingUpdate':{'maxUnavailable':1}}";
    forbidden(&s, "surge", "its only replica may go down");
    s.spec = NULL;
    s.pod_spec = ",'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'data'}}]";
    s.claims = "[{'metadata':{'name':'data'},'spec':{'accessModes':['ReadWriteOnce']}}]";
    forbidden(&s, "volumes", "volume claim data");
    s.claims = "[{'metadata':{'name':'data'},'spec':{'accessModes':['ReadWriteMany']}}]";
    allowed(&s);
}

static void test_rule_7_before_a_rollout_a_stateful_set_has_two_ready_replicas(void **state)
{
    (void)state;
    struct scene s = scene();
    s.stateful = true;
    allowed(&s);
    s.replicas = 1;
    s.hosts = 1;
    forbidden(&s, "surge", "has 1 ready");
}

static void test_rule_7_before_a_rollout_what_serves_has_a_readiness_probe(void **state)
{
    (void)state;
    struct scene s = scene();
    s.template = ",'ports':[{'containerPort':80}]";
    forbidden(&s, "probes", "container main has no readiness probe");
    s.options.any_probe = true;
    allowed(&s);
    s.options.any_probe = false;
    s.template = ",'ports':[{'containerPort':80}],'readinessProbe':{}";
    allowed(&s);
    s.template = NULL; /* no ports declared, but a Service leads there */
    s.services = "[{'spec':{'selector':{'app':'web'}}}]";
    forbidden(&s, "probes", "readiness probe");
}

#define FULL "[{'metadata':{'name':'x'},'spec':{'nodeName':'n2','containers':[{'resources':{'requests':{"

static void test_rule_7_before_a_rollout_the_surge_fits_the_target_by_requests_and_slots(
    void **state)
{
    (void)state;
    struct scene s = scene();
    s.target_pods = FULL "'cpu':'1500m','memory':'3Gi'}}}]},'status':{}}]";
    allowed(&s);
    s.target_pods = FULL "'cpu':'1501m'}}}]},'status':{}}]";
    forbidden(&s, "room", "n2 has no room for 1 more during the rollout: CPU requests");
    s.target_pods = FULL "'memory':'3073Mi'}}}]},'status':{}}]";
    forbidden(&s, "room", "memory requests");
    s.target_pods = FULL "'memory':'4Gi'}}}]},'status':{'phase':'Succeeded'}}]";
    allowed(&s); /* a finished pod takes nothing */
    s.target_pods = NULL;
    s.node = "{'status':{'allocatable':{'cpu':'2','memory':'4Gi','pods':'0'}}}";
    forbidden(&s, "room", "pod slots");
}

static void test_rule_7_before_a_rollout_the_surge_fits_the_quota(void **state)
{
    (void)state;
    struct scene s = scene();
    s.quotas = "[{'metadata':{'name':'q'},'spec':{},'status':{'hard':{'pods':'3','requests.cpu':'2'},"
               "'used':{'pods':'2','requests.cpu':'1500m'}}}]";
    allowed(&s);
    s.quotas = "[{'metadata':{'name':'q'},'spec':{},'status':{'hard':{'pods':'2'},'used':{'pods':'2'"
               "}}}]";
    forbidden(&s, "room", "ResourceQuota q has no room for the surge: pods");
    s.quotas = "[{'metadata':{'name':'q'},'spec':{},'status':{'hard':{'requests.cpu':'1900m'},'used':"
               "{'requests.cpu':'1500m'}}}]";
    forbidden(&s, "room", "requests.cpu");
}

static void test_quiet_when_a_rollout_is_in_progress_forbids(void **state)
{
    (void)state;
    struct scene s = scene();
    s.status = ",'conditions':[{'type':'Progressing','reason':'ProgressDeadlineExceeded'}]";
    forbidden(&s, "rollout", "a rollout is in progress");
}

static void test_anti_affinity_when_it_would_block_the_surge_forbids(void **state)
{
    (void)state;
    struct scene s = scene();
    s.pod_spec = ",'affinity':{'podAntiAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{"
                 "'topologyKey':'kubernetes.io/hostname','labelSelector':{'matchLabels':{'app':'web'}"
                 "}}]}}";
    allowed(&s); /* both targets are free of it */
    s.pods_on = "n3";
    forbidden(&s, "anti-affinity", "keeps new pods off n3");
}

/* --- 9 --- */

static void test_rule_9_soak_when_somebody_changed_the_template_forbids(void **state)
{
    (void)state;
    struct scene s = scene();
    s.meta = ",'managedFields':[{'manager':'ci','operation':'Update','time':'2026-11-20T23:00:00Z',"
             "'fieldsV1':{'f:spec':{'f:template':{}}}}]";
    forbidden(&s, "soak", "ci changed its template at 2026-11-20T23:00:00Z, quiet for 1h");
    s.options.soak_ms = 30 * MINUTE;
    allowed(&s);
    s.options.soak_ms = 60 * MINUTE; /* our own writes are no release, nor is a change of replicas */
    s.meta = ",'managedFields':[{'manager':'remap','operation':'Update','time':'2026-11-20T23:44:00Z',"
             "'fieldsV1':{'f:spec':{'f:template':{}}}},{'manager':'kubectl','operation':'Update',"
             "'time':'2026-11-20T23:44:00Z','fieldsV1':{'f:spec':{'f:replicas':{}}}}]";
    allowed(&s);
}

static void test_annotation_window_when_it_is_closed_forbids(void **state)
{
    (void)state;
    struct scene s = scene();
    s.meta = ",'annotations':{'remap/window':'Fri 22:00-06:00'}"; /* it is Friday, near midnight */
    allowed(&s);
    s.meta = ",'annotations':{'remap/window':'Mon-Thu 22:00-06:00; Sat 10:00-12:00'}";
    forbidden(&s, "window", "annotated remap/window: Mon-Thu 22:00-06:00; Sat 10:00-12:00 (UTC)");
    s.meta = ",'annotations':{'remap/window':'at night'}"; /* as nobody knows when */
    forbidden(&s, "window", "at night");
}

static void test_rule_9_history_when_it_is_short_forbids(void **state)
{
    (void)state;
    struct scene s = scene();
    s.spec = ",'revisionHistoryLimit':2";
    forbidden(&s, "history", "revisionHistoryLimit 2");
    s.spec = ",'revisionHistoryLimit':3";
    allowed(&s);
}

static struct mark *mark_for(const struct scene *s)
{
    AUTO_JSON json_t *workload = workload_of(s);
    struct mark *mark = mem_alloc(sizeof *mark);
    *mark = (struct mark){.uid = mem_strdup("u"), .template = mark_template(workload)};
    pin_add(&mark->pin, "n2", "n2", 2);
    mark->leaf = pin_leaf_new(&mark->pin, NULL);
    return mark;
}

static void test_rule_9_pin_taken_out_by_another_hand_rests_until_the_next_release(void **state)
{
    (void)state;
    struct scene s = scene();
    AUTO(mark) struct mark *mark = mark_for(&s); /* and the workload has no affinity any more */
    assert_string_equal(problem_with(&s, mark), "reverted");
    assert_non_null(strstr(why, "until the next release"));
    s.template = ",'image':'shop/web:2'";
    assert_null(problem_with(&s, mark));
}

/* --- 11 --- */

static void test_rule_11_reverted_by_a_manager_rests_until_an_operator_clears_it(void **state)
{
    (void)state;
    struct scene s = scene();
    AUTO(mark) struct mark *mark = mark_for(&s);
    mark->reverted = mem_strdup("argocd-controller");
    s.template = ",'image':'shop/web:2'"; /* a release alone does not help */
    assert_string_equal(problem_with(&s, mark), "reverted");
    assert_non_null(strstr(why, "reverted by argocd-controller"));
}

static void test_rule_11_not_ours_to_touch_is_left_alone(void **state)
{
    (void)state;
    struct scene s = scene();
    s.meta = ",'ownerReferences':[{'controller':true,'kind':'Kafka','name':'k'}]";
    forbidden(&s, "not ours", "controlled by Kafka k");
    s.meta = ",'ownerReferences':[{'kind':'App','name':'k'}]"; /* an owner, but no controller */
    allowed(&s);
    s.meta = ",'annotations':{'remap/move':'never'}";
    forbidden(&s, "not ours", "remap/move");
    s.meta = NULL;
    s.spec = ",'paused':true";
    forbidden(&s, "not ours", "paused");
    s.spec = NULL;
    s.replicas = 0;
    forbidden(&s, "not ours", "scaled to 0");
    s.replicas = 2;
    s.rollouts = "[{'metadata':{'name':'r'},'spec':{'workloadRef':{'kind':'Deployment','name':'web'}}}]";
    forbidden(&s, "not ours", "Argo Rollout r");
}

/* --- 12 --- */

static void test_rule_12_autoscalers_refuse_required_pins(void **state)
{
    (void)state;
    struct scene s = scene();
    s.scaler = "Karpenter";
    allowed(&s); /* preferred terms are not looked at */
    s.kind = PIN_REQUIRED;
    forbidden(&s, "required", "Karpenter");
    s.options.force_required = true;
    allowed(&s);
}

static void test_rule_12_required_pin_when_it_would_preempt_others_is_refused(void **state)
{
    (void)state;
    struct scene s = scene();
    s.kind = PIN_REQUIRED;
    s.target_pods = "[{'metadata':{'name':'x'},'spec':{'nodeName':'n2','priority':-10}}]";
    forbidden(&s, "required", "priority");
    s.kind = PIN_PREFERRED;
    allowed(&s);
}

static void test_rule_12_autoscalers_nodes_that_come_and_go_are_no_targets(void **state)
{
    (void)state;
    struct scene s = scene();
    static const char *const taints[] = {"karpenter.sh/disrupted", "ToBeDeletedByClusterAutoscaler",
                                         "DeletionCandidateOfClusterAutoscaler"};
    for (size_t i = 0; i < ARRAY_LEN(taints); i++) {
        AUTO_FREE char *node = mem_printf("{'spec':{'taints':[{'key':'%s'}]}}", taints[i]);
        s.node = node;
        forbidden(&s, "nodes", taints[i]);
    }
    s.node = "{'metadata':{'creationTimestamp':'2026-11-20T23:40:00Z'}}";
    forbidden(&s, "nodes", "too young");
    s.node = "{'spec':{'unschedulable':true}}";
    forbidden(&s, "nodes", "cordoned or not ready");
}

static void test_rule_12_autoscalers_nodes_of_another_kind_are_no_targets(void **state)
{
    (void)state;
    struct scene s = scene();
    s.node = "{'metadata':{'labels':{'kubernetes.io/arch':'arm64'}}}";
    forbidden(&s, "nodes", "kubernetes.io/arch");
    s.options.any_pool = true;
    allowed(&s);
    s.options.any_pool = false;
    s.node = "{'metadata':{'labels':{'karpenter.sh/capacity-type':'spot'}}}";
    forbidden(&s, "nodes", "karpenter.sh/capacity-type");
    s.sources = s.node;
    s.hosts = 1;
    allowed(&s);
}

/* --- 1.7: rollouts --- */

struct rollout_row {
    const char *text;
    enum rollout_state state;
    const char *why;
};

static void test_rollout_state_follows_the_steps_of_kubectl(void **state)
{
    (void)state;
    static const struct rollout_row rows[] = {
        {"{'kind':'Deployment','metadata':{'generation':2},'spec':{},'status':{'observedGeneration':1,"
         "'updatedReplicas':1,'replicas':1,'availableReplicas':1}}", ROLLOUT_WAITING, "not seen"},
        {"{'kind':'Deployment','metadata':{'generation':2},'spec':{'replicas':3},'status':{"
         "'observedGeneration':2,'updatedReplicas':1}}", ROLLOUT_WAITING, "1 of 3 pods updated"},
        {"{'kind':'Deployment','spec':{'replicas':1},'status':{'updatedReplicas':1,'replicas':2}}",
         ROLLOUT_WAITING, "of the old revision"},
        {"{'kind':'Deployment','spec':{'replicas':1},'status':{'updatedReplicas':1,'replicas':1}}",
         ROLLOUT_WAITING, "0 of 1 pods available"},
        {"{'kind':'Deployment','spec':{'replicas':1},'status':{'updatedReplicas':1,'replicas':1,"
         "'availableReplicas':1}}", ROLLOUT_DONE, ""},
        {"{'kind':'Deployment','spec':{'replicas':0},'status':{}}", ROLLOUT_DONE, ""},
        {"{'kind':'Deployment','spec':{},'status':{'updatedReplicas':1,'replicas':2,'conditions':[{"
         "'type':'Progressing','status':'False','reason':'ProgressDeadlineExceeded','message':'slow'}"
         "]}}", ROLLOUT_FAILED, "slow"},
        {"{'kind':'StatefulSet','spec':{'replicas':2},'status':{'readyReplicas':1}}", ROLLOUT_WAITING,
         "1 of 2 pods ready"},
        {"{'kind':'StatefulSet','spec':{'replicas':2},'status':{'readyReplicas':2,'updateRevision':"
         "'b','currentRevision':'a','updatedReplicas':1}}", ROLLOUT_WAITING, "1 of 2 pods updated"},
        {"{'kind':'StatefulSet','spec':{'replicas':2},'status':{'readyReplicas':2,'updateRevision':"
         "'b','currentRevision':'b'}}", ROLLOUT_DONE, ""},
        {"{'kind':'StatefulSet','spec':{'replicas':3,'updateStrategy':{'rollingUpdate':{'partition':2"
         "}}},'status':{'readyReplicas':3,'updateRevision':'b','currentRevision':'a',"
         "'updatedReplicas':1}}", ROLLOUT_DONE, ""},
        {"{'kind':'StatefulSet','spec':{'replicas':1,'updateStrategy':{'type':'OnDelete'}},'status':{"
         "'readyReplicas':1}}", ROLLOUT_FAILED, "OnDelete"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_JSON json_t *workload = quoted(rows[i].text);
        char text[200] = "";
        assert_int_equal(rollout_state(workload, text, sizeof text), rows[i].state);
        if (!strstr(text, rows[i].why))
            fail_msg("row %zu: %s", i, text);
    }
}

static void test_rollout_when_pods_are_refused_then_says_why(void **state)
{
    (void)state;
    static const struct {
        const char *conditions, *why; /* NULL: they are not */
    } rows[] = {
        {"", NULL},
        {"{'type':'Progressing','status':'True','message':'m'}", NULL},
        {"{'type':'ReplicaFailure','status':'False','message':'m'}", NULL},
        {"{'type':'ReplicaFailure','status':'True','message':'exceeded quota'}", "exceeded quota"},
        {"{'type':'ReplicaFailure','status':'True'}", "pods are not made"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_FREE char *text = mem_printf("{'status':{'conditions':[%s]}}", rows[i].conditions);
        AUTO_JSON json_t *workload = quoted(text);
        const char *said = rollout_refused(workload);
        assert_true(!said == !rows[i].why);
        if (said)
            assert_string_equal(said, rows[i].why);
    }
}

static void test_rollout_when_a_pod_of_another_revision_is_not_ready_then_it_blocks(void **state)
{
    (void)state;
#define POD(name, revision, ready)                                                                 \
    "{'metadata':{'name':'" name "','labels':{'controller-revision-hash':'" revision               \
    "'}},'status':{'conditions':[{'type':'Ready','status':'" ready "'}]}}"
#define SET(kind, seen)                                                                            \
    "{'kind':'" kind "','metadata':{'generation':3},'status':{'observedGeneration':" seen          \
    ",'updateRevision':'a'}}"
    static const struct {
        const char *workload, *pods, *blocking; /* NULL: none */
    } rows[] = {
        {SET("StatefulSet", "3"), POD("s-0", "a", "True") "," POD("s-1", "b", "False"), "s-1"},
        {SET("StatefulSet", "3"), POD("s-0", "b", "True") "," POD("s-1", "b", "True"), NULL},
        {SET("StatefulSet", "3"), POD("s-1", "a", "False"), NULL},
        {SET("StatefulSet", "2"), POD("s-1", "b", "False"), NULL},
        {SET("Deployment", "3"), POD("s-1", "b", "False"), NULL},
        {SET("StatefulSet", "3"), "{'metadata':{'name':'other'}}", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_FREE char *text = mem_printf("[%s]", rows[i].pods);
        AUTO_JSON json_t *workload = quoted(rows[i].workload);
        AUTO_JSON json_t *pods = quoted(text);
        const json_t *pod = rollout_blocking(workload, pods);
        assert_true(!pod == !rows[i].blocking);
        if (pod)
            assert_string_equal(kube_text(kube_get(pod, "metadata"), "name"), rows[i].blocking);
    }
#undef POD
#undef SET
}

static void test_rollout_pace_is_that_of_the_deployment_controller(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t surge, unavailable;
    } rows[] = {
        {"{'kind':'Deployment','spec':{'replicas':1}}", 1, 0},
        {"{'kind':'Deployment','spec':{'replicas':10}}", 3, 2},
        {"{'kind':'Deployment','spec':{'replicas':4,'strategy':{'rollingUpdate':{'maxSurge':'0%',"
         "'maxUnavailable':'0%'}}}}", 0, 1},
        {"{'kind':'Deployment','spec':{'replicas':3,'strategy':{'type':'Recreate'}}}", 0, 3},
        {"{'kind':'StatefulSet','spec':{'replicas':3}}", 0, 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_JSON json_t *workload = quoted(rows[i].text);
        struct rollout_pace pace = rollout_pace(workload);
        assert_int_equal(pace.surge, rows[i].surge);
        assert_int_equal(pace.unavailable, rows[i].unavailable);
    }
}

static void test_unschedulable_pods_are_named_with_the_schedulers_words(void **state)
{
    (void)state;
    AUTO_JSON json_t *pods = quoted("[{'metadata':{'name':'ok'}},{'metadata':{'name':'stuck'},'status':"
                                    "{'conditions':[{'type':'PodScheduled','status':'False','reason':"
                                    "'Unschedulable','message':'0/3 nodes'}]}}]");
    const char *message = NULL;
    assert_string_equal(rollout_unschedulable(pods, &message), "stuck");
    assert_string_equal(message, "0/3 nodes");
}

/* --- 6: outcomes --- */

static struct settle_report outcome(const char *nodes, int64_t on_n2, int64_t on_n3, bool taken)
{
    AUTO_PIN struct pin pin = {.kind = PIN_PREFERRED};
    AUTO_JSON json_t *pods = json_array();
    struct settle_report report;
    pin_add(&pin, "n2", "n2", on_n2);
    if (on_n3)
        pin_add(&pin, "n3", "n3", on_n3);
    for (const char *c = nodes; *c; c++) {
        char name[3] = {'n', *c, '\0'};
        json_array_append_new(pods, pod_on(name, NULL));
    }
    rollout_outcome(&pin, pods, taken, &report);
    return report;
}

static void test_rule_6_outcome_is_what_the_pods_show(void **state)
{
    (void)state;
    static const struct {
        const char *nodes;
        int64_t on_n2, on_n3;
        bool taken;
        enum settle_state state;
        const char *detail;
    } rows[] = {
        {"2", 1, 0, false, SETTLE_APPLIED, ""},
        {"23", 1, 1, false, SETTLE_APPLIED, ""},
        {"2334", 1, 1, false, SETTLE_APPLIED, ""}, /* replicas that came later are no misses */
        {"2", 1, 1, false, SETTLE_APPLIED, ""},    /* scaled in meanwhile */
        {"22", 1, 1, false, SETTLE_PARTIAL, "1 of 2"},
        {"24", 1, 1, false, SETTLE_PARTIAL, "1 of 2 replicas are where they were sent; others on n4"},
        {"4", 1, 0, false, SETTLE_MISSED, "0 of 1 replicas are where they were sent; others on n4"},
        {"4", 1, 0, true, SETTLE_DISPLACED, "0 of 1"},
        {"", 1, 0, false, SETTLE_MISSED, "0 of 0"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct settle_report r =
            outcome(rows[i].nodes, rows[i].on_n2, rows[i].on_n3, rows[i].taken);
        assert_int_equal(r.state, rows[i].state);
        if (!strstr(r.detail, rows[i].detail))
            fail_msg("row %zu: %s", i, r.detail);
    }
}

static void test_pods_when_ending_finished_or_others_do_not_count(void **state)
{
    (void)state;
    AUTO_JSON json_t *workload = quoted("{'metadata':{'uid':'u'}}");
    AUTO_JSON json_t *sets = quoted("[{'metadata':{'uid':'rs','ownerReferences':[{'controller':true,"
                                    "'uid':'u'}]}},{'metadata':{'uid':'alien','ownerReferences':[{"
                                    "'controller':true,'uid':'v'}]}}]");
    AUTO_JSON json_t *pods = json_array();
    json_array_append_new(pods, pod_on("n1", NULL));
    json_array_append_new(pods, pod_on("n2", "{'metadata':{'deletionTimestamp':'x'}}"));
    json_array_append_new(pods, pod_on("n3", "{'status':{'phase':'Failed'}}"));
    json_array_append_new(pods, pod_on("n4", "{'metadata':{'ownerReferences':[{'controller':true,"
                                             "'uid':'alien'}]}}"));
    json_array_append_new(pods, pod_on("n5", "{'metadata':{'ownerReferences':[{'controller':true,"
                                             "'uid':'u'}]}}")); /* a StatefulSet's */
    AUTO_JSON json_t *own = rollout_pods(workload, sets, pods);
    assert_int_equal(json_array_size(own), 2);
    assert_false(rollout_disrupted(workload, sets, pods));
    json_array_append_new(pods, pod_on("n6", "{'metadata':{'deletionTimestamp':'x'},'status':{"
                                             "'conditions':[{'type':'DisruptionTarget','status':"
                                             "'True'}]}}"));
    assert_true(rollout_disrupted(workload, sets, pods));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_move_when_nothing_speaks_against_it_is_allowed),
        cmocka_unit_test(test_rule_1_ownership_when_another_manager_has_the_list_forbids),
        cmocka_unit_test(test_rule_1_ownership_when_merging_is_allowed_takes_updates_only),
        cmocka_unit_test(test_rule_4_availability_when_an_autoscaler_scales_it_wants_two_hosts),
        cmocka_unit_test(test_quiet_when_an_autoscaler_is_at_work_or_was_just_now_forbids),
        cmocka_unit_test(test_rule_7_before_a_rollout_budgets_must_allow_what_it_may_take_down),
        cmocka_unit_test(test_rule_7_before_a_rollout_a_surge_must_be_possible),
        cmocka_unit_test(test_rule_7_before_a_rollout_of_one_replica_none_may_go_down),
        cmocka_unit_test(test_rule_7_before_a_rollout_a_stateful_set_has_two_ready_replicas),
        cmocka_unit_test(test_rule_7_before_a_rollout_what_serves_has_a_readiness_probe),
        cmocka_unit_test(
            test_rule_7_before_a_rollout_the_surge_fits_the_target_by_requests_and_slots),
        cmocka_unit_test(test_rule_7_before_a_rollout_the_surge_fits_the_quota),
        cmocka_unit_test(test_quiet_when_a_rollout_is_in_progress_forbids),
        cmocka_unit_test(test_anti_affinity_when_it_would_block_the_surge_forbids),
        cmocka_unit_test(test_rule_9_soak_when_somebody_changed_the_template_forbids),
        cmocka_unit_test(test_annotation_window_when_it_is_closed_forbids),
        cmocka_unit_test(test_rule_9_history_when_it_is_short_forbids),
        cmocka_unit_test(test_rule_9_pin_taken_out_by_another_hand_rests_until_the_next_release),
        cmocka_unit_test(test_rule_11_reverted_by_a_manager_rests_until_an_operator_clears_it),
        cmocka_unit_test(test_rule_11_not_ours_to_touch_is_left_alone),
        cmocka_unit_test(test_rule_12_autoscalers_refuse_required_pins),
        cmocka_unit_test(test_rule_12_required_pin_when_it_would_preempt_others_is_refused),
        cmocka_unit_test(test_rule_12_autoscalers_nodes_that_come_and_go_are_no_targets),
        cmocka_unit_test(test_rule_12_autoscalers_nodes_of_another_kind_are_no_targets),
        cmocka_unit_test(test_rollout_state_follows_the_steps_of_kubectl),
        cmocka_unit_test(test_rollout_when_pods_are_refused_then_says_why),
        cmocka_unit_test(test_rollout_when_a_pod_of_another_revision_is_not_ready_then_it_blocks),
        cmocka_unit_test(test_rollout_pace_is_that_of_the_deployment_controller),
        cmocka_unit_test(test_unschedulable_pods_are_named_with_the_schedulers_words),
        cmocka_unit_test(test_rule_6_outcome_is_what_the_pods_show),
        cmocka_unit_test(test_pods_when_ending_finished_or_others_do_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
