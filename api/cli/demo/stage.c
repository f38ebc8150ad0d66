/* stage.c - where a hazard is played: the processes, waiting for events, and what is done with Redis. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/cli/child.h"
#include "api/cli/cli.h"
#include "api/cli/demo/demo_internal.h"
#include "api/cli/demo/redis.h"

#define HOUR_NS INT64_C(3600000000000)

enum {
    END_MS = 5000,
    ASK_MS = 5000,
    READY_MS = 15000,
    AGAIN_MS = 20,
    REPLY_SIZE = 8192,
    ADDRESS_SIZE = 192,
    JUMP_S_MIN = 3500,
    LEASE_FIRST = 41 /* the lease of the first part is orders:41 */
};

static bool needs(const struct stage *stage, unsigned what)
{
    return (stage->hazard->on.needs & what) != 0;
}

static unsigned part_index(const struct stage *stage)
{
    return (unsigned)(stage->part - stage->hazard->parts);
}

/* -- waiting */

bool stage_next(struct stage *stage, uint64_t deadline_ms, enum watch_event *event)
{
    const struct watch *watch = &stage->cluster.watch;

    *event = cluster_next(&stage->cluster, deadline_ms);
    switch (*event) {
    case WATCH_SIGNAL: cli_fail(CLI_REFUSED, "interrupted"); return false;
    case WATCH_LINE:
        for (unsigned i = 0; i < ACTORS; i++) {
            if (watch->child == &stage->actors[i].child) {
                return stage_hear(stage, &stage->actors[i], watch->line);
            }
        }
        return true;
    case WATCH_ENDED:
        if (watch->child == stage->doomed) {
            return true;
        }
        if (!cluster_tell_end(&stage->cluster)) {
            cli_fail(CLI_BUG, "%s has ended by itself", watch->child->name);
        }
        return false;
    case WATCH_STOPPED:
    case WATCH_DEADLINE: return true;
    }
    abort();
}

static bool is_one_of(const char *word, const char *words)
{
    size_t len = strlen(word);

    while (len > 0 && words != NULL) {
        if (strncmp(words, word, len) == 0 && (words[len] == '|' || words[len] == '\0')) {
            return true;
        }
        words = strchr(words, '|');
        words = words != NULL ? words + 1 : NULL;
    }
    return false;
}

bool stage_until(struct stage *stage, const struct actor *actor, const char *words, unsigned ms)
{
    uint64_t deadline_ms = cli_now_ms() + ms;
    enum watch_event event = WATCH_LINE;

    while (words == NULL || !is_one_of(actor->word, words)) {
        if (!stage_next(stage, deadline_ms, &event)) {
            return false;
        }
        if (event == WATCH_DEADLINE && words == NULL) {
            return true;
        }
        if (event == WATCH_DEADLINE) {
            cli_fail(CLI_REFUSED, "it went otherwise: %s was to say \"%s\"; its last word is \"%s\" %" PRId64,
                     actor->name, words, actor->word, actor->number);
            return false;
        }
        if (words != NULL && strcmp(actor->word, "failed") == 0) {
            cli_fail(CLI_REFUSED, "it went otherwise: %s was to say \"%s\", but failed", actor->name, words);
            return false;
        }
    }
    return true;
}

bool stage_kill(struct stage *stage, struct child *child)
{
    uint64_t deadline_ms = cli_now_ms() + END_MS;
    enum watch_event event = WATCH_LINE;

    stage->doomed = child;
    child_signal(child, SIGKILL);
    while (child->pid != 0) {
        if (!stage_next(stage, deadline_ms, &event)) {
            return false;
        }
        if (event == WATCH_DEADLINE) {
            cli_fail(CLI_BUG, "%s does not end", child->name);
            return false;
        }
    }
    return true;
}

/* -- Redis */

static void run_path(const struct stage *stage, const char *name, unsigned number, char path[ADDRESS_SIZE])
{
    snprintf(path, ADDRESS_SIZE, "%.*s/%s%u", ADDRESS_SIZE - 32, stage->cluster.files.run, name, number);
}

static void node_address(const struct stage *stage, unsigned node, char address[ADDRESS_SIZE])
{
    run_path(stage, "node-", part_index(stage) * WORKER_NODES_MAX + node, address);
}

/* Of the part's Redis: the recipe's first, or Pawl's. */
static void redis_address(const struct stage *stage, char address[ADDRESS_SIZE])
{
    if (stage->is_pawl) {
        snprintf(address, ADDRESS_SIZE, "%.*s", ADDRESS_SIZE - 1, stage->cluster.files.socket);
    } else {
        node_address(stage, 0, address);
    }
}

