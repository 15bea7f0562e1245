/* demo_cluster.c - folder, scenario and process of the embedded cluster of `remap demo`. */
#include "model/manager/demo_cluster.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model/base/clock.h"
#include "model/base/file.h"
#include "model/base/mem.h"
#include "model/manager/filter.h"

/* Reading the largest scenario takes it about a second. */
#define START_MS 10000
#define LOOK_MS 20

/* --- places --- */

/* Where scenarios are: a checkout that was built, an installed tree that was moved, the installed
 * one. */
static char *scenarios_dir(void)
{
    char own[PATH_MAX] = ".";
    struct err ignored = ERR_INIT;
    (void)program_dir(own, &ignored);
    AUTO_FREE char *checkout = mem_printf("%s/../../../etc/scenarios", own);
    AUTO_FREE char *moved = mem_printf("%s/../share/remap/scenarios", own);
    char *found = realpath(checkout, NULL);
    found = found ? found : realpath(moved, NULL);
    return found ? found : mem_strdup(REMAP_DATADIR "/remap/scenarios");
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* "online-boutique, paper-p2p, …" */
static void list_scenarios(const char *dir, struct buf *out)
{
    DIR *folder = opendir(dir);
    char **names = NULL;
    size_t n = 0;
    for (struct dirent *e; folder && (e = readdir(folder));) {
        size_t size = strlen(e->d_name);
        if (size > 5 && strcmp(e->d_name + size - 5, ".yaml") == 0)
            *ARRAY_PUSH(names, n) = mem_strndup(e->d_name, size - 5);
    }
    if (folder)
        closedir(folder);
    if (n)
        qsort(names, n, sizeof *names, by_name);
    for (size_t i = 0; i < n; i++) {
        buf_printf(out, "%s%s", i ? ", " : "", names[i]);
        free(names[i]);
    }
    free(names);
}

static int find_scenario(struct demo_cluster *demo, const char *wanted, struct err *err)
{
    const char *base = wanted ? wanted : "sock-shop";
    size_t size = strlen(base);
    bool is_file = strchr(base, '/') || (size > 5 && strcmp(base + size - 5, ".yaml") == 0);
    AUTO_FREE char *dir = scenarios_dir();
    demo->scenario = is_file ? mem_strdup(base) : mem_printf("%s/%s.yaml", dir, base);
    if (access(demo->scenario, R_OK) != 0) {
        if (is_file)
            return err_set(err, ERR_INPUT, "%s: %s", base, strerror(errno));
        AUTO_BUF struct buf known = BUF_INIT;
        list_scenarios(dir, &known);
        return err_set(err, ERR_USAGE, "there is no scenario \"%.60s\" in %s; it has: %s", base,
                       dir, known.data ? known.data : "none");
    }
    const char *slash = strrchr(demo->scenario, '/');
    const char *name = slash ? slash + 1 : demo->scenario;
    demo->name = mem_strndup(name, strcspn(name, "."));
    if (!*demo->name)
        return err_set(err, ERR_USAGE, "%s: a scenario file needs a name before its dot", base);
    return 0;
}

static int make_dir(struct demo_cluster *demo, const char *keep, struct err *err)
{
    const char *tmp = getenv("TMPDIR");
    if (keep) {
        if (file_make_dirs(keep, 0700, err))
            return -1;
        char *real = realpath(keep, NULL);
        if (!real)
            return err_set(err, ERR_IO, "%s: %s", keep, strerror(errno));
        demo->dir = real;
        return 0;
    }
    demo->dir = mem_printf("%s/remap-demo-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(demo->dir))
        return err_set(err, ERR_IO, "%s: %s", demo->dir, strerror(errno));
    return 0;
}

int demo_cluster_prepare(struct demo_cluster *demo, const char *keep, const char *scenario,
                         struct err *err)
{
    *demo = (struct demo_cluster){.lifeline = -1};
    if (find_scenario(demo, scenario, err) || make_dir(demo, keep, err))
        return -1;
    demo->socket = mem_printf("%s/cluster.sock", demo->dir);
    demo->journal = mem_printf("%s/cluster.journal", demo->dir);
    demo->log = mem_printf("%s/cluster.log", demo->dir);
    demo->config = mem_printf("%s/remap.yaml", demo->dir);
    demo->store = mem_printf("%s/store.db", demo->dir);
    demo->run_dir = mem_printf("%s/run", demo->dir);
    if (access(demo->store, F_OK) == 0)
        return err_set(err, ERR_CONFLICT, "%s is there already: name another folder with --keep, "
                       "or remove it", demo->store);
    return 0;
}

/* --- the process --- */

static void child_exec(const struct demo_cluster *demo, const char *path, const char *speed,
                       int lifeline)
{
    char descriptor[16];
    snprintf(descriptor, sizeof descriptor, "%d", lifeline);
    const char *argv[12] = {"remap-simulated", "--scenario", demo->scenario, "--socket",
                            demo->socket,      "--journal",  demo->journal,  "--lifeline",
                            descriptor};
    if (speed) {
        argv[9] = "--speed";
        argv[10] = speed;
    }
    int log = open(demo->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    dup2(log, STDERR_FILENO);
    dup2(log, STDOUT_FILENO);
    fcntl(lifeline, F_SETFD, 0);
    signal(SIGINT, SIG_IGN); /* the terminal's Ctrl-C is for `remap`, which ends us in its turn */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    execv(path, (char *const *)argv);
    _exit(127);
}

static bool answers(const char *socket_path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    if (strlen(socket_path) >= sizeof at.sun_path)
        return false;
    memcpy(at.sun_path, socket_path, strlen(socket_path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool yes = fd >= 0 && connect(fd, (const struct sockaddr *)&at, sizeof at) == 0;
    if (fd >= 0)
        close(fd);
    return yes;
}

/* The last line that the cluster wrote: why it ended. */
static int ended_early(const struct demo_cluster *demo, struct err *err)
{
    AUTO_BUF struct buf text = BUF_INIT;
    struct err ignored = ERR_INIT;
    if (file_read(demo->log, 1 << 20, &text, &ignored) || text.size == 0)
        return err_set(err, ERR_INPUT, "remap-simulated ended without a word");
    while (text.size && text.data[text.size - 1] == '\n')
        text.data[--text.size] = '\0';
    const char *last = strrchr(text.data, '\n');
    last = last ? last + 1 : text.data;
    const char *own = strncmp(last, "remap-simulated: ", 17) == 0 ? last + 17 : last;
    return err_set(err, ERR_INPUT, "%s", own);
}

int demo_cluster_start(struct demo_cluster *demo, const char *speed, struct err *err)
{
    AUTO_FREE char *path = NULL;
    int ends[2];
    struct sockaddr_un limit;
    if (program_path("remap-simulated", NULL, &path, err))
        return -1;
    if (strlen(demo->socket) >= sizeof limit.sun_path)
        return err_set(err, ERR_USAGE, "%s: too long for a socket; take a shorter --keep",
                       demo->socket);
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_set(err, ERR_IO, "pipe: %s", strerror(errno));
    fflush(stdout);
    demo->pid = fork();
    if (demo->pid == 0)
        child_exec(demo, path, speed, ends[0]);
    close(ends[0]);
    demo->lifeline = ends[1];
    if (demo->pid < 0) {
        demo->pid = 0;
        return err_set(err, ERR_IO, "fork: %s", strerror(errno));
    }
    for (int64_t until = clock_mono_ms() + START_MS; clock_mono_ms() < until;) {
        if (answers(demo->socket))
            return 0;
        if (waitpid(demo->pid, NULL, WNOHANG) == demo->pid) {
            demo->pid = 0;
            return ended_early(demo, err);
        }
        clock_sleep_ms(LOOK_MS);
    }
    return err_set(err, ERR_UNREACHABLE, "remap-simulated does not answer at %s (its log: %s)",
                   demo->socket, demo->log);
}

void demo_cluster_stop(struct demo_cluster *demo)
{
    if (demo->lifeline >= 0)
        close(demo->lifeline);
    demo->lifeline = -1;
    if (demo->pid > 0) {
        kill(demo->pid, SIGTERM);
        while (waitpid(demo->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    demo->pid = 0;
}

void demo_cluster_wipe(struct demo_cluster *demo)
{
    demo_cluster_stop(demo);
    free(demo->dir);
    free(demo->scenario);
    free(demo->name);
    free(demo->socket);
    free(demo->journal);
    free(demo->log);
    free(demo->config);
    free(demo->store);
    free(demo->run_dir);
}
