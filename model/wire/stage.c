/* stage.c - what a handler may ask of the stage that runs it: progress, notes, intents, waiting.
 * As a filter there is no bus: notes and progress are lines on stderr, intents are granted. */
#include "model/wire/stage.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include "model/base/clock.h"
#include "model/base/json.h"
#include "model/base/log.h"
#include "model/base/mem.h"
#include "model/wire/stage_run.h"

/* Progress without members is a sign of life: ten a second are plenty for deadlines of seconds. */
#define PROGRESS_EVERY_MS 100
/* Handlers may call stage_progress() in inner loops; the kernel is asked this often. */
#define PUMP_EVERY_MS 20

static int stage_stopped_error(struct err *err)
{
    return err_set(err, ERR_REFUSED, "stopped");
}

/* Lets the loop run: the lifeline, `stop`, the outbox. */
static void stage_pump(struct stage *stage, int64_t max_ms)
{
    struct err err = ERR_INIT;
    if (loop_turn(stage->loop, max_ms, &err) < 0) {
        log_error("%s", err.text);
        exit(EXIT_FAILURE); /* without its loop a stage is deaf */
    }
    stage->pumped_ms = clock_mono_ms();
}

bool stage_is_filter(const struct stage *stage)
{
    return stage->options.filter;
}

bool stage_stopping(struct stage *stage)
{
    if (clock_mono_ms() - stage->pumped_ms >= PUMP_EVERY_MS) {
        stage_pump(stage, 0);
    }
    return stage->leaving || stage->stopped;
}

bool stage_leaving(struct stage *stage)
{
    return stage_stopping(stage) && stage->leaving;
}

static void stage_send_progress(struct stage *stage, int64_t done, const char *members)
{
    struct envelope env = {
        .type = MSG_PROGRESS, .cycle = stage->request.cycle, .attempt = stage->request.attempt};
    struct buf body = BUF_INIT;
    buf_printf(&body, "{\"v\":1,\"done\":%lld%s%s}", (long long)done, members ? "," : "",
               members ? members : "");
    stage_send(stage, &env, &body);
    stage->progress_sent_ms = clock_mono_ms();
}

int stage_progress(struct stage *stage, int64_t done, const char *members, struct err *err)
{
    int64_t now = clock_mono_ms();
    if (done > stage->last_done) {
        stage->last_done = done;
    }
    if (members || now - stage->progress_sent_ms >= PROGRESS_EVERY_MS) {
        if (!stage->options.filter) {
            stage_send_progress(stage, stage->last_done, members);
        } else if (stage->options.progress) {
            fprintf(stderr, "progress {\"done\":%lld%s%s}\n", (long long)stage->last_done,
                    members ? "," : "", members ? members : "");
            stage->progress_sent_ms = now;
        }
    }
    return stage_stopping(stage) ? stage_stopped_error(err) : 0;
}

int stage_note(struct stage *stage, const char *kind, const char *text, struct err *err)
{
    if (stage->options.filter) {
        log_warn("%s: %s", kind, text);
        return 0;
    }
    AUTO_BUF struct buf members = BUF_INIT;
    buf_puts(&members, "\"note\":{\"kind\":");
    json_put_text(&members, kind);
    buf_puts(&members, ",\"text\":");
    json_put_text(&members, text);
    buf_puts(&members, "}");
    return stage_progress(stage, stage->last_done, members.data, err);
}

int stage_intent(struct stage *stage, int64_t seq, const char *body, size_t size, struct err *err)
{
    if (stage->options.filter) {
        return 0;
    }
    struct envelope env = {.type = MSG_INTENT,
                           .cycle = stage->request.cycle,
                           .attempt = stage->request.attempt,
                           .seq = seq};
    struct buf copy = BUF_INIT;
    buf_add(&copy, body, size);
    stage->proceed_seq = 0;
    stage_send(stage, &env, &copy);
    while (stage->proceed_seq != seq) {
        if (stage->leaving || stage->stopped) {
            return stage_stopped_error(err);
        }
        stage_pump(stage, -1);
    }
    return 0;
}

static void stage_wait_until(struct stage *stage, int64_t ms, bool through)
{
    for (int64_t until = clock_mono_ms() + ms, left = ms;
         left > 0 && (through || !(stage->leaving || stage->stopped));
         left = until - clock_mono_ms()) {
        stage_pump(stage, left);
    }
}

bool stage_wait(struct stage *stage, int64_t ms)
{
    stage_wait_until(stage, ms, false);
    return stage_stopping(stage);
}

void stage_wait_through(struct stage *stage, int64_t ms)
{
    stage_wait_until(stage, ms, true);
}

int64_t stage_event(struct stage *stage, const char *body, size_t size,
                    void (*stored)(void *ctx, int64_t row, bool duplicate), void *ctx)
{
    assert(!stage->options.filter);
    struct stage_event_wait *wait = ARRAY_PUSH(stage->events, stage->n_events);
    *wait = (struct stage_event_wait){++stage->last_event_id, stored, ctx};
    struct envelope env = {.type = MSG_EVENT, .id = wait->id};
    struct buf copy = BUF_INIT;
    buf_add(&copy, body, size);
    stage_send(stage, &env, &copy);
    return env.id;
}

static void send_unanswered(struct stage *stage, enum message_type type, const char *body,
                            size_t size)
{
    assert(!stage->options.filter);
    struct envelope env = {.type = type};
    struct buf copy = BUF_INIT;
    buf_add(&copy, body, size);
    stage_send(stage, &env, &copy);
}

void stage_counters(struct stage *stage, const char *body, size_t size)
{
    send_unanswered(stage, MSG_COUNTERS, body, size);
}

void stage_kept(struct stage *stage, const char *body, size_t size)
{
    send_unanswered(stage, MSG_KEPT, body, size);
}

void stage_event_forget(struct stage *stage, int64_t id)
{
    for (size_t i = 0; i < stage->n_events; i++) {
        if (stage->events[i].id == id) {
            stage->events[i] = stage->events[--stage->n_events];
            return;
        }
    }
}

struct loop *stage_loop(struct stage *stage)
{
    return stage->loop;
}

void *stage_state(struct stage *stage)
{
    return stage->state;
}

void stage_watch(struct stage *stage, int fd, short events, loop_fd_fn *fn, void *ctx)
{
    loop_watch(stage->loop, fd, events, fn, ctx);
}

void stage_unwatch(struct stage *stage, int fd)
{
    loop_unwatch(stage->loop, fd);
}

const struct stage_handler *stage_handler_find(const struct stage_program *program,
                                               enum message_type type)
{
    for (size_t i = 0; i < program->n_handlers; i++) {
        if (program->handlers[i].type == type) {
            return &program->handlers[i];
        }
    }
    return NULL;
}
