/* state_file.c - the state directory of one process: its lock, and its record on the disk.
 *
 *   state_file_open    dir_enter, lock_take, record_read; nothing there: a fresh record is written
 *   state_file_write   new_write, rename, fsync of the directory
 *   state_file_want    a wish that is not recorded, and no write under way      suspended
 *   job_write          on a thread of the pool: state_file_write
 *   job_wrote          on the loop's thread: recorded, or trouble */
#include "shared/member/state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shared/text/ascii.h"
#include "shared/text/bytes.h"
#include "shared/text/read_all.h"
#include "shared/token/random.h"

_Static_assert(STATE_NUMBER_MAX == 999999999999999, "STATE_DIGITS_MAX digits are the limit");
_Static_assert(sizeof("member gateway  \n") - 1 + 2 * MEMBER_ID_CHARS <= STATE_LINE_MAX &&
                   sizeof("registrar   \n") - 1 + MEMBER_ID_CHARS + 2 * STATE_DIGITS_MAX <= STATE_LINE_MAX &&
                   sizeof("doubt   \n") - 1 + 2 * MEMBER_ID_CHARS + STATE_DIGITS_MAX <= STATE_LINE_MAX,
               "every line fits");

static const char lock_name[] = "lock", record_name[] = "high-water", new_name[] = "high-water.new";

enum { PID_LINE = 16, DIR_FLAGS = O_RDONLY | O_DIRECTORY | O_CLOEXEC };

/* No link is followed, and neither a pipe nor a terminal under the name of a file holds the process up. */
enum { FILE_FLAGS = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY };

/* -- the record as text: one text for each content, and no other */

static bool is_number(int64_t value)
{
    return value >= 0 && value <= STATE_NUMBER_MAX;
}

static bool is_id(struct bytes text, size_t chars)
{
    return text.len == chars && ascii_is_word(text, BYTES("_-"));
}

/* Of a text with a NUL, which may be missing. */
static bool is_id_text(const char *at, size_t chars)
{
    return is_id((struct bytes){at, strnlen(at, chars + 1)}, chars);
}

/* In the one way to write it. */
static bool is_number_text(struct bytes text)
{
    return bytes_number(text, STATE_DIGITS_MAX) >= 0 && (text.len == 1 || text.at[0] != '0');
}

static bool is_insync(struct bytes text)
{
    if (text.len >= STATE_INSYNC_MAX || text.len < sizeof("insync ") || memcmp(text.at, "insync ", 7) != 0)
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (text.at[i] < ' ' || text.at[i] > '~' || text.at[i] == ',')
            return false;
    return true;
}

enum state_kind state_line_kind(struct bytes line)
{
    static const struct {
        const char *word;
        enum state_kind kind;
        unsigned ids, numbers;
    } forms[] = {{"lease", STATE_MEMBER, 2, 0},
                 {"gateway", STATE_MEMBER, 2, 0},
                 {"registrar", STATE_REGISTRAR, 1, 2},
                 {"doubt", STATE_DOUBT, 2, 1},
                 {NULL, STATE_KINDS, 0, 0}};
    struct bytes rest = line, word = bytes_cut(&rest, ' ');
    unsigned of = 0;
    bool is_sound = true;

    while (forms[of].word != NULL && !bytes_are(word, forms[of].word))
        of++;
    for (unsigned i = 0; i < forms[of].ids; i++)
        is_sound = is_id(bytes_cut(&rest, ' '), MEMBER_ID_CHARS) && is_sound;
    for (unsigned i = 0; i < forms[of].numbers; i++)
        is_sound = is_number_text(bytes_cut(&rest, ' ')) && is_sound;
    if (forms[of].word == NULL)
        return is_insync(line) ? STATE_INSYNC : STATE_KINDS;
    return is_sound && rest.at == NULL ? forms[of].kind : STATE_KINDS;
}

/* A member is listed once, whatever its incarnation; a doubt once for each incarnation. */
static struct bytes line_key(struct bytes line, enum state_kind kind)
{
    (void)bytes_cut(&line, ' ');
    return (struct bytes){line.at, kind == STATE_DOUBT ? 2 * MEMBER_ID_CHARS + 1 : MEMBER_ID_CHARS};
}

