/* fuzz_envelope.c - any bytes as a header frame, and as the body of a failure: an accepted header
 * writes and reads the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/wire/envelope.h"
#include "model/wire/failure.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct envelope env = {0}, again = {0};
    struct err err = ERR_INIT, failed = ERR_INIT;
    AUTO_BUF struct buf text = BUF_INIT;

    if (failure_decode((const char *)data, size, &failed) != -1 || failed.kind == ERR_NONE)
        abort();
    if (envelope_decode((const char *)data, size, &env, &err) < 0) {
        if (err.text[0] == '\0')
            abort();
        return 0;
    }
    envelope_encode(&env, &text);
    if (envelope_decode(text.data, text.size, &again, &err) < 0 || again.type != env.type ||
        again.cycle != env.cycle || again.attempt != env.attempt || again.seq != env.seq ||
        again.id != env.id)
        abort();
    return 0;
}
