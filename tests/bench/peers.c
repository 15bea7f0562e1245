/* peers.c - Z3 as the paper uses it (z3_paper.py), GLPK's naive model and the one by
 * representatives (compact.c), and the program remap-planner with its start and its JSON. Every
 * value is the score of the placement that the solver gave, added up here. */
#include "tests/bench/peers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "analyzer/affinity.h"
#include "model/base/file.h"
#include "model/model_json.h"
#include "tests/bench/compact.h"
#include "tests/bench/instances.h"

#define GRACE_S 5 /* past its limit a child gets so much longer, then SIGALRM */

struct cell {
    const char *status;  /* "optimal", "feasible", or why there is no value */
    double value, bound; /* NaN: none */
    double seconds;
};

struct task {
    struct model *model; /* with given affinities */
    const struct affinity *rows;
    size_t n_rows;
    int64_t limit_ms;
    char dir[32];
};

static double now_s(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static struct cell cell_of(const struct compact *found, double seconds)
{
    static const char *const names[] = {"optimal", "feasible", "nothing", "infeasible"};
    bool value = found->placement && found->sound;
    return (struct cell){value || !found->placement ? names[found->status] : "unsound",
                         value ? found->value : NAN, found->bound, seconds};
}

static struct cell run_compact(const struct task *task, enum compact_form form)
{
    struct compact_options options = {.form = form, .limit_ms = task->limit_ms};
    double start = now_s();
    struct compact found = compact_solve(task->model, task->rows, task->n_rows, &options);
    struct cell cell = cell_of(&found, now_s() - start);
    free(found.placement);
    return cell;
}

/* The child's standard output as JSON, or NULL. */
static json_t *run_child(const struct task *task, const char *command, double *seconds)
{
    struct err err = ERR_INIT;
    int status = 0;
    char answer[64];
    snprintf(answer, sizeof answer, "%s/answer", task->dir);
    fflush(stdout);
    double start = now_s();
    pid_t pid = fork();
    if (pid == 0) {
        alarm((unsigned)(task->limit_ms / 1000 + GRACE_S));
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        return NULL;
    *seconds = now_s() - start;
    AUTO_BUF struct buf text = BUF_INIT;
    if (!WIFEXITED(status) || file_read(answer, SIZE_MAX, &text, &err) < 0)
        return NULL;
    return json_parse(text.data, text.size, &json_limits_document, &err);
}

static struct cell cell_failed(const char *why, double seconds)
{
    return (struct cell){why, NAN, NAN, seconds};
}

/* The member `placement` of Z3's answer as a score; NaN without one. */
static double placement_value(const struct task *task, json_t *list)
{
    size_t n = task->model->n_instances;
    AUTO_FREE int *placement = mem_array(n, sizeof *placement);
    if (json_array_size(list) != n)
        return NAN;
    for (size_t i = 0; i < n; i++)
        placement[i] = (int)json_integer_value(json_array_get(list, i));
    return placement_score(task->model, task->rows, task->n_rows, placement);
}

static struct cell run_z3(const struct task *task)
{
    double seconds = 0;
    AUTO_FREE char *command =
        mem_printf("exec %s/tests/bench/z3_paper.py %s/model %lld >%s/answer", REMAP_SOURCE_DIR,
                   task->dir, (long long)task->limit_ms, task->dir);
    AUTO_JSON json_t *answer = run_child(task, command, &seconds);
    const char *status = json_string_value(json_object_get(answer, "status"));
    json_t *bound = json_object_get(answer, "bound");
    if (!status)
        return cell_failed(seconds * 1e3 >= (double)task->limit_ms ? "overran" : "failed", seconds);
    if (strcmp(status, "absent") == 0)
        return cell_failed("no python3-z3", 0);
    double value = placement_value(task, json_object_get(answer, "placement"));
    const char *name = strcmp(status, "optimal") == 0    ? "optimal"
                       : strcmp(status, "feasible") == 0 ? "feasible"
                                                         : "nothing";
    return (struct cell){name, value, json_is_number(bound) ? json_number_value(bound) : NAN,
                         json_number_value(json_object_get(answer, "seconds"))};
}

static struct cell run_ours(const struct task *task)
{
    struct err err = ERR_INIT;
    double seconds = 0;
    AUTO_FREE char *command = mem_printf("exec %s/remap-planner --filter <%s/request >%s/answer",
                                         REMAP_BIN_DIR, task->dir, task->dir);
    AUTO_JSON json_t *answer = run_child(task, command, &seconds);
    if (!answer)
        return cell_failed("failed", seconds);
    struct jval root = jval_root(answer);
    AUTO(plan) struct plan *plan = plan_decode_value(&root, task->model, &err);
    if (!plan || plan->n_placement != task->model->n_instances)
        return cell_failed("failed", seconds);
    double value = placement_score(task->model, task->rows, task->n_rows, plan->placement);
    return (struct cell){plan_status_name(plan->status), value,
                         plan->has_bound ? plan->affinity_bound : NAN, seconds};
}

static void cell_print(const char *peer, const struct cell *cell)
{
    printf("  %-21s %9.3f  %-13s", peer, cell->seconds, cell->status);
    if (isnan(cell->value))
        printf(" %12s", "-");
    else
        printf(" %12.9f", cell->value);
    if (isnan(cell->bound))
        printf(" %12s\n", "-");
    else
        printf(" %12.9f\n", cell->bound);
    fflush(stdout);
}

static int text_write(const struct task *task, const char *name, const struct buf *text,
                      struct err *err)
{
    AUTO_FREE char *path = mem_printf("%s/%s", task->dir, name);
    return file_write_atomic(path, text->data, text->size, 0600, err);
}

/* The model for Z3, the request for us. */
static int documents_write(const struct task *task, struct err *err)
{
    AUTO_BUF struct buf model = BUF_INIT;
    AUTO_BUF struct buf request = BUF_INIT;
    model_encode(task->model, &model);
    buf_printf(
        &request,
        "{\"v\":1,\"options\":{\"planner\":\"oa\",\"objective\":\"affinity\",\"granularity\":"
        "\"instance\",\"time_limit_ms\":%lld},\"model\":%s,\"analysis\":null}",
        (long long)task->limit_ms, model.data);
    return text_write(task, "model", &model, err) < 0 ? -1
                                                      : text_write(task, "request", &request, err);
}

/* Messages become the degrees that they give: every solver adds up the same numbers. */
static int degrees_give(struct model *model, struct err *err)
{
    AUTO(analysis) struct analysis *analysis = NULL;
    if (affinity_analyzer.analyze(model, 0.5, &analysis, err) < 0)
        return -1;
    model->n_messages = 0;
    model->has_messages = false;
    model->has_affinities = true;
    for (size_t r = 0; r < analysis->n_rows; r++)
        *ARRAY_PUSH(model->affinities, model->n_affinities) =
            (struct affinity){.level = analysis->rows[r].level,
                              .a = analysis->rows[r].a,
                              .b = analysis->rows[r].b,
                              .degree = analysis->rows[r].degree,
                              .bytes = -1};
    return 0;
}

/* Whether all that are proven are equal; counts them. */
static bool agree(const struct cell *cells, size_t n, int *proven)
{
    double low = INFINITY, high = -INFINITY;
    for (size_t k = 0; k < n; k++)
        if (strcmp(cells[k].status, "optimal") == 0 && !isnan(cells[k].value)) {
            low = fmin(low, cells[k].value);
            high = fmax(high, cells[k].value);
            ++*proven;
        }
    return high - low <= 1e-9;
}

static void die(const struct err *err)
{
    fprintf(stderr, "remap-bench: %s\n", err->text);
    exit(1);
}

static void row_print(struct task *task, const struct mock *mock, int *disagreements)
{
    static const char *const names[] = {"Z3, as the paper", "GLPK, naive", "GLPK, representatives",
                                        "remap-planner, oa"};
    struct err err = ERR_INIT;
    AUTO(model) struct model *model = mock_model(mock);
    if (degrees_give(model, &err) < 0)
        die(&err);
    AUTO(analysis) struct analysis *given = analysis_from_given(model);
    task->model = model;
    task->rows = given->rows;
    task->n_rows = given->n_rows;
    if (documents_write(task, &err) < 0)
        die(&err);
    printf("%s, %d services, seed %d\n", mock->topology == TOPOLOGY_STAR ? "star" : "p2p",
           mock->services, (int)mock->seed);
    struct cell cells[ARRAY_LEN(names)];
    for (size_t k = 0; k < ARRAY_LEN(names); k++) {
        cells[k] = k == 0   ? run_z3(task)
                   : k == 3 ? run_ours(task)
                            : run_compact(task, k == 1 ? COMPACT_NAIVE : COMPACT_REPRESENTATIVES);
        cell_print(names[k], &cells[k]);
    }
    int proven = 0;
    bool same = agree(cells, ARRAY_LEN(cells), &proven);
    *disagreements += !same;
    printf("  proven by %d, values %s\n", proven, same ? "equal" : "DIFFERENT");
}

void peers_print(int64_t limit_ms, int seeds)
{
    static const int sizes[] = {10, 12, 15, 20};
    struct task task = {.limit_ms = limit_ms, .dir = "/tmp/remap-bench-XXXXXX"};
    int disagreements = 0;
    if (!mkdtemp(task.dir)) {
        perror(task.dir);
        exit(1);
    }
    printf(
        "limit %.0f s per solver and instance; ours with the start of the program and its JSON\n",
        (double)limit_ms / 1e3);
    puts("  solver                  seconds  status               value        bound");
    for (size_t k = 0; k < ARRAY_LEN(sizes); k++)
        for (int t = 0; t < 2; t++)
            for (int seed = 1; seed <= seeds; seed++)
                row_print(&task,
                          &(struct mock){.topology = (enum topology)t,
                                         .services = sizes[k],
                                         .messages = 10000,
                                         .seed = (uint64_t)seed},
                          &disagreements);
    static const char *const files[] = {"model", "request", "answer"};
    for (size_t f = 0; f < ARRAY_LEN(files); f++) {
        AUTO_FREE char *path = mem_printf("%s/%s", task.dir, files[f]);
        unlink(path);
    }
    rmdir(task.dir);
    if (disagreements > 0)
        printf("DIFFERENT values were proven on %d instances\n", disagreements);
    else
        puts("wherever several proved the optimum, they proved the same value (to 1e-9)");
}
