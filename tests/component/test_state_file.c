/* test_state_file.c - the state directory: its lock, and what stands in it after every kind of accident. Its
 * text: tests/unit/test_state_record.c. A crash is a kill -9 at every system call of a write (ptrace). */
#include <signal.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>

#include "tests/component/state_world.h"

/* A child that dies with this process. */
static pid_t child_new(void)
{
    pid_t parent = getpid(), child;

    fflush(stdout);
    child = fork();
    if (child < 0)
        abort();
    if (child == 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent))
        _exit(1);
    return child;
}

static void kill_and_wait(pid_t child)
{
    int status;

    kill(child, SIGKILL);
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* -- open and peek */

TEST_FRESH(a_directory_that_is_not_there_is_made_and_keeps_its_member_id)
{
    struct state_record first = place->file.recorded, blank = {0};

    memcpy(blank.member, first.member, sizeof(blank.member));
    CHECK_INT(strlen(first.member), MEMBER_ID_CHARS);
    CHECK(state_record_equal(&first, &blank) && place->why[0] == '\0');
    CHECK(does(place, "test $(stat -c %a s)-$(stat -c %a s/high-water) = 700-600"));
    CHECK(state_file_is_there(&place->file));
    CHECK_INT(reopen(place), STATE_OPEN);
    CHECK(state_record_equal(&place->file.recorded, &first));
    CHECK(state_file_is_there(&place->file) && does(place, "mv s t"));
    CHECK_INT(reopen(place), STATE_FRESH);
    CHECK(strcmp(first.member, place->file.recorded.member) != 0);
}

TEST_PLACE(parents_are_made_for_others_to_enter_and_the_directory_for_nobody_else)
{
    snprintf(place->state, sizeof(place->state), "%.190s/a//b/s", place->root);
    CHECK_INT(reopen(place), STATE_FRESH);
    CHECK(does(place, "test $(stat -c %a a)-$(stat -c %a a/b)-$(stat -c %a a/b/s) = 755-755-700"));
    CHECK_TEXT(bytes_of(disk.order), BYTES("dddlLfrd")); /* three parents; locks; file, rename, directory */
}

TEST_PLACE(a_relative_path_and_a_link_to_a_directory_are_as_good)
{
    int here = open(".", O_RDONLY | O_DIRECTORY);

    CHECK(here >= 0 && chdir(place->root) == 0);
    CHECK_INT(open_at(place, "r/s"), STATE_FRESH);
    CHECK(state_file_is_there(&place->file) && does(place, "test -f r/s/high-water && ln -s r/s link"));
    state_file_close(&place->file);
    CHECK_INT(open_at(place, "link"), STATE_OPEN);
    CHECK(state_file_is_there(&place->file));
    CHECK(fchdir(here) == 0 && close(here) == 0);
}

TEST_PLACE(who_peeks_makes_nothing_and_asks_for_no_lock)
{
    struct state_record seen;

    CHECK_INT(state_file_peek(place->state, &seen, place->why), STATE_FRESH);
    CHECK(does(place, "mkdir s"));
    memset(&seen, 1, sizeof(seen));
    CHECK_INT(state_file_peek(place->state, &seen, place->why), STATE_FRESH);
    CHECK_TEXT(bytes_of(seen.member), BYTES(""));
    CHECK(does(place, "rmdir s"));
    CHECK_INT(reopen(place), STATE_FRESH);
    disk_is_new();
    CHECK_INT(state_file_peek(place->state, &seen, place->why), STATE_OPEN);
    CHECK(state_record_equal(&seen, &place->file.recorded));
    CHECK_TEXT(bytes_of(disk.order), BYTES(""));
}

TEST_FRESH(what_is_read_is_made_durable_before_anything_builds_on_it)
{
    CHECK(write_floor(place, 9));
    disk_is_new();
    CHECK_INT(reopen(place), STATE_OPEN);
    CHECK_TEXT(bytes_of(disk.order), BYTES("lLfd"));
}

/* -- what cannot be opened: what was done to a fresh one, what is said, and how opening and peeking end */

#define NO_SUM "(its text and its checksum do not agree)"
#define TEXT_IS(text) "printf '" text "' > s/high-water"
#define DAMAGED(deed, why)                                                                                   \
    {                                                                                                        \
        deed, "s", why, STATE_DAMAGED, STATE_DAMAGED, 0, 0                                                   \
    }
#define REFUSED(deed, path, why, peeked)                                                                     \
    {                                                                                                        \
        deed, path, why, STATE_FAILED, peeked, 0, 0                                                          \
    }
/* This system call does, with this error. */
#define FAILS(call, error, deed, why, peeked)                                                                \
    {                                                                                                        \
        deed, "s", why ".", STATE_FAILED, peeked, call, error                                                \
    }

static const struct {
    const char *deed, *path, *why;
    enum state_open end, peeked;
    char breaks;
    int error;
} refusals[] = {
    DAMAGED(TEXT_IS(""), "(it is empty)"),
    DAMAGED(TEXT_IS("\\n"), NO_SUM),
    DAMAGED("sed -i '$d' s/high-water", NO_SUM),
    DAMAGED(TEXT_IS("pawl high-water 5\\nnew\\n"), "of version 5, this release knows version 4"),
    DAMAGED(TEXT_IS("pawl high-water 999999999999999\\n"), "of version 999999999999999, this release"),
    DAMAGED(TEXT_IS("pawl high-water 1000000000000000\\n"), NO_SUM),
    DAMAGED(TEXT_IS("pawl high-water 27"), NO_SUM),
    DAMAGED(TEXT_IS("pawl high-water x\\n"), NO_SUM),
    DAMAGED("truncate -s 1M s/high-water", "(it is too long)"),
    DAMAGED("mv s/high-water t; ln -s ../t s/high-water", "(it is a symbolic link)"),
    DAMAGED("rm s/high-water; ln -s nowhere s/high-water", "(it is a symbolic link)"),
    DAMAGED("rm s/high-water; mkdir s/high-water", "(it is not a regular file)"),
    DAMAGED("rm s/high-water; mkfifo s/high-water", "(it is not a regular file)"),
    REFUSED("rm s/lock; ln -s elsewhere s/lock", "s", "/lock cannot be opened: Too many levels", STATE_OPEN),
    REFUSED("rm s/lock; mkdir s/lock", "s", "/s/lock cannot be opened: Is a directory.", STATE_OPEN),
    REFUSED("rm s/lock; mkfifo s/lock", "s", "/s/lock is not a regular file", STATE_OPEN),
    REFUSED("rm -r s; : > s", "s", "/s cannot be opened: Not a directory.", STATE_FAILED),
    REFUSED("rm -r s; : > s", "s/t", "/s/t cannot be opened: Not a directory.", STATE_FAILED),
    REFUSED("rm -r s; ln -s nowhere s", "s", "/s cannot be opened: No such file or directory.", STATE_FRESH),
    REFUSED(":", "/proc/no/state", "directory /proc/no/state cannot be made: ", STATE_FRESH),
    FAILS('d', EIO, "rm -r s", "/s cannot be made: Input/output error", STATE_FRESH),
    FAILS('l', ENOLCK, "rm s/high-water", "/lock cannot be locked: No locks available", STATE_FRESH),
    FAILS('f', ENOSPC, "rm s/high-water",
          "/high-water.new cannot be synced to the disk: No space left on device", STATE_FRESH),
    FAILS('f', EIO, ":", "/high-water cannot be synced to the disk: Input/output error", STATE_OPEN),
    FAILS('d', EIO, ":", "/high-water cannot be synced to the disk: Input/output error", STATE_OPEN),
};

/* Of all but the lock. */
#define SEEN_AS(file)                                                                                        \
    "{ find s ! -name lock ! -name s -printf '%y %p %l\\n'; "                                                \
    "find s -type f ! -name lock -exec cksum {} +; } 2>&- | sort > " file

static void check_refusal(struct place *place, size_t i)
{
    const char *path = refusals[i].path;
    char full[2 * PLACE_MAX];
    struct state_record seen;

    state_file_close(&place->file);
    CHECK(does(place, refusals[i].deed) && does(place, SEEN_AS("before")));
    snprintf(full, sizeof(full), "%s%s%s", path[0] != '/' ? place->root : "", path[0] != '/' ? "/" : "",
             path);
    disk_breaks(refusals[i].breaks, refusals[i].error);
    CHECK_INT(open_at(place, full), refusals[i].end);
    CHECK(says(place, refusals[i].why) && place->file.dir.fd == -1 && place->file.dir.lock_fd == -1);
    disk_is_new();
    CHECK_INT(state_file_peek(full, &seen, place->why), refusals[i].peeked);
    CHECK(refusals[i].peeked != refusals[i].end || says(place, refusals[i].why));
    CHECK(does(place, SEEN_AS("after") " && cmp before after"));
}

TEST(what_cannot_be_opened_is_left_as_it_is_and_the_reason_is_said)
{
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
        IN_A_PLACE(refusals[i].deed, check_refusal(&place, i));
}

/* -- the lock */

/* A process that has the directory open until it is killed. */
static pid_t holder_new(struct place *place)
{
    int ready[2];
    char end = -1;
    pid_t child;

    if (pipe(ready) != 0)
        abort();
    child = child_new();
    if (child == 0) {
        end = (char)reopen(place);
        if (write(ready[1], &end, 1) == 1)
            pause();
        _exit(1);
    }
    close(ready[1]);
    CHECK(read(ready[0], &end, 1) == 1 && end == STATE_FRESH);
    close(ready[0]);
    return child;
}

TEST_PLACE(of_two_processes_one_has_it_and_the_other_is_told_which)
{
    struct state_record seen;
    pid_t holder = holder_new(place);

    for (int i = 0; i < 3; i++) {
        CHECK_INT(reopen(place), STATE_IN_USE);
        CHECK(says(place, textf("is in use by process %d;", (int)holder)) && says(place, place->state));
    }
    CHECK_INT(state_file_peek(place->state, &seen, place->why), STATE_OPEN);
    kill_and_wait(holder);
    CHECK_INT(reopen(place), STATE_OPEN);
    CHECK(state_record_equal(&seen, &place->file.recorded));
}

TEST_FRESH(a_process_cannot_open_it_twice_and_can_again_when_it_was_closed)
{
    struct state_file second;

    CHECK_INT(state_file_open(&second, place->state, place->why), STATE_IN_USE);
    CHECK(write_floor(place, 2));
    state_file_close(&place->file);
    state_file_close(&place->file);
    CHECK_INT(state_file_open(&second, place->state, place->why), STATE_OPEN);
    CHECK_INT(second.recorded.floor, 2);
    state_file_close(&second);
}

TEST_FRESH(a_program_that_is_started_inherits_no_lock)
{
    CHECK((fcntl(place->file.dir.lock_fd, F_GETFD) & FD_CLOEXEC) != 0);
    CHECK((fcntl(place->file.dir.fd, F_GETFD) & FD_CLOEXEC) != 0);
}

TEST_FRESH(who_deletes_the_lock_lets_nobody_in_and_is_noticed)
{
    struct state_file second;

    check_writes(place, 2);
    CHECK(does(place, "rm s/lock"));
    CHECK(!state_file_is_there(&place->file));
    CHECK_INT(state_file_open(&second, place->state, place->why), STATE_IN_USE);
    CHECK(says(place, "in use by another process;"));
    CHECK(does(place, "test -f s/lock") && !state_file_is_there(&place->file));
    CHECK(!write_floor(place, 3) && says(place, "deleted, moved or replaced"));
    CHECK_INT(floor_seen(place), 2);
    CHECK_INT(reopen(place), STATE_OPEN);
    check_writes(place, 3);
}

/* As NFS does, which takes LOCK_EX only on what is open for writing. */
TEST_PLACE(where_directories_cannot_be_locked_the_lock_file_is_enough)
{
    struct state_file second;

    disk_breaks('L', EBADF);
    CHECK_INT(reopen(place), STATE_FRESH);
    CHECK_INT(state_file_open(&second, place->state, place->why), STATE_IN_USE);
    CHECK(does(place, "rm s/lock"));
    CHECK_INT(state_file_open(&second, place->state, place->why), STATE_OPEN);
    CHECK(!state_file_is_there(&place->file) && !write_floor(place, 1));
    CHECK(state_file_is_there(&second));
    state_file_close(&second);
}

TEST_FRESH(a_lock_with_anything_in_it_is_good)
{
    CHECK(does(place, "echo 99999999999999999999999999 and much more than one line > s/lock"));
    CHECK_INT(reopen(place), STATE_OPEN);
}

/* -- whether it is still there: after an accident, and whether it is written to all the same */

static const struct {
    const char *deed;
    bool is_written; /* a new file */
    const char *undo;
} accidents[] = {
    {"mv s/high-water t", true, "mv t s/high-water"},
    {"rm s/high-water", true, NULL},
    {"rm s/high-water; mkdir s/high-water", false, NULL},
    {"mv s/high-water t; ln -s ../t s/high-water", true, NULL},
    {"cp s/high-water t; rm s/high-water; mv t s/high-water", true, NULL},
    {"cp s/high-water t; cat t > s/high-water", true, NULL},
    {"truncate -s 0 s/high-water", true, NULL},
    {"mv s t", false, "mv t s"},
    {"mv s t; mkdir s", false, "rmdir s; mv t s"},
    {"rm -r s", false, NULL},
};

static void check_accident(struct place *place, size_t i)
{
    CHECK(write_floor(place, 41));
    check_writes(place, 81);
    CHECK(does(place, accidents[i].deed) && !state_file_is_there(&place->file));
    if (accidents[i].undo != NULL) {
        CHECK(accidents[i].is_written ||
              (!write_floor(place, 82) && says(place, "deleted, moved or replaced")));
        CHECK(does(place, accidents[i].undo) && state_file_is_there(&place->file));
    }
    if (accidents[i].is_written || accidents[i].undo != NULL) {
        check_writes(place, 83);
        return;
    }
    CHECK(!write_floor(place, 83) && !does(place, "test -f s/high-water"));
}

TEST(a_file_or_a_directory_that_was_deleted_replaced_or_changed_is_noticed)
{
    for (size_t i = 0; i < sizeof(accidents) / sizeof(accidents[0]); i++)
        IN_A_PLACE(accidents[i].deed, check_accident(&place, i));
}

TEST_FRESH(what_was_deleted_can_be_opened_anew_and_what_was_closed_is_not_written_to)
{
    CHECK(does(place, "rm -r s"));
    CHECK_INT(reopen(place), STATE_FRESH);
    state_file_close(&place->file);
    CHECK(!state_file_is_there(&place->file) && !write_floor(place, 6));
}

/* -- writing */

TEST_FRESH(what_is_written_is_on_the_disk_before_it_has_its_name_and_its_name_before_it_counts)
{
    CHECK_TEXT(bytes_of(disk.order), BYTES("dlLfrd")); /* the parent; the locks; then as below */
    disk_is_new();
    CHECK(write_floor(place, 1));
    CHECK_TEXT(bytes_of(disk.order), BYTES("frd"));
    CHECK_TEXT(bytes_of(place->why), BYTES(""));
    CHECK(does(place, textf("test ! -e s/high-water.new && test $(cat s/lock) = %d", (int)getpid())) &&
          does(place, "test $(stat -c %s s/lock) = 16"));
}

TEST_FRESH(what_a_crash_has_left_beside_it_is_in_nobodys_way)
{
    CHECK(does(place, "echo half of a fi > s/high-water.new"));
    CHECK_INT(reopen(place), STATE_OPEN);
    CHECK(write_floor(place, 1) && does(place, "test ! -e s/high-water.new"));
    CHECK(does(place, "echo whole > t && ln -s ../t s/high-water.new"));
    CHECK(write_floor(place, 2) && does(place, "test ! -L s/high-water.new && test $(cat t) = whole"));
    CHECK(does(place, "mkdir s/high-water.new"));
    CHECK(!write_floor(place, 3) && says(place, "/high-water.new cannot be made: File exists."));
    CHECK_INT(floor_seen(place), 2);
    CHECK(does(place, "rmdir s/high-water.new") && write_floor(place, 4));
}

TEST_FRESH(a_write_that_finds_no_room_leaves_the_file_of_before)
{
    struct rlimit all, little;
    bool written;
    static const rlim_t rooms[] = {0, 1, 200};

    check_writes(place, 38);
    signal(SIGXFSZ, SIG_IGN);
    fflush(stdout);
    getrlimit(RLIMIT_FSIZE, &all);
    for (int i = 0; i < 3; i++) {
        little = (struct rlimit){rooms[i], all.rlim_max};
        setrlimit(RLIMIT_FSIZE, &little);
        written = write_floor(place, 39);
        setrlimit(RLIMIT_FSIZE, &all);
        CHECK(!written && says(place, "/high-water.new cannot be written: File too large."));
        CHECK(does(place, "test ! -e s/high-water.new") && state_file_is_there(&place->file));
        CHECK_INT(floor_seen(place), 38);
    }
    check_writes(place, 40);
}

/* -- a real disk that is full, or read-only */

static bool proc_write(const char *path, const char *format, unsigned id)
{
    char text[32];
    int len = snprintf(text, sizeof(text), format, id), fd = open(path, O_WRONLY);

    return fd >= 0 && write(fd, text, (size_t)len) == len && close(fd) == 0;
}

/* A mount namespace of this child's own; false: this machine does not let us. */
static bool namespace_enter(void)
{
    unsigned uid = getuid(), gid = getgid();

    if (unshare(CLONE_NEWNS) == 0)
        return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
    return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 && proc_write("/proc/self/setgroups", "deny", 0) &&
           proc_write("/proc/self/uid_map", "0 %u 1", uid) && proc_write("/proc/self/gid_map", "0 %u 1", gid);
}

static bool remount(struct place *place, unsigned long flags, const char *size)
{
    return mount(NULL, place->state, NULL, MS_REMOUNT | flags, size) == 0;
}

static void check_full_disk(struct place *place)
{
    static const char full[] = "/high-water.new cannot be written: No space left on device.";

    CHECK_INT(reopen(place), STATE_FAILED);
    CHECK(says(place, full)); /* one page: the lock's */
    CHECK(remount(place, 0, "size=8k"));
    CHECK_INT(reopen(place), STATE_FRESH);
    CHECK(!write_floor(place, 1) && says(place, full));
    CHECK(state_file_is_there(&place->file) && does(place, "test ! -e s/high-water.new"));
    CHECK_INT(reopen(place), STATE_OPEN); /* a full disk can be read, and locked */
    CHECK(!write_floor(place, 1));
    CHECK(remount(place, 0, "size=64k"));
    check_writes(place, 2);
}

static void check_read_only_disk(struct place *place)
{
    state_file_close(&place->file);
    CHECK(remount(place, MS_RDONLY, NULL));
    CHECK_INT(reopen(place), STATE_FAILED);
    CHECK(says(place, "/lock cannot be opened: Read-only file system."));
    CHECK_INT(floor_seen(place), 2);
    CHECK(remount(place, 0, NULL));
    CHECK_INT(reopen(place), STATE_OPEN);
    check_writes(place, 3);
}

TEST_PLACE(on_a_full_or_read_only_disk_nothing_goes_wrong_and_afterwards_all_is_well)
{
    pid_t child;
    int status = 0;

    CHECK(does(place, "mkdir s"));
    child = child_new();
    if (child == 0) {
        if (!namespace_enter() || mount("tmpfs", place->state, "tmpfs", 0, "size=4k,mode=0700") != 0)
            _exit(77);
        check_full_disk(place);
        check_read_only_disk(place);
        fflush(stdout);
        _exit(check_state.failing);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        check_skip("this process may not mount anything, not even in a namespace of its own");
    else
        CHECK_INT(WEXITSTATUS(status), 0);
}

/* -- crashes */

/* Killed at this system call of a write, counted in stops: one before and one after each; has_ended: the
 * write had returned by then. The number of stops until it was over, if it was over before. */
static int killed_at(struct place *place, int stop, atomic_bool *has_ended)
{
    int status, stops = 0;
    pid_t child = child_new();

    if (child == 0) {
        if (reopen(place) != STATE_OPEN || ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(2);
        raise(SIGSTOP);
        if (!write_floor(place, 2))
            _exit(3);
        atomic_store(has_ended, true);
        getppid();
        _exit(0);
    }
    if (!CHECK(waitpid(child, &status, 0) == child && WIFSTOPPED(status)))
        return -1;
    ptrace(PTRACE_SETOPTIONS, child, NULL, (void *)PTRACE_O_EXITKILL);
    while (stops < stop && ptrace(PTRACE_SYSCALL, child, NULL, NULL) == 0 &&
           waitpid(child, &status, 0) == child && WIFSTOPPED(status))
        stops++;
    if (stops < stop) {
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        return stops;
    }
    kill_and_wait(child);
    return stops;
}

TEST_FRESH(
    killed_before_or_after_any_system_call_the_old_or_the_new_file_stands_and_the_new_one_if_it_was_told)
{
    atomic_bool *has_ended = check_shared(sizeof(*has_ended));
    int olds = 0, news = 0, stop = 0, stops;

    do {
        int64_t floor;

        CHECK(write_floor(place, 1));
        state_file_close(&place->file);
        atomic_store(has_ended, false);
        stops = killed_at(place, stop, has_ended);
        floor = floor_seen(place);
        CHECK(floor == 2 || (floor == 1 && !atomic_load(has_ended)));
        olds += floor == 1;
        news += floor == 2;
        CHECK(floor == 2 || news == 0); /* the rename is one moment */
        CHECK_INT(reopen(place), STATE_OPEN);
    } while (stops == stop++ && stop < 500);
    printf("# %d ends: the old file after %d, the new one after %d\n", olds + news, olds, news);
    CHECK(stops >= 0 && olds >= 8 && news >= 4 && atomic_load(has_ended));
    munmap(has_ended, sizeof(*has_ended));
}

/* -- what is wanted is recorded only when it is durable */

enum { TURNS = 20 };

static void want_floor(struct place *place, int64_t floor)
{
    struct state_record record = record_of(floor);

    state_file_want(&place->file, &record);
}

static void keep_floor(struct place *place, int64_t floor)
{
    unsigned wrote = place->wrote;

    want_floor(place, floor);
    WAIT(place, place->wrote == wrote + 1);
    CHECK_INT(place->file.recorded.floor, floor);
    CHECK(state_record_equal(&place->on_disk, &place->file.recorded));
    CHECK(!place->file.is_busy && state_file_is_settled(&place->file));
    CHECK(state_file_trouble(&place->file) == NULL && !place->file.is_lost);
}

static bool trouble_says(struct place *place, const char *part)
{
    const char *trouble = state_file_trouble(&place->file);

    snprintf(place->why, sizeof(place->why), "%s", trouble != NULL ? trouble : "");
    return says(place, place->state) && says(place, part);
}

TEST(without_a_directory_what_is_wanted_is_recorded_at_once)
{
    struct state_file file, other;
    struct state_record record = record_of(7);
    unsigned syncs = atomic_load(&disk.syncs);

    state_file_none(&file);
    state_file_none(&other);
    CHECK_INT(file.dir.fd, -1);
    CHECK_INT(strlen(file.recorded.member), MEMBER_ID_CHARS);
    CHECK(strcmp(file.recorded.member, other.recorded.member) != 0);
    state_file_want(&file, &record);
    CHECK(state_record_equal(&file.recorded, &record));
    CHECK(!file.is_busy && state_file_trouble(&file) == NULL && !file.is_lost);
    CHECK_INT(atomic_load(&disk.syncs), syncs);
    state_file_close(&file);
}

TEST_FRESH(what_is_wanted_is_recorded_only_when_it_is_durable_and_a_wish_meanwhile_waits_for_the_next)
{
    struct state_record wanted = record_of(34), before = place->file.recorded;
    unsigned syncs = atomic_load(&disk.syncs);

    disk_is_new();
    atomic_store(&disk.held, true);
    state_file_want(&place->file, &wanted);
    wanted.floor = 1; /* it was copied */
    want_floor(place, 35);
    WAIT(place, atomic_load(&disk.syncs) == syncs + 1);
    for (unsigned i = 0; i < TURNS; i++)
        loop_turn(place->loop, 1);
    CHECK(state_record_equal(&place->file.recorded, &before) && place->wrote == 0);
    CHECK(place->file.is_busy && state_file_trouble(&place->file) == NULL);
    CHECK(!state_file_is_settled(&place->file));
    want_floor(place, 36);
    atomic_store(&disk.held, false);
    WAIT(place, place->wrote == 1);
    CHECK_TEXT(bytes_of(disk.order), BYTES("frd"));
    wanted = record_of(34);
    CHECK(state_record_equal(&place->on_disk, &wanted) && state_record_equal(&place->file.recorded, &wanted));
    CHECK(!place->file.is_busy); /* nothing was kept in mind: every heartbeat brings the wish anew */
    keep_floor(place, 36);
}

TEST_FRESH(what_is_recorded_already_is_not_written_again)
{
    struct state_record same;
    unsigned syncs;

    keep_floor(place, 34);
    syncs = atomic_load(&disk.syncs);
    same = place->file.recorded;
    same.list[strlen(same.list) + 1] = 'x'; /* behind the list */
    state_file_want(&place->file, &same);
    CHECK(!place->file.is_busy);
    CHECK_INT(atomic_load(&disk.syncs), syncs);
    *strstr(same.list, "id00000000000001") = 'c';
    state_file_want(&place->file, &same);
    WAIT(place, place->wrote == 2);
    CHECK(strstr(place->on_disk.list, "cd00000000000001") != NULL);
}

/* A write that fails at this step, the next one that does, and the one after them. */
static const struct {
    char step;
    int error;
    const char *why;
    int64_t stands; /* on the disk, perhaps, after a power cut */
} failures[] = {
    {'f', EIO, "/high-water.new cannot be synced to the disk: Input/output error.", 7},
    {'f', EDQUOT, "/high-water.new cannot be synced to the disk: Disk quota exceeded.", 7},
    {'r', EROFS, "/high-water.new cannot be renamed: Read-only file system.", 7},
    {'d', EIO, "/s cannot be synced to the disk: Input/output error.", 8},
};

static void check_fails(struct place *place, size_t i)
{
    bool is_half_way = failures[i].stands == 8;

    for (unsigned again = 0; again < 2; again++) {
        disk_breaks(failures[i].step, failures[i].error);
        want_floor(place, 8);
        CHECK(!state_file_is_settled(&place->file));
        WAIT(place, !place->file.is_busy);
        CHECK(trouble_says(place, failures[i].why) && !place->file.is_lost);
        CHECK_INT(place->file.recorded.floor, 7);
        CHECK_INT(floor_seen(place), failures[i].stands);
        CHECK(strchr(disk.order, failures[i].step) == strrchr(disk.order, failures[i].step)); /* not again */
        CHECK(does(place, "test ! -e s/high-water.new") && state_file_is_there(&place->file));
        CHECK(state_file_is_settled(&place->file) != is_half_way);
        state_file_mend(&place->file); /* for when nobody has a wish */
        CHECK(place->file.is_busy == is_half_way);
        WAIT(place, !place->file.is_busy);
    }
}

TEST(a_write_that_fails_leaves_a_sound_file_is_told_and_leaves_doubt_only_when_it_failed_half_way)
{
    for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
        struct place place = {0};

        place_open_fresh(&place);
        keep_floor(&place, 7);
        check_fails(&place, i);
        disk_is_new();
        CHECK(trouble_says(&place, failures[i].why)); /* until something was written */
        CHECK_INT(place.wrote, 1);
        state_file_mend(&place.file);
        if (!place.file.is_busy)
            want_floor(&place, 8);
        WAIT(&place, place.wrote == 2);
        CHECK_TEXT(bytes_of(disk.order), BYTES("frd"));
        CHECK(state_file_is_settled(&place.file) && state_file_trouble(&place.file) == NULL);
        CHECK_INT(place.file.recorded.floor, 8);
        CHECK_INT(floor_seen(&place), 8);
        place_close(&place);
    }
}

TEST_FRESH(what_is_not_sound_is_never_recorded)
{
    keep_floor(place, 7);
    want_floor(place, STATE_NUMBER_MAX + 1);
    WAIT(place, !place->file.is_busy);
    CHECK(trouble_says(place, "not sound"));
    CHECK(!write_floor(place, STATE_NUMBER_MAX + 1) &&
          says(place, "is not written to: what was to be written is not sound."));
    CHECK_INT(place->file.recorded.floor, 7);
    CHECK_INT(floor_seen(place), 7);
}

/* -- what was taken away while wishes come is lost for good */

static void check_lost(struct place *place)
{
    unsigned syncs = atomic_load(&disk.syncs);

    CHECK(trouble_says(place, "was deleted or replaced") && place->file.is_lost);
    want_floor(place, 9);
    CHECK(!place->file.is_busy);
    CHECK_INT(atomic_load(&disk.syncs), syncs);
    CHECK_INT(place->file.recorded.floor, 7);
    CHECK_INT(place->wrote, 1);
}

static const char *const taken_away[][2] = {{"mv s away", "mv away s"}, {"rm s/high-water", ":"}};

static void check_taken_away(struct place *place, size_t i)
{
    keep_floor(place, 7);
    CHECK(does(place, taken_away[i][0]));
    check_lost(place);
    CHECK(does(place, taken_away[i][1]));
    check_lost(place);
}

TEST(what_was_taken_away_is_lost_for_good)
{
    for (size_t i = 0; i < 2; i++)
        IN_A_PLACE(taken_away[i][0], check_taken_away(&place, i));
}

TEST_FRESH(a_directory_that_goes_during_a_write_is_lost_when_the_write_is_over)
{
    unsigned syncs;

    keep_floor(place, 7);
    syncs = atomic_load(&disk.syncs);
    atomic_store(&disk.held, true);
    want_floor(place, 8);
    WAIT(place, atomic_load(&disk.syncs) == syncs + 1);
    CHECK(does(place, "mv s away"));
    CHECK(state_file_trouble(&place->file) == NULL); /* the writer has it just now */
    atomic_store(&disk.held, false);
    WAIT(place, !place->file.is_busy);
    check_lost(place);
}

STATE_MAIN