static bool is_sound_list(const char *list)
{
    static const unsigned most[STATE_KINDS] = {STATE_MEMBERS_MAX, STATE_REGISTRARS_MAX, 1, STATE_DOUBTS_MAX};
    struct bytes keys[STATE_MEMBERS_MAX > STATE_DOUBTS_MAX ? STATE_MEMBERS_MAX : STATE_DOUBTS_MAX];
    struct bytes rest = bytes_of(list[0] != '\0' ? list : NULL);
    enum state_kind before = STATE_MEMBER;
    unsigned count = 0; /* of this kind */

    while (rest.at != NULL) {
        struct bytes line = bytes_cut(&rest, ',');
        enum state_kind kind = state_line_kind(line);

        count = kind == before ? count : 0;
        if (kind == STATE_KINDS || kind < before || count == most[kind])
            return false;
        keys[count] = line_key(line, kind);
        for (unsigned i = 0; i < count; i++)
            if (bytes_equal(keys[i], keys[count]))
                return false;
        count++;
        before = kind;
    }
    return true;
}

bool state_record_is_sound(const struct state_record *record)
{
    return is_id_text(record->member, MEMBER_ID_CHARS) &&
           (record->store[0] == '\0' || is_id_text(record->store, STORE_ID_CHARS)) &&
           is_number(record->floor) && is_number(record->epoch) && is_number(record->members_version) &&
           is_number(record->promised) &&
           (record->promised == 0 ? record->gate[0] == '\0' : is_id_text(record->gate, MEMBER_ID_CHARS)) &&
           is_sound_list(record->list);
}

bool state_record_equal(const struct state_record *a, const struct state_record *b)
{
    return strcmp(a->member, b->member) == 0 && strcmp(a->store, b->store) == 0 && a->floor == b->floor &&
           a->epoch == b->epoch && a->members_version == b->members_version && a->promised == b->promised &&
           strcmp(a->gate, b->gate) == 0 && strcmp(a->list, b->list) == 0;
}

bool state_list_add(char list[STATE_TEXT_MAX], struct bytes line)
{
    size_t len = strlen(list), room = STATE_TEXT_MAX - len;

    return (size_t)snprintf(list + len, room, "%s%.*s", len > 0 ? "," : "", (int)line.len, line.at) < room;
}

/* A release that knows nothing of a kind must not lose it. */
static int version_needed(const struct state_record *record)
{
    static const int versions[STATE_KINDS + 1] = {1, 3, STATE_VERSION, 2, STATE_VERSION};
    struct bytes rest = bytes_of(record->list);
    int needed = record->promised > 0 ? STATE_VERSION : 1;

    while (rest.len > 0) {
        int version = versions[state_line_kind(bytes_cut(&rest, ','))];

        needed = version > needed ? version : needed;
    }
    return needed;
}

size_t state_record_print(const struct state_record *record, char text[STATE_TEXT_MAX])
{
    struct bytes body = {text, 0}, rest = bytes_of(record->list);
    char sum[DIGEST_TEXT + 1];

    if (!state_record_is_sound(record))
        return 0;
    body.len = (size_t)snprintf(
        text, STATE_TEXT_MAX,
        "pawl high-water %d\nid %s\nstore %s\nfloor %" PRId64 "\nepoch %" PRId64 "\nroll %" PRId64 "\n",
        version_needed(record), record->member, record->store[0] != '\0' ? record->store : "none",
        record->floor, record->epoch, record->members_version);
    if (record->promised > 0)
        body.len += (size_t)snprintf(text + body.len, STATE_TEXT_MAX - body.len, "promise %" PRId64 " %s\n",
                                     record->promised, record->gate);
    while (rest.len > 0) {
        struct bytes line = bytes_cut(&rest, ',');

        body.len += (size_t)snprintf(text + body.len, STATE_TEXT_MAX - body.len, "%s%.*s\n",
                                     state_line_kind(line) == STATE_MEMBER ? "member " : "", (int)line.len,
                                     line.at);
    }
    digest_text(&body, 1, sum);
    return body.len + (size_t)snprintf(text + body.len, STATE_TEXT_MAX - body.len, "checksum %s\n", sum);
}

static void text_take(char *to, size_t size, struct bytes text)
{
    snprintf(to, size, "%.*s", (int)text.len, text.len > 0 ? text.at : "");
}