/* command: without "%". */
static bool ask(const char *address, const char *command, char reply[REPLY_SIZE])
{
    if (redis_ask(address, ASK_MS, reply, REPLY_SIZE, command)) {
        return true;
    }
    cli_fail(CLI_BUG, "Redis did not do \"%s\": %s", command, reply);
    return false;
}

static bool replica_has_all(const char *address)
{
    char reply[REPLY_SIZE], more[REPLY_SIZE];

    return redis_ask(address, ASK_MS, reply, REPLY_SIZE, "INFO replication") &&
           redis_ask(address, ASK_MS, more, REPLY_SIZE, "INFO persistence") &&
           strstr(reply, "master_link_status:up") != NULL &&
           strstr(more, "aof_rewrite_in_progress:0") != NULL &&
           strstr(more, "aof_rewrite_scheduled:0") != NULL;
}

static bool until_redis(struct stage *stage, const char *address, bool (*is_so)(const char *address),
                        const char *otherwise)
{
    uint64_t deadline_ms = cli_now_ms() + READY_MS;

    while (!is_so(address)) {
        if (!stage_until(stage, NULL, NULL, AGAIN_MS)) {
            return false;
        }
        if (cli_now_ms() > deadline_ms) {
            cli_fail(CLI_BUG, "%s in time", otherwise);
            return false;
        }
    }
    return true;
}

static bool nodes_start(struct stage *stage)
{
    const char *wrap[CLUSTER_WRAP_MAX] = {NULL};
    char address[ADDRESS_SIZE];

    if (needs(stage, NEEDS_CLOCK_OF_REDIS)) {
        shim_wrap(&stage->redis_shim, wrap);
    }
    for (unsigned i = 0; i < stage->hazard->on.nodes; i++) {
        const struct cluster_process node = {&stage->nodes[i], "the recipe's redis-server", "redis-server",
                                             CHILD_LOGS, wrap};
        struct words words = {.count = 0};

        node_address(stage, i, address);
        words_add_cache(&words, address, stage->cluster.files.run);
        if (cluster_spawn(&stage->cluster, &node, words.at) != CLI_GO_ON) {
            return false;
        }
    }
    for (unsigned i = 0; i < stage->hazard->on.nodes; i++) {
        node_address(stage, i, address);
        if (!until_redis(stage, address, redis_ping, "redis-server did not answer")) {
            return false;
        }
    }
    return true;
}

/* With the settings that Pawl asks of a store, in both parts. */
static bool replica_start(struct stage *stage)
{
    const struct cluster_process replica = {&stage->replica, "the replica", "redis-server", CHILD_LOGS, NULL};
    char master[ADDRESS_SIZE], address[ADDRESS_SIZE], directory[ADDRESS_SIZE], port[24], reply[REPLY_SIZE];
    struct words words = {.count = 0};

    redis_address(stage, master);
    run_path(stage, "replica-", part_index(stage), address);
    run_path(stage, "replica-data-", part_index(stage), directory);
    snprintf(port, sizeof(port), "%" PRId64, stage->actors[ACTOR_RELAY].number);
    if (mkdir(directory, 0700) != 0) {
        cli_fail(CLI_CONFIG, "%s cannot be made: %s", directory, strerror(errno));
        return false;
    }
    words_add_store(&words, address, directory);
    words_add(&words, (const char *const[]){"--replicaof", "127.0.0.1", port, NULL});
    return ask(master, "CONFIG SET repl-diskless-sync-delay 0", reply) &&
           cluster_spawn(&stage->cluster, &replica, words.at) == CLI_GO_ON &&
           until_redis(stage, address, redis_ping, "redis-server did not answer") &&
           until_redis(stage, address, replica_has_all, "the replica did not come up");
}

/* As Sentinel, an operator or a virtual address does it: a client that connects anew finds the replica. */
bool stage_crash(struct stage *stage, const char *label)
{
    struct child *master = stage->is_pawl ? &stage->cluster.redis.child : &stage->nodes[0];
    char address[ADDRESS_SIZE], replica[ADDRESS_SIZE], reply[REPLY_SIZE];

    redis_address(stage, address);
    run_path(stage, "replica-", part_index(stage), replica);
    if (!stage_kill(stage, master) || !stage_kill(stage, &stage->actors[ACTOR_RELAY].child) ||
        !ask(replica, "REPLICAOF NO ONE", reply) || rename(replica, address) != 0 ||
        !ask(address, "ROLE", reply)) {
        return false;
    }
    *master = stage->replica; /* from now on it is what it has replaced, to its end */
    stage->replica.pid = 0;
    if (strncmp(reply, "master", strlen("master")) != 0) {
        cli_fail(CLI_BUG, "the replica was not promoted");
        return false;
    }
    stage_note(stage, NULL, &(struct timeline_event){cli_now_ms(), label, "promoted", 0, ""});
    return true;
}

