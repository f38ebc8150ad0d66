/* worker.c - a worker of a demo: a process of its own that takes a lock or a lease, and writes.
 *
 * It reads a line "VERB MS TEXT" for each order:
 *   take MS -         asks again until it has the lock, or for MS (0: as long as the demo waits)
 *   share MS -        the same, as one of any number of readers
 *   write 0 TEXT      looks at its clock whether it still holds, and writes
 *   look 0 -          looks at its clock whether it still holds
 *   work MS TEXT      looks at its clock whether it still holds, works for MS, and writes
 *   toil MS TEXT      works for MS, and writes: it never looks
 *   extend 0 -        sets the lock's end anew (timestamp)
 *   read 0 -
 *   release 0 -
 * and writes a line for each event: "AT_MS WORD NUMBER TEXT", AT_MS on the monotonic clock. What a word means
 * the sayings of play.c tell people; leaving: it begins to release, which is not shown.
 *   held 0 HOLDER (reported once)   granted TOKEN MS (TOKEN 0: a recipe, which has none)   vain TRIES -
 *   holds MS -   written STATUS -   refused STATUS CODE   failed STATUS WHAT   deleted KEYS -
 *   lost STATUS CODE   reads 0 TEXT   and, with 0 -, set, looked, over, leaving, released, extended
 *
 * It is careful in the way in which most programs are: before it writes it looks whether its lock is still
 * running. Its mistake is that time passes between the look and the write. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/cli/cli.h"
#include "api/cli/demo/demo_internal.h"
#include "api/cli/demo/redis.h"
#include "api/cli/flags.h"
#include "shared/token/random.h"

enum {
    STEP_MS = 20,
    TAKE_MS = 30000,
    POLLS_PER_TTL = 20,
    POLL_MS_MIN = 10,
    AGAIN_MOST_MS = 8000,
    WAIT_MS_MAX = 20000,
    WRITE_MS = 60000, /* the relay may keep a write back for as long as the demo wants */
    AGAIN_MS = 50,
    VALUE_SIZE = 32,
    VALUE_CHARS = 24,
    REPLY_SIZE = 256,
    EXPIRE_PART = 4,
    LOOK_PART = 4,
    DRIFT_PART = 100,
    DRIFT_MS = 2
};

struct worker {
    const char *name, *lease; /* lease: also the key of the lock, and of the resource */
    const struct lock *lock;
    const char *nodes[WORKER_NODES_MAX]; /* addresses of the recipe's Redis servers */
    unsigned node_count;
    const char *file, *store;            /* the unprotected resource: a file, or a value in a Redis; */
    const char *lease_url, *gateway_url; /* both NULL: the one behind the gateway */
    unsigned ttl_ms;
    uint64_t holds_until_ms; /* by its own clock; 0: it does not hold */
    char value[VALUE_SIZE];  /* of a recipe's lock, or the end that it set (timestamp) */
    struct pawl *pawl;
    struct pawl_grant grant;
    /* of the last order to take */
    bool shares, reported_held;
};

/* What one try to take a lock came to. */
enum try {
    TRY_GRANTED, /* and reported */
    TRY_HELD,    /* another has it, which is reported if it is new */
    TRY_LATER,   /* the service cannot say now */
    TRY_FAILED   /* reported */
};

void worker_say(const char *word, int64_t number, const char *format, ...)
{
    va_list args;

    printf("%" PRIu64 " %s %" PRId64 " ", loop_now_ms(), word, number);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    fflush(stdout);
}

/* In steps, so that what is left of it after a pause still takes its time. */
static void pass_ms(unsigned ms)
{
    for (; ms > STEP_MS; ms -= STEP_MS)
        poll(NULL, 0, STEP_MS);
    poll(NULL, 0, (int)ms);
}

/* Counts from when it was asked. */
static enum try granted(struct worker *worker, int64_t token, uint64_t asked_ms, int64_t good_for_ms)
{
    worker->holds_until_ms = asked_ms + (uint64_t)good_for_ms;
    worker_say("granted", token, "%" PRId64, good_for_ms);
    return TRY_GRANTED;
}

static enum try held(struct worker *worker, struct bytes holder)
{
    if (!worker->reported_held) {
        worker_say("held", 0, "%.*s", (int)holder.len, holder.at != NULL ? holder.at : "");
        worker->reported_held = true;
    }
    return TRY_HELD;
}

