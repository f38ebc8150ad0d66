/* keeper.h - keeps what the state directory says in step with what the store wants recorded.
 *
 * The member tells it what it wants on disk; a thread of the loop's pool writes it; only then is it
 * "recorded", and told to the store by the next pulse. One write at a time; what is wanted meanwhile goes
 * into the next. After a failure it tries again with every wish (each pulse), on a new file.
 *
 * Without a directory (a gateway that was given none) what is wanted is recorded at once, in memory only. */
#ifndef PAWL_SHARED_RECORD_KEEPER_H
#define PAWL_SHARED_RECORD_KEEPER_H

#include "shared/loop/loop.h"
#include "shared/member/state_dir.h"

struct keeper {
    struct state_dir dir;
    bool has_dir, is_fresh; /* fresh: the directory was empty when it was opened */
    struct high_water recorded;
    /* Told on the loop's thread after a write has ended well; set by the owner. */
    void (*wrote)(struct keeper *keeper);
    /* the keeper's own */
    struct loop_job job;
    struct loop *loop;
    struct high_water writing;
    bool busy, lost, unsure;
    char trouble[STATE_WHY_MAX]; /* "": none */
    /* the other thread's while busy: apart from the flags, which this one reads meanwhile */
    char writing_trouble[STATE_WHY_MAX];
    int written, replaced; /* replaced: it failed, but the file is no longer the one of before */
};

/* Opens (and so locks) the directory at path; with path NULL: none, a fresh id. False: why has the sentence.
 */
bool keeper_open(struct keeper *keeper, const char *path, char why[STATE_WHY_MAX]);
/* The loop that writes wait on. Before the first wish. */
void keeper_start(struct keeper *keeper, struct loop *loop, void (*wrote)(struct keeper *));
/* Wants this on disk; copies it. Nothing happens when it is recorded already or a write is under way. */
void keeper_want(struct keeper *keeper, const struct high_water *water);
/* NULL, or what is wrong with the directory: it is gone, was replaced, or cannot be written; looks at it. A
 * directory that was lost stays lost: its floor is nowhere but in memory. */
const char *keeper_trouble(struct keeper *keeper);
bool keeper_is_lost(const struct keeper *keeper);
/* Whether no write is under way. */
bool keeper_is_idle(const struct keeper *keeper);
/* Whether it is certain what the disk says: no write is under way, and none has failed half-way since the
 * last that ended well. */
bool keeper_is_settled(const struct keeper *keeper);
/* Writes once more what failed half-way, if anything did: for times in which the store has no wishes. */
void keeper_mend(struct keeper *keeper);
void keeper_close(struct keeper *keeper);

#endif
