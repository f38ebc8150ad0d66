/* store_world.h - what the tests of the store stand on: a private Redis, a store on it, calls that watch how
 * they end. */
#ifndef PAWL_TESTS_STORE_WORLD_H
#define PAWL_TESTS_STORE_WORLD_H

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shared/store/store_internal.h"
#include "shared/store/subscriber.h"
#include "tests/component/loopback.h"
#include "tests/unit/check.h"
#include "tests/unit/waited.h"

/* -- a private Redis, in a directory of its own, which dies with the test */

struct redis {
    pid_t pid;
    unsigned port;
    char dir[32], data[40], socket[40], url[48];
    int admin; /* a connection for the test itself */
};

static inline int redis_connect(const struct redis *redis)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", redis->socket);
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* One that nobody has just now: redis-server cannot ask the kernel for one itself. */
static inline unsigned free_port(void)
{
    unsigned port;

    close(loopback_listen(&port, 1, 0));
    return port;
}

/* Sends an inline command without waiting for its answer. */
static inline void redis_tell(struct redis *redis, const char *command)
{
    dprintf(redis->admin, "%s\r\n", command);
}

/* Whether the answer is whole, and where its text begins and ends: a bulk's text, else the first line. */
static inline bool answer_whole(char *answer, size_t len, char **text, char **end)
{
    char *line = strstr(answer, "\r\n");

    if (line == NULL)
        return false;
    *text = answer;
    *end = line;
    if (answer[0] == '$' && answer[1] != '-') {
        *text = line + 2;
        *end = *text + strtoul(answer + 1, NULL, 10);
    }
    return *end + 2 <= answer + len;
}

/* Good until the next one. */
static inline const char *redis_ask(struct redis *redis, const char *command)
{
    static char answer[64 * 1024];
    char *text = answer, *end = answer;
    size_t len = 0;

    redis_tell(redis, command);
    memset(answer, 0, sizeof(answer));
    do {
        ssize_t n = read(redis->admin, answer + len, sizeof(answer) - 1 - len);
        if (n <= 0)
            return "gone";
        len += (size_t)n;
    } while (!answer_whole(answer, len, &text, &end));
    *end = '\0';
    return text;
}

/* The same of a command that is written as printf(3) does. */
#define redis_askf(redis, ...) redis_ask((redis), textf(__VA_ARGS__))

/* What is answered with OK. */
static inline void redis_does(struct redis *redis, const char *command)
{
    CHECK_TEXT(bytes_of(redis_ask(redis, command)), BYTES("+OK"));
}

static inline void redis_exec(const struct redis *redis, const char *const *extra)
{
    char *settings = strdup(
        textf("redis-server --port %u --bind 127.0.0.1 --unixsocket %s --dir %s --appendonly yes "
              "--appendfsync always --aof-load-truncated no --logfile log --enable-debug-command "
              "yes --save",
              redis->port, redis->socket, redis->data));
    const char *argv[48] = {NULL};
    size_t count = 0;

    for (char *rest = settings; (argv[count] = strsep(&rest, " ")) != NULL;)
        count++;
    argv[count++] = "";
    for (size_t i = 0; extra != NULL && extra[i] != NULL; i++)
        argv[count++] = extra[i];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0); /* so that a rewrite's process dies with it */
    execvp(argv[0], (char *const *)(uintptr_t)argv);
    _exit(127);
}

/* Starts it, also again; returns when it accepts. extra: arguments, ends with NULL. */
static inline bool redis_run(struct redis *redis, const char *const *extra)
{
    uint64_t deadline_ms = loop_now_ms() + 5000;

    unlink(redis->socket);
    redis->pid = fork();
    if (redis->pid == 0)
        redis_exec(redis, extra);
    while ((redis->admin = redis_connect(redis)) < 0 && loop_now_ms() < deadline_ms)
        poll(NULL, 0, 1);
    return CHECK(redis->admin >= 0);
}

static inline bool redis_start(struct redis *redis, const char *const *extra)
{
    *redis = (struct redis){.port = free_port()};
    snprintf(redis->dir, sizeof(redis->dir), "/tmp/pawl-store-XXXXXX");
    if (!CHECK(mkdtemp(redis->dir) != NULL))
        return false;
    snprintf(redis->data, sizeof(redis->data), "%s/data", redis->dir);
    snprintf(redis->socket, sizeof(redis->socket), "%s/r", redis->dir);
    snprintf(redis->url, sizeof(redis->url), "unix://%s", redis->socket);
    CHECK(mkdir(redis->data, 0700) == 0);
    return redis_run(redis, extra);
}

