/* run_terminal.h - who may read the terminal: the shell's job that we are, or the command's process group. */
#ifndef PAWL_CLI_RUN_TERMINAL_H
#define PAWL_CLI_RUN_TERMINAL_H

#include <stdbool.h>
#include <sys/types.h>
#include <termios.h>

struct run_terminal {
    bool is_ours; /* standard input is the terminal of our session */
    bool at_once; /* the command gets it when it starts; else when it asks for it (SIGTTIN, SIGTTOU) */
    bool given;
    struct termios modes; /* as they were */
};

/* In all of this SIGTTOU must be blocked: to set something from the background stops who does it. */
void run_terminal_open(struct run_terminal *terminal);
/* Whether it is this job that may read it now. */
bool run_terminal_is_front(const struct run_terminal *terminal);
void run_terminal_give(struct run_terminal *terminal, pid_t group);
/* Safe between fork and exec: the command takes it for its own group. */
void run_terminal_give_self(const struct run_terminal *terminal);
/* Back to us. */
void run_terminal_take(struct run_terminal *terminal);
/* What a command that was killed could not put back. */
void run_terminal_restore(const struct run_terminal *terminal);

#endif
