/* stage_redis.c - the Redis servers of a demo, and what befalls them. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "api/cli/cli.h"
#include "api/cli/demo/redis_ask.h"
#include "api/cli/demo/stage.h"
#include "api/cli/words.h"

enum { ASK_MS = 5000, READY_MS = 15000, AGAIN_MS = 20, REPLY_SIZE = 8192, JUMP_S_MIN = 3500 };

static void run_path(const struct stage *stage, const char *name, unsigned number,
                     char path[STAGE_ADDRESS_SIZE])
{
    snprintf(path, STAGE_ADDRESS_SIZE, "%.*s/%s%u", STAGE_ADDRESS_SIZE - 32, stage->cluster.files.run, name,
             number);
}

void stage_node_address(const struct stage *stage, unsigned node, char address[STAGE_ADDRESS_SIZE])
{
    run_path(stage, "node-", stage->part_index * WORKER_NODES_MAX + node, address);
}

void stage_redis_address(const struct stage *stage, char address[STAGE_ADDRESS_SIZE])
{
    if (stage->is_pawl) {
        snprintf(address, STAGE_ADDRESS_SIZE, "%.*s", STAGE_ADDRESS_SIZE - 1, stage->cluster.files.socket);
    } else {
        stage_node_address(stage, 0, address);
    }
}

/* -- asking */

static bool ask(const char *address, const char *command, char reply[REPLY_SIZE])
{
    const struct redis_ask asked = {.address = address, .line = command, .timeout_ms = ASK_MS};

    if (redis_ask(&asked, reply, REPLY_SIZE) == REDIS_ASK_SAID) {
        return true;
    }
    cli_fail(CLI_BUG, "Redis did not do \"%s\": %s", command, reply);
    return false;
}

static bool number_of(const char *address, const char *command, int64_t *number)
{
    char reply[REPLY_SIZE];

    if (!ask(address, command, reply)) {
        return false;
    }
    *number = strtoll(reply, NULL, 10);
    return true;
}

bool stage_ask(struct stage *stage, const char *command, const char *label)
{
    char address[STAGE_ADDRESS_SIZE];
    int64_t number;

    if (stage->is_pawl) {
        return true; /* it is a question about the recipe's key */
    }
    stage_redis_address(stage, address);
    if (!number_of(address, command, &number)) {
        return false;
    }
    stage_note_answer(stage, label, command, number);
    return true;
}

/* -- starting */

static bool start(struct stage *stage, struct child *child, const char *name, const char *const *more,
                  const char *wrap_with)
{
    const char *wrap[CLUSTER_WRAP_MAX] = {NULL};
    char program[CHILD_PATH_SIZE], env[CHILD_PATH_SIZE];
    struct words words = {.count = 0};

    if (!child_find("redis-server", program) || !child_find("env", env)) {
        cli_fail(CLI_CONFIG, "redis-server is not in PATH");
        return false;
    }
    if (wrap_with != NULL) {
        shim_wrap(&stage->redis_shim, wrap);
        wrap[0] = env;
    }
    words_add(&words, wrap);
    words_add(&words, (const char *const[]){program, NULL});
    words_add(&words, more);
    if (!child_start(child, name, CHILD_LOGS, words.at)) {
        cli_fail(CLI_BUG, "%s cannot be started", name);
        return false;
    }
    stage_watch(stage, child);
    return true;
}

static bool until_it_answers(struct stage *stage, const char *address)
{
    uint64_t deadline_ms = cli_now_ms() + READY_MS;

    while (!redis_ping(address)) {
        if (!stage_until(stage, &stage->relay, NULL, AGAIN_MS)) {
            return false;
        }
        if (cli_now_ms() > deadline_ms) {
            cli_fail(CLI_BUG, "redis-server did not answer in time");
            return false;
        }
    }
    return true;
}

