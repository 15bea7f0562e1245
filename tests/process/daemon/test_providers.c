/* test_providers.c - Travis, GitLab and Gitea against the webhook listener of a real `remap run`, signed
 * by the openssl program (interfaces.md 6): taken, refused where one byte is another, once where it
 * comes twice, and again where an operator redelivers. (GitHub and the way to the timer:
 * test_webhooks.c.) */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "model/base/clock.h"
#include "model/base/file.h"
#include "model/base/mem.h"
#include "tests/process/daemon/hook_client.h"
#include "tests/support/hook_samples.h"
#include "tests/support/temp_dir.h"

#define SECRET "a secret of forty-one characters, no less"
#define TOKEN "token-of-gitlab"
#define MAX_HEADERS 6

struct fixture {
    struct rig rig;
    char *dir;
    int port;
    bool token; /* GitLab proves itself by its token */
};

static void write_file(const struct fixture *f, const char *name, const char *text, size_t size)
{
    struct err err = ERR_INIT;
    AUTO_FREE char *path = mem_printf("%s/%s", f->dir, name);
    assert_int_equal(file_write_atomic(path, text, size, 0600, &err), 0);
}

/* What a command says of `data`, without the newline. `format` has the folder for each %s, up to
 * four; data lies there as the file data. */
static char *run(const struct fixture *f, const char *format, const char *data, size_t size)
{
    struct err err = ERR_INIT;
    struct buf out = BUF_INIT;
    AUTO_FREE char *inner = mem_printf(format, f->dir, f->dir, f->dir, f->dir);
    AUTO_FREE char *command = mem_printf("{ %s; } >%s/out 2>%s/errors", inner, f->dir, f->dir);
    AUTO_FREE char *path = mem_printf("%s/out", f->dir);
    write_file(f, "data", data, size);
    if (system(command) != 0)
        fail_msg("%s (etc/test installs openssl)", command);
    assert_int_equal(file_read(path, 1 << 16, &out, &err), 0);
    buf_puts(&out, "");
    out.data[strcspn(out.data, "\n")] = '\0';
    return buf_take(&out);
}

static void configure(struct fixture *f, const char *window)
{
    AUTO_FREE char *gitlab = mem_printf("%s_file: %s/%s", f->token ? "token" : "secret", f->dir,
                                        f->token ? "token" : "secret");
    AUTO_FREE char *hooks = mem_printf("webhooks:\n"
                                       "  listen: 127.0.0.1:0\n"
                                       "  rate: 1000\n"
                                       "  replay_window: %s\n"
                                       "  providers:\n"
                                       "    - {name: travis, public_key_file: %s/public.pem}\n"
                                       "    - {name: gitlab, %s}\n"
                                       "    - {name: gitea, secret_file: %s/secret}\n"
                                       "  routes:\n"
                                       "    - {app: rig, repository: vangie/ci-test, branches: [master]}\n"
                                       "    - {app: rig, repository: root/test, environments: [staging]}\n"
                                       "    - {app: rig, repository: a/b, workflows: [deploy]}\n",
                                       window, f->dir, gitlab, f->dir);
    rig_configure(&f->rig, "    interval_min: 30s\n    interval_max: 2h\n", hooks);
}

static void open_fixture(struct fixture *f, bool token)
{
    *f = (struct fixture){.dir = temp_dir_new(), .token = token};
    write_file(f, "secret", SECRET, strlen(SECRET));
    write_file(f, "token", TOKEN, strlen(TOKEN));
    free(run(f, "openssl genrsa -out %s/key.pem 2048 && openssl rsa -in %s/key.pem -pubout -out "
                "%s/public.pem", "", 0));
    rig_open(&f->rig, 1, "", "");
    configure(f, "5m");
    rig_start(&f->rig, true);
    f->port = hook_client_port(&f->rig);
}

static void close_fixture(struct fixture *f)
{
    rig_stop(&f->rig);
    rig_close(&f->rig);
    temp_dir_remove(f->dir);
    free(f->dir);
}

/* --- the three of them --- */

struct post {
    const char *path;
    char *headers[MAX_HEADERS + 1];
    struct buf body;
};

