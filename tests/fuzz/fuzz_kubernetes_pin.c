/* fuzz_kubernetes_pin.c - any bytes as a workload that others may have written: its managedFields,
 * its mark, its affinity. Whatever it holds, a pin that is put in is taken out again exactly, and a
 * mark that is read says the same when it is written again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/kubernetes/conduct.h"
#include "adapters/kubernetes/mark.h"
#include "adapters/kubernetes/owners.h"
#include "adapters/kubernetes/rollout.h"
#include "model/base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_mark(const char *text)
{
    struct err err = ERR_INIT;
    AUTO(mark) struct mark *mark = mark_decode(text, &err);
    if (!mark) {
        if (err.kind != ERR_INPUT && err.kind != ERR_TOO_LARGE)
            abort();
        return;
    }
    AUTO_FREE char *first = mark_encode(mark);
    AUTO(mark) struct mark *again = first ? mark_decode(first, &err) : NULL;
    AUTO_FREE char *second = again ? mark_encode(again) : NULL;
    if (!second || strcmp(first, second) != 0)
        abort();
}

static void try_pin(const json_t *workload, enum pin_kind kind)
{
    AUTO_PIN struct pin pin = {.kind = kind};
    AUTO_PIN_FIELDS struct pin_fields before = pin_fields_of(workload), back = {NULL, NULL};
    if ((before.affinity && !json_is_object(before.affinity)) ||
        (before.spread && !json_is_array(before.spread)))
        return; /* no server would hand that out */
    const json_t *node = json_object_get(before.affinity, "nodeAffinity");
    const json_t *leaf = pin_leaf_get(before.affinity, kind);
    if ((node && !json_is_object(node)) ||
        (leaf && (kind == PIN_REQUIRED ? !json_is_object(leaf) : !json_is_array(leaf))))
        return;
    pin_add(&pin, "n2", NULL, 1);
    pin_add(&pin, "n1", "host-1", 1);
    AUTO_JSON json_t *ours = pin_leaf_new(&pin, leaf);
    AUTO_PIN_FIELDS struct pin_fields with = pin_put_in(&before, kind, ours, NULL);
    if (!pin_take_out(&with, kind, ours, NULL, &before, &back) || !pin_fields_equal(&before, &back))
        abort();
}

static void try_conduct(const json_t *workload)
{
    struct err odd = ERR_INIT;
    char why[300];
    AUTO_PIN struct pin pin = {.kind = PIN_PREFERRED};
    AUTO(mark) struct mark *mark = mark_of(workload, &odd);
    AUTO_JSON json_t *list = json_pack("[O]", workload);
    pin_add(&pin, "n1", "n1", 1);
    const struct conduct c = {.workload = workload, .mark = mark, .pin = &pin, .pods = list,
                              .budgets = list, .quotas = list, .autoscalers = list,
                              .services = list, .rollouts = list, .claims = list, .targets = list,
                              .sources = list, .target_pods = list};
    (void)conduct_problem(&c, why, sizeof why);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err = ERR_INIT;
    char why[100];
    AUTO_FREE char *text = mem_strndup((const char *)data, size);
    AUTO_JSON json_t *workload = json_parse((const char *)data, size, &json_limits_document, &err);
    try_mark(text);
    if (!json_is_object(workload))
        return 0;
    try_pin(workload, PIN_PREFERRED);
    try_pin(workload, PIN_REQUIRED);
    (void)rollout_state(workload, why, sizeof why);
    (void)rollout_pace(workload);
    try_conduct(workload);
    return 0;
}
