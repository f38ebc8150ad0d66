/* guard.h - the inside of a guard: a hold, and the thread that keeps it.
 *
 *   HELD --renewed in time--> HELD
 *   HELD --a service says so, or the deadline passes--> LOST
 *   HELD --the last leave, or close--> ENDED
 *
 * deadline_ms is the one word that is read without the lock: 0 once the guard is over. Who sees that the
 * deadline has passed makes it 0; the thread moves it only from what it was, before it has passed: so nobody
 * who was told "over" is ever told more than 0 again. The timer tells the same to who polls. */
#ifndef PAWL_CLIENT_GUARD_H
#define PAWL_CLIENT_GUARD_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "api/client/client.h"

enum guard_state { GUARD_HELD, GUARD_LOST, GUARD_ENDED };

struct pawl_guard {
    const struct pawl *pawl;
    struct pawl_guard_options told;
    pid_t process; /* whose guard it is: a child has no thread */
    pthread_t thread;
    _Atomic pid_t tid; /* the same, told by itself: pthread_create(3) may tell its maker later */
    _Atomic int64_t deadline_ms;
    int timer_fd; /* of the deadline: what pawl_guard_fd() gives */
    int renew_fd; /* of the next renewal */
    int stop_fd;
    pthread_mutex_t lock; /* of what follows */
    enum guard_state state;
    struct pawl_grant grant;
    unsigned holds;
    struct pawl_problem loss;       /* why it was lost */
    bool released;                  /* a service has said that it is free of it */
    struct pawl_problem last_wrong; /* of the last renewal that failed; the thread's alone */
};

/* guard_clock.c: sets fd to CLOCK_BOOTTIME, absolute; 0: never. was_over, unless NULL: whether it had fired.
 */
void guard_clock_set(int fd, int64_t at_ms, bool *was_over);
/* Moves the deadline. false: it has passed meanwhile, and stays passed. */
bool guard_clock_move(struct pawl_guard *guard, int64_t deadline_ms);
/* When to renew, after a good renewal. */
int64_t guard_clock_next(const struct pawl_grant *grant);

/* guard_thread.c */
void *guard_thread_run(void *guard);

#endif
