/* relay.c - a wire that can be slow: passes bytes between its clients and one address, or keeps them.
 *
 * pawl demo-relay TARGET: listens on a port of 127.0.0.1, and obeys orders on its standard input in the form
 * of worker.c: "hold 0 -" and "flow 0 -". It writes
 *   listening PORT -   holding 0 -   kept BYTES - (the first that it keeps)   passed BYTES - */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/cli/cli.h"
#include "api/cli/demo/demo_internal.h"
#include "api/cli/demo/redis.h"
#include "api/cli/flags.h"

enum { WAYS_MAX = 32, KEEP_SIZE = 65536, BACKLOG = 16 };

/* One way of one connection: what was read of from goes to the other side. */
struct way {
    int from, to; /* 0: not open */
    bool ended;   /* nothing more comes */
    bool shut;    /* and the other side knows it, when nothing is kept any more */
    size_t len;
    char kept[KEEP_SIZE];
};

struct relay {
    int listener;
    const char *target;
    bool holds, said_kept;
    struct way ways[WAYS_MAX]; /* an even one and the next are a connection: there, and back */
};

/* -- connections */

static bool relay_listen(struct relay *relay)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);

    relay->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (relay->listener < 0 || bind(relay->listener, (const struct sockaddr *)&address, len) != 0 ||
        listen(relay->listener, BACKLOG) != 0 ||
        getsockname(relay->listener, (struct sockaddr *)&address, &len) != 0) {
        return false;
    }
    worker_say("listening", ntohs(address.sin_port), "-");
    return true;
}

static void connection_open(struct relay *relay)
{
    int there = accept4(relay->listener, NULL, NULL, SOCK_CLOEXEC), on;
    unsigned i = 0;

    while (i < WAYS_MAX && relay->ways[i].from != 0) {
        i += 2;
    }
    on = there >= 0 && i < WAYS_MAX ? redis_dial(relay->target) : -1;
    if (on < 0) {
        close(there);
        return;
    }
    relay->ways[i] = (struct way){.from = there, .to = on};
    relay->ways[i + 1] = (struct way){.from = on, .to = there};
}

static void way_read(struct way *way)
{
    ssize_t got = read(way->from, way->kept + way->len, KEEP_SIZE - way->len);

    if (got > 0) {
        way->len += (size_t)got;
    } else {
        way->ended = true;
    }
}

/* What is kept goes on its way; how much that was. */
static size_t way_pass(struct way *way)
{
    size_t passed = 0;

    while (passed < way->len) {
        ssize_t sent = send(way->to, way->kept + passed, way->len - passed, MSG_NOSIGNAL);

        if (sent <= 0) {
            way->ended = true;
            break;
        }
        passed += (size_t)sent;
    }
    way->len = 0;
    if (way->ended && !way->shut) {
        shutdown(way->to, SHUT_WR);
        way->shut = true;
    }
    return passed;
}

static size_t relay_pass(struct relay *relay)
{
    size_t passed = 0;

    for (struct way *way = relay->ways; way < relay->ways + WAYS_MAX; way += 2) {
        if (way->from == 0) {
            continue;
        }
        passed += way_pass(&way[0]) + way_pass(&way[1]);
        if (way[0].shut && way[1].shut) {
            close(way[0].from);
            close(way[1].from);
            way[0].from = way[1].from = 0;
        }
    }
    return passed;
}

/* -- orders */

/* false: there are no more orders. */
static bool relay_obey(struct relay *relay)
{
    char line[WORKER_LINE_SIZE];

    if (fgets(line, sizeof(line), stdin) == NULL) {
        return false;
    }
    relay->holds = strncmp(line, "hold ", 5) == 0;
    relay->said_kept = false;
    if (relay->holds) {
        worker_say("holding", 0, "-");
    } else {
        worker_say("passed", (int64_t)relay_pass(relay), "-");
    }
    return true;
}

static void relay_move(struct relay *relay)
{
    size_t kept = 0;

    if (!relay->holds) {
        relay_pass(relay);
        return;
    }
    for (unsigned i = 0; i < WAYS_MAX; i++) {
        kept += relay->ways[i].from != 0 ? relay->ways[i].len : 0;
    }
    if (kept > 0 && !relay->said_kept) {
        worker_say("kept", (int64_t)kept, "-");
        relay->said_kept = true;
    }
}

static bool relay_turn(struct relay *relay)
{
    struct pollfd fds[2 + WAYS_MAX] = {{.fd = STDIN_FILENO, .events = POLLIN},
                                       {.fd = relay->listener, .events = POLLIN}};
    struct way *ways[2 + WAYS_MAX] = {NULL};
    nfds_t count = 2;

    for (unsigned i = 0; i < WAYS_MAX; i++) {
        struct way *way = &relay->ways[i];

        if (way->from != 0 && !way->ended && way->len < KEEP_SIZE) {
            ways[count] = way;
            fds[count++] = (struct pollfd){.fd = way->from, .events = POLLIN};
        }
    }
    if (poll(fds, count, -1) < 0) {
        return true;
    }
    for (nfds_t i = 2; i < count; i++) {
        if (fds[i].revents != 0) {
            way_read(ways[i]);
        }
    }
    if (fds[1].revents != 0) {
        connection_open(relay);
    }
    relay_move(relay);
    return fds[0].revents == 0 || relay_obey(relay);
}

int cli_demo_relay(int argc, char **argv)
{
    const struct option flags[] = {{0}};
    const struct usage usage = {.name = "demo-relay",
                                .arguments = "TARGET",
                                .examples = "  pawl demo slow-network                   # starts it itself\n",
                                .summary = "The slow wire of the demo; reads from standard input what to do.",
                                .flags = flags};
    const char *arguments[ARGUMENTS_MAX + 1];
    int status = flags_read(&usage, argc, argv, arguments, NULL);
    struct relay *relay;
    int probe;

    if (status != CLI_GO_ON) {
        return status;
    }
    relay = cli_alloc(sizeof(*relay));
    memset(relay, 0, sizeof(*relay));
    setvbuf(stdin, NULL, _IONBF, 0); /* what poll() does not see would wait for ever */
    relay->target = arguments[0];
    probe = redis_dial(relay->target);
    if (probe < 0 || !relay_listen(relay)) {
        status = cli_fail(CLI_CONFIG, "no relay to %s can be had", arguments[0]);
    } else {
        while (relay_turn(relay)) {
            /* until there are no more orders */
        }
        status = CLI_OK;
    }
    close(probe);
    free(relay);
    return status;
}
