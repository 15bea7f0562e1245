/* test_admission.c - wishes and AdmissionReviews: who is steered, by what patch, and that everybody
 * is admitted. */
#include "adapters/kubernetes/admission.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/json.h"

#define POD_OF(uid, more)                                                                          \
    "{\"metadata\":{\"generateName\":\"cart-\",\"ownerReferences\":[{\"kind\":\"ReplicaSet\","     \
    "\"name\":\"cart\",\"uid\":\"" uid                                                             \
    "\",\"controller\":true}]},\"spec\":{\"containers\":[]" more "}}"
#define REVIEW(operation, space, more, pod)                                                        \
    "{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"request\":{"           \
    "\"uid\":\"r1\",\"kind\":{\"group\":\"\",\"version\":\"v1\",\"kind\":\"Pod\"},"                \
    "\"operation\":\"" operation "\",\"namespace\":\"" space "\"" more ",\"object\":" pod "}}"

static struct wishes *wished(void)
{
    struct wishes *w = wishes_new();
    const struct wish wish = {"shop", "u1", "node-3", "7/2/cart-old", 1000};
    wishes_add(w, &wish);
    return w;
}

/* The patch of the answer, decoded; NULL where it has none. The answer is checked on the way. */
static json_t *ask(struct wishes *w, const char *review, int64_t now_ms)
{
    AUTO_BUF struct buf out = BUF_INIT;
    struct err err = ERR_INIT;
    assert_int_equal(admission_answer(w, review, strlen(review), now_ms, &out), 200);
    AUTO_JSON json_t *answer = json_parse(out.data, out.size, &json_limits_document, &err);
    json_t *response = json_object_get(answer, "response");
    assert_string_equal(json_string_value(json_object_get(response, "uid")), "r1");
    assert_true(json_is_true(json_object_get(response, "allowed")));
    const char *coded = json_string_value(json_object_get(response, "patch"));
    if (!coded)
        return NULL;
    assert_string_equal(json_string_value(json_object_get(response, "patchType")), "JSONPatch");
    AUTO_FREE char *text = mem_alloc(strlen(coded) + 1);
    int size =
        EVP_DecodeBlock((unsigned char *)text, (const unsigned char *)coded, (int)strlen(coded));
    assert_true(size > 0);
    json_t *patch = json_loads(text, JSON_DISABLE_EOF_CHECK, NULL);
    assert_non_null(patch);
    return patch;
}

static void check_patch(json_t *patch, const char *wanted)
{
    AUTO_JSON json_t *tree = json_loads(wanted, 0, NULL);
    AUTO_FREE char *got = json_dumps(patch, JSON_COMPACT);
    assert_non_null(tree);
    if (!json_equal(tree, patch))
        assert_string_equal(got, wanted);
    json_decref(patch);
}

#define TERM                                                                                       \
    "{\"weight\":100,\"preference\":{\"matchFields\":[{\"key\":\"metadata.name\","                 \
    "\"operator\":\"In\",\"values\":[\"node-3\"]}]}}"

static void test_pod_when_wished_for_prefers_the_node_and_bears_the_mark(void **state)
{
    (void)state;
    AUTO(wishes) struct wishes *w = wished();
    check_patch(ask(w, REVIEW("CREATE", "shop", "", POD_OF("u1", "")), 0),
                "[{\"op\":\"add\",\"path\":\"/spec/affinity\",\"value\":{\"nodeAffinity\":{"
                "\"preferredDuringSchedulingIgnoredDuringExecution\":[" TERM "]}}},"
                "{\"op\":\"add\",\"path\":\"/metadata/annotations\",\"value\":{\"remap/intent\":"
                "\"7/2/cart-old\"}}]");
    assert_int_equal(wishes_met(w), 1);
}

