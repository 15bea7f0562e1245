/* pin.h - the part of a pod template that keeps a workload's pods on chosen nodes: built, put in,
 * recognised and taken out again. Pure: JSON in, JSON out (interfaces.md 1.5, 1.6, 1.9 rules 1, 2
 * and 5). Inside adapters/kubernetes.
 *
 * A pin is one value below spec.template.spec.affinity.nodeAffinity, its leaf: the whole list of
 * preferred terms, or the whole node selector of the required ones (both are atomic in the API, so
 * nobody can own a part of them). A required pin on several hosts has a spread constraint as well. */
#ifndef REMAP_KUBERNETES_PIN_H
#define REMAP_KUBERNETES_PIN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "model/base/err.h"

enum pin_kind { PIN_PREFERRED, PIN_REQUIRED };

struct pin_host {
    char *node;     /* name of the Node */
    char *hostname; /* its label kubernetes.io/hostname; NULL: none, or not the only node with it */
    int64_t count;  /* replicas wanted there */
};

struct pin {
    enum pin_kind kind;
    struct pin_host *hosts; /* by name of the node: the same set is always the same JSON */
    size_t n_hosts;
};

void pin_add(struct pin *pin, const char *node, const char *hostname, int64_t count);
void pin_wipe(struct pin *pin);
#define AUTO_PIN __attribute__((cleanup(pin_wipe)))

/* The two fields of a template's pod spec that a pin touches, as they are: NULL is absent, which is
 * not the same as {} (another template, a rollout). Holds references. */
struct pin_fields {
    json_t *affinity, *spread; /* `affinity`, `topologySpreadConstraints` */
};

struct pin_fields pin_fields_of(const json_t *workload);
/* The same from and to an object with members `affinity` and `spread` where they are present. */
struct pin_fields pin_fields_decode(const json_t *object);
json_t *pin_fields_encode(const struct pin_fields *fields);
void pin_fields_wipe(struct pin_fields *fields);
#define AUTO_PIN_FIELDS __attribute__((cleanup(pin_fields_wipe)))
bool pin_fields_equal(const struct pin_fields *a, const struct pin_fields *b);

/* The name of the leaf below nodeAffinity. */
const char *pin_leaf_name(enum pin_kind kind);
/* The value at the leaf in `affinity`, borrowed; NULL when absent. */
json_t *pin_leaf_get(const json_t *affinity, enum pin_kind kind);

/* The leaf of this pin. `users` is what the user has there, or NULL: preferred terms of his are kept
 * before ours; the host requirement goes into every required term of his (they are ORed: a term
 * more would widen the choice). New reference. */
json_t *pin_leaf_new(const struct pin *pin, const json_t *users);

/* The constraint that spreads the replicas of a required pin over its hosts evenly; NULL where none
 * is wanted: preferred, a single host, or the user has one with that key. New reference. */
json_t *pin_spread_new(const struct pin *pin, const json_t *workload, const json_t *users);

/* `fields` with the pin in them: leaf set, constraint (may be NULL) appended. */
struct pin_fields pin_put_in(const struct pin_fields *fields, enum pin_kind kind, json_t *leaf,
                             json_t *constraint);

/* What the fields were without the pin: its leaf as in `before`, empty objects left over by it
 * removed unless `before` had them; everything else as it is now, also where others have changed it
 * since. Where nobody did, exactly `before`. false: the leaf (still *fields) is not ours any more. */
bool pin_take_out(const struct pin_fields *fields, enum pin_kind kind, const json_t *leaf,
                  const json_t *constraint, const struct pin_fields *before,
                  struct pin_fields *out);

/* Adds the operations that turn `now` into `then` to a JSON patch, each behind a test of what is
 * there now: nobody else's change is overwritten. */
void pin_patch(const struct pin_fields *now, const struct pin_fields *then, json_t *operations);

/* The node names in a leaf of ours, as far as they are there by name or in `hosts`. */
bool pin_has_host(const struct pin *pin, const char *node);

#endif
