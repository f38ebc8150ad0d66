/* redis.c - one command to a redis-server, on a connection of its own. */
#include "api/cli/demo/redis.h"

#include <arpa/inet.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PING_MS = 500, PONG_SIZE = 16 };

/* NULL: no memory. */
static redisContext *redis_connect(const char *address, struct timeval limit)
{
    const char *colon = strrchr(address, ':');
    char host[INET_ADDRSTRLEN];

    if (*address == '/' || colon == NULL) {
        return redisConnectUnixWithTimeout(address, limit);
    }
    snprintf(host, sizeof(host), "%.*s", (int)(colon - address), address);
    return redisConnectWithTimeout(host, (int)strtol(colon + 1, NULL, 10), limit);
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

bool redis_vask(const char *address, unsigned timeout_ms, char *reply, size_t size, const char *format,
                va_list args)
{
    const struct timeval limit = {.tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000};
    redisContext *redis = redis_connect(address, limit);
    redisReply *value = NULL;
    bool good;

    reply[0] = '\0';
    if (redis != NULL && redis->err == 0 && redisSetTimeout(redis, limit) == REDIS_OK) {
        value = redisvCommand(redis, format, args);
    }
    good = value != NULL && reply_add(value, reply, size);
    freeReplyObject(value);
    if (redis != NULL) {
        redisFree(redis);
    }
    return good;
}

bool redis_ask(const char *address, unsigned timeout_ms, char *reply, size_t size, const char *format, ...)
{
    va_list args;
    bool good;

    va_start(args, format);
    good = redis_vask(address, timeout_ms, reply, size, format, args);
    va_end(args);
    return good;
}

bool redis_ping(const char *socket_path)
{
    char reply[PONG_SIZE];

    return redis_ask(socket_path, PING_MS, reply, sizeof(reply), "PING") && strcmp(reply, "PONG") == 0;
}
