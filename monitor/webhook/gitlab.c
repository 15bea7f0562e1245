/* gitlab.c - GitLab: signed as Standard Webhooks are where a signing secret is configured, else its
 * plain token (interfaces.md 6). What counts is a deployment hook of success, or a pipeline hook of
 * success, by the environments that its jobs deployed to. */
#include <stdio.h>
#include <string.h>

#include "model/base/json.h"
#include "model/base/mem.h"
#include "monitor/secret.h"
#include "monitor/webhook/hook.h"
#include "monitor/webhook/verify.h"

static enum hook_verdict read_deployment(const json_t *root, struct hook_event *out)
{
    const char *status = hook_string(root, "status");
    const char *repository = hook_string(root, "project.path_with_namespace");
    const char *commit = hook_string(root, "short_sha"), *ref = hook_string(root, "ref");
    hook_id(root, "deployment_id", out->deployment);
    if (!status || !repository || !out->deployment[0])
        return hook_say(out, HOOK_MALFORMED,
                        "status, deployment_id or project.path_with_namespace is missing");
    if (strcmp(status, "success") != 0)
        return hook_say(out, HOOK_IGNORED, "the deployment is %s", status);
    hook_copy(out->repository, sizeof out->repository, repository);
    out->tells_branch = ref != NULL;
    out->tells_environment = true;
    hook_add(&out->branches, hook_branch(ref));
    hook_add(&out->environments, hook_string(root, "environment"));
    hook_copy(out->commit, sizeof out->commit, commit);
    hook_label(out, hook_string(root, "commit_title"));
    return HOOK_DEPLOYED;
}

/* A pipeline is a success also while jobs wait to be started by hand or were skipped. */
static void read_builds(const json_t *builds, struct hook_event *out)
{
    size_t i;
    const json_t *build;
    json_array_foreach(builds, i, build)
    {
        const char *status = hook_string(build, "status");
        const char *action = hook_string(build, "environment.action");
        if (status && strcmp(status, "success") == 0 && (!action || strcmp(action, "start") == 0))
            hook_add(&out->environments, hook_string(build, "environment.name"));
    }
}

static void read_variables(const json_t *variables, struct hook_event *out)
{
    size_t i;
    const json_t *variable;
    json_array_foreach(variables, i, variable)
    {
        const char *key = hook_string(variable, "key"), *value = hook_string(variable, "value");
        if (key && value && strcmp(key, "REMAP_INTERVAL") == 0)
            hook_interval(out, value);
    }
}

static enum hook_verdict read_pipeline(const json_t *root, struct hook_event *out)
{
    const char *status = hook_string(root, "object_attributes.status");
    const char *source = hook_string(root, "object_attributes.source");
    const char *repository = hook_string(root, "project.path_with_namespace");
    hook_id(root, "object_attributes.id", out->deployment);
    if (!status || !repository || !out->deployment[0])
        return hook_say(out, HOOK_MALFORMED,
                        "object_attributes.status, .id or project.path_with_namespace is missing");
    if (strcmp(status, "success") != 0)
        return hook_say(out, HOOK_IGNORED, "the pipeline is %s", status);
    if (source && (strcmp(source, "merge_request_event") == 0 ||
                   strcmp(source, "external_pull_request_event") == 0))
        return hook_say(out, HOOK_IGNORED, "a merge request");
    /* a retried pipeline keeps its id */
    const char *finished = hook_string(root, "object_attributes.finished_at");
    AUTO_FREE char *pipeline =
        mem_printf("pipeline %.60s %.40s", out->deployment, finished ? finished : "");
    hook_copy(out->deployment, sizeof out->deployment, pipeline);
    hook_copy(out->repository, sizeof out->repository, repository);
    out->tells_branch = out->tells_environment = true;
    hook_add(&out->branches, hook_branch(hook_string(root, "object_attributes.ref")));
    read_builds(hook_value(root, "builds"), out);
    hook_copy(out->commit, sizeof out->commit, hook_string(root, "object_attributes.sha"));
    hook_label(out, hook_string(root, "commit.message"));
    read_variables(hook_value(root, "object_attributes.variables"), out);
    return HOOK_DEPLOYED;
}

