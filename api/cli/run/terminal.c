/* terminal.c - pawl run: signals, and the terminal. */
#include "api/cli/run/run.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

/* -- signals, which pawl run reads one after the other */

/* Those that end who waits in line. */
static const int ending[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
static const int further[] = {SIGCHLD, SIGTSTP, SIGCONT, SIGWINCH, SIGTTIN, SIGTTOU, SIGALRM};

static bool is_ignored(int number)
{
    struct sigaction now;

    return sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

/* Blocked, one that is ignored would be kept for the signalfd. */
static void set_add(sigset_t *set, const int *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!is_ignored(numbers[i]))
            sigaddset(set, numbers[i]);
}

static void keep_ignored(struct run *run, int number)
{
    if (is_ignored(number))
        sigaddset(&run->ignored_before, number);
}

void run_signals_open(struct run *run)
{
    sigset_t set;

    sigemptyset(&set);
    set_add(&set, ending, sizeof(ending) / sizeof(ending[0]));
    sigemptyset(&run->ignored_before);
    keep_ignored(run, SIGPIPE);
    keep_ignored(run, SIGCHLD);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_DFL); /* ignored, the kernel would throw the command's status away */
    run->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (run->signal_fd < 0 || sigprocmask(SIG_BLOCK, &set, &run->mask_before) != 0)
        abort();
}

void run_signals_more(struct run *run)
{
    sigset_t set;

    sigemptyset(&set);
    set_add(&set, ending, sizeof(ending) / sizeof(ending[0]));
    set_add(&set, further, sizeof(further) / sizeof(further[0]));
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0 || signalfd(run->signal_fd, &set, 0) < 0)
        abort();
}

int run_signals_next(const struct run *run)
{
    struct signalfd_siginfo info;

    return read(run->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info) ? (int)info.ssi_signo : 0;
}

void run_signals_restore(const struct run *run)
{
    signal(SIGPIPE, sigismember(&run->ignored_before, SIGPIPE) ? SIG_IGN : SIG_DFL);
    signal(SIGCHLD, sigismember(&run->ignored_before, SIGCHLD) ? SIG_IGN : SIG_DFL);
    sigprocmask(SIG_SETMASK, &run->mask_before, NULL);
}

void run_signals_stop_self(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTSTP);
    /* Not SIGSTOP: of a group that nobody could continue the kernel ignores this one. */
    pthread_kill(pthread_self(), SIGTSTP);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

/* -- who may read the terminal */

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

void run_terminal_take(struct run_terminal *terminal)
{
    if (terminal->given) {
        tcsetpgrp(STDIN_FILENO, getpgrp());
        terminal->given = false;
    }
}

void run_terminal_restore(const struct run_terminal *terminal)
{
    if (run_terminal_is_front(terminal))
        tcsetattr(STDIN_FILENO, TCSADRAIN, &terminal->modes);
}
