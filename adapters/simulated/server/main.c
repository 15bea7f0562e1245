/* main.c - remap-simulated: the embedded cluster as a process of its own (design.md 6). It owns
 * state and clock, keeps a journal, and answers over a Unix socket; it outlives every other
 * process. */
#include "adapters/simulated/server/flow.h"
#include "adapters/simulated/server/server.h"
#include "model/base/clock.h"
#include "model/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

static const char usage[] =
    "Usage: remap-simulated --scenario FILE --socket PATH --journal FILE [options]\n"
    "       remap-simulated --check --scenario FILE\n"
    "\n"
    "An embedded cluster for demos and tests. It is described by a scenario, moves on by itself,\n"
    "keeps every change in a journal and goes on from there when it is started again.\n"
    "\n"
    "  --scenario FILE   what the cluster is made of (YAML; samples in etc/scenarios)\n"
    "  --socket PATH     Unix socket to serve HTTP on\n"
    "  --journal FILE    where changes are kept; created if it does not exist\n"
    "  --speed X         simulated seconds per real second (default: journal's or scenario's)\n"
    "  --seed N          instead of the scenario's seed\n"
    "  --lifeline FD     end when this inherited descriptor is closed at its other end\n"
    "  --check           read the scenario, say what is in it, and exit\n"
    "  --help, --version\n"
    "\n"
    "Try:  curl --unix-socket PATH http://localhost/v1/state\n"
    "      curl --unix-socket PATH http://localhost/v1/response\n"
    "      curl --unix-socket PATH http://localhost/v1/faults -d '{\"kind\":\"host-down\","
    "\"host\":\"node-1\"}'\n";

struct options {
    const char *scenario, *socket, *journal;
    double speed; /* 0: not given */
    int64_t seed; /* -1: not given */
    int lifeline; /* -1: none */
    bool check, help, version;
};

static int parse_number(const char *text, double min, double max, double *out)
{
    char *end;
    double value = strtod(text, &end);
    if (!*text || *end || !(value >= min && value <= max))
        return -1;
    *out = value;
    return 0;
}

static int options_parse(int argc, char **argv, struct options *o, struct err *err)
{
    enum { SCENARIO = 1, SOCKET, JOURNAL, SPEED, SEED, LIFELINE, CHECK, HELP, VERSION };
    static const struct option known[] = {{"scenario", required_argument, NULL, SCENARIO},
                                          {"socket", required_argument, NULL, SOCKET},
                                          {"journal", required_argument, NULL, JOURNAL},
                                          {"speed", required_argument, NULL, SPEED},
                                          {"seed", required_argument, NULL, SEED},
                                          {"lifeline", required_argument, NULL, LIFELINE},
                                          {"check", no_argument, NULL, CHECK},
                                          {"help", no_argument, NULL, HELP},
                                          {"version", no_argument, NULL, VERSION},
                                          {NULL, 0, NULL, 0}};
    double number = 0;
    *o = (struct options){.seed = -1, .lifeline = -1};
    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, ":", known, NULL)) != -1;) {
        switch (c) {
        case SCENARIO:
            o->scenario = optarg;
            break;
        case SOCKET:
            o->socket = optarg;
            break;
        case JOURNAL:
            o->journal = optarg;
            break;
        case SPEED:
            if (parse_number(optarg, 0.001, SCENARIO_MAX_SPEED, &o->speed))
                return err_set(err, ERR_USAGE, "--speed must be from 0.001 to %d",
                               SCENARIO_MAX_SPEED);
            break;
        case SEED:
            if (parse_number(optarg, 0, 0x1p53, &number) || number != floor(number))
                return err_set(err, ERR_USAGE, "--seed must be a whole number of 0 or more");
            o->seed = (int64_t)number;
            break;
        case LIFELINE:
            if (parse_number(optarg, 0, 65535, &number) || fcntl((int)number, F_GETFD) < 0)
                return err_set(err, ERR_USAGE, "--lifeline must be an open descriptor");
            o->lifeline = (int)number;
            break;
        case CHECK:
            o->check = true;
            break;
        case HELP:
            o->help = true;
            break;
        case VERSION:
            o->version = true;
            break;
        case ':':
            return err_set(err, ERR_USAGE, "%s needs a value", argv[optind - 1]);
        default:
            return err_set(err, ERR_USAGE, "unknown option %s", argv[optind - 1]);
        }
    }
    if (optind < argc)
        return err_set(err, ERR_USAGE, "unexpected argument %s", argv[optind]);
    if (o->help || o->version)
        return 0;
    if (!o->scenario)
        return err_set(err, ERR_USAGE, "--scenario is missing");
    if (!o->check && (!o->socket || !o->journal))
        return err_set(err, ERR_USAGE, "%s is missing", o->socket ? "--journal" : "--socket");
    return 0;
}

