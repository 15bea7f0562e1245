/* journal.h - the file that a cluster lives in: one header line, then one JSON line per change,
 * appended before the change is applied and fsynced before anybody is told.
 *
 * A line that a crash cut short is dropped when the journal is opened again; a damaged line in the
 * middle is an error. One process holds the journal (flock). */
#ifndef REMAP_SIMULATED_JOURNAL_H
#define REMAP_SIMULATED_JOURNAL_H

#include "adapters/simulated/server/cluster.h"

struct journal;

/* Opens or creates the journal at `path` and replays it into a new *cluster. *fresh is true when
 * nothing was in it yet. ERR_CONFLICT: held by another process; ERR_CONFIG: of another scenario;
 * ERR_INPUT "x.journal:17: …": damaged; ERR_IO. */
struct journal *journal_open(const char *path, const struct scenario *scenario,
                             struct cluster **cluster, bool *fresh, struct err *err);
void journal_free(struct journal *journal);
AUTO_DEFINE(journal)

/* Writes the change, then applies it. When the write fails (disk full) nothing of it stays in the
 * file and nothing is applied. */
int journal_commit(struct journal *journal, struct cluster *cluster, const struct change *change,
                   struct err *err);
/* fsync, if anything was written since the last. */
int journal_sync(struct journal *journal, struct err *err);

const char *journal_path(const struct journal *journal);

#endif