bool stage_jump(struct stage *stage, const char *label)
{
    char address[ADDRESS_SIZE], before[REPLY_SIZE], after[REPLY_SIZE];
    int64_t jumped;

    redis_address(stage, address);
    if (!ask(address, "TIME", before)) {
        return false;
    }
    atomic_fetch_add(&stage->redis_shim.page->clock_ns, HOUR_NS);
    if (!ask(address, "TIME", after)) {
        return false;
    }
    jumped = strtoll(after, NULL, 10) - strtoll(before, NULL, 10);
    if (jumped < JUMP_S_MIN) {
        cli_fail(CLI_BUG, "the clock of Redis did not jump");
        return false;
    }
    stage_note(stage, NULL, &(struct timeline_event){cli_now_ms(), label, "jumped", jumped, ""});
    return true;
}

bool stage_ask(struct stage *stage, const char *command, const char *label)
{
    struct timeline_event event = {.label = label, .word = "said"};
    char address[ADDRESS_SIZE], reply[REPLY_SIZE];

    if (stage->is_pawl) {
        return true; /* it is a question about the recipe's key */
    }
    redis_address(stage, address);
    if (!ask(address, command, reply)) {
        return false;
    }
    event.at_ms = cli_now_ms();
    event.number = strtoll(reply, NULL, 10);
    snprintf(event.text, sizeof(event.text), "%s", command);
    stage_note(stage, NULL, &event);
    return true;
}

/* -- the whole demo */

static int shim_open(struct shim *shim, const char *given)
{
    char path[CHILD_PATH_SIZE], why[CHILD_PATH_SIZE];
    /* As the build has it, or the package pawl-lab. */
    bool found = given == NULL && (child_find_beside("torture/shim.so", R_OK, path) ||
                                   child_find_beside("../lib/pawl/shim.so", R_OK, path));
    const char *object = found ? path : given;

    if (object == NULL) {
        cli_fail(CLI_CONFIG, "the shim that shifts a clock is neither beside pawl nor in ../lib/pawl");
        cli_hint("Install the package pawl-lab, or name it: --shim FILE.");
        return CLI_CONFIG;
    }
    return shim_page_open(shim, object, why, sizeof(why)) ? CLI_GO_ON : cli_fail(CLI_CONFIG, "%s", why);
}

int stage_open(struct stage *stage, const char *shim)
{
    const char *wrap[CLUSTER_WRAP_MAX] = {NULL};
    const struct cluster_plan plan = {
        .listen_lease = "127.0.0.1:0", .listen_gateway = "127.0.0.1:0", .redis_wrap = wrap};
    int status = CLI_GO_ON;

    if (needs(stage, NEEDS_CLOCK_OF_REDIS)) {
        status = shim_open(&stage->redis_shim, shim);
        shim_wrap(&stage->redis_shim, wrap);
    }
    if (status == CLI_GO_ON && needs(stage, NEEDS_CLOCK_OF_B)) {
        status = shim_open(&stage->b_shim, shim);
    }
    return status == CLI_GO_ON ? cluster_start(&stage->cluster, &plan) : status;
}

void stage_close(struct stage *stage)
{
    if (stage->cluster.watch.count > 0 || stage->cluster.files.run[0] != '\0') {
        cluster_end(&stage->cluster);
    }
    shim_page_close(&stage->redis_shim);
    shim_page_close(&stage->b_shim);
}

/* -- one part */

