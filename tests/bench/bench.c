/* bench.c - prints what analysis and planning cost, beside the paper's numbers (algorithms 6.5).
 *
 *     remap-bench grid      the paper's grid: services 10 … 1000, messages 10^3 … 10^5
 *     remap-bench scaling   HBA up to 10^5 services and 10^6 pairs, exponent of the growth
 *     remap-bench hubs      the search beside HBA and the bounds
 *     remap-bench near      200 services in 50 ms beside oa's proof
 *     remap-bench oa        proofs: sizes, stars, equal weights, memory-bound, tight
 *     remap-bench prove     proofs of one variant and size over several seeds
 *     remap-bench peers     Z3, GLPK and ours on the same instances
 *     remap-bench production   a cluster of 3500 replicas: found in 1 and 5 s against the best known
 * Nothing is asserted: times are this machine's. */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include "analyzer/affinity.h"
#include "planner/planner.h"
#include "tests/bench/instances.h"
#include "tests/bench/peers.h"
#include "tests/bench/proofs.h"

static double now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static double peak_mb(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024;
}

static double cpu_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

struct timing {
    double analyze_ms, plan_ms, plan_cpu_ms;
    struct plan *plan;
};

static struct timing run(const struct model *model, const struct plan_options *options)
{
    struct err err = ERR_INIT;
    struct timing timing = {0};
    AUTO(analysis) struct analysis *analysis = NULL;
    double start = now_ms();
    if (affinity_analyzer.analyze(model, 0.5, &analysis, &err) < 0) {
        fprintf(stderr, "remap-bench: %s\n", err.text);
        exit(1);
    }
    double middle = now_ms(), cpu = cpu_ms();
    if (planner_run(model, analysis, options, &timing.plan, &err) < 0) {
        fprintf(stderr, "remap-bench: %s\n", err.text);
        exit(1);
    }
    timing.analyze_ms = middle - start;
    timing.plan_ms = now_ms() - middle;
    timing.plan_cpu_ms = cpu_ms() - cpu;
    return timing;
}

static const char *const topology_names[] = {"star", "p2p"};

/* Fig. 7 of the paper, authors' HBA, as published with their code. */
static const char *paper_saved(enum topology topology, int n)
{
    static const struct {
        int n;
        const char *saved[2];
    } rows[] = {{10, {"90", "80"}},       {20, {"75-95", "60-89"}}, {50, {"26-38", "70-76"}},
                {100, {"11-21", "77-80"}}, {200, {"7-11", "79-80"}}, {500, {"2-3", "75-76"}},
                {1000, {"1.2-1.8", "74-77"}}};
    for (size_t k = 0; k < ARRAY_LEN(rows); k++)
        if (rows[k].n == n)
            return rows[k].saved[topology];
    return "";
}

static void grid(void)
{
    static const int sizes[] = {10, 20, 50, 100, 200, 500, 1000};
    struct plan_options options = plan_options_default;
    options.planner = "hba";
    puts("paper: HBA plans in .03-3.06 s up to 200 services, .21-3.28 s up to 1000; 1.65 GB");
    puts("topology services messages  analysis ms  planning ms  hosts saved %  paper %  peak MB");
    for (int t = 0; t < 2; t++)
        for (size_t k = 0; k < ARRAY_LEN(sizes); k++)
            for (int64_t messages = 1000; messages <= 100000; messages *= 10) {
                struct mock mock = {.topology = (enum topology)t,
                                    .services = sizes[k],
                                    .messages = messages,
                                    .one_row_each = true,
                                    .seed = 1};
                AUTO(model) struct model *model = mock_model(&mock);
                struct timing timing = run(model, &options);
                const struct plan *plan = timing.plan;
                printf("%-8s %8d %8lld %12.3f %12.3f %14.1f  %7s %8.1f\n", topology_names[t],
                       sizes[k], (long long)messages, timing.analyze_ms, timing.plan_ms,
                       100.0 * (double)(plan->hosts_before - plan->hosts_after) /
                           (double)plan->hosts_before,
                       paper_saved((enum topology)t, sizes[k]), peak_mb());
                plan_free(timing.plan);
            }
}

