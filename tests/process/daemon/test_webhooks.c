/* test_webhooks.c - deployments reported over HTTP to a real `remap run`: the whole way from a
 * signed post to the event in the store and the timer of its application (contract.md 5, paper
 * §5.7). */
#include <curl/curl.h>
#include <errno.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <unistd.h>
#include <cmocka.h>

#include "model/base/clock.h"
#include "model/base/file.h"
#include "model/base/mem.h"
#include "tests/process/daemon/hook_client.h"
#include "tests/process/daemon/rig.h"
#include "tests/support/hook_samples.h"

#define SECRET "It's a Secret to Everybody"

static char *write_secret(const char *name, const char *text)
{
    struct err err = ERR_INIT;
    char *path = mem_printf("/tmp/remap-hooks-%ld-%s", (long)getpid(), name);
    assert_int_equal(file_write_atomic(path, text, strlen(text), 0600, &err), 0);
    return path;
}

static char *section(const char *github, const char *gitlab, int rate)
{
    return mem_printf("webhooks:\n"
                      "  listen: 127.0.0.1:0\n"
                      "  rate: %d\n"
                      "  providers:\n"
                      "    - {name: github, secret_file: %s}\n"
                      "    - {name: gitlab, token_file: %s}\n"
                      "  routes:\n"
                      "    - {app: rig, repository: codertocat/hello-world, branches: [master],"
                      " environments: [production]}\n",
                      rate, github, gitlab);
}

static size_t take(char *data, size_t size, size_t n, void *ctx)
{
    buf_add(ctx, data, size * n);
    return size * n;
}

static char *signature(const char *body)
{
    unsigned char digest[32];
    unsigned n = sizeof digest;
    struct buf out = BUF_INIT;
    assert_non_null(HMAC(EVP_sha256(), SECRET, (int)strlen(SECRET), (const unsigned char *)body,
                         strlen(body), digest, &n));
    buf_puts(&out, "X-Hub-Signature-256: sha256=");
    for (size_t i = 0; i < n; i++)
        buf_printf(&out, "%02x", digest[i]);
    return buf_take(&out);
}

static long github(int port, const char *query, const char *event, const char *delivery,
                   const char *body, struct buf *answer)
{
    AUTO_FREE char *path = mem_printf("/hooks/github%s", query);
    AUTO_FREE char *proof = signature(body);
    AUTO_FREE char *kind = mem_printf("X-GitHub-Event: %s", event);
    AUTO_FREE char *id = mem_printf("X-GitHub-Delivery: %s", delivery);
    const char *const headers[] = {proof,     kind, id, "Content-Type: application/json",
                                   "Expect:", NULL};
    return hook_client_post(port, path, headers, body, strlen(body), answer);
}

/* Of GitHub, with that id. Caller frees. */
static char *deployment(int id)
{
    return mem_printf(
        "{\"deployment_status\":{\"state\":\"success\",\"environment\":\"production\"},"
        "\"deployment\":{\"id\":%d,\"ref\":\"master\"},"
        "\"repository\":{\"full_name\":\"Codertocat/Hello-World\"}}",
        id);
}

struct fixture {
    struct rig rig;
    char *github, *gitlab;
    int port;
};

static void open_fixture(struct fixture *f, int rate)
{
    f->github = write_secret("github", SECRET "\n");
    f->gitlab = write_secret("gitlab", "token-of-gitlab\n");
    AUTO_FREE char *hooks = section(f->github, f->gitlab, rate);
    rig_open(&f->rig, 1, "    interval_min: 30s\n    interval_max: 2h\n", hooks);
    rig_start(&f->rig, true);
    f->port = hook_client_port(&f->rig);
}

static void close_fixture(struct fixture *f)
{
    rig_stop(&f->rig);
    rig_close(&f->rig);
    unlink(f->github);
    unlink(f->gitlab);
    free(f->github);
    free(f->gitlab);
}

