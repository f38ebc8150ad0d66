/* drill_aof.c - the newest append-only file of a drill's Redis. */
#include "api/cli/drill_aof.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/cli/cli.h"

enum { LINE_SIZE = 512, TAIL_BYTES = 1 << 20, LOOK_AGAIN_MS = 5 };

#define DIRECTORY "appendonlydir"
#define MANIFEST "appendonly.aof.manifest"

static bool manifest_path(struct drill_world *world, char path[DRILL_PATH_SIZE])
{
    return drill_world_path(world, path, world->data, DIRECTORY) &&
           drill_world_path(world, path, path, MANIFEST);
}

/* The name in a line "file NAME seq N type i"; NULL in any other. */
static const char *increment_of(char line[LINE_SIZE])
{
    char *rest = NULL, *name = NULL, *type = NULL;

    for (char *key = strtok_r(line, " \n", &rest); key != NULL; key = strtok_r(NULL, " \n", &rest)) {
        char *value = strtok_r(NULL, " \n", &rest);

        name = strcmp(key, "file") == 0 ? value : name;
        type = strcmp(key, "type") == 0 ? value : type;
    }
    return type != NULL && strcmp(type, "i") == 0 ? name : NULL;
}

/* The manifest lists them in the order in which they were begun. */
static bool newest_increment(struct drill_world *world, char newest[LINE_SIZE])
{
    char path[DRILL_PATH_SIZE], line[LINE_SIZE];
    FILE *file = manifest_path(world, path) ? fopen(path, "re") : NULL;

    newest[0] = '\0';
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        const char *name = increment_of(line);

        if (name != NULL) {
            snprintf(newest, LINE_SIZE, "%s", name);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return newest[0] != '\0' || drill_world_wrong(world, "%s names no file of increments", path);
}

bool drill_aof_find(struct drill_world *world, struct drill_aof *aof)
{
    char name[LINE_SIZE];
    struct stat status;

    if (!newest_increment(world, name) || !drill_world_path(world, aof->path, world->data, DIRECTORY) ||
        !drill_world_path(world, aof->path, aof->path, name)) {
        return false;
    }
    if (stat(aof->path, &status) != 0) {
        return drill_world_wrong(world, "%s: %s", aof->path, strerror(errno));
    }
    aof->size = status.st_size;
    return true;
}

static bool tail_has(const struct drill_aof *aof, const char *text)
{
    char *tail = cli_alloc(TAIL_BYTES);
    FILE *file = fopen(aof->path, "re");
    int64_t from = aof->size > TAIL_BYTES ? aof->size - TAIL_BYTES : 0;
    size_t len = 0;
    bool has;

    if (file != NULL && fseek(file, (long)from, SEEK_SET) == 0) {
        len = fread(tail, 1, (size_t)(aof->size - from), file);
    }
    has = memmem(tail, len, text, strlen(text)) != NULL;
    if (file != NULL) {
        fclose(file);
    }
    free(tail);
    return has;
}

bool drill_aof_await(struct drill_world *world, struct drill_aof *aof, const char *text, unsigned limit_ms)
{
    uint64_t until_ms = cli_now_ms() + limit_ms;

    for (;;) {
        if (!drill_aof_find(world, aof)) {
            return false;
        }
        if (tail_has(aof, text)) {
            return true;
        }
        if (cli_now_ms() >= until_ms) {
            return drill_world_wrong(world, "Redis did not write its file within %u ms", limit_ms);
        }
        if (!drill_world_sleep(world, LOOK_AGAIN_MS)) {
            return false;
        }
    }
}

bool drill_aof_cut(struct drill_world *world, const struct drill_aof *aof, int64_t size)
{
    if (drill_world_runs(&world->redis)) {
        return drill_world_wrong(world, "Redis runs: its file cannot be cut");
    }
    return truncate(aof->path, size) == 0 || drill_world_wrong(world, "%s: %s", aof->path, strerror(errno));
}

bool drill_aof_fix(struct drill_world *world)
{
    char path[DRILL_PATH_SIZE];

    /* It asks before it cuts. */
    return manifest_path(world, path) &&
           drill_world_run(
               world, (const char *const[]){"sh", "-c", "echo y | redis-check-aof --fix \"$0\"", path, NULL},
               NULL);
}

bool drill_aof_rewrite(struct drill_world *world, unsigned limit_ms)
{
    uint64_t until_ms = cli_now_ms() + limit_ms;
    char reply[DRILL_REPLY_SIZE];

    if (!drill_world_ask_redis(world, "BGREWRITEAOF", reply)) {
        return false;
    }
    do {
        if (!drill_world_sleep(world, LOOK_AGAIN_MS) ||
            !drill_world_ask_redis(world, "INFO persistence", reply)) {
            return false;
        }
        if (strstr(reply, "aof_rewrite_in_progress:0") != NULL &&
            strstr(reply, "aof_rewrite_scheduled:0") != NULL) {
            return true;
        }
    } while (cli_now_ms() < until_ms);
    return drill_world_wrong(world, "Redis did not rewrite its file within %u ms", limit_ms);
}
