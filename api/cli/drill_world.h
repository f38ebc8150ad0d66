/* drill_world.h - the processes of one drill: a private redis-server, lease services, a gateway.
 *
 *   DIR/data/        Redis' directory           DIR/keys            the key file
 *   DIR/lease-0/     state directory of lease service 0, and so on  DIR/gateway/  the gateway's
 *   DIR/redis.log, DIR/lease-0.log ...          all that a process said, over its restarts
 *
 * Every process has a process group of its own and dies with this one (api/cli/child.h); start them from the
 * main thread only. Ports are the kernel's choice, new at each start: clients ask for the URL each time.
 *
 * What returns bool is false when it did not come about; why then says it. While a world is open, SIGINT,
 * SIGTERM and SIGHUP end no process but make all waits end with false, and interrupted is true. */
#ifndef PAWL_CLI_DRILL_WORLD_H
#define PAWL_CLI_DRILL_WORLD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/cli/watch.h"

enum {
    DRILL_SERVICES_MAX = 4,
    DRILL_WORDS_MAX = 15,
    DRILL_PATH_SIZE = 1024,
    DRILL_URL_SIZE = 64,
    DRILL_WHY_SIZE = 1024,
    DRILL_REPLY_SIZE = 4096
};

/* A process, and how it is run: both lists may be changed before the next start, end with NULL, and their
 * words must outlive the world (or the next change). */
struct drill_process {
    struct child child;                     /* pid 0: it is not running */
    char name[16];                          /* "redis", "lease-0", "gateway" */
    const char *wrap[DRILL_WORDS_MAX + 1];  /* in front of the program; the first is looked up in PATH:
                                             * {"env", "LD_PRELOAD=/x.so"}, {"prlimit", "--fsize=0"} */
    const char *flags[DRILL_WORDS_MAX + 1]; /* behind the world's own, which they beat */
    char log[DRILL_PATH_SIZE];
    long log_from; /* where in the log the present run begins */
};

struct drill_service {
    struct drill_process process;
    const char *program;         /* "pawl-lease" */
    char state[DRILL_PATH_SIZE]; /* --state-dir; "": none is given */
    char url[DRILL_URL_SIZE];    /* under urls_lock: drill_world_url() */
};

struct drill_world_plan {
    unsigned services;          /* lease services; 0 means 1 */
    const char *appendfsync;    /* NULL: "always" */
    const char *load_truncated; /* aof-load-truncated; NULL: "no" */
    const char *token_block;    /* --token-block; NULL: "1000" */
    const char *service_flag;   /* for all services and the gateway: "--allow-unsafe-redis"; NULL: none */
    const char *redis_wrap[4];  /* drill_process.wrap of redis-server */
};

struct drill_world {
    char dir[DRILL_PATH_SIZE], data[DRILL_PATH_SIZE], socket[DRILL_PATH_SIZE], keys[DRILL_PATH_SIZE];
    char redis_url[DRILL_PATH_SIZE];
    bool temporary;                                                        /* dir is deleted at the end */
    const char *appendfsync, *load_truncated, *token_block, *service_flag; /* may be changed before a start */
    struct drill_process redis;
    struct drill_service lease[DRILL_SERVICES_MAX], gateway;
    unsigned services;
    pthread_mutex_t urls_lock;
    struct watch watch; /* for signals and for letting time pass */
    unsigned torn;      /* drill_world_redis_return() */
    bool interrupted;
    char why[DRILL_WHY_SIZE];
};

/* Directories, keys, Redis, the store, the services, the gateway: true when all of them are ready. keep: a
 * directory in which one is made that stays; NULL: a temporary one. drill_world_close() is owed either way.
 */
bool drill_world_open(struct drill_world *world, const struct drill_world_plan *plan, const char *keep,
                      const char *name);
void drill_world_close(struct drill_world *world);

