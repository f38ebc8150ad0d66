/* terminal.c - who may read the terminal. */
#include <sys/stat.h>
#include <unistd.h>

#include "api/cli/run/run.h"

/* Somebody else of our job is there, who may need the terminal more: "pawl run ... | less". */
static bool is_piped(int fd)
{
    struct stat about;

    return fstat(fd, &about) == 0 && S_ISFIFO(about.st_mode);
}

void run_terminal_open(struct run_terminal *terminal)
{
    *terminal = (struct run_terminal){.is_ours = isatty(STDIN_FILENO) != 0 && tcgetpgrp(STDIN_FILENO) >= 0};
    if (terminal->is_ours) {
        tcgetattr(STDIN_FILENO, &terminal->modes);
        terminal->at_once = !is_piped(STDOUT_FILENO) && !is_piped(STDERR_FILENO);
    }
}

bool run_terminal_is_front(const struct run_terminal *terminal)
{
    return terminal->is_ours && tcgetpgrp(STDIN_FILENO) == getpgrp();
}

void run_terminal_give(struct run_terminal *terminal, pid_t group)
{
    terminal->given = terminal->is_ours && tcsetpgrp(STDIN_FILENO, group) == 0;
}

void run_terminal_give_self(const struct run_terminal *terminal)
{
    if (terminal->given) {
        tcsetpgrp(STDIN_FILENO, getpid());
    }
}

void run_terminal_take(struct run_terminal *terminal)
{
    if (terminal->given) {
        tcsetpgrp(STDIN_FILENO, getpgrp());
        terminal->given = false;
    }
}

void run_terminal_restore(const struct run_terminal *terminal)
{
    if (run_terminal_is_front(terminal)) {
        tcsetattr(STDIN_FILENO, TCSADRAIN, &terminal->modes);
    }
}
