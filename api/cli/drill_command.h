/* drill_command.h - pawl drill: accidents, played against a private Redis under load. */
#ifndef PAWL_CLI_DRILL_COMMAND_H
#define PAWL_CLI_DRILL_COMMAND_H

int cli_drill(int argc, char **argv);

#endif
