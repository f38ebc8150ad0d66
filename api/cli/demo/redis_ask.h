/* redis_ask.h - one command to a redis-server, on a connection of its own. */
#ifndef PAWL_CLI_DEMO_REDIS_ASK_H
#define PAWL_CLI_DEMO_REDIS_ASK_H

#include <stdbool.h>
#include <stddef.h>

enum redis_ask_end {
    REDIS_ASK_SAID,   /* the reply is whole */
    REDIS_ASK_ERROR,  /* it is an error of Redis', without its '-' */
    REDIS_ASK_NOTHING /* no connection, or no whole reply in time; reply is empty */
};

/* What is asked, where, and for how long an answer is waited. The process must ignore SIGPIPE. */
struct redis_ask {
    const char *address;      /* the path of a Unix socket, or ADDRESS:PORT (IPv4, numeric) */
    const char *line;         /* an inline command, without its line end; or NULL, and then: */
    const char *const *words; /* the words of one, ended by NULL */
    unsigned timeout_ms;
};

/* The reply as lines: each value one, "(nil)" for none; cut when it is longer than size allows. */
enum redis_ask_end redis_ask(const struct redis_ask *ask, char *reply, size_t size);

/* Whether the redis-server at this Unix socket takes commands yet: while it loads its file it says -LOADING,
 * and that is false. Waits for half a second at most. */
bool redis_ping(const char *socket_path);

#endif
