/* test_pin.c - pins built, put in, taken out; marks; owners (interfaces.md 1.5, 1.9 rules 1, 2, 5). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "adapters/kubernetes/mark.h"
#include "adapters/kubernetes/owners.h"
#include "tests/support/quoted.h"

static void assert_json(json_t *have, const char *want)
{
    json_t *expected = quoted(want);
    char *text = json_dumps(have, JSON_COMPACT | JSON_ENCODE_ANY);
    if (!json_equal(have, expected))
        fail_msg("%s\nis not\n%s", text, want);
    free(text);
    json_decref(expected);
}

static struct pin pin_of(enum pin_kind kind, const char *first, const char *second)
{
    struct pin pin = {.kind = kind};
    pin_add(&pin, first, first, 1);
    if (second)
        pin_add(&pin, second, second, 1);
    return pin;
}

#define TERM(host) \
    "{'weight':100,'preference':{'matchExpressions':[{'key':'kubernetes.io/hostname'," \
    "'operator':'In','values':['" host "']}]}}"
#define HOSTS(list) "{'key':'kubernetes.io/hostname','operator':'In','values':[" list "]}"

static void test_rule_5_preferred_pin_when_built_has_one_term_per_host_of_weight_100(void **state)
{
    (void)state;
    AUTO_PIN struct pin pin = pin_of(PIN_PREFERRED, "n2", "n1"); /* sorted: the same set, the same JSON */
    AUTO_JSON json_t *leaf = pin_leaf_new(&pin, NULL);
    assert_json(leaf, "[" TERM("n1") "," TERM("n2") "]");
}

static void test_preferred_pin_when_merged_keeps_the_users_terms(void **state)
{
    (void)state;
    AUTO_PIN struct pin pin = pin_of(PIN_PREFERRED, "n1", NULL);
    AUTO_JSON json_t *users = quoted("[{'weight':5,'preference':{'matchExpressions':[{'key':'disk',"
                                     "'operator':'In','values':['ssd']}]}}]");
    AUTO_JSON json_t *leaf = pin_leaf_new(&pin, users);
    assert_json(leaf, "[{'weight':5,'preference':{'matchExpressions':[{'key':'disk','operator':'In',"
                      "'values':['ssd']}]}}," TERM("n1") "]");
}

static void test_required_pin_when_the_user_has_terms_narrows_every_one(void **state)
{
    (void)state;
    AUTO_PIN struct pin pin = pin_of(PIN_REQUIRED, "n1", "n2");
    AUTO_JSON json_t *users =
        quoted("{'nodeSelectorTerms':[{'matchExpressions':[{'key':'disk','operator':'In','values':"
               "['ssd']}]},{'matchFields':[{'key':'metadata.name','operator':'In','values':['n1']}]}]}");
    AUTO_JSON json_t *leaf = pin_leaf_new(&pin, users);
    assert_json(leaf, "{'nodeSelectorTerms':[{'matchExpressions':[{'key':'disk','operator':'In',"
                      "'values':['ssd']}," HOSTS("'n1','n2'") "]},"
                      "{'matchFields':[{'key':'metadata.name','operator':'In','values':['n1']}],"
                      "'matchExpressions':[" HOSTS("'n1','n2'") "]}]}");
}

static void test_required_pin_when_the_user_has_none_is_one_term(void **state)
{
    (void)state;
    AUTO_PIN struct pin pin = pin_of(PIN_REQUIRED, "n1", "n2");
    AUTO_JSON json_t *leaf = pin_leaf_new(&pin, NULL);
    assert_json(leaf, "{'nodeSelectorTerms':[{'matchExpressions':[" HOSTS("'n1','n2'") "]}]}");
}

static void test_rule_13_names_when_the_hostname_label_differs_or_is_missing_are_read_not_assumed(
    void **state)
{
    (void)state;
    AUTO_PIN struct pin pin = {.kind = PIN_REQUIRED};
    pin_add(&pin, "node-a", "ip-10-0-0-1", 1); /* the label, not the name */
    pin_add(&pin, "node-b", NULL, 1);          /* none, or not alone with it: by name, one per term */
    AUTO_JSON json_t *leaf = pin_leaf_new(&pin, NULL);
    assert_json(leaf, "{'nodeSelectorTerms':[{'matchExpressions':[" HOSTS("'ip-10-0-0-1'") "]},"
                      "{'matchFields':[{'key':'metadata.name','operator':'In','values':['node-b']}]}]}");
    pin.kind = PIN_PREFERRED;
    AUTO_JSON json_t *terms = pin_leaf_new(&pin, NULL);
    assert_json(terms, "[" TERM("ip-10-0-0-1")
                       ",{'weight':100,'preference':{'matchFields':[{'key':'metadata.name',"
                       "'operator':'In','values':['node-b']}]}}]");
}

