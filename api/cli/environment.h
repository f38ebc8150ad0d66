/* environment.h - the PAWL_ variables: all that the three programs know, in one place. */
#ifndef PAWL_CLI_ENVIRONMENT_H
#define PAWL_CLI_ENVIRONMENT_H

#include <stdbool.h>

bool environment_knows(const char *name);
/* CLI_GO_ON, or CLI_CONFIG when a PAWL_ variable is set that nobody knows: it was meant to do something, and
 * would silently not. */
int environment_check(void);
/* A copy for a child that is configured by flags alone: without PAWL_ variables and NOTIFY_SOCKET. The list
 * is the caller's to free, the texts are not. */
char **environment_for_child(void);
/* What -o env prints when there is nothing to assign, as eval "$(pawl ...)" must not end well: on stdout, if
 * the words of the command line (or PAWL_OUTPUT) ask for -o env from a command that sets variables, the unset
 * of those that are not true any more, and the status, which is not 0. */
void environment_failure(int argc, char **argv, int status);

#endif
