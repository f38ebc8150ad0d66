/* stage.c - where a hazard is played: the processes, waiting for events, and what is done with Redis. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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
    JUMP_S_MIN = 3500,
    LEASE_FIRST = 41 /* the lease of the first part is orders:41 */
};

static bool needs(const struct stage *stage, unsigned what)
{
    return (stage->hazard->on.needs & what) != 0;
}

/* -- waiting */

bool stage_next(struct stage *stage, uint64_t deadline_ms, enum watch_event *event)
{
    const struct watch *watch = &stage->cluster.watch;

    *event = cluster_next(&stage->cluster, deadline_ms);
    if (*event == WATCH_SIGNAL)
        return STAGE_FAIL("interrupted");
    for (unsigned i = 0; *event == WATCH_LINE && i < ACTORS; i++)
        if (watch->child == &stage->actors[i].child)
            return stage_hear(stage, &stage->actors[i], watch->line);
    if (*event == WATCH_ENDED) {
        if (watch->child == stage->doomed)
            return true;
        return !cluster_tell_end(&stage->cluster) && STAGE_FAIL("%s has ended by itself", watch->child->name);
    }
    return true;
}

static bool is_one_of(const char *word, const char *words)
{
    struct bytes rest = bytes_of(words);

    while (rest.len > 0)
        if (bytes_are(bytes_cut(&rest, '|'), word))
            return true;
    return false;
}

bool stage_until(struct stage *stage, const struct actor *actor, const char *words, unsigned ms)
{
    uint64_t deadline_ms = loop_now_ms() + ms;
    enum watch_event event = WATCH_LINE;

    while (words == NULL || !is_one_of(actor->word, words)) {
        if (!stage_next(stage, deadline_ms, &event))
            return false;
        if (event == WATCH_DEADLINE) {
            return words == NULL ||
                   STAGE_FAIL("it went otherwise: %s was to say \"%s\"; its last word is \"%s\" %" PRId64,
                              actor->name, words, actor->word, actor->number);
        }
        if (words != NULL && strcmp(actor->word, "failed") == 0)
            return STAGE_FAIL("it went otherwise: %s was to say \"%s\", but failed", actor->name, words);
    }
    return true;
}

bool stage_kill(struct stage *stage, struct child *child)
{
    uint64_t deadline_ms = loop_now_ms() + END_MS;
    enum watch_event event = WATCH_LINE;

    stage->doomed = child;
    child_signal(child, SIGKILL);
    while (child->pid != 0) {
        if (!stage_next(stage, deadline_ms, &event))
            return false;
        if (event == WATCH_DEADLINE)
            return STAGE_FAIL("%s does not end", child->name);
    }
    return true;
}

/* -- Redis */

static void run_path(const struct stage *stage, const char *name, unsigned number, char path[ADDRESS_SIZE])
{
    snprintf(path, ADDRESS_SIZE, "%.*s/%s%u", ADDRESS_SIZE - 32, stage->cluster.files.run, name, number);
}

/* command: without "%". */
static bool ask(const char *address, const char *command, char reply[REPLY_SIZE])
{
    return redis_ask(address, ASK_MS, reply, REPLY_SIZE, command) ||
           STAGE_FAIL("Redis did not do \"%s\": %s", command, reply);
}

static bool replica_has_all(const char *address)
{
    char reply[REPLY_SIZE];

    return redis_ask(address, ASK_MS, reply, REPLY_SIZE, "INFO replication persistence") &&
           strstr(reply, "master_link_status:up") != NULL &&
           strstr(reply, "aof_rewrite_in_progress:0") != NULL &&
           strstr(reply, "aof_rewrite_scheduled:0") != NULL;
}

static bool until_redis(struct stage *stage, const char *address, bool (*is_so)(const char *address),
                        const char *otherwise)
{
    uint64_t deadline_ms = loop_now_ms() + READY_MS;

    while (!is_so(address)) {
        if (!stage_until(stage, NULL, NULL, AGAIN_MS))
            return false;
        if (loop_now_ms() > deadline_ms)
            return STAGE_FAIL("%s in time", otherwise);
    }
    return true;
}

