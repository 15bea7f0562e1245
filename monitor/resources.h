/* resources.h - recorded resource samples (`remap import --resources FILE`): one object
 *
 *     {"pods": [{"pod": "cart-7d9f-x2x", "service": "cart",
 *                "cpu_m_mean": 12.5, "memory_mi_mean": 33.8}, …], …}
 *
 * cpu_m_mean: millicores, memory_mi_mean: MiB, both means over the window and 0 or more; `service`
 * or `pod` may be missing, other members are ignored. A sample belongs to the instance of the pod's
 * name, else to the only instance of the service. Needs are rounded up. */
#ifndef REMAP_MONITOR_RESOURCES_H
#define REMAP_MONITOR_RESOURCES_H

#include <jansson.h>
#include "adapters/adapter.h"
#include "adapters/identity.h"

/* Sets the usage of instances; samples of several pods of one instance name add up. What belongs to
 * nothing, and instances without a sample, become notes. ERR_INPUT names the place. */
int resources_read(json_t *tree, struct inspection *in, struct err *err);

#endif