/* n services, 10 n random pairs with given degrees. */
static struct model *sparse_model(int n)
{
    struct mock mock = {.topology = TOPOLOGY_STAR, .services = n, .messages = 0, .seed = 1};
    struct model *model = mock_model(&mock);
    struct rng rng = {(uint64_t)n};
    model->n_messages = 0;
    for (int64_t k = 0; k < 10 * (int64_t)n; k++) {
        int a = (int)rng_below(&rng, (uint32_t)n), b = (int)rng_below(&rng, (uint32_t)n);
        struct message *m = ARRAY_PUSH(model->messages, model->n_messages);
        *m = (struct message){.src = a, .dst = b, .count = 1 + rng_below(&rng, 1000),
                              .bytes = -1, .mean_ms = -1};
    }
    return model;
}

static void scaling(void)
{
    double last = 0;
    struct plan_options options = plan_options_default;
    options.planner = "hba";
    puts("services     pairs  analysis ms  planning ms  exponent (both)");
    for (int n = 100; n <= 100000; n *= 10) {
        AUTO(model) struct model *model = sparse_model(n);
        double best = INFINITY, analyze = 0, plan = 0;
        for (int k = 0; k < 3; k++) {
            struct timing timing = run(model, &options);
            if (timing.analyze_ms + timing.plan_ms < best) {
                analyze = timing.analyze_ms;
                plan = timing.plan_ms;
                best = analyze + plan;
            }
            plan_free(timing.plan);
        }
        printf("%8d %9d %12.3f %12.3f", n, 10 * n, analyze, plan);
        if (last > 0)
            printf("  %8.2f", log10(best / last));
        putchar('\n');
        last = best;
    }
}

static void hubs(void)
{
    static const int sizes[] = {20, 50, 100, 200, 500, 1000, 10000};
    puts("topology services  hba score  hosts   hubs score  hosts  bound   hosts>=       ms");
    for (int t = 0; t < 2; t++)
        for (size_t k = 0; k < ARRAY_LEN(sizes); k++) {
            struct mock mock = {.topology = (enum topology)t,
                                .services = sizes[k],
                                .messages = 10000,
                                .seed = 1};
            struct plan_options options = plan_options_default;
            AUTO(model) struct model *model = mock_model(&mock);
            options.planner = "hba";
            struct timing hba = run(model, &options);
            options.planner = "hubs";
            struct timing found = run(model, &options);
            printf("%-8s %8d %10.6f %6lld %12.6f %6lld %7.4f %8lld %8.0f\n", topology_names[t],
                   sizes[k], hba.plan->affinity_after, (long long)hba.plan->hosts_after,
                   found.plan->affinity_after, (long long)found.plan->hosts_after,
                   found.plan->affinity_bound, (long long)found.plan->hosts_bound,
                   found.plan_ms);
            plan_free(hba.plan);
            plan_free(found.plan);
        }
}

struct options {
    const char *part; /* NULL: all but peers and prove */
    double limit_s;
    int seeds, services;
    const char *variant, *planner;
    bool fewest_hosts;
};

static struct plan *production_plan(const struct model *model, struct plan_options options)
{
    struct err err = ERR_INIT;
    struct plan *plan = NULL;
    options.planner = "hubs";
    if (planner_run(model, NULL, &options, &plan, &err) < 0) {
        fprintf(stderr, "remap-bench: %s\n", err.text);
        exit(1);
    }
    return plan;
}

static double degrees_of(const struct model *model)
{
    double total = 0;
    for (size_t r = 0; r < model->n_affinities; r++)
        total += model->affinities[r].degree;
    return total;
}

/* What is found in 1 and 5 s, as a share of the best that long runs of several seeds find; then
 * what few moves buy. */