static void test_deployment_when_posted_then_stored_answered_and_timer_reset(void **state)
{
    struct fixture f;
    AUTO_BUF struct buf answer = BUF_INIT;
    (void)state;
    open_fixture(&f, 1000);
    assert_int_equal(github(f.port, "?interval=600s", "deployment_status", "d1",
                            SAMPLE_GITHUB_DEPLOYMENT, &answer),
                     202);
    AUTO_FREE char *id = rig_text(&f.rig, "SELECT event_id FROM v_events WHERE kind = 'deploy' AND "
                                          "app = 'rig' AND text LIKE 'github: deployment "
                                          "145988746.209916254 of Codertocat/Hello-World at master"
                                          " commit f95f852b to production%'");
    AUTO_FREE char *expected = mem_printf("{\"event\":%s}\n", id);
    assert_string_equal(answer.data, expected); /* stored before it was answered */
    rig_until(&f.rig, "SELECT a.next_due_ms BETWEEN e.at_ms + 600000 AND e.at_ms + 900000 FROM apps"
                      " a, v_events e WHERE a.app = 'rig' AND e.kind = 'deploy'");
    /* once more, as a provider does that saw no answer */
    assert_int_equal(
        github(f.port, "", "deployment_status", "d1", SAMPLE_GITHUB_DEPLOYMENT, &answer), 200);
    assert_non_null(strstr(answer.data, "{\"ignored\":\"this delivery is event"));
    /* by somebody who overheard it: its id is not signed, nor is the interval in the URL */
    assert_int_equal(github(f.port, "?interval=1h", "deployment_status", "made up",
                            SAMPLE_GITHUB_DEPLOYMENT, &answer),
                     200);
    assert_non_null(strstr(answer.data, "{\"ignored\":\"this delivery is event"));
    /* another deployment under the same delivery id is no repetition; its interval is clamped */
    AUTO_FREE char *eighth = deployment(8);
    assert_int_equal(github(f.port, "?interval=9h", "deployment_status", "d1", eighth, &answer), 202);
    rig_until(&f.rig, "SELECT a.next_due_ms BETWEEN e.at_ms + 7200000 AND e.at_ms + 7500000 FROM"
                      " apps a, v_events e WHERE a.app = 'rig' AND e.text LIKE '%deployment 8%'");
    assert_int_equal(rig_number(&f.rig, "SELECT count(*) FROM v_events WHERE kind = 'deploy'"), 2);
    /* while paused: it counts, and whoever waits for a cycle finds out why none comes */
    buf_clear(&answer);
    assert_int_equal(rig_ask(&f.rig, "{\"v\":1,\"command\":\"pause\",\"app\":\"rig\"}", &answer), 0);
    AUTO_FREE char *ninth = deployment(9);
    assert_int_equal(github(f.port, "", "deployment_status", "d2", ninth, &answer), 202);
    rig_until(&f.rig, "SELECT count(*) FROM v_events WHERE kind = 'pause' AND app = 'rig' AND text = "
                      "'a deployment while paused: no cycle before `remap resume`'");
    close_fixture(&f);
}

/* remap is killed as soon as the event can be seen, answered or not: the timer is there with it. A
 * restart turns the stored wall time into the monotonic one and back, which may cost a millisecond. */
static void test_deployment_when_remap_dies_after_storing_it_then_the_timer_is_reset(void **state)
{
    struct fixture f;
    (void)state;
    open_fixture(&f, 1000);
    for (int i = 1; i <= 6; i++) {
        AUTO_FREE char *body = deployment(i);
        AUTO_FREE char *query = mem_printf("?interval=%ds", 600 * i);
        AUTO_FREE char *seen = mem_printf(
            "SELECT CASE WHEN e.event_id IS NULL THEN 0 WHEN a.next_due_ms BETWEEN e.at_ms + %d AND"
            " e.at_ms + %d THEN 1 ELSE 2 END FROM apps a LEFT JOIN v_events e ON e.kind = 'deploy'"
            " AND e.text LIKE '%%deployment %d of%%'",
            600000 * i - 100, 600000 * i + 300000, i);
        fflush(NULL);
        pid_t poster = fork();
        if (poster == 0) {
            AUTO_BUF struct buf answer = BUF_INIT;
            github(f.port, query, "deployment_status", "d", body, &answer);
            _exit(0);
        }
        int64_t got, until = clock_mono_ms() + RIG_PATIENCE_MS;
        while ((got = rig_number(&f.rig, seen)) == 0)
            assert_true(clock_mono_ms() < until);
        assert_int_equal(got, 1);
        rig_signal(rig_pid(&f.rig, "remap"), SIGKILL);
        rig_wait_daemon(&f.rig);
        waitpid(poster, NULL, 0);
        assert_int_equal(truncate(f.rig.log, 0), 0); /* the ports of former lives */
        rig_start(&f.rig, true);
        assert_int_equal(rig_number(&f.rig, seen), 1);
        f.port = hook_client_port(&f.rig);
    }
    close_fixture(&f);
}

