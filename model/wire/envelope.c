/* envelope.c - the header frame, strict both ways, and the table of who may say what to whom
 * (design.md 3; the table's idea is nginx unit's process matrix). */
#include "model/wire/envelope.h"

#include <assert.h>
#include <string.h>
#include "model/base/json.h"
#include "model/base/mem.h"
#include "model/model.h"

/* Which number besides cycle and attempt a type carries. */
enum extra { EXTRA_NONE, EXTRA_SEQ, EXTRA_ID };

#define TO(party) (1u << (party))
#define STAGES (TO(PARTY_MONITOR) | TO(PARTY_ANALYZER) | TO(PARTY_PLANNER) | TO(PARTY_EXECUTOR))

/* from and to are sets of parties; a type may go from any of `from` to any of `to`, and the second
 * pair where it has another way. `check` and `import` are requests of filters alone: nobody sends
 * them on the bus. */
static const struct {
    const char *name;
    enum extra extra;
    unsigned from, to;
    unsigned also_from, also_to;
} message_types[MSG_N_TYPES] = {
    [MSG_HELLO] = {"hello", EXTRA_NONE, STAGES, TO(PARTY_MANAGER), 0, 0},
    [MSG_EVENT] = {"event", EXTRA_ID, TO(PARTY_MONITOR) | TO(PARTY_EXECUTOR), TO(PARTY_MANAGER), 0,
                   0},
    [MSG_INTENT] = {"intent", EXTRA_SEQ, TO(PARTY_EXECUTOR), TO(PARTY_MANAGER), 0, 0},
    [MSG_PROGRESS] = {"progress", EXTRA_NONE, STAGES, TO(PARTY_MANAGER), 0, 0},
    [MSG_RESULT] = {"result", EXTRA_NONE, STAGES, TO(PARTY_MANAGER), TO(PARTY_MANAGER),
                    TO(PARTY_CLI)},
    [MSG_FAILURE] = {"failure", EXTRA_NONE, STAGES, TO(PARTY_MANAGER), TO(PARTY_MANAGER),
                     TO(PARTY_CLI)},
    [MSG_COMMAND] = {"command", EXTRA_NONE, TO(PARTY_CLI), TO(PARTY_MANAGER), 0, 0},
    [MSG_COUNTERS] = {"counters", EXTRA_NONE, TO(PARTY_MONITOR), TO(PARTY_MANAGER), 0, 0},
    [MSG_KEPT] = {"kept", EXTRA_NONE, TO(PARTY_EXECUTOR), TO(PARTY_MANAGER), 0, 0},
    [MSG_COLLECT] = {"collect", EXTRA_NONE, TO(PARTY_MANAGER), TO(PARTY_MONITOR), 0, 0},
    [MSG_ANALYZE] = {"analyze", EXTRA_NONE, TO(PARTY_MANAGER), TO(PARTY_ANALYZER), 0, 0},
    [MSG_DRIFT] = {"drift", EXTRA_NONE, TO(PARTY_MANAGER), TO(PARTY_ANALYZER), 0, 0},
    [MSG_PLAN] = {"plan", EXTRA_NONE, TO(PARTY_MANAGER), TO(PARTY_PLANNER), 0, 0},
    [MSG_EXECUTE] = {"execute", EXTRA_NONE, TO(PARTY_MANAGER), TO(PARTY_EXECUTOR), 0, 0},
    [MSG_RELEASE] = {"release", EXTRA_NONE, TO(PARTY_MANAGER), TO(PARTY_EXECUTOR), 0, 0},
    [MSG_CHECK] = {"check", EXTRA_NONE, 0, 0, 0, 0},
    [MSG_IMPORT] = {"import", EXTRA_NONE, 0, 0, 0, 0},
    [MSG_PROCEED] = {"proceed", EXTRA_SEQ, TO(PARTY_MANAGER), TO(PARTY_EXECUTOR), 0, 0},
    [MSG_STORED] = {"stored", EXTRA_ID, TO(PARTY_MANAGER), TO(PARTY_MONITOR) | TO(PARTY_EXECUTOR), 0,
                    0},
    [MSG_CONFIGURE] = {"configure", EXTRA_NONE, TO(PARTY_MANAGER),
                       TO(PARTY_MONITOR) | TO(PARTY_EXECUTOR), 0, 0},
    [MSG_STOP] = {"stop", EXTRA_NONE, TO(PARTY_MANAGER), STAGES, 0, 0},
};