static inline void redis_kill(struct redis *redis)
{
    kill(-redis->pid, SIGKILL);
    waitpid(redis->pid, NULL, 0);
    close(redis->admin);
}

/* Returns when Redis is running a script for the test, and will be for busy_ms more; --busy-reply-threshold
 * must be short. The test's own connection waits for its end. */
static inline void redis_make_busy(struct redis *redis, unsigned busy_ms)
{
    struct redis other = {.admin = redis_connect(redis)};
    uint64_t deadline_ms = loop_now_ms() + 2000;

    redis_tell(redis,
               textf("EVAL 'local t = redis.call(\"TIME\") local till = t[1] * 1000 + t[2] / 1000 + %u "
                     "repeat t = redis.call(\"TIME\") until t[1] * 1000 + t[2] / 1000 > till' 0",
                     busy_ms));
    while (strncmp(redis_ask(&other, "PING"), "-BUSY", 5) != 0 && loop_now_ms() < deadline_ms)
        poll(NULL, 0, 1);
    close(other.admin);
}

/* Ends the script that keeps it busy. */
static inline void redis_end_script(const struct redis *redis)
{
    struct redis other = {.admin = redis_connect(redis)};

    redis_does(&other, "SCRIPT KILL");
    close(other.admin);
}

static inline void remove_tree(const char *path)
{
    pid_t pid = fork();

    if (pid == 0) {
        execlp("rm", "rm", "-rf", "--", path, (char *)NULL);
        _exit(127);
    }
    waitpid(pid, NULL, 0);
}

static inline void redis_stop(struct redis *redis)
{
    redis_kill(redis);
    remove_tree(redis->dir);
}

/* A test with a Redis of its own; with more arguments for it. */
#define TEST_REDIS(sentence)                                                                                 \
    TEST_WITH(sentence, struct redis, redis, redis_start(redis, NULL), redis_stop(redis))
#define TEST_REDIS_AS(sentence, ...)                                                                         \
    TEST_WITH(sentence, struct redis, redis, redis_start(redis, (const char *const[]){__VA_ARGS__, NULL}),   \
              redis_stop(redis))

/* -- functions: S(name, first line as a script of its own, flags, text). LISTED: a list of what stands
 * between the commas of its first argument, and behind it as many members as the second says. */

#define SCRIPTS(S)                                                                                           \
    S(ECHO, "", "", "return ARGV")                                                                           \
    S(SET, "", "", "redis.call('SET', KEYS[1], ARGV[1]) return {'set', 1}")                                  \
    S(INCR, "", "", "return redis.call('INCR', KEYS[1])")                                                    \
    S(REFUSE, "", "", "return redis.error_reply('MINE because I say so')")                                   \
    S(BREAK, "", "", "redis.call('SET', KEYS[1], 'half') error('boom')")                                     \
    S(SLOW, "", "",                                                                                          \
      "local n, till = 0, os.clock() + ARGV[1] / 1000 repeat n = n + 1 until os.clock() > till return n")    \
    S(SHAPES, "", "",                                                                                        \
      "if KEYS[1] == 'status' then return redis.status_reply('FINE') end "                                   \
      "if KEYS[1] == 'nil' then return false end if KEYS[1] == 'one' then return 7 end "                     \
      "if KEYS[1] == 'empty' then return {} end "                                                            \
      "return {'word', 42, false, {'in', {1, 2}}, '17', '017', '-5', '-0', '', '999999999999999999', "       \
      "'1000000000000000000', '1 ', redis.status_reply('OK')}")                                              \
    S(LISTED, "", "",                                                                                        \
      "local list = {} for one in string.gmatch(ARGV[1], '([^,]+)') do "                                     \
      "list[#list + 1] = one ~= 'NIL' and (tonumber(one) or one) end "                                       \
      "for i = 1, ARGV[2] do list[#list + 1] = string.format('gateway %016d %016d', i, i) end "              \
      "return {'listed', list}")                                                                             \
    S(LENGTH, "", "", "return {#ARGV[1], ARGV[1]:sub(-1)}")                                                  \
    S(SET_ON_FULL, "#!lua flags=allow-oom\n", "'allow-oom'",                                                 \
      "redis.call('SET', KEYS[1], ARGV[1]) return 'set'")

