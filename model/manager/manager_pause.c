/* manager_pause.c - pauses that people made in a cluster, without us (interfaces.md 1.9;
 * contract.md 1 has those that they ask us for): the executor, who looks at the cluster, tells
 * them. */
#include "model/manager/manager.h"

#include <stdlib.h>
#include <string.h>

#include "model/base/json.h"
#include "model/base/log.h"

static void pause_forget(struct manager *m, const char *source)
{
    for (size_t i = 0; i < m->n_pauses; i++) {
        if (strcmp(m->pauses[i].source, source) != 0)
            continue;
        free(m->pauses[i].source);
        free(m->pauses[i].by);
        m->pauses[i] = m->pauses[--m->n_pauses];
        return;
    }
}

void kept_received(struct manager *m, const char *body, size_t size)
{
    static const char *const keys[] = {"v", "source", "paused_by", NULL};
    struct err err = ERR_INIT;
    const char *source, *by = NULL;
    AUTO_JSON json_t *tree = json_parse(body, size, &json_limits_header, &err);
    struct jval root = jval_root(tree), name = jval_get(&root, "source");
    struct jval paused = jval_get(&root, "paused_by");
    if (!tree || jval_object(&root, keys, &err) < 0 || jval_text(&name, 253, &source, &err) < 0 ||
        (!jval_null(&paused) && jval_text(&paused, 300, &by, &err) < 0)) {
        log_warn("kept: %s", err.text);
        return;
    }
    pause_forget(m, source);
    if (by)
        *ARRAY_PUSH(m->pauses, m->n_pauses) = (struct pause){mem_strdup(source), mem_strdup(by)};
}

const char *manager_paused_by(const struct manager *m, const struct config_app *app)
{
    const char *source = app->orchestrator ? app->orchestrator : app->cluster;
    for (size_t i = 0; i < m->n_pauses; i++)
        if (strcmp(m->pauses[i].source, source) == 0)
            return m->pauses[i].by;
    return NULL;
}

void pauses_forget(struct manager *m)
{
    while (m->n_pauses > 0) {
        m->n_pauses--;
        free(m->pauses[m->n_pauses].source);
        free(m->pauses[m->n_pauses].by);
    }
    free(m->pauses);
    m->pauses = NULL;
}
