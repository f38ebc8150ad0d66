/* state_file.h - the state directory of one process: its id, and one record that is never ahead of the disk.
 *
 * Two files: "lock", held with flock(2) as long as the directory is open, so that a process that opens it
 * knows that the one before is dead (it holds the pid, for people; the directory itself is flocked too, so
 * that deleting "lock" lets nobody in); and "high-water", replaced atomically (written beside it as
 * "high-water.new", fsync, rename, fsync of the directory), with a checksum.
 *
 * The record says: no token above `floor` was ever granted by this store as long as this directory counted.
 * It is written AHEAD in blocks, before any token of the block may be granted, so that no grant waits for an
 * fsync. `members` lists all members of the store, as of `members_version`: a lease service admits a
 * restarted store only together with all lease services that it lists (docs/decisions/0009).
 *
 *   state_file_want   the record that is wanted on the disk; a thread of the loop's pool writes it
 *   recorded          what is durable; only this goes to the store, with the next heartbeat
 *
 * One write at a time. After a failure each wish (each heartbeat) tries again, on a new file. A gateway that
 * was given no directory has `recorded` in memory only. One thread uses a state_file. A process that writes
 * must ignore SIGXFSZ, or a limit on file sizes kills it instead of making a write fail. */
#ifndef PAWL_SHARED_STATE_FILE_H
#define PAWL_SHARED_STATE_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "shared/loop/loop.h"
#include "shared/text/bytes.h"

enum {
    MEMBER_ID_CHARS = 16,
    STORE_ID_CHARS = 24,
    STATE_MEMBERS_MAX = 256,
    STATE_DOUBTS_MAX = 256,   /* as DOUBTS_MAX in shared/member/scripts/lib/store.lua */
    STATE_REGISTRARS_MAX = 6, /* 5, and one that comes before another goes */
    STATE_VERSION = 4,
    STATE_INSYNC_MAX = 1664, /* five nodes with names of 264 bytes */
    STATE_LINE_MAX = 64,
    STATE_DIGITS_MAX = 15, /* of STATE_NUMBER_MAX */
    STATE_TEXT_MAX = 512 + STATE_INSYNC_MAX +
                     (STATE_MEMBERS_MAX + STATE_DOUBTS_MAX + STATE_REGISTRARS_MAX) * STATE_LINE_MAX,
    STATE_PATH_MAX = 1024,
    STATE_WHY_MAX = 1280
};

#define STATE_NUMBER_MAX 999999999999999 /* no floor, epoch or version of the list is above it */

enum member_role { MEMBER_LEASE, MEMBER_GATEWAY };

/* The list of members, registrars, nodes and doubts, as the store has it and the file keeps it: lines with a
 * comma between, in the order of their kinds. Ids are exactly so many characters of [A-Za-z0-9_-], what
 * random_text() makes; numbers are 0 to STATE_NUMBER_MAX. */
enum state_kind {
    STATE_MEMBER,    /* "lease ID INCARNATION", "gateway ID INCARNATION": no id twice */
    STATE_REGISTRAR, /* "registrar ID ROLL FLOOR": of these lease services a majority must have recorded what
                      * counts (docs/decisions/0044); how far it was when the store last heard of it */
    STATE_INSYNC,    /* "insync EPOCH GENERATION STREAM/COPIES NODE...", in one word or several, of what can
                      * be printed: the nodes of Redis that may take over (lib/insync.lua) */
    STATE_DOUBT,     /* "doubt GATEWAY INCARNATION EPOCH": it may have sent what the store has lost
                      * (lease/scripts/admit.lua), since the epoch; no incarnation of one twice */
    STATE_KINDS
};
/* STATE_KINDS: it is none of these. */
enum state_kind state_line_kind(struct bytes line);

/* The text of the file; what is parsed is printed as the same bytes.
 *
 *   pawl high-water 1                "2" with a doubt, "3" with a registrar, "4" with a promise or a set: a
 *                                    release that knows of none
 *                                    must not lose it
 *   id MEMBER
 *   store STORE                      "none": none yet
 *   floor N
 *   epoch N
 *   roll N
 *   promise EPOCH GATE               or no such line
 *   member lease ID INCARNATION      and so on: a line for each of the list, "member " in front of members
 *   checksum SUM                     digest_text() of all bytes in front of this line */
struct state_record {
    char member[MEMBER_ID_CHARS + 1]; /* this directory's id, made once, kept for ever */
    char store[STORE_ID_CHARS + 1];   /* the store that it belongs to; "": none yet */
    int64_t floor;                    /* 0 to STATE_NUMBER_MAX */
    int64_t epoch;                    /* highest epoch it has been admitted in; 0: none */
    int64_t members_version;          /* of the list; 0: none yet */
    /* It has reported to this gate, before the epoch `promised` began, and acts in none that began before;
     * 0, "": to none. */
    int64_t promised;
    char gate[MEMBER_ID_CHARS + 1];
    char list[STATE_TEXT_MAX];
};

/* Puts one more behind the list; false: there is no room. */
bool state_list_add(char list[STATE_TEXT_MAX], struct bytes line);

