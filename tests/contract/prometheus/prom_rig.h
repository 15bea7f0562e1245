/* prom_rig.h - a real Prometheus with blocks that promtool made from what a test writes, and an
 * application of three services on two hosts to measure with it. */
#ifndef REMAP_TESTS_PROM_RIG_H
#define REMAP_TESTS_PROM_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>

#include "adapters/identity.h"
#include "adapters/prometheus/prometheus.h"
#include "tests/support/server.h"

#define MIB 1048576.0
#define SCRAPE 15
#define SPAN 1800 /* s of data before `end` */
#define WINDOW 600
#define RIG_MAX_OPTIONS 12

/* One per program: what cmocka hands from setup to tests is not needed beside it. */
extern struct prom_rig {
    char *folder;
    struct server server;
    int64_t end; /* s: the last sample */
} prom_rig;

/* `write` writes OpenMetrics text, by the two below or of its own. 0, or -1. */
int prom_rig_open(void (*write)(FILE *out));
/* One without data, that takes remote writes. */
int prom_rig_open_empty(void);
int prom_rig_close(void **state);
/* start + rate × (t - from) at each t of [from, to], SCRAPE seconds apart; and of the whole span. */
void rig_series(FILE *out, const char *name, int64_t from, int64_t to, double start, double rate);
void rig_whole(FILE *out, const char *name, double start, double rate);

/* shop/front-1 and shop/cart-1 on n1 (10.0.0.1), shop/cart-2 and shop/db-0 on n2 (10.0.0.2). */
extern const struct app_scope rig_app;
struct inspection rig_inspection(void);
void rig_end(struct inspection *in); /* checks the model and frees everything */

/* `extra`: options and their values, ended by NULL. */
struct source rig_source(struct option options[RIG_MAX_OPTIONS], const char *const extra[]);
int rig_try_measure(const char *const extra[], struct inspection *in, struct err *err);
int rig_try_trace(const char *const extra[], int64_t end, struct inspection *in, struct err *err);
void rig_measure(const char *const extra[], struct inspection *in);
void rig_trace(const char *const extra[], struct inspection *in);

void assert_near(double got, double wanted, double tolerance);
int64_t rig_cpu(const struct inspection *in, const char *instance);    /* millicores */
int64_t rig_memory(const struct inspection *in, const char *instance); /* bytes */
/* The row between two services, whichever of their instances bear it; or NULL. */
const struct message *rig_row(const struct inspection *in, const char *src, const char *dst);

#endif