/* Those that may be batched. FAIL has written when it fails, with an error of any words; LATER does not run
 * in a batch; WHOLE is the end of one, in which others have run; SHORT makes its answer too short. */
#define BATCHED(S)                                                                                           \
    S(PUT, "", "", "return {'put', redis.call('RPUSH', KEYS[1], ARGV[1])}")                                  \
    S(PUT_ON_FULL, "#!lua flags=allow-oom\n", "'allow-oom'",                                                 \
      "return {'put', redis.call('RPUSH', KEYS[1], ARGV[1])}")                                               \
    S(GET, "", "", "return {redis.call('LINDEX', KEYS[1], ARGV[1]) or 'none', 1}")                           \
    S(FAIL, "", "", "redis.call('RPUSH', KEYS[1], 'half') error({err = ARGV[1]})")                           \
    S(LATER, "", "", "return {in_batch and 'again' or redis.call('RPUSH', KEYS[1], ARGV[1]) and 'ran', 1}")  \
    S(WHOLE, "", "", "return {}")                                                                            \
    S(SHORT, "", "", "return {}")

#define LIBRARY(name)                                                                                        \
    "#!lua name=" name "\nlocal register = redis.register_function\nlocal batched = {}\n"                    \
    "local function take(name, n, ...) local k, a = {}, {select(n + 1, ...)} for i = 1, n do "               \
    "k[i] = (select(i, ...)) end return name, k, a end\n"
#define FUNCTION(name, flags, text)                                                                          \
    "register({function_name = '" name "', flags = {" flags "}, callback = function(KEYS, ARGV) " text       \
    " end})\n"
#define AS_BATCHED(place, head, flags, text)                                                                 \
    "batched." #place " = function(KEYS, ARGV, in_batch) " text                                              \
    " end\n" AS_FUNCTIONS(place, head, flags,                                                                \
                          "local _, k, a = take(cmsgpack.unpack(ARGV[1])) return batched." #place "(k, a)")
/* As shared/member/scripts/lib/batch.lua. */
#define BATCH                                                                                                \
    FUNCTION("test_batch", "",                                                                               \
             "local replies = {} for i = 1, #ARGV do local name, k, a = take(cmsgpack.unpack(ARGV[i])) "     \
             "local done, reply = pcall(batched[name], k, a, true) "                                         \
             "if name == 'WHOLE' then error({err = a[1]}) end "                                              \
             "if name == 'SHORT' then break end "                                                            \
             "replies[i] = done and reply or {err = reply} end return replies")
#define AS_FUNCTIONS(place, head, flags, text)                                                               \
    FUNCTION("test_" #place, flags, text) FUNCTION("test_" #place "_ro", "'no-writes'", text)
#define AS_SCRIPT(place, head, flags, text)                                                                  \
    static const struct store_script script_##place = {#place, "test_" #place,  head, &test_library,         \
                                                       false,  head[0] == '\0', false};
#define AS_BATCHED_SCRIPT(place, head, flags, text)                                                          \
    static const struct store_script script_##place = {#place, "test_" #place,  head, &test_library,         \
                                                       true,   head[0] == '\0', false};

#pragma GCC diagnostic ignored "-Woverlength-strings"
static const char test_text[] = LIBRARY("pawl_test") SCRIPTS(AS_FUNCTIONS) BATCHED(AS_BATCHED) BATCH;
static const struct store_library test_library = {"pawl_test", test_text, sizeof(test_text) - 1,
                                                  "test_batch"};
SCRIPTS(AS_SCRIPT)
BATCHED(AS_BATCHED_SCRIPT)

/* -- a store on a loop */

struct world {
    struct loop *loop;
    struct store *store;
    bool running; /* inside store_run */
    unsigned ended_inside;
    unsigned open; /* probes not yet ended */
};