bool stage_nodes_start(struct stage *stage)
{
    bool shifted = (stage->hazard->needs & NEEDS_CLOCK_OF_REDIS) != 0;
    char address[STAGE_ADDRESS_SIZE];

    for (unsigned i = 0; i < stage->hazard->nodes; i++) {
        struct words words = {.count = 0};

        stage_node_address(stage, i, address);
        words_add_cache(&words, address, stage->cluster.files.run);
        if (!start(stage, &stage->nodes[i], "the recipe's redis-server", words.at, shifted ? "" : NULL)) {
            return false;
        }
    }
    for (unsigned i = 0; i < stage->hazard->nodes; i++) {
        stage_node_address(stage, i, address);
        if (!until_it_answers(stage, address)) {
            return false;
        }
    }
    return true;
}

/* -- a replica, and its promotion */

static bool until_it_has_all(struct stage *stage, const char *address)
{
    uint64_t deadline_ms = cli_now_ms() + READY_MS;
    char reply[REPLY_SIZE], more[REPLY_SIZE];

    while (ask(address, "INFO replication", reply) && ask(address, "INFO persistence", more)) {
        if (strstr(reply, "master_link_status:up") != NULL &&
            strstr(more, "aof_rewrite_in_progress:0") != NULL &&
            strstr(more, "aof_rewrite_scheduled:0") != NULL) {
            return true;
        }
        if (!stage_until(stage, &stage->relay, NULL, AGAIN_MS)) {
            return false;
        }
        if (cli_now_ms() > deadline_ms) {
            cli_fail(CLI_BUG, "the replica did not come up in time");
            return false;
        }
    }
    return false;
}

/* With the settings that Pawl asks of a store, in both parts. */
bool stage_replica_start(struct stage *stage, unsigned relay_port)
{
    char master[STAGE_ADDRESS_SIZE], address[STAGE_ADDRESS_SIZE], directory[STAGE_ADDRESS_SIZE], port[16];
    char reply[REPLY_SIZE];
    struct words words = {.count = 0};

    stage_redis_address(stage, master);
    run_path(stage, "replica-", stage->part_index, address);
    run_path(stage, "replica-data-", stage->part_index, directory);
    snprintf(port, sizeof(port), "%u", relay_port);
    if (mkdir(directory, 0700) != 0) {
        cli_fail(CLI_CONFIG, "%s cannot be made: %s", directory, strerror(errno));
        return false;
    }
    words_add_store(&words, address, directory);
    words_add(&words, (const char *const[]){"--replicaof", "127.0.0.1", port, NULL});
    return ask(master, "CONFIG SET repl-diskless-sync-delay 0", reply) &&
           start(stage, &stage->replica, "the replica", words.at, NULL) && until_it_answers(stage, address) &&
           until_it_has_all(stage, address);
}

/* As Sentinel, an operator or a virtual address does it: whoever connects anew finds the replica. */
bool stage_crash(struct stage *stage, const char *label)
{
    struct child *master = stage->is_pawl ? &stage->cluster.redis.child : &stage->nodes[0];
    char address[STAGE_ADDRESS_SIZE], replica[STAGE_ADDRESS_SIZE], reply[REPLY_SIZE];

    stage_redis_address(stage, address);
    run_path(stage, "replica-", stage->part_index, replica);
    if (!stage_kill(stage, master) || !stage_kill(stage, &stage->relay.child) ||
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
    stage_note(stage, NULL, label, "promoted", 0);
    return true;
}

/* -- the clock */

bool stage_jump(struct stage *stage, const char *label)
{
    char address[STAGE_ADDRESS_SIZE];
    int64_t before, after;

    stage_redis_address(stage, address);
    if (!number_of(address, "TIME", &before)) {
        return false;
    }
    atomic_fetch_add(&stage->redis_shim.page->clock_ns, HOUR_NS);
    if (!number_of(address, "TIME", &after)) {
        return false;
    }
    if (after - before < JUMP_S_MIN) {
        cli_fail(CLI_BUG, "the clock of Redis did not jump");
        return false;
    }
    stage_note(stage, NULL, label, "jumped", after - before);
    return true;
}
