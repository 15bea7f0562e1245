/* main.c - program `remap`: the Model Manager (§5.7) and the front door. */
#include "model/base/log.h"
#include "model/manager/cli.h"

int main(int argc, char **argv)
{
    log_init("remap", LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
    return cli_main(argc, argv);
}
