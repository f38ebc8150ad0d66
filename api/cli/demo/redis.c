/* redis.c - one command to a redis-server, on a connection of its own. */
#include "api/cli/demo/redis.h"

#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PING_MS = 500, DIAL_S = 5, REPLY_SIZE = 256, HOST_SIZE = 64 };

/* A path, or HOST:PORT. */
static redisContext *dial(const char *address, struct timeval limit)
{
    const char *colon = *address == '/' ? NULL : strrchr(address, ':');
    char host[HOST_SIZE];

    if (colon == NULL)
        return redisConnectUnixWithTimeout(address, limit);
    snprintf(host, sizeof(host), "%.*s", (int)(colon - address), address);
    return redisConnectWithTimeout(host, (int)strtoul(colon + 1, NULL, 10), limit);
}

int redis_dial(const char *address)
{
    redisContext *redis = dial(address, (struct timeval){.tv_sec = DIAL_S});

    return redis != NULL ? redisFreeKeepFd(redis) : -1;
}

static bool ask(const char *address, unsigned timeout_ms, char *reply, size_t size, const char *format,
                va_list args)
{
    const struct timeval limit = {.tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000};
    redisContext *redis = dial(address, limit);
    redisReply *value = NULL;
    const redisReply *first;
    bool good;

    reply[0] = '\0';
    if (redis != NULL && redisSetTimeout(redis, limit) == REDIS_OK)
        value = redisvCommand(redis, format, args);
    first = value != NULL && value->elements > 0 ? value->element[0] : value;
    good = first != NULL && first->type != REDIS_REPLY_ERROR;
    if (first != NULL && first->type == REDIS_REPLY_INTEGER)
        snprintf(reply, size, "%lld", first->integer);
    else if (first != NULL)
        snprintf(reply, size, "%s", first->str != NULL ? first->str : "(nil)");
    freeReplyObject(value);
    if (redis != NULL)
        redisFree(redis);
    return good;
}

bool redis_ask(const char *address, unsigned timeout_ms, char *reply, size_t size, const char *format, ...)
{
    va_list args;
    bool good;

    va_start(args, format);
    good = ask(address, timeout_ms, reply, size, format, args);
    va_end(args);
    return good;
}

int64_t redis_do(const char *address, unsigned timeout_ms, const char *format, ...)
{
    char reply[REPLY_SIZE];
    va_list args;
    bool good;

    va_start(args, format);
    good = ask(address, timeout_ms, reply, sizeof(reply), format, args);
    va_end(args);
    return !good ? -1 : strcmp(reply, "OK") == 0 ? 1 : strtoll(reply, NULL, 10);
}

bool redis_ping(const char *socket_path)
{
    char reply[REPLY_SIZE];

    return redis_ask(socket_path, PING_MS, reply, sizeof(reply), "PING") && strcmp(reply, "PONG") == 0;
}
