/* state_dir.h - the state directory of one process: who it is to the store, and its high-water mark.
 *
 * Two files: "lock", held with flock(2) as long as the directory is open, so that a process that opens it
 * knows that the one before is dead (it holds the pid, for people; the directory itself is flocked too, so
 * that deleting "lock" lets nobody in); and "high-water", replaced atomically (written beside it as
 * "high-water.new", fsync, rename, fsync of the directory), with a checksum.
 *
 * The high-water file says: no token above `floor` was ever handed out by this store as long as this
 * directory counted. It is written AHEAD in blocks, before any token of the block may be granted, so that no
 * grant waits for an fsync. `members` is the list of everybody who has a part in the store, as of `roll`: a
 * lease service admits a restarted store only together with all lease services that it lists
 * (docs/decisions/0009).
 *
 * Nothing here is safe against two threads at once; state_dir_write() may block for as long as the disk does
 * and is meant for loop_job. A process that writes must ignore SIGXFSZ, or a limit on file sizes kills it
 * instead of making a write fail. */
#ifndef PAWL_SHARED_RECORD_STATE_DIR_H
#define PAWL_SHARED_RECORD_STATE_DIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MEMBER_ID_CHARS = 16,
    STORE_ID_CHARS = 24,
    STATE_MEMBERS_MAX = 256,
    STATE_DOUBTS_MAX = 256, /* as DOUBTS_MAX in shared/member/scripts/lib/store.lua */
    STATE_PATH_MAX = 1024,
    STATE_WHY_MAX = 1280
};

#define HIGH_WATER_MAX 999999999999999 /* no floor, epoch or roll is above it */

enum member_role { MEMBER_LEASE, MEMBER_GATEWAY, MEMBER_DOUBT };

/* Ids are exactly so many characters of [A-Za-z0-9_-], and a NUL: what random_text() makes. */
struct state_member {
    enum member_role role;
    char id[MEMBER_ID_CHARS + 1], incarnation[MEMBER_ID_CHARS + 1];
    int64_t store_epoch; /* of a doubt, 0 to HIGH_WATER_MAX: the epoch that began it; else 0 */
};

/* A fresh id of a member, and a NUL; it does not begin with '-', which a command would take for a flag. */
void member_id_make(char id[MEMBER_ID_CHARS + 1]);

/* What high-water holds. */
struct high_water {
    char member[MEMBER_ID_CHARS + 1]; /* this directory's id, made once, kept for ever */
    char store[STORE_ID_CHARS + 1];   /* the store that it belongs to; "": none yet */
    int64_t floor;                    /* 0 to HIGH_WATER_MAX */
    int64_t epoch;                    /* highest epoch it has been admitted in; 0: none */
    int64_t roll;                     /* of the list; 0: none yet */
    unsigned member_count;
    struct state_member members[STATE_MEMBERS_MAX]; /* no id twice */
    /* Gateways that may have sent what the store has lost (lease/scripts/admit.lua): no incarnation of one
     * twice. They belong to the list, and are written and told with it. */
    unsigned doubt_count;
    struct state_member doubts[STATE_DOUBTS_MAX];
};

/* One version of the high-water file, to notice another in its place. The inode alone does not tell: ext4
 * gives that of a deleted file to the next one, and cp writes into the file that is there. */
struct state_file {
    uint64_t inode;
    int64_t bytes, modified_ns; /* size, and CLOCK_REALTIME of its last change */
};

struct state_dir {
    char path[STATE_PATH_MAX];
    int dir_fd, lock_fd;     /* -1: not open */
    struct state_file water; /* the high-water file as last written or read */
};

enum state_open {
    STATE_OPEN,    /* read; water is what it holds, and durable: what was read outlives a power cut */
    STATE_FRESH,   /* there was none: it was made durably, with a new member id and nothing else */
    STATE_IN_USE,  /* another process (or another state_dir of this one) holds the lock */
    STATE_DAMAGED, /* no regular file, without its checksum, or of a newer version; it is left as it is */
    STATE_FAILED   /* cannot be made, opened, read, written: why has errno's text */
};

