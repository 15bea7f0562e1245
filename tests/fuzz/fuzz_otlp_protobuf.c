/* fuzz_otlp_protobuf.c - any bytes as a trace request in protobuf. */
#include "tests/fuzz/otlp_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    otlp_fuzz_body(data, size, false, false);
    return 0;
}
