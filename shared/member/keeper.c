/* keeper.c - keeps what the state directory says in step with what the store wants recorded.
 *
 *   keeper_want    something new, and no write under way     recorded at once without a directory, else
 *   keeper_write   on a thread of the pool: file, fsync, rename, fsync
 *   keeper_wrote   back on the loop: recorded, or trouble */
#include "shared/member/keeper.h"

#include <stdio.h>
#include <string.h>

#include "shared/text/bytes.h"
#include "shared/token/random.h"

bool keeper_open(struct keeper *keeper, const char *path, char why[STATE_WHY_MAX])
{
    memset(keeper, 0, sizeof(*keeper));
    keeper->dir.dir_fd = keeper->dir.lock_fd = -1;
    if (path == NULL) {
        member_id_make(keeper->recorded.member);
        keeper->is_fresh = true;
        return true;
    }
    switch (state_dir_open(&keeper->dir, path, &keeper->recorded, why)) {
    case STATE_OPEN: break;
    case STATE_FRESH: keeper->is_fresh = true; break;
    case STATE_IN_USE:
    case STATE_DAMAGED:
    case STATE_FAILED: return false;
    }
    keeper->has_dir = true;
    return true;
}

static void keeper_write(struct loop_job *job)
{
    struct keeper *keeper = container_of(job, struct keeper, job);

    struct high_water read;
    char why[STATE_WHY_MAX];

    keeper->written = state_dir_write(&keeper->dir, &keeper->writing, keeper->writing_trouble);
    keeper->replaced = !keeper->written && (state_dir_peek(keeper->dir.path, &read, why) != STATE_OPEN ||
                                            !high_water_equal(&read, &keeper->recorded));
}

static void keeper_wrote(struct loop_job *job)
{
    struct keeper *keeper = container_of(job, struct keeper, job);

    keeper->busy = false;
    keeper->unsure = keeper->replaced;
    if (!keeper->written) {
        memcpy(keeper->trouble, keeper->writing_trouble, sizeof(keeper->trouble));
        return;
    }
    keeper->trouble[0] = '\0';
    if (keeper_trouble(keeper) != NULL) {
        return; /* durable it may be, but in a directory that was taken away meanwhile */
    }
    keeper->recorded = keeper->writing;
    keeper->wrote(keeper);
}

const char *keeper_trouble(struct keeper *keeper)
{
    if (keeper->has_dir && !keeper->busy && !keeper->lost && !state_dir_is_there(&keeper->dir)) {
        keeper->lost = true;
        snprintf(keeper->trouble, sizeof(keeper->trouble),
                 "The state directory %s was deleted or replaced: what it said is lost. Start this service "
                 "again: it joins anew if another lease service vouches for it; else pawl store recover "
                 "--floor N.",
                 keeper->dir.path);
    }
    return keeper->trouble[0] != '\0' ? keeper->trouble : NULL;
}

void keeper_start(struct keeper *keeper, struct loop *loop, void (*wrote)(struct keeper *))
{
    keeper->loop = loop;
    keeper->wrote = wrote;
    keeper->job.work = keeper_write;
    keeper->job.done = keeper_wrote;
}

void keeper_want(struct keeper *keeper, const struct high_water *water)
{
    if (keeper->busy || keeper->lost || high_water_equal(water, &keeper->recorded)) {
        return;
    }
    if (!keeper->has_dir) {
        keeper->recorded = *water;
        return;
    }
    keeper->writing = *water;
    keeper->busy = true;
    loop_job_run(keeper->loop, &keeper->job);
}

bool keeper_is_lost(const struct keeper *keeper)
{
    return keeper->lost;
}

bool keeper_is_idle(const struct keeper *keeper)
{
    return !keeper->busy;
}

bool keeper_is_settled(const struct keeper *keeper)
{
    return !keeper->busy && !keeper->unsure;
}

void keeper_mend(struct keeper *keeper)
{
    if (keeper->unsure) {
        keeper_want(keeper, &keeper->writing);
    }
}

void keeper_close(struct keeper *keeper)
{
    state_dir_close(&keeper->dir);
}
