/* failure.c - errors across processes keep their kind and their text. */
#include "model/wire/failure.h"

#include "model/base/json.h"

void failure_encode(const struct err *what, struct buf *out)
{
    buf_puts(out, "{\"v\":1,\"kind\":");
    json_put_text(out, err_kind_name(what->kind));
    buf_puts(out, ",\"text\":");
    json_put_text(out, what->text);
    buf_puts(out, "}");
}

int failure_decode(const char *body, size_t size, struct err *err)
{
    static const char *const keys[] = {"v", "kind", "text", NULL};
    struct err bad = ERR_INIT;
    AUTO_JSON json_t *tree = json_parse(body, size, &json_limits_header, &bad);
    if (!tree) {
        return err_set(err, ERR_INTERNAL, "unreadable failure: %s", bad.text);
    }
    struct jval root = jval_root(tree);
    struct jval kind = jval_get(&root, "kind"), text = jval_get(&root, "text");
    const char *kind_text, *text_text;
    if (jval_object(&root, keys, &bad) < 0 || jval_text(&kind, 64, &kind_text, &bad) < 0 ||
        jval_text(&text, sizeof err->text, &text_text, &bad) < 0) {
        return err_set(err, ERR_INTERNAL, "unreadable failure: %s", bad.text);
    }
    return err_set(err, err_kind_from_name(kind_text), "%s", text_text);
}
