/* test_settle.c - hosts are filled, then all is taken off them: settle() finds a place for each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "model/model_json.h"
#include "planner/pack.h"
#include "planner/rng.h"
#include "planner/settle.h"

#define CAP 1000
#define MOST 400

struct drawn {
    int cpu, mem;
    bool twin;
};

/* What fills the hosts up to `percent`, in any order. */
static int draw(struct drawn *out, int hosts, int percent, struct rng *rng)
{
    int n = 0;
    for (int h = 0; h < hosts; h++)
        for (int cpu = 0, mem = 0; cpu < CAP * percent / 100; n++) {
            int more = 50 + (int)rng_below(rng, 350), with = 20 + (int)rng_below(rng, 200);
            more = cpu + more > CAP ? CAP - cpu : more;
            with = mem + with > CAP ? CAP - mem : with;
            out[n] = (struct drawn){more, with, cpu == 0};
            cpu += more;
            mem += with;
        }
    for (int k = n - 1; k > 0; k--) {
        int other = (int)rng_below(rng, (uint32_t)k + 1);
        struct drawn one = out[k];
        out[k] = out[other];
        out[other] = one;
    }
    return n;
}

/* Hosts that were filled, nothing on them; with `apart` one of each host's is a twin, of which no
 * host may have two. */
static struct model *emptied(int hosts, int percent, bool apart, uint64_t seed)
{
    struct err err = ERR_INIT;
    struct rng rng = {seed};
    struct drawn drawn[MOST];
    int n = draw(drawn, hosts, percent, &rng);
    AUTO_BUF struct buf text = BUF_INIT;
    buf_puts(&text, "{\"v\":1,\"hosts\":[");
    for (int h = 0; h < hosts; h++)
        buf_printf(&text, "%s{\"name\":\"h%d\",\"cpu_cap_millis\":%d,\"mem_cap_bytes\":%d}",
                   h ? "," : "", h, CAP, CAP);
    buf_puts(&text, "],\"services\":[{\"name\":\"other\"},{\"name\":\"twin\"}],\"instances\":[");
    for (int i = 0; i < n; i++)
        buf_printf(&text,
                   "%s{\"name\":\"i%d\",\"service\":\"%s\",\"host\":null,\"cpu_used_millis\":%d,"
                   "\"mem_used_bytes\":%d}",
                   i ? "," : "", i, apart && drawn[i].twin ? "twin" : "other", drawn[i].cpu,
                   drawn[i].mem);
    buf_puts(&text, "]");
    if (apart)
        buf_puts(&text, ",\"rules\":[{\"kind\":\"apart\",\"services\":[\"twin\"],\"max_per_host\":1}]");
    buf_puts(&text, "}");
    struct model *model = model_decode(text.data, text.size, &err);
    if (!model)
        fail_msg("%s", err.text);
    return model;
}

static void test_settle_when_hosts_were_full_then_nearly_always_all(void **state)
{
    static const struct {
        int percent, least; /* of 50 */
        bool apart;
    } cases[] = {{75, 50, false}, {88, 36, false}, {75, 48, true}};
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        int settled = 0, greedy = 0;
        for (uint64_t seed = 1; seed <= 50; seed++) {
            struct err err = ERR_INIT;
            AUTO(model) struct model *model =
                emptied(4 + (int)(seed % 9), cases[k].percent, cases[k].apart, seed);
            AUTO(space) struct space *space = space_new(model, NULL, 0, false, &err);
            AUTO(place) struct place *place = place_new(space, space->start);
            greedy += pack_unplaced(place) < 0;
            place_set(place, space->start);
            bool all = settle(place, INT64_MAX);
            assert_int_equal(all, place->n_unplaced == 0);
            assert_int_equal(all, place_holds(place));
            settled += all;
        }
        print_message("%d %%%s: all placed in %d of 50, by greed in %d\n", cases[k].percent,
                      cases[k].apart ? ", apart" : "", settled, greedy);
        assert_true(settled >= cases[k].least && (settled > greedy || greedy == 50));
    }
}

/* b stays unless it may move; then it makes room for a. */
static void test_settle_when_one_must_give_way_then_only_within_the_budget(void **state)
{
    static const char text[] =
        "{\"v\":1,\"hosts\":[{\"name\":\"h1\",\"cpu_cap_millis\":100,\"mem_cap_bytes\":100},"
        "{\"name\":\"h2\",\"cpu_cap_millis\":60,\"mem_cap_bytes\":100}],"
        "\"services\":[{\"name\":\"A\"},{\"name\":\"B\"}],\"instances\":["
        "{\"name\":\"a\",\"service\":\"A\",\"host\":null,\"cpu_used_millis\":90,\"mem_used_bytes\":1},"
        "{\"name\":\"b\",\"service\":\"B\",\"host\":\"h1\",\"cpu_used_millis\":50,\"mem_used_bytes\":1}]}";
    struct err err = ERR_INIT;
    AUTO(model) struct model *model = model_decode(text, strlen(text), &err);
    AUTO(space) struct space *space = model ? space_new(model, NULL, 0, false, &err) : NULL;
    (void)state;
    assert_non_null(space);
    AUTO(place) struct place *place = place_new(space, space->start);
    assert_false(settle(place, 1));
    assert_int_equal(place->at[1], 0);
    assert_true(settle(place, 2) && place_holds(place));
    assert_true(place->at[0] == 0 && place->at[1] == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_settle_when_hosts_were_full_then_nearly_always_all),
        cmocka_unit_test(test_settle_when_one_must_give_way_then_only_within_the_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
