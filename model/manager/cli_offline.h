/* cli_offline.h - what the offline commands share: a model document and its analysis. */
#ifndef REMAP_MANAGER_CLI_OFFLINE_H
#define REMAP_MANAGER_CLI_OFFLINE_H

#include "model/manager/cli.h"
#include "model/model.h"

struct offline_model {
    struct buf text; /* as read: goes into requests unchanged */
    struct model *model;
};

/* Reads and checks the document of --model. ERR_INPUT names file and place. */
int offline_model(const struct cli *cli, struct offline_model *out, struct err *err);
void offline_model_wipe(struct offline_model *model);
/* Appends the analysis document. */
int offline_analyze(const struct offline_model *model, double weight, struct buf *result,
                    struct err *err);

#endif
