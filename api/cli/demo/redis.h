/* redis.h - one command to a redis-server, on a connection of its own. The process must ignore SIGPIPE. */
#ifndef PAWL_CLI_DEMO_REDIS_H
#define PAWL_CLI_DEMO_REDIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A connection to the path of a Unix socket, or to ADDRESS:PORT (IPv4, numeric); -1: there is none. */
int redis_dial(const char *address);
/* The command is in hiredis' format: "%s" is one word, whatever is in it. true: reply has the answer (of a
 * list the first), "(nil)" for none, cut when it is longer than size allows. false: reply has the error of
 * Redis; it is empty when there was no connection, or no whole reply in time. */
bool redis_ask(const char *address, unsigned timeout_ms, char *reply, size_t size, const char *format, ...);
/* The integer of the answer; OK is 1, none 0, and no reply -1. */
int64_t redis_do(const char *address, unsigned timeout_ms, const char *format, ...);

/* Whether the redis-server at this Unix socket takes commands yet: while it loads its file it says -LOADING,
 * and that is false. Waits for half a second at most. */
bool redis_ping(const char *socket_path);

#endif