/* -- recipes: locks on Redis as they are widely used; docs/hazards.md says where each comes from, and what is
 * wrong with it */

/* Deletes the lock only when it has the value of this holder. */
static const char release_script[] =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";
/* Readers are a sorted set with the end of each; a writer is a key of its own. */
static const char reader_script[] = "if redis.call('exists', KEYS[1]) == 1 then return 0 end "
                                    "redis.call('zadd', KEYS[2], ARGV[3], ARGV[1]) return 1";
static const char writer_script[] =
    "redis.call('zremrangebyscore', KEYS[2], '-inf', ARGV[2]) if redis.call('zcard', KEYS[2]) > 0 then "
    "return 0 end return redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[4]) and 1 or 0";
static const char reader_leave_script[] = "return redis.call('zrem', KEYS[2], ARGV[1]) + (redis.call('get', "
                                          "KEYS[1]) == ARGV[1] and redis.call('del', KEYS[1]) or 0)";

/* Of the servers of the recipe: at how many the lock was set, or deleted. */
static unsigned set_nx_px(const struct worker *worker)
{
    unsigned got = 0;

    for (unsigned i = 0; i < worker->node_count; i++) {
        got += redis_do(worker->nodes[i], WRITE_MS, "SET %s %s NX PX %u", worker->lease, worker->value,
                        worker->ttl_ms) == 1;
    }
    return got;
}

static unsigned release_by_script(const struct worker *worker)
{
    unsigned released = 0;

    for (unsigned i = 0; i < worker->node_count; i++) {
        released += redis_do(worker->nodes[i], WRITE_MS, "EVAL %s 1 %s %s", release_script, worker->lease,
                             worker->value) == 1;
    }
    return released;
}

static int64_t take_px(struct worker *worker)
{
    return set_nx_px(worker) == 1 ? worker->ttl_ms : 0;
}

static bool release_most(const struct worker *worker)
{
    return release_by_script(worker) > worker->node_count / 2;
}

static int64_t take_expire(struct worker *worker)
{
    const char *node = worker->nodes[0];

    if (redis_do(node, WRITE_MS, "SETNX %s %s", worker->lease, worker->value) != 1)
        return 0;
    worker_say("set", 0, "-");
    pass_ms(worker->ttl_ms / EXPIRE_PART); /* whatever the program does between the two */
    return redis_do(node, WRITE_MS, "PEXPIRE %s %u", worker->lease, worker->ttl_ms) == 1 ? worker->ttl_ms : 0;
}

static void value_set_end(struct worker *worker)
{
    snprintf(worker->value, sizeof(worker->value), "%" PRId64, cli_wall_ms() + (int64_t)worker->ttl_ms + 1);
}

static int64_t take_timestamp(struct worker *worker)
{
    const char *node = worker->nodes[0];

    value_set_end(worker);
    if (redis_do(node, WRITE_MS, "SETNX %s %s", worker->lease, worker->value) != 1 &&
        (redis_do(node, WRITE_MS, "GET %s", worker->lease) >= cli_wall_ms() ||
         redis_do(node, WRITE_MS, "GETSET %s %s", worker->lease, worker->value) >= cli_wall_ms()))
        return 0;
    return worker->ttl_ms;
}

static void extend_timestamp(struct worker *worker)
{
    value_set_end(worker);
    if (redis_do(worker->nodes[0], WRITE_MS, "SET %s %s", worker->lease, worker->value) == 1) {
        worker->holds_until_ms = loop_now_ms() + worker->ttl_ms;
        worker_say("extended", 0, "-");
    } else {
        worker_say("failed", 0, "extend");
    }
}

static int64_t take_redlock(struct worker *worker)
{
    int64_t good_for_ms = (int64_t)worker->ttl_ms - (int64_t)worker->ttl_ms / DRIFT_PART - DRIFT_MS;
    uint64_t asked_ms = loop_now_ms();
    unsigned got = set_nx_px(worker);

    if (got > worker->node_count / 2 && (int64_t)(loop_now_ms() - asked_ms) < good_for_ms)
        return good_for_ms;
    release_by_script(worker);
    return 0;
}