/* One of the signatures "v1,BASE64 v1,BASE64" over "id.timestamp.body"; a secret "whsec_BASE64" is
 * given in base64, any other as it is. */
static bool signature_fits(const struct hook_request *request, const char *secret, const char *id,
                           const char *time, const char *signatures)
{
    static const char prefix[] = "whsec_";
    AUTO_BUF struct buf signed_text = BUF_INIT;
    size_t n = strlen(secret), skip = sizeof prefix - 1;
    AUTO_FREE unsigned char *key = mem_alloc(n + 4);
    int key_size = -1;
    if (strncmp(secret, prefix, skip) == 0)
        key_size = verify_base64(secret + skip, n - skip, key);
    if (key_size < 0) {
        memcpy(key, secret, n);
        key_size = (int)n;
    }
    buf_printf(&signed_text, "%s.%s.", id, time);
    buf_add(&signed_text, request->body, request->size);
    for (const char *p = signatures; *p;) {
        size_t size = strcspn(p, " ");
        if (size > 3 && strncmp(p, "v1,", 3) == 0 &&
            verify_hmac_base64(key, (size_t)key_size, signed_text.data, signed_text.size, p + 3,
                               size - 3))
            return true;
        p += size + strspn(p + size, " ");
    }
    return false;
}

static enum hook_verdict proved(const struct hook_request *request, const struct hook_proof *proof,
                                struct hook_event *out)
{
    const char *id = hook_header(request, "webhook-id");
    const char *time = hook_header(request, "webhook-timestamp");
    const char *signatures = hook_header(request, "webhook-signature");
    const char *token = hook_header(request, "X-Gitlab-Token");
    if (proof->secret) {
        if (!id || !time || !signatures)
            return hook_say(out, HOOK_UNAUTHORIZED, "no signature");
        if (!signature_fits(request, proof->secret, id, time, signatures))
            return hook_say(out, HOOK_UNAUTHORIZED, "the signature does not fit");
        if (!verify_time(time, request->now_ms, request->window_ms))
            return hook_say(out, HOOK_UNAUTHORIZED, "the signature is of another time");
        hook_copy(out->delivery, sizeof out->delivery, id);
        return HOOK_DEPLOYED;
    }
    if (!proof->token)
        return hook_say(out, HOOK_UNAUTHORIZED, "neither secret nor token is configured");
    if (!token || !secret_equal(token, proof->token))
        return hook_say(out, HOOK_UNAUTHORIZED, token ? "the token does not fit" : "no token");
    const char *key = hook_header(request, "Idempotency-Key"); /* stays over retries */
    hook_copy(out->delivery, sizeof out->delivery,
              key ? key : hook_header(request, "X-Gitlab-Event-UUID"));
    return HOOK_DEPLOYED;
}

static enum hook_verdict judge(const struct hook_request *request, const struct hook_proof *proof,
                               struct hook_event *out)
{
    enum hook_verdict verdict = proved(request, proof, out);
    if (verdict != HOOK_DEPLOYED)
        return verdict;
    AUTO_JSON json_t *root = hook_parse(request->body, request->size, out);
    const char *kind = root ? hook_string(root, "object_kind") : NULL;
    if (!root)
        return HOOK_MALFORMED;
    if (!kind)
        return hook_say(out, HOOK_MALFORMED, "object_kind is missing");
    if (strcmp(kind, "deployment") == 0)
        return read_deployment(root, out);
    if (strcmp(kind, "pipeline") == 0)
        return read_pipeline(root, out);
    return hook_say(out, HOOK_IGNORED, "%s", *kind ? kind : "an event without a name");
}

const struct hook_provider hook_gitlab = {"gitlab", judge};
