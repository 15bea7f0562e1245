/* store_support.h - a store in a directory of its own, and a small model with a plan to put into it:
 *
 *     n1: front-1, db-1     n2: cart-1, front-2     n3: nothing      cart-2 is not placed
 *     front-1 → cart-1  10 messages, 1000 bytes, 4.5 ms      cart-1 → db-1  5, unknown bytes
 *     front → db        3 messages at service level
 *     plan: 1 cart-1 n2 → n1, 2 front-2 n2 → n1 */
#ifndef REMAP_TESTS_STORE_SUPPORT_H
#define REMAP_TESTS_STORE_SUPPORT_H

#include "model/affinity.h"
#include "model/plan.h"
#include "model/store/store.h"

struct store_fixture {
    char *dir, *path;
    struct store *store;
};

/* cmocka setup and teardown; *state is a struct store_fixture. */
int store_fixture_open(void **state);
int store_fixture_close(void **state);

struct model *store_support_model(void);
struct analysis *store_support_analysis(const struct model *model);
struct plan *store_support_plan(const struct model *model);

/* n services of one instance each on n hosts, edges in a ring and across, `rows` of them. */
struct model *store_support_large_model(int n, int rows);

/* A new cycle of app "shop" in state collecting. */
int64_t store_support_cycle(struct store *store);
/* The whole story of one cycle: snapshot, analysis, plan, done at now_ms. Returns its id. */
int64_t store_support_full_cycle(struct store *store, const struct model *model, int64_t now_ms);

/* The first column of the first row as an integer, -1 when NULL or no row. Fails the test. */
int64_t store_support_number(struct store *store, const char *sql);
/* All rows of all columns, "a|b\nc|d\n"; caller frees. */
char *store_support_text(struct store *store, const char *sql);

#endif
