/* line.c - the load generator for leases that many wait for.
 *
 *   line --to 127.0.0.1:PORT --job JOB [--rounds R] [--waiters N]
 *
 *   alone    acquire and release of names that nobody else wants
 *   rested   the same, each after 2 ms in which everything has slept, as before a hand-off
 *   handoff  N wait; each holder releases after 2 ms and waits again
 *   poll     one holds, one asks again every 100 ms
 *   wait     N wait until stdin ends
 *
 * Times are from the sending of a request to its whole answer (alone, rested), or from the sending of the
 * release to the whole answer of who gets the lease (handoff, poll). One JSON object on stdout. Any answer
 * but the expected one ends it with 1 and a sentence on stderr. */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "tests/bench/histogram.h"
#include "tests/bench/request.h"
#include "tests/bench/wire.h"

enum { ANSWER_SIZE = 4096, POLL_NS = 100000000, HELD_NS = 2000000, WAIT_BATCH = 50, SILENCE_MS = 20000 };

struct line {
    const char *to, *job;
    unsigned waiters, rounds;
    uint64_t random;
    struct histogram times;
};

struct client {
    int fd;
    char lease_id[VALUE_SIZE];
    char in[ANSWER_SIZE];
    size_t len;
};

static void ask_lease(struct line *line, struct client *client, const char *name, unsigned wait_ms)
{
    struct values values = {0};
    char body[160], text[512];
    int len;

    values_random(&values, SLOT_LEASE_ID, &line->random);
    memcpy(client->lease_id, values.of[SLOT_LEASE_ID], VALUE_SIZE);
    client->lease_id[LEASE_ID_BYTES] = '\0';
    len = snprintf(body, sizeof(body), "{\"ttl_ms\":60000,\"wait_ms\":%u,\"lease_id\":\"%s\"}", wait_ms,
                   client->lease_id);
    len = snprintf(text, sizeof(text),
                   "POST /v1/leases/%s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                   "Content-Length: %d\r\n\r\n%s",
                   name, len, body);
    wire_send(client->fd, (struct bytes){text, (size_t)len});
}

static void ask_release(const struct client *client, const char *name)
{
    char text[256];
    int len = snprintf(text, sizeof(text),
                       "DELETE /v1/leases/%s HTTP/1.1\r\nHost: 127.0.0.1\r\nLease-Id: %s\r\n\r\n", name,
                       client->lease_id);

    wire_send(client->fd, (struct bytes){text, (size_t)len});
}

/* The status of the next whole answer, waited for. */
static int answer(struct client *client)
{
    struct bytes word;

    wire_answer(client->fd, http_measure, client->in, sizeof(client->in), &word);
    return (int)strtol(word.at, NULL, 10);
}

static void expect(int got, int wanted, const char *what)
{
    if (got != wanted)
        load_fail("%s: %d, not %d", what, got, wanted);
}

static void tell(const struct line *line)
{
    printf("{\"count\":%llu,\"p50_us\":%.1f,\"p99_us\":%.1f,\"max_us\":%.1f}\n",
           (unsigned long long)line->times.count, histogram_quantile_us(&line->times, 0.5),
           histogram_quantile_us(&line->times, 0.99), (double)line->times.longest_ns / 1000);
}

static void sleep_until(uint64_t ns)
{
    struct timespec at = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
        ;
}

static void run_alone(struct line *line, uint64_t rest_ns)
{
    struct client client = {.fd = wire_connect(line->to)};
    char name[32];

    for (unsigned i = 0; i < line->rounds; i++) {
        uint64_t began;

        if (rest_ns > 0)
            sleep_until(clock_ns() + rest_ns);
        began = clock_ns();
        snprintf(name, sizeof(name), "alone:%u", i % 512);
        ask_lease(line, &client, name, 0);
        expect(answer(&client), 201, "acquire");
        histogram_add(&line->times, clock_ns() - began);
        ask_release(&client, name);
        expect(answer(&client), 204, "release");
    }
    close(client.fd);
}

/* -- hand-off: whoever is granted releases at once and stands in line again */

static unsigned next_granted(int epoll_fd)
{
    struct epoll_event event;

    if (epoll_wait(epoll_fd, &event, 1, SILENCE_MS) != 1)
        load_fail("nobody is granted for %d ms", SILENCE_MS);
    return event.data.u32;
}

static struct client *clients_new(struct line *line, unsigned count, int epoll_fd)
{
    struct client *clients = calloc(count, sizeof(*clients));

    if (!clients)
        load_fail("no memory");
    for (unsigned i = 0; i < count; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = i};

        clients[i].fd = wire_connect(line->to);
        if (epoll_fd >= 0)
            epoll_ctl(epoll_fd, EPOLL_CTL_ADD, clients[i].fd, &event);
    }
    return clients;
}

