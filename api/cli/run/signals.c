/* signals.c - signals, which pawl run reads one after the other. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "api/cli/run/run.h"

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
    for (size_t i = 0; i < count; i++) {
        if (!is_ignored(numbers[i])) {
            sigaddset(set, numbers[i]);
        }
    }
}

static void keep_ignored(struct run *run, int number)
{
    if (is_ignored(number)) {
        sigaddset(&run->ignored_before, number);
    }
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
    if (run->signal_fd < 0 || sigprocmask(SIG_BLOCK, &set, &run->mask_before) != 0) {
        abort();
    }
}

void run_signals_more(struct run *run)
{
    sigset_t set;

    sigemptyset(&set);
    set_add(&set, ending, sizeof(ending) / sizeof(ending[0]));
    set_add(&set, further, sizeof(further) / sizeof(further[0]));
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0 || signalfd(run->signal_fd, &set, 0) < 0) {
        abort();
    }
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