static void post_wipe(struct post *post)
{
    for (size_t i = 0; post->headers[i]; i++)
        free(post->headers[i]);
    buf_wipe(&post->body);
}

static void put_form(struct buf *out, const char *text)
{
    buf_puts(out, "payload=");
    for (; *text; text++)
        buf_printf(out, "%%%02X", (unsigned char)*text);
}

/* Travis signs the payload, not the form around it. */
static void make_travis(const struct fixture *f, int64_t now_s, struct post *post)
{
    static const char payload[] = SAMPLE_TRAVIS("push", "\"passed\"", "0", "Passed");
    (void)now_s;
    AUTO_FREE char *proof = run(f, "openssl dgst -sha1 -sign %s/key.pem %s/data | openssl base64 -A",
                                payload, strlen(payload));
    post->path = "/hooks/travis";
    post->headers[0] = mem_printf("Signature: %s", proof);
    post->headers[1] = mem_strdup("Content-Type: application/x-www-form-urlencoded");
    put_form(&post->body, payload);
}

/* Standard Webhooks: id, time and body are signed. */
static void make_gitlab(const struct fixture *f, int64_t now_s, struct post *post)
{
    AUTO_BUF struct buf text = BUF_INIT;
    post->path = "/hooks/gitlab";
    buf_puts(&post->body, SAMPLE_GITLAB_DEPLOYMENT("success"));
    post->headers[0] = mem_strdup("Content-Type: application/json");
    if (f->token) {
        post->headers[1] = mem_strdup("X-Gitlab-Token: " TOKEN);
        post->headers[2] = mem_strdup("Idempotency-Key: 7c12e5d8");
        return;
    }
    buf_printf(&text, "msg_1.%lld.%s", (long long)now_s, post->body.data);
    AUTO_FREE char *proof =
        run(f, "openssl dgst -sha256 -hmac \"$(cat %s/secret)\" -binary %s/data | openssl base64 -A",
            text.data, text.size);
    post->headers[1] = mem_strdup("webhook-id: msg_1");
    post->headers[2] = mem_printf("webhook-timestamp: %lld", (long long)now_s);
    post->headers[3] = mem_printf("webhook-signature: v1,%s", proof);
}

static void make_gitea(const struct fixture *f, int64_t now_s, struct post *post)
{
    (void)now_s;
    post->path = "/hooks/gitea";
    buf_puts(&post->body, SAMPLE_WORKFLOW("completed", "success", "push"));
    AUTO_FREE char *proof =
        run(f, "openssl dgst -sha256 -hmac \"$(cat %s/secret)\" -hex %s/data | sed 's/.*= *//'",
            post->body.data, post->body.size);
    post->headers[0] = mem_printf("X-Gitea-Signature: %s", proof);
    post->headers[1] = mem_strdup("X-Gitea-Event: workflow_run");
    post->headers[2] = mem_strdup("X-Gitea-Delivery: f6266f16");
    post->headers[3] = mem_strdup("Content-Type: application/json");
}

static const struct {
    const char *name;
    void (*make)(const struct fixture *f, int64_t now_s, struct post *post);
} providers[] = {{"travis", make_travis}, {"gitlab", make_gitlab}, {"gitea", make_gitea}};

static int64_t now_s(void)
{
    return clock_wall_ms() / 1000;
}

static long send_made(struct fixture *f, const struct post *post, struct buf *answer)
{
    const char *headers[MAX_HEADERS + 2] = {"Expect:"};
    for (size_t i = 0; post->headers[i]; i++)
        headers[i + 1] = post->headers[i];
    return hook_client_post(f->port, post->path, headers, post->body.data, post->body.size, answer);
}

static long send(struct fixture *f, size_t provider, int64_t at_s, struct buf *answer)
{
    struct post post = {.body = BUF_INIT};
    providers[provider].make(f, at_s, &post);
    long status = send_made(f, &post, answer);
    post_wipe(&post);
    return status;
}

static int64_t deployments(struct fixture *f, const char *provider)
{
    AUTO_FREE char *sql = mem_printf(
        "SELECT count(*) FROM v_events WHERE kind = 'deploy' AND text LIKE '%s:%%'", provider);
    return rig_number(&f->rig, sql);
}

