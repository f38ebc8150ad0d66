/* redis_ping.c - whether a redis-server takes commands yet: one inline command, no library. */
#include "api/cli/redis_ping.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { ANSWER_MS = 500 };

static bool ask(int fd)
{
    static const char command[] = "PING\r\n", answer[] = "+PONG\r\n";
    struct pollfd readable = {.fd = fd, .events = POLLIN};
    char buf[sizeof(answer)];

    return write(fd, command, sizeof(command) - 1) == (ssize_t)sizeof(command) - 1 &&
           poll(&readable, 1, ANSWER_MS) == 1 &&
           recv(fd, buf, sizeof(answer) - 1, MSG_WAITALL) == (ssize_t)sizeof(answer) - 1 &&
           memcmp(buf, answer, sizeof(answer) - 1) == 0;
}

bool redis_ping(const char *socket_path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool answered;

    if (fd < 0 || strlen(socket_path) >= sizeof(address.sun_path)) {
        return false;
    }
    memcpy(address.sun_path, socket_path, strlen(socket_path) + 1);
    answered = connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 && ask(fd);
    close(fd);
    return answered;
}