/* Prints what the scenario holds and how it behaves at its start. */
static int check(const struct scenario *scenario, struct err *err)
{
    AUTO(sim) struct sim *sim = sim_open(scenario, NULL, clock_wall_ms(), 0, err);
    if (!sim)
        return -1;
    const struct cluster *c = sim_cluster(sim);
    AUTO(flow) struct flow *f = flow_new(c, c->last_ms);
    double per_s = 0, local = 0;
    size_t busy = 0, pending = 0;
    for (size_t e = 0; e < f->n_edges; e++) {
        per_s += f->edges[e].per_s;
        if (c->replicas[f->edges[e].src].host == c->replicas[f->edges[e].dst].host)
            local += f->edges[e].per_s;
    }
    for (size_t h = 0; h < scenario->n_hosts; h++)
        busy += f->host_demand[h] > (double)scenario->hosts[h].cpu_millis;
    for (size_t i = 0; i < c->n_live; i++)
        pending += c->replicas[c->live[i]].state == REPLICA_PENDING;
    double mean = flow_entry_ms(f, c, c->last_ms, -1);
    printf("%s: %zu hosts, %zu services, %zu replicas (%zu pending), %zu calls\n", scenario->name,
           scenario->n_hosts, scenario->n_services, c->n_live, pending, scenario->n_calls);
    printf("%.1f calls a second, %.0f %% of them on one host", per_s,
           per_s > 0 ? 100 * local / per_s : 0);
    if (mean >= 0)
        printf(", response time %.2f ms", mean);
    printf("%s\n", busy ? "; some hosts are asked for more than they have" : "");
    return 0;
}

static int signals_open(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Real ms until the cluster does something by itself; at most a minute, at least 1. */
static int64_t cluster_wait_ms(const struct sim *sim)
{
    const struct cluster *c = sim_cluster(sim);
    int64_t due = sim_next_due(sim);
    if (due == INT64_MAX)
        return -1;
    double wait = ceil((double)(due - cluster_sim_ms(c, clock_wall_ms())) / cluster_speed(c));
    return wait < 1 ? 1 : wait > 60000 ? 60000 : (int64_t)wait;
}

/* 0 when asked to end. The journal failing is said once per failure and tried again: the state in
 * memory is then still the journal's. */
static int serve(struct sim *sim, struct server *server, int signals, int lifeline)
{
    bool sick = false;
    for (;;) {
        int64_t wait = server_wait_ms(server), own = cluster_wait_ms(sim);
        if (own >= 0 && (wait < 0 || own < wait))
            wait = sick && own < 1000 ? 1000 : own;
        struct pollfd fds[] = {{.fd = signals, .events = POLLIN},
                               {.fd = server_fd(server), .events = POLLIN},
                               {.fd = lifeline, .events = POLLIN}};
        if (poll(fds, ARRAY_LEN(fds), (int)wait) < 0 && errno != EINTR)
            return -1;
        if (fds[0].revents || fds[2].revents)
            return 0;
        struct err err = ERR_INIT;
        if (sim_advance(sim, cluster_sim_ms(sim_cluster(sim), clock_wall_ms()), &err) ||
            sim_sync(sim, &err)) {
            if (!sick)
                log_error("journal: %s", err.text);
            sick = true;
        } else {
            sick = false;
        }
        server_run(server);
    }
}

static int run(const struct options *o, const struct scenario *scenario, struct err *err)
{
    int signals = signals_open();
    if (signals < 0)
        return err_set(err, ERR_IO, "signalfd: %s", strerror(errno));
    AUTO(sim) struct sim *sim = sim_open(scenario, o->journal, clock_wall_ms(), o->speed, err);
    if (!sim)
        return -1;
    AUTO(server) struct server *server = server_new(o->socket, sim, err);
    if (!server)
        return -1;
    log_info("serving scenario=%s socket=%s journal=%s speed=%g replicas=%zu", scenario->name,
             o->socket, o->journal, cluster_speed(sim_cluster(sim)), sim_cluster(sim)->n_live);
    int result = serve(sim, server, signals, o->lifeline);
    close(signals);
    return result ? err_set(err, ERR_IO, "poll: %s", strerror(errno)) : 0;
}

int main(int argc, char **argv)
{
    struct err err = ERR_INIT;
    struct options o;
    log_init("remap-simulated", LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
    if (options_parse(argc, argv, &o, &err)) {
        fprintf(stderr, "remap-simulated: %s (--help shows how)\n", err.text);
        return 2;
    }
    if (o.help || o.version) {
        fputs(o.help ? usage : "remap-simulated " REMAP_VERSION "\n", stdout);
        return 0;
    }
    AUTO(scenario) struct scenario *scenario = scenario_read(o.scenario, o.seed, &err);
    if (err.kind == ERR_NOT_FOUND)
        err.kind = ERR_CONFIG; /* a file named on the command line: exit 2 */
    if (!scenario || (o.check ? check(scenario, &err) : run(&o, scenario, &err))) {
        fprintf(stderr, "remap-simulated: %s\n", err.text);
        return err_exit_code(err.kind);
    }
    return 0;
}
