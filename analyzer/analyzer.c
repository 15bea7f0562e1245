/* analyzer.c - the table of analyzers: one file and one line each. */
#include "analyzer/analyzer.h"

#include <string.h>
#include "analyzer/affinity.h"

const struct analyzer *const analyzers[] = {&affinity_analyzer, NULL};

const struct analyzer *analyzer_find(const char *name)
{
    for (size_t i = 0; analyzers[i]; i++)
        if (strcmp(analyzers[i]->name, name) == 0)
            return analyzers[i];
    return NULL;
}
