/* config_keys.c - every key of the configuration: kind, place, default, range and help. */
#include "model/config_keys.h"

#include "model/config.h"

/* Durations: nothing below 1 s is a sensible period of a cluster, nothing above a year is meant. */
#define S 1000.0
#define DAY (24 * 3600 * S)
#define YEAR (366 * DAY)

static const char *const log_levels[] = {"error", "warn", "info", "debug", NULL};
static const char *const log_formats[] = {"text", "json", NULL};
static const char *const modes[] = {"observe", "propose", "act", NULL};
static const char *const objectives[] = {"affinity", "hosts", NULL};
static const char *const granularities[] = {"auto", "instance", "service", NULL};

#define TOP(member) offsetof(struct config, member)
#define APP(member) offsetof(struct config_app, member)

const struct key config_top_keys[] = {
    {.name = "store", .kind = KEY_TEXT, .offset = TOP(store),
     .help = "the database file; default $STATE_DIRECTORY/store.db, else /var/lib/remap/store.db"},
    {.name = "run_dir", .kind = KEY_TEXT, .offset = TOP(run_dir),
     .help = "folder of the bus and the locks; default $RUNTIME_DIRECTORY, else /run/remap"},
    {.name = "libexec_dir", .kind = KEY_TEXT, .offset = TOP(libexec_dir),
     .help = "folder of the stage programs; default beside remap, else where they were installed"},
    {.name = "log_level", .kind = KEY_CHOICE, .offset = TOP(log_level), .fallback = "info",
     .choices = log_levels, .help = "how much goes to stderr"},
    {.name = "log_format", .kind = KEY_CHOICE, .offset = TOP(log_format), .fallback = "text",
     .choices = log_formats, .help = "key=value lines, or one JSON object per line"},
    {.name = "http_listen", .kind = KEY_LISTEN, .offset = TOP(http_listen),
     .fallback = "127.0.0.1:9470",
     .help = "status listener: /metrics, /api/v1, /healthz, /readyz; off: none"},
    {.name = "http_token_file", .kind = KEY_TEXT, .offset = TOP(http_token_file),
     .help = "file with the bearer token; wanted when http_listen is not loopback"},
    {.name = "probe_listen", .kind = KEY_LISTEN, .offset = TOP(probe_listen),
     .help = "an address of its own for /healthz and /readyz, without token"},
    {.name = "retention", .kind = KEY_DURATION, .offset = TOP(retention_ms), .fallback = "30d",
     .min = 3600 * S, .max = 10 * YEAR, .help = "ended cycles older than this are deleted"},
    {.name = "retention_size", .kind = KEY_SIZE, .offset = TOP(retention_bytes),
     .fallback = "1GiB", .min = 1 << 20, .max = 1e15,
     .help = "above this size of the store the oldest cycles are deleted"},
    {.name = "stage_deadline", .kind = KEY_DURATION, .offset = TOP(stage_deadline_ms),
     .fallback = "60s", .min = S, .max = DAY,
     .help = "a stage that shows no progress for so long is killed and restarted"},
    {.name = NULL},
};

