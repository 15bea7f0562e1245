/* change_json.c - changes and faults as JSON lines: the form of the journal. Names instead of
 * numbers wherever there is one, so that people can read it; only members with a meaning. */
#include "adapters/simulated/server/cluster.h"

#include "model/model.h"

static const char *const kind_names[CHANGE_KINDS + 1] = {
    [CHANGE_CLOCK] = "clock",     [CHANGE_START] = "start",   [CHANGE_BIND] = "bind",
    [CHANGE_READY] = "ready",     [CHANGE_END] = "end",       [CHANGE_HOST] = "host",
    [CHANGE_SCALE] = "scale",     [CHANGE_DEPLOY] = "deploy", [CHANGE_LOAD] = "load",
    [CHANGE_FAULT] = "fault",     [CHANGE_USED] = "used",     [CHANGE_CLEAR] = "clear",
    [CHANGE_RELEASE] = "release", [CHANGE_KINDS] = NULL};

static void put_key(struct buf *out, const char *key)
{
    buf_printf(out, "%s\"%s\":", out->data[out->size - 1] == '{' ? "" : ",", key);
}

static void put_int(struct buf *out, const char *key, int64_t value)
{
    put_key(out, key);
    json_put_int(out, value);
}

static void put_text(struct buf *out, const char *key, const char *value)
{
    put_key(out, key);
    json_put_text(out, value);
}

static void put_host(struct buf *out, const struct scenario *s, const char *key, int host)
{
    if (host >= 0)
        put_text(out, key, s->hosts[host].name);
}

static void put_service(struct buf *out, const struct scenario *s, int service)
{
    if (service >= 0)
        put_text(out, "service", s->services[service].name);
}

void fault_encode(const struct scenario *s, const struct fault *f, struct buf *out)
{
    buf_puts(out, "{");
    put_text(out, "kind", fault_kind_names[f->kind]);
    put_service(out, s, f->service);
    put_host(out, s, "host", f->host);
    put_int(out, "at_ms", f->at_ms);
    if (f->span_ms)
        put_int(out, "for_ms", f->span_ms);
    if (f->times >= 0)
        put_int(out, "times", f->times);
    if (f->kind == FAULT_SLOW)
        put_int(out, "delay_ms", f->delay_ms);
    if (f->kind == FAULT_REFUSE)
        put_int(out, "status", f->status);
    if (f->replicas >= 0)
        put_int(out, "replicas", f->replicas);
    if (f->factor >= 0) {
        put_key(out, "factor");
        json_put_real(out, f->factor);
    }
    if (f->writes_only) {
        put_key(out, "writes_only");
        json_put_bool(out, true);
    }
    if (f->done) {
        put_key(out, "done");
        json_put_bool(out, true);
    }
    buf_puts(out, "}");
}

/* Everything that says which replica: its number for replay, its name for people. */
static void put_replica(struct buf *out, const struct cluster *c, const struct change *ch)
{
    if (ch->kind == CHANGE_START) {
        AUTO_FREE char *name = ch->name ? mem_strdup(ch->name) : cluster_next_name(c, ch->service);
        put_int(out, "id", (int64_t)c->n_replicas);
        put_text(out, "replica", name);
    } else if (ch->replica >= 0) {
        put_int(out, "id", ch->replica);
        put_text(out, "replica", c->replicas[ch->replica].name);
    }
}

void change_encode(const struct cluster *c, const struct change *ch, struct buf *out)
{
    const struct scenario *s = c->scenario;
    buf_puts(out, "{");
    put_int(out, "t", ch->at_ms);
    put_text(out, "do", kind_names[ch->kind]);
    put_replica(out, c, ch);
    put_service(out, s, ch->service);
    put_host(out, s, "host", ch->host);
    put_host(out, s, "target", ch->target);
    if (ch->replaces >= 0)
        put_int(out, "replaces", ch->replaces);
    if (ch->due_ms >= 0)
        put_int(out, "due", ch->due_ms);
    if (ch->mark.cycle >= 0) {
        put_int(out, "cycle", ch->mark.cycle);
        put_int(out, "seq", ch->mark.seq);
    }
    if (ch->kind == CHANGE_HOST) {
        put_key(out, "up");
        json_put_bool(out, ch->up);
    }
    if (ch->vanishes) {
        put_key(out, "vanishes");
        json_put_bool(out, true);
    }
    if (ch->uses >= 0)
        put_int(out, "uses", ch->uses);
    if (ch->kind == CHANGE_SCALE)
        put_int(out, "value", ch->value);
    if (ch->kind == CHANGE_LOAD) {
        put_key(out, "factor");
        json_put_real(out, ch->factor);
    }
    if (ch->kind == CHANGE_CLOCK) {
        put_int(out, "wall", ch->wall_ms);
        put_key(out, "speed");
        json_put_real(out, ch->speed);
    }
    if (ch->kind == CHANGE_FAULT) {
        put_key(out, "fault");
        fault_encode(s, &ch->fault, out);
    }
    if (ch->why && ch->why[0])
        put_text(out, "why", ch->why);
    buf_puts(out, "}");
}

/* --- reading --- */

static int get_host(const struct scenario *s, const struct jval *object, const char *key, int *out,
                    struct err *err)
{
    struct jval v = jval_get(object, key);
    const char *name = NULL;
    if (jval_absent(&v) || jval_null(&v))
        return 0;
    if (jval_text(&v, 253, &name, err))
        return -1;
    *out = scenario_host(s, name);
    return *out < 0 ? jval_error(&v, err, "there is no host %s", name) : 0;
}

