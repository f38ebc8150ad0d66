/* job_peers.c - acquire and release as others do it: the lock that people write themselves on Redis, etcd and
 * ZooKeeper. */
#include "tests/bench/job.h"

#define ETCD_KEY "\"key\":\"" RUN_NUMBER "\"" /* 12 digits are base64, too */
#define ZOOKEEPER_PATH "/" RUN_NUMBER

enum {
    ZOOKEEPER_CREATE = 1,
    ZOOKEEPER_DELETE = 2,
    ALL_RIGHTS = 31,
    EPHEMERAL = 1,
    SESSION_MS = 40000,
    PASSWORD = 16
};

static struct job_step *step_new(struct job *job)
{
    return &job->steps[job->step_count++];
}

/* -- SET NX PX, INCR for the token, and a release that looks whose it is */

void job_init_naive(struct job *job, const char *release)
{
    const char *const commands[][8] = {
        {"SET", "lock:" RUN_NAME, RUN_LEASE_ID, "NX", "PX", "30000", NULL},
        {"INCR", "fence:" RUN_NAME, NULL},
        {"EVALSHA", release, "1", "lock:" RUN_NAME, RUN_LEASE_ID, NULL},
    };
    static const char *const words[] = {"OK", NULL, "1"};

    *job = (struct job){.kind = JOB_LEASE, .speech = SPEAK_NAIVE, .measure = resp_measure};
    for (unsigned i = 0; i < STEPS_MAX; i++) {
        struct job_step *step = step_new(job);

        resp_command(&step->request, commands[i]);
        step_expect(step, words[i], NULL);
    }
}

/* -- etcd's JSON gateway: a key that is there once, on a lease; its revision is the token */

static void etcd_post(struct job *job, const char *path, const char *body, const char *part)
{
    struct job_step *step = step_new(job);

    request_addf(&step->request,
                 "POST /v3/kv/%s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %zu\r\n\r\n%s", path,
                 strlen(body), body);
    step_expect(step, "200", NULL);
    step->part = part;
}

void job_init_etcd(struct job *job)
{
    *job = (struct job){.kind = JOB_LEASE, .speech = SPEAK_ETCD, .measure = http_measure};
    etcd_post(job, "txn",
              "{\"compare\":[{" ETCD_KEY ",\"target\":\"CREATE\",\"create_revision\":\"0\"}],"
              "\"success\":[{\"request_put\":{" ETCD_KEY ",\"value\":\"" RUN_NUMBER "\",\"lease\":\"7\"}}]}",
              "\"succeeded\":true");
    etcd_post(job, "deleterange", "{" ETCD_KEY "}", "\"deleted\":\"1\"");
}

/* -- ZooKeeper: an ephemeral node; the zxid of its creation is the token. Its protocol: numbers of four
 * bytes, the highest first; each text and each message with its length before it (zookeeper.jute). */

static void jute_int(struct request *req, unsigned value)
{
    char bytes[] = {(char)(value >> 24), (char)(value >> 16), (char)(value >> 8), (char)value};

    request_add(req, (struct bytes){bytes, sizeof(bytes)});
}

static void jute_text(struct request *req, struct bytes text)
{
    jute_int(req, (unsigned)text.len);
    request_add(req, text);
}

static void jute_message(struct request *req, const struct request *content)
{
    jute_text(req, (struct bytes){content->text, content->len});
}

/* Head of an answer: xid, zxid (8 bytes), error. */
static long zookeeper_measure(struct bytes in, struct bytes *word)
{
    static const char no_error[4] = "";
    const unsigned char *at = (const unsigned char *)in.at;
    size_t len;

    if (in.len < 20)
        return ANSWER_PART;
    len = 4 + ((size_t)at[0] << 24 | (size_t)at[1] << 16 | (size_t)at[2] << 8 | at[3]);
    *word = memcmp(at + 16, no_error, sizeof(no_error)) == 0 ? BYTES("ok") : BYTES("-error");
    return len < 20 ? ANSWER_BAD : len <= in.len ? (long)len : ANSWER_PART;
}

static void zookeeper_hello(struct request *hello)
{
    static const char nothing[PASSWORD] = "";
    struct request content = {0};

    jute_int(&content, 0);                             /* version */
    request_add(&content, (struct bytes){nothing, 8}); /* last zxid seen */
    jute_int(&content, SESSION_MS);
    request_add(&content, (struct bytes){nothing, 8}); /* session: a new one */
    jute_text(&content, (struct bytes){nothing, PASSWORD});
    jute_message(hello, &content);
}

static void zookeeper_step(struct job *job, unsigned what)
{
    struct request content = {0};
    struct job_step *step = step_new(job);

    jute_int(&content, 7); /* xid */
    jute_int(&content, what);
    jute_text(&content, BYTES(ZOOKEEPER_PATH));
    if (what == ZOOKEEPER_CREATE) {
        jute_text(&content, BYTES(RUN_LEASE_ID));
        jute_int(&content, 1); /* rights in the list */
        jute_int(&content, ALL_RIGHTS);
        jute_text(&content, BYTES("world"));
        jute_text(&content, BYTES("anyone"));
        jute_int(&content, EPHEMERAL);
    } else {
        jute_int(&content, UINT32_MAX); /* any version */
    }
    jute_message(&step->request, &content);
    step_expect(step, "ok", NULL);
}

void job_init_zookeeper(struct job *job)
{
    struct request hello = {0};

    *job = (struct job){.kind = JOB_LEASE, .speech = SPEAK_ZOOKEEPER, .measure = zookeeper_measure};
    zookeeper_hello(&hello);
    job->hello = (struct bytes){hello.text, hello.len};
    zookeeper_step(job, ZOOKEEPER_CREATE);
    zookeeper_step(job, ZOOKEEPER_DELETE);
}
