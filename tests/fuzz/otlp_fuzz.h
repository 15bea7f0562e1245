/* otlp_fuzz.h - any bytes as the body of a request for a receiver of spans, for the harnesses of its
 * encodings. */
#ifndef REMAP_TESTS_OTLP_FUZZ_H
#define REMAP_TESTS_OTLP_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Posts it twice to a store, whose window must make a valid model each time; aborts where it does
 * not, where a refused request left something behind, or where the answer is none of the protocol's. */
void otlp_fuzz_body(const uint8_t *data, size_t size, bool json, bool gzip);

#endif
