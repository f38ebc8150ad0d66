/* redis_ask.c - one command to a redis-server, on a connection of its own. */
#include "api/cli/redis_ask.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "api/cli/cli.h"

enum { LINE_SIZE = 512, COMMAND_SIZE = 4096 };

/* One link, the reply as it is put together. */
struct asking {
    int fd;
    uint64_t until_ms;
    char *reply;
    size_t len, size;
    bool error; /* Redis said so */
};

/* -- the reply */

static bool byte_read(const struct asking *asking, char *byte)
{
    struct pollfd readable = {.fd = asking->fd, .events = POLLIN};
    uint64_t now = cli_now_ms();

    return now < asking->until_ms && poll(&readable, 1, (int)(asking->until_ms - now)) == 1 &&
           read(asking->fd, byte, 1) == 1;
}

/* Up to the line's end, which is dropped. */
static bool line_read(const struct asking *asking, char line[LINE_SIZE])
{
    size_t len = 0;
    char byte;

    while (byte_read(asking, &byte)) {
        if (byte == '\n' && len > 0 && line[len - 1] == '\r') {
            line[len - 1] = '\0';
            return true;
        }
        if (len + 1 < LINE_SIZE) {
            line[len++] = byte;
        }
    }
    return false;
}

static void reply_add(struct asking *asking, char byte)
{
    if (asking->len + 1 < asking->size) {
        asking->reply[asking->len++] = byte;
        asking->reply[asking->len] = '\0';
    }
}

static void reply_line(struct asking *asking, const char *line)
{
    for (; *line != '\0'; line++) {
        reply_add(asking, *line);
    }
    reply_add(asking, '\n');
}

static bool bulk_read(struct asking *asking, long len)
{
    char byte;

    for (long i = 0; i < len + 2; i++) {
        if (!byte_read(asking, &byte)) {
            return false;
        }
        if (i < len) {
            reply_add(asking, byte);
        }
    }
    reply_add(asking, '\n');
    return true;
}

/* RESP2: how many values are still to come goes up with each array, and down with each value. */
static bool reply_read(struct asking *asking)
{
    char line[LINE_SIZE] = "";

    for (long to_come = 1; to_come > 0; to_come--) {
        if (!line_read(asking, line)) {
            return false;
        }
        if (line[0] == '*') {
            long count = strtol(line + 1, NULL, 10);

            to_come += count > 0 ? count : 0;
        } else if (line[0] == '$' && line[1] != '-') {
            if (!bulk_read(asking, strtol(line + 1, NULL, 10))) {
                return false;
            }
        } else {
            asking->error = asking->error || line[0] == '-';
            reply_line(asking, line[0] == '$' ? "(nil)" : line + 1);
        }
    }
    if (asking->len > 0) {
        asking->reply[--asking->len] = '\0'; /* the last line feed */
    }
    return true;
}

/* -- the command */

/* 0: it is too long. */
static size_t command_put(const struct redis_ask *ask, char command[COMMAND_SIZE])
{
    unsigned count = 0;
    int len;

    if (ask->line != NULL) {
        len = snprintf(command, COMMAND_SIZE, "%s\r\n", ask->line);
        return len > 0 && len < COMMAND_SIZE ? (size_t)len : 0;
    }
    while (ask->words[count] != NULL) {
        count++;
    }
    len = snprintf(command, COMMAND_SIZE, "*%u\r\n", count);
    for (unsigned i = 0; i < count && len < COMMAND_SIZE; i++) {
        len += snprintf(command + len, COMMAND_SIZE - (size_t)len, "$%zu\r\n%s\r\n", strlen(ask->words[i]),
                        ask->words[i]);
    }
    return len < COMMAND_SIZE ? (size_t)len : 0;
}

static bool command_send(int fd, const struct redis_ask *ask)
{
    char command[COMMAND_SIZE];
    size_t len = command_put(ask, command);

    return len > 0 && send(fd, command, len, MSG_NOSIGNAL) == (ssize_t)len;
}

/* -- the link */

static int unix_connect(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    size_t len = strlen(path);

    if (fd >= 0 && len < sizeof(address.sun_path)) {
        memcpy(address.sun_path, path, len + 1);
        if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0) {
            return fd;
        }
    }
    if (fd >= 0) {
        close(fd);
    }
    return -1;
}

static int tcp_connect(const char *where)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    const char *colon = strrchr(where, ':');
    char host[INET_ADDRSTRLEN] = "";
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd >= 0 && colon != NULL && (size_t)(colon - where) < sizeof(host)) {
        memcpy(host, where, (size_t)(colon - where));
        address.sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
        if (inet_pton(AF_INET, host, &address.sin_addr) == 1 &&
            connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0) {
            return fd;
        }
    }
    if (fd >= 0) {
        close(fd);
    }
    return -1;
}

enum redis_ask_end redis_ask(const struct redis_ask *ask, char *reply, size_t size)
{
    struct asking asking = {.fd = *ask->address == '/' ? unix_connect(ask->address)
                                                       : tcp_connect(ask->address),
                            .until_ms = cli_now_ms() + ask->timeout_ms,
                            .reply = reply,
                            .size = size};
    bool answered;

    reply[0] = '\0';
    if (asking.fd < 0) {
        return REDIS_ASK_NOTHING;
    }
    answered = command_send(asking.fd, ask) && reply_read(&asking);
    close(asking.fd);
    if (!answered) {
        return REDIS_ASK_NOTHING;
    }
    return asking.error ? REDIS_ASK_ERROR : REDIS_ASK_SAID;
}
