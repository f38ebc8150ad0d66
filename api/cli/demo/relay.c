/* relay.c - a wire that can be slow: passes bytes between its clients and one address, or keeps them.
 *
 * pawl demo-relay TARGET: listens on a port of 127.0.0.1, and obeys orders on its standard input in the form
 * of worker.c: "hold 0 -" and "flow 0 -". It writes
 *   listening PORT -   holding 0 -   kept BYTES - (the first that it keeps)   passed BYTES -
 * Each way of each connection is a thread. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/cli/cli.h"
#include "api/cli/demo/demo_internal.h"
#include "api/cli/demo/redis.h"
#include "api/cli/flags.h"
#include "shared/http/http_server.h"

enum { KEEP_SIZE = 65536 };

struct relay {
    int listener;
    const char *target;
    pthread_mutex_t lock; /* of what follows, and of the output */
    pthread_cond_t changed;
    bool holds;
    size_t kept, passed; /* bytes: since "hold", and those of them that have gone on since "flow" */
};

/* One way of a connection: what is read of from goes to the other side. */
struct way {
    struct relay *relay;
    int from, to;
};

/* -- connections */

/* Waits while the wire is slow; how many of these bytes it has kept. */
static size_t keep(struct relay *relay, size_t len)
{
    size_t kept = 0;

    pthread_mutex_lock(&relay->lock);
    if (relay->holds) {
        if (relay->kept == 0)
            worker_say("kept", (int64_t)len, "-");
        kept = len;
        relay->kept += len;
    }
    while (relay->holds)
        pthread_cond_wait(&relay->changed, &relay->lock);
    pthread_mutex_unlock(&relay->lock);
    return kept;
}

static void *way_run(void *at)
{
    struct way *way = at;
    char bytes[KEEP_SIZE];
    ssize_t got, sent = 0;

    while (sent >= 0 && (got = read(way->from, bytes, sizeof(bytes))) > 0) {
        size_t kept = keep(way->relay, (size_t)got);

        for (ssize_t done = 0; done < got && sent >= 0; done += sent)
            sent = send(way->to, bytes + done, (size_t)(got - done), MSG_NOSIGNAL);
        pthread_mutex_lock(&way->relay->lock);
        way->relay->kept -= sent < 0 ? kept : 0;
        way->relay->passed += sent < 0 ? 0 : kept;
        pthread_cond_broadcast(&way->relay->changed);
        pthread_mutex_unlock(&way->relay->lock);
    }
    shutdown(way->to, SHUT_WR); /* the other way closes nothing either: both end with the demo */
    free(way);
    return NULL;
}

static void way_open(struct relay *relay, int from, int to)
{
    struct way *way = cli_alloc(sizeof(*way));
    pthread_t thread;

    *way = (struct way){relay, from, to};
    if (pthread_create(&thread, NULL, way_run, way) != 0)
        abort();
    pthread_detach(thread);
}

static void *relay_accept(void *at)
{
    struct relay *relay = at;

    for (;;) {
        int there = accept4(relay->listener, NULL, NULL, SOCK_CLOEXEC);
        int on = there >= 0 ? redis_dial(relay->target) : -1;

        if (on >= 0) {
            way_open(relay, there, on);
            way_open(relay, on, there);
        } else if (there >= 0) {
            close(there);
        }
    }
    return NULL;
}

/* -- orders */

static void relay_obey(struct relay *relay, const char *order)
{
    pthread_mutex_lock(&relay->lock);
    relay->holds = strncmp(order, "hold ", 5) == 0;
    if (relay->holds) {
        relay->kept = relay->passed = 0;
        worker_say("holding", 0, "-");
    } else {
        pthread_cond_broadcast(&relay->changed);
        while (relay->passed < relay->kept)
            pthread_cond_wait(&relay->changed, &relay->lock);
        worker_say("passed", (int64_t)relay->passed, "-");
    }
    pthread_mutex_unlock(&relay->lock);
}

int cli_demo_relay(int argc, char **argv)
{
    const char *arguments[ARGUMENTS_MAX + 1];
    char order[WORKER_LINE_SIZE];
    struct relay relay = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    int status = flags_read("demo-relay", NULL, argc, argv, arguments), probe;
    const char *why;
    pthread_t thread;
    unsigned port;

    if (status != CLI_GO_ON)
        return status;
    relay.target = arguments[0];
    probe = redis_dial(relay.target);
    relay.listener = http_listen("127.0.0.1:0", &port, &why);
    if (probe < 0 || relay.listener < 0 || fcntl(relay.listener, F_SETFL, 0) != 0 ||
        pthread_create(&thread, NULL, relay_accept, &relay) != 0)
        return cli_fail(CLI_CONFIG, "no relay to %s can be had", arguments[0]);
    close(probe);
    worker_say("listening", port, "-");
    while (fgets(order, sizeof(order), stdin) != NULL)
        relay_obey(&relay, order);
    exit(CLI_OK); /* the threads go along */
}