static void test_rule_5_host_set_when_required_on_several_hosts_has_a_spread_constraint(
    void **state)
{
    (void)state;
    AUTO_JSON json_t *workload =
        quoted("{'kind':'Deployment','spec':{'selector':{'matchLabels':{'app':'web'}}}}");
    AUTO_PIN struct pin two = pin_of(PIN_REQUIRED, "n1", "n2"), one = pin_of(PIN_REQUIRED, "n1", NULL);
    AUTO_PIN struct pin soft = pin_of(PIN_PREFERRED, "n1", "n2");
    AUTO_JSON json_t *constraint = pin_spread_new(&two, workload, NULL);
    assert_json(constraint,
                "{'maxSkew':1,'topologyKey':'kubernetes.io/hostname','whenUnsatisfiable':"
                "'DoNotSchedule','labelSelector':{'matchLabels':{'app':'web'}},'matchLabelKeys':"
                "['pod-template-hash']}");
    assert_null(pin_spread_new(&one, workload, NULL));
    assert_null(pin_spread_new(&soft, workload, NULL));
}

static void test_rule_5_host_set_when_the_user_has_that_key_leaves_the_spread_alone(void **state)
{
    (void)state;
    AUTO_JSON json_t *workload = quoted("{'kind':'Deployment','spec':{'selector':{}}}");
    AUTO_JSON json_t *users = quoted("[{'topologyKey':'kubernetes.io/hostname','maxSkew':3,"
                                     "'whenUnsatisfiable':'ScheduleAnyway'}]");
    AUTO_JSON json_t *zones = quoted("[{'topologyKey':'topology.kubernetes.io/zone','maxSkew':1,"
                                     "'whenUnsatisfiable':'ScheduleAnyway'}]");
    AUTO_PIN struct pin pin = pin_of(PIN_REQUIRED, "n1", "n2");
    assert_null(pin_spread_new(&pin, workload, users));
    AUTO_JSON json_t *constraint = pin_spread_new(&pin, workload, zones);
    assert_non_null(constraint);
}

/* What a template had before; NULL is absent. */
static const char *const befores[] = {
    NULL,
    "{}",
    "{'nodeAffinity':{}}",
    "{'podAntiAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[]}}",
    "{'nodeAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[" TERM("mine") "]}}",
    "{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':[{}]}}}",
};

static void put_in_and_take_out(enum pin_kind kind, const char *before, bool spread)
{
    AUTO_PIN_FIELDS struct pin_fields old = {before ? quoted(before) : NULL, NULL};
    AUTO_PIN struct pin pin = pin_of(kind, "n1", "n2");
    AUTO_JSON json_t *leaf = pin_leaf_new(&pin, pin_leaf_get(old.affinity, kind));
    AUTO_JSON json_t *constraint = spread ? quoted("{'topologyKey':'kubernetes.io/hostname'}") : NULL;
    AUTO_PIN_FIELDS struct pin_fields with = pin_put_in(&old, kind, leaf, constraint);
    AUTO_PIN_FIELDS struct pin_fields back = {NULL, NULL};
    assert_false(pin_fields_equal(&old, &with));
    assert_true(pin_take_out(&with, kind, leaf, constraint, &old, &back));
    assert_true(pin_fields_equal(&old, &back)); /* absent is absent, {} is {} */
}

static void test_rule_2_undo_when_nobody_changed_anything_restores_what_was_there(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(befores); i++)
        for (int kind = PIN_PREFERRED; kind <= PIN_REQUIRED; kind++)
            for (int spread = 0; spread < 2; spread++)
                put_in_and_take_out((enum pin_kind)kind, befores[i], spread);
}

static void test_undo_when_somebody_changed_another_part_takes_out_only_ours(void **state)
{
    (void)state;
    AUTO_PIN_FIELDS struct pin_fields old = {NULL, NULL}, back = {NULL, NULL};
    AUTO_PIN struct pin pin = pin_of(PIN_PREFERRED, "n1", NULL);
    AUTO_JSON json_t *leaf = pin_leaf_new(&pin, NULL);
    AUTO_PIN_FIELDS struct pin_fields now = {
        quoted("{'podAffinity':{},'nodeAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':["
               TERM("n1") "]}}"), quoted("[{'topologyKey':'zone'}]")};
    assert_true(pin_take_out(&now, PIN_PREFERRED, leaf, NULL, &old, &back));
    assert_json(back.affinity, "{'podAffinity':{}}");
    assert_json(back.spread, "[{'topologyKey':'zone'}]");
}