static int64_t deployments(struct fixture *f, int id)
{
    AUTO_FREE char *sql = mem_printf("SELECT count(*) FROM v_events WHERE kind = 'deploy' AND text"
                                     " LIKE '%%deployment %d of%%'", id);
    return rig_number(&f->rig, sql);
}

/* The monitor is killed with a deployment that the manager has not stored, at once or after it has given
 * up waiting: whoever posted was not told 202, and posts again; that counts once. */
static void test_deployment_when_the_monitor_dies_before_it_is_stored_then_repeated_once(void **state)
{
    struct fixture f;
    (void)state;
    open_fixture(&f, 1000);
    for (int i = 1; i <= 2; i++) {
        AUTO_BUF struct buf answer = BUF_INIT;
        AUTO_FREE char *body = deployment(i);
        pid_t remap = rig_pid(&f.rig, "remap"), monitor = rig_pid(&f.rig, "monitor");
        int status = 0;
        rig_signal(remap, SIGSTOP);
        fflush(NULL);
        pid_t poster = fork();
        if (poster == 0)
            _exit(github(f.port, "", "deployment_status", "d", body, &answer) == 202);
        if (i == 2) /* 503: late */
            assert_int_equal(waitpid(poster, &status, 0), poster);
        rig_signal(monitor, SIGKILL);
        if (i == 1)
            assert_int_equal(waitpid(poster, &status, 0), poster);
        assert_int_equal(status, 0);
        assert_int_equal(truncate(f.rig.log, 0), 0); /* the ports of former lives */
        rig_signal(remap, SIGCONT);
        f.port = hook_client_port(&f.rig);
        long again = github(f.port, "", "deployment_status", "d", body, &answer);
        if (again != 202 && again != 200)
            fail_msg("%ld %s", again, answer.data);
        assert_int_equal(deployments(&f, i), 1);
    }
    close_fixture(&f);
}

static void test_post_when_it_triggers_nothing_then_the_answer_says_why(void **state)
{
    struct fixture f;
    AUTO_BUF struct buf answer = BUF_INIT;
    const char *const none[] = {"Expect:", NULL};
    const char *const bad[] = {"X-Hub-Signature-256: sha256=00", "X-GitHub-Event: ping", NULL};
    const char *const token[] = {"X-Gitlab-Token: token-of-gitlab", NULL};
    (void)state;
    open_fixture(&f, 1000);
    assert_int_equal(github(f.port, "", "ping", "p", "{}", &answer), 200);
    assert_string_equal(answer.data, "{\"ignored\":\"ping\"}\n");
    assert_int_equal(github(f.port, "", "deployment_status", "x",
                            "{\"deployment_status\":{\"state\":\"success\"},\"deployment\":{\"id\":"
                            "8,\"ref\":\"dev\"},\"repository\":{\"full_name\":"
                            "\"Codertocat/Hello-World\"}}",
                            &answer),
                     200);
    assert_string_equal(answer.data,
                        "{\"ignored\":\"its branch is none of those that are deployed\"}\n");
    assert_int_equal(github(f.port, "", "deployment_status", "x", "{", &answer), 400);
    assert_int_equal(hook_client_post(f.port, "/hooks/github", none, "{}", 2, &answer), 401);
    assert_int_equal(hook_client_post(f.port, "/hooks/github", bad, "{}", 2, &answer), 401);
    assert_int_equal(hook_client_post(f.port, "/hooks/travis", none, "{}", 2, &answer), 401);
    assert_int_equal(hook_client_post(f.port, "/hooks/other", none, "{}", 2, &answer), 404);
    assert_int_equal(hook_client_post(f.port, "/hooks/gitlab", none, "{}", 2, &answer), 401);
    assert_int_equal(
        hook_client_post(f.port, "/hooks/gitlab", token, "{\"object_kind\":\"push\"}", 22, &answer), 200);
    AUTO_BUF struct buf large = BUF_INIT;
    buf_reserve(&large, 3 << 20);
    for (size_t i = 0; i < (size_t)3 << 20; i++)
        buf_add(&large, "x", 1);
    assert_int_equal(hook_client_post(f.port, "/hooks/github", none, large.data, large.size, &answer), 413);
    assert_int_equal(hook_client_post(f.port, "/hooks/github", bad, large.data, large.size, &answer), 413);
    assert_int_equal(rig_number(&f.rig, "SELECT count(*) FROM v_events WHERE kind = 'deploy'"), 0);
    close_fixture(&f);
}