/* Whether every part is within its limits and nothing is listed twice. */
bool state_record_is_sound(const struct state_record *record);
/* Whether all that is written of them is the same. Not memcmp(): behind the texts there may be anything. */
bool state_record_equal(const struct state_record *a, const struct state_record *b);
/* Parses text of len bytes. false: damaged, record is untouched. */
bool state_record_parse(const char *text, size_t len, struct state_record *record);
/* Writes it with its checksum line, without a NUL; the length, or 0 if it is not sound. */
size_t state_record_print(const struct state_record *record, char text[STATE_TEXT_MAX]);

/* One version of the high-water file, to notice another in its place. The inode alone does not show that:
 * ext4 gives that of a deleted file to the next one, and cp writes into the file that is there. */
struct state_version {
    uint64_t inode;
    int64_t bytes, modified_ns; /* size, and CLOCK_REALTIME of its last change */
};

struct state_dir {
    char path[STATE_PATH_MAX];
    int fd, lock_fd;              /* -1: not open */
    struct state_version version; /* of the high-water file as last written or read */
};

struct state_file {
    struct state_record recorded;
    struct state_dir dir; /* dir.fd -1: none */
    bool is_busy;         /* a write is under way */
    bool is_lost;         /* the directory is gone or was replaced: the floor is nowhere but in memory */
    /* Called on the loop's thread after a write has ended well. */
    void (*wrote)(struct state_file *file);
    /* its own */
    struct loop_job job;
    struct loop *loop;
    struct state_record writing;
    bool is_unsure;
    char trouble[STATE_WHY_MAX]; /* "": none */
    /* of the pool's thread while busy: apart from the flags, which the loop's thread reads meanwhile */
    char writing_trouble[STATE_WHY_MAX];
    int written, replaced; /* replaced: it failed, but the file is no longer the one of before */
};

/* given: NULL or "" means the default: $STATE_DIRECTORY (the first of a colon-separated list), else
 * $XDG_STATE_HOME/pawl, else $HOME/.local/state/pawl; an empty variable counts as unset, a relative
 * $XDG_STATE_HOME too (the XDG base directory specification asks for that), and a relative $STATE_DIRECTORY
 * is refused. A relative path stays relative: its user never changes the working directory. Writes the path,
 * without slashes at its end; NULL, or what is wrong (a static text, path is then not to be used). */
const char *state_path(const char *given, char path[STATE_PATH_MAX]);

enum state_open {
    STATE_OPEN,    /* recorded is what it holds, and durable: what was read outlives a power cut */
    STATE_FRESH,   /* there was none: it was made durably, with a new member id and nothing else */
    STATE_IN_USE,  /* another process (or another state_file of this one) holds the lock */
    STATE_DAMAGED, /* no regular file, without its checksum, or of a newer version; it is left as it is */
    STATE_FAILED   /* cannot be made, opened, read, written: why has errno's text */
};

/* Makes the directory if need be (mode 0700; parents 0755; the parent of each is fsynced), locks it, reads
 * it. path: as state_path() writes it. why: a sentence for people, with the path, for every end but OPEN and
 * FRESH, else "". In every case state_file_close() may be called. */
enum state_open state_file_open(struct state_file *file, const char *path, char why[STATE_WHY_MAX]);
/* Without a directory: a new id, in memory. */
void state_file_none(struct state_file *file);
/* Reads without the lock and without making anything (pawl store ...): OPEN (of what was read, not that it is
 * durable), FRESH (there is none; record is all zero), DAMAGED, FAILED. */
enum state_open state_file_peek(const char *path, struct state_record *record, char why[STATE_WHY_MAX]);

/* Writes on the caller's thread, for as long as the disk takes; recorded stays as it is. Durable when it
 * returns true: file and directory are fsynced. false: why says what failed, and the file of before stands
 * (or, after a failed fsync of the directory, perhaps the new one: both are sound, the caller must not count
 * on the new). A failed fsync is never tried again on the same file: the next call writes a new one. A
 * high-water file that was deleted or replaced is written again; a directory that is no longer the one at
 * path, or whose lock is no longer ours, is not written to: false, and so is every later call. */
bool state_file_write(struct state_file *file, const struct state_record *record, char why[STATE_WHY_MAX]);

/* The loop that writes wait on. Before the first wish. */
void state_file_start(struct state_file *file, struct loop *loop, void (*wrote)(struct state_file *));
/* Wants this on disk; copies it. Nothing happens when it is recorded already or a write is under way. */
void state_file_want(struct state_file *file, const struct state_record *record);
/* Whether it is certain what the disk says: no write is under way, and none has failed half-way since the
 * last that ended well. */
bool state_file_is_settled(const struct state_file *file);
/* Writes once more what failed half-way, if anything did: for times in which the store has no wishes. */
void state_file_mend(struct state_file *file);
/* Whether the file that was last written or read is still the one in the directory, the lock still ours, and
 * the directory still the one at path. Cheap: five calls of stat. Not during a write. */
bool state_file_is_there(const struct state_file *file);
/* NULL, or what is wrong with the directory: it is gone, was replaced, or cannot be written; looks at it. A
 * directory that was lost stays lost. */
const char *state_file_trouble(struct state_file *file);
/* Gives the lock back; the files stay. Harmless when it is not open. */
void state_file_close(struct state_file *file);

#endif
