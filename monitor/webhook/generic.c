/* generic.c - for everything else that can compute an HMAC:
 *
 *     X-Timestamp: 1700000000
 *     X-Signature-256: sha256=HEX      HMAC-SHA256(secret, timestamp "." body)
 *     {"status": "success", "repository": "owner/name", "branch": "main", "environment":
 * "production", "id": "deploy-17", "commit": "f95f852b", "interval": "10m", "app": "shop"}
 *
 * `status` and one of `repository` and `app` are needed. The time is part of what is signed, so an
 * old post cannot be sent again. */
#include <string.h>

#include "model/base/json.h"
#include "model/base/mem.h"
#include "monitor/webhook/hook.h"
#include "monitor/webhook/verify.h"

static enum hook_verdict read_event(const json_t *root, struct hook_event *out)
{
    static const char *const good[] = {"success", "succeeded", "passed"};
    const char *status = hook_string(root, "status"), *app = hook_string(root, "app");
    const char *repository = hook_string(root, "repository");
    const char *branch = hook_branch(hook_string(root, "branch"));
    const char *environment = hook_string(root, "environment");
    bool success = false;
    char interval[HOOK_ID_SIZE];
    if (!status || (!repository && !app))
        return hook_say(out, HOOK_MALFORMED, "status, or repository and app, is missing");
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        success = success || strcmp(status, good[i]) == 0;
    if (!success)
        return hook_say(out, HOOK_IGNORED, "the deployment is %s", status);
    hook_copy(out->app, sizeof out->app, app);
    hook_copy(out->repository, sizeof out->repository, repository);
    out->tells_branch = repository || branch;
    out->tells_environment = repository || environment;
    hook_add(&out->branches, branch);
    hook_add(&out->environments, environment);
    hook_copy(out->commit, sizeof out->commit, hook_string(root, "commit"));
    hook_id(root, "id", out->deployment);
    hook_label(out, hook_string(root, "message"));
    hook_id(root, "interval", interval);
    if (interval[0])
        hook_interval(out, interval);
    return HOOK_DEPLOYED;
}

static enum hook_verdict judge(const struct hook_request *request, const struct hook_proof *proof,
                               struct hook_event *out)
{
    static const char prefix[] = "sha256=";
    const char *signature = hook_header(request, "X-Signature-256");
    const char *time = hook_header(request, "X-Timestamp");
    AUTO_BUF struct buf signed_text = BUF_INIT;
    if (!proof->secret)
        return hook_say(out, HOOK_UNAUTHORIZED, "no secret is configured");
    if (!signature || !time)
        return hook_say(out, HOOK_UNAUTHORIZED, "X-Signature-256 or X-Timestamp is missing");
    buf_printf(&signed_text, "%s.", time);
    buf_add(&signed_text, request->body, request->size);
    if (strncmp(signature, prefix, sizeof prefix - 1) != 0 ||
        !verify_hmac_hex(proof->secret, signed_text.data, signed_text.size,
                         signature + sizeof prefix - 1))
        return hook_say(out, HOOK_UNAUTHORIZED, "the signature does not fit");
    if (!verify_time(time, request->now_ms, request->window_ms))
        return hook_say(out, HOOK_UNAUTHORIZED, "the signature is of another time");
    AUTO_JSON json_t *root = hook_parse(request->body, request->size, out);
    return root ? read_event(root, out) : HOOK_MALFORMED;
}

const struct hook_provider hook_generic = {"generic", judge};