/* Always false: sets why. */
bool drill_world_wrong(struct drill_world *world, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* directory/name; false: too long. path may be directory. */
bool drill_world_path(struct drill_world *world, char path[DRILL_PATH_SIZE], const char *directory,
                      const char *name);
/* Lets time pass. */
bool drill_world_sleep(struct drill_world *world, unsigned ms);

/* -- processes */

enum drill_redis_start {
    DRILL_REDIS_UP,      /* it answers PING: its file is read */
    DRILL_REDIS_REFUSED, /* it has ended by itself: why has the last that it said */
    DRILL_REDIS_FAILED   /* it cannot be run, or did not answer in time */
};
enum drill_redis_start drill_world_redis_start(struct drill_world *world);
/* The same after a kill, as an operator would do it: when Redis refuses to start because the kill came in the
 * middle of a write to its file, redis-check-aof takes the torn command away, which nobody was told of;
 * counted in torn. */
bool drill_world_redis_return(struct drill_world *world);
/* Started, and it listens; that it is ready is another question. */
bool drill_world_start(struct drill_world *world, struct drill_service *service);
/* SIGKILL, and until it has ended (redis: &world->redis). Fine when it is not running. */
bool drill_world_kill(struct drill_world *world, struct drill_process *process);
/* SIGTERM, and until it has ended. */
bool drill_world_end(struct drill_world *world, struct drill_process *process);
/* SIGSTOP, and until it stands still; SIGCONT. */
bool drill_world_stop(struct drill_world *world, struct drill_process *process);
bool drill_world_continue(struct drill_world *world, struct drill_process *process);
/* Whether it runs; a process that has ended without having been killed is noticed here. */
bool drill_world_runs(struct drill_process *process);
/* Whether its present run has said this (in its log). */
bool drill_world_said(const struct drill_process *process, const char *text);

/* The URL of a service's present or last run. Any thread. */
void drill_world_url(struct drill_world *world, const struct drill_service *service,
                     char url[DRILL_URL_SIZE]);
/* GET /readyz once: the status (0: no answer); the body is cut to size. */
unsigned drill_world_readyz(struct drill_world *world, const struct drill_service *service, char *body,
                            size_t size);
/* Until /readyz is 200. */
bool drill_world_await_ready(struct drill_world *world, const struct drill_service *service,
                             unsigned limit_ms);
/* Until its answer is another and has this text in it: "store-not-ours". */
bool drill_world_await_unready(struct drill_world *world, const struct drill_service *service,
                               const char *text, unsigned limit_ms);
/* All services that run and the gateway. */
bool drill_world_await_all_ready(struct drill_world *world, unsigned limit_ms);

/* -- programs that run and end */

/* argv[0] is looked up beside pawl, then in PATH. true when it ended with 0; said (may be NULL) gets the end
 * of what it said, also when it did not. */
bool drill_world_run(struct drill_world *world, const char *const *argv, char said[DRILL_REPLY_SIZE]);
/* `pawl store recover` as an operator would run it, on the host of this lease service; floor 0: without
 * --floor. */
bool drill_world_recover(struct drill_world *world, const struct drill_service *service, int64_t floor);
/* `pawl-lease --init-store`, with this service's state directory. */
bool drill_world_init_store(struct drill_world *world, const struct drill_service *service);

/* -- Redis' data. Redis may run while it is copied, never while it is put back. Copies are named: "before".
 */

bool drill_world_data_copy(struct drill_world *world, const char *name);
bool drill_world_data_put_back(struct drill_world *world, const char *name);
/* The copy gets another name; one that had it is deleted. */
bool drill_world_data_rename(struct drill_world *world, const char *name, const char *new_name);
/* Everything in a directory, and the directory. Fine when it is not there. */
bool drill_world_delete(struct drill_world *world, const char *path);

/* -- Redis' commands: words divided by blanks; the reply as text: arrays as lines, nil as "(nil)", cut to
 * size. false: no answer, or an error (reply then begins with "ERR" or another such word). */
bool drill_world_ask_redis(struct drill_world *world, const char *command, char reply[DRILL_REPLY_SIZE]);

#endif