/* A call that watches how it ends. */
struct probe {
    struct store_call call;
    struct world *world;
    enum store_outcome outcome;
    unsigned ends;
    size_t count;
    int64_t integer;
    char text[48], key[24];
    struct bytes argv[4];
    void (*then)(struct probe *probe, const struct store_reply *reply);
};

#define WAIT(world, precondition, wait_ms)                                                                   \
    do {                                                                                                     \
        struct patience patience_ = patience_of(wait_ms);                                                    \
        while (!(precondition) && patience_lasts(&patience_))                                                \
            waited_turn((world)->loop, 2);                                                                   \
        CHECK(precondition);                                                                                 \
    } while (0)

static inline bool world_ready(const struct world *world)
{
    const char *detail;
    const char *check = store_not_ready(world->store, &detail);

    return check == NULL || strcmp(check, "store-unsafe") == 0;
}

static inline void world_open(struct world *world, const struct store_options *options)
{
    *world = (struct world){.loop = loop_new()};
    world->store = store_open(world->loop, options);
}

/* Whatever the settings of the Redis are. */
static inline void world_open_at(struct world *world, const char *url, unsigned timeout_ms)
{
    world_open(world,
               &(struct store_options){
                   .url = url, .timeout_ms = timeout_ms, .allow_unsafe = true, .library = &test_library});
}

/* On the Redis' unix socket, READY. */
static inline void world_open_on(struct world *world, const struct redis *redis, unsigned timeout_ms)
{
    world_open_at(world, redis->url, timeout_ms);
    WAIT(world, world_ready(world), 2000);
}

static inline void world_close(struct world *world)
{
    store_close(world->store);
    loop_free(world->loop);
    CHECK_INT(world->ended_inside, 0);
    CHECK_INT(world->open, 0);
}

static inline enum step probe_done(struct store_call *call, enum store_outcome outcome,
                                   const struct store_reply *reply)
{
    struct probe *probe = container_of(call, struct probe, call);
    struct bytes text = store_reply_text(reply, 0);

    probe->ends++;
    probe->outcome = outcome;
    probe->count = store_reply_count(reply);
    probe->integer = store_reply_integer(reply, 0);
    snprintf(probe->text, sizeof(probe->text), "%.*s", (int)text.len, text.len > 0 ? text.at : "");
    probe->world->open--;
    probe->world->ended_inside += probe->world->running;
    if (probe->then != NULL)
        probe->then(probe, reply);
    return ANSWERED;
}

static inline void probe_run(struct world *world, struct probe *probe, const struct store_script *script,
                             unsigned keys, unsigned args)
{
    bool was = world->running;

    probe->call.done = probe_done;
    probe->world = world;
    probe->outcome = (enum store_outcome)99;
    world->open++;
    world->running = true;
    store_run(world->store, &probe->call, script, keys, args, probe->argv);
    world->running = was;
}

/* One key, one argument. */
static inline void probe_start(struct world *world, struct probe *probe, const struct store_script *script,
                               const char *key, const char *value)
{
    snprintf(probe->key, sizeof(probe->key), "%s", key);
    probe->argv[0] = bytes_of(probe->key);
    probe->argv[1] = bytes_of(value);
    probe_run(world, probe, script, 1, 2);
}

/* Runs one and waits for its end. */
static inline struct probe probe_once(struct world *world, const struct store_script *script, const char *key,
                                      const char *value)
{
    struct probe probe = {0};

    probe_start(world, &probe, script, key, value);
    WAIT(world, probe.ends > 0, 5000);
    CHECK_INT(probe.ends, 1);
    return probe;
}

/* A test with a store on a Redis of its own, READY, whatever its settings are; with more arguments for it. */
#define TEST_STORE(sentence, timeout_ms) TEST_STORE_AS(sentence, timeout_ms, NULL)
#define TEST_STORE_AS(sentence, timeout_ms, ...)                                                             \
    static void sentence##_on(struct redis *redis, struct world *world);                                     \
    TEST_REDIS_AS(sentence, __VA_ARGS__)                                                                     \
    {                                                                                                        \
        struct world world;                                                                                  \
                                                                                                             \
        world_open_on(&world, redis, timeout_ms);                                                            \
        sentence##_on(redis, &world);                                                                        \
        world_close(&world);                                                                                 \
    }                                                                                                        \
    static void sentence##_on(struct redis *redis __attribute__((unused)), struct world *world)

#endif
