/* environment.h - the PAWL_ variables: all that the three programs know, in one place. */
#ifndef PAWL_CLI_ENVIRONMENT_H
#define PAWL_CLI_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

/* "lease-url" becomes "PAWL_LEASE_URL". */
void environment_name(const char *flag, char *buf, size_t size);
bool environment_knows(const char *name);
/* CLI_GO_ON, or CLI_CONFIG when a PAWL_ variable is set that nobody knows: it was meant to do something, and
 * would silently not. */
int environment_check(void);
/* A copy for a child that is configured by flags alone: without PAWL_ variables and NOTIFY_SOCKET. The list
 * is the caller's to free, the texts are not. */
char **environment_for_child(void);

#endif