/* The Redis servers of the recipe, or of the quorum. */
static bool nodes_start(struct stage *stage)
{
    for (unsigned i = 0; i < stage->hazard->on.nodes; i++) {
        const struct cluster_process node = {.child = &stage->nodes[i],
                                             .name = "the recipe's redis-server",
                                             .program = "redis-server",
                                             .variables = stage->redis_shim.variables,
                                             .socket = stage->node_at[i],
                                             .directory = stage->cluster.files.run,
                                             .keeps = "no"};

        if (cluster_spawn(&stage->cluster, &node, NULL) != CLI_GO_ON)
            return false;
    }
    for (unsigned i = 0; i < stage->hazard->on.nodes; i++)
        if (!until_redis(stage, stage->node_at[i], redis_ping, "redis-server did not answer"))
            return false;
    return true;
}

/* With the settings that Pawl asks of a store, in both parts. */
static bool replica_start(struct stage *stage)
{
    char directory[ADDRESS_SIZE], follow[64], reply[REPLY_SIZE];
    const struct cluster_process replica = {.child = &stage->replica,
                                            .name = "the replica",
                                            .program = "redis-server",
                                            .socket = stage->replica_at,
                                            .directory = directory,
                                            .keeps = "yes"};

    run_path(stage, "replica-data-", stage->part_index, directory);
    snprintf(follow, sizeof(follow), "REPLICAOF 127.0.0.1 %" PRId64, stage->actors[ACTOR_RELAY].number);
    if (mkdir(directory, 0700) != 0)
        return STAGE_FAIL("%s cannot be made: %s", directory, strerror(errno));
    return ask(stage->redis_at, "CONFIG SET repl-diskless-sync-delay 0", reply) &&
           cluster_spawn(&stage->cluster, &replica, NULL) == CLI_GO_ON &&
           until_redis(stage, stage->replica_at, redis_ping, "redis-server did not answer") &&
           ask(stage->replica_at, follow, reply) &&
           until_redis(stage, stage->replica_at, replica_has_all, "the replica did not come up");
}

/* As Sentinel, an operator or a virtual address does it: a client that connects anew finds the replica. */
bool stage_crash(struct stage *stage, const char *label)
{
    struct child *master = stage->is_pawl ? &stage->cluster.redis.child : &stage->nodes[0];
    char reply[REPLY_SIZE];

    if (!stage_kill(stage, master) || !stage_kill(stage, &stage->actors[ACTOR_RELAY].child) ||
        !ask(stage->replica_at, "REPLICAOF NO ONE", reply) ||
        rename(stage->replica_at, stage->redis_at) != 0 || !ask(stage->redis_at, "ROLE", reply))
        return false;
    *master = stage->replica; /* from now on it is what it has replaced, to its end */
    stage->replica.pid = 0;
    if (strncmp(reply, "master", strlen("master")) != 0)
        return STAGE_FAIL("the replica was not promoted");
    return stage_note(stage, NULL, label, "promoted", 0, "");
}

bool stage_jump(struct stage *stage, const char *label)
{
    char before[REPLY_SIZE], after[REPLY_SIZE];
    int64_t jumped;

    if (!ask(stage->redis_at, "TIME", before))
        return false;
    atomic_fetch_add(&stage->redis_shim.page->clock_ns, HOUR_NS);
    if (!ask(stage->redis_at, "TIME", after))
        return false;
    jumped = strtoll(after, NULL, 10) - strtoll(before, NULL, 10);
    if (jumped < JUMP_S_MIN)
        return STAGE_FAIL("the clock of Redis did not jump");
    return stage_note(stage, NULL, label, "jumped", jumped, "");
}

bool stage_ask(struct stage *stage, const char *command, const char *label)
{
    char reply[REPLY_SIZE];

    return stage->is_pawl || /* it is a question about the recipe's key */
           (ask(stage->redis_at, command, reply) &&
            stage_note(stage, NULL, label, "said", strtoll(reply, NULL, 10), command));
}

/* -- the whole demo */

