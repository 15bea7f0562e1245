/* mark.h - the annotation `remap/intent` (contract.md 7; interfaces.md 1.9 rule 15): what was meant
 * and all that an undo needs, on the workload's own metadata, written in the same request as the pin
 * itself. So whoever finds the workload can tell a move of ours, adopt it or put it back, with or
 * without a store. The same text is what the executor keeps as `saved`. Pure.
 *
 *   {"v":1,"uid":…,"cycle":7,"seq":2,"at_ms":…,"pin":"preferred","how":"apply",
 *    "hosts":[{"node":…,"hostname":…|null,"count":2}],
 *    "leaf":<our value>,"constraint":<our spread constraint>|null,
 *    "before":{"affinity":…,"spread":…},     as just before this move; a member absent: absent
 *    "original":{…},                          as before the first of our pins that are there
 *    "template":"<digest of the rest of the template>","reverted":"<manager>"|null,
 *    "stale":"<why>"|null,
 *    "previous":<the mark before this one, without its own previous>|null} */
#ifndef REMAP_KUBERNETES_MARK_H
#define REMAP_KUBERNETES_MARK_H

#include "adapters/kubernetes/pin.h"
#include "model/base/mem.h"

#define MARK_ANNOTATION "remap/intent"

struct mark {
    char *uid; /* of the workload: a copy of the manifest elsewhere is no mark */
    int64_t cycle, seq, at_ms;
    struct pin pin;
    bool patched; /* written by JSON patch into a list of somebody else's (foreign_affinity) */
    json_t *leaf, *constraint; /* constraint NULL: none */
    struct pin_fields before, original;
    char *template;   /* mark_template() when it was written */
    char *reverted;   /* by whom the pin was taken out behind our back; NULL: nobody */
    char *stale;      /* why it means nothing any more; NULL: it does */
    json_t *previous; /* NULL: none */
};

void mark_free(struct mark *mark);
AUTO_DEFINE(mark)

/* The mark that the workload bears; NULL where there is none, it is unreadable (then *err is set), or
 * it was made for another object. */
struct mark *mark_of(const json_t *workload, struct err *err);
/* ERR_INPUT says what is wrong. */
struct mark *mark_decode(const char *text, struct err *err);
/* The annotation's text; caller frees. */
char *mark_encode(const struct mark *mark);
/* The text of the previous mark, NULL where there is none; caller frees. */
char *mark_previous(const struct mark *mark);

/* Is our pin there as we left it? */
bool mark_holds(const struct mark *mark, const json_t *workload);
/* Are the wanted hosts and counts those? */
bool mark_wants(const struct mark *mark, const struct pin *pin);

/* A digest (hexadecimal SHA-256) of the pod template without what pins touch: changes with every
 * deployment, never by us. Caller frees. */
char *mark_template(const json_t *workload);

#endif
