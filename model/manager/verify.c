/* verify.c - predicted against realised (design.md 4, "verify"). */
#include "model/manager/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void verify_predict(const struct model *model, const struct analysis *analysis,
                    const struct plan *plan, struct savings *out)
{
    int *before = model_placement(model);
    const struct affinity *rows = analysis->rows;
    size_t n = analysis->n_rows;
    *out = (struct savings){
        .hosts_before = placement_hosts_used(model, before),
        .hosts_predicted = placement_hosts_used(model, plan->placement),
        .hosts_realised = -1,
        .affinity_before = placement_score(model, rows, n, before),
        .affinity_predicted = placement_score(model, rows, n, plan->placement),
        .affinity_realised = -1,
        .response_before_ms = placement_response_ms(model, before),
        .response_predicted_ms = placement_response_ms(model, plan->placement),
        .response_realised_ms = -1,
        .local_before = placement_local_share(model, rows, n, before),
        .local_predicted = placement_local_share(model, rows, n, plan->placement),
        .local_realised = -1,
    };
    free(before);
}

void verify_measure(const struct model *model, const struct analysis *analysis, struct savings *out)
{
    int *now = model_placement(model);
    out->hosts_realised = placement_hosts_used(model, now);
    /* With fewer, shares are chance, or of nothing at all. */
    if (affinity_messages(model, analysis->rows, analysis->n_rows) >= VERIFY_MIN_MESSAGES) {
        out->affinity_realised = placement_score(model, analysis->rows, analysis->n_rows, now);
        out->response_realised_ms = placement_response_ms(model, now);
        out->local_realised = placement_local_share(model, analysis->rows, analysis->n_rows, now);
    }
    free(now);
}

static void response_text(const struct savings *s, char *out, size_t size)
{
    if (s->response_before_ms < 0 || s->response_realised_ms < 0)
        snprintf(out, size, "response time unknown");
    else
        snprintf(out, size, "response time %.3g ms, was %.3g", s->response_realised_ms,
                 s->response_before_ms);
}

enum verify_answer verify_judge(const struct savings *s, enum objective objective, double tolerance,
                                int64_t messages, bool mends, char *why, size_t size)
{
    char response[80];
    response_text(s, response, sizeof response);
    double least = s->local_before < s->local_predicted ? s->local_before : s->local_predicted;
    const char *worse = NULL;
    if (messages < VERIFY_MIN_MESSAGES) {
        snprintf(why, size, "kept, not judged: only %lld messages since", (long long)messages);
        return VERIFY_UNKNOWN;
    }
    if (s->local_realised < least * (1 - tolerance))
        worse = "less traffic stays on a host";
    else if (s->response_before_ms >= 0 && s->response_realised_ms >= 0 &&
             s->response_realised_ms > s->response_before_ms * (1 + tolerance))
        worse = "slower";
    else if (objective == OBJECTIVE_HOSTS &&
             (double)s->hosts_realised > (double)s->hosts_before * (1 + tolerance))
        worse = "more hosts";
    snprintf(why, size,
             "%s%slocal traffic %.1f %%, was %.1f %%, predicted %.1f %%; %s; hosts %lld, were "
             "%lld, predicted %lld",
             worse ? worse : "", worse ? " than before: " : "", 100 * s->local_realised,
             100 * s->local_before, 100 * s->local_predicted, response,
             (long long)s->hosts_realised, (long long)s->hosts_before,
             (long long)s->hosts_predicted);
    size_t said = strlen(why);
    if (worse && mends) /* put back, the rule would be broken again, and the same plan be made */
        snprintf(why + said, size - said, "; kept: it mends a broken rule");
    return worse && !mends ? VERIFY_WORSE : VERIFY_KEEP;
}
