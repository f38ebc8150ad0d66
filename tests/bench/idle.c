/* idle.c - connections that have had one answer and then stay open and silent. */
#include "tests/bench/idle.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/bench/request.h"
#include "tests/bench/wire.h"

/* So many are opened and asked together; few enough for any backlog of a listener. */
enum { IDLE_BATCH = 50 };

static void batch_ask(struct pollfd *conns, unsigned count, const char *to, const struct request *ask)
{
    char answer[4096];
    struct bytes word;

    for (unsigned i = 0; i < count; i++) {
        conns[i] = (struct pollfd){.fd = wire_connect(to), .events = POLLIN | POLLRDHUP};
        wire_send(conns[i].fd, (struct bytes){ask->text, ask->len});
    }
    for (unsigned i = 0; i < count; i++) {
        size_t len = wire_answer(conns[i].fd, http_measure, answer, sizeof(answer), &word);

        if (word.at[0] != '2')
            load_fail("an idle connection's request was refused: %.*s", (int)len, answer);
    }
}

void idle_run(const char *to, unsigned connections, const char *path)
{
    struct pollfd *conns = calloc(connections, sizeof(*conns));
    struct request ask = {0};
    unsigned open = connections;
    int closed;

    if (!conns)
        load_fail("no memory");
    request_addf(&ask, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", path);
    for (unsigned at = 0; at < connections; at += IDLE_BATCH)
        batch_ask(conns + at, connections - at < IDLE_BATCH ? connections - at : IDLE_BATCH, to, &ask);
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF)
        ;
    closed = poll(conns, connections, 0);
    if (closed > 0)
        open -= (unsigned)closed;
    printf("{\"open\":%u}\n", open);
    free(conns);
    free(ask.text);
}
