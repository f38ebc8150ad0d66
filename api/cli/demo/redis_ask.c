/* redis_ask.c - one command to a redis-server, on a connection of its own. */
#include "api/cli/demo/redis_ask.h"

#include <arpa/inet.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMMAND_SIZE = 4096, WORDS_MAX = 64, PING_MS = 500, PONG_SIZE = 16 };

/* NULL: nobody listens. */
static redisContext *redis_connect(const struct redis_ask *ask)
{
    const struct timeval limit = {.tv_sec = ask->timeout_ms / 1000, .tv_usec = ask->timeout_ms % 1000 * 1000};
    const char *colon = strrchr(ask->address, ':');
    char host[INET_ADDRSTRLEN];
    redisContext *redis;

    if (*ask->address == '/' || colon == NULL) {
        redis = redisConnectUnixWithTimeout(ask->address, limit);
    } else {
        snprintf(host, sizeof(host), "%.*s", (int)(colon - ask->address), ask->address);
        redis = redisConnectWithTimeout(host, (int)strtol(colon + 1, NULL, 10), limit);
    }
    if (redis != NULL && redis->err == 0 && redisSetTimeout(redis, limit) == REDIS_OK) {
        return redis;
    }
    if (redis != NULL) {
        redisFree(redis);
    }
    return NULL;
}

static bool command_append(redisContext *redis, const struct redis_ask *ask)
{
    char line[COMMAND_SIZE];
    const char *words[WORDS_MAX];
    int count = 0;

    if (ask->line != NULL) {
        int len = snprintf(line, sizeof(line), "%s\r\n", ask->line);

        return len < COMMAND_SIZE && redisAppendFormattedCommand(redis, line, (size_t)len) == REDIS_OK;
    }
    while (count < WORDS_MAX && ask->words[count] != NULL) {
        words[count] = ask->words[count];
        count++;
    }
    return redisAppendCommandArgv(redis, count, words, NULL) == REDIS_OK;
}

/* Every value on a line of its own; false: one of them is an error. */
static bool reply_add(const redisReply *value, char *reply, size_t size)
{
    size_t len = strlen(reply);
    bool good = value->type != REDIS_REPLY_ERROR;

    if (value->type == REDIS_REPLY_ARRAY) {
        for (size_t i = 0; i < value->elements; i++) {
            good = reply_add(value->element[i], reply, size) && good;
        }
    } else if (value->type == REDIS_REPLY_INTEGER) {
        snprintf(reply + len, size - len, "%s%lld", len > 0 ? "\n" : "", value->integer);
    } else {
        snprintf(reply + len, size - len, "%s%s", len > 0 ? "\n" : "",
                 value->str != NULL ? value->str : "(nil)");
    }
    return good;
}

enum redis_ask_end redis_ask(const struct redis_ask *ask, char *reply, size_t size)
{
    enum redis_ask_end end = REDIS_ASK_NOTHING;
    redisContext *redis = redis_connect(ask);
    void *value = NULL;

    reply[0] = '\0';
    if (redis == NULL) {
        return end;
    }
    if (command_append(redis, ask) && redisGetReply(redis, &value) == REDIS_OK) {
        end = reply_add(value, reply, size) ? REDIS_ASK_SAID : REDIS_ASK_ERROR;
        freeReplyObject(value);
    }
    redisFree(redis);
    return end;
}

bool redis_ping(const char *socket_path)
{
    const struct redis_ask ask = {.address = socket_path, .line = "PING", .timeout_ms = PING_MS};
    char reply[PONG_SIZE];

    return redis_ask(&ask, reply, sizeof(reply)) == REDIS_ASK_SAID && strcmp(reply, "PONG") == 0;
}
