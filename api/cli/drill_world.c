/* drill_world.c - the processes of one drill: how its world begins and ends.
 *
 *   world_files      the directory, its keys
 *   redis            drill_process.c
 *   the store        made once
 *   the services     and the gateway, all ready */
#include "api/cli/drill_world.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "api/cli/cli.h"
#include "shared/token.h"

enum { READY_MS = 20000 };

static bool world_files(struct drill_world *world, const char *keep, const char *name);
static void world_services(struct drill_world *world);
static bool world_run(struct drill_world *world);

bool drill_world_open(struct drill_world *world, const struct drill_world_plan *plan, const char *keep,
                      const char *name)
{
    memset(world, 0, sizeof(*world));
    pthread_mutex_init(&world->urls_lock, NULL);
    watch_open(&world->watch);
    world->services = plan->services > 0 ? plan->services : 1;
    world->appendfsync = plan->appendfsync != NULL ? plan->appendfsync : "always";
    world->load_truncated = plan->load_truncated != NULL ? plan->load_truncated : "no";
    world->token_block = plan->token_block != NULL ? plan->token_block : "1000";
    world->service_flag = plan->service_flag;
    memcpy(world->redis.wrap, plan->redis_wrap, sizeof(plan->redis_wrap));
    if (!world_files(world, keep, name)) {
        return false;
    }
    world_services(world);
    return world_run(world);
}

/* -- files */

bool drill_world_path(struct drill_world *world, char path[DRILL_PATH_SIZE], const char *directory,
                      const char *name)
{
    size_t len = strlen(directory), more = strlen(name);

    if (len + 1 + more >= DRILL_PATH_SIZE) {
        path[0] = '\0';
        return drill_world_wrong(world, "the path %s is too long", directory);
    }
    memmove(path, directory, len); /* path may be directory */
    path[len] = '/';
    memcpy(path + len + 1, name, more + 1);
    return true;
}

static bool directory_make(struct drill_world *world, const char *path)
{
    return mkdir(path, 0700) == 0 || drill_world_wrong(world, "%s cannot be made: %s", path, strerror(errno));
}

/* A directory that is ours alone: what an earlier drill left there is not mixed with this one's. */
static bool directory_kept(struct drill_world *world, const char *keep, const char *name)
{
    char given[DRILL_PATH_SIZE];

    if ((mkdir(keep, 0700) != 0 && errno != EEXIST) || strlen(keep) >= sizeof(given)) {
        return drill_world_wrong(world, "%s cannot be made: %s", keep, strerror(errno));
    }
    return drill_world_path(world, world->dir, keep, name) && directory_make(world, world->dir);
}

static bool directory_temporary(struct drill_world *world)
{
    const char *base = getenv("TMPDIR");

    /* The address of a Unix socket is short (unix(7)). */
    if (base == NULL || *base != '/' ||
        strlen(base) + sizeof("/pawl-drill-XXXXXX/redis.sock") >
            sizeof(((struct sockaddr_un *)0)->sun_path)) {
        base = "/tmp";
    }
    if (!drill_world_path(world, world->dir, base, "pawl-drill-XXXXXX")) {
        return false;
    }
    world->temporary = mkdtemp(world->dir) != NULL;
    return world->temporary ||
           drill_world_wrong(world, "no temporary directory can be made in %s: %s", base, strerror(errno));
}

static bool keys_make(struct drill_world *world)
{
    char line[TOKEN_KEY_LINE_SIZE];
    size_t len = token_keygen("drill", line, sizeof(line));
    int fd = open(world->keys, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool whole = fd >= 0 && write(fd, line, len) == (ssize_t)len;

    explicit_bzero(line, sizeof(line));
    if (fd >= 0) {
        close(fd);
    }
    return whole || drill_world_wrong(world, "%s cannot be written: %s", world->keys, strerror(errno));
}

static bool world_files(struct drill_world *world, const char *keep, const char *name)
{
    if (!(keep != NULL ? directory_kept(world, keep, name) : directory_temporary(world)) ||
        !drill_world_path(world, world->data, world->dir, "data") ||
        !drill_world_path(world, world->keys, world->dir, "keys") ||
        !drill_world_path(world, world->socket, world->dir, "redis.sock")) {
        return false;
    }
    if (strlen(world->socket) >= sizeof(((struct sockaddr_un *)0)->sun_path)) {
        return drill_world_wrong(
            world, "%s is too long for the address of a socket: name a shorter directory", world->socket);
    }
    snprintf(world->redis_url, sizeof(world->redis_url), "unix://%.*s", DRILL_PATH_SIZE - 8, world->socket);
    return directory_make(world, world->data) && keys_make(world);
}

static void service_prepare(struct drill_world *world, struct drill_service *service, const char *program,
                            const char *name)
{
    char log[32];

    service->program = program;
    snprintf(service->process.name, sizeof(service->process.name), "%s", name);
    snprintf(log, sizeof(log), "%s.log", name);
    drill_world_path(world, service->process.log, world->dir, log);
    drill_world_path(world, service->state, world->dir, name);
}

static void world_services(struct drill_world *world)
{
    snprintf(world->redis.name, sizeof(world->redis.name), "redis");
    drill_world_path(world, world->redis.log, world->dir, "redis.log");
    for (unsigned i = 0; i < DRILL_SERVICES_MAX; i++) {
        char name[16];

        snprintf(name, sizeof(name), "lease-%u", i % 10);
        service_prepare(world, &world->lease[i], "pawl-lease", name);
    }
    service_prepare(world, &world->gateway, "pawl-gateway", "gateway");
}

/* -- all of them */

static bool world_run(struct drill_world *world)
{
    if (drill_world_redis_start(world) != DRILL_REDIS_UP ||
        !drill_world_init_store(world, &world->lease[0])) {
        return false;
    }
    for (unsigned i = 0; i < world->services; i++) {
        if (!drill_world_start(world, &world->lease[i]) ||
            !drill_world_await_ready(world, &world->lease[i], READY_MS)) {
            return false;
        }
    }
    return drill_world_start(world, &world->gateway) &&
           drill_world_await_ready(world, &world->gateway, READY_MS);
}

/* -- the end */

void drill_world_close(struct drill_world *world)
{
    struct drill_process *all[DRILL_SERVICES_MAX + 2] = {&world->redis, &world->gateway.process};

    for (unsigned i = 0; i < DRILL_SERVICES_MAX; i++) {
        all[i + 2] = &world->lease[i].process;
    }
    for (unsigned i = 0; i < DRILL_SERVICES_MAX + 2; i++) {
        drill_world_kill(world, all[i]);
    }
    if (world->temporary) {
        drill_world_delete(world, world->dir);
    }
    watch_close(&world->watch);
    pthread_mutex_destroy(&world->urls_lock);
}

/* -- what all of it needs */

bool drill_world_wrong(struct drill_world *world, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(world->why, sizeof(world->why), format, args);
    va_end(args);
    return false;
}

bool drill_world_sleep(struct drill_world *world, unsigned ms)
{
    if (!world->interrupted && watch_next(&world->watch, cli_now_ms() + ms) == WATCH_SIGNAL) {
        world->interrupted = true;
    }
    return !world->interrupted || drill_world_wrong(world, "interrupted");
}
