/* drill_disk.c - full-disk: the disk of a state directory is full, read-only, or fails to sync.
 *
 *   disk_fails     by the shim, of one lease service or of both: no grant goes above what is recorded
 *   disk_is_back   and grants go on
 *   tmpfs_fills    the same with a real file system of 16 KiB, where we are root */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/cli/cli.h"
#include "api/cli/drill_service.h"

enum {
    SERVICES = 2,
    FAULTS = 3,
    BUSY_LEASE = 0,
    DISK_GRANTS = 150,
    NOTICE_MS = 15000,
    STILL_MS = 400,
    TMPFS_LOOK_MS = 20
};

#define DISK_BLOCK "30"

static const struct {
    enum shim_fault fault;
    const char *told; /* what readyz must say, strerror(3) */
} faults[FAULTS] = {{SHIM_FULL, "No space left on device"},
                    {SHIM_READ_ONLY, "Read-only file system"},
                    {SHIM_NO_SYNC, "Input/output error"}};

/* -- under the shim */

struct disks {
    struct drill_shim shim[SERVICES];
};

/* The shim is told the directory, which is there only now. */
static bool restart_under_shim(struct drill *drill, struct disks *disks)
{
    struct drill_world *world = &drill->world;
    char why[DRILL_WHY_SIZE];

    for (unsigned i = 0; i < SERVICES; i++) {
        struct drill_service *service = &world->lease[i];

        if (!drill_shim_open(&disks->shim[i], drill->shim, service->state, why, sizeof(why))) {
            return drill_cannot(drill, "%s", why);
        }
        drill_shim_wrap(&disks->shim[i], service->process.wrap);
        if (!drill_world_ok(drill, drill_world_end(world, &service->process)) ||
            !drill_service_return(drill, service)) {
            return false;
        }
        if (atomic_load(&disks->shim[i].page->loaded) == 0) {
            return drill_wrong(drill, "%s runs without the shim", service->process.name);
        }
    }
    return true;
}

/* Grants stop, and for the reason that is true; none is above what is on the disk. state: where its directory
 * is for us. */
static bool grants_stop(struct drill *drill, const struct drill_service *service, const char *state,
                        const char *told)
{
    struct drill_world *world = &drill->world;
    char body[DRILL_ANSWER_SIZE];
    int64_t highest;

    if (!drill_world_ok(drill, drill_world_await_unready(world, service, "state-dir", NOTICE_MS)) ||
        !drill_await_refusal(drill, service, BUSY_LEASE, "floor-reached", 4 * NOTICE_MS)) {
        return false;
    }
    highest = drill_highest_token(drill);
    drill_world_readyz(world, service, body, sizeof(body));
    if (strstr(body, told) == NULL || strstr(body, service->state) == NULL) {
        return drill_wrong(drill, "readyz of %s does not name the directory and \"%s\": %.400s",
                           service->process.name, told, body);
    }
    return drill_world_ok(drill, drill_world_sleep(world, STILL_MS)) && drill_check_reserved(drill, state) &&
           (drill_highest_token(drill) == highest ||
            drill_wrong(drill, "grants went on after floor-reached: %" PRId64 " to %" PRId64, highest,
                        drill_highest_token(drill)));
}

static bool disk_is_back(struct drill *drill)
{
    int64_t highest = drill_highest_token(drill);

    return drill_world_ok(drill, drill_world_await_all_ready(&drill->world, DRILL_READY_MS)) &&
           drill_await_token_above(drill, highest, DRILL_GRANT_MS) &&
           drill_let_work(drill, DISK_GRANTS, DRILL_GRANT_MS);
}

/* While its disk fails, the service is killed and started again; that may be refused as long as the disk
 * fails. */
static bool kill_while_it_fails(struct drill *drill, struct drill_service *service, struct drill_shim *shim)
{
    struct drill_world *world = &drill->world;

    if (!drill_world_ok(drill, drill_world_kill(world, &service->process))) {
        return false;
    }
    drill_world_start(world, service);
    if (!drill_world_ok(drill, drill_world_sleep(world, STILL_MS)) ||
        !drill_check_reserved(drill, service->state)) {
        return false;
    }
    atomic_store(&shim->page->fault, 0);
    return drill_world_runs(&service->process) || drill_world_ok(drill, drill_world_start(world, service));
}

static void set_fault(struct disks *disks, unsigned count, uint32_t fault)
{
    for (unsigned i = 0; i < count; i++) {
        atomic_store(&disks->shim[i].page->fault, fault);
    }
}