static void test_pod_when_it_has_affinity_and_annotations_keeps_them(void **state)
{
    (void)state;
    AUTO(wishes) struct wishes *w = wished();
    static const char review[] =
        REVIEW("CREATE", "shop", "",
               "{\"metadata\":{\"annotations\":{\"a\":\"b\"},\"ownerReferences\":[{\"uid\":\"u1\","
               "\"controller\":true}]},\"spec\":{\"affinity\":{\"podAffinity\":{\"x\":1},"
               "\"nodeAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":{\"r\":1},"
               "\"preferredDuringSchedulingIgnoredDuringExecution\":[{\"weight\":5}]}}}}");
    check_patch(ask(w, review, 0),
                "[{\"op\":\"add\",\"path\":\"/spec/affinity\",\"value\":{\"podAffinity\":{\"x\":1},"
                "\"nodeAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":{\"r\":1},"
                "\"preferredDuringSchedulingIgnoredDuringExecution\":[{\"weight\":5}," TERM "]}}},"
                "{\"op\":\"add\",\"path\":\"/metadata/annotations/remap~1intent\",\"value\":"
                "\"7/2/cart-old\"}]");
}

static void test_wish_when_met_is_used_up(void **state)
{
    (void)state;
    AUTO(wishes) struct wishes *w = wished();
    AUTO_JSON json_t *first = ask(w, REVIEW("CREATE", "shop", "", POD_OF("u1", "")), 0);
    assert_non_null(first);
    assert_null(ask(w, REVIEW("CREATE", "shop", "", POD_OF("u1", "")), 0));
    assert_int_equal(wishes_asked(w), 2);
}

static void test_wish_when_of_a_dry_run_stays(void **state)
{
    (void)state;
    AUTO(wishes) struct wishes *w = wished();
    AUTO_JSON json_t *dry =
        ask(w, REVIEW("CREATE", "shop", ",\"dryRun\":true", POD_OF("u1", "")), 0);
    AUTO_JSON json_t *real =
        ask(w, REVIEW("CREATE", "shop", ",\"dryRun\":false", POD_OF("u1", "")), 0);
    assert_non_null(dry);
    assert_non_null(real);
}

static void test_wishes_when_several_are_met_in_order_and_replaced_by_mark(void **state)
{
    (void)state;
    AUTO(wishes) struct wishes *w = wished();
    const struct wish second = {"shop", "u1", "node-4", "7/3/cart-old2", 1000};
    const struct wish again = {"shop", "u1", "node-5", "7/2/cart-old", 1000};
    wishes_add(w, &second);
    wishes_add(w, &again); /* takes the place of the first, behind the second */
    for (int i = 0; i < 2; i++) {
        AUTO_JSON json_t *patch = ask(w, REVIEW("CREATE", "shop", "", POD_OF("u1", "")), 0);
        AUTO_FREE char *text = json_dumps(patch, JSON_COMPACT);
        assert_non_null(strstr(text, i ? "node-5" : "node-4"));
    }
    wishes_add(w, &again);
    wishes_drop(w, "7/2/cart-old");
    assert_null(ask(w, REVIEW("CREATE", "shop", "", POD_OF("u1", "")), 0));
}

static void test_pod_when_not_wished_for_is_left_alone(void **state)
{
    (void)state;
    static const char *const others[] = {
        REVIEW("CREATE", "other", "", POD_OF("u1", "")),
        REVIEW("CREATE", "shop", "", POD_OF("u2", "")),
        REVIEW("UPDATE", "shop", "", POD_OF("u1", "")),
        REVIEW("CREATE", "shop", "", POD_OF("u1", ",\"nodeName\":\"node-1\"")),
        REVIEW("CREATE", "shop", "", POD_OF("u1", ",\"affinity\":[]")),
        REVIEW("CREATE", "shop", "", POD_OF("u1", ",\"affinity\":{\"nodeAffinity\":1}")),
        REVIEW("CREATE", "shop", "", "{}"),
        REVIEW("CREATE", "shop", "", "null"),
        REVIEW("CREATE", "shop", "", "[1]"),
        REVIEW("CREATE", "shop", "",
               "{\"metadata\":{\"ownerReferences\":[{\"uid\":\"u1\"}]},\"spec\":{}}"),
    };
    AUTO(wishes) struct wishes *w = wished();
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        assert_null(ask(w, others[i], 0));
    AUTO_JSON json_t *ours = ask(w, REVIEW("CREATE", "shop", "", POD_OF("u1", "")), 999);
    assert_non_null(ours);
}

static void test_wish_when_its_time_is_over_is_another_pods(void **state)
{
    (void)state;
    AUTO(wishes) struct wishes *w = wished();
    assert_null(ask(w, REVIEW("CREATE", "shop", "", POD_OF("u1", "")), 1000));
}

static void test_review_when_it_is_none_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "{",
        "[]",
        "null",
        "{}",
        "{\"request\":{\"uid\":\"r1\"}}",
        "{\"apiVersion\":\"admission.k8s.io/v1beta1\",\"request\":{\"uid\":\"r1\"}}",
        "{\"apiVersion\":\"admission.k8s.io/v1\",\"request\":{\"uid\":1}}",
        "{\"apiVersion\":\"admission.k8s.io/v1\",\"request\":[]}",
    };
    AUTO(wishes) struct wishes *w = wished();
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        AUTO_BUF struct buf out = BUF_INIT;
        assert_int_equal(admission_answer(w, bad[i], strlen(bad[i]), 0, &out), 400);
        assert_non_null(strstr(out.data, "{\"error\":"));
    }
    assert_int_equal(wishes_asked(w), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pod_when_wished_for_prefers_the_node_and_bears_the_mark),
        cmocka_unit_test(test_pod_when_it_has_affinity_and_annotations_keeps_them),
        cmocka_unit_test(test_wish_when_met_is_used_up),
        cmocka_unit_test(test_wish_when_of_a_dry_run_stays),
        cmocka_unit_test(test_wishes_when_several_are_met_in_order_and_replaced_by_mark),
        cmocka_unit_test(test_pod_when_not_wished_for_is_left_alone),
        cmocka_unit_test(test_wish_when_its_time_is_over_is_another_pods),
        cmocka_unit_test(test_review_when_it_is_none_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