static bool readers_do(const struct worker *worker, const char *script)
{
    return redis_do(worker->nodes[0], WRITE_MS, "EVAL %s 2 %s %s:readers %s %lld %lld %u", script,
                    worker->lease, worker->lease, worker->value, (long long)cli_wall_ms(),
                    (long long)cli_wall_ms() + (long long)worker->ttl_ms, worker->ttl_ms) == 1;
}

static int64_t take_readers(struct worker *worker)
{
    return readers_do(worker, worker->shares ? reader_script : writer_script) ? worker->ttl_ms : 0;
}

static bool release_readers(const struct worker *worker)
{
    return readers_do(worker, reader_leave_script);
}

struct lock {
    const char *name;
    int64_t (*take)(struct worker *worker);       /* for how many ms; 0: another has it */
    bool (*release)(const struct worker *worker); /* whether it had the lock until then */
};

static const struct lock locks[] = {
    {"pawl", NULL, NULL},
    {"pawl-quorum", NULL, NULL},           /* where nobody stands in line */
    {"px", take_px, release_most},         /* SET NX PX with a random value, released by a script */
    {"expire", take_expire, release_most}, /* SETNX, then EXPIRE */
    {"timestamp", take_timestamp,
     release_most},                          /* SETNX with the end as value, and GETSET when that is over */
    {"del", take_px, NULL},                  /* SET NX PX, released by DEL */
    {"get-del", take_px, NULL},              /* released by GET and, when it is its own, DEL */
    {"redlock", take_redlock, release_most}, /* SET NX PX at most of several servers */
    {"readers", take_readers, release_readers}, /* a set of readers that a writer must find empty */
};

static bool lock_is(const struct worker *worker, const char *name)
{
    return strcmp(worker->lock->name, name) == 0;
}

static bool is_pawl(const struct worker *worker)
{
    return worker->lock->take == NULL;
}

static enum try recipe_take(struct worker *worker)
{
    uint64_t asked_ms = loop_now_ms();
    int64_t good_for_ms;

    random_text(worker->value, VALUE_CHARS);
    good_for_ms = worker->lock->take(worker);
    return good_for_ms > 0 ? granted(worker, 0, asked_ms, good_for_ms) : held(worker, BYTES("-"));
}

/* get-del looks first; DEL removes the key, whosever it is. */
static void release_by_del(const struct worker *worker)
{
    char owner[REPLY_SIZE];

    if (lock_is(worker, "get-del")) {
        if (!redis_ask(worker->nodes[0], WRITE_MS, owner, sizeof(owner), "GET %s", worker->lease) ||
            strcmp(owner, worker->value) != 0) {
            worker_say("lost", 0, "-");
            return;
        }
        worker_say("looked", 0, "-");
        pass_ms(worker->ttl_ms / LOOK_PART); /* the way from one command to the next */
    }
    worker_say("deleted", redis_do(worker->nodes[0], WRITE_MS, "DEL %s", worker->lease), "-");
}

/* -- Pawl, through its own library */

static enum try pawl_take(struct worker *worker, unsigned limit_ms)
{
    /* The first try reports the holder; the next ones queue. */
    bool waits = worker->reported_held && lock_is(worker, "pawl");
    unsigned wait_ms = !waits ? 0 : limit_ms < WAIT_MS_MAX ? limit_ms : WAIT_MS_MAX;
    const struct pawl_ask ask = {.size = sizeof(ask),
                                 .holder = worker->name,
                                 .ttl_ms = worker->ttl_ms,
                                 .wait_ms = wait_ms,
                                 .mode = worker->shares ? PAWL_SHARED : PAWL_EXCLUSIVE};
    struct pawl_problem problem = {.size = sizeof(problem)};
    struct pawl_grant *grant = &worker->grant;

    switch (pawl_acquire(worker->pawl, worker->lease, &ask, grant, &problem)) {
    case PAWL_OK:
        return granted(worker, grant->token,
                       loop_now_ms() + (uint64_t)(grant->deadline_ms - pawl_now_ms() - grant->ttl_ms),
                       grant->ttl_ms);
    case PAWL_HELD: return held(worker, bytes_of(problem.holder));
    case PAWL_UNKNOWN: return TRY_LATER;
    case PAWL_NOT_DONE:
    case PAWL_LOST: break;
    }
    if (problem.status == 0 || problem.status >= 500)
        return TRY_LATER;
    worker_say("failed", problem.status, "acquire");
    return TRY_FAILED;
}