static int get_service(const struct scenario *s, const struct jval *object, int *out,
                       struct err *err)
{
    struct jval v = jval_get(object, "service");
    const char *name = NULL;
    if (jval_absent(&v) || jval_null(&v))
        return 0;
    if (jval_text(&v, 253, &name, err))
        return -1;
    *out = scenario_service(s, name);
    return *out < 0 ? jval_error(&v, err, "there is no service %s", name) : 0;
}

static int get_real(const struct jval *object, const char *key, double max, double *out,
                    struct err *err)
{
    struct jval v = jval_get(object, key);
    return jval_absent(&v) ? 0 : jval_real(&v, 0, max, out, err);
}

int fault_decode(const struct scenario *s, const struct jval *value, struct fault *out,
                 struct err *err)
{
    static const char *const keys[] = {"kind",        "service",  "host",   "at_ms",    "for_ms",
                                       "times",       "delay_ms", "status", "replicas", "factor",
                                       "writes_only", "done",     NULL};
    const int64_t span = INT64_C(315360000000); /* ten years, as duration_parse() */
    int kind = 0;
    if (jval_object(value, keys, err))
        return -1;
    struct jval k = jval_get(value, "kind");
    if (jval_choice(&k, fault_kind_names, &kind, err))
        return -1;
    struct fault f = fault_default((enum fault_kind)kind);
    if (get_service(s, value, &f.service, err) || get_host(s, value, "host", &f.host, err) ||
        jval_opt_int(value, "at_ms", 0, MODEL_MAX_NUMBER, &f.at_ms, err) ||
        jval_opt_int(value, "for_ms", 0, span, &f.span_ms, err) ||
        jval_opt_int(value, "times", 0, 1000000, &f.times, err) ||
        jval_opt_int(value, "delay_ms", 0, 600000, &f.delay_ms, err) ||
        jval_opt_int(value, "status", 400, 599, &f.status, err) ||
        jval_opt_int(value, "replicas", 0, 10000, &f.replicas, err) ||
        get_real(value, "factor", 1e6, &f.factor, err) ||
        jval_opt_bool(value, "writes_only", &f.writes_only, err) ||
        jval_opt_bool(value, "done", &f.done, err))
        return -1;
    const char *problem = fault_problem(&f);
    if (problem)
        return jval_error(value, err, "%s", problem);
    *out = f;
    return 0;
}

static int get_index(const struct jval *object, const char *key, int *out, struct err *err)
{
    int64_t value = *out;
    if (jval_opt_int(object, key, 0, CLUSTER_MAX_REPLICAS, &value, err))
        return -1;
    *out = (int)value;
    return 0;
}

int change_decode(const struct cluster *c, const struct jval *line, struct change *out,
                  struct err *err)
{
    static const char *const keys[] = {
        "t",        "do",   "id",    "replica", "service", "host",     "target",
        "replaces", "due",  "cycle", "seq",     "up",      "vanishes", "value",
        "factor",   "wall", "speed", "fault",   "why",     "uses",     NULL};
    int kind = 0;
    if (jval_object(line, keys, err))
        return -1;
    struct jval v = jval_get(line, "do");
    if (jval_choice(&v, kind_names, &kind, err))
        return -1;
    struct change ch = change_new((enum change_kind)kind, 0);
    v = jval_get(line, "t");
    if (jval_int(&v, 0, MODEL_MAX_NUMBER, &ch.at_ms, err) ||
        get_index(line, "id", &ch.replica, err) ||
        get_service(c->scenario, line, &ch.service, err) ||
        get_host(c->scenario, line, "host", &ch.host, err) ||
        get_host(c->scenario, line, "target", &ch.target, err) ||
        get_index(line, "replaces", &ch.replaces, err) || get_index(line, "uses", &ch.uses, err) ||
        jval_opt_int(line, "due", 0, MODEL_MAX_NUMBER, &ch.due_ms, err) ||
        jval_opt_int(line, "cycle", 0, MODEL_MAX_NUMBER, &ch.mark.cycle, err) ||
        jval_opt_int(line, "seq", 0, MODEL_MAX_NUMBER, &ch.mark.seq, err) ||
        jval_opt_bool(line, "up", &ch.up, err) ||
        jval_opt_bool(line, "vanishes", &ch.vanishes, err) ||
        jval_opt_int(line, "value", 0, MODEL_MAX_NUMBER, &ch.value, err) ||
        get_real(line, "factor", 1e6, &ch.factor, err) ||
        jval_opt_int(line, "wall", 0, MODEL_MAX_NUMBER, &ch.wall_ms, err) ||
        get_real(line, "speed", SCENARIO_MAX_SPEED, &ch.speed, err))
        return -1;
    v = jval_get(line, "replica");
    if (!jval_absent(&v) && jval_name(&v, &ch.name, err))
        return -1;
    v = jval_get(line, "fault");
    if (ch.kind == CHANGE_FAULT && fault_decode(c->scenario, &v, &ch.fault, err))
        return -1;
    if (ch.kind == CHANGE_CLOCK && ch.speed < 0.001)
        return jval_error(line, err, "a clock needs a speed from 0.001 to 100000");
    *out = ch;
    return 0;
}
