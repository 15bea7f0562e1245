/* travis.c - Travis CI: a form whose field `payload` is signed with RSA-SHA1 by the installation's
 * key (interfaces.md 6; the paper's own listener, §6.1). One post per build; a build that passed is
 * the deployment. */
#include <stdio.h>
#include <string.h>

#include "model/base/json.h"
#include "monitor/webhook/hook.h"
#include "monitor/webhook/verify.h"

static bool one_of(const char *text, const char *const names[])
{
    for (size_t i = 0; text && names[i]; i++)
        if (strcmp(text, names[i]) == 0)
            return true;
    return false;
}

/* `status` and `result` say 1 also for "not yet completed", or null; old payloads lack `state`. */
static bool passed(const json_t *root)
{
    static const char *const good[] = {"Passed", "Fixed", NULL};
    const json_t *state = hook_value(root, "state"), *status = hook_value(root, "status");
    const char *message = hook_string(root, "status_message");
    if (!status)
        status = hook_value(root, "result");
    if (!message)
        message = hook_string(root, "result_message");
    return (!state || one_of(json_string_value(state), (const char *const[]){"passed", NULL})) &&
           json_is_integer(status) && json_integer_value(status) == 0 && one_of(message, good);
}

static enum hook_verdict read_build(const json_t *root, struct hook_event *out)
{
    const char *type = hook_string(root, "type"),
               *owner = hook_string(root, "repository.owner_name");
    const char *name = hook_string(root, "repository.name"), *tag = hook_string(root, "tag");
    const char *finished = hook_string(root, "finished_at");
    const json_t *pull = hook_value(root, "pull_request");
    char id[HOOK_ID_SIZE];
    hook_id(root, "id", id);
    if (!id[0] || !owner || !name)
        return hook_say(out, HOOK_MALFORMED,
                        "id, repository.owner_name or repository.name is missing");
    if ((type && strcmp(type, "pull_request") == 0) || json_is_true(pull))
        return hook_say(out, HOOK_IGNORED, "a pull request");
    if (!passed(root)) {
        const char *state = hook_string(root, "state");
        return hook_say(out, HOOK_IGNORED, "the build is %s", state ? state : "not passed");
    }
    char text[2 * HOOK_NAME_SIZE + 2];
    snprintf(text, sizeof text, "%.253s/%.253s", owner, name);
    hook_copy(out->repository, sizeof out->repository, text);
    out->tells_branch = true;
    hook_add(&out->branches, tag ? tag : hook_string(root, "branch"));
    hook_copy(out->commit, sizeof out->commit, hook_string(root, "commit"));
    snprintf(out->delivery, sizeof out->delivery, "%.60s", id);
    /* a build that is started again keeps its id */
    snprintf(text, sizeof text, "%.60s %.40s", id, finished ? finished : "");
    hook_copy(out->deployment, sizeof out->deployment, finished ? text : id);
    hook_label(out, hook_string(root, "message"));
    return HOOK_DEPLOYED;
}

static enum hook_verdict judge(const struct hook_request *request, const struct hook_proof *proof,
                               struct hook_event *out)
{
    const char *signature = hook_header(request, "Signature");
    AUTO_BUF struct buf payload = BUF_INIT;
    if (!proof->public_key)
        return hook_say(out, HOOK_UNAUTHORIZED, "no public key is configured");
    if (!signature)
        return hook_say(out, HOOK_UNAUTHORIZED, "no signature");
    if (hook_form_payload(request->body, request->size, &payload))
        return hook_say(out, HOOK_MALFORMED, "no form with a payload");
    if (!verify_rsa_sha1(proof->public_key, payload.data, payload.size, signature))
        return hook_say(out, HOOK_UNAUTHORIZED, "the signature does not fit");
    AUTO_JSON json_t *root = hook_parse(payload.data, payload.size, out);
    return root ? read_build(root, out) : HOOK_MALFORMED;
}

const struct hook_provider hook_travis = {"travis", judge};
