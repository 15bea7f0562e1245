/* gitea.c - Gitea, Forgejo, Gogs: HMAC-SHA256 in hexadecimal without a prefix, newer ones also as
 * GitHub does (interfaces.md 6). A push says nothing about a rollout; what counts is a
 * workflow_run, or a commit status of success, that was configured to be a deployment. */
#include <stdio.h>
#include <string.h>

#include "model/base/json.h"
#include "monitor/webhook/hook.h"
#include "monitor/webhook/verify.h"

static enum hook_verdict read_status(const json_t *root, struct hook_event *out)
{
    const char *state = hook_string(root, "state");
    const char *repository = hook_string(root, "repository.full_name");
    const char *context = hook_string(root, "context");
    char id[HOOK_ID_SIZE];
    if (!state)
        state = hook_string(root, "status");
    hook_id(root, "id", id);
    if (!state || !repository || !context)
        return hook_say(out, HOOK_MALFORMED, "state, context or repository.full_name is missing");
    if (strcmp(state, "success") != 0)
        return hook_say(out, HOOK_IGNORED, "the status is %s", state);
    hook_copy(out->repository, sizeof out->repository, repository);
    out->tells_workflow = true;
    hook_add(&out->workflows, context);
    hook_copy(out->commit, sizeof out->commit, hook_string(root, "sha"));
    snprintf(out->deployment, sizeof out->deployment, "%.60s.%.60s", id, out->commit);
    hook_label(out, hook_string(root, "commit.message"));
    return HOOK_DEPLOYED;
}

static enum hook_verdict proved(const struct hook_request *request, const struct hook_proof *proof,
                                struct hook_event *out)
{
    static const char prefix[] = "sha256=";
    const char *signature = hook_header(request, "X-Gitea-Signature");
    if (!signature)
        signature = hook_header(request, "X-Forgejo-Signature");
    if (!signature)
        signature = hook_header(request, "X-Hub-Signature-256");
    if (!signature)
        signature = hook_header(request, "X-Gogs-Signature");
    if (!proof->secret)
        return hook_say(out, HOOK_UNAUTHORIZED, "no secret is configured");
    if (!signature)
        return hook_say(out, HOOK_UNAUTHORIZED, "no signature");
    if (strncmp(signature, prefix, sizeof prefix - 1) == 0)
        signature += sizeof prefix - 1;
    if (!verify_hmac_hex(proof->secret, request->body, request->size, signature))
        return hook_say(out, HOOK_UNAUTHORIZED, "the signature does not fit");
    return HOOK_DEPLOYED;
}

static const char *first_header(const struct hook_request *request, const char *const names[])
{
    const char *value = NULL;
    for (size_t i = 0; !value && names[i]; i++)
        value = hook_header(request, names[i]);
    return value;
}

static enum hook_verdict judge(const struct hook_request *request, const struct hook_proof *proof,
                               struct hook_event *out)
{
    static const char *const events[] = {"X-Gitea-Event", "X-Forgejo-Event", "X-Gogs-Event", NULL};
    enum hook_verdict verdict = proved(request, proof, out);
    if (verdict != HOOK_DEPLOYED)
        return verdict;
    const char *event = first_header(request, events);
    if (!event)
        return hook_say(out, HOOK_MALFORMED, "X-Gitea-Event is missing");
    /* the delivery's id is not signed: the digest of the body stands for it */
    verify_digest(request->body, request->size, out->delivery);
    if (strcmp(event, "workflow_run") != 0 && strcmp(event, "status") != 0)
        return hook_say(out, HOOK_IGNORED, "%s", *event ? event : "an event without a name");
    AUTO_BUF struct buf payload = BUF_INIT;
    bool form = hook_is_form(request);
    if (form && hook_form_payload(request->body, request->size, &payload))
        return hook_say(out, HOOK_MALFORMED, "no form with a payload");
    AUTO_JSON json_t *root =
        hook_parse(form ? payload.data : request->body, form ? payload.size : request->size, out);
    if (!root)
        return HOOK_MALFORMED;
    return strcmp(event, "status") == 0 ? read_status(root, out) : hook_workflow_run(root, out);
}

const struct hook_provider hook_gitea = {"gitea", judge};
