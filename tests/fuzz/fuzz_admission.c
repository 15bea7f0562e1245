/* fuzz_admission.c - any bytes as an AdmissionReview: answered 400, or 200 with a review that
 * admits the pod; a patch, where there is one, is base64 of an RFC 6902 patch. */
#include <openssl/evp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/kubernetes/admission.h"
#include "model/base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_patch(const char *coded)
{
    size_t size = strlen(coded);
    AUTO_FREE char *text = mem_alloc(size + 1);
    if (EVP_DecodeBlock((unsigned char *)text, (const unsigned char *)coded, (int)size) < 0)
        abort();
    AUTO_JSON json_t *patch = json_loads(text, 0, NULL);
    if (json_array_size(patch) != 2)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(wishes) struct wishes *wishes = wishes_new();
    AUTO_BUF struct buf out = BUF_INIT;
    struct err err = ERR_INIT;
    /* The owner of the corpus's pods. */
    const struct wish wish = {"shop", "u1", "node-3", "7/2/cart-old", 1000};
    wishes_add(wishes, &wish);
    unsigned status = admission_answer(wishes, (const char *)data, size, 0, &out);
    AUTO_JSON json_t *answer = json_parse(out.data, out.size, &json_limits_document, &err);
    json_t *response = json_object_get(answer, "response");
    if (!answer || (status != 200 && status != 400))
        abort();
    if (status == 200 && !json_is_true(json_object_get(response, "allowed")))
        abort();
    const char *patch = json_string_value(json_object_get(response, "patch"));
    if (patch)
        check_patch(patch);
    return 0;
}
