/* slow_planner.c - a planner that works for several deadlines, tells so all the while as remap-planner
 * does, and then finds nothing to move and says what a restart costs. */
#include <jansson.h>
#include <stdlib.h>

#include "model/base/clock.h"
#include "model/base/json.h"
#include "model/wire/stage.h"

#define STEP_MS 100

static void put_placement(const json_t *model, struct buf *out)
{
    size_t i;
    json_t *instance;
    json_array_foreach(json_object_get(model, "instances"), i, instance)
    {
        const char *host = json_string_value(json_object_get(instance, "host"));
        buf_printf(out, "%s{\"instance\":\"%s\",\"host\":", i ? "," : "",
                   json_string_value(json_object_get(instance, "name")));
        buf_printf(out, host ? "\"%s\"}" : "null}", host);
    }
}

static int plan(struct stage *stage, const struct stage_request *request, struct buf *result,
                int *exit_code, struct err *err)
{
    (void)exit_code;
    AUTO_JSON json_t *tree = json_parse(request->body, request->size, &json_limits_document, err);
    if (!tree)
        return -1;
    const json_t *model = json_object_get(tree, "model");
    const json_t *options = json_object_get(tree, "options");
    /* time_limit is a third of the deadline in this test: eight are more than two deadlines. */
    int64_t limit = json_integer_value(json_object_get(options, "time_limit_ms"));
    int64_t start = clock_mono_ms(), done = 0;
    while (clock_mono_ms() - start < 8 * limit) {
        clock_sleep_ms(STEP_MS);
        if (stage_progress(stage, ++done, "\"text\":\"at work\"", err) < 0)
            return -1;
    }
    buf_printf(result,
               "{\"v\":1,\"requested\":\"hba\",\"planner\":\"hba\",\"why\":\"worked for two "
               "deadlines, a restart costs %g\",\"granularity\":\"instance\",\"objective\":\"affinity\","
               "\"status\":\"feasible\",\"cut\":false,\"affinity_before\":0,"
               "\"affinity_after\":0,\"affinity_bound\":null,\"gap\":null,\"hosts_before\":5,"
               "\"hosts_after\":5,\"hosts_bound\":null,\"restarts\":0,\"coverage\":null,"
               "\"solve_ms\":1,\"moves\":[],\"placement\":[",
               json_number_value(json_object_get(options, "min_gain")));
    put_placement(model, result);
    buf_puts(result, "],\"discarded\":[],\"unordered\":false,\"cycles\":[]}");
    return 0;
}

static const struct stage_handler handlers[] = {{MSG_PLAN, plan}};

static const struct stage_program program = {.party = PARTY_PLANNER,
                                             .summary = "takes its time",
                                             .handlers = handlers,
                                             .n_handlers = 1};

int main(int argc, char **argv)
{
    return stage_main(&program, argc, argv);
}