static void production_of(uint64_t seed, enum granularity granularity, int64_t long_ms)
{
    static const int64_t limits_ms[] = {1000, 5000};
    static const int64_t budgets[] = {100, 300, 1000};
    AUTO(model) struct model *model = production_model(seed);
    struct plan_options options = plan_options_default;
    double total = degrees_of(model), best = 0, found[ARRAY_LEN(limits_ms)];
    options.granularity = granularity;
    for (uint64_t k = 0; k < 3; k++) {
        options.seed = k + 1;
        options.time_limit_ms = long_ms;
        AUTO(plan) struct plan *plan = production_plan(model, options);
        best = fmax(best, plan->affinity_after);
    }
    options.seed = 0;
    for (size_t k = 0; k < ARRAY_LEN(limits_ms); k++) {
        options.time_limit_ms = limits_ms[k];
        AUTO(plan) struct plan *plan = production_plan(model, options);
        found[k] = plan->affinity_after;
        best = fmax(best, found[k]);
    }
    for (size_t k = 0; k < ARRAY_LEN(limits_ms) + ARRAY_LEN(budgets); k++) {
        bool limited = k >= ARRAY_LEN(limits_ms);
        options.time_limit_ms = limited ? 5000 : limits_ms[k];
        options.max_moves = limited ? budgets[k - ARRAY_LEN(limits_ms)] : -1;
        AUTO(plan) struct plan *plan = production_plan(model, options);
        printf("%4d %-11s %6lld %9lld %7.2f %9.2f %12.2f %9.2f %9lld %7lld\n", (int)seed,
               granularity == PER_SERVICE ? "service" : "instance",
               (long long)options.time_limit_ms, (long long)options.max_moves,
               100 * plan->affinity_before / total, 100 * plan->affinity_after / total,
               100 * plan->affinity_after / best, 100 * plan->affinity_bound / total,
               (long long)plan->restarts, (long long)plan->solve_ms);
        fflush(stdout);
    }
    printf("%4d %-11s best of 3 runs of %lld s: %.2f %% of all affinity\n", (int)seed,
           granularity == PER_SERVICE ? "service" : "instance", (long long)long_ms / 1000,
           100 * best / total);
}

static void production(const struct options *options)
{
    AUTO(model) struct model *model = production_model(1);
    int64_t long_ms = (int64_t)(3e3 * options->limit_s);
    printf("%zu services, %zu replicas, %zu hosts, %zu pairs\n", model->n_services,
           model->n_instances, model->n_hosts, model->n_affinities);
    puts("seed granularity limit ms max moves before %  found %  % of best known  bound %  restarts     ms");
    for (uint64_t seed = 1; seed <= (uint64_t)options->seeds; seed++) {
        production_of(seed, PER_INSTANCE, long_ms);
        production_of(seed, PER_SERVICE, long_ms);
    }
}

/* What hubs finds in 50 ms beside what oa proves or bounds in its time. */
static void near(const struct options *options)
{
    double sum = 0, most = 0;
    puts("services seed  hubs, 50 ms     ms  cpu ms   oa found      bound     status  below oa %  below bound %");
    for (uint64_t seed = 1; seed <= (uint64_t)options->seeds; seed++) {
        struct mock mock = {
            .topology = TOPOLOGY_P2P, .services = 200, .messages = 10000, .seed = seed};
        struct plan_options given = plan_options_default;
        AUTO(model) struct model *model = mock_model(&mock);
        given.planner = "hubs";
        given.time_limit_ms = 50;
        struct timing quick = run(model, &given);
        given.planner = "oa";
        given.time_limit_ms = (int64_t)(1e3 * options->limit_s);
        struct timing exact = run(model, &given);
        double found = quick.plan->affinity_after, best = exact.plan->affinity_after;
        double bound = exact.plan->affinity_bound;
        sum += (best - found) / best;
        most = fmax(most, (best - found) / best);
        printf("%8d %4d %12.6f %6.0f %7.0f %10.6f %10.6f %10s %11.2f %14.2f\n", mock.services,
               (int)seed, found, quick.plan_ms, quick.plan_cpu_ms, best, bound,
               exact.plan->status == PLAN_OPTIMAL ? "optimal" : "feasible",
               100 * (best - found) / best, 100 * (bound - found) / bound);
        fflush(stdout);
        plan_free(quick.plan);
        plan_free(exact.plan);
    }
    printf("below oa: %.2f %% on average, %.2f %% at most\n", 100 * sum / options->seeds, 100 * most);
}