static const char *const party_names[PARTY_N] = {
    [PARTY_MANAGER] = "manager", [PARTY_MONITOR] = "monitor",   [PARTY_ANALYZER] = "analyzer",
    [PARTY_PLANNER] = "planner", [PARTY_EXECUTOR] = "executor", [PARTY_CLI] = "cli",
};

const char *message_type_name(enum message_type type)
{
    assert(type < MSG_N_TYPES);
    return message_types[type].name;
}

int message_type_from_name(const char *name)
{
    for (int i = 0; i < MSG_N_TYPES; i++) {
        if (strcmp(message_types[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

const char *party_name(enum party party)
{
    assert(party < PARTY_N);
    return party_names[party];
}

bool message_allowed(enum party from, enum party to, enum message_type type)
{
    assert(from < PARTY_N && to < PARTY_N && type < MSG_N_TYPES);
    return ((message_types[type].from & TO(from)) && (message_types[type].to & TO(to))) ||
           ((message_types[type].also_from & TO(from)) && (message_types[type].also_to & TO(to)));
}

void envelope_encode(const struct envelope *env, struct buf *out)
{
    assert(env->type < MSG_N_TYPES);
    buf_printf(out, "{\"v\":%d,\"type\":\"%s\",\"cycle\":%lld,\"attempt\":%lld", WIRE_VERSION,
               message_type_name(env->type), (long long)env->cycle, (long long)env->attempt);
    switch (message_types[env->type].extra) {
    case EXTRA_NONE:
        break;
    case EXTRA_SEQ:
        buf_printf(out, ",\"seq\":%lld", (long long)env->seq);
        break;
    case EXTRA_ID:
        buf_printf(out, ",\"id\":%lld", (long long)env->id);
        break;
    }
    buf_puts(out, "}");
}

static int envelope_read_type(const struct jval *root, enum message_type *out, struct err *err)
{
    struct jval v = jval_get(root, "type");
    const char *name;
    if (jval_text(&v, 32, &name, err) < 0) {
        return -1;
    }
    int type = message_type_from_name(name);
    if (type < 0) {
        return jval_error(&v, err, "unknown message type \"%s\"", name);
    }
    *out = (enum message_type)type;
    return 0;
}

static int envelope_read_numbers(const struct jval *root, struct envelope *env, struct err *err)
{
    static const char *const plain[] = {"v", "type", "cycle", "attempt", NULL};
    static const char *const with_seq[] = {"v", "type", "cycle", "attempt", "seq", NULL};
    static const char *const with_id[] = {"v", "type", "cycle", "attempt", "id", NULL};
    static const char *const *const keys[] = {
        [EXTRA_NONE] = plain, [EXTRA_SEQ] = with_seq, [EXTRA_ID] = with_id};
    enum extra extra = message_types[env->type].extra;
    struct jval cycle = jval_get(root, "cycle"), attempt = jval_get(root, "attempt");
    if (jval_object(root, keys[extra], err) < 0 ||
        jval_int(&cycle, 0, MODEL_MAX_NUMBER, &env->cycle, err) < 0 ||
        jval_int(&attempt, 0, MODEL_MAX_NUMBER, &env->attempt, err) < 0) {
        return -1;
    }
    if (extra == EXTRA_NONE) {
        return 0;
    }
    struct jval v = jval_get(root, extra == EXTRA_SEQ ? "seq" : "id");
    return jval_int(&v, 1, MODEL_MAX_NUMBER, extra == EXTRA_SEQ ? &env->seq : &env->id, err);
}

int envelope_decode(const char *text, size_t size, struct envelope *out, struct err *err)
{
    AUTO_JSON json_t *tree = json_parse(text, size, &json_limits_header, err);
    if (!tree) {
        return -1;
    }
    struct envelope env = {0};
    struct jval root = jval_root(tree);
    if (!json_is_object(tree)) {
        return err_set(err, ERR_INPUT, "header: must be an object");
    }
    int64_t version;
    struct jval v = jval_get(&root, "v");
    if (jval_int(&v, WIRE_VERSION, WIRE_VERSION, &version, err) < 0 ||
        envelope_read_type(&root, &env.type, err) < 0 ||
        envelope_read_numbers(&root, &env, err) < 0) {
        return err_prefix(err, "header");
    }
    *out = env;
    return 0;
}
