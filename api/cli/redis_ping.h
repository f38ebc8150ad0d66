/* redis_ping.h - whether a redis-server takes commands yet. */
#ifndef PAWL_CLI_REDIS_PING_H
#define PAWL_CLI_REDIS_PING_H

#include <stdbool.h>

/* Asks at its Unix socket, and waits for half a second at most. While it loads its file it says -LOADING:
 * false. */
bool redis_ping(const char *socket_path);

#endif
