/* hook.h - what a CI system posts about a deployment, judged (interfaces.md 6, paper §6.6): each
 * provider is one pure function from raw body, headers and secrets to a verdict.
 *
 * The proof comes first, over the exact bytes; nothing is parsed before it holds. */
#ifndef REMAP_MONITOR_HOOK_H
#define REMAP_MONITOR_HOOK_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "model/base/buf.h"

/* GitHub's caps are 25 MB, but what is read here are reports of some 10 KB (interfaces.md 6). */
#define HOOK_MAX_BODY ((size_t)1 << 20)

struct hook_header {
    const char *name, *value;
};

struct hook_request { /* all borrowed */
    const char *body;
    size_t size;
    const struct hook_header *headers;
    size_t n_headers;
    const char *interval; /* of the URL's query; NULL: none */
    int64_t now_ms;       /* wall */
    int64_t window_ms;    /* how far a signed time may be off */
};
/* Names are compared without case; NULL when absent. */
const char *hook_header(const struct hook_request *request, const char *name);
bool hook_is_form(const struct hook_request *request); /* by its content type */

/* What a provider's proof is checked with; NULL: not configured, and what needs it is refused. */
struct hook_proof {
    const char *secret, *token, *public_key; /* public_key: PEM */
};

enum hook_verdict {
    HOOK_DEPLOYED,     /* a successful deployment: event is filled */
    HOOK_IGNORED,      /* believed, but it triggers nothing: why */
    HOOK_UNAUTHORIZED, /* not proved: why */
    HOOK_MALFORMED     /* proved, but not understood: why */
};

#define HOOK_NAME_SIZE 254 /* a name of contract.md 2 */
#define HOOK_ID_SIZE 129
#define HOOK_MAX_NAMES 8

struct hook_names {
    char names[HOOK_MAX_NAMES][HOOK_NAME_SIZE];
    size_t n;
};

struct hook_event {
    char why[200];
    char app[HOOK_NAME_SIZE];        /* generic only; "" elsewhere */
    char repository[HOOK_NAME_SIZE]; /* owner/name; may be "" where app is given */
    /* What the provider does not tell is not asked of a route. */
    bool tells_branch, tells_environment, tells_workflow;
    struct hook_names branches, environments, workflows;
    char commit[HOOK_ID_SIZE];
    char delivery[HOOK_ID_SIZE];   /* of this post: its signed id, or the body's digest; "": none */
    char deployment[HOOK_ID_SIZE]; /* … and of what was deployed, from the body */
    int64_t interval_ms;           /* -1: none asked for; the engine clamps it */
    bool interval_bad;             /* one was asked for that is no duration */
};

struct hook_provider {
    const char *name;
    enum hook_verdict (*judge)(const struct hook_request *request, const struct hook_proof *proof,
                               struct hook_event *out);
};

extern const struct hook_provider hook_travis, hook_github, hook_gitlab, hook_gitea, hook_generic;
const struct hook_provider *hook_provider_find(const char *name); /* NULL */

/* Judges: clears *out, asks the provider, adds the interval of the query where the body has none.
 */
enum hook_verdict hook_judge(const struct hook_provider *provider,
                             const struct hook_request *request, const struct hook_proof *proof,
                             struct hook_event *out);
/* provider/delivery/deployment: what makes a delivery the same one. */
void hook_delivery(const struct hook_provider *provider, const struct hook_event *event,
                   struct buf *out);
/* One line for people. */
void hook_text(const struct hook_provider *provider, const struct hook_event *event,
               struct buf *out);

/* --- for the providers (payload.c) --- */

/* Sets out->why and returns the verdict. */
enum hook_verdict hook_say(struct hook_event *out, enum hook_verdict verdict, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The body, or its form field `payload`, as a JSON object. NULL and out->why. */
json_t *hook_parse(const char *text, size_t size, struct hook_event *out);
/* Decodes the field `payload` of a form, exactly once. -1 when there is none. */
int hook_form_payload(const char *body, size_t size, struct buf *out);
/* "a.b.c" within an object: the text there, NULL when it is none. */
const char *hook_string(const json_t *object, const char *path);
json_t *hook_value(const json_t *object, const char *path);
/* The same for an id: text or integer; "" when it is none. */
void hook_id(const json_t *object, const char *path, char out[HOOK_ID_SIZE]);
/* Copies what fits, whole characters, control characters as '?'. NULL gives "". */
void hook_copy(char *out, size_t size, const char *text);
void hook_add(struct hook_names *names, const char *name); /* NULL, "", full: nothing */
/* The branch or tag of a ref such as refs/heads/main. NULL gives NULL. */
const char *hook_branch(const char *ref);
/* "600", "600s", "10m" */
void hook_interval(struct hook_event *out, const char *value);
/* `[remap: interval=600s]` somewhere in a commit's message. NULL: nothing. */
void hook_label(struct hook_event *out, const char *message);

/* A run of a workflow, as GitHub and Gitea report it. */
enum hook_verdict hook_workflow_run(const json_t *root, struct hook_event *out);

#endif