/* One byte of the body, inside what is signed, is another. */
static long send_altered(struct fixture *f, size_t provider, struct buf *answer)
{
    struct post post = {.body = BUF_INIT};
    providers[provider].make(f, now_s(), &post);
    char *at = post.body.data + post.body.size / 2;
    *at = *at == '5' ? '6' : '5';
    long status = send_made(f, &post, answer);
    post_wipe(&post);
    return status;
}

static void verify_first_and_second(struct fixture *f, size_t provider)
{
    AUTO_BUF struct buf answer = BUF_INIT;
    const char *name = providers[provider].name;
    int64_t before = deployments(f, name);
    if (send(f, provider, now_s(), &answer) != 202)
        fail_msg("%s: %s", name, answer.data);
    assert_int_equal(deployments(f, name), before + 1); /* stored before it was answered */
    assert_int_equal(send(f, provider, now_s(), &answer), 200);
    assert_non_null(strstr(answer.data, "{\"ignored\":\"this delivery is event"));
    assert_int_equal(deployments(f, name), before + 1);
}

/* With a short window the first repetition is a duplicate no more: what an operator redelivers. */
static void verify_redelivered(struct fixture *f)
{
    AUTO_BUF struct buf answer = BUF_INIT;
    int old = f->port;
    configure(f, "3s");
    rig_signal(f->rig.daemon, SIGHUP);
    for (int64_t until = clock_mono_ms() + RIG_PATIENCE_MS; f->port == old; clock_sleep_ms(10)) {
        assert_true(clock_mono_ms() < until);
        f->port = hook_client_port(&f->rig);
    }
    for (size_t p = 0; p < ARRAY_LEN(providers); p++) {
        int64_t before = deployments(f, providers[p].name);
        for (int64_t until = clock_mono_ms() + RIG_PATIENCE_MS;
             send(f, p, now_s() + 1, &answer) != 202; clock_sleep_ms(100))
            assert_true(clock_mono_ms() < until);
        assert_int_equal(deployments(f, providers[p].name), before + 1);
    }
}

static void test_deployment_when_signed_then_once_and_when_altered_refused(void **state)
{
    struct fixture f;
    AUTO_BUF struct buf answer = BUF_INIT;
    (void)state;
    open_fixture(&f, false);
    for (size_t p = 0; p < ARRAY_LEN(providers); p++) {
        if (send_altered(&f, p, &answer) != 401)
            fail_msg("%s altered: %s", providers[p].name, answer.data);
        verify_first_and_second(&f, p);
    }
    /* overheard an hour ago, or of an hour to come; the signature fits */
    assert_int_equal(send(&f, 1, now_s() - 3600, &answer), 401);
    assert_int_equal(send(&f, 1, now_s() + 3600, &answer), 401);
    assert_int_equal(rig_number(&f.rig, "SELECT count(*) FROM v_events WHERE kind = 'deploy'"), 3);
    verify_redelivered(&f);
    close_fixture(&f);
}

static void test_gitlab_when_its_token_is_shown_then_believed(void **state)
{
    struct fixture f;
    AUTO_BUF struct buf answer = BUF_INIT;
    const char *const wrong[] = {"Expect:", "X-Gitlab-Token: token-of-gitlaB", NULL};
    const char *const none[] = {"Expect:", NULL};
    const char body[] = SAMPLE_GITLAB_DEPLOYMENT("success");
    const char failed[] = SAMPLE_GITLAB_DEPLOYMENT("failed");
    const char *const right[] = {"Expect:", "X-Gitlab-Token: " TOKEN, NULL};
    (void)state;
    open_fixture(&f, true);
    assert_int_equal(hook_client_post(f.port, "/hooks/gitlab", wrong, body, strlen(body), &answer),
                     401);
    assert_int_equal(hook_client_post(f.port, "/hooks/gitlab", none, body, strlen(body), &answer),
                     401);
    assert_int_equal(
        hook_client_post(f.port, "/hooks/gitlab", right, failed, strlen(failed), &answer), 200);
    assert_string_equal(answer.data, "{\"ignored\":\"the deployment is failed\"}\n");
    verify_first_and_second(&f, 1);
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_deployment_when_signed_then_once_and_when_altered_refused),
        cmocka_unit_test(test_gitlab_when_its_token_is_shown_then_believed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