static void test_undo_when_the_list_is_another_ones_by_now_keeps_off(void **state)
{
    (void)state;
    AUTO_PIN_FIELDS struct pin_fields old = {NULL, NULL}, back = {NULL, NULL};
    AUTO_PIN struct pin pin = pin_of(PIN_PREFERRED, "n1", NULL);
    AUTO_JSON json_t *leaf = pin_leaf_new(&pin, NULL);
    AUTO_PIN_FIELDS struct pin_fields now = {
        quoted("{'nodeAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[" TERM("n7") "]}}"),
        NULL};
    assert_false(pin_take_out(&now, PIN_PREFERRED, leaf, NULL, &old, &back));
    assert_false(pin_take_out(&old, PIN_PREFERRED, leaf, NULL, &old, &back));
    assert_null(back.affinity);
}

static void test_rule_2_undo_patch_when_made_tests_before_it_writes(void **state)
{
    (void)state;
    AUTO_PIN_FIELDS struct pin_fields now = {quoted("{'nodeAffinity':{}}"), quoted("[{'a':1}]")};
    AUTO_PIN_FIELDS struct pin_fields then = {NULL, quoted("[]")};
    AUTO_JSON json_t *operations = json_array();
    pin_patch(&now, &now, operations);
    assert_json(operations, "[]"); /* nothing is written where nothing changes */
    pin_patch(&now, &then, operations);
    assert_json(operations,
                "[{'op':'test','path':'/spec/template/spec/affinity','value':{'nodeAffinity':{}}},"
                "{'op':'remove','path':'/spec/template/spec/affinity'},"
                "{'op':'test','path':'/spec/template/spec/topologySpreadConstraints','value':[{'a':1}]},"
                "{'op':'replace','path':'/spec/template/spec/topologySpreadConstraints','value':[]}]");
}

/* --- marks --- */

static struct mark *sample_mark(void)
{
    struct mark *mark = mem_alloc(sizeof *mark);
    *mark = (struct mark){.uid = mem_strdup("u-1"),
                          .cycle = 7,
                          .seq = 2,
                          .at_ms = 1000,
                          .pin = pin_of(PIN_PREFERRED, "n1", "n2"),
                          .before = {NULL, quoted("[]")},
                          .original = {quoted("{}"), NULL},
                          .template = mem_strdup("abc")};
    mark->leaf = pin_leaf_new(&mark->pin, NULL);
    return mark;
}

static void test_mark_when_read_back_is_the_same(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    AUTO(mark) struct mark *mark = sample_mark();
    AUTO_FREE char *text = mark_encode(mark);
    AUTO(mark) struct mark *again = mark_decode(text, &err);
    assert_non_null(again);
    AUTO_FREE char *second = mark_encode(again);
    assert_string_equal(text, second);
    assert_null(again->before.affinity); /* absent stays absent … */
    assert_json(again->original.affinity, "{}"); /* … and {} stays {} */
    assert_true(mark_wants(again, &mark->pin));
}

static void test_mark_when_copied_to_another_object_is_none(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    AUTO(mark) struct mark *mark = sample_mark();
    AUTO_FREE char *text = mark_encode(mark);
    AUTO_JSON json_t *own = json_pack("{s:{s:s,s:{s:s}}}", "metadata", "uid", "u-1", "annotations",
                                      MARK_ANNOTATION, text);
    AUTO_JSON json_t *other = json_pack("{s:{s:s,s:{s:s}}}", "metadata", "uid", "u-2",
                                        "annotations", MARK_ANNOTATION, text);
    AUTO(mark) struct mark *found = mark_of(own, &err);
    assert_non_null(found);
    assert_null(mark_of(other, &err));
}

static void test_mark_when_it_is_nonsense_is_refused_with_the_place(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "{}", "[]", "{\"v\":2}", "null",
                                        "{\"v\":1,\"uid\":\"u\",\"cycle\":-1}"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct err err = ERR_INIT;
        assert_null(mark_decode(texts[i], &err));
        assert_non_null(strstr(err.text, MARK_ANNOTATION));
    }
}

static void test_template_digest_when_only_the_pin_differs_is_the_same(void **state)
{
    (void)state;
    AUTO_JSON json_t *plain = quoted("{'spec':{'template':{'spec':{'containers':[{'image':'a'}]}}}}");
    AUTO_JSON json_t *pinned = quoted("{'spec':{'template':{'spec':{'affinity':{},'containers':[{"
                                      "'image':'a'}],'topologySpreadConstraints':[]}}}}");
    AUTO_JSON json_t *released = quoted("{'spec':{'template':{'spec':{'containers':[{'image':'b'}]}}}}");
    AUTO_FREE char *a = mark_template(plain), *b = mark_template(pinned);
    AUTO_FREE char *c = mark_template(released);
    assert_string_equal(a, b);
    assert_string_not_equal(a, c);
}

