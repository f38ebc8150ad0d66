/* drill_tools.c - what happens to a drill's world from outside: questions to its services, programs that an
 * operator would run, Redis' files taken and put back. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/cli/cli.h"
#include "api/cli/drill_aof.h"
#include "api/cli/drill_world.h"
#include "api/client/http_client.h"

enum { READY_REQUEST_MS = 3000, LOOK_AGAIN_MS = 10, RUN_MS = 30000, BODY_SIZE = 2048 };

/* -- whether a service is ready */

unsigned drill_world_readyz(struct drill_world *world, const struct drill_service *service, char *body,
                            size_t size)
{
    char url[DRILL_URL_SIZE], page[DRILL_URL_SIZE + 8];
    struct http_client_request request = {.method = "GET", .url = page, .timeout_ms = READY_REQUEST_MS};
    struct http_client_answer answer;
    unsigned status = 0;

    drill_world_url(world, service, url);
    snprintf(page, sizeof(page), "%s/readyz", url);
    body[0] = '\0';
    if (http_client_send(&request, &answer) == HTTP_CLIENT_ANSWERED) {
        status = answer.status;
        snprintf(body, size, "%s", answer.body);
    }
    http_client_answer_done(&answer);
    return status;
}

static bool await(struct drill_world *world, const struct drill_service *service, const char *text,
                  unsigned limit_ms)
{
    uint64_t until_ms = cli_now_ms() + limit_ms;
    char body[BODY_SIZE];

    for (;;) {
        unsigned status = drill_world_readyz(world, service, body, sizeof(body));
        bool come = text == NULL ? status == 200 : status != 0 && status != 200 && strstr(body, text) != NULL;

        if (come) {
            return true;
        }
        if (cli_now_ms() >= until_ms) {
            return drill_world_wrong(world, "/readyz of %s did not come to %s within %u ms; it says: %u %s",
                                     service->process.name, text == NULL ? "200" : text, limit_ms, status,
                                     body);
        }
        if (!drill_world_sleep(world, LOOK_AGAIN_MS)) {
            return false;
        }
    }
}

bool drill_world_await_ready(struct drill_world *world, const struct drill_service *service,
                             unsigned limit_ms)
{
    return await(world, service, NULL, limit_ms);
}

bool drill_world_await_unready(struct drill_world *world, const struct drill_service *service,
                               const char *text, unsigned limit_ms)
{
    return await(world, service, text, limit_ms);
}

bool drill_world_await_all_ready(struct drill_world *world, unsigned limit_ms)
{
    for (unsigned i = 0; i < world->services; i++) {
        if (world->lease[i].process.child.pid != 0 &&
            !drill_world_await_ready(world, &world->lease[i], limit_ms)) {
            return false;
        }
    }
    return drill_world_await_ready(world, &world->gateway, limit_ms);
}

/* -- programs that run and end */

/* Keeps the end of what it says. */
static void output_take(int fd, char said[DRILL_REPLY_SIZE], size_t *len)
{
    char more[DRILL_REPLY_SIZE / 2];
    ssize_t got = read(fd, more, sizeof(more));

    if (got <= 0) {
        return;
    }
    if (*len + (size_t)got >= DRILL_REPLY_SIZE) {
        size_t kept = DRILL_REPLY_SIZE / 2 - 1 < *len ? DRILL_REPLY_SIZE / 2 - 1 : *len;

        memmove(said, said + *len - kept, kept);
        *len = kept;
    }
    memcpy(said + *len, more, (size_t)got);
    *len += (size_t)got;
    said[*len] = '\0';
}

/* false: it had to be killed. */
static bool run_to_its_end(struct child *child, char said[DRILL_REPLY_SIZE])
{
    uint64_t until_ms = cli_now_ms() + RUN_MS;
    size_t len = 0;

    while (waitpid(child->pid, &child->status, WNOHANG) != child->pid) {
        struct pollfd readable = {.fd = child->out_fd, .events = POLLIN};

        if (cli_now_ms() >= until_ms) {
            child_signal(child, SIGKILL);
            waitpid(child->pid, &child->status, 0);
            return false;
        }
        /* At its end the pipe is readable all the time, so that only the waiting remains. */
        if (poll(&readable, 1, LOOK_AGAIN_MS) == 1 && !(readable.revents & POLLIN)) {
            poll(NULL, 0, 1);
        }
        output_take(child->out_fd, said, &len);
    }
    output_take(child->out_fd, said, &len);
    return true;
}

