/* scripted_stage.c - a stage that does what its requests say, for tests of the bus and the
 * supervisor: {"do": …, "n": …, "size": …}. One program per party (PARTY is set by CMake). */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "model/base/json.h"
#include "model/base/mem.h"
#include "model/wire/stage.h"

struct script {
    const char *what;
    int64_t n, size;
};

static void body_of_size(struct buf *out, int64_t number, int64_t size)
{
    buf_printf(out, "{\"v\":1,\"n\":%lld,\"fill\":\"", (long long)number);
    while ((int64_t)out->size < size - 2) {
        static const char fill[] =
            "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde";
        size_t left = (size_t)(size - 2) - out->size;
        buf_add(out, fill, left < sizeof fill - 1 ? left : sizeof fill - 1);
    }
    buf_puts(out, "\"}");
}

static void on_stored(void *ctx, int64_t row, bool duplicate)
{
    (void)duplicate;
    *(int64_t *)ctx = row;
}

static int do_events(struct stage *stage, const struct script *script)
{
    static int64_t row;
    for (int64_t i = 1; i <= script->n; i++) {
        AUTO_BUF struct buf body = BUF_INIT;
        body_of_size(&body, i, script->size);
        stage_event(stage, body.data, body.size, on_stored, &row);
    }
    return 0;
}

static int do_event_and_wait(struct stage *stage, struct buf *result, struct err *err)
{
    static int64_t row;
    row = 0;
    stage_event(stage, "{\"v\":1}", 7, on_stored, &row);
    while (row == 0) {
        if (stage_wait(stage, 10)) {
            return err_set(err, ERR_REFUSED, "stopped");
        }
    }
    buf_printf(result, "{\"row\":%lld}", (long long)row);
    return 0;
}

static int do_work(struct stage *stage, const struct script *script, struct err *err)
{
    for (int64_t i = 1; i <= script->n; i++) {
        if (stage_progress(stage, i, "\"text\":\"working\"", err) < 0) {
            return -1;
        }
        stage_wait(stage, script->size);
    }
    return 0;
}

static int do_finish_move(struct stage *stage, struct err *err)
{
    stage_note(stage, "move", "begun", err);
    while (!stage_stopping(stage)) {
        stage_wait(stage, 1000);
    }
    stage_wait_through(stage, 50);
    return 0;
}

static int script_run(struct stage *stage, const struct script *script, struct buf *result,
                      int *exit_code, struct err *err)
{
    if (strcmp(script->what, "big") == 0) {
        body_of_size(result, script->n, script->size);
        return 0;
    }
    if (strcmp(script->what, "events") == 0) {
        do_events(stage, script);
    } else if (strcmp(script->what, "event") == 0) {
        return do_event_and_wait(stage, result, err);
    } else if (strcmp(script->what, "work") == 0) {
        if (do_work(stage, script, err) < 0) {
            return -1;
        }
    } else if (strcmp(script->what, "finish-move") == 0) {
        do_finish_move(stage, err);
    } else if (strcmp(script->what, "intent") == 0) {
        if (stage_intent(stage, script->n, "{\"v\":1}", 7, err) < 0) {
            return -1;
        }
    } else if (strcmp(script->what, "note") == 0) {
        stage_note(stage, "odd", "a \"note\"", err);
    } else if (strcmp(script->what, "hang") == 0) {
        stage_note(stage, "hang", "begun", err);
        for (;;) {
            pause();
        }
    } else if (strcmp(script->what, "die") == 0) {
        abort();
    } else if (strcmp(script->what, "exit-code") == 0) {
        *exit_code = (int)script->n;
    } else {
        return err_set(err, (enum err_kind)script->n, "cannot %s", script->what);
    }
    buf_puts(result, "{\"done\":true}");
    return 0;
}

static int handle(struct stage *stage, const struct stage_request *request, struct buf *result,
                  int *exit_code, struct err *err)
{
    static const char *const keys[] = {"do", "n", "size", NULL};
    AUTO_JSON json_t *tree = json_parse(request->body, request->size, &json_limits_document, err);
    if (!tree) {
        return -1;
    }
    struct jval root = jval_root(tree);
    struct jval what = jval_get(&root, "do");
    struct script script = {0};
    if (jval_object(&root, keys, err) < 0 || jval_text(&what, 64, &script.what, err) < 0 ||
        jval_opt_int(&root, "n", 0, INT64_MAX, &script.n, err) < 0 ||
        jval_opt_int(&root, "size", 0, INT64_MAX, &script.size, err) < 0) {
        return -1;
    }
    return script_run(stage, &script, result, exit_code, err);
}

static const struct stage_handler handlers[] = {{REQUEST, handle}};

static const struct stage_program program = {
    .party = PARTY, .summary = "does what it is told", .handlers = handlers, .n_handlers = 1};

int main(int argc, char **argv)
{
    return stage_main(&program, argc, argv);
}