static bool disk_round(struct drill *drill, struct disks *disks, unsigned number)
{
    struct drill_service *service = &drill->world.lease[0];
    struct drill_shim *shim = &disks->shim[0];
    uint64_t failed = atomic_load(&shim->page->failed);
    unsigned fault = number % FAULTS, count = number / FAULTS % SERVICES + 1;
    bool killed = number / FAULTS / SERVICES % 2 == 1;

    if (!drill_let_work(drill, DISK_GRANTS, DRILL_GRANT_MS)) {
        return false;
    }
    set_fault(disks, count, faults[fault].fault);
    if (!grants_stop(drill, service, service->state, faults[fault].told)) {
        return false;
    }
    if (atomic_load(&shim->page->failed) == failed) {
        return drill_wrong(drill, "the disk did not fail even once");
    }
    if (killed && !kill_while_it_fails(drill, service, shim)) {
        return false;
    }
    set_fault(disks, count, 0);
    return disk_is_back(drill);
}

/* -- a real one */

/* In a mount namespace of its own: gone with the process, and nobody else sees it. */
#define TMPFS "mount -t tmpfs -o size=16k,mode=700 tmpfs \"$0\" && exec \"$@\""

static bool is_unready(struct drill_world *world, const struct drill_service *service)
{
    char body[DRILL_ANSWER_SIZE];

    return drill_world_readyz(world, service, body, sizeof(body)) == 503 && strstr(body, "state-dir") != NULL;
}

/* Again and again, because the file that is replaced gives its own page back. */
static bool fill_up(struct drill *drill, const struct drill_service *service, int fd)
{
    static const char page[4096] = {1};
    uint64_t until_ms = cli_now_ms() + NOTICE_MS;

    while (!is_unready(&drill->world, service)) {
        while (write(fd, page, sizeof(page)) > 0) {
        }
        if (errno != ENOSPC || cli_now_ms() >= until_ms) {
            return drill_wrong(drill, "the real disk could not be filled, or nobody noticed: %s",
                               strerror(errno));
        }
        if (!drill_world_ok(drill, drill_world_sleep(&drill->world, TMPFS_LOOK_MS))) {
            return false;
        }
    }
    return true;
}

static bool tmpfs_fills(struct drill *drill)
{
    struct drill_world *world = &drill->world;
    struct drill_service *service = &world->lease[1];
    char state[DRILL_PATH_SIZE + 64], path[DRILL_PATH_SIZE + 80];
    bool on;
    int fd;

    memcpy(service->process.wrap,
           (const char *const[]){"unshare", "--mount", "sh", "-c", TMPFS, service->state, NULL},
           7 * sizeof(service->process.wrap[0]));
    if (!drill_world_ok(drill, drill_world_end(world, &service->process)) ||
        !drill_service_return(drill, service)) {
        return false;
    }
    snprintf(state, sizeof(state), "/proc/%ld/root%s", (long)service->process.child.pid, service->state);
    snprintf(path, sizeof(path), "%s/filler", state);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        return drill_wrong(drill, "%s cannot be made: %s", path, strerror(errno));
    }
    on = drill_let_work(drill, DISK_GRANTS, DRILL_GRANT_MS) && fill_up(drill, service, fd) &&
         grants_stop(drill, service, state, faults[0].told);
    close(fd);
    unlink(path);
    return on && disk_is_back(drill);
}

enum drill_end drill_play_full_disk(struct drill *drill)
{
    struct drill_world_plan plan = {.services = SERVICES, .token_block = DISK_BLOCK};
    struct disks disks;
    bool on;

    memset(&disks, 0, sizeof(disks));
    if (drill->shim == NULL) {
        drill_cannot(drill, "needs the shim (--shim FILE), which is built by make shim");
        return drill->end;
    }
    on = drill_begin(drill, &plan) && restart_under_shim(drill, &disks);
    for (unsigned i = 0; on && i < drill->rounds; i++) {
        on = disk_round(drill, &disks, i) && drill_round_done(drill);
    }
    if (on && geteuid() == 0) {
        on = tmpfs_fills(drill);
        drill_note(drill, "a real tmpfs of 16 KiB was filled up, too");
    } else if (on) {
        drill_note(drill, "not as root: no real tmpfs was filled up");
    }
    on = drill_finish(drill, on) == DRILL_PLAYED;
    for (unsigned i = 0; i < SERVICES; i++) {
        drill_shim_close(&disks.shim[i]);
    }
    return drill->end;
}
