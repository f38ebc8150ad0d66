/* drill_process.c - the processes of a drill: started, killed, stopped, and what they said.
 *
 * What a process says goes straight into its log, through a shell that opens the log and becomes the process:
 * a pipe would have to be emptied all the while, and one that is full stops the service that is being
 * watched. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/cli/cli.h"
#include "api/cli/drill_world.h"
#include "api/cli/redis_ping.h"
#include "api/cli/words.h"

enum {
    LISTEN_MS = 15000,
    LOAD_MS = 30000, /* for Redis to have read its file */
    END_MS = 8000,   /* the services promise 5 s */
    STOP_MS = 2000,
    LOOK_AGAIN_MS = 5,
    LAST_SAID = 400
};

#define LISTENING "listening on http://"

static long file_size(const char *path)
{
    FILE *file = fopen(path, "re");
    long size = 0;

    if (file != NULL) {
        fseek(file, 0, SEEK_END);
        size = ftell(file);
        fclose(file);
    }
    return size;
}

static bool process_start(struct drill_world *world, struct drill_process *process, const char *program,
                          const char *const *own)
{
    char path[CHILD_PATH_SIZE];
    struct words words = {.count = 0};

    if (!child_find(program, path)) {
        return drill_world_wrong(world, "the program %s is neither beside pawl nor in PATH", program);
    }
    words_add(&words,
              (const char *const[]){"/bin/sh", "-c", "exec \"$@\" >>\"$0\" 2>&1", process->log, NULL});
    words_add(&words, process->wrap);
    words_add(&words, (const char *const[]){path, NULL});
    words_add(&words, own);
    words_add(&words, process->flags);
    process->log_from = file_size(process->log);
    if (!child_start(&process->child, process->name, CHILD_LOGS, words.at)) {
        return drill_world_wrong(world, "%s cannot be started", process->name);
    }
    close(process->child.out_fd);
    process->child.out_fd = -1;
    return true;
}

/* -- what it said */

/* The end of the log of its present run, at most size - 1 bytes. */
static void log_read(const struct drill_process *process, char *buf, long size)
{
    FILE *file = fopen(process->log, "re");
    long from = process->log_from, end = file_size(process->log);
    size_t len = 0;

    if (end - from > size - 1) {
        from = end - (size - 1);
    }
    if (file != NULL && fseek(file, from, SEEK_SET) == 0) {
        len = fread(buf, 1, (size_t)size - 1, file);
    }
    buf[len] = '\0';
    if (file != NULL) {
        fclose(file);
    }
}

bool drill_world_said(const struct drill_process *process, const char *text)
{
    enum { LOOK_BYTES = 1 << 20 };
    char *buf = cli_alloc(LOOK_BYTES);
    bool said;

    log_read(process, buf, LOOK_BYTES);
    said = strstr(buf, text) != NULL;
    free(buf);
    return said;
}

/* Sets why, with the last that it said on one line. */
static bool process_failed(struct drill_world *world, const struct drill_process *process, const char *what)
{
    char last[LAST_SAID];

    log_read(process, last, sizeof(last));
    for (char *at = last; *at != '\0'; at++) {
        *at = *at == '\n' ? (at[1] != '\0' ? '|' : ' ') : *at;
    }
    return drill_world_wrong(world, "%s %s; its last words: %s", process->name, what,
                             last[0] != '\0' ? last : "none");
}

/* -- whether it runs */

bool drill_world_runs(struct drill_process *process)
{
    struct child *child = &process->child;

    if (child->pid != 0 && waitpid(child->pid, &child->status, WNOHANG) == child->pid) {
        child->pid = 0;
    }
    return child->pid != 0;
}

/* The whole group: Redis may have a child that rewrites its file. */
static bool process_signal(const struct drill_process *process, int number)
{
    return process->child.pid != 0 && kill(-process->child.pid, number) == 0;
}

static bool process_await_end(struct drill_world *world, struct drill_process *process, unsigned limit_ms)
{
    uint64_t until_ms = cli_now_ms() + limit_ms;

    while (drill_world_runs(process)) {
        if (cli_now_ms() >= until_ms) {
            return process_failed(world, process, "did not end in time");
        }
        poll(NULL, 0, LOOK_AGAIN_MS); /* also after an interruption: it must end */
    }
    return true;
}

bool drill_world_kill(struct drill_world *world, struct drill_process *process)
{
    process_signal(process, SIGKILL);
    return process_await_end(world, process, END_MS);
}

