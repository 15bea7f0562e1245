/* fuzz_influxdb.c - answers of an InfluxDB, cut in two anywhere. */
#include "adapters/influxdb/influxdb.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int take_row(void *ctx, const char *const tags[], double value, struct err *err)
{
    size_t *total = ctx;
    (void)err;
    if (!isfinite(value))
        abort();
    *total += strlen(tags[0]) + strlen(tags[1]);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const tags[] = {"namespace_name", "pod_name"};
    const char *text = (const char *)data;
    size_t total = 0;
    struct err err = ERR_INIT;
    struct influx_answer *answer = mem_alloc(sizeof *answer);
    answer->tags = tags;
    answer->n_tags = ARRAY_LEN(tags);
    answer->row = take_row;
    answer->ctx = &total;
    influx_answer_begin(answer);
    if (!influx_answer_feed(answer, text, size / 2, &err) &&
        !influx_answer_feed(answer, text + size / 2, size - size / 2, &err))
        influx_answer_end(answer, &err);
    influx_answer_wipe(answer);
    free(answer);
    return 0;
}
