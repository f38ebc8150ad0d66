/* state_world.h - what the tests of a state directory stand on: a place of its own for each, and fsync(),
 * renameat() and flock() that note in which order they are called, can be held up, and fail when a test wants
 * it. */
#ifndef PAWL_TESTS_STATE_WORLD_H
#define PAWL_TESTS_STATE_WORLD_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "tests/unit/state_record.h"
#include "tests/unit/waited.h"

enum { PLACE_MAX = 200, STATE_DEADLINE_MS = 20000 };

/* -- the program's own fsync(), renameat() and flock() */

static struct {
    char order[16];    /* 'f': fsync of a file, 'd': of a directory, 'r': rename, 'l', 'L': locks of these */
    char fail;         /* which of these fails, */
    int error;         /* with this */
    atomic_bool held;  /* no fsync goes on */
    atomic_uint syncs; /* begun */
} disk;

static inline void disk_is_new(void)
{
    memset(disk.order, 0, sizeof(disk.order));
    disk.fail = '\0';
}

static inline void disk_breaks(char what, int error)
{
    disk_is_new();
    disk.fail = what;
    disk.error = error;
}

static inline bool disk_fails(char what)
{
    size_t len = strlen(disk.order);

    if (len < sizeof(disk.order) - 1)
        disk.order[len] = what;
    errno = disk.error;
    return disk.fail == what;
}

/* The letter for a file or a directory. */
static inline char kind_of(int fd, char file, char directory)
{
    struct stat is;

    return fstat(fd, &is) == 0 && S_ISDIR(is.st_mode) ? directory : file;
}

int fsync(int fd)
{
    atomic_fetch_add(&disk.syncs, 1);
    while (atomic_load(&disk.held))
        sched_yield();
    return disk_fails(kind_of(fd, 'f', 'd')) ? -1 : (int)syscall(SYS_fsync, fd);
}

int flock(int fd, int operation)
{
    return disk_fails(kind_of(fd, 'l', 'L')) ? -1 : (int)syscall(SYS_flock, fd, operation);
}

int renameat(int old_dir, const char *old_name, int new_dir, const char *new_name)
{
    return disk_fails('r') ? -1 : (int)syscall(SYS_renameat2, old_dir, old_name, new_dir, new_name, 0);
}

/* -- places: each test has a directory of its own, and in it "s", the state directory */

struct place {
    struct state_file file;
    struct state_record on_disk; /* when it was called back that a write has ended well */
    struct loop *loop;
    unsigned wrote;
    char root[PLACE_MAX], state[PLACE_MAX + 8], why[STATE_WHY_MAX];
};

/* Whether this shell command, in the place, ends with 0. */
static inline bool does(const struct place *place, const char *deed)
{
    fflush(stdout);
    /* NOLINTNEXTLINE(cert-env33-c): our own words */
    return system(textf("cd '%s' && { %s; }", place->root, deed)) == 0;
}

static inline void place_open(struct place *place)
{
    const char *tmp = getenv("TMPDIR");

    disk_is_new();
    place->file.dir.fd = place->file.dir.lock_fd = -1;
    place->loop = loop_new();
    snprintf(place->root, sizeof(place->root), "%s/pawl-state-XXXXXX", tmp != NULL ? tmp : "/tmp");
    if (mkdtemp(place->root) == NULL)
        abort();
    snprintf(place->state, sizeof(place->state), "%s/s", place->root);
}

static inline void place_close(struct place *place)
{
    atomic_store(&disk.held, false);
    loop_jobs_wait(place->loop);
    state_file_close(&place->file);
    loop_free(place->loop);
    CHECK(does(place, "rm -r \"$PWD\""));
}

static inline void place_wrote(struct state_file *file)
{
    struct place *place = container_of(file, struct place, file);

    place->wrote++;
    CHECK_INT(state_file_peek(place->state, &place->on_disk, place->why), STATE_OPEN);
}

static inline enum state_open open_at(struct place *place, const char *path)
{
    enum state_open end = state_file_open(&place->file, path, place->why);

    state_file_start(&place->file, place->loop, place_wrote);
    return end;
}

static inline enum state_open reopen(struct place *place)
{
    state_file_close(&place->file);
    return open_at(place, place->state);
}

static inline void place_open_fresh(struct place *place)
{
    place_open(place);
    CHECK_INT(reopen(place), STATE_FRESH);
}

/* A test in a place of its own; and in one that is open already. */
#define TEST_PLACE(sentence) TEST_WITH(sentence, struct place, place, place_open(place), place_close(place))
#define TEST_FRESH(sentence)                                                                                 \
    TEST_WITH(sentence, struct place, place, place_open_fresh(place), place_close(place))

/* Each row of a table in a place of its own. */
#define IN_A_PLACE(row, check)                                                                               \
    do {                                                                                                     \
        struct place place = {0};                                                                            \
        place_open_fresh(&place);                                                                            \
        check;                                                                                               \
        place_close(&place);                                                                                 \
        if (check_state.failing)                                                                             \
            printf("# this row or one before: %s\n", row);                                                   \
    } while (0)

#define WAIT(place, precondition)                                                                            \
    do {                                                                                                     \
        struct patience patience_ = patience_of(STATE_DEADLINE_MS);                                          \
        while (!(precondition) && patience_lasts(&patience_))                                                \
            waited_turn((place)->loop, 2);                                                                   \
        CHECK(precondition);                                                                                 \
    } while (0)

static int files_open_at_first;

static inline int files_open(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int count = 0;

    while (dir != NULL && readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count;
}

static inline bool says(const struct place *place, const char *part)
{
    bool said = strstr(place->why, part) != NULL;

    if (!said)
        printf("# said: %s\n", place->why);
    return said;
}

static inline bool write_floor(struct place *place, int64_t floor)
{
    struct state_record record = record_of(floor);

    return state_file_write(&place->file, &record, place->why);
}

/* The floor of the file as another process sees it, -1 if it is not sound or not record_of() this floor. */
static inline int64_t floor_seen(struct place *place)
{
    struct state_record seen, whole;

    if (state_file_peek(place->state, &seen, place->why) != STATE_OPEN)
        return -1;
    whole = record_of(seen.floor);
    return state_record_equal(&seen, &whole) ? seen.floor : -1;
}

static inline void check_writes(struct place *place, int64_t floor)
{
    CHECK(write_floor(place, floor) && state_file_is_there(&place->file));
    CHECK_INT(floor_seen(place), floor);
}

#define STATE_MAIN                                                                                           \
    TEST(none_of_all_these_ends_has_left_a_file_open)                                                        \
    {                                                                                                        \
        CHECK_INT(files_open(), files_open_at_first);                                                        \
    }                                                                                                        \
    int main(void)                                                                                           \
    {                                                                                                        \
        loop_free(loop_new()); /* what libuv keeps */                                                        \
        files_open_at_first = files_open();                                                                  \
        exit(check_all());                                                                                   \
    }

#endif
