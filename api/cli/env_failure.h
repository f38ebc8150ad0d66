/* env_failure.h - what -o env prints when there is nothing to assign: eval "$(pawl ...)" must not end well.
 */
#ifndef PAWL_CLI_ENV_FAILURE_H
#define PAWL_CLI_ENV_FAILURE_H

/* On stdout, if the words of the command line (or PAWL_OUTPUT) ask for -o env from a command that sets
 * variables: the unset of those that are not true any more, and the status. status is not 0. */
void env_failure(int argc, char **argv, int status);

#endif