bool drill_world_run(struct drill_world *world, const char *const *argv, char said[DRILL_REPLY_SIZE])
{
    char path[CHILD_PATH_SIZE], own[DRILL_REPLY_SIZE], end[64];
    const char *words[DRILL_WORDS_MAX + 1] = {path};
    struct child child;
    bool ended;

    said = said != NULL ? said : own;
    said[0] = '\0';
    if (!child_find(argv[0], path)) {
        return drill_world_wrong(world, "the program %s is neither beside pawl nor in PATH", argv[0]);
    }
    for (unsigned i = 1; argv[i] != NULL && i < DRILL_WORDS_MAX; i++) {
        words[i] = argv[i];
    }
    if (!child_start(&child, argv[0], CHILD_LOGS, words)) {
        return drill_world_wrong(world, "%s cannot be started", argv[0]);
    }
    ended = run_to_its_end(&child, said);
    close(child.out_fd);
    if (ended && WIFEXITED(child.status) && WEXITSTATUS(child.status) == 0) {
        return true;
    }
    child_describe_end(&child, end, sizeof(end));
    return drill_world_wrong(world, "%s %s%s: %s; it said: %.600s", argv[0], argv[1] != NULL ? argv[1] : "",
                             ended ? "" : " did not end in time", end, said);
}

bool drill_world_init_store(struct drill_world *world, const struct drill_service *service)
{
    const char *const argv[] = {
        "pawl-lease",        "--redis",
        world->redis_url,    "--init-store",
        "--state-dir",       service->state,
        "--token-block",     world->token_block, /* a large one would never be used up */
        world->service_flag, NULL};

    return drill_world_run(world, argv, NULL);
}

bool drill_world_recover(struct drill_world *world, const struct drill_service *service, int64_t floor)
{
    char number[32];
    const char *argv[] = {"pawl",        "store",        "recover", "--redis", world->redis_url,
                          "--state-dir", service->state, NULL,      NULL,      NULL};

    if (floor > 0) {
        snprintf(number, sizeof(number), "%" PRId64, floor);
        argv[7] = "--floor";
        argv[8] = number;
    }
    return drill_world_run(world, argv, NULL);
}

bool drill_world_redis_return(struct drill_world *world)
{
    enum drill_redis_start start = drill_world_redis_start(world);

    if (start == DRILL_REDIS_REFUSED && drill_aof_fix(world)) {
        world->torn++;
        start = drill_world_redis_start(world);
    }
    return start == DRILL_REDIS_UP;
}

/* -- Redis' data */

bool drill_world_delete(struct drill_world *world, const char *path)
{
    return drill_world_run(world, (const char *const[]){"rm", "-rf", path, NULL}, NULL);
}

static bool copy_path(struct drill_world *world, char path[DRILL_PATH_SIZE], const char *name)
{
    char word[64];

    snprintf(word, sizeof(word), "copy-%s", name);
    return drill_world_path(world, path, world->dir, word);
}

bool drill_world_data_copy(struct drill_world *world, const char *name)
{
    char copy[DRILL_PATH_SIZE];

    return copy_path(world, copy, name) && drill_world_delete(world, copy) &&
           drill_world_run(world, (const char *const[]){"cp", "-a", world->data, copy, NULL}, NULL);
}

bool drill_world_data_put_back(struct drill_world *world, const char *name)
{
    char copy[DRILL_PATH_SIZE];

    if (drill_world_runs(&world->redis)) {
        return drill_world_wrong(world, "Redis runs: its data cannot be put back");
    }
    return copy_path(world, copy, name) && drill_world_delete(world, world->data) &&
           drill_world_run(world, (const char *const[]){"cp", "-a", copy, world->data, NULL}, NULL);
}

bool drill_world_data_rename(struct drill_world *world, const char *name, const char *new_name)
{
    char from[DRILL_PATH_SIZE], to[DRILL_PATH_SIZE];

    if (!copy_path(world, from, name) || !copy_path(world, to, new_name) || !drill_world_delete(world, to)) {
        return false;
    }
    return rename(from, to) == 0 || drill_world_wrong(world, "%s: %s", from, strerror(errno));
}
