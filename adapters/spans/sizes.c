/* sizes.c - the tags that carry sizes, in the order of interfaces.md 5.2: first family wins. */
#include "adapters/spans/sizes.h"

#include <stdbool.h>
#include <string.h>

#include "model/model.h"

struct size_tag {
    const char *key;
    uint8_t size;
    uint8_t family;
    bool response;
    bool adds; /* one number per event */
};

#define TAG(key, family, response, adds) {key, sizeof(key) - 1, family, response, adds}

static const struct size_tag tags[] = {
    TAG("http.request.size", 0, false, false),
    TAG("http.response.size", 0, true, false),
    TAG("request_size", 1, false, false),
    TAG("response_size", 1, true, false),
    TAG("http.request.body.size", 2, false, false),
    TAG("http.response.body.size", 2, true, false),
    TAG("messaging.message.body.size", 3, false, false),
    TAG("messaging.message.envelope.size", 4, false, false),
    TAG("http.request.header.content-length", 5, false, false),
    TAG("http.response.header.content-length", 5, true, false),
    TAG("http.request_content_length", 6, false, false),
    TAG("http.response_content_length", 6, true, false),
    TAG("http.request_content_length_uncompressed", 7, false, false),
    TAG("http.response_content_length_uncompressed", 7, true, false),
    TAG("message.uncompressed_size", 8, false, true),
    TAG("message.compressed_size", 9, false, true),
    TAG("messaging.message_payload_size_bytes", 10, false, false),
    TAG("request.size", 11, false, false),
    TAG("response.size", 11, true, false),
    TAG("requestSize", 12, false, false),
    TAG("responseSize", 12, true, false),
    TAG("message.size", 13, false, false),
};

/* -1: not a decimal number from 0 to 10^15. */
static int64_t decimal(const char *text, size_t size)
{
    if (size == 0 || size > 16)
        return -1;
    int64_t value = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '9')
            return -1;
        value = value * 10 + (text[i] - '0');
    }
    return value <= MODEL_MAX_NUMBER ? value : -1;
}

void span_sizes_tag(struct span_sizes *sizes, const char *key, size_t key_size, const char *value,
                    size_t value_size)
{
    const struct size_tag *tag = NULL;
    for (size_t i = 0; i < sizeof tags / sizeof *tags && !tag; i++)
        if (tags[i].size == key_size && memcmp(tags[i].key, key, key_size) == 0)
            tag = &tags[i];
    if (!tag || tag->family > sizes->family)
        return;
    int64_t number = decimal(value, value_size);
    if (number < 0)
        return;
    if (tag->family < sizes->family)
        *sizes = (struct span_sizes){tag->family, -1, -1};
    int64_t *side = tag->response ? &sizes->response : &sizes->request;
    if (tag->adds && *side >= 0)
        number += *side;
    *side = number <= MODEL_MAX_NUMBER ? number : MODEL_MAX_NUMBER;
}

int64_t span_sizes_total(const struct span_sizes *sizes)
{
    if (sizes->request < 0 && sizes->response < 0)
        return -1;
    int64_t total = (sizes->request < 0 ? 0 : sizes->request) +
                    (sizes->response < 0 ? 0 : sizes->response);
    return total <= MODEL_MAX_NUMBER ? total : MODEL_MAX_NUMBER;
}
