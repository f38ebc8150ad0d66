/* cluster.c - a private redis-server, a lease service and a gateway, as children of this process. */
#include "api/cli/cluster.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "api/cli/address.h"
#include "api/cli/cli.h"
#include "api/cli/print.h"
#include "api/cli/redis_ping.h"
#include "api/cli/words.h"
#include "api/client/http_client.h"

enum {
    START_MS = 15000, /* for each of the three to be there */
    LOAD_MS = 60000,  /* for Redis to have read its file */
    READY_REQUEST_MS = 3000,
    LOOK_AGAIN_MS = 20,
    END_MS = 8000 /* the services promise 5 s */
};

#define LISTENING "listening on http://"

static int cluster_redis(struct cluster *cluster, const char *const *wrap);
static int cluster_store(struct cluster *cluster);
static int cluster_service(struct cluster *cluster, struct cluster_member *member, const char *program,
                           const char *listen, char url[CLUSTER_URL_SIZE]);
static int cluster_ready(struct cluster *cluster, const char *name, const char *url);

int cluster_start(struct cluster *cluster, const struct cluster_plan *plan)
{
    int status;

    memset(cluster, 0, sizeof(*cluster));
    cluster->line = plan->line;
    cluster->files.lock_fd = -1;
    watch_open(&cluster->watch);
    status = address_check(plan->listen_lease, "--listen-lease");
    if (status == CLI_GO_ON) {
        status = address_check(plan->listen_gateway, "--listen-gateway");
    }
    if (status == CLI_GO_ON) {
        status = cluster_files_open(&cluster->files, plan->data);
    }
    if (status == CLI_GO_ON) {
        status = cluster_redis(cluster, plan->redis_wrap);
    }
    if (status == CLI_GO_ON && !cluster->files.store_made) {
        status = cluster_store(cluster);
    }
    if (status == CLI_GO_ON) {
        status = cluster_service(cluster, &cluster->lease, "pawl-lease", plan->listen_lease,
                                 cluster->lease_url);
    }
    if (status == CLI_GO_ON) {
        status = cluster_service(cluster, &cluster->gateway, "pawl-gateway", plan->listen_gateway,
                                 cluster->gateway_url);
    }
    if (status == CLI_GO_ON) {
        status = cluster_ready(cluster, "the lease service", cluster->lease_url);
    }
    return status == CLI_GO_ON ? cluster_ready(cluster, "the gateway", cluster->gateway_url) : status;
}

/* -- what happens */

static struct cluster_member *member_of(struct cluster *cluster, const struct child *child)
{
    struct cluster_member *members[] = {&cluster->redis, &cluster->maker, &cluster->lease, &cluster->gateway};

    for (unsigned i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        if (child == &members[i]->child) {
            return members[i];
        }
    }
    return NULL;
}

/* The url of a service is in the line by which it says that it listens. */
static void line_take(struct cluster *cluster, struct cluster_member *member)
{
    const char *line = cluster->watch.line;
    const char *listening = strstr(line, LISTENING);
    char *url = member == &cluster->lease ? cluster->lease_url : cluster->gateway_url;

    snprintf(member->tail[member->said++ % CLUSTER_TAIL], CLUSTER_TAIL_BYTES, "%.*s", CLUSTER_TAIL_BYTES - 1,
             line);
    if (member == &cluster->redis || member == &cluster->maker) {
        return;
    }
    if (listening != NULL && *url == '\0') {
        listening += strlen("listening on ");
        snprintf(url, CLUSTER_URL_SIZE, "%.*s", (int)strcspn(listening, " \""), listening);
    } else if (cluster->line != NULL) {
        cluster->line(member->child.name, line);
    }
}

enum watch_event cluster_next(struct cluster *cluster, uint64_t deadline_ms)
{
    for (;;) {
        enum watch_event event = watch_next(&cluster->watch, deadline_ms);
        struct cluster_member *member = event == WATCH_LINE ? member_of(cluster, cluster->watch.child) : NULL;

        if (member == NULL) {
            return event;
        }
        line_take(cluster, member);
    }
}

