/* fuzz_otlp_json.c - any bytes as a trace request in JSON. */
#include "tests/fuzz/otlp_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    otlp_fuzz_body(data, size, true, false);
    return 0;
}
