/* usage.h - from rows of a metrics store to the usage of instances and hosts: what every metrics
 * adapter does once it has labels and numbers. */
#ifndef REMAP_ADAPTERS_USAGE_H
#define REMAP_ADAPTERS_USAGE_H

#include "adapters/adapter.h"

#define USAGE_NAMED 5 /* names in a note; the rest is a number */
#define USAGE_NAME_BYTES 320

/* One quantity of all instances, or of all hosts. */
struct usage_sums {
    const struct app_scope *app;
    struct inspection *in;
    bool hosts, spaced; /* spaced: the first value of a row is the namespace */
    size_t n_values;    /* of a row; the names after the namespace: first that fits */
    double *total;      /* per instance or host; negative: no sample */
    int64_t unmapped;
    char names[USAGE_NAMED][USAGE_NAME_BYTES];
};

/* Makes `total`; the caller frees it. */
void usage_sums_begin(struct usage_sums *sums, const struct app_scope *app, struct inspection *in,
                      bool hosts, bool spaced, size_t n_values);
/* ctx: struct usage_sums. Rows of one thing add up; rows of nothing we know are counted. */
int usage_sums_row(void *ctx, const char *const values[], double value, struct err *err);
/* A note about the rows of unknown things: of pods only where the app has namespaces, since others'
 * pods are no flaw. */
void usage_sums_note(const struct usage_sums *sums, const char *source, const char *what);

/* Sets the usage from totals in cores and bytes (NULL: was not asked); notes instances without. */
void usage_set_pods(struct inspection *in, const char *source, const double *cpu,
                    const double *memory);
/* A host's own use is what the node uses less what our instances on it use: pods come before. */
void usage_set_hosts(struct inspection *in, const double *cpu, const double *memory);

/* True when a thing of this namespace may be the app's. */
bool usage_in_scope(const struct app_scope *app, const char *space);

#endif
