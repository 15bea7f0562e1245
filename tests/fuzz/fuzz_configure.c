/* fuzz_configure.c - the message that tells the monitor what to listen to. */
#include <stdint.h>
#include <stdlib.h>

#include "monitor/webhook/settings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err = ERR_INIT;
    AUTO(settings) struct settings *settings = NULL;
    if (settings_decode((const char *)data, size, &settings, &err) == 0 && settings &&
        (!settings->listen || settings->rate < 1))
        abort();
    return 0;
}