/* Takes what the line may say; state_record_parse() finds out whether it was written in the one way. */
static void line_read(struct bytes line, struct state_record *record)
{
    struct bytes listed = line, key = bytes_cut(&line, ' '), word = bytes_cut(&line, ' ');
    int64_t *number = bytes_are(key, "floor")     ? &record->floor
                      : bytes_are(key, "epoch")   ? &record->epoch
                      : bytes_are(key, "roll")    ? &record->members_version
                      : bytes_are(key, "promise") ? &record->promised
                                                  : NULL;

    bytes_take(&listed, BYTES("member "));
    if (state_line_kind(listed) != STATE_KINDS)
        state_list_add(record->list, listed);
    else if (bytes_are(key, "id"))
        text_take(record->member, sizeof(record->member), word);
    else if (bytes_are(key, "store") && !bytes_are(word, "none")) /* too short for an id */
        text_take(record->store, sizeof(record->store), word);
    else if (number != NULL)
        *number = bytes_number(word, STATE_DIGITS_MAX);
    if (number == &record->promised)
        text_take(record->gate, sizeof(record->gate), line);
}

/* Likewise, with the checksum. */
bool state_record_parse(const char *text, size_t len, struct state_record *record)
{
    char again[STATE_TEXT_MAX];
    struct state_record read;
    struct bytes rest = {text, len};

    if (len == 0 || len > STATE_TEXT_MAX)
        return false;
    memset(&read, 0, sizeof(read)); /* nothing of the stack in what is copied around */
    while (rest.len > 0)
        line_read(bytes_cut(&rest, '\n'), &read);
    if (state_record_print(&read, again) != len || memcmp(again, text, len) != 0)
        return false;
    memcpy(record, &read, sizeof(read));
    return true;
}

/* The version that the first line names, whatever follows; 0 if the text does not begin with such a line. */
static int64_t version_named(struct bytes text)
{
    struct bytes first = bytes_cut(&text, '\n');

    return text.at != NULL && bytes_take(&first, BYTES("pawl high-water "))
               ? bytes_number(first, STATE_DIGITS_MAX)
               : 0;
}

/* An id does not begin with '-', which a command would take for a flag. */
static void member_id_make(char id[MEMBER_ID_CHARS + 1])
{
    do {
        random_text(id, MEMBER_ID_CHARS);
    } while (id[0] == '-');
}

/* -- sentences; errno says what went wrong */

static enum state_open dir_failed(const struct state_dir *dir, const char *what, char why[STATE_WHY_MAX])
{
    snprintf(why, STATE_WHY_MAX, "The state directory %s cannot be %s: %s.", dir->path, what,
             strerrordesc_np(errno));
    return STATE_FAILED;
}

static enum state_open file_failed(const struct state_dir *dir, const char *name, const char *what,
                                   char why[STATE_WHY_MAX])
{
    snprintf(why, STATE_WHY_MAX, "%s/%s cannot be %s: %s.", dir->path, name, what, strerrordesc_np(errno));
    return STATE_FAILED;
}

static enum state_open record_damaged(const struct state_dir *dir, const char *what, char why[STATE_WHY_MAX])
{
    snprintf(
        why, STATE_WHY_MAX,
        "%s/%s is damaged (%s) and was left as it is. Move the directory away and start again: the process "
        "joins anew if a lease service vouches for it; else pawl store recover.",
        dir->path, record_name, what);
    return STATE_DAMAGED;
}

/* -- the directory */

/* The directory, or a part of its path and what goes below it; NULL, or what is wrong. */
static const char *default_path(struct bytes *dir, const char **below)
{
    static const struct {
        const char *name, *below;
    } bases[] = {{"XDG_STATE_HOME", "/pawl"}, {"HOME", "/.local/state/pawl"}};
    const char *list = getenv("STATE_DIRECTORY");

    if (list != NULL && list[0] != '\0') {
        *dir = (struct bytes){list, strcspn(list, ":")};
        return list[0] == '/' ? NULL : "the path in $STATE_DIRECTORY does not begin with a slash";
    }
    for (unsigned i = 0; i < 2; i++) {
        const char *base = getenv(bases[i].name);

        if (base != NULL && base[0] == '/') {
            *dir = bytes_of(base);
            *below = bases[i].below;
            return NULL;
        }
    }
    return "none is given, and neither $STATE_DIRECTORY nor $XDG_STATE_HOME nor $HOME says where it is by "
           "default";
}

const char *state_path(const char *given, char path[STATE_PATH_MAX])
{
    struct bytes dir = bytes_of(given);
    const char *below = "", *wrong = dir.len == 0 ? default_path(&dir, &below) : NULL;

    if (wrong != NULL)
        return wrong;
    while (dir.len > 1 && dir.at[dir.len - 1] == '/')
        dir.len--;
    if (dir.len + strlen(below) >= STATE_PATH_MAX)
        return "its path is longer than 1,023 bytes";
    snprintf(path, STATE_PATH_MAX, "%.*s%s", (int)dir.len, dir.at, below);
    return NULL;
}