bool drill_world_end(struct drill_world *world, struct drill_process *process)
{
    process_signal(process, SIGTERM);
    process_signal(process, SIGCONT); /* one that is stopped does not hear SIGTERM before */
    return process_await_end(world, process, END_MS);
}

bool drill_world_stop(struct drill_world *world, struct drill_process *process)
{
    uint64_t until_ms = cli_now_ms() + STOP_MS;
    int status = 0;

    if (!process_signal(process, SIGSTOP)) {
        return process_failed(world, process, "does not run and cannot be stopped");
    }
    while (waitpid(process->child.pid, &status, WNOHANG | WUNTRACED) != process->child.pid ||
           !WIFSTOPPED(status)) {
        if (cli_now_ms() >= until_ms) {
            return process_failed(world, process, "did not stand still");
        }
        poll(NULL, 0, 1);
    }
    return true;
}

bool drill_world_continue(struct drill_world *world, struct drill_process *process)
{
    return process_signal(process, SIGCONT) || process_failed(world, process, "is gone and cannot go on");
}

/* -- Redis */

enum drill_redis_start drill_world_redis_start(struct drill_world *world)
{
    uint64_t until_ms = cli_now_ms() + LOAD_MS;
    struct words own = {.count = 0};

    words_add_store(&own, world->socket, world->data, world->appendfsync, world->load_truncated);
    /* So that loading stays fast, and kills hit a rewrite now and then. */
    words_add(&own, (const char *const[]){"--auto-aof-rewrite-min-size", "4mb", NULL});
    if (!process_start(world, &world->redis, "redis-server", own.at)) {
        return DRILL_REDIS_FAILED;
    }
    while (!redis_ping(world->socket)) {
        if (!drill_world_runs(&world->redis)) {
            process_failed(world, &world->redis, "did not start");
            return DRILL_REDIS_REFUSED;
        }
        if (cli_now_ms() >= until_ms) {
            process_failed(world, &world->redis, "did not answer in time");
            return DRILL_REDIS_FAILED;
        }
        if (!drill_world_sleep(world, LOOK_AGAIN_MS)) {
            return DRILL_REDIS_FAILED;
        }
    }
    return DRILL_REDIS_UP;
}

/* -- the services */

static bool listens(struct drill_world *world, struct drill_service *service)
{
    char said[LAST_SAID * 4];
    const char *at;

    log_read(&service->process, said, sizeof(said));
    at = strstr(said, LISTENING);
    if (at == NULL || strchr(at, '\n') == NULL) {
        return false;
    }
    at += strlen("listening on ");
    pthread_mutex_lock(&world->urls_lock);
    snprintf(service->url, sizeof(service->url), "%.*s", (int)strcspn(at, " \"\n"), at);
    pthread_mutex_unlock(&world->urls_lock);
    return true;
}

static void service_words(const struct drill_world *world, const struct drill_service *service,
                          struct words *words)
{
    words_add(words, (const char *const[]){"--listen", "127.0.0.1:0", "--redis", world->redis_url, "--keys",
                                           world->keys, "--log-format", "text", NULL});
    if (service->state[0] != '\0') {
        words_add(words, (const char *const[]){"--state-dir", service->state, NULL});
    }
    if (service != &world->gateway) {
        words_add(words, (const char *const[]){"--token-block", world->token_block, NULL});
    }
    words_add(words, (const char *const[]){world->service_flag, NULL});
}

bool drill_world_start(struct drill_world *world, struct drill_service *service)
{
    uint64_t until_ms = cli_now_ms() + LISTEN_MS;
    struct words own = {.count = 0};

    service_words(world, service, &own);
    if (!process_start(world, &service->process, service->program, own.at)) {
        return false;
    }
    while (!listens(world, service)) {
        if (!drill_world_runs(&service->process)) {
            return process_failed(world, &service->process, "did not start");
        }
        if (cli_now_ms() >= until_ms) {
            return process_failed(world, &service->process, "did not say where it listens");
        }
        if (!drill_world_sleep(world, LOOK_AGAIN_MS)) {
            return false;
        }
    }
    return true;
}

void drill_world_url(struct drill_world *world, const struct drill_service *service, char url[DRILL_URL_SIZE])
{
    pthread_mutex_lock(&world->urls_lock);
    memcpy(url, service->url, DRILL_URL_SIZE);
    pthread_mutex_unlock(&world->urls_lock);
}
