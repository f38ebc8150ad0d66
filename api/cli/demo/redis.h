/* redis.h - one command to a redis-server, on a connection of its own. */
#ifndef PAWL_CLI_DEMO_REDIS_H
#define PAWL_CLI_DEMO_REDIS_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/* address: the path of a Unix socket, or ADDRESS:PORT (IPv4, numeric). The command is in hiredis' format:
 * "%s" is one word, whatever is in it. true: reply has the answer as lines, each value one, "(nil)" for none,
 * cut when it is longer than size allows. false: reply has the error of Redis; it is empty when there was no
 * connection, or no whole reply in time. The process must ignore SIGPIPE. */
bool redis_ask(const char *address, unsigned timeout_ms, char *reply, size_t size, const char *format, ...);
bool redis_vask(const char *address, unsigned timeout_ms, char *reply, size_t size, const char *format,
                va_list args);

/* Whether the redis-server at this Unix socket takes commands yet: while it loads its file it says -LOADING,
 * and that is false. Waits for half a second at most. */
bool redis_ping(const char *socket_path);

#endif
