/* drill_ask_redis.c - one command to the drill's Redis: a few words, no library. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "api/cli/cli.h"
#include "api/cli/drill_world.h"

enum { ANSWER_MS = 5000, LINE_SIZE = 512 };

/* One link, the reply as it is put together. */
struct asking {
    int fd;
    uint64_t until_ms;
    char *reply;
    size_t len;
    bool error; /* Redis said so */
};

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
    if (asking->len + 1 < DRILL_REPLY_SIZE) {
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

static bool command_send(int fd, const char *command)
{
    char line[DRILL_REPLY_SIZE];
    int len = snprintf(line, sizeof(line), "%s\r\n", command);

    return len > 0 && (size_t)len < sizeof(line) && write(fd, line, (size_t)len) == (ssize_t)len;
}

bool drill_world_ask_redis(struct drill_world *world, const char *command, char reply[DRILL_REPLY_SIZE])
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct asking asking = {.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0),
                            .until_ms = cli_now_ms() + ANSWER_MS,
                            .reply = reply};
    bool answered;

    reply[0] = '\0';
    if (asking.fd < 0) {
        return drill_world_wrong(world, "no socket");
    }
    memcpy(address.sun_path, world->socket, strlen(world->socket) + 1); /* its length was seen to be fine */
    answered = connect(asking.fd, (const struct sockaddr *)&address, sizeof(address)) == 0 &&
               command_send(asking.fd, command) && reply_read(&asking);
    close(asking.fd);
    if (!answered || asking.error) {
        return drill_world_wrong(world, "Redis did not do \"%s\": %s", command,
                                 answered ? reply : "no answer");
    }
    return true;
}