static void usage(FILE *to)
{
    fputs("Usage: remap-bench [PART] [--limit SECONDS] [--seeds N]\n\n"
          "Prints tables; nothing is asserted, times are this machine's. Parts (default: all but near, peers, prove):\n"
          "  grid         analysis and HBA on the paper's grid: services 10 to 1000, messages 10^3 to 10^5\n"
          "  scaling      HBA up to 10^5 services and 10^6 pairs, exponent of the growth\n"
          "  hubs         the search beside HBA and the bounds\n"
          "  production   550 services, 3500 replicas, 100 hosts: found in 1 and 5 s against the best known, and\n"
          "               for few moves\n"
          "  near         200 services: found in 50 ms beside what oa proves or bounds\n"
          "  oa           proofs: sizes, stars, and the hard variants\n"
          "  prove        proofs of one variant and size over several seeds\n"
          "  peers        the same instances by Z3 as the paper has it (Debian package python3-z3), GLPK's\n"
          "               naive model, GLPK by representatives, and remap-planner\n\n"
          "  --limit SECONDS  near, peers, prove: for every solver and instance (20); production: long runs take three\n"
          "                   times that\n"
          "  --seeds N        near, peers, prove: instances per size and topology (1); production: clusters (1)\n"
          "  --services N     prove: size of the instances (100)\n"
          "  --variant NAME   prove: p2p, star, equal, memory or tight (p2p)\n"
          "  --planner NAME   prove: by another planner than oa\n"
          "  --objective NAME prove: affinity or hosts (affinity; always hosts for tight)\n\n"
          "Instances: one service per host, CPU 1-500 millicores, memory 10-500 MiB, hosts 4000 and 8192; p2p is\n"
          "Barabasi-Albert with m = 2, star has all at service 0. Variants, each of 60 services: equal weights (all pairs\n"
          "weigh the same), memory-bound (memory times 2.4), tight (hosts so large that the fewest leave 0.4 % of\n"
          "their CPU; objective hosts).\n",
          to);
}

/* 1: go on; else the exit code with its sign turned. */
static int options_read(int argc, char **argv, struct options *out)
{
    static const struct option longs[] = {{"limit", required_argument, NULL, 'l'},
                                          {"seeds", required_argument, NULL, 's'},
                                          {"services", required_argument, NULL, 'n'},
                                          {"variant", required_argument, NULL, 'v'},
                                          {"planner", required_argument, NULL, 'p'},
                                          {"objective", required_argument, NULL, 'o'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    int c;
    *out = (struct options){.limit_s = 20, .seeds = 1, .services = 100, .variant = "p2p",
                            .planner = "oa"};
    while ((c = getopt_long(argc, argv, "h", longs, NULL)) != -1)
        switch (c) {
        case 'l':
            out->limit_s = strtod(optarg, NULL);
            break;
        case 's':
            out->seeds = atoi(optarg);
            break;
        case 'n':
            out->services = atoi(optarg);
            break;
        case 'v':
            out->variant = optarg;
            break;
        case 'p':
            out->planner = optarg;
            break;
        case 'o':
            out->fewest_hosts = strcmp(optarg, "hosts") == 0;
            if (!out->fewest_hosts && strcmp(optarg, "affinity") != 0) {
                usage(stderr);
                return -2;
            }
            break;
        case 'h':
            usage(stdout);
            return 0;
        default:
            usage(stderr);
            return -2;
        }
    if (!(out->limit_s >= 0.001 && out->limit_s <= 86400) || out->seeds < 1 ||
        out->services < 2 || argc - optind > 1) {
        usage(stderr);
        return -2;
    }
    out->part = argv[optind];
    return 1;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } parts[] = {{"grid", grid}, {"scaling", scaling}, {"hubs", hubs}, {"oa", proofs_print}};
    struct options options;
    int rc = options_read(argc, argv, &options);
    if (rc <= 0)
        return -rc;
    bool known = !options.part;
    for (size_t k = 0; k < ARRAY_LEN(parts); k++)
        if (!options.part || strcmp(options.part, parts[k].name) == 0) {
            parts[k].run();
            known = true;
        }
    if (!options.part || strcmp(options.part, "production") == 0) {
        production(&options);
        known = true;
    }
    if (options.part && strcmp(options.part, "near") == 0) {
        near(&options);
        known = true;
    }
    if (options.part && strcmp(options.part, "peers") == 0) {
        peers_print((int64_t)(options.limit_s * 1e3), options.seeds);
        known = true;
    }
    if (options.part && strcmp(options.part, "prove") == 0)
        known = proofs_print_one(options.variant, options.planner, options.fewest_hosts,
                                 options.services, options.seeds,
                                 (int64_t)(options.limit_s * 1e3));
    if (!known)
        fprintf(stderr, "remap-bench: unknown part or variant \"%s\"; see --help\n", options.part);
    return known ? 0 : 2;
}