bool cluster_tell_end(struct cluster *cluster)
{
    const struct child *child = cluster->watch.child;
    const struct cluster_member *member = member_of(cluster, child);
    char end[64];

    if (member == NULL) {
        return false;
    }
    child_describe_end(child, end, sizeof(end));
    cli_fail(CLI_BUG, "%s has ended by itself: %s", child->name, end);
    for (unsigned i = member->said > CLUSTER_TAIL ? member->said - CLUSTER_TAIL : 0; i < member->said; i++) {
        cli_hint("%s", member->tail[i % CLUSTER_TAIL]);
    }
    return true;
}

/* One turn of a wait for something that has no event of its own. CLI_GO_ON: look again. */
static int wait_a_little(struct cluster *cluster, uint64_t deadline_ms, const char *what)
{
    uint64_t now = cli_now_ms();

    if (now >= deadline_ms) {
        return cli_fail(CLI_BUG, "%s in time", what);
    }
    switch (cluster_next(cluster, now + LOOK_AGAIN_MS)) {
    case WATCH_SIGNAL: return CLI_OK;
    case WATCH_ENDED:
        cluster_tell_end(cluster);
        return WIFEXITED(cluster->watch.child->status) &&
                       WEXITSTATUS(cluster->watch.child->status) == CLI_CONFIG
                   ? CLI_CONFIG
                   : CLI_BUG;
    case WATCH_LINE:
    case WATCH_STOPPED:
    case WATCH_DEADLINE: return CLI_GO_ON;
    }
    abort();
}

static int start_child(struct cluster *cluster, struct child *child, const char *name,
                       const char *const *argv)
{
    if (!child_start(child, name, CHILD_LOGS, argv)) {
        return cli_fail(CLI_BUG, "%s cannot be started", name);
    }
    watch_add(&cluster->watch, child);
    return CLI_GO_ON;
}

static int find_program(const char *name, char path[CHILD_PATH_SIZE])
{
    if (child_find(name, path)) {
        return CLI_GO_ON;
    }
    cli_fail(CLI_CONFIG, "the program %s is neither beside pawl nor in PATH", name);
    cli_hint(strcmp(name, "redis-server") == 0
                 ? "Install it: apt-get install redis-server, or deploy/install-deps."
                 : "Build it: make.");
    return CLI_CONFIG;
}

/* -- Redis */

/* The words that wrap it. */
static int wrap_words(const char *const *wrap, char first[CHILD_PATH_SIZE], struct words *words)
{
    int status;

    if (wrap == NULL || wrap[0] == NULL) {
        return CLI_GO_ON;
    }
    status = find_program(wrap[0], first);
    words_add(words, (const char *const[]){first, NULL});
    words_add(words, wrap + 1);
    assert(words->count < CLUSTER_WRAP_MAX);
    return status;
}

static int cluster_redis(struct cluster *cluster, const char *const *wrap)
{
    char program[CHILD_PATH_SIZE], first[CHILD_PATH_SIZE];
    const struct cluster_files *files = &cluster->files;
    struct words words = {.count = 0};
    int status = find_program("redis-server", program);
    uint64_t deadline_ms = cli_now_ms() + LOAD_MS;

    if (status == CLI_GO_ON) {
        status = wrap_words(wrap, first, &words);
    }
    if (status == CLI_GO_ON) {
        words_add(&words, (const char *const[]){program, NULL});
        words_add_store(&words, files->socket, files->data, "always", "no");
        status = start_child(cluster, &cluster->redis.child, "redis", words.at);
    }
    while (status == CLI_GO_ON && !redis_ping(files->socket)) {
        status = wait_a_little(cluster, deadline_ms, "redis-server did not answer");
    }
    return status;
}

/* -- the store, when there is none yet */

static void store_url(const struct cluster *cluster, char url[CHILD_PATH_SIZE])
{
    snprintf(url, CHILD_PATH_SIZE, "unix://%.*s", CHILD_PATH_SIZE - 8, cluster->files.socket);
}