static void say_refusal(const char *word, const char *what, const struct pawl_problem *problem)
{
    if (problem->status != 0)
        worker_say(word, problem->status, "%s", problem->code);
    else
        worker_say("failed", 0, "%s: %s", what, problem->detail);
}

static void gateway_write(const struct worker *worker, const char *text)
{
    const struct pawl_write write = {.size = sizeof(write), .content_type = "text/plain"};
    struct pawl_problem problem = {.size = sizeof(problem)};
    uint64_t until_ms = loop_now_ms() + AGAIN_MOST_MS;
    enum pawl_outcome outcome;

    /* 503: certainly not done, and worth asking again. */
    while ((outcome = pawl_put(worker->pawl, worker->lease, worker->grant.fencing_token, text, strlen(text),
                               &write, NULL, &problem)) != PAWL_OK &&
           problem.status == 503 && loop_now_ms() < until_ms)
        pass_ms(AGAIN_MS);
    if (outcome == PAWL_OK)
        worker_say("written", 0, "-");
    else
        say_refusal("refused", "write", &problem);
}

static void gateway_read(const struct worker *worker)
{
    struct pawl_resource resource = {.size = sizeof(resource)};
    struct pawl_problem problem = {.size = sizeof(problem)};

    if (pawl_get(worker->pawl, worker->lease, NULL, &resource, &problem) == PAWL_OK)
        worker_say("reads", 0, "%s", resource.body);
    else
        say_refusal("refused", "read", &problem);
    pawl_resource_done(&resource);
}

/* -- the lock, of either kind */

static void worker_take(struct worker *worker, unsigned limit_ms)
{
    uint64_t until_ms = loop_now_ms() + (limit_ms > 0 ? limit_ms : TAKE_MS), now_ms;
    unsigned pause_ms = worker->ttl_ms / POLLS_PER_TTL, tries = 0;

    worker->reported_held = false;
    pause_ms = pause_ms > POLL_MS_MIN ? pause_ms : POLL_MS_MIN;
    while ((now_ms = loop_now_ms()) < until_ms) {
        enum try end = is_pawl(worker) ? pawl_take(worker, (unsigned)(until_ms - now_ms))
                                       : recipe_take(worker);

        tries++;
        if (end == TRY_GRANTED || end == TRY_FAILED)
            return;
        if (end == TRY_LATER || !lock_is(worker, "pawl"))
            pass_ms(pause_ms);
    }
    worker_say("vain", tries, "-");
}

static void worker_release(struct worker *worker)
{
    struct pawl_problem problem = {.size = sizeof(problem)};

    worker_say("leaving", 0, "-");
    if (is_pawl(worker) && pawl_release(worker->pawl, &worker->grant, &problem) != PAWL_OK)
        say_refusal("lost", "release", &problem);
    else if (is_pawl(worker))
        worker_say("released", 0, "-");
    else if (worker->lock->release == NULL)
        release_by_del(worker);
    else
        worker_say(worker->lock->release(worker) ? "released" : "lost", 0, "-");
    worker->holds_until_ms = 0;
}

/* -- the resource: behind the gateway, or one that nothing protects */

static void say_done(bool done, const char *word, const char *text, const char *what, const char *why)
{
    if (done)
        worker_say(word, 0, "%s", text);
    else
        worker_say("failed", 0, "%s: %s", what, why);
}

static void worker_write(const struct worker *worker, const char *text)
{
    char reply[REPLY_SIZE];
    int fd;

    if (worker->gateway_url != NULL) {
        gateway_write(worker, text);
    } else if (worker->store == NULL) {
        fd = open(worker->file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        say_done(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), "written", "-", "write",
                 strerror(errno));
        close(fd);
    } else {
        say_done(redis_ask(worker->store, WRITE_MS, reply, sizeof(reply), "SET resource %s", text), "written",
                 "-", "write", reply);
    }
}

