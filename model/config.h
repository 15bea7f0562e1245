/* config.h - the configuration of remap (etc/remap.yaml), read by libcyaml after a strict first
 * pass with libyaml (design.md 7). Only `remap` reads it; stages get what they need in requests. */
#ifndef REMAP_CONFIG_H
#define REMAP_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include "model/base/buf.h"
#include "model/base/err.h"
#include "model/base/log.h"
#include "model/base/mem.h"
#include "model/base/week.h"
#include "model/plan.h"

enum app_mode { MODE_OBSERVE, MODE_PROPOSE, MODE_ACT };

struct config_option {
    char *name, *value;
};

struct config_source { /* sources: the adapters by name; apps refer to them */
    char *name, *type;
    struct config_option *options;
    size_t n_options;
};

/* A cycle before its time, when traffic or response times have left what the placement was planned
 * on (paper §9; analyzer/drift.h, model/manager/drift.h). */
struct config_drift {
    int64_t every_ms;  /* between two looks; 0: none */
    int64_t window_ms; /* the traffic looked at, and planned on; default 5m */
    int64_t for_ms;    /* it must last so long; default: the window */
    int64_t quiet_ms;  /* after every cycle; default 30m */
    double affinity, affinity_leave; /* of analyzer/drift.h; leave: default half of enter */
    double response, response_leave; /* rise of the mean response time, as a share */
};

struct config_app {
    char *name;
    enum app_mode mode; /* default observe */
    char **namespaces, **services;
    size_t n_namespaces, n_services;
    char *cluster;             /* names of sources */
    char **metrics, **messages;
    size_t n_metrics, n_messages;
    char *orchestrator;        /* default: the cluster source */
    struct config_option *aliases; /* foreign name → service */
    size_t n_aliases;

    int64_t interval_ms;       /* timer (§5.7); default 10m */
    int64_t interval_min_ms, interval_max_ms; /* clamp for intervals in deploy events */
    int64_t window_ms;         /* default: the interval */
    int64_t grace_ms;          /* how long spans may be late */
    int64_t settle_ms;         /* between the last move and verification; default 2m */
    int64_t ready_timeout_ms;  /* per move; default 5m */
    int64_t soak_ms;           /* quiet after a release; default 1h */
    int64_t cooldown_ms;       /* per (service, host); default 1h */
    double weight;             /* w of Eq. 1; default 0.5 */
    char *planner;             /* default auto; whether it exists the planner says */
    enum objective objective;
    int granularity;           /* -1: the orchestrator's own */
    bool move_stateful;
    int64_t time_limit_ms;     /* planner; default 10s */
    int64_t max_moves;         /* per cycle; -1: no limit */
    int64_t max_restarts;      /* per cycle; -1: no limit */
    int64_t max_service_restarts; /* by one move; -1: no limit */
    int64_t max_parallel;      /* moves side by side; -1: no limit */
    double min_gain;           /* per restarted replica, share of traffic; default 0.005 */
    double planner_min_gain;   /* price of a restart while planning; default 0: none */
    double min_plan_gain;      /* per plan; default 0.01 */
    double min_coverage;       /* below: dry run only; default 0.8 */
    double worse_tolerance;    /* verification: relative worsening that is accepted; default 0.1 */
    double headroom_cpu, headroom_mem; /* share of every host kept free; default 0 */
    struct week *windows; /* moves only then; empty: always */
    size_t n_windows;
    char *tenant;              /* default: the namespace */
    struct config_option *tenants; /* namespace → tenant, where it is another than that */
    size_t n_tenants;
    struct config_drift drift;
};

struct config_provider { /* whose events are believed, and by which proof */
    char *name;             /* travis, github, gitlab, gitea, generic */
    char *secret_file, *token_file, *public_key_file;
};

struct config_route { /* which deployment is whose */
    char *app, *provider /* NULL: any */, *repository;
    char **branches, **environments, **workflows; /* patterns; empty: all (workflows: none) */
    size_t n_branches, n_environments, n_workflows;
};

struct config_webhooks {
    char *listen;                          /* "127.0.0.1:9471"; "off" */
    char *tls_cert_file, *tls_key_file;    /* both or none */
    int64_t rate;                          /* requests a minute and address */
    int64_t replay_window_ms;
    struct config_provider *providers;
    size_t n_providers;
    struct config_route *routes;
    size_t n_routes;
};

struct config {
    char *path; /* where it was read */
    char *store, *run_dir, *libexec_dir; /* NULL: not given; see cli_store_path(), cli_run_dir() */
    enum log_level log_level;
    enum log_format log_format;
    char *http_listen;        /* "127.0.0.1:9470"; "off" */
    char *http_token_file;    /* NULL: none */
    char *probe_listen;       /* NULL: on http_listen */
    int64_t retention_ms;     /* 30 days */
    int64_t retention_bytes;  /* 1 GiB */
    int64_t stage_deadline_ms; /* per request, extended by progress; default 60s */
    struct config_source *sources;
    size_t n_sources;
    struct config_app *apps;
    size_t n_apps;
    struct config_webhooks *webhooks; /* NULL: none are listened for */
};

/* ERR_CONFIG `remap.yaml:12: apps[0].intervall: unknown key; did you mean "interval"?`. Whether
 * adapters of those types exist and know those options is asked of the monitor (`remap check`). */
struct config *config_read(const char *path, struct err *err);
/* The same from memory; `name` stands for the file in errors. */
struct config *config_parse(const char *text, size_t size, const char *name, struct err *err);
void config_free(struct config *config);
AUTO_DEFINE(config)
const struct config_app *config_app(const struct config *config, const char *name);
const struct config_source *config_source(const struct config *config, const char *name);
/* May the app's services be moved at this wall time? */
bool config_app_open(const struct config_app *app, int64_t wall_ms);
const char *app_mode_name(enum app_mode mode);
/* Every key with its default and what it means, as lines of text, in the order of the tables. */
void config_reference(struct buf *out);
/* The path of -c, $REMAP_CONFIG or the built-in default. */
const char *config_path(const char *option);

#endif
