/* redis.c - one command to a redis-server, on a connection of its own. */
#include "api/cli/demo/redis.h"

#include <arpa/inet.h>
#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { PING_MS = 500, REPLY_SIZE = 256 };

int redis_dial(const char *address)
{
    struct sockaddr_un path = {.sun_family = AF_UNIX};
    struct sockaddr_in port = {.sin_family = AF_INET};
    const char *colon = strrchr(address, ':');
    bool is_path = *address == '/' || colon == NULL;
    char host[INET_ADDRSTRLEN];
    int fd = -1;

    if (is_path) {
        snprintf(path.sun_path, sizeof(path.sun_path), "%s", address);
    } else {
        snprintf(host, sizeof(host), "%.*s", (int)(colon - address), address);
        port.sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
        if (inet_pton(AF_INET, host, &port.sin_addr) != 1)
            return -1;
    }
    fd = socket(is_path ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && (is_path ? connect(fd, (const struct sockaddr *)&path, sizeof(path))
                            : connect(fd, (const struct sockaddr *)&port, sizeof(port))) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static bool ask(const char *address, unsigned timeout_ms, char *reply, size_t size, const char *format,
                va_list args)
{
    const struct timeval limit = {.tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000};
    int fd = redis_dial(address);
    redisContext *redis = fd >= 0 ? redisConnectFd(fd) : NULL;
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
