/* test_adapter_options.c - every option of every source is told in the shipped configuration, and
 * every adapter describes itself. */
#include "adapters/adapter.h"
#include "model/base/file.h"
#include "model/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

static char *shipped; /* etc/remap.yaml */

static int setup(void **state)
{
    (void)state;
    struct buf text = BUF_INIT;
    struct err err = ERR_INIT;
    if (file_read(REMAP_SOURCE_DIR "/etc/remap.yaml", 1 << 20, &text, &err))
        return -1;
    shipped = buf_take(&text);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    mem_free_auto(&shipped);
    return 0;
}

static void verify(const char *adapter, const char *summary, const struct option_spec *options)
{
    assert_true(summary && *summary);
    for (; options && options->name; options++) {
        assert_true(options->help && *options->help);
        if (!strstr(shipped, options->name))
            fail_msg("etc/remap.yaml does not mention %s of %s", options->name, adapter);
    }
}

static void test_options_when_shipped_then_all_are_told(void **state)
{
    (void)state;
    for (size_t i = 0; cluster_adapters[i]; i++)
        verify(cluster_adapters[i]->name, cluster_adapters[i]->summary,
               cluster_adapters[i]->options);
    for (size_t i = 0; metrics_adapters[i]; i++)
        verify(metrics_adapters[i]->name, metrics_adapters[i]->summary,
               metrics_adapters[i]->options);
    for (size_t i = 0; message_adapters[i]; i++)
        verify(message_adapters[i]->name, message_adapters[i]->summary,
               message_adapters[i]->options);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options_when_shipped_then_all_are_told),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