static void run_handoff(struct line *line)
{
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    struct client *clients = clients_new(line, line->waiters + 1, epoll_fd);
    struct client *before = NULL;
    uint64_t released_ns = 0;
    char name[32]; /* whoever is granted last leaves without a release */

    snprintf(name, sizeof(name), "handoff:%d", (int)getpid());

    for (unsigned i = 0; i <= line->waiters; i++)
        ask_lease(line, &clients[i], name, 600000);
    for (unsigned i = 0; i < line->rounds + line->waiters; i++) {
        struct client *holder = &clients[next_granted(epoll_fd)];

        expect(answer(holder), 201, "a waiter");
        if (i > line->waiters)
            histogram_add(&line->times, clock_ns() - released_ns);
        if (before) { /* its place in line is no part of the hand-off: the holder holds for a moment */
            ask_lease(line, before, name, 600000);
            sleep_until(clock_ns() + HELD_NS);
        }
        released_ns = clock_ns();
        ask_release(holder, name);
        expect(answer(holder), 204, "release");
        before = holder;
    }
    for (unsigned i = 0; i <= line->waiters; i++)
        close(clients[i].fd);
    free(clients);
}

/* -- polling */

static void run_poll(struct line *line)
{
    struct client holder = {.fd = wire_connect(line->to)}, poller = {.fd = wire_connect(line->to)};

    for (unsigned i = 0; i < line->rounds; i++) {
        uint64_t released_ns;

        ask_lease(line, &holder, "poll", 0);
        expect(answer(&holder), 201, "acquire");
        ask_lease(line, &poller, "poll", 0);
        expect(answer(&poller), 409, "the first try");
        uint64_t next_ns = clock_ns() + POLL_NS;
        line->random = line->random * 6364136223846793005u + 1442695040888963407u;
        sleep_until(next_ns - POLL_NS + (line->random >> 33) % POLL_NS);
        released_ns = clock_ns();
        ask_release(&holder, "poll");
        expect(answer(&holder), 204, "release");
        sleep_until(next_ns);
        ask_lease(line, &poller, "poll", 0);
        expect(answer(&poller), 201, "the try after the release");
        histogram_add(&line->times, clock_ns() - released_ns);
        ask_release(&poller, "poll");
        expect(answer(&poller), 204, "release");
    }
}

/* -- waiting and nothing else */

static void run_wait(struct line *line)
{
    struct client holder = {.fd = wire_connect(line->to)};
    struct client *clients = clients_new(line, line->waiters, -1);
    unsigned waiting = 0;

    ask_lease(line, &holder, "waited-for", 0);
    expect(answer(&holder), 201, "acquire");
    for (unsigned i = 0; i < line->waiters; i++) {
        ask_lease(line, &clients[i], "waited-for", 600000);
        if (i % WAIT_BATCH == 0) { /* not more at once than any backlog holds */
            struct timespec pause = {.tv_nsec = 5000000};
            nanosleep(&pause, NULL);
        }
    }
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF)
        ;
    for (unsigned i = 0; i < line->waiters; i++) {
        struct pollfd still = {.fd = clients[i].fd, .events = POLLIN | POLLRDHUP};

        waiting += poll(&still, 1, 0) == 0;
    }
    printf("{\"waiting\":%u}\n", waiting);
    free(clients);
}

int main(int argc, char **argv)
{
    static const struct option known[] = {
        {"to", required_argument, NULL, 't'},
        {"job", required_argument, NULL, 'j'},
        {"rounds", required_argument, NULL, 'r'},
        {"waiters", required_argument, NULL, 'w'},
        {NULL, 0, NULL, 0},
    };
    static struct line line = {.random = 88172645463325252u};
    int got;

    while ((got = getopt_long(argc, argv, "", known, NULL)) != -1) {
        switch (got) {
        case 't': line.to = optarg; break;
        case 'j': line.job = optarg; break;
        case 'r': line.rounds = (unsigned)strtoul(optarg, NULL, 10); break;
        case 'w': line.waiters = (unsigned)strtoul(optarg, NULL, 10); break;
        default: return 64;
        }
    }
    if (!line.to || !line.job)
        load_fail("--to and --job are needed");
    line.random ^= clock_ns() | 1;
    if (strcmp(line.job, "wait") == 0) {
        run_wait(&line);
        return 0;
    }
    if (strcmp(line.job, "alone") == 0)
        run_alone(&line, 0);
    else if (strcmp(line.job, "rested") == 0)
        run_alone(&line, HELD_NS);
    else if (strcmp(line.job, "handoff") == 0)
        run_handoff(&line);
    else if (strcmp(line.job, "poll") == 0)
        run_poll(&line);
    else
        load_fail("not a job: %s", line.job);
    tell(&line);
    return 0;
}
