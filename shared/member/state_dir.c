/* state_dir.c - the state directory of one process: its lock and its high-water file.
 *
 *   state_dir_open    path_set, dir_enter, lock_take, water_read, and fresh_write when there was nothing to
 * read state_dir_peek    path_set, open, water_read state_dir_write   new_write, rename, fsync of the
 * directory */
#include "shared/member/state_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shared/text/bytes.h"
#include "shared/text/read_all.h"
#include "shared/token/random.h"

static const char lock_name[] = "lock", water_name[] = "high-water", new_name[] = "high-water.new";

enum { PID_LINE = 16, DIR_FLAGS = O_RDONLY | O_DIRECTORY | O_CLOEXEC };

/* No link is followed, and neither a pipe nor a terminal under the name of a file holds the process up. */
enum { FILE_FLAGS = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY };

/* -- sentences */

/* errno says what went wrong. */
static enum state_open dir_tell(const struct state_dir *dir, const char *what, char why[STATE_WHY_MAX])
{
    snprintf(why, STATE_WHY_MAX, "The state directory %s cannot be %s: %s.", dir->path, what,
             strerrordesc_np(errno));
    return STATE_FAILED;
}

static enum state_open file_tell(const struct state_dir *dir, const char *name, const char *what,
                                 char why[STATE_WHY_MAX])
{
    snprintf(why, STATE_WHY_MAX, "%s/%s cannot be %s: %s.", dir->path, name, what, strerrordesc_np(errno));
    return STATE_FAILED;
}

static enum state_open damage_tell(const struct state_dir *dir, const char *what, char why[STATE_WHY_MAX])
{
    snprintf(
        why, STATE_WHY_MAX,
        "%s/%s is damaged (%s) and was left as it is. Move the directory away and start again: the process "
        "joins anew if a lease service vouches for it; else pawl store recover.",
        dir->path, water_name, what);
    return STATE_DAMAGED;
}

/* -- the directory */

static enum state_open dir_enter(struct state_dir *dir, char why[STATE_WHY_MAX])
{
    dir->dir_fd = open(dir->path, DIR_FLAGS);
    if (dir->dir_fd < 0 && errno == ENOENT) {
        if (!state_dir_make(dir->path))
            return dir_tell(dir, "made", why);
        dir->dir_fd = open(dir->path, DIR_FLAGS);
    }
    return dir->dir_fd >= 0 ? STATE_OPEN : dir_tell(dir, "opened", why);
}

/* -- the lock */

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* The open file pins its inode, so that no other can have the same. */
static bool is_locked(const struct state_dir *dir)
{
    struct stat ours, there;

    return fstat(dir->lock_fd, &ours) == 0 && S_ISREG(ours.st_mode) &&
           fstatat(dir->dir_fd, lock_name, &there, AT_SYMLINK_NOFOLLOW) == 0 && is_same(&ours, &there);
}

/* The process that wrote itself into the lock; 0: nobody legible. */
static long lock_owner(int lock_fd)
{
    char line[PID_LINE + 1];
    ssize_t len = pread(lock_fd, line, PID_LINE, 0);
    long pid;

    line[len > 0 ? len : 0] = '\0';
    pid = strtol(line, NULL, 10);
    return pid > 0 ? pid : 0;
}

static enum state_open lock_refuse(const struct state_dir *dir, char why[STATE_WHY_MAX])
{
    char who[40] = "another process";
    long pid;

    if (errno != EWOULDBLOCK)
        return file_tell(dir, lock_name, "locked", why);
    pid = lock_owner(dir->lock_fd);
    if (pid > 0)
        snprintf(who, sizeof(who), "process %ld", pid);
    snprintf(why, STATE_WHY_MAX, "The state directory %s is in use by %s; each process needs its own.",
             dir->path, who);
    return STATE_IN_USE;
}

/* Who finds the lock file deleted makes another one and locks that: the lock on the directory keeps it out
 * all the same. Where directories cannot be locked (NFS takes LOCK_EX only on what is open for writing), the
 * lock file is all there is, and state_dir_is_there() tells that it is another one. */
