/* confirm.h - "type the name to go on": for what cannot be undone. */
#ifndef PAWL_CLI_CONFIRM_H
#define PAWL_CLI_CONFIRM_H

/* Asks on stderr, reads a line of standard input. CLI_GO_ON when it is the whole name and nothing else; else
 * has said that nothing was changed, and CLI_REFUSED. */
int confirm_name(const char *name);

#endif