static int shim_page_open(struct shim *shim, const char *object)
{
    const char *options = getenv("ASAN_OPTIONS");
    char whole[PATH_MAX];
    void *at = MAP_FAILED;

    if (realpath(object, whole) == NULL || access(whole, R_OK) != 0 || strlen(whole) >= SHIM_PATH_SIZE - 16)
        return cli_fail(CLI_CONFIG, "the shim %.200s cannot be had: %s", object, strerror(errno));
    shim->page_fd = memfd_create("shim", MFD_CLOEXEC);
    if (shim->page_fd >= 0 && ftruncate(shim->page_fd, (off_t)sizeof(*shim->page)) == 0)
        at = mmap(NULL, sizeof(*shim->page), PROT_READ | PROT_WRITE, MAP_SHARED, shim->page_fd, 0);
    if (at == MAP_FAILED)
        return cli_fail(CLI_CONFIG, "the shim's page cannot be made: %s", strerror(errno));
    shim->page = at;
    snprintf(shim->preload, SHIM_PATH_SIZE, "LD_PRELOAD=%.*s", SHIM_PATH_SIZE - 16, whole);
    snprintf(shim->file, SHIM_PATH_SIZE, SHIM_FILE_VARIABLE "=/proc/%ld/fd/%d", (long)getpid(),
             shim->page_fd);
    /* A sanitizer wants to be the first library of all; the shim stands before it, and hands on to it. */
    snprintf(shim->sanitizer, SHIM_PATH_SIZE, "ASAN_OPTIONS=verify_asan_link_order=0:%s",
             options != NULL ? options : "");
    memcpy(shim->variables, (const char *const[]){shim->preload, shim->file, shim->sanitizer},
           3 * sizeof(shim->variables[0]));
    return CLI_GO_ON;
}

static int shim_open(struct shim *shim, const char *given)
{
    char path[CHILD_PATH_SIZE];

    /* As the build has it, or the package pawl-lab. */
    if (given != NULL || child_find_beside("torture/shim.so", R_OK, path) ||
        child_find_beside("../lib/pawl/shim.so", R_OK, path))
        return shim_page_open(shim, given != NULL ? given : path);
    return cli_refuse(CLI_CONFIG, "Install the package pawl-lab, or name it: --shim FILE.",
                      "the shim that shifts a clock is neither beside pawl nor in ../lib/pawl");
}

static void shim_close(struct shim *shim)
{
    if (shim->page != NULL) {
        munmap(shim->page, sizeof(*shim->page));
        close(shim->page_fd);
    }
}

int stage_open(struct stage *stage, const char *shim)
{
    const struct cluster_plan plan = {.listen_lease = "127.0.0.1:0",
                                      .listen_gateway = "127.0.0.1:0",
                                      .redis_variables = stage->redis_shim.variables};
    int status = CLI_GO_ON;

    if (needs(stage, NEEDS_CLOCK_OF_REDIS))
        status = shim_open(&stage->redis_shim, shim);
    if (status == CLI_GO_ON && needs(stage, NEEDS_CLOCK_OF_B))
        status = shim_open(&stage->b_shim, shim);
    return status == CLI_GO_ON ? cluster_start(&stage->cluster, &plan) : status;
}

void stage_close(struct stage *stage)
{
    if (stage->cluster.watch.count > 0 || stage->cluster.files.run[0] != '\0')
        cluster_end(&stage->cluster);
    shim_close(&stage->redis_shim);
    shim_close(&stage->b_shim);
}

/* -- one part */

static bool worker_start(struct stage *stage, struct actor *actor)
{
    bool relayed = needs(stage, NEEDS_RELAY), is_b = actor == &stage->actors[ACTOR_B];
    const struct cluster_process worker = {&actor->child, actor->name, "pawl", CHILD_TALKS,
                                           .variables = is_b ? stage->b_shim.variables : NULL};
    const char *flag = stage->is_pawl ? "--gateway-url" : relayed ? "--store" : "--file";
    const struct cluster *cluster = &stage->cluster;
    const char *resource = stage->is_quorum ? cluster->marks.url
                           : stage->is_pawl ? cluster->gateway.url
                                            : stage->node_at[0];
    char nodes[WORKER_NODES_MAX * ADDRESS_SIZE] = "", ttl[32], lease[32], other[ADDRESS_SIZE];
    size_t len = 0;

    for (unsigned i = 0; i < stage->hazard->on.nodes; i++) {
        len += (size_t)snprintf(nodes + len, sizeof(nodes) - len, "%s%s", i > 0 ? "," : "",
                                stage->node_at[i]);
    }
    snprintf(ttl, sizeof(ttl), "%ums", stage->ttl_ms);
    snprintf(lease, sizeof(lease), "orders:%u", LEASE_FIRST + stage->part_index);
    if (relayed && actor == &stage->actors[ACTOR_A]) {
        snprintf(other, sizeof(other), "%s127.0.0.1:%" PRId64, stage->is_pawl ? "http://" : "",
                 stage->actors[ACTOR_RELAY].number);
        resource = other;
    } else if (!relayed && !stage->is_pawl) {
        run_path(stage, "order-", stage->part_index, other);
        resource = other;
    }
    return cluster_spawn(&stage->cluster, &worker,
                         (const char *const[]){"demo-worker", "--ttl", ttl, "--nodes", nodes, "--lease-url",
                                               stage->is_quorum ? cluster->quorum.url : cluster->lease.url,
                                               flag, resource, actor->name, stage->part->with.lock, lease,
                                               NULL}) == CLI_GO_ON;
}

