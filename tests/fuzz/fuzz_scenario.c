/* fuzz_scenario.c - any text as a scenario; what is accepted must come to life and have a state
 * that the interface can print. */
#include "adapters/simulated/server/api.h"
#include "adapters/simulated/server/history.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void live(const struct scenario *s)
{
    struct err err = ERR_INIT;
    AUTO(sim) struct sim *sim = sim_open(s, NULL, INT64_C(1700000000000), 0, &err);
    static const char *const paths[] = {"/v1/cluster", "/v1/metrics", "/v1/messages",
                                        "/v1/response", "/v1/state"};
    if (!sim)
        return;
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct api_answer answer;
        struct api_request req = {
            .method = "GET", .path = paths[i], .wall_ms = INT64_C(1700000060000)};
        api_handle(sim, &req, &answer);
        if (answer.status == 200) { /* a 500 may only come from a limit */
            json_t *tree =
                json_parse(answer.body.data, answer.body.size, &json_limits_document, &err);
            if (!tree)
                abort();
            json_decref(tree);
        }
        buf_wipe(&answer.body);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err = ERR_INIT;
    AUTO(scenario)
    struct scenario *s = scenario_parse((const char *)data, size, "fuzz.yaml", -1, &err);
    int64_t replicas = 0;
    for (size_t i = 0; s && i < s->n_services; i++)
        replicas += s->services[i].replicas;
    if (s && replicas <= 300 && s->n_hosts <= 300) /* larger ones only cost time */
        live(s);
    return 0;
}
