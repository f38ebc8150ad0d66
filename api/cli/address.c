/* address.c - whether one could listen at an address. */
#include "api/cli/address.h"

#include <errno.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/cli/cli.h"

enum { HOST_SIZE = 128 };

static struct addrinfo *address_read(const char *address)
{
    const struct addrinfo wanted = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
                                    .ai_socktype = SOCK_STREAM};
    const char *colon = strrchr(address, ':');
    bool brackets = address[0] == '[' && colon != NULL && colon > address && colon[-1] == ']';
    size_t len = colon != NULL ? (size_t)(colon - address) - (brackets ? 2 : 0) : 0;
    struct addrinfo *found = NULL;
    char host[HOST_SIZE];

    if (len == 0 || len >= sizeof(host)) {
        return NULL;
    }
    memcpy(host, address + brackets, len);
    host[len] = '\0';
    return getaddrinfo(host, colon + 1, &wanted, &found) == 0 ? found : NULL;
}

/* 0, or why not. Without SO_REUSEPORT of our own a port is taken by everyone who listens there. */
static int try_to_bind(const struct addrinfo *at)
{
    int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int yes = 1, error = 0;

    if (fd < 0) {
        return errno;
    }
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)); /* connections of before do not count */
    if (bind(fd, at->ai_addr, at->ai_addrlen) != 0) {
        error = errno;
    }
    close(fd);
    return error;
}

int address_check(const char *address, const char *flag)
{
    struct addrinfo *at = address_read(address);
    int error;

    if (at == NULL) {
        return cli_fail(CLI_CONFIG, "%s takes ADDR:PORT, like 127.0.0.1:8700 or [::1]:0, not \"%s\"", flag,
                        address);
    }
    error = try_to_bind(at);
    freeaddrinfo(at);
    if (error == EADDRINUSE) {
        cli_fail(CLI_CONFIG, "%s is taken: another program listens there already", address);
        cli_hint("Stop it, or choose another port: %s 127.0.0.1:0 takes a free one.", flag);
        return CLI_CONFIG;
    }
    return error == 0 ? CLI_GO_ON
                      : cli_fail(CLI_CONFIG, "nobody can listen on %s: %s", address, strerror(error));
}
