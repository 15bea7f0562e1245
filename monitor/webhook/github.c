/* github.c - GitHub: HMAC-SHA256 over the raw body (interfaces.md 6). What counts is a
 * deployment_status of success, or a workflow_run that was configured to be a deployment. */
#include <stdio.h>
#include <string.h>

#include "model/base/json.h"
#include "monitor/webhook/hook.h"
#include "monitor/webhook/verify.h"

/* `deployment.payload` is free: an object, or text that may itself be JSON. */
static void read_payload(const json_t *payload, struct hook_event *out)
{
    static const char *const places[] = {"remap_interval", "remap.interval", "REMAP_INTERVAL"};
    AUTO_JSON json_t *inner = NULL;
    const char *text = json_string_value(payload);
    if (text) {
        struct hook_event ignored;
        inner = hook_parse(text, strlen(text), &ignored);
        hook_label(out, text);
        payload = inner;
    }
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char value[HOOK_ID_SIZE];
        hook_id(payload, places[i], value);
        if (value[0])
            hook_interval(out, value);
    }
}

static enum hook_verdict read_deployment_status(const json_t *root, struct hook_event *out)
{
    const char *state = hook_string(root, "deployment_status.state");
    const char *repository = hook_string(root, "repository.full_name");
    const char *environment = hook_string(root, "deployment_status.environment");
    char id[HOOK_ID_SIZE], status[HOOK_ID_SIZE];
    hook_id(root, "deployment.id", id);
    hook_id(root, "deployment_status.id", status);
    if (!state || !repository || !id[0])
        return hook_say(
            out, HOOK_MALFORMED,
            "deployment_status.state, deployment.id or repository.full_name is missing");
    if (strcmp(state, "success") != 0)
        return hook_say(out, HOOK_IGNORED, "the deployment is %s", state);
    hook_copy(out->repository, sizeof out->repository, repository);
    out->tells_branch = out->tells_environment = true;
    hook_add(&out->branches, hook_branch(hook_string(root, "deployment.ref")));
    hook_add(&out->environments,
             environment ? environment : hook_string(root, "deployment.environment"));
    hook_copy(out->commit, sizeof out->commit, hook_string(root, "deployment.sha"));
    snprintf(out->deployment, sizeof out->deployment, "%.60s%s%.60s", id, status[0] ? "." : "",
             status);
    hook_label(out, hook_string(root, "deployment.description"));
    hook_label(out, hook_string(root, "deployment_status.description"));
    read_payload(hook_value(root, "deployment.payload"), out);
    return HOOK_DEPLOYED;
}

enum hook_verdict hook_workflow_run(const json_t *root, struct hook_event *out)
{
    const char *action = hook_string(root, "action");
    const char *conclusion = hook_string(root, "workflow_run.conclusion");
    const char *repository = hook_string(root, "repository.full_name");
    const char *event = hook_string(root, "workflow_run.event");
    const char *head = hook_string(root, "workflow_run.head_repository.full_name");
    char id[HOOK_ID_SIZE], attempt[HOOK_ID_SIZE];
    hook_id(root, "workflow_run.id", id);
    hook_id(root, "workflow_run.run_attempt", attempt);
    if (!action || !repository || !id[0])
        return hook_say(out, HOOK_MALFORMED,
                        "action, workflow_run.id or repository.full_name is missing");
    if (strcmp(action, "completed") != 0)
        return hook_say(out, HOOK_IGNORED, "the workflow is %s", action);
    if (!conclusion || strcmp(conclusion, "success") != 0)
        return hook_say(out, HOOK_IGNORED, "the workflow ended with %s",
                        conclusion ? conclusion : "nothing");
    if ((event && strncmp(event, "pull_request", 12) == 0) ||
        (head && strcmp(head, repository) != 0))
        return hook_say(out, HOOK_IGNORED, "a pull request");
    const char *path = hook_string(root, "workflow_run.path");
    if (!path)
        path = hook_string(root, "workflow.path");
    const char *file = path ? strrchr(path, '/') : NULL;
    hook_copy(out->repository, sizeof out->repository, repository);
    out->tells_branch = out->tells_workflow = true;
    hook_add(&out->branches, hook_branch(hook_string(root, "workflow_run.head_branch")));
    hook_add(&out->workflows, hook_string(root, "workflow_run.name"));
    hook_add(&out->workflows, hook_string(root, "workflow.name"));
    hook_add(&out->workflows, path);
    hook_add(&out->workflows, file ? file + 1 : NULL);
    hook_copy(out->commit, sizeof out->commit, hook_string(root, "workflow_run.head_sha"));
    snprintf(out->deployment, sizeof out->deployment, "%.60s%s%.60s", id, attempt[0] ? "." : "",
             attempt);
    hook_label(out, hook_string(root, "workflow_run.head_commit.message"));
    return HOOK_DEPLOYED;
}

static enum hook_verdict read_body(const struct hook_request *request, const char *event,
                                   struct hook_event *out)
{
    AUTO_BUF struct buf payload = BUF_INIT;
    const char *text = request->body;
    size_t size = request->size;
    if (hook_is_form(request)) {
        if (hook_form_payload(text, size, &payload))
            return hook_say(out, HOOK_MALFORMED, "no form with a payload");
        text = payload.data;
        size = payload.size;
    }
    AUTO_JSON json_t *root = hook_parse(text, size, out);
    if (!root)
        return HOOK_MALFORMED;
    return strcmp(event, "workflow_run") == 0 ? hook_workflow_run(root, out)
                                              : read_deployment_status(root, out);
}

static enum hook_verdict judge(const struct hook_request *request, const struct hook_proof *proof,
                               struct hook_event *out)
{
    static const char prefix[] = "sha256=";
    const char *signature = hook_header(request, "X-Hub-Signature-256");
    const char *event = hook_header(request, "X-GitHub-Event");
    if (hook_header(request, "X-Gitea-Event")) /* Gitea sends GitHub's headers too */
        return hook_gitea.judge(request, proof, out);
    if (!proof->secret)
        return hook_say(out, HOOK_UNAUTHORIZED, "no secret is configured");
    if (!signature)
        return hook_say(out, HOOK_UNAUTHORIZED, "no signature");
    if (strncmp(signature, prefix, sizeof prefix - 1) != 0 ||
        !verify_hmac_hex(proof->secret, request->body, request->size,
                         signature + sizeof prefix - 1))
        return hook_say(out, HOOK_UNAUTHORIZED, "the signature does not fit");
    if (!event)
        return hook_say(out, HOOK_MALFORMED, "X-GitHub-Event is missing");
    /* X-GitHub-Delivery is not signed: the digest of the body stands for it */
    verify_digest(request->body, request->size, out->delivery);
    if (strcmp(event, "deployment_status") != 0 && strcmp(event, "workflow_run") != 0)
        return hook_say(out, HOOK_IGNORED, "%s", *event ? event : "an event without a name");
    return read_body(request, event, out);
}

const struct hook_provider hook_github = {"github", judge};