static bool relay_start(struct stage *stage)
{
    struct actor *relay = &stage->actors[ACTOR_RELAY];
    const struct cluster_process process = {&relay->child, relay->name, "pawl", .streams = CHILD_TALKS};
    bool to_redis = needs(stage, NEEDS_REPLICA) || !stage->is_pawl;
    const char *target = to_redis ? stage->redis_at : stage->cluster.gateway.url + strlen("http://");

    if (!needs(stage, NEEDS_RELAY | NEEDS_REPLICA))
        return true;
    return cluster_spawn(&stage->cluster, &process, (const char *const[]){"demo-relay", target, NULL}) ==
               CLI_GO_ON &&
           stage_until(stage, relay, "listening", STAGE_EVENT_MS) &&
           (!needs(stage, NEEDS_REPLICA) || replica_start(stage));
}

bool stage_begin(struct stage *stage, const struct hazard_part *part)
{
    static const char *const names[ACTORS] = {"A", "B", "C", "relay"};
    bool begun;

    stage->part = part;
    stage->part_index = (unsigned)(part - stage->hazard->parts);
    stage->is_pawl = strncmp(part->with.lock, "pawl", strlen("pawl")) == 0;
    stage->is_quorum = strcmp(part->with.lock, "pawl-quorum") == 0;
    stage->timeline = (struct timeline){.ttl_ms = stage->ttl_ms};
    stage->picture.count = 0;
    stage->began_ms = loop_now_ms();
    for (unsigned i = 0; i < WORKER_NODES_MAX; i++)
        run_path(stage, "node-", stage->part_index * WORKER_NODES_MAX + i, stage->node_at[i]);
    run_path(stage, "replica-", stage->part_index, stage->replica_at);
    snprintf(stage->redis_at, ADDRESS_SIZE, "%.*s", ADDRESS_SIZE - 1,
             stage->is_pawl && !stage->is_quorum ? stage->cluster.files.socket : stage->node_at[0]);
    for (unsigned i = 0; i < ACTORS; i++)
        stage->actors[i] = (struct actor){.child = stage->actors[i].child, .name = names[i]};
    if (stage->b_shim.page != NULL)
        atomic_store(&stage->b_shim.page->clock_ns, HOUR_NS);
    begun = ((stage->is_pawl && !stage->is_quorum) || nodes_start(stage)) &&
            (!stage->is_quorum || cluster_quorum(&stage->cluster, stage->hazard->on.nodes,
                                                 (const char(*)[ADDRESS_SIZE])stage->node_at) == CLI_GO_ON) &&
            relay_start(stage);
    for (unsigned i = 0; begun && i < ACTOR_RELAY; i++)
        begun = worker_start(stage, &stage->actors[i]);
    stage->began_ms = loop_now_ms();
    return begun;
}

/* Whatever it still says does not matter, nor does another one's end. */
static void end_quietly(struct stage *stage, struct child *child)
{
    child_signal(child, SIGKILL); /* it has nothing to tidy up */
    cluster_end_child(&stage->cluster, child);
}

void stage_end(struct stage *stage)
{
    for (unsigned i = 0; i < ACTORS; i++)
        end_quietly(stage, &stage->actors[i].child);
    end_quietly(stage, &stage->replica);
    for (unsigned i = 0; i < WORKER_NODES_MAX; i++)
        end_quietly(stage, &stage->nodes[i]);
}