/* path: NULL or "" means the default: $STATE_DIRECTORY (the first of a colon-separated list), else
 * $XDG_STATE_HOME/pawl, else $HOME/.local/state/pawl; an empty variable counts as unset, a relative
 * $XDG_STATE_HOME too (the XDG base directory specification asks for that), and a relative $STATE_DIRECTORY
 * is refused. A relative path stays relative: who uses it never changes the working directory. Writes the
 * path, without slashes at its end; NULL, or what is wrong (a static text, out is then not to be used). */
const char *state_dir_path(const char *path, char out[STATE_PATH_MAX]);

/* Makes the directory that is not there (mode 0700; parents 0755) and fsyncs the parent of each that is made.
 * path as state_dir_path() writes it. false: errno. state_dir_open() does it by itself. */
bool state_dir_make(const char *path);

/* Makes the directory if need be, locks it, reads it. path as in state_dir_path().
 * why: a sentence for people, with the path, for every end but OPEN and FRESH, else "". After OPEN and FRESH
 * the caller owes state_dir_close(); after the others dir is closed and nothing in water is to be used. */
enum state_open state_dir_open(struct state_dir *dir, const char *path, struct high_water *water,
                               char why[STATE_WHY_MAX]);
/* Reads without the lock and without making anything (pawl store ...): OPEN (of what was read, not that it is
 * durable), FRESH (there is none; water is all zero), DAMAGED, FAILED. */
enum state_open state_dir_peek(const char *path, struct high_water *water, char why[STATE_WHY_MAX]);

/* Durable when it returns true: file and directory are fsynced. false: why says what failed, and the file of
 * before stands (or, after a failed fsync of the directory, perhaps the new one: both are sound, the caller
 * must not count on the new). A failed fsync is never tried again on the same file: the next call writes a
 * new one. A high-water file that somebody deleted or replaced is written again; a directory that is no
 * longer the one at path, or whose lock is no longer ours, is not written to: false, and so is every later
 * call. */
bool state_dir_write(struct state_dir *dir, const struct high_water *water, char why[STATE_WHY_MAX]);

/* Whether the file that was last written or read is still the one in the directory, the lock still ours, and
 * the directory still the one at path: false after somebody has deleted, replaced or changed any of them.
 * Cheap: five calls of stat. */
bool state_dir_is_there(const struct state_dir *dir);

/* Gives the lock back; the files stay. Harmless on one that is not open (both fds -1). */
void state_dir_close(struct state_dir *dir);

/* -- high_water.c: the file as text
 *
 *   pawl high-water 1                "2" with a doubt: a release that knows of none must not lose it
 *   id MEMBER
 *   store STORE                      "none": none yet
 *   floor N
 *   epoch N
 *   roll N
 *   member lease ID INCARNATION      or "member gateway ..."; one line for each member
 *   doubt GATEWAY INCARNATION EPOCH  one line for each
 *   checksum SUM                     digest_text() of all bytes in front of this line
 *
 * Each line ends with a line feed, numbers have no leading zeros; what is parsed is printed as the same
 * bytes. */

enum { HIGH_WATER_VERSION = 2, HIGH_WATER_TEXT_MAX = 512 + (STATE_MEMBERS_MAX + STATE_DOUBTS_MAX) * 64 };

/* Whether every part is within its limits and nobody is listed twice. */
bool high_water_is_sound(const struct high_water *water);
/* Whether all that is written of them is the same. Not memcmp(): there is padding, and a rest of the list. */
bool high_water_equal(const struct high_water *a, const struct high_water *b);
/* Parses text of len bytes. false: damaged, water is untouched. */
bool high_water_parse(const char *text, size_t len, struct high_water *water);
/* The version that the first line names, whatever follows; 0 if the text does not begin with such a line. */
int64_t high_water_version(const char *text, size_t len);
/* Writes it with its checksum line, without a NUL; the length, or 0 if water is not sound. size must be at
 * least HIGH_WATER_TEXT_MAX. */
size_t high_water_print(const struct high_water *water, char *text, size_t size);

#endif
