/* loop.h - the event loop of one thread. The only door to libuv.
 *
 * A loop and everything hung on it belong to the thread that runs it; nothing here is safe to call
 * from another thread, save loop_stop(). Times are milliseconds on the monotonic clock (CLOCK_MONOTONIC).
 *
 * A turn: wait for events -> run their callbacks -> run the turn-end hooks -> wait again. Work that should
 * go out in one system call (all Redis commands of a turn) is gathered and sent by a turn-end hook. */
#ifndef PAWL_SHARED_LOOP_H
#define PAWL_SHARED_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

/* What one step of an operation returns, so that the compiler refuses a path that forgets to end. */
enum step {
    ANSWERED, /* the request has its answer */
    SUSPENDED /* a continuation is registered and will run exactly once, later */
};

struct addrinfo;
struct loop;

/* Never returns NULL: a process that cannot have a loop aborts with a line on stderr. */
struct loop *loop_new(void);
/* Everything hung on the loop must have been taken off before. */
void loop_free(struct loop *loop);

/* Runs until loop_stop(). */
void loop_run(struct loop *loop);
/* Runs one turn: waits at most wait_ms (0: do not wait) for an event. For tests and short tools. */
void loop_turn(struct loop *loop, unsigned wait_ms);
/* Ask loop_run() to return after this turn; callable from any thread. */
void loop_stop(struct loop *loop);

/* The clock as of now (not cached). */
uint64_t loop_now_ms(void);
uint64_t loop_now_us(void);

/* -- timers. The owner embeds the struct and keeps it alive until loop_timer_done() has returned. */
struct loop_timer {
    void (*fire)(struct loop_timer *timer); /* set by the owner */
    void *impl;                             /* the loop's own */
};

void loop_timer_init(struct loop *loop, struct loop_timer *timer, void (*fire)(struct loop_timer *));
/* Fires once in delay_ms, then every repeat_ms (0: once). Arming an armed timer sets it anew. */
void loop_timer_arm(struct loop_timer *timer, uint64_t delay_ms, uint64_t repeat_ms);
void loop_timer_disarm(struct loop_timer *timer);
/* After this the struct may be freed; no callback comes any more. */
void loop_timer_done(struct loop_timer *timer);

/* -- descriptors, level-triggered. The loop never closes the descriptor. */
enum { LOOP_READ = 1, LOOP_WRITE = 2, LOOP_HANGUP = 4 };

struct loop_watch {
    /* events: what is true now; an error on the descriptor counts as all that was asked for. */
    void (*ready)(struct loop_watch *watch, int events);
    void *impl;
};

/* events may be 0: registered, not watched. */
void loop_watch_init(struct loop *loop, struct loop_watch *watch, int fd,
                     void (*ready)(struct loop_watch *, int), int events);
void loop_watch_set(struct loop_watch *watch, int events);
/* Before the descriptor is closed. No callback comes any more. */
void loop_watch_done(struct loop_watch *watch);

/* -- hooks at the end of every turn, in the order of their registration, each called once a turn.
 * A hook that finds that it has made work for an earlier hook calls loop_again(): the hooks run once more. */
struct loop_hook {
    void (*run)(struct loop_hook *hook);
    STAILQ_ENTRY(loop_hook) place;
};

void loop_hook_add(struct loop *loop, struct loop_hook *hook, void (*run)(struct loop_hook *));
void loop_hook_remove(struct loop *loop, struct loop_hook *hook);
void loop_again(struct loop *loop);
/* The wait at the end of this turn lasts at most this long (0: it does not wait at all); the smallest
 * counts. */
void loop_wait_at_most(struct loop *loop, unsigned wait_ms);

/* -- jobs: work that may block (fsync(2)), on a thread of libuv's pool, which all loops of the process share.
 * work runs there, and touches no loop and nothing that hangs on one; done runs on the loop's own thread and
 * sees all that work has written. The owner embeds the struct and keeps it alive until done is called. */
struct loop_job {
    void (*work)(struct loop_job *job); /* both set by the owner */
    void (*done)(struct loop_job *job);
    void *impl; /* the loop's own */
};

/* work runs once, then done once, always later (never from inside loop_job_run), in a turn of loop_run(),
 * loop_turn() or loop_jobs_wait(). In done the struct is the owner's again: to be freed, or run once more.
 * Several jobs may run at once and be over in any order. There is no calling one back: loop_free() before
 * the done of each is a programmer's mistake, and asserted. */
void loop_job_run(struct loop *loop, struct loop_job *job);
/* Turns until no job is open, those that are run meanwhile among them; at once when none is. What else hangs
 * on the loop gets its turns too. For the end, when loop_run() has returned. */
void loop_jobs_wait(struct loop *loop);

/* -- names: the addresses of a host, looked up on a thread of its own: getaddrinfo(3) may block for as
 * long as the resolver does, and would keep all others from the few threads of the pool. */
struct loop_lookup {
    /* Once, always later. list: until it returns; NULL: why not. */
    void (*found)(struct loop_lookup *lookup, const struct addrinfo *list, const char *why);
    void *impl; /* the loop's own; NULL: it is not under way */
};

/* NULL, also when one is under way, or why it cannot be begun. */
const char *loop_lookup_begin(struct loop *loop, struct loop_lookup *lookup, const char *host, unsigned port,
                              void (*found)(struct loop_lookup *, const struct addrinfo *, const char *));
/* After this the struct may be freed; no callback comes any more. Nothing when none is under way. The thread
 * goes on: loop_free() waits for it. */
void loop_lookup_end(struct loop_lookup *lookup);
/* Whether one is under way, also if it was ended: loop_free() would wait for it. */
bool loop_is_looking_up(const struct loop *loop);

/* -- signals, delivered on this loop. At most once for each signal number and loop. */
struct loop_signal {
    void (*caught)(struct loop_signal *signal);
    void *impl;
};

void loop_signal_init(struct loop *loop, struct loop_signal *signal, int signum,
                      void (*caught)(struct loop_signal *));
void loop_signal_done(struct loop_signal *signal);

#endif