static bool worker_start(struct stage *stage, struct actor *actor)
{
    bool through_relay = needs(stage, NEEDS_RELAY) && actor == &stage->actors[ACTOR_A];
    const char *wrap[CLUSTER_WRAP_MAX] = {NULL};
    const struct cluster_process worker = {&actor->child, actor->name, "pawl", CHILD_TALKS, wrap};
    char nodes[WORKER_NODES_MAX * ADDRESS_SIZE] = "", ttl[32], lease[32];
    char relay[ADDRESS_SIZE], store[ADDRESS_SIZE], file[ADDRESS_SIZE];
    const char *resource = stage->is_pawl              ? stage->cluster.gateway_url
                           : needs(stage, NEEDS_RELAY) ? store
                                                       : file;
    const char *const arguments[] = {"demo-worker",
                                     "--ttl",
                                     ttl,
                                     "--nodes",
                                     nodes,
                                     "--lease-url",
                                     stage->cluster.lease_url,
                                     stage->is_pawl              ? "--gateway-url"
                                     : needs(stage, NEEDS_RELAY) ? "--store"
                                                                 : "--file",
                                     through_relay ? relay : resource,
                                     actor->name,
                                     stage->part->with.lock,
                                     lease,
                                     NULL};

    for (unsigned i = 0; i < stage->hazard->on.nodes; i++) {
        size_t len = strlen(nodes);

        node_address(stage, i, store);
        snprintf(nodes + len, sizeof(nodes) - len, "%s%s", i > 0 ? "," : "", store);
    }
    node_address(stage, 0, store);
    run_path(stage, "order-", part_index(stage), file);
    snprintf(relay, sizeof(relay), "%s127.0.0.1:%" PRId64, stage->is_pawl ? "http://" : "",
             stage->actors[ACTOR_RELAY].number);
    snprintf(ttl, sizeof(ttl), "%ums", stage->ttl_ms);
    snprintf(lease, sizeof(lease), "orders:%u", LEASE_FIRST + part_index(stage));
    if (needs(stage, NEEDS_CLOCK_OF_B) && actor == &stage->actors[ACTOR_B]) {
        shim_wrap(&stage->b_shim, wrap);
    }
    return cluster_spawn(&stage->cluster, &worker, arguments) == CLI_GO_ON;
}

static bool relay_start(struct stage *stage)
{
    struct actor *relay = &stage->actors[ACTOR_RELAY];
    const struct cluster_process process = {&relay->child, relay->name, "pawl", CHILD_TALKS, NULL};
    bool to_redis = needs(stage, NEEDS_REPLICA) || !stage->is_pawl;
    char redis[ADDRESS_SIZE];
    const char *const arguments[] = {"demo-relay",
                                     to_redis ? redis : stage->cluster.gateway_url + strlen("http://"), NULL};

    if (!needs(stage, NEEDS_RELAY | NEEDS_REPLICA)) {
        return true;
    }
    redis_address(stage, redis);
    return cluster_spawn(&stage->cluster, &process, arguments) == CLI_GO_ON &&
           stage_until(stage, relay, "listening", STAGE_EVENT_MS) &&
           (!needs(stage, NEEDS_REPLICA) || replica_start(stage));
}

bool stage_begin(struct stage *stage, const struct hazard_part *part)
{
    static const char *const names[ACTORS] = {"A", "B", "C", "relay"};

    stage->part = part;
    stage->is_pawl = strcmp(part->with.lock, "pawl") == 0;
    stage->timeline = (struct timeline){.ttl_ms = stage->ttl_ms};
    stage->picture.count = 0;
    stage->began_ms = cli_now_ms();
    for (unsigned i = 0; i < ACTORS; i++) {
        stage->actors[i] = (struct actor){.child = stage->actors[i].child, .name = names[i]};
    }
    if (stage->b_shim.page != NULL) {
        atomic_store(&stage->b_shim.page->clock_ns, HOUR_NS);
    }
    if ((!stage->is_pawl && !nodes_start(stage)) || !relay_start(stage)) {
        return false;
    }
    for (unsigned i = 0; i < ACTOR_RELAY; i++) {
        if (!worker_start(stage, &stage->actors[i])) {
            return false;
        }
    }
    stage->began_ms = cli_now_ms();
    return true;
}

/* Whatever it still says does not matter, nor does another one's end. */
static void end_quietly(struct stage *stage, struct child *child)
{
    uint64_t deadline_ms = cli_now_ms() + END_MS;

    child_signal(child, SIGKILL); /* it has nothing to tidy up, and may be stopped */
    while (child->pid != 0 && cluster_next(&stage->cluster, deadline_ms) != WATCH_DEADLINE) {
        /* until it has ended */
    }
}

void stage_end(struct stage *stage)
{
    for (unsigned i = 0; i < ACTORS; i++) {
        end_quietly(stage, &stage->actors[i].child);
    }
    end_quietly(stage, &stage->replica);
    for (unsigned i = 0; i < WORKER_NODES_MAX; i++) {
        end_quietly(stage, &stage->nodes[i]);
    }
}
