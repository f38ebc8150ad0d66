/* stage.c - where a hazard is played: the processes, and waiting for what they do. */
#include "api/cli/demo/stage.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/cli/cli.h"

enum { END_MS = 5000, ARGV_MAX = 24 };

/* -- waiting */

void stage_watch(struct stage *stage, struct child *child)
{
    struct watch *watch = &stage->cluster.watch;

    for (unsigned i = 0; i < watch->count; i++) {
        if (watch->children[i] == child) {
            return;
        }
    }
    watch_add(watch, child);
}

static struct stage_worker *worker_of(struct stage *stage, const struct child *child)
{
    for (unsigned i = 0; i < STAGE_WORKERS; i++) {
        if (child == &stage->workers[i].child) {
            return &stage->workers[i];
        }
    }
    return child == &stage->relay.child ? &stage->relay : NULL;
}

struct stage_worker *stage_worker_find(struct stage *stage, const char *name)
{
    for (unsigned i = 0; i < STAGE_WORKERS; i++) {
        if (stage->workers[i].name != NULL && strcmp(stage->workers[i].name, name) == 0) {
            return &stage->workers[i];
        }
    }
    return &stage->relay;
}

bool stage_next(struct stage *stage, uint64_t deadline_ms, enum watch_event *event)
{
    const struct watch *watch = &stage->cluster.watch;
    struct stage_worker *worker;

    *event = cluster_next(&stage->cluster, deadline_ms);
    worker = worker_of(stage, watch->child);
    switch (*event) {
    case WATCH_SIGNAL: cli_fail(CLI_REFUSED, "interrupted"); return false;
    case WATCH_LINE: return worker == NULL || stage_hear(stage, worker, watch->line);
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

bool stage_until(struct stage *stage, struct stage_worker *worker, const char *words, unsigned ms)
{
    uint64_t deadline_ms = cli_now_ms() + ms;
    enum watch_event event = WATCH_LINE;

    while (words == NULL || !is_one_of(worker->word, words)) {
        if (!stage_next(stage, deadline_ms, &event)) {
            return false;
        }
        if (event == WATCH_DEADLINE && words == NULL) {
            return true;
        }
        if (event == WATCH_DEADLINE) {
            cli_fail(CLI_REFUSED, "it went otherwise: %s was to say \"%s\"; its last word is \"%s\" %" PRId64,
                     worker->name, words, worker->word, worker->number);
            return false;
        }
        if (words != NULL && strcmp(worker->word, "failed") == 0) {
            cli_fail(CLI_REFUSED, "it went otherwise: %s was to say \"%s\", but failed", worker->name, words);
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

/* -- the whole demo */

/* Its files lie below nothing that fails: the clock alone is used. */
static int shim_open(struct shim *shim, const char *given, const char *below)
{
    char path[CHILD_PATH_SIZE], why[CHILD_PATH_SIZE];
    /* As the build has it, or the package pawl-lab. */
    bool found = given == NULL && (child_find_beside("torture/shim.so", R_OK, path) ||
                                   child_find_beside("../lib/pawl/shim.so", R_OK, path));
    const char *object = found ? path : given;

    if (object == NULL) {
        cli_fail(CLI_CONFIG, "the shim that shifts a clock is neither beside pawl nor in ../lib/pawl");
        cli_hint("Install the package pawl-lab, or build it: make shim; or name it: --shim FILE.");
        return CLI_CONFIG;
    }
    return shim_page_open(shim, object, below, why, sizeof(why)) ? CLI_GO_ON
                                                                 : cli_fail(CLI_CONFIG, "%s", why);
}

int stage_open(struct stage *stage, const char *shim)
{
    const char *wrap[CLUSTER_WRAP_MAX] = {NULL};
    const struct cluster_plan plan = {
        .listen_lease = "127.0.0.1:0", .listen_gateway = "127.0.0.1:0", .redis_wrap = wrap};
    int status = CLI_GO_ON;

    if (stage->hazard->needs & NEEDS_CLOCK_OF_REDIS) {
        status = shim_open(&stage->redis_shim, shim, NULL);
        shim_wrap(&stage->redis_shim, wrap);
    }
    if (status == CLI_GO_ON && (stage->hazard->needs & NEEDS_CLOCK_OF_B)) {
        status = shim_open(&stage->b_shim, shim, "/proc");
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

struct words {
    const char *at[ARGV_MAX];
    unsigned count;
};

static void words_add(struct words *words, const char *flag, const char *value)
{
    words->at[words->count++] = flag;
    if (value != NULL) {
        words->at[words->count++] = value;
    }
}

/* What all workers of the part are given. */
struct cast {
    char nodes[WORKER_NODES_MAX * STAGE_ADDRESS_SIZE], file[CHILD_PATH_SIZE], lease[32], ttl[32];
    char relay[STAGE_ADDRESS_SIZE], store[STAGE_ADDRESS_SIZE];
};

static void cast_fill(const struct stage *stage, struct cast *cast)
{
    int64_t port = stage->relay.number;

    cast->nodes[0] = '\0';
    for (unsigned i = 0; i < stage->hazard->nodes; i++) {
        char address[STAGE_ADDRESS_SIZE];
        size_t len = strlen(cast->nodes);

        stage_node_address(stage, i, address);
        snprintf(cast->nodes + len, sizeof(cast->nodes) - len, "%s%s", i > 0 ? "," : "", address);
    }
    snprintf(cast->file, sizeof(cast->file), "%.*s/order-%u", CHILD_PATH_SIZE - 32, stage->cluster.files.run,
             stage->part_index);
    snprintf(cast->lease, sizeof(cast->lease), "orders:%u", 41 + stage->part_index);
    snprintf(cast->ttl, sizeof(cast->ttl), "%ums", stage->ttl_ms);
    snprintf(cast->relay, sizeof(cast->relay), "%s127.0.0.1:%" PRId64, stage->is_pawl ? "http://" : "", port);
    stage_node_address(stage, 0, cast->store);
}

static void resource_add(const struct stage *stage, const struct cast *cast, bool through_relay,
                         struct words *words)
{
    if (stage->is_pawl) {
        words_add(words, "--lease-url", stage->cluster.lease_url);
        words_add(words, "--gateway-url", through_relay ? cast->relay : stage->cluster.gateway_url);
    } else if (stage->hazard->needs & NEEDS_RELAY) {
        words_add(words, "--store", through_relay ? cast->relay : cast->store);
    } else {
        words_add(words, "--file", cast->file);
    }
}

static bool worker_start(struct stage *stage, struct stage_worker *worker, const char *name,
                         const struct cast *cast)
{
    bool shifted = (stage->hazard->needs & NEEDS_CLOCK_OF_B) && strcmp(name, "B") == 0;
    bool through_relay = (stage->hazard->needs & NEEDS_RELAY) && strcmp(name, "A") == 0;
    char self[CHILD_PATH_SIZE], env[CHILD_PATH_SIZE];
    const char *wrap[CLUSTER_WRAP_MAX] = {NULL};
    struct words words = {.count = 0};

    if (shifted && child_find("env", env)) {
        shim_wrap(&stage->b_shim, wrap);
        wrap[0] = env;
        for (unsigned i = 0; wrap[i] != NULL; i++) {
            words_add(&words, wrap[i], NULL);
        }
    }
    words_add(&words, self, "demo-worker");
    words_add(&words, "--ttl", cast->ttl);
    words_add(&words, "--nodes", cast->nodes);
    resource_add(stage, cast, through_relay, &words);
    words_add(&words, name, stage->part->lock);
    words_add(&words, cast->lease, NULL);
    worker->name = name;
    worker->label = worker->text = NULL;
    worker->word[0] = '\0';
    worker->token = 0;
    if (!child_find("pawl", self) || !child_start(&worker->child, name, CHILD_TALKS, words.at)) {
        cli_fail(CLI_BUG, "worker %s cannot be started", name);
        return false;
    }
    stage_watch(stage, &worker->child);
    return true;
}

static bool relay_start(struct stage *stage)
{
    char self[CHILD_PATH_SIZE], redis[STAGE_ADDRESS_SIZE];
    bool to_redis = (stage->hazard->needs & NEEDS_REPLICA) || !stage->is_pawl;
    const char *gateway = stage->cluster.gateway_url + strlen("http://");
    const char *const argv[] = {self, "demo-relay", to_redis ? redis : gateway, NULL};

    if (!(stage->hazard->needs & (NEEDS_RELAY | NEEDS_REPLICA))) {
        return true;
    }
    stage_redis_address(stage, redis);
    stage->relay.name = "relay";
    stage->relay.label = "relay";
    stage->relay.word[0] = '\0';
    if (!child_find("pawl", self) || !child_start(&stage->relay.child, "relay", CHILD_TALKS, argv)) {
        cli_fail(CLI_BUG, "the relay cannot be started");
        return false;
    }
    stage_watch(stage, &stage->relay.child);
    return stage_until(stage, &stage->relay, "listening", STAGE_EVENT_MS) &&
           (!(stage->hazard->needs & NEEDS_REPLICA) ||
            stage_replica_start(stage, (unsigned)stage->relay.number));
}

bool stage_begin(struct stage *stage, unsigned part_index)
{
    static const char *const names[STAGE_WORKERS] = {"A", "B", "C"};
    struct cast cast;

    stage->part_index = part_index;
    stage->part = &stage->hazard->parts[part_index];
    stage->is_pawl = strcmp(stage->part->lock, "pawl") == 0;
    stage->seen = (struct seen){.ttl_ms = stage->ttl_ms};
    stage->picture_count = 0;
    stage->began_ms = cli_now_ms();
    if (stage->b_shim.page != NULL) {
        atomic_store(&stage->b_shim.page->clock_ns, HOUR_NS);
    }
    if ((!stage->is_pawl && !stage_nodes_start(stage)) || !relay_start(stage)) {
        return false;
    }
    cast_fill(stage, &cast);
    for (unsigned i = 0; i < STAGE_WORKERS; i++) {
        if (!worker_start(stage, &stage->workers[i], names[i], &cast)) {
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
    for (unsigned i = 0; i < STAGE_WORKERS; i++) {
        end_quietly(stage, &stage->workers[i].child);
    }
    end_quietly(stage, &stage->relay.child);
    end_quietly(stage, &stage->replica);
    for (unsigned i = 0; i < WORKER_NODES_MAX; i++) {
        end_quietly(stage, &stage->nodes[i]);
    }
}
