/* liar_planner.c - a planner whose plan is a document like any other, but for a move of the first
 * instance of service b from a host where it is not. */
#include <jansson.h>
#include <string.h>

#include "model/base/json.h"
#include "model/wire/stage.h"

static const char *instance_of_b(const json_t *model)
{
    size_t i;
    json_t *instance;
    json_array_foreach(
        json_object_get(model, "instances"), i,
        instance) if (strcmp(json_string_value(json_object_get(instance, "service")), "b") ==
                      0) return json_string_value(json_object_get(instance, "name"));
    return "";
}

static void put_placement(const json_t *model, const char *moved, struct buf *out)
{
    size_t i;
    json_t *instance;
    json_array_foreach(json_object_get(model, "instances"), i, instance)
    {
        const char *name = json_string_value(json_object_get(instance, "name"));
        const char *host = json_string_value(json_object_get(instance, "host"));
        buf_printf(out, "%s{\"instance\":\"%s\",\"host\":\"%s\"}", i ? "," : "", name,
                   strcmp(name, moved) == 0 ? "n-1" : host);
    }
}

static int plan(struct stage *stage, const struct stage_request *request, struct buf *result,
                int *exit_code, struct err *err)
{
    (void)stage;
    (void)exit_code;
    AUTO_JSON json_t *tree = json_parse(request->body, request->size, &json_limits_document, err);
    if (!tree)
        return -1;
    const json_t *model = json_object_get(tree, "model");
    const char *name = instance_of_b(model);
    buf_printf(result,
               "{\"v\":1,\"requested\":\"hba\",\"planner\":\"hba\",\"why\":\"\","
               "\"granularity\":\"instance\",\"objective\":\"affinity\","
               "\"status\":\"feasible\",\"cut\":false,\"affinity_before\":0,"
               "\"affinity_after\":1,\"affinity_bound\":null,\"gap\":null,\"hosts_before\":5,"
               "\"hosts_after\":4,\"hosts_bound\":null,\"restarts\":1,\"coverage\":null,"
               "\"solve_ms\":1,\"moves\":[{\"seq\":1,\"instance\":\"%s\",\"service\":\"b\","
               "\"source\":\"n-5\",\"target\":\"n-1\",\"gain\":1}],\"placement\":[",
               name);
    put_placement(model, name, result);
    buf_puts(result, "],\"discarded\":[],\"unordered\":false,\"cycles\":[]}");
    return 0;
}

static const struct stage_handler handlers[] = {{MSG_PLAN, plan}};

static const struct stage_program program = {.party = PARTY_PLANNER,
                                             .summary = "makes plans that do not hold",
                                             .handlers = handlers,
                                             .n_handlers = 1};

int main(int argc, char **argv)
{
    return stage_main(&program, argc, argv);
}
