/* head.h - what the head of a request for a receiver of spans decides, before there is a body. */
#ifndef REMAP_MONITOR_RECEIVER_HEAD_H
#define REMAP_MONITOR_RECEIVER_HEAD_H

#include <stdbool.h>
#include "adapters/otlp/otlp.h"

struct head { /* header values: NULL where there is none */
    const char *method, *path;
    const char *authorization, *content_type, *content_encoding, *content_length;
    bool known; /* the client has shown a certificate of ours */
    bool local; /* it is of this machine */
};

struct head_verdict {
    unsigned status;    /* of HTTP; 0: go on */
    const char *reason; /* why not; static */
    bool shows;         /* asks for OTLP_STATUS_PATH */
    bool json, gzip;    /* of the body, and json of the answer */
};

/* The token is read from its file now. Where that fails *err says why, and nobody is let in by it. */
struct head_verdict head_judge(const struct head *head, const struct otlp_settings *settings,
                               struct err *err);

#endif
