/* dial.c - how a connection to Redis is made, and when again: of the link and of the subscriber. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <hiredis/hiredis.h>

#include "shared/store/store_internal.h"

enum {
    PAUSE_FIRST_MS = 20,
    PAUSE_MAX_MS = 500, /* grants are made again within 2 s of Redis returning, and not all of it is ours */
    LASTED_MS = 1000    /* a connection that lived shorter does not begin the pauses anew */
};

char *dial_password(struct store_url *url, const char *password)
{
    const char *given = password != NULL ? password : url->password[0] != '\0' ? url->password : NULL;
    char *taken = given != NULL ? strdup(given) : NULL;

    if (given != NULL && taken == NULL) {
        fprintf(stderr, "pawl: out of memory\n");
        abort();
    }
    explicit_bzero(url->password, sizeof(url->password));
    return taken;
}

void dial_forget_password(char *password)
{
    if (password != NULL) {
        explicit_bzero(password, strlen(password));
        free(password);
    }
}

/* hiredis resolves the host's name here, and getaddrinfo(3) may block the loop for as long as the resolver
 * does (net.c of 0.14.1 and 1.2.0). An address, or a name in /etc/hosts, does not. */
static redisContext *dial_start(const struct store_url *url)
{
    if (url->path[0] != '\0') {
        return redisConnectUnixNonBlock(url->path);
    }
    return redisConnectNonBlock(url->host, (int)url->port);
}

struct redisContext *dial_begin(const struct store_url *url, char why[DIAL_WHY_MAX])
{
    redisContext *context = dial_start(url);

    if (context == NULL || context->err != 0) {
        snprintf(why, DIAL_WHY_MAX, "%s", context != NULL ? context->errstr : "out of memory");
        if (context != NULL) {
            redisFree(context);
        }
        return NULL;
    }
    /* hiredis opens sockets without SOCK_CLOEXEC; a child must not keep the connection alive. */
    fcntl(context->fd, F_SETFD, FD_CLOEXEC);
    return context;
}

/* A socket that is writable has been connected, or has failed to (connect(2), EINPROGRESS). */
const char *dial_end(const struct redisContext *context)
{
    int error = 0;
    socklen_t len = sizeof(error);

    if (getsockopt(context->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0) {
        error = errno;
    }
    return error != 0 ? strerror(error) : NULL;
}

bool dial_names_itself(const struct store_url *url, const char *password)
{
    return password != NULL || url->user[0] != '\0';
}

/* A user that needs no password accepts any, also the empty one (ACL rule nopass). */
void dial_put_auth(struct store_wire *wire, const struct store_url *url, const char *password)
{
    struct bytes secret = password != NULL ? bytes_of(password) : BYTES("");

    if (url->user[0] != '\0') {
        wire_put_command(wire, (struct bytes[]){BYTES("AUTH"), bytes_of(url->user), secret}, 3);
    } else {
        wire_put_command(wire, (struct bytes[]){BYTES("AUTH"), secret}, 2);
    }
}

/* Half of it is jitter, so that services that lost the same Redis do not come back in step. */
uint64_t dial_pause_ms(unsigned *attempts)
{
    uint64_t most = PAUSE_FIRST_MS;

    for (unsigned i = 0; i < *attempts && most < PAUSE_MAX_MS; i++) {
        most *= 2;
    }
    most = most < PAUSE_MAX_MS ? most : PAUSE_MAX_MS;
    ++*attempts;
    return most / 2 + (loop_now_us() * UINT64_C(0x9E3779B97F4A7C15) >> 33) % (most / 2 + 1);
}

bool dial_lasted(uint64_t since_us)
{
    return loop_now_us() - since_us >= LASTED_MS * 1000;
}