static void test_posts_when_too_many_then_429(void **state)
{
    struct fixture f;
    AUTO_BUF struct buf answer = BUF_INIT;
    long last = 0;
    (void)state;
    open_fixture(&f, 5);
    for (int i = 0; i < 1000 && last != 429; i++)
        last = github(f.port, "", "ping", "p", "{}", &answer);
    assert_int_equal(last, 429);
    close_fixture(&f);
}

static int half_open(int port)
{
    static const char text[] =
        "POST /hooks/github HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{";
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct err err = ERR_INIT;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    assert_int_equal(file_write_fd(fd, text, sizeof text - 1, &err), 0);
    return fd;
}

static void test_clients_when_slow_then_they_hold_up_nobody(void **state)
{
    struct fixture f;
    AUTO_BUF struct buf answer = BUF_INIT;
    int fds[16];
    (void)state;
    open_fixture(&f, 1000);
    int64_t until = clock_mono_ms() + RIG_PATIENCE_MS;
    for (bool open = false; !open;) { /* idle connections end: a slow machine begins again */
        assert_true(clock_mono_ms() < until);
        for (size_t i = 0; i < ARRAY_LEN(fds); i++)
            fds[i] = half_open(f.port);
        assert_int_equal(github(f.port, "", "ping", "p", "{}", &answer), 200);
        open = true; /* answered while they were */
        for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
            char c;
            open = open && recv(fds[i], &c, 1, MSG_DONTWAIT | MSG_PEEK) < 0 && errno == EAGAIN;
            close(fds[i]);
        }
    }
    close_fixture(&f);
}

/* Secrets are files: a new one holds at once, one that is gone proves nothing. */
static void test_secret_when_changed_then_the_new_one_counts(void **state)
{
    struct fixture f;
    AUTO_BUF struct buf answer = BUF_INIT;
    struct err err = ERR_INIT;
    (void)state;
    open_fixture(&f, 1000);
    assert_int_equal(github(f.port, "", "ping", "p", "{}", &answer), 200);
    assert_int_equal(file_write_atomic(f.github, "another", 7, 0600, &err), 0);
    assert_int_equal(github(f.port, "", "ping", "p", "{}", &answer), 401);
    unlink(f.github);
    assert_int_equal(github(f.port, "", "ping", "p", "{}", &answer), 401);
    assert_int_equal(file_write_atomic(f.github, SECRET, strlen(SECRET), 0600, &err), 0);
    assert_int_equal(github(f.port, "", "ping", "p", "{}", &answer), 200);
    AUTO_BUF struct buf log = BUF_INIT; /* and it is nowhere else */
    assert_int_equal(file_read(f.rig.log, 1 << 22, &log, &err), 0);
    assert_null(strstr(log.data, SECRET));
    close_fixture(&f);
}

static void test_listener_when_the_monitor_dies_or_hup_comes_then_it_is_back(void **state)
{
    struct fixture f;
    AUTO_BUF struct buf answer = BUF_INIT;
    (void)state;
    open_fixture(&f, 1000);
    AUTO_FREE char *hooks = section(f.github, f.gitlab, 2);
    rig_configure(&f.rig, "", hooks);
    rig_signal(f.rig.daemon, SIGHUP);
    rig_until(&f.rig, "SELECT count(*) FROM v_events WHERE kind = 'config'");
    long status = 0;
    for (int64_t until = clock_mono_ms() + RIG_PATIENCE_MS; status != 429;) {
        assert_true(clock_mono_ms() < until);
        status = github(hook_client_port(&f.rig), "", "ping", "p", "{}", &answer);
    }
    pid_t pid = rig_pid(&f.rig, "monitor");
    int port = hook_client_port(&f.rig);
    rig_signal(pid, SIGKILL);
    for (int64_t until = clock_mono_ms() + RIG_PATIENCE_MS; hook_client_port(&f.rig) == port;) {
        assert_true(clock_mono_ms() < until);
        clock_sleep_ms(10);
    }
    assert_int_equal(github(hook_client_port(&f.rig), "", "ping", "p", "{}", &answer), 200);
    close_fixture(&f);
}

static void test_check_when_a_secret_is_missing_then_says_which(void **state)
{
    struct fixture f;
    AUTO_BUF struct buf out = BUF_INIT;
    const char *const args[] = {"check", NULL};
    (void)state;
    open_fixture(&f, 1000);
    assert_int_equal(rig_remap(&f.rig, &out, args), 0);
    assert_non_null(strstr(out.data, "/hooks/github, 1 route"));
    unlink(f.github);
    buf_clear(&out);
    assert_int_equal(rig_remap(&f.rig, &out, args), 1);
    assert_non_null(strstr(out.data, f.github));
    close_fixture(&f);
}

