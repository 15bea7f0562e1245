/* newborn.c - replicas that came up while the plan was carried out (§5.6): each is steered once, to
 * partners in descending affinity, or stays. */
#include <stdlib.h>
#include "executor/run.h"
#include "executor/validate.h"
#include "model/base/clock.h"

/* Steers the first newborn that wants to and can. *more: look again (one was steered, or one is
 * still starting and there is time). */
static int steer_one(struct run *run, int64_t until_ms, bool *more, struct err *err)
{
    struct view view;
    const struct request *r = run->request;
    *more = false;
    if (drive_inspect(&run->drive, &view, err) < 0) {
        return -1;
    }
    AUTO_FREE int *born = NULL;
    size_t n = view_newborn(&view, &run->drive.lineage, &born);
    bool starting = false;
    int result = 0;
    for (size_t i = 0; i < n && !*more && result == 0; i++) {
        const struct instance *x = &view.model->instances[born[i]];
        if (x->pinned_why || x->host < 0) {
            starting = true;
            continue;
        }
        int host = steer_host(view.model, born[i], r->model, r->analysis->service_rows,
                              r->analysis->n_service_rows, r->move_stateful);
        if (host < 0) {
            lineage_rename(&run->drive.lineage, x->name, x->name); /* stays where it came up */
            continue;
        }
        struct step step = {.seq = run->drive.next_seq++,
                            .service = view.model->services[x->service].name,
                            .instance = x->name,
                            .source = view.model->hosts[x->host].name,
                            .target = view.model->hosts[host].name};
        run->drive.total++;
        result = run_after(run, drive_step(&run->drive, &step, &view, err));
        lineage_rename(&run->drive.lineage, x->name, x->name); /* once, whatever came of it */
        *more = true;
    }
    view_wipe(&view);
    if (result == 0 && !*more && starting && clock_mono_ms() < until_ms) {
        *more = true;
        (void)stage_wait(run->drive.stage, r->poll_ms);
    }
    return result;
}

int newborn_steer(struct run *run, struct err *err)
{
    if (run->drive.orchestrator->granularity != PER_INSTANCE || !run->request->analysis) {
        return 0;
    }
    int64_t until = clock_mono_ms() + run->request->start_wait_ms;
    for (bool more = true; more && !run_stopped(run) && !run_limit_reached(run);) {
        if (stage_stopping(run->drive.stage)) {
            return 0; /* the plan is through; newcomers stay where they are */
        }
        if (steer_one(run, until, &more, err) < 0) {
            return -1;
        }
    }
    return 0;
}
