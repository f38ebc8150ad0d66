/* store_command.h - pawl store status|recover|forget|marks: what an operator sees and does when the services
 * refuse. */
#ifndef PAWL_CLI_STORE_COMMAND_H
#define PAWL_CLI_STORE_COMMAND_H

int cli_store(int argc, char **argv);

/* Each gets the arguments from its own name on ("status") and returns the exit status. */
int cli_store_status(int argc, char **argv);
int cli_store_recover(int argc, char **argv);
int cli_store_forget(int argc, char **argv);
int cli_store_marks(int argc, char **argv);

#endif
