/* front.h - the grammar of all three trace formats and the hands that fill spans (inside
 * adapters/spans). One grammar, so that the format is known by what the document holds. */
#ifndef REMAP_SPANS_FRONT_H
#define REMAP_SPANS_FRONT_H

#include "adapters/spans/joiner.h"
#include "adapters/spans/tags.h"
#include "adapters/spans/walk.h"
#include "model/base/names.h"

enum span_state {
    S_DOCUMENT, /* outside */
    S_LIST,     /* [span…], [[span…]…], [any document…] */
    S_ANY,      /* {…}: a Zipkin span, a Jaeger answer, an OTLP request */
    S_Z_TRACE,
    S_Z_SPAN,
    S_Z_LOCAL,
    S_Z_REMOTE,
    S_Z_TAGS,
    S_J_DATA,
    S_J_TRACE,
    S_J_SPANS,
    S_J_SPAN,
    S_J_REFERENCES,
    S_J_REFERENCE,
    S_J_LOGS,
    S_J_LOG,
    S_J_PROCESSES,
    S_J_PROCESS,
    S_J_OWN_PROCESS, /* inside a span */
    S_O_RESULT,
    S_O_RESOURCES,
    S_O_RESOURCE_SPANS,
    S_O_RESOURCE,
    S_O_SCOPES,
    S_O_SCOPE,
    S_O_SPANS,
    S_O_SPAN,
    S_O_EVENTS,
    S_O_EVENT,
    S_TAGS, /* [{key, value}…] of Jaeger and OTLP */
    S_TAG,
    S_TAG_VALUE,
    S_TAG_ARRAY,
    S_TAG_ITEMS,
    S_TAG_ITEM,
    S_N_STATES
};

enum span_field {
    F_NONE,
    F_KNOWN, /* says which format it is, even where null */
    F_TRACE,
    F_ID,
    F_PARENT,
    F_KIND,
    F_START,
    F_DURATION,
    F_START_NANO,
    F_END_NANO,
    F_SHARED,
    F_LOCAL_NAME,
    F_LOCAL_ADDRESS,
    F_REMOTE_NAME,
    F_REMOTE_ADDRESS,
    F_Z_TAG,
    F_J_PROCESS,
    F_J_SERVICE,
    F_J_REF_TYPE,
    F_J_REF_TRACE,
    F_J_REF_SPAN,
    F_O_KIND,
    F_TAG_KEY,
    F_TAG_VALUE
};

typedef int span_sink_f(void *ctx, const struct span *span, struct err *err);

struct process { /* who reports spans in Jaeger */
    char *key; /* "p1" */
    int32_t node; /* -1 until it is described */
};

struct pending { /* a span whose process is described later in the document */
    struct span span;
    int32_t process;
};

struct span_front {
    struct span_table *table;
    span_sink_f *sink;
    void *sink_ctx;
    int64_t *rejected; /* counts spans without valid ids (OTLP: 16 and 8 bytes); NULL: errors */

    struct span span; /* being read */
    bool has_trace, has_id;
    struct span_tags tags;          /* of the span */
    struct span_tags *into;         /* where tags go now: span's or process's */
    int32_t local_name, remote_name;
    char local_address[64], remote_address[64];
    bool known; /* the format of this S_ANY is known */

    struct span_tags process_tags;
    struct process *processes; /* of this trace or resource */
    size_t n_processes;
    struct names process_names;
    int32_t process; /* of the span, or being described; -1 none */
    struct pending *pending;
    size_t n_pending;

    struct { /* a Jaeger reference */
        bool child_of, has_trace, has_id;
        uint64_t hi, lo, id;
    } reference;
    bool parent_is_child_of;
    bool resource_seen; /* OTLP */
    int32_t resource_node;
    int otlp_kind;

    char tag_key[64]; /* of S_TAG; longer keys are none that we know */
    size_t tag_key_size;
    char tag_value[256]; /* longer values are no names and no numbers */
    size_t tag_value_size;
    bool tag_has_value;
};

/* Microseconds of 30,000 years; nanoseconds of 30: those are divided first. */
#define SPAN_MAX_NUMBER INT64_C(1000000000000000000)

extern const struct walk_grammar span_grammar;
extern const struct walk_grammar otlp_grammar; /* one OTLP request, nothing else */

/* Every span that is read goes to sink(ctx). */
struct span_front *span_front_new(struct span_table *table, span_sink_f *sink, void *ctx);
void span_front_free(struct span_front *front);
AUTO_DEFINE(span_front)

/* Shared by the formats. */
int span_value(struct span_front *front, uint8_t field, const struct walk_value *value,
               struct err *err);
void span_tag_value(struct span_front *front, uint8_t field, const struct walk_value *value);
void span_begin(struct span_front *front);
int span_end(struct span_front *front, struct err *err); /* checks ids, hands to the sink */
int span_hex(const struct walk_value *value, const char *what, size_t max_digits, uint64_t *hi,
             uint64_t *lo, struct err *err);
/* A whole number, as such or as text; -1 in *out when negative or above SPAN_MAX_NUMBER. */
int span_integer(const struct walk_value *value, const char *what, int64_t *out, struct err *err);
/* Index of the process with this key; -1 and ERR_TOO_LARGE. */
int span_process(struct span_front *front, const char *key, size_t size, struct err *err);
void span_processes_reset(struct span_front *front);
/* Keeps the span until its process is known; beyond JOINER_WINDOW it is late. */
int span_wait(struct span_front *front, struct err *err);
int span_flush(struct span_front *front, struct err *err);

/* Sets kind and remote from OTLP's number of a kind and the span's tags. */
void span_kind_of_otlp(struct span *span, int kind, const struct span_tags *tags,
                       struct span_table *table);

/* zipkin.c, jaeger.c, otlp.c: their states and fields. */
int zipkin_leave(struct span_front *front, uint8_t state, struct err *err);
int zipkin_value(struct span_front *front, uint8_t field, const struct walk_value *value,
                 struct err *err);
int jaeger_enter(struct span_front *front, uint8_t state, const struct walk_value *key,
                 struct err *err);
int jaeger_leave(struct span_front *front, uint8_t state, struct err *err);
int jaeger_value(struct span_front *front, uint8_t field, const struct walk_value *value,
                 struct err *err);
void otlp_enter(struct span_front *front, uint8_t state);
int otlp_leave(struct span_front *front, uint8_t state, struct err *err);
int otlp_value(struct span_front *front, uint8_t field, const struct walk_value *value,
               struct err *err);

#endif