static void worker_read(const struct worker *worker)
{
    char reply[REPLY_SIZE] = "";
    int fd;

    if (worker->gateway_url != NULL) {
        gateway_read(worker);
    } else if (worker->store == NULL) {
        fd = open(worker->file, O_RDONLY | O_CLOEXEC);
        say_done(fd >= 0 && read(fd, reply, sizeof(reply) - 1) >= 0, "reads", reply, "read", strerror(errno));
        close(fd);
    } else {
        say_done(redis_ask(worker->store, WRITE_MS, reply, sizeof(reply), "GET resource"), "reads", reply,
                 "read", reply);
    }
}

static bool still_holds(const struct worker *worker)
{
    if (loop_now_ms() < worker->holds_until_ms)
        return true;
    worker_say("over", 0, "-");
    return false;
}

/* -- orders */

static void worker_do(struct worker *worker, const char *verb, unsigned ms, const char *text)
{
    bool works = strcmp(verb, "work") == 0;

    if (strcmp(verb, "take") == 0 || strcmp(verb, "share") == 0) {
        worker->shares = *verb == 's';
        worker_take(worker, ms);
    } else if (works || strcmp(verb, "look") == 0) {
        if (still_holds(worker)) {
            worker_say("holds", (int64_t)(worker->holds_until_ms - loop_now_ms()), "-");
            pass_ms(ms);
            if (works)
                worker_write(worker, text);
        }
    } else if (strcmp(verb, "toil") == 0) {
        pass_ms(ms);
        worker_write(worker, text);
    } else if (strcmp(verb, "write") == 0) {
        if (still_holds(worker))
            worker_write(worker, text);
    } else if (strcmp(verb, "extend") == 0) {
        extend_timestamp(worker);
    } else if (strcmp(verb, "read") == 0) {
        worker_read(worker);
    } else if (strcmp(verb, "release") == 0) {
        worker_release(worker);
    } else {
        worker_say("failed", 0, "not understood: %s", verb);
    }
}

/* Cut in place. */
static void worker_obey(struct worker *worker, char *line)
{
    char *rest = NULL, *verb = strtok_r(line, " ", &rest), *ms = strtok_r(NULL, " ", &rest);

    rest[strcspn(rest, "\n")] = '\0';
    if (ms == NULL || *rest == '\0')
        worker_say("failed", 0, "not understood: %s", verb != NULL ? verb : "");
    else
        worker_do(worker, verb, (unsigned)strtoul(ms, NULL, 10), rest);
}

int cli_demo_worker(int argc, char **argv)
{
    struct worker worker = {0};
    const char *nodes = "";
    uint64_t ttl_ms = 0;
    const struct option flags[] = {
        FLAG_LEASE_URL(&worker.lease_url),
        FLAG_ENV("gateway-url", "URL", "", &worker.gateway_url),
        FLAG_TEXT("nodes", "LIST", "", &nodes),
        FLAG_TEXT("file", "FILE", "", &worker.file),
        FLAG_TEXT("store", "ADDR", "", &worker.store),
        FLAG_TTL(&ttl_ms),
        {0},
    };
    const char *arguments[ARGUMENTS_MAX + 1];
    char line[WORKER_LINE_SIZE], *list, *rest = NULL;
    int status = flags_read("demo-worker", flags, argc, argv, arguments);

    if (status != CLI_GO_ON)
        return status;
    signal(SIGPIPE, SIG_IGN); /* redis.h */
    worker.name = arguments[0];
    worker.lease = arguments[2];
    worker.ttl_ms = (unsigned)ttl_ms;
    worker.lock = locks;
    for (size_t i = 0; i < sizeof(locks) / sizeof(locks[0]); i++)
        worker.lock = strcmp(locks[i].name, arguments[1]) == 0 ? &locks[i] : worker.lock;
    worker.pawl = pawl_open(&(struct pawl_options){.size = sizeof(struct pawl_options),
                                                   .lease_url = worker.lease_url,
                                                   .gateway_url = worker.gateway_url,
                                                   .timeout_ms = WRITE_MS,
                                                   .attempts = 1},
                            NULL);
    worker.grant.size = sizeof(worker.grant);
    list = strdup(nodes);
    for (char *at = strtok_r(list, ",", &rest); at != NULL && worker.node_count < WORKER_NODES_MAX;
         at = strtok_r(NULL, ",", &rest))
        worker.nodes[worker.node_count++] = at;
    while (fgets(line, sizeof(line), stdin) != NULL)
        worker_obey(&worker, line);
    free(list);
    pawl_close(worker.pawl);
    return CLI_OK;
}
