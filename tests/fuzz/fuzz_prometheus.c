/* fuzz_prometheus.c - answers of a Prometheus, cut in two anywhere, and texts of queries: the input up
 * to the first newline is also expanded as a query. */
#include "adapters/prometheus/prometheus.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int take_row(void *ctx, const char *const values[], double value, struct err *err)
{
    size_t *total = ctx;
    (void)err;
    if (!isfinite(value))
        abort();
    *total += strlen(values[0]) + strlen(values[1]);
    return 0;
}

static void read_answer(const char *text, size_t size, size_t cut)
{
    static const char *const labels[] = {"namespace", "pod"};
    size_t total = 0;
    struct err err = ERR_INIT;
    struct prom_answer *answer = mem_alloc(sizeof *answer);
    answer->labels = labels;
    answer->n_labels = ARRAY_LEN(labels);
    answer->row = take_row;
    answer->ctx = &total;
    prom_answer_begin(answer);
    if (!prom_answer_feed(answer, text, cut, &err) &&
        !prom_answer_feed(answer, text + cut, size - cut, &err))
        prom_answer_end(answer, &err);
    prom_answer_wipe(answer);
    free(answer);
}

static void read_query(const char *text, size_t size)
{
    static const struct prom_var vars[] = {{"by", "a,b"}, {"matchers", ""}, {"window", "5ms"}};
    struct err err = ERR_INIT;
    AUTO_BUF struct buf out = BUF_INIT;
    AUTO_BUF struct buf names = BUF_INIT;
    AUTO_FREE char *query = mem_strndup(text, size);
    prom_expand(query, vars, ARRAY_LEN(vars), &out, &err);
    prom_metric_names(query, &names);
    prom_matchers_check(query, &err);
    AUTO_FREE char *owned = NULL;
    size_t n;
    free(prom_list(query, &n, &owned));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    const char *line = size ? memchr(text, '\n', size) : NULL;
    read_query(text, line ? (size_t)(line - text) : size);
    read_answer(text, size, size / 2);
    return 0;
}