static int cluster_store(struct cluster *cluster)
{
    char program[CHILD_PATH_SIZE], url[CHILD_PATH_SIZE];
    int status = find_program("pawl-lease", program);
    const char *const argv[] = {
        program, "--redis", url, "--init-store", "--state-dir", cluster->files.state_lease, NULL};
    uint64_t deadline_ms = cli_now_ms() + START_MS;
    const struct child *maker = &cluster->maker.child;

    store_url(cluster, url);
    if (status == CLI_GO_ON) {
        status = start_child(cluster, &cluster->maker.child, "pawl-lease --init-store", argv);
    }
    while (status == CLI_GO_ON && maker->pid != 0) {
        enum watch_event event = cluster_next(cluster, deadline_ms);

        if (event == WATCH_SIGNAL) {
            return CLI_OK;
        }
        if (event == WATCH_DEADLINE || (event == WATCH_ENDED && cluster->watch.child != maker)) {
            cluster_tell_end(cluster);
            return cli_fail(CLI_BUG, "the store could not be made");
        }
    }
    /* 1: there was one already; we were interrupted between making it and noting that. */
    if (status == CLI_GO_ON && (!WIFEXITED(maker->status) || WEXITSTATUS(maker->status) > 1)) {
        cluster_tell_end(cluster);
        return WIFEXITED(maker->status) ? WEXITSTATUS(maker->status) : CLI_BUG;
    }
    return status == CLI_GO_ON ? cluster_files_note_store(&cluster->files) : status;
}

/* -- the services */

static int cluster_service(struct cluster *cluster, struct cluster_member *member, const char *program,
                           const char *listen, char url[CLUSTER_URL_SIZE])
{
    char path[CHILD_PATH_SIZE], redis[CHILD_PATH_SIZE];
    bool is_lease = member == &cluster->lease;
    const char *state = is_lease ? cluster->files.state_lease : cluster->files.state_gateway;
    const char *const argv[] = {
        path,           "--listen", listen,        "--redis", redis, "--keys", cluster->files.keys,
        "--log-format", "text",     "--state-dir", state,     NULL};
    const char *name = is_lease ? "lease" : "gateway";
    uint64_t deadline_ms = cli_now_ms() + START_MS;
    int status = find_program(program, path);

    store_url(cluster, redis);
    if (status == CLI_GO_ON) {
        status = start_child(cluster, &member->child, name, argv);
    }
    while (status == CLI_GO_ON && *url == '\0') {
        status = wait_a_little(cluster, deadline_ms, "a service did not say where it listens");
    }
    return status;
}

static int cluster_ready(struct cluster *cluster, const char *name, const char *url)
{
    char page[CLUSTER_URL_SIZE + 16], what[96];
    struct http_client_request request = {.method = "GET", .url = page, .timeout_ms = READY_REQUEST_MS};
    uint64_t deadline_ms = cli_now_ms() + START_MS;
    int status = CLI_GO_ON;

    snprintf(page, sizeof(page), "%s/readyz", url);
    snprintf(what, sizeof(what), "%s did not become ready", name);
    while (status == CLI_GO_ON) {
        struct http_client_answer answer;
        enum http_client_outcome outcome = http_client_send(&request, &answer);
        bool ready = outcome == HTTP_CLIENT_ANSWERED && answer.status == 200;
        bool lost = outcome == HTTP_CLIENT_ANSWERED && strstr(answer.body, "store-not-ours") != NULL;

        http_client_answer_done(&answer);
        if (ready) {
            return CLI_GO_ON;
        }
        if (lost) {
            return cli_fail(CLI_CONFIG,
                            "the content of the store in %s is lost: begin anew in an empty directory",
                            cluster->files.data);
        }
        status = wait_a_little(cluster, deadline_ms, what);
    }
    return status;
}

/* -- the end */

static void end_one(struct cluster *cluster, struct child *child)
{
    uint64_t deadline_ms = cli_now_ms() + END_MS;

    if (child->pid == 0) {
        return;
    }
    child_signal(child, SIGTERM);
    child_signal(child, SIGCONT); /* one that is stopped does not hear SIGTERM before */
    while (child->pid != 0) {
        enum watch_event event = cluster_next(cluster, deadline_ms);

        if (event == WATCH_SIGNAL || event == WATCH_DEADLINE) { /* asked a second time, or too slow */
            child_signal(child, SIGKILL);
            deadline_ms = UINT64_MAX; /* it will end: nothing survives this */
        }
    }
}

void cluster_end(struct cluster *cluster)
{
    end_one(cluster, &cluster->gateway.child);
    end_one(cluster, &cluster->lease.child);
    end_one(cluster, &cluster->maker.child);
    end_one(cluster, &cluster->redis.child);
    cluster_files_close(&cluster->files);
    watch_close(&cluster->watch);
}