/* One that is there is good: whether it is a directory, shows when it is opened. */
static bool dir_make(const char *path, mode_t mode)
{
    char parent[STATE_PATH_MAX + sizeof("/..")];
    bool synced;
    int fd, error;

    if (mkdir(path, mode) != 0)
        return errno == EEXIST;
    snprintf(parent, sizeof(parent), "%s/..", path); /* what is new is no link: its .. is its parent */
    fd = open(parent, DIR_FLAGS);
    synced = fd >= 0 && fsync(fd) == 0;
    error = errno;
    if (fd >= 0)
        close(fd);
    errno = error;
    return synced;
}

static bool dir_make_all(const char *path)
{
    char part[STATE_PATH_MAX];

    snprintf(part, sizeof(part), "%s", path);
    for (char *at = part + 1; *at != '\0'; at++) {
        if (*at != '/')
            continue;
        *at = '\0';
        if (!dir_make(part, 0755))
            return false;
        *at = '/';
    }
    return dir_make(part, 0700);
}

static enum state_open dir_enter(struct state_dir *dir, char why[STATE_WHY_MAX])
{
    dir->fd = open(dir->path, DIR_FLAGS);
    if (dir->fd < 0 && errno == ENOENT) {
        if (!dir_make_all(dir->path))
            return dir_failed(dir, "made", why);
        dir->fd = open(dir->path, DIR_FLAGS);
    }
    return dir->fd >= 0 ? STATE_OPEN : dir_failed(dir, "opened", why);
}

static void dir_leave(struct state_dir *dir)
{
    if (dir->lock_fd >= 0)
        close(dir->lock_fd);
    if (dir->fd >= 0)
        close(dir->fd);
    dir->fd = dir->lock_fd = -1;
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
           fstatat(dir->fd, lock_name, &there, AT_SYMLINK_NOFOLLOW) == 0 && is_same(&ours, &there);
}

/* The lock names the process that holds it, unless its disk was full. */
static enum state_open lock_refused(const struct state_dir *dir, char why[STATE_WHY_MAX])
{
    char line[PID_LINE + 1], who[40] = "another process";
    ssize_t len;
    long pid;

    if (errno != EWOULDBLOCK)
        return file_failed(dir, lock_name, "locked", why);
    len = pread(dir->lock_fd, line, PID_LINE, 0);
    line[len > 0 ? len : 0] = '\0';
    pid = strtol(line, NULL, 10);
    if (pid > 0)
        snprintf(who, sizeof(who), "process %ld", pid);
    snprintf(why, STATE_WHY_MAX, "The state directory %s is in use by %s; each process needs its own.",
             dir->path, who);
    return STATE_IN_USE;
}