/* Every answer of the cluster comes late: the monitor waits, and listens. */
static void test_post_when_the_monitor_collects_then_answered_meanwhile(void **state)
{
    struct fixture f;
    AUTO_BUF struct buf answer = BUF_INIT;
    (void)state;
    open_fixture(&f, 1000);
    rig_fault(&f.rig, "{\"kind\":\"slow\",\"delay_ms\":60000}");
    if (rig_ask(&f.rig, "{\"v\":1,\"command\":\"trigger\",\"app\":\"rig\"}", &answer) < 0)
        fail_msg("%s", answer.data);
    rig_until_state(&f.rig, 1, "collecting");
    for (int i = 0; i < 5; i++)
        assert_int_equal(github(f.port, "", "ping", "p", "{}", &answer), 200);
    assert_int_equal(rig_number(&f.rig, "SELECT state = 'collecting' FROM v_cycles"), 1);
    assert_int_equal(
        github(f.port, "", "deployment_status", "d1", SAMPLE_GITHUB_DEPLOYMENT, &answer), 202);
    rig_until_state(&f.rig, 1, "superseded");
    close_fixture(&f);
}

/* A certificate of our own for 127.0.0.1, by the openssl program. */
static bool make_certificate(const char *cert, const char *key)
{
    AUTO_FREE char *command =
        mem_printf("openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext "
                   "subjectAltName=IP:127.0.0.1 -out %s -keyout %s >/dev/null 2>&1",
                   cert, key);
    return system(command) == 0;
}

static void test_post_when_tls_is_configured_then_only_https_is_answered(void **state)
{
    struct fixture f;
    AUTO_BUF struct buf answer = BUF_INIT;
    (void)state;
    AUTO_FREE char *cert = mem_printf("/tmp/remap-hooks-%ld.crt", (long)getpid());
    AUTO_FREE char *key = mem_printf("/tmp/remap-hooks-%ld.key", (long)getpid());
    if (!make_certificate(cert, key))
        fail_msg("the program openssl makes no certificate here: etc/test installs it");
    open_fixture(&f, 1000);
    AUTO_FREE char *plain = section(f.github, f.gitlab, 1000);
    AUTO_FREE char *hooks =
        mem_printf("%s  tls_cert_file: %s\n  tls_key_file: %s\n", plain, cert, key);
    rig_configure(&f.rig, "", hooks);
    rig_signal(f.rig.daemon, SIGHUP);
    int port = f.port;
    for (int64_t until = clock_mono_ms() + RIG_PATIENCE_MS; port == f.port;) {
        assert_true(clock_mono_ms() < until);
        port = hook_client_port(&f.rig);
    }
    AUTO_FREE char *url = mem_printf("https://127.0.0.1:%d/hooks/github", port);
    CURL *curl = curl_easy_init();
    long status = 0;
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_CAINFO, cert);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, "{}");
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &answer);
    assert_int_equal(curl_easy_perform(curl), CURLE_OK);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    assert_int_equal(status, 401); /* the way is there; the signature is missing */
    curl_easy_cleanup(curl);
    const char *const none[] = {NULL};
    assert_int_equal(hook_client_post(port, "/hooks/github", none, "{}", 2, &answer), 0);
    unlink(cert);
    unlink(key);
    close_fixture(&f);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_deployment_when_posted_then_stored_answered_and_timer_reset),
        cmocka_unit_test(test_deployment_when_remap_dies_after_storing_it_then_the_timer_is_reset),
        cmocka_unit_test(
            test_deployment_when_the_monitor_dies_before_it_is_stored_then_repeated_once),
        cmocka_unit_test(test_post_when_it_triggers_nothing_then_the_answer_says_why),
        cmocka_unit_test(test_posts_when_too_many_then_429),
        cmocka_unit_test(test_clients_when_slow_then_they_hold_up_nobody),
        cmocka_unit_test(test_secret_when_changed_then_the_new_one_counts),
        cmocka_unit_test(test_listener_when_the_monitor_dies_or_hup_comes_then_it_is_back),
        cmocka_unit_test(test_post_when_the_monitor_collects_then_answered_meanwhile),
        cmocka_unit_test(test_post_when_tls_is_configured_then_only_https_is_answered),
        cmocka_unit_test(test_check_when_a_secret_is_missing_then_says_which),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
