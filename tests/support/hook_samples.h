/* hook_samples.h - what CI systems post, cut down to what is read (interfaces.md 6). */
#ifndef REMAP_TESTS_HOOK_SAMPLES_H
#define REMAP_TESTS_HOOK_SAMPLES_H

#define SAMPLE_GITHUB_DEPLOYMENT                                                                  \
    "{\"action\":\"created\",\"deployment_status\":{\"id\":209916254,\"state\":\"success\","      \
    "\"environment\":\"production\",\"created_at\":\"2019-05-15T15:20:55Z\"},\"deployment\":"      \
    "{\"id\":145988746,\"sha\":\"f95f852b\",\"ref\":\"master\",\"task\":\"deploy\",\"payload\":{},"  \
    "\"environment\":\"production\"},\"repository\":{\"full_name\":\"Codertocat/Hello-World\"}}"

#define SAMPLE_GITHUB_PAYLOAD(payload)                                                            \
    "{\"deployment_status\":{\"id\":2,\"state\":\"success\"},\"deployment\":{\"id\":1,\"payload\":"  \
    payload "},\"repository\":{\"full_name\":\"a/b\"}}"

#define SAMPLE_WORKFLOW(action, conclusion, event)                                                \
    "{\"action\":\"" action "\",\"workflow_run\":{\"id\":30,\"run_attempt\":2,\"name\":\"deploy\","  \
    "\"event\":\"" event "\",\"head_branch\":\"main\",\"head_sha\":\"c0ffee\",\"conclusion\":\""    \
    conclusion "\",\"head_commit\":{\"message\":\"ship it [remap: interval=600s]\"}},"             \
    "\"workflow\":{\"path\":\".github/workflows/deploy.yml\"},\"repository\":{\"full_name\":"       \
    "\"a/b\"}}"

#define SAMPLE_GITLAB_DEPLOYMENT(status)                                                          \
    "{\"object_kind\":\"deployment\",\"status\":\"" status "\",\"deployment_id\":15,"              \
    "\"environment\":\"staging\",\"project\":{\"id\":30,\"path_with_namespace\":\"root/test\"},"    \
    "\"short_sha\":\"279484c0\",\"commit_title\":\"Add new file\"}"

#define SAMPLE_GITLAB_PIPELINE(status)                                                            \
    "{\"object_kind\":\"pipeline\",\"object_attributes\":{\"id\":31,\"ref\":\"master\",\"tag\":"     \
    "false,\"sha\":\"bcbb5ec3\",\"source\":\"push\",\"status\":\"" status "\",\"finished_at\":"      \
    "\"2016-08-12 15:26:29 UTC\",\"variables\":[{\"key\":\"REMAP_INTERVAL\",\"value\":\"600\"}]},"   \
    "\"project\":{\"path_with_namespace\":\"a/b\"},\"commit\":{\"message\":\"test\\n\"},\"builds\":"  \
    "[{\"name\":\"later\",\"status\":\"manual\",\"environment\":{\"name\":\"eu\",\"action\":\"start\"}"  \
    "},{\"name\":\"production\",\"status\":\"success\",\"environment\":{\"name\":\"production\","     \
    "\"action\":\"start\"}}]}"

#define SAMPLE_TRAVIS(type, state, status, message)                                               \
    "{\"id\":221266925,\"number\":\"1\",\"type\":\"" type "\",\"state\":" state ",\"status\":"      \
    status ",\"result\":" status ",\"status_message\":\"" message "\",\"finished_at\":"             \
    "\"2017-04-12T08:50:08Z\",\"commit\":\"3e95ab9e\",\"branch\":\"master\",\"tag\":null,"           \
    "\"message\":\"Create README.md [remap: interval=600s]\",\"pull_request\":false,"               \
    "\"repository\":{\"id\":12978081,\"name\":\"ci-test\",\"owner_name\":\"vangie\"}}"

#endif
