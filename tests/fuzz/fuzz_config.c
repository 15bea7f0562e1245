/* fuzz_config.c - any bytes as a configuration: refused with file and reason, or read into one
 * whose references hold and whose values are in their ranges. Also the strict YAML reader. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void app_holds(const struct config *config, const struct config_app *app)
{
    must(app->name && config_app(config, app->name) == app);
    must(app->cluster && config_source(config, app->cluster));
    must(app->orchestrator && config_source(config, app->orchestrator));
    for (size_t i = 0; i < app->n_metrics; i++)
        must(config_source(config, app->metrics[i]) != NULL);
    for (size_t i = 0; i < app->n_messages; i++)
        must(config_source(config, app->messages[i]) != NULL);
    must(app->interval_ms >= 1000 && app->window_ms >= 1000);
    must(app->interval_min_ms <= app->interval_max_ms);
    must(app->weight >= 0 && app->weight <= 1);
    must(app->max_moves == -1 || app->max_moves >= 1);
    must(app->mode >= MODE_OBSERVE && app->mode <= MODE_ACT);
    for (int64_t hour = 0; hour < 7 * 24; hour++)
        (void)config_app_open(app, hour * 3600000);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err = ERR_INIT;
    AUTO(config) struct config *config = config_parse((const char *)data, size, "f.yaml", &err);
    if (!config) {
        must(err.kind == ERR_CONFIG || err.kind == ERR_TOO_LARGE);
        must(strncmp(err.text, "f.yaml:", 7) == 0);
        return 0;
    }
    must(config->n_apps > 0 && config->n_sources > 0);
    for (size_t i = 0; i < config->n_apps; i++)
        app_holds(config, &config->apps[i]);
    return 0;
}