static enum state_open lock_take(struct state_dir *dir, char why[STATE_WHY_MAX])
{
    dir->lock_fd = openat(dir->fd, lock_name, O_RDWR | O_CREAT | FILE_FLAGS, 0600);
    if (dir->lock_fd < 0)
        return file_failed(dir, lock_name, "opened", why);
    /* A process that finds the lock file deleted makes another one and locks that: the lock on the directory
     * keeps it out all the same. Where directories cannot be locked (NFS takes LOCK_EX only on what is open
     * for writing), the lock file is all there is, and state_file_is_there() shows that it is another one. */
    if (flock(dir->lock_fd, LOCK_EX | LOCK_NB) != 0 ||
        (flock(dir->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK))
        return lock_refused(dir, why);
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

static struct state_version version_of(const struct stat *is)
{
    return (struct state_version){is->st_ino, is->st_size,
                                  is->st_mtim.tv_sec * 1000000000LL + is->st_mtim.tv_nsec};
}

static enum state_open record_understand(const struct state_dir *dir, struct bytes text,
                                         struct state_record *record, char why[STATE_WHY_MAX])
{
    int64_t version = version_named(text);

    if (version > STATE_VERSION) {
        snprintf(why, STATE_WHY_MAX,
                 "%s/%s is of version %" PRId64
                 ", this release knows version %d: start the release that wrote it.",
                 dir->path, record_name, version, STATE_VERSION);
        return STATE_DAMAGED;
    }
    if (text.len == 0)
        return record_damaged(dir, "it is empty", why);
    if (text.len > STATE_TEXT_MAX)
        return record_damaged(dir, "it is too long", why);
    return state_record_parse(text.at, text.len, record)
               ? STATE_OPEN
               : record_damaged(dir, "its text and its checksum do not agree", why);
}

static enum state_open record_take(struct state_dir *dir, int fd, struct state_record *record,
                                   char why[STATE_WHY_MAX])
{
    char text[STATE_TEXT_MAX + 2]; /* one more, to see that it is too long, and a NUL */
    struct stat is;
    ssize_t len;

    if (fstat(fd, &is) != 0)
        return file_failed(dir, record_name, "read", why);
    if (!S_ISREG(is.st_mode))
        return record_damaged(dir, "it is not a regular file", why);
    len = read_all(fd, text, STATE_TEXT_MAX + 1);
    if (len < 0)
        return file_failed(dir, record_name, "read", why);
    /* It may be renamed but not yet durable, when the process before was killed in between: then it is made
     * so before anything builds on it. A peek has no lock and builds nothing. */
    if (dir->lock_fd >= 0 && (fsync(fd) != 0 || fsync(dir->fd) != 0))
        return file_failed(dir, record_name, "synced to the disk", why);
    text[len] = '\0';
    dir->version = version_of(&is);
    return record_understand(dir, (struct bytes){text, (size_t)len}, record, why);
}

static enum state_open record_read(struct state_dir *dir, struct state_record *record,
                                   char why[STATE_WHY_MAX])
{
    int fd = openat(dir->fd, record_name, O_RDONLY | FILE_FLAGS);
    enum state_open end;

    if (fd < 0 && errno == ELOOP)
        return record_damaged(dir, "it is a symbolic link", why);
    if (fd < 0)
        return errno == ENOENT ? STATE_FRESH : file_failed(dir, record_name, "opened", why);
    end = record_take(dir, fd, record, why);
    close(fd);
    return end;
}

/* -- writing */

/* A place of its own, that tests/thread.supp names. */
static bool file_close(int fd)
{
    return close(fd) == 0;
}

/* A new file each time: after a failed fsync the kernel takes the pages of the old one for written, and the
 * next fsync of it would succeed for nothing (fsync(2), "EIO"). */
static bool new_write(const struct state_dir *dir, struct bytes text, struct state_version *made,
                      char why[STATE_WHY_MAX])
{
    int fd = openat(dir->fd, new_name, O_WRONLY | O_CREAT | O_EXCL | FILE_FLAGS, 0600);
    struct stat is;
    const char *failed = fd < 0                 ? "made"
                         : !write_all(fd, text) ? "written"
                         : fsync(fd) != 0       ? "synced to the disk"
                         : fstat(fd, &is) != 0  ? "looked at"
                                                : NULL;

    if (failed != NULL)
        file_failed(dir, new_name, failed, why);
    else
        *made = version_of(&is);
    if (fd >= 0 && !file_close(fd) && failed == NULL) {
        failed = "closed";
        file_failed(dir, new_name, failed, why);
    }
    return failed == NULL;
}

static bool dir_is_ours(const struct state_dir *dir)
{
    struct stat ours, there;

    return fstat(dir->fd, &ours) == 0 && stat(dir->path, &there) == 0 && is_same(&ours, &there) &&
           is_locked(dir);
}

bool state_file_write(struct state_file *file, const struct state_record *record, char why[STATE_WHY_MAX])
{
    struct state_dir *dir = &file->dir;
    char text[STATE_TEXT_MAX];
    struct bytes printed = {text, state_record_print(record, text)};
    struct state_version made;

    why[0] = '\0';
    if (printed.len == 0 || !dir_is_ours(dir)) {
        snprintf(why, STATE_WHY_MAX, "The state directory %s is not written to: %s.", dir->path,
                 printed.len == 0 ? "what was to be written is not sound"
                                  : "it or its lock was deleted, moved or replaced while it was open");
        return false;
    }
    unlinkat(dir->fd, new_name, 0); /* what a crash has left; if it cannot be, O_EXCL says so */
    if (!new_write(dir, printed, &made, why)) {
        unlinkat(dir->fd, new_name, 0);
        return false;
    }
    if (renameat(dir->fd, new_name, dir->fd, record_name) != 0) {
        file_failed(dir, new_name, "renamed", why);
        unlinkat(dir->fd, new_name, 0);
        return false;
    }
    dir->version = made;
    if (fsync(dir->fd) != 0) {
        dir_failed(dir, "synced to the disk", why);
        return false;
    }
    return true;
}

bool state_file_is_there(const struct state_file *file)
{
    const struct state_dir *dir = &file->dir;
    struct state_version there;
    struct stat is;

    if (!dir_is_ours(dir) || fstatat(dir->fd, record_name, &is, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(is.st_mode))
        return false;
    there = version_of(&is);
    return memcmp(&there, &dir->version, sizeof(there)) == 0; /* no padding in it */
}

/* -- open, peek, close */

void state_file_none(struct state_file *file)
{
    memset(file, 0, sizeof(*file));
    file->dir.fd = file->dir.lock_fd = -1;
    member_id_make(file->recorded.member);
}

enum state_open state_file_open(struct state_file *file, const char *path, char why[STATE_WHY_MAX])
{
    enum state_open end;

    memset(file, 0, sizeof(*file));
    file->dir.fd = file->dir.lock_fd = -1;
    snprintf(file->dir.path, sizeof(file->dir.path), "%s", path);
    why[0] = '\0';
    end = dir_enter(&file->dir, why);
    if (end == STATE_OPEN)
        end = lock_take(&file->dir, why);
    if (end == STATE_OPEN)
        end = record_read(&file->dir, &file->recorded, why);
    if (end == STATE_FRESH) {
        member_id_make(file->recorded.member);
        end = state_file_write(file, &file->recorded, why) ? STATE_FRESH : STATE_FAILED;
    }
    if (end != STATE_OPEN && end != STATE_FRESH)
        dir_leave(&file->dir);
    return end;
}

enum state_open state_file_peek(const char *path, struct state_record *record, char why[STATE_WHY_MAX])
{
    struct state_dir dir = {.lock_fd = -1};
    enum state_open end;

    memset(record, 0, sizeof(*record));
    why[0] = '\0';
    snprintf(dir.path, sizeof(dir.path), "%s", path);
    dir.fd = open(path, DIR_FLAGS);
    if (dir.fd < 0)
        return errno == ENOENT ? STATE_FRESH : dir_failed(&dir, "opened", why);
    end = record_read(&dir, record, why);
    dir_leave(&dir);
    return end;
}

void state_file_close(struct state_file *file)
{
    dir_leave(&file->dir);
}

/* -- in step with what is wanted */

static void job_write(struct loop_job *job)
{
    struct state_file *file = container_of(job, struct state_file, job);
    struct state_record read;
    char why[STATE_WHY_MAX];

    file->written = state_file_write(file, &file->writing, file->writing_trouble);
    file->replaced = !file->written && (state_file_peek(file->dir.path, &read, why) != STATE_OPEN ||
                                        !state_record_equal(&read, &file->recorded));
}

static void job_wrote(struct loop_job *job)
{
    struct state_file *file = container_of(job, struct state_file, job);

    file->is_busy = false;
    file->is_unsure = file->replaced;
    if (!file->written) {
        memcpy(file->trouble, file->writing_trouble, sizeof(file->trouble));
        return;
    }
    file->trouble[0] = '\0';
    if (state_file_trouble(file) != NULL)
        return; /* durable it may be, but in a directory that was taken away meanwhile */
    file->recorded = file->writing;
    file->wrote(file);
}

void state_file_start(struct state_file *file, struct loop *loop, void (*wrote)(struct state_file *))
{
    file->loop = loop;
    file->wrote = wrote;
    file->job.work = job_write;
    file->job.done = job_wrote;
}

void state_file_want(struct state_file *file, const struct state_record *record)
{
    if (file->is_busy || file->is_lost || state_record_equal(record, &file->recorded))
        return;
    if (file->dir.fd < 0) {
        file->recorded = *record;
        return;
    }
    file->writing = *record;
    file->is_busy = true;
    loop_job_run(file->loop, &file->job);
}

bool state_file_is_settled(const struct state_file *file)
{
    return !file->is_busy && !file->is_unsure;
}

void state_file_mend(struct state_file *file)
{
    if (file->is_unsure)
        state_file_want(file, &file->writing);
}

const char *state_file_trouble(struct state_file *file)
{
    if (file->dir.fd >= 0 && !file->is_busy && !file->is_lost && !state_file_is_there(file)) {
        file->is_lost = true;
        snprintf(file->trouble, sizeof(file->trouble),
                 "The state directory %s was deleted or replaced: what it said is lost. Start this service "
                 "again: it joins anew if another lease service vouches for it; else pawl store recover "
                 "--floor N.",
                 file->dir.path);
    }
    return file->trouble[0] != '\0' ? file->trouble : NULL;
}
