/* guard.h - the inside of a guard: a hold, and the thread that keeps it. A state machine:
 *
 *   HELD      --a third of the ttl is over, or it failed before-->  RENEWING
 *   HELD      --the deadline has passed-->                          LOST
 *   HELD      --the last leave, or close-->                         ENDED
 *   RENEWING  --renewed, and the deadline moved in time-->          HELD
 *   RENEWING  --refused, or not answered, which is no loss-->       HELD
 *   RENEWING  --a service says that it is over-->                   LOST
 *   RENEWING  --the deadline has passed-->                          LOST
 *   RENEWING  --the last leave, or close-->                         ENDED
 *   LOST      --the thread sees it, and tells the callback-->       TOLD
 *
 * Only under the lock does it go on, by guard_become(). The deadline counts first: the thread, or a caller,
 * looks at the clock before anything else and notes the loss; so all of them report the first cause.
 *
 * deadline_ms is the one word that is read without the lock: 0 once the guard is over. The reader that finds
 * the deadline passed makes it 0; the thread moves it only from what it was, before it has passed: so "over"
 * is never taken back. The timer says the same to a program that polls. */
#ifndef PAWL_CLIENT_GUARD_H
#define PAWL_CLIENT_GUARD_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "api/client/client.h"

enum guard_state { GUARD_HELD, GUARD_RENEWING, GUARD_LOST, GUARD_TOLD, GUARD_ENDED, GUARD_STATES };

struct pawl_guard {
    const struct pawl *pawl;
    struct pawl_guard_options options;
    pid_t process;      /* whose guard it is: a child has no thread */
    void *process_page; /* 1 there, 0 in a child */
    pthread_t thread;
    _Atomic pid_t tid; /* of the thread while it runs, set by itself: pthread_create(3) may return later */
    _Atomic int64_t deadline_ms;
    int timer_fd;         /* of the deadline: what pawl_guard_fd() gives */
    int wake_fd;          /* a timer too: of the next renewal; at once when it has ended */
    pthread_mutex_t lock; /* of what follows */
    enum guard_state state;
    struct pawl_grant grant;
    unsigned holds;
    struct pawl_problem loss;          /* why it was lost */
    bool released;                     /* a service has said that it is free of it */
    char last_wrong[PAWL_DETAIL_SIZE]; /* of the last renewal that failed; "": none since a good one */
};

/* false: no memory. */
bool guard_process_take(struct pawl_guard *guard);
void guard_process_drop(struct pawl_guard *guard);
/* Safe in a signal handler. */
bool guard_is_ours(const struct pawl_guard *guard);

/* All under the lock. */

bool guard_allows(enum guard_state from, enum guard_state to);
/* The only one that changes the state; where the drawing has no such arrow it asserts. */
void guard_become(struct pawl_guard *guard, enum guard_state next);
/* Looks at the clock, and notes the loss if the deadline has passed. */
bool guard_is_held(struct pawl_guard *guard);
/* It is held, and the reason is a problem with PAWL_LOST. */
void guard_lose(struct pawl_guard *guard, const struct pawl_problem *why);
/* Nobody holds any more; its thread will end. */
void guard_end(struct pawl_guard *guard);

/* Sets fd to CLOCK_BOOTTIME, absolute; 0: never. was_over, unless NULL: whether it had fired. */
void guard_clock_set(int fd, int64_t at_ms, bool *was_over);
/* Makes a timer readable, if it is not so already, and returns when it is. */
void guard_clock_fire(int fd);
/* Moves the deadline. false: it has passed meanwhile, and stays passed. */
bool guard_clock_move(struct pawl_guard *guard, int64_t deadline_ms);

/* The thread; guard is a struct pawl_guard. */
void *guard_thread_run(void *guard);

#endif