static bool dir_is_in_use(const struct state_dir *dir)
{
    return flock(dir->dir_fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

static enum state_open lock_take(struct state_dir *dir, char why[STATE_WHY_MAX])
{
    dir->lock_fd = openat(dir->dir_fd, lock_name, O_RDWR | O_CREAT | FILE_FLAGS, 0600);
    if (dir->lock_fd < 0)
        return file_tell(dir, lock_name, "opened", why);
    if (flock(dir->lock_fd, LOCK_EX | LOCK_NB) != 0 || dir_is_in_use(dir))
        return lock_refuse(dir, why);
    if (!is_locked(dir)) {
        snprintf(why, STATE_WHY_MAX, "%s/%s is not a regular file, or was replaced just now.", dir->path,
                 lock_name);
        return STATE_FAILED;
    }
    /* Always as long, so that nothing of a longer one is left. On a full disk there is no pid, but a lock. */
    dprintf(dir->lock_fd, "%*ld\n", PID_LINE - 1, (long)getpid());
    return STATE_OPEN;
}

/* -- reading */

static struct state_file file_of(const struct stat *is)
{
    return (struct state_file){is->st_ino, is->st_size,
                               is->st_mtim.tv_sec * 1000000000LL + is->st_mtim.tv_nsec};
}

static enum state_open water_understand(const struct state_dir *dir, struct bytes text,
                                        struct high_water *water, char why[STATE_WHY_MAX])
{
    int64_t version = high_water_version(text.at, text.len);

    if (version > HIGH_WATER_VERSION) {
        snprintf(why, STATE_WHY_MAX,
                 "%s/%s is of version %" PRId64
                 ", this release knows version %d: start the release that wrote it.",
                 dir->path, water_name, version, HIGH_WATER_VERSION);
        return STATE_DAMAGED;
    }
    if (text.len == 0)
        return damage_tell(dir, "it is empty", why);
    if (text.len > HIGH_WATER_TEXT_MAX)
        return damage_tell(dir, "it is too long", why);
    return high_water_parse(text.at, text.len, water)
               ? STATE_OPEN
               : damage_tell(dir, "its text and its checksum do not agree", why);
}

/* What was read may be renamed but not yet durable, when the process before was killed in between: then it is
 * made so before anybody builds on it. Who only peeks has no lock and builds nothing. */
static bool is_settled(const struct state_dir *dir, int fd)
{
    return dir->lock_fd < 0 || (fsync(fd) == 0 && fsync(dir->dir_fd) == 0);
}

static enum state_open water_take(struct state_dir *dir, int fd, struct high_water *water,
                                  char why[STATE_WHY_MAX])
{
    char text[HIGH_WATER_TEXT_MAX + 1]; /* one more, to see that it is too long */
    struct stat is;
    ssize_t len;

    if (fstat(fd, &is) != 0)
        return file_tell(dir, water_name, "read", why);
    if (!S_ISREG(is.st_mode))
        return damage_tell(dir, "it is not a regular file", why);
    len = read_all(fd, text, sizeof(text));
    if (len < 0)
        return file_tell(dir, water_name, "read", why);
    if (!is_settled(dir, fd))
        return file_tell(dir, water_name, "synced to the disk", why);
    dir->water = file_of(&is);
    return water_understand(dir, (struct bytes){text, (size_t)len}, water, why);
}

static enum state_open water_read(struct state_dir *dir, struct high_water *water, char why[STATE_WHY_MAX])
{
    int fd = openat(dir->dir_fd, water_name, O_RDONLY | FILE_FLAGS);
    enum state_open end;

    if (fd < 0 && errno == ELOOP)
        return damage_tell(dir, "it is a symbolic link", why);
    if (fd < 0)
        return errno == ENOENT ? STATE_FRESH : file_tell(dir, water_name, "opened", why);
    end = water_take(dir, fd, water, why);
    close(fd);
    return end;
}

/* -- writing */

static enum state_open fresh_write(struct state_dir *dir, struct high_water *water, char why[STATE_WHY_MAX])
{
    member_id_make(water->member);
    return state_dir_write(dir, water, why) ? STATE_FRESH : STATE_FAILED;
}

/* A place of its own, that tests/thread.supp names. */
static bool file_close(int fd)
{
    return close(fd) == 0;
}

/* A new file each time: after a failed fsync the kernel takes the pages of the old one for written, and the
 * next fsync of it would succeed for nothing (fsync(2), "EIO"). */
static bool new_write(const struct state_dir *dir, struct bytes text, struct state_file *made,
                      char why[STATE_WHY_MAX])
{
    int fd = openat(dir->dir_fd, new_name, O_WRONLY | O_CREAT | O_EXCL | FILE_FLAGS, 0600);
    struct stat is;
    const char *failed = fd < 0                 ? "made"
                         : !write_all(fd, text) ? "written"
                         : fsync(fd) != 0       ? "synced to the disk"
                         : fstat(fd, &is) != 0  ? "looked at"
                                                : NULL;

    if (failed != NULL)
        file_tell(dir, new_name, failed, why);
    else
        *made = file_of(&is);
    if (fd >= 0 && !file_close(fd) && failed == NULL) {
        failed = "closed";
        file_tell(dir, new_name, failed, why);
    }
    return failed == NULL;
}

static bool is_ours(const struct state_dir *dir)
{
    struct stat ours, there;

    return fstat(dir->dir_fd, &ours) == 0 && stat(dir->path, &there) == 0 && is_same(&ours, &there) &&
           is_locked(dir);
}

bool state_dir_write(struct state_dir *dir, const struct high_water *water, char why[STATE_WHY_MAX])
{
    char text[HIGH_WATER_TEXT_MAX];
    size_t len = high_water_print(water, text, sizeof(text));
    struct state_file made;

    why[0] = '\0';
    if (len == 0 || !is_ours(dir)) {
        snprintf(why, STATE_WHY_MAX, "The state directory %s is not written to: %s.", dir->path,
                 len == 0 ? "what was to be written is not sound"
                          : "it or its lock was deleted, moved or replaced while it was open");
        return false;
    }
    unlinkat(dir->dir_fd, new_name, 0); /* what a crash has left; if it cannot be, O_EXCL says so */
    if (!new_write(dir, (struct bytes){text, len}, &made, why)) {
        unlinkat(dir->dir_fd, new_name, 0);
        return false;
    }
    if (renameat(dir->dir_fd, new_name, dir->dir_fd, water_name) != 0) {
        file_tell(dir, new_name, "renamed", why);
        unlinkat(dir->dir_fd, new_name, 0);
        return false;
    }
    dir->water = made;
    if (fsync(dir->dir_fd) != 0) {
        dir_tell(dir, "synced to the disk", why);
        return false;
    }
    return true;
}

bool state_dir_is_there(const struct state_dir *dir)
{
    struct state_file there;
    struct stat is;

    if (!is_ours(dir) || fstatat(dir->dir_fd, water_name, &is, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(is.st_mode))
        return false;
    there = file_of(&is);
    return there.inode == dir->water.inode && there.bytes == dir->water.bytes &&
           there.modified_ns == dir->water.modified_ns;
}

/* -- open and peek */

static enum state_open path_set(struct state_dir *dir, const char *path, struct high_water *water,
                                char why[STATE_WHY_MAX])
{
    const char *wrong;

    memset(dir, 0, sizeof(*dir));
    memset(water, 0, sizeof(*water));
    dir->dir_fd = dir->lock_fd = -1;
    why[0] = '\0';
    wrong = state_dir_path(path, dir->path);
    if (wrong == NULL)
        return STATE_OPEN;
    snprintf(why, STATE_WHY_MAX, "The state directory cannot be found: %s.", wrong);
    return STATE_FAILED;
}

enum state_open state_dir_open(struct state_dir *dir, const char *path, struct high_water *water,
                               char why[STATE_WHY_MAX])
{
    enum state_open end = path_set(dir, path, water, why);

    if (end == STATE_OPEN)
        end = dir_enter(dir, why);
    if (end == STATE_OPEN)
        end = lock_take(dir, why);
    if (end == STATE_OPEN)
        end = water_read(dir, water, why);
    if (end == STATE_FRESH)
        end = fresh_write(dir, water, why);
    if (end != STATE_OPEN && end != STATE_FRESH)
        state_dir_close(dir);
    return end;
}

enum state_open state_dir_peek(const char *path, struct high_water *water, char why[STATE_WHY_MAX])
{
    struct state_dir dir;
    enum state_open end = path_set(&dir, path, water, why);

    if (end != STATE_OPEN)
        return end;
    dir.dir_fd = open(dir.path, DIR_FLAGS);
    if (dir.dir_fd < 0)
        return errno == ENOENT ? STATE_FRESH : dir_tell(&dir, "opened", why);
    end = water_read(&dir, water, why);
    state_dir_close(&dir);
    return end;
}

void state_dir_close(struct state_dir *dir)
{
    if (dir->lock_fd >= 0)
        close(dir->lock_fd);
    if (dir->dir_fd >= 0)
        close(dir->dir_fd);
    dir->dir_fd = dir->lock_fd = -1;
}
