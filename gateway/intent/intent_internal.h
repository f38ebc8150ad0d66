/* intent_internal.h - what recovery.c shows to its tests. Nobody else includes it. */
#ifndef PAWL_GATEWAY_INTENT_INTERNAL_H
#define PAWL_GATEWAY_INTENT_INTERNAL_H

#include "gateway/intent/intent.h"
#include "shared/member/state_file.h"

enum recovery_state {
    RECOVERY_IDLE,
    RECOVERY_AGAIN,
    RECOVERY_LEAVING,
    RECOVERY_TAKING,
    RECOVERY_CLOSING,
    RECOVERY_STATES
};
bool recovery_allows(enum recovery_state from, enum recovery_state to);

/* -- the incarnations of this gateway that were before this one, and which are certainly dead.
 *
 * A file "incarnations" in the state directory has a line for each start, the newest last, at most
 * INCARNATIONS_MAX: "INCARNATION BOOT_ID" (random(4), /proc/sys/kernel/random/boot_id). The process that
 * holds the directory's lock knows that those which held it before are dead, if the lock is a real one: on a
 * file system that is shared between machines it may not be. Two processes under one kernel (the same
 * boot_id) see the same lock; so only incarnations of this very boot are proven dead. A copy of the directory
 * has a lock of its own, and those that its file names may live: the second half of the BOOT_ID is the
 * directory's inode and device. After a reboot nothing is proven: `pawl resolve --gateway ID --dead`. One
 * that ended in order, with nothing open, has said so itself in place of its boot_id: what it had sent has
 * ended, whatever a store loses. A file that cannot be read as that is begun anew, with INCARNATION_LOST in
 * place of those that stood there. */
enum { INCARNATIONS_MAX = 64, BOOT_ID_CHARS = 36 };

/* Whichever it was: of MEMBER_ID_CHARS, as that of an unknown store (api/cli/scripts/recover.lua).
 */
#define INCARNATION_LOST "whichever_it_was"

/* Bits, of more than one to choose by. */
enum incarnation_is { INCARNATION_DEAD = 1, INCARNATION_ENDED = 2, INCARNATION_UNPROVEN = 4 };

/* Those before this one. */
struct incarnations {
    unsigned count;
    bool has_boot; /* false: the boot_id could not be read, and nobody is proven dead by it */
    struct incarnation {
        enum incarnation_is is;
        char id[MEMBER_ID_CHARS + 1];
    } former[INCARNATIONS_MAX];
};

/* Reads those of before, and adds this one durably; once more, too. dir_fd: of the state directory, whose
 * lock this process holds; -1: there is none, and none was before. False: it could not be written (errno),
 * and of none anything is proven. May block for as long as the disk does. */
bool incarnations_begin(struct incarnations *incarnations, int dir_fd, const char *incarnation);

/* Of such a file's text, for the test: dead are those with this boot_id. False: a line that is none, or too
 * many; the whole file is worth nothing then, and INCARNATION_LOST is the only one. */
bool incarnations_parse(struct incarnations *incarnations, const char *text, size_t len, const char *boot_id);

#endif