/* --- owners --- */

static const owners_path preferred = {"spec", "template", "spec", "affinity", "nodeAffinity",
                                      "preferredDuringSchedulingIgnoredDuringExecution", NULL};

#define ENTRY(manager, operation, fields) \
    "{'manager':'" manager "','operation':'" operation \
    "','time':'2026-11-20T23:45:00Z','fieldsType':'FieldsV1','fieldsV1':{'f:spec':{'f:template':{" \
    "'f:spec':{'f:affinity':" fields "}}}}}"
#define LIST "{'f:nodeAffinity':{'f:preferredDuringSchedulingIgnoredDuringExecution':{}}}"

static void test_ownership_of_a_list_when_others_have_it_names_them(void **state)
{
    (void)state;
    AUTO_JSON json_t *workload = quoted(
        "{'metadata':{'managedFields':[" ENTRY("kubectl-client-side-apply", "Update", LIST) ","
        ENTRY("argocd-controller", "Apply", LIST) "," ENTRY("remap", "Apply", LIST) "]}}");
    struct owner owner;
    assert_true(owners_of(workload, preferred, &owner));
    assert_string_equal(owner.manager, "argocd-controller"); /* who would take offence comes first */
    assert_true(owner.apply);
    assert_true(owner.time_ms == INT64_C(1795218300000));
    assert_true(owners_own(workload, preferred));
}

static void test_ownership_of_a_list_when_only_its_parents_are_owned_is_nobodys(void **state)
{
    (void)state;
    static const char *const fields[] = {"{}", "{'.':{},'f:podAntiAffinity':{}}", "{'f:nodeAffinity':{}}",
                                         "{'f:nodeAffinity':{'.':{},'f:requiredDuringScheduling"
                                         "IgnoredDuringExecution':{}}}"};
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        AUTO_FREE char *text = mem_printf(
            "{'metadata':{'managedFields':[{'manager':'ci','operation':'Apply','fieldsV1':{'f:spec':"
            "{'f:template':{'f:spec':{'f:affinity':%s}}}}}]}}", fields[i]);
        AUTO_JSON json_t *workload = quoted(text);
        struct owner owner;
        assert_false(owners_of(workload, preferred, &owner));
        assert_false(owners_own(workload, preferred));
    }
}

static void test_ownership_when_it_is_of_a_subresource_does_not_count(void **state)
{
    (void)state;
    AUTO_JSON json_t *workload =
        quoted("{'metadata':{'managedFields':[{'manager':'x','operation':'Update','subresource':"
               "'status','fieldsV1':{'f:spec':{'f:template':{}}}}]}}");
    const owners_path path = {"spec", "template", NULL};
    struct owner owner;
    assert_false(owners_newest(workload, path, &owner));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rule_5_preferred_pin_when_built_has_one_term_per_host_of_weight_100),
        cmocka_unit_test(test_preferred_pin_when_merged_keeps_the_users_terms),
        cmocka_unit_test(test_required_pin_when_the_user_has_terms_narrows_every_one),
        cmocka_unit_test(test_required_pin_when_the_user_has_none_is_one_term),
        cmocka_unit_test(
            test_rule_13_names_when_the_hostname_label_differs_or_is_missing_are_read_not_assumed),
        cmocka_unit_test(
            test_rule_5_host_set_when_required_on_several_hosts_has_a_spread_constraint),
        cmocka_unit_test(test_rule_5_host_set_when_the_user_has_that_key_leaves_the_spread_alone),
        cmocka_unit_test(test_rule_2_undo_when_nobody_changed_anything_restores_what_was_there),
        cmocka_unit_test(test_undo_when_somebody_changed_another_part_takes_out_only_ours),
        cmocka_unit_test(test_undo_when_the_list_is_another_ones_by_now_keeps_off),
        cmocka_unit_test(test_rule_2_undo_patch_when_made_tests_before_it_writes),
        cmocka_unit_test(test_mark_when_read_back_is_the_same),
        cmocka_unit_test(test_mark_when_copied_to_another_object_is_none),
        cmocka_unit_test(test_mark_when_it_is_nonsense_is_refused_with_the_place),
        cmocka_unit_test(test_template_digest_when_only_the_pin_differs_is_the_same),
        cmocka_unit_test(test_ownership_of_a_list_when_others_have_it_names_them),
        cmocka_unit_test(test_ownership_of_a_list_when_only_its_parents_are_owned_is_nobodys),
        cmocka_unit_test(test_ownership_when_it_is_of_a_subresource_does_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