const struct key config_app_keys[] = {
    {.name = "name", .kind = KEY_NAME, .offset = APP(name), .help = "required"},
    {.name = "mode", .kind = KEY_CHOICE, .offset = APP(mode), .fallback = "observe",
     .choices = modes,
     .help = "observe plans and stores; propose waits for `remap apply`; act moves"},
    {.name = "cluster", .kind = KEY_NAME, .offset = APP(cluster),
     .help = "required: the source that lists hosts, services and instances"},
    {.name = "orchestrator", .kind = KEY_NAME, .offset = APP(orchestrator),
     .help = "the source that moves; default: the cluster source"},
    {.name = "interval", .kind = KEY_DURATION, .offset = APP(interval_ms), .fallback = "10m",
     .min = S, .max = YEAR, .help = "time between two cycles"},
    {.name = "interval_min", .kind = KEY_DURATION, .offset = APP(interval_min_ms),
     .fallback = "1m", .min = S, .max = YEAR,
     .help = "shortest interval that a deploy event may ask for"},
    {.name = "interval_max", .kind = KEY_DURATION, .offset = APP(interval_max_ms),
     .fallback = "24h", .min = S, .max = YEAR,
     .help = "longest interval that a deploy event may ask for"},
    {.name = "window", .kind = KEY_DURATION, .offset = APP(window_ms), .min = S, .max = YEAR,
     .help = "how far back metrics and traffic are read; default: the interval"},
    {.name = "grace", .kind = KEY_DURATION, .offset = APP(grace_ms), .fallback = "10s",
     .max = DAY, .help = "how late spans and samples may arrive: the window ends so long ago"},
    {.name = "settle", .kind = KEY_DURATION, .offset = APP(settle_ms), .fallback = "2m",
     .max = DAY, .help = "between the last move and the verification"},
    {.name = "ready_timeout", .kind = KEY_DURATION, .offset = APP(ready_timeout_ms),
     .fallback = "5m", .min = S, .max = DAY,
     .help = "a moved replica that is not ready by then is put back"},
    {.name = "soak", .kind = KEY_DURATION, .offset = APP(soak_ms), .fallback = "1h",
     .max = YEAR, .help = "no moves of a service for so long after its release"},
    {.name = "cooldown", .kind = KEY_DURATION, .offset = APP(cooldown_ms), .fallback = "1h",
     .max = YEAR, .help = "a service does not come back to (or leave again) a host sooner"},
    {.name = "weight", .kind = KEY_RATIO, .offset = APP(weight), .fallback = "0.5", .max = 1,
     .help = "w of Eq. 1: 1 counts messages only, 0 bytes only"},
    {.name = "planner", .kind = KEY_NAME, .offset = APP(planner), .fallback = "auto",
     .help = "auto, hba, … (`remap plan --help` lists them)"},
    {.name = "objective", .kind = KEY_CHOICE, .offset = APP(objective), .fallback = "affinity",
     .choices = objectives, .help = "affinity: local traffic first; hosts: fewest hosts first"},
    {.name = "granularity", .kind = KEY_CHOICE, .offset = APP(granularity), .fallback = "auto",
     .choices = granularities, .first = -1, .help = "auto: what the orchestrator can steer"},
    {.name = "move_stateful", .kind = KEY_FLAG, .offset = APP(move_stateful),
     .fallback = "false", .help = "may stateful services move?"},
    {.name = "time_limit", .kind = KEY_DURATION, .offset = APP(time_limit_ms), .fallback = "10s",
     .min = 1, .max = DAY, .help = "the planner's"},
    {.name = "max_moves", .kind = KEY_COUNT, .offset = APP(max_moves), .fallback = "none",
     .min = 1, .max = 1e6, .help = "per cycle"},
    {.name = "max_restarts", .kind = KEY_COUNT, .offset = APP(max_restarts), .fallback = "none",
     .min = 1, .max = 1e6, .help = "replicas that restart, per cycle"},
    {.name = "max_restarts_per_service", .kind = KEY_COUNT, .offset = APP(max_service_restarts),
     .fallback = "none", .min = 1, .max = 1e6,
     .help = "of one service: a move that restarts more is not made"},
    {.name = "max_parallel", .kind = KEY_COUNT, .offset = APP(max_parallel), .fallback = "4",
     .min = 1, .max = 1e6, .help = "moves of different services that go on side by side"},
    {.name = "min_gain", .kind = KEY_RATIO, .offset = APP(min_gain), .fallback = "0.005",
     .max = 1, .help = "share of the traffic that a restarted replica must bring home"},
    {.name = "planner_min_gain", .kind = KEY_RATIO, .offset = APP(planner_min_gain),
     .fallback = "0", .max = 1,
     .help = "the same as a price while the plan is made (--min-gain of `remap plan`); 0: none"},
    {.name = "min_plan_gain", .kind = KEY_RATIO, .offset = APP(min_plan_gain),
     .fallback = "0.01", .max = 1, .help = "share that a whole plan must bring home"},
    {.name = "min_coverage", .kind = KEY_RATIO, .offset = APP(min_coverage), .fallback = "0.8",
     .max = 1, .help = "below this share of joined traffic the cycle moves nothing"},
    {.name = "worse_tolerance", .kind = KEY_RATIO, .offset = APP(worse_tolerance),
     .fallback = "0.1", .max = 10,
     .help = "a plan that made things worse by more than this share is undone"},
    {.name = "headroom_cpu", .kind = KEY_RATIO, .offset = APP(headroom_cpu), .fallback = "0",
     .max = 0.95, .help = "share of every host's CPU that plans leave free"},
    {.name = "headroom_mem", .kind = KEY_RATIO, .offset = APP(headroom_mem), .fallback = "0",
     .max = 0.95, .help = "share of every host's memory that plans leave free"},
    {.name = "tenant", .kind = KEY_NAME, .offset = APP(tenant),
     .help = "whose services these are; default: their namespace. Traffic between different tenants "
             "places nothing"},
    {.name = NULL},
};

const struct key config_drift_keys[] = {
    {.name = "every", .kind = KEY_DURATION, .offset = APP(drift.every_ms), .fallback = "0",
     .max = YEAR, .help = "time between two looks at the traffic; 0: none, timers alone"},
    {.name = "window", .kind = KEY_DURATION, .offset = APP(drift.window_ms), .fallback = "5m",
     .min = S, .max = YEAR, .help = "the traffic that a look sees, and a cycle it starts"},
    {.name = "for", .kind = KEY_DURATION, .offset = APP(drift.for_ms), .max = YEAR,
     .help = "a cycle starts when the drift lasts so long; default: the window"},
    {.name = "quiet", .kind = KEY_DURATION, .offset = APP(drift.quiet_ms), .fallback = "30m",
     .max = YEAR, .help = "none starts so soon after another cycle"},
    {.name = "affinity", .kind = KEY_RATIO, .offset = APP(drift.affinity), .fallback = "0.2",
     .max = 1, .help = "share of the traffic that goes another way than planned on; 1: never"},
    {.name = "affinity_leave", .kind = KEY_RATIO, .offset = APP(drift.affinity_leave), .max = 1,
     .help = "below it the drift is over; default: half of affinity"},
    {.name = "response", .kind = KEY_RATIO, .offset = APP(drift.response), .fallback = "0.5",
     .max = 1000, .help = "rise of the mean response time as a share of what it was"},
    {.name = "response_leave", .kind = KEY_RATIO, .offset = APP(drift.response_leave),
     .max = 1000, .help = "below it the rise is over; default: half of response"},
    {.name = NULL},
};

const struct list_key config_app_lists[] = {
    {"namespaces", "which namespaces are the app's; empty: all"},
    {"services", "which services are the app's; empty: all in its namespaces"},
    {"metrics", "sources of CPU and memory usage, in order"},
    {"messages", "sources of traffic, in order"},
    {"windows", "moves only then, UTC, like \"Mon-Fri 22:00-06:00\"; empty: always"},
    {"aliases", "{name, value}: a foreign tool's name for one of our services"},
    {"tenants", "{name, value}: a namespace, and the tenant whose it is; namespaces of one tenant "
                "are placed by what they say to each other"},
    {NULL, NULL},
};
