/* test_state_file.c - the state directory: its text, its lock, what stands in it after every kind of
 * accident, and that nothing is recorded before it is durable.
 *
 * fsync(), renameat() and flock() of the program are this file's own: they note in which order they are
 * called, can be held up, and fail when a test wants it. A crash is a kill -9 at every system call of a write
 * (ptrace). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "shared/member/state_file.h"
#include "shared/token/random.h"
#include "tests/unit/check.h"

enum { PLACE_MAX = 200, DEADLINE_MS = 20000, TURNS = 20 };

/* -- the program's own fsync(), renameat() and flock() */

static struct {
    char order[16];    /* 'f': fsync of a file, 'd': of a directory, 'r': rename, 'l', 'L': locks of these */
    char fail;         /* which of these fails, */
    int error;         /* with this */
    atomic_bool held;  /* no fsync goes on */
    atomic_uint syncs; /* begun */
} disk;

static void disk_is_new(void)
{
    memset(disk.order, 0, sizeof(disk.order));
    disk.fail = '\0';
}

static void disk_breaks(char what, int error)
{
    disk_is_new();
    disk.fail = what;
    disk.error = error;
}

static bool disk_fails(char what)
{
    size_t len = strlen(disk.order);

    if (len < sizeof(disk.order) - 1) {
        disk.order[len] = what;
    }
    errno = disk.error;
    return disk.fail == what;
}

/* The letter for a file or a directory. */
static char kind_of(int fd, char file, char directory)
{
    struct stat is;

    return fstat(fd, &is) == 0 && S_ISDIR(is.st_mode) ? directory : file;
}

int fsync(int fd)
{
    atomic_fetch_add(&disk.syncs, 1);
    while (atomic_load(&disk.held)) {
        sched_yield();
    }
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

static void place_open(struct place *place)
{
    const char *tmp = getenv("TMPDIR");

    disk_is_new();
    place->file.dir.fd = place->file.dir.lock_fd = -1;
    place->loop = loop_new();
    snprintf(place->root, sizeof(place->root), "%s/pawl-state-XXXXXX", tmp != NULL ? tmp : "/tmp");
    if (mkdtemp(place->root) == NULL) {
        abort();
    }
    snprintf(place->state, sizeof(place->state), "%s/s", place->root);
}

static int remove_one(const char *path, const struct stat *is, int kind, struct FTW *ftw)
{
    (void)is, (void)kind, (void)ftw;
    return remove(path);
}

static void tree_remove(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void place_close(struct place *place)
{
    atomic_store(&disk.held, false);
    loop_jobs_wait(place->loop);
    state_file_close(&place->file);
    loop_free(place->loop);
    tree_remove(place->root);
}

static const char *below(const char *dir, const char *name)
{
    static char path[4][2 * PLACE_MAX];
    static unsigned next;

    next = (next + 1) % 4;
    snprintf(path[next], sizeof(path[next]), "%.250s/%s", dir, name);
    return path[next];
}

static void place_wrote(struct state_file *file)
{
    struct place *place = container_of(file, struct place, file);

    place->wrote++;
    CHECK_INT(state_file_peek(place->state, &place->on_disk, place->why), STATE_OPEN);
}

static enum state_open open_at(struct place *place, const char *path)
{
    enum state_open end = state_file_open(&place->file, path, place->why);

    state_file_start(&place->file, place->loop, place_wrote);
    return end;
}

static enum state_open reopen(struct place *place)
{
    state_file_close(&place->file);
    return open_at(place, place->state);
}

static void place_open_fresh(struct place *place)
{
    place_open(place);
    CHECK_INT(reopen(place), STATE_FRESH);
}

/* A test in a place of its own; and in one that is open already. */
#define TEST_PLACE(sentence) TEST_WITH(sentence, struct place, place, place_open(place), place_close(place))
#define TEST_FRESH(sentence)                                                                                 \
    TEST_WITH(sentence, struct place, place, place_open_fresh(place), place_close(place))

#define WAIT(place, precondition)                                                                            \
    do {                                                                                                     \
        uint64_t till_ms_ = loop_now_ms() + DEADLINE_MS;                                                     \
        while (!(precondition) && loop_now_ms() < till_ms_) {                                                \
            loop_turn((place)->loop, 2);                                                                     \
        }                                                                                                    \
        CHECK(precondition);                                                                                 \
    } while (0)

static void file_put(const char *path, struct bytes content)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    if (fd < 0 || write(fd, content.at, content.len) != (ssize_t)content.len || close(fd) != 0) {
        abort();
    }
}

static struct bytes file_get(const char *path, char *buf, size_t size)
{
    int fd = open(path, O_RDONLY);
    ssize_t len = fd >= 0 ? read(fd, buf, size) : 0;

    if (fd >= 0) {
        close(fd);
    }
    return (struct bytes){buf, len > 0 ? (size_t)len : 0};
}

static bool is_there(const char *path)
{
    return faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int files_open_at_first;

static int files_open(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int count = 0;

    while (dir != NULL && readdir(dir) != NULL) {
        count++;
    }
    closedir(dir);
    return count;
}

static mode_t mode_of(const char *path)
{
    struct stat is;

    return lstat(path, &is) == 0 ? is.st_mode & 0777 : 0;
}

static bool is_closed(const struct place *place)
{
    return place->file.dir.fd == -1 && place->file.dir.lock_fd == -1;
}

static bool says(const struct place *place, const char *part)
{
    bool said = strstr(place->why, part) != NULL;

    if (!said) {
        printf("# said: %s\n", place->why);
    }
    return said;
}

/* An opening that fails in this way leaves nothing open. */
static void check_refused(struct place *place, const char *path, enum state_open wanted, const char *part)
{
    state_file_close(&place->file);
    CHECK_INT(open_at(place, path), wanted);
    CHECK(says(place, part) && is_closed(place));
}

/* One content for each floor, of another length each time. */
static struct state_record record_of(int64_t floor)
{
    struct state_record record;

    memset(&record, 0, sizeof(record));
    memcpy(record.member, "member_-01234567", MEMBER_ID_CHARS);
    memcpy(record.store, "store_-ABCDEFGHIJKLMNOPQ", STORE_ID_CHARS);
    record.floor = floor;
    record.epoch = floor % 7;
    record.roll = floor % 5;
    record.member_count = (unsigned)(floor % 40);
    for (unsigned i = 0; i < record.member_count; i++) {
        record.members[i].role = i % 3 == 0 ? MEMBER_GATEWAY : MEMBER_LEASE;
        snprintf(record.members[i].id, sizeof(record.members[i].id), "id%014u", i);
        snprintf(record.members[i].incarnation, sizeof(record.members[i].incarnation), "%016" PRId64, floor);
    }
    return record;
}

static bool write_floor(struct place *place, int64_t floor)
{
    struct state_record record = record_of(floor);

    return state_file_write(&place->file, &record, place->why);
}

/* The floor of the file as another process sees it, -1 if it is not sound or not record_of() this floor. */
static int64_t floor_seen(struct place *place)
{
    struct state_record seen, whole;

    if (state_file_peek(place->state, &seen, place->why) != STATE_OPEN) {
        return -1;
    }
    whole = record_of(seen.floor);
    return state_record_equal(&seen, &whole) ? seen.floor : -1;
}

static void check_writes(struct place *place, int64_t floor)
{
    CHECK(write_floor(place, floor) && state_file_is_there(&place->file));
    CHECK_INT(floor_seen(place), floor);
}

/* A child that dies with this process. */
static pid_t child_new(void)
{
    pid_t parent = getpid(), child;

    fflush(stdout);
    child = fork();
    if (child < 0) {
        abort();
    }
    if (child == 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)) {
        _exit(1);
    }
    return child;
}

static void kill_and_wait(pid_t child)
{
    int status;

    kill(child, SIGKILL);
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* -- the text */

#define ID_A "abcdefghijklmnop"
#define ID_B "ABCDEFGHIJKLMNOP"
#define INCARNATION "0123456789_-0123"
#define STORE "none_is_a_part_of_this_1"
#define FIRST "pawl high-water 1\n"
#define SECOND "pawl high-water 2\n"
#define ID "id " ID_A "\n"
#define OF_STORE "store " STORE "\n"
#define NUMBERS "floor 34\nepoch 2\nroll 7\n"
#define HEAD FIRST ID OF_STORE NUMBERS
#define LEASE_A "member lease " ID_A " " INCARNATION "\n"
#define GATEWAY_B "member gateway " ID_B " " INCARNATION "\n"
#define MEMBERS HEAD LEASE_A GATEWAY_B
#define DOUBT_A "doubt " ID_A " " INCARNATION " 1\n"
#define DOUBTS SECOND ID OF_STORE NUMBERS LEASE_A DOUBT_A

static bool is_taken(struct bytes text)
{
    struct state_record record;

    return state_record_parse(text.at, text.len, &record);
}

/* Whether it is, with the checksum that belongs to it. */
static bool is_taken_sealed(struct bytes body)
{
    char text[2 * STATE_TEXT_MAX], sum[DIGEST_TEXT + 1];

    digest_text(&body, 1, sum);
    memcpy(text, body.at, body.len);
    return is_taken(
        (struct bytes){text, body.len + (size_t)snprintf(text + body.len, 64, "checksum %s\n", sum)});
}

TEST(the_text_is_for_people_and_ends_with_the_blake2b_of_what_stands_before)
{
    static const char text[] = MEMBERS "checksum uUmpB_PIZoBCZ3KI8ekeQDA3pytkkm3wgx3ZmS5xSZo\n";
    struct state_record record,
        wanted = {ID_A,
                  STORE,
                  34,
                  2,
                  7,
                  2,
                  {{MEMBER_LEASE, ID_A, INCARNATION, 0}, {MEMBER_GATEWAY, ID_B, INCARNATION, 0}},
                  0,
                  {{0}}};
    char again[STATE_TEXT_MAX];

    CHECK(state_record_parse(text, sizeof(text) - 1, &record) && state_record_equal(&record, &wanted));
    CHECK_TEXT(((struct bytes){again, state_record_print(&wanted, again)}),
               ((struct bytes){text, sizeof(text) - 1}));
}

static void check_comes_back(const struct state_record *record)
{
    char text[STATE_TEXT_MAX];
    struct state_record again;
    size_t len = state_record_print(record, text);

    memset(&again, 0xA5, sizeof(again));
    CHECK(len > 0 && state_record_parse(text, len, &again) && state_record_equal(record, &again));
}

TEST(every_content_comes_back_as_it_was)
{
    struct state_record record = record_of(0);

    record.store[0] = '\0';
    check_comes_back(&record);
    for (int64_t floor = 0; floor < 80; floor++) {
        record = record_of(floor);
        check_comes_back(&record);
    }
    record.floor = record.epoch = record.roll = STATE_NUMBER_MAX;
    record.member_count = record.doubt_count = STATE_MEMBERS_MAX;
    for (unsigned i = 0; i < STATE_MEMBERS_MAX; i++) {
        record.members[i] = (struct state_member){MEMBER_GATEWAY, "", INCARNATION, 0};
        snprintf(record.members[i].id, sizeof(record.members[i].id), "id%014u", i);
        record.doubts[i] = record.members[i];
        record.doubts[i].role = MEMBER_DOUBT;
        record.doubts[i].store_epoch = STATE_NUMBER_MAX - i;
    }
    check_comes_back(&record);
}

/* What is changed is neither sound, if it says so, nor the same. */
#define CHANGED(sound, change)                                                                               \
    do {                                                                                                     \
        struct state_record b = a;                                                                           \
        change;                                                                                              \
        CHECK(state_record_is_sound(&b) == (sound) && (state_record_print(&b, text) > 0) == (sound));        \
        CHECK(!state_record_equal(&a, &b) && !state_record_equal(&b, &a));                                   \
    } while (0)

TEST_FRESH(two_contents_are_equal_when_every_part_is_and_what_is_not_sound_is_not_written)
{
    struct state_record a = record_of(34), c = a;
    char text[STATE_TEXT_MAX];

    memset(a.members + a.member_count, 0xA5, sizeof(a.members[0])); /* is not listed, and does not count */
    CHECK(state_record_equal(&a, &c) && state_record_equal(&c, &a) && state_record_is_sound(&a));
    CHANGED(true, b.member[15] = 'x');
    CHANGED(true, b.store[0] = '\0');
    CHANGED(true, b.floor++);
    CHANGED(true, b.epoch++);
    CHANGED(true, b.roll++);
    CHANGED(true, b.member_count--);
    CHANGED(true, b.members[33].id[15] = 'x');
    CHANGED(true, b.members[0].incarnation[0] = 'x');
    CHANGED(true, b.members[0].role = MEMBER_LEASE);
    CHANGED(false, b.doubt_count = 1);
    CHANGED(false, b.members[0].store_epoch = 1);
    CHANGED(false, b.floor = -1);
    CHANGED(false, b.floor = STATE_NUMBER_MAX + 1);
    CHANGED(false, b.epoch = STATE_NUMBER_MAX + 1);
    CHANGED(false, b.roll = -1);
    CHANGED(false, b.member_count = STATE_MEMBERS_MAX + 1);
    CHANGED(false, b.member[MEMBER_ID_CHARS - 1] = '\0');
    CHANGED(false, b.member[0] = '\n');
    CHANGED(false, b.store[0] = ' ');
    CHANGED(false, b.store[5] = '\0');
    CHANGED(false, memcpy(b.members[4].id, b.members[0].id, MEMBER_ID_CHARS));
    CHANGED(false, b.members[4].incarnation[0] = '\0');
    CHANGED(false, b.members[0].role = MEMBER_DOUBT);
    check_writes(place, 3);
    CHECK(!write_floor(place, STATE_NUMBER_MAX + 1) &&
          says(place, "is not written to: what was to be written is not sound."));
    CHECK_INT(floor_seen(place), 3);
}

TEST(a_text_with_one_bit_changed_or_cut_or_longer_is_damaged)
{
    struct state_record record = record_of(3), untouched = record_of(1), read = untouched;
    char text[STATE_TEXT_MAX + 2];
    size_t len = state_record_print(&record, text);

    for (size_t i = 0; i < len * 8; i++) {
        text[i / 8] = (char)(text[i / 8] ^ 1 << i % 8);
        CHECK(!is_taken((struct bytes){text, len}));
        text[i / 8] = (char)(text[i / 8] ^ 1 << i % 8);
    }
    for (size_t cut = 0; cut < len; cut++) {
        CHECK(!is_taken((struct bytes){text, cut}));
    }
    CHECK(is_taken((struct bytes){text, len}) && !is_taken((struct bytes){text + 1, len - 1}));
    text[len] = '\n';
    CHECK(!state_record_parse(text, len + 1, &read) && state_record_equal(&read, &untouched));
    CHECK(!is_taken((struct bytes){NULL, 0}));
}

static const char *const taken[] = {
    HEAD,
    MEMBERS,
    DOUBTS,
    FIRST ID "store none\n" NUMBERS GATEWAY_B LEASE_A,
    FIRST ID OF_STORE "floor 0\nepoch 0\nroll 0\n",
    FIRST ID OF_STORE "floor 999999999999999\nepoch 999999999999999\nroll 999999999999999\n",
    SECOND ID OF_STORE NUMBERS "doubt " ID_A " " INCARNATION " 0\n",
    SECOND ID OF_STORE NUMBERS LEASE_A "doubt " ID_A " " INCARNATION " 999999999999999\n",
    DOUBTS "doubt " ID_A " " ID_B " 1\n"};

/* Sealed, but otherwise written: with one of these in place of that. */
static const struct {
    const char *good, *that, *these[12];
} spoilt[] = {
    {MEMBERS, MEMBERS, {"", "\n", FIRST, FIRST ID OF_STORE}},
    {MEMBERS,
     FIRST,
     {"", "pawl high-water 0\n", SECOND, "pawl high-water 01\n", "pawl high-water\n", FIRST "\n"}},
    {MEMBERS, "pawl", {"Pawl", "\xef\xbb\xbfpawl"}},
    {MEMBERS, ID OF_STORE, {ID, OF_STORE, OF_STORE ID, ID ID OF_STORE, ID OF_STORE OF_STORE}},
    {MEMBERS,
     NUMBERS,
     {NUMBERS "roll 7\n", NUMBERS "ceiling 7\n", NUMBERS "\n", "floor 34\nroll 7\nepoch 2\n"}},
    {MEMBERS,
     "34",
     {"1000000000000000", "99999999999999999999999999", "034", "00", "-1", "+1", "", " 34", "34 ", "34\r",
      "0x22"}},
    {MEMBERS, "epoch 2", {"epoch 1000000000000000"}},
    {MEMBERS, "roll 7", {"roll 1000000000000000"}},
    {MEMBERS, "7\n" LEASE_A GATEWAY_B, {"7"}},
    {MEMBERS, "op\nstore", {"opq\nstore", "o\nstore", ".p\nstore"}},
    {MEMBERS, ID, {"id none\n"}},
    {MEMBERS,
     STORE,
     {"", "None", "none_is_a_part_of_this_", "none_is_a_part_of_this_12", "none_is_a part_of_this_1"}},
    {MEMBERS,
     GATEWAY_B,
     {"# a comment\n", LEASE_A, "member gateway " ID_A " " ID_B "\n", "member lease " ID_B " " INCARNATION}},
    {MEMBERS, "lease ", {"", "keeper "}},
    {MEMBERS, " " INCARNATION, {"", "  " INCARNATION, " " INCARNATION " 1", " 0123456789_-012!"}},
    {DOUBTS, SECOND, {FIRST}},
    {DOUBTS, LEASE_A, {DOUBT_A}},
    {DOUBTS, LEASE_A DOUBT_A, {LEASE_A, DOUBT_A LEASE_A}},
    {DOUBTS, " 1\n", {"\n", " 1", " 1 2\n", " 01\n", " 1000000000000000\n"}},
};

static void check_spoilt(const char *good, const char *that, const char *this)
{
    const char *at = strstr(good, that);
    char body[STATE_TEXT_MAX];

    snprintf(body, sizeof(body), "%.*s%s%s", (int)(at - good), good, this, at + strlen(that));
    if (!CHECK(!is_taken_sealed(bytes_of(body)))) {
        printf("# taken: %s\n", body);
    }
}

TEST(what_is_sealed_but_otherwise_written_is_damaged)
{
    for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
        if (!CHECK(is_taken_sealed(bytes_of(taken[i])))) {
            printf("# not taken: %s\n", taken[i]);
        }
    }
    for (size_t i = 0; i < sizeof(spoilt) / sizeof(spoilt[0]); i++) {
        for (size_t k = 0; spoilt[i].these[k] != NULL; k++) {
            check_spoilt(spoilt[i].good, spoilt[i].that, spoilt[i].these[k]);
        }
    }
    CHECK(!is_taken_sealed(BYTES(FIRST "id abcdefgh\0jklmnop\n" OF_STORE NUMBERS)));
    CHECK(!is_taken_sealed(BYTES(FIRST ID "store \0one_is_a_part_of_this_1\n" NUMBERS)));
    CHECK(!is_taken_sealed(BYTES(FIRST ID OF_STORE NUMBERS "\0")));
}

/* Whether a file with so many lines that begin and end so is. */
static bool lines_are_taken(const char *head, const char *begin, const char *end, unsigned count)
{
    char body[STATE_TEXT_MAX + 128];
    size_t len = (size_t)snprintf(body, sizeof(body), "%s", head);

    for (unsigned i = 0; i < count; i++) {
        len += (size_t)snprintf(body + len, sizeof(body) - len, "%s%016u " INCARNATION "%s\n", begin, i, end);
    }
    return is_taken_sealed((struct bytes){body, len});
}

TEST(at_most_256_members_and_256_doubts_are_listed)
{
    for (unsigned more = 0; more < 2; more++) {
        CHECK(lines_are_taken(HEAD, "member lease ", "", STATE_MEMBERS_MAX + more) == (more == 0));
        CHECK(lines_are_taken(SECOND ID OF_STORE NUMBERS, "doubt ", " 7", STATE_DOUBTS_MAX + more) ==
              (more == 0));
    }
}

/* -- where it is */

static void variable_is(const char *name, const char *value)
{
    if (value != NULL ? setenv(name, value, 1) != 0 : unsetenv(name) != 0) {
        abort();
    }
}

static const struct {
    const char *given, *directory, *xdg, *home;
    const char *path, *wrong; /* one of them: the path, or a part of what is wrong */
} path_cases[] = {
    {"/given", "/d", "/x", "/h", "/given", NULL},
    {"given/below", "/d", "/x", "/h", "given/below", NULL},
    {"/given///", NULL, NULL, NULL, "/given", NULL},
    {"/", NULL, NULL, NULL, "/", NULL},
    {"///", NULL, NULL, NULL, "/", NULL},
    {NULL, "/d", "/x", "/h", "/d", NULL},
    {"", "/d", "/x", "/h", "/d", NULL},
    {NULL, "/d1/a:/d2:/d3", "/x", "/h", "/d1/a", NULL},
    {NULL, "/d1/:", "/x", "/h", "/d1", NULL},
    {NULL, "d", "/x", "/h", NULL, "$STATE_DIRECTORY does not begin"},
    {NULL, ":/d", "/x", "/h", NULL, "$STATE_DIRECTORY does not begin"},
    {NULL, NULL, "/x", "/h", "/x/pawl", NULL},
    {NULL, "", "/x/", "/h", "/x/pawl", NULL},
    {NULL, NULL, "x", "/h", "/h/.local/state/pawl", NULL},
    {NULL, NULL, "", "/h", "/h/.local/state/pawl", NULL},
    {NULL, NULL, NULL, "/h/", "/h/.local/state/pawl", NULL},
    {NULL, NULL, NULL, "h", NULL, "none is given"},
    {NULL, NULL, "x", "", NULL, "none is given"},
    {NULL, NULL, NULL, NULL, NULL, "none is given"},
};

TEST(the_path_is_the_given_one_or_the_first_that_the_environment_names)
{
    char path[STATE_PATH_MAX], home[256];

    snprintf(home, sizeof(home), "%s", getenv("HOME") != NULL ? getenv("HOME") : "/");
    for (size_t i = 0; i < sizeof(path_cases) / sizeof(path_cases[0]); i++) {
        variable_is("STATE_DIRECTORY", path_cases[i].directory);
        variable_is("XDG_STATE_HOME", path_cases[i].xdg);
        variable_is("HOME", path_cases[i].home);
        const char *wrong = state_path(path_cases[i].given, path);
        if (path_cases[i].path != NULL) {
            CHECK(wrong == NULL && CHECK_TEXT(bytes_of(path), bytes_of(path_cases[i].path)));
        } else {
            CHECK(wrong != NULL && strstr(wrong, path_cases[i].wrong) != NULL);
        }
    }
    variable_is("STATE_DIRECTORY", NULL);
    variable_is("XDG_STATE_HOME", NULL);
    variable_is("HOME", home);
}

TEST_PLACE(a_path_has_at_most_1023_bytes)
{
    char given[STATE_PATH_MAX + 2], path[STATE_PATH_MAX];

    memset(given, 'a', sizeof(given));
    given[0] = '/';
    given[STATE_PATH_MAX] = '\0';
    CHECK(strstr(state_path(given, path), "1,023 bytes") != NULL);
    given[STATE_PATH_MAX - 1] = '\0';
    CHECK(state_path(given, path) == NULL && strcmp(path, given) == 0);
    check_refused(place, given, STATE_FAILED, "File name too long");
}

/* -- open and peek */

TEST_FRESH(a_directory_that_is_not_there_is_made_and_keeps_its_member_id)
{
    struct state_record first = place->file.recorded, blank = {0};

    memcpy(blank.member, first.member, sizeof(blank.member));
    CHECK_INT(strlen(first.member), MEMBER_ID_CHARS);
    CHECK(state_record_equal(&first, &blank) && place->why[0] == '\0');
    CHECK_INT(mode_of(place->state), 0700);
    CHECK_INT(mode_of(below(place->state, "high-water")), 0600);
    CHECK(state_file_is_there(&place->file));
    CHECK_INT(reopen(place), STATE_OPEN);
    CHECK(state_record_equal(&place->file.recorded, &first));
    CHECK(state_file_is_there(&place->file));
    state_file_close(&place->file);
    CHECK_INT(open_at(place, below(place->root, "t")), STATE_FRESH);
    CHECK(strcmp(first.member, place->file.recorded.member) != 0);
}

TEST_PLACE(parents_are_made_for_others_to_enter_and_the_directory_for_nobody_else)
{
    CHECK_INT(open_at(place, below(place->root, "a//b/state")), STATE_FRESH);
    CHECK_INT(mode_of(below(place->root, "a")), 0755);
    CHECK_INT(mode_of(below(place->root, "a/b")), 0755);
    CHECK_INT(mode_of(below(place->root, "a/b/state")), 0700);
    CHECK(strcmp(disk.order, "dddlLfrd") == 0); /* three parents; locks; file, rename, directory */
}

TEST_PLACE(a_relative_path_and_a_link_to_a_directory_are_as_good)
{
    int here = open(".", O_RDONLY | O_DIRECTORY);

    CHECK(here >= 0 && chdir(place->root) == 0);
    CHECK_INT(open_at(place, "r/s"), STATE_FRESH);
    CHECK(state_file_is_there(&place->file) && is_there(below(place->root, "r/s/high-water")));
    state_file_close(&place->file);
    CHECK(symlink("r/s", "link") == 0);
    CHECK_INT(open_at(place, "link"), STATE_OPEN);
    CHECK(state_file_is_there(&place->file));
    CHECK(fchdir(here) == 0 && close(here) == 0);
}

TEST_PLACE(a_directory_that_cannot_be_had_is_told_with_the_reason)
{
    const char *file = below(place->root, "file"), *link = below(place->root, "link");
    struct state_record seen;

    file_put(file, BYTES("x"));
    check_refused(place, file, STATE_FAILED, "/file cannot be opened: Not a directory.");
    CHECK_INT(state_file_peek(file, &seen, place->why), STATE_FAILED);
    CHECK(says(place, "/file cannot be opened: Not a directory."));
    check_refused(place, below(place->root, "file/s"), STATE_FAILED,
                  "/file/s cannot be opened: Not a directory.");
    CHECK(symlink("nowhere/at/all", link) == 0);
    check_refused(place, link, STATE_FAILED, "/link cannot be opened: No such file or directory.");
    check_refused(place, "/proc/no/state", STATE_FAILED,
                  "The state directory /proc/no/state cannot be made: ");
    disk_breaks('d', EIO);
    check_refused(place, place->state, STATE_FAILED, "cannot be made: Input/output error.");
}

TEST_PLACE(who_peeks_makes_nothing_and_asks_for_no_lock)
{
    struct state_record seen;

    CHECK_INT(state_file_peek(place->state, &seen, place->why), STATE_FRESH);
    CHECK(!is_there(place->state) && mkdir(place->state, 0700) == 0);
    memset(&seen, 1, sizeof(seen));
    CHECK_INT(state_file_peek(place->state, &seen, place->why), STATE_FRESH);
    CHECK_TEXT(bytes_of(seen.member), BYTES(""));
    CHECK(!is_there(below(place->state, "lock")) && !is_there(below(place->state, "high-water")));
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
    for (int i = 0; i < 2; i++) {
        disk_breaks("fd"[i], EIO);
        check_refused(place, place->state, STATE_FAILED,
                      "/high-water cannot be synced to the disk: Input/output error.");
    }
}

/* -- what is damaged */

static void check_damaged(struct place *place, const char *part)
{
    struct state_record seen;

    check_refused(place, place->state, STATE_DAMAGED, part);
    CHECK(says(place, "/high-water is "));
    CHECK_INT(state_file_peek(place->state, &seen, place->why), STATE_DAMAGED);
    CHECK(says(place, part) && says(place, "/high-water is "));
}

TEST_FRESH(a_high_water_file_that_does_not_bear_its_checksum_is_left_as_it_is)
{
    static const struct {
        struct bytes content;
        const char *why;
    } cases[] = {
        {{"", 0}, "(it is empty)"},
        {{"\n", 1}, "(its text and its checksum do not agree)"},
        {{HEAD, sizeof(HEAD) - 1}, "(its text and its checksum do not agree)"},
        {{"pawl high-water 3\nnew\n", 22}, "of version 3, this release knows version 2"},
        {{"pawl high-water 999999999999999\n", 32}, "of version 999999999999999, this release"},
        {{"pawl high-water 1000000000000000\n", 33}, "(its text and its checksum do not agree)"},
        {{"pawl high-water 27", 18}, "(its text and its checksum do not agree)"},
        {{"pawl high-water x\n", 18}, "(its text and its checksum do not agree)"},
    };
    char now[64 + sizeof(HEAD)];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        file_put(below(place->state, "high-water"), cases[i].content);
        check_damaged(place, cases[i].why);
        CHECK_TEXT(file_get(below(place->state, "high-water"), now, sizeof(now)), cases[i].content);
    }
}

TEST_FRESH(a_high_water_file_of_a_mebibyte_is_not_read_as_its_first_part)
{
    static char text[1024 * 1024];
    struct state_record record = record_of(3);

    state_record_print(&record, text);
    file_put(below(place->state, "high-water"), (struct bytes){text, sizeof(text)});
    check_damaged(place, "(it is too long)");
}

TEST_FRESH(a_high_water_file_that_is_no_file_is_damaged_and_holds_nobody_up)
{
    const char *file = below(place->state, "high-water"), *target = below(place->root, "target");

    CHECK(rename(file, target) == 0 && symlink(target, file) == 0);
    check_damaged(place, "(it is a symbolic link)");
    CHECK(unlink(file) == 0 && symlink("nowhere", file) == 0);
    check_damaged(place, "(it is a symbolic link)");
    CHECK(unlink(file) == 0 && mkdir(file, 0700) == 0);
    check_damaged(place, "(it is not a regular file)");
    CHECK(rmdir(file) == 0 && mkfifo(file, 0600) == 0);
    check_damaged(place, "(it is not a regular file)");
    CHECK(unlink(file) == 0 && rename(target, file) == 0);
    CHECK_INT(reopen(place), STATE_OPEN);
}

/* -- the lock */

/* A process that has the directory open until it is killed. */
static pid_t holder_new(struct place *place)
{
    int ready[2];
    char end = -1;
    pid_t child;

    if (pipe(ready) != 0) {
        abort();
    }
    child = child_new();
    if (child == 0) {
        end = (char)reopen(place);
        if (write(ready[1], &end, 1) == 1) {
            pause();
        }
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
    char name[64];
    pid_t holder = holder_new(place);

    snprintf(name, sizeof(name), "is in use by process %d;", (int)holder);
    for (int i = 0; i < 3; i++) {
        check_refused(place, place->state, STATE_IN_USE, name);
        CHECK(says(place, place->state));
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
    CHECK(unlink(below(place->state, "lock")) == 0);
    CHECK(!state_file_is_there(&place->file));
    CHECK_INT(state_file_open(&second, place->state, place->why), STATE_IN_USE);
    CHECK(says(place, "in use by another process;"));
    CHECK(is_there(below(place->state, "lock")) && !state_file_is_there(&place->file));
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
    CHECK(unlink(below(place->state, "lock")) == 0);
    CHECK_INT(state_file_open(&second, place->state, place->why), STATE_OPEN);
    CHECK(!state_file_is_there(&place->file) && !write_floor(place, 1));
    CHECK(state_file_is_there(&second));
    state_file_close(&second);
}

TEST_PLACE(a_lock_that_cannot_be_had_for_another_reason_is_not_called_in_use)
{
    disk_breaks('l', ENOLCK);
    check_refused(place, place->state, STATE_FAILED, "/lock cannot be locked: No locks available.");
    CHECK(!is_there(below(place->state, "high-water")));
}

TEST_FRESH(a_lock_with_anything_in_it_is_good_and_one_that_is_no_file_is_not)
{
    const char *lock = below(place->state, "lock");

    file_put(lock, BYTES("99999999999999999999999999 and much more than one line\nof text\n"));
    CHECK_INT(reopen(place), STATE_OPEN);
    CHECK(unlink(lock) == 0 && symlink("elsewhere", lock) == 0);
    check_refused(place, place->state, STATE_FAILED,
                  "/lock cannot be opened: Too many levels of symbolic links.");
    CHECK(!is_there(below(place->state, "elsewhere")));
    CHECK(unlink(lock) == 0 && mkdir(lock, 0700) == 0);
    check_refused(place, place->state, STATE_FAILED, "/lock cannot be opened: Is a directory.");
    CHECK(rmdir(lock) == 0 && mkfifo(lock, 0600) == 0);
    check_refused(place, place->state, STATE_FAILED, "/lock is not a regular file");
}

/* -- whether it is still there */

static void check_gone(struct place *place, const char *accident)
{
    if (!CHECK(!state_file_is_there(&place->file))) {
        printf("# after: %s\n", accident);
    }
}

TEST_FRESH(a_high_water_file_that_was_deleted_replaced_or_changed_is_noticed)
{
    const char *file = below(place->state, "high-water"), *copy = below(place->root, "copy");
    char old[STATE_TEXT_MAX];
    struct bytes text;

    CHECK(write_floor(place, 41));
    check_writes(place, 81);
    text = file_get(file, old, sizeof(old));
    CHECK(rename(file, copy) == 0);
    check_gone(place, "moved away");
    CHECK(rename(copy, file) == 0 && state_file_is_there(&place->file));
    CHECK(unlink(file) == 0);
    check_gone(place, "deleted");
    CHECK(mkdir(file, 0700) == 0);
    check_gone(place, "a directory in its place");
    CHECK(rmdir(file) == 0 && symlink("copy", file) == 0);
    check_gone(place, "a link in its place");
    CHECK(unlink(file) == 0);
    file_put(file, text);
    check_gone(place, "the same text in a new file");
    check_writes(place, 82);
    file_put(file, text);
    check_gone(place, "an old text in the same file");
    check_writes(place, 83);
    CHECK(truncate(file, 0) == 0);
    check_gone(place, "emptied");
}

TEST_FRESH(a_directory_that_was_deleted_or_moved_is_noticed_and_not_written_to)
{
    const char *moved = below(place->root, "moved");

    CHECK(write_floor(place, 2) && rename(place->state, moved) == 0);
    check_gone(place, "the directory moved");
    CHECK(!write_floor(place, 3) && says(place, "deleted, moved or replaced"));
    CHECK(mkdir(place->state, 0700) == 0);
    check_gone(place, "another directory in its place");
    CHECK(!write_floor(place, 3) && !is_there(below(place->state, "high-water")));
    CHECK(rmdir(place->state) == 0 && rename(moved, place->state) == 0);
    check_writes(place, 4);
    tree_remove(place->state);
    check_gone(place, "everything deleted");
    CHECK(!write_floor(place, 5) && !is_there(place->state));
    CHECK_INT(reopen(place), STATE_FRESH);
    state_file_close(&place->file);
    CHECK(!state_file_is_there(&place->file) && !write_floor(place, 6));
}

/* -- writing */

TEST_FRESH(what_is_written_is_on_the_disk_before_it_has_its_name_and_its_name_before_it_counts)
{
    char text[64] = "";

    CHECK_TEXT(bytes_of(disk.order), BYTES("dlLfrd")); /* the parent; the locks; then as below */
    disk_is_new();
    CHECK(write_floor(place, 1));
    CHECK_TEXT(bytes_of(disk.order), BYTES("frd"));
    CHECK_TEXT(bytes_of(place->why), BYTES(""));
    CHECK(!is_there(below(place->state, "high-water.new")));
    CHECK_INT(file_get(below(place->state, "lock"), text, sizeof(text)).len, 16);
    CHECK_INT(strtol(text, NULL, 10), getpid());
}

TEST_PLACE(a_first_write_that_fails_is_told_and_leaves_no_half_of_a_file)
{
    CHECK(mkdir(place->state, 0700) == 0);
    disk_breaks('f', ENOSPC);
    check_refused(place, place->state, STATE_FAILED,
                  "/high-water.new cannot be synced to the disk: No space left on device.");
    CHECK(!is_there(below(place->state, "high-water")) && !is_there(below(place->state, "high-water.new")));
    disk_is_new();
    CHECK_INT(reopen(place), STATE_FRESH);
}

TEST_FRESH(what_a_crash_has_left_beside_it_is_in_nobodys_way)
{
    const char *left = below(place->state, "high-water.new"), *target = below(place->root, "target");
    char now[8];

    file_put(left, BYTES("half of a fi"));
    CHECK_INT(reopen(place), STATE_OPEN);
    CHECK(write_floor(place, 1) && !is_there(left));
    file_put(target, BYTES("whole"));
    CHECK(symlink(target, left) == 0);
    CHECK(write_floor(place, 2) && !is_there(left));
    CHECK_TEXT(file_get(target, now, sizeof(now)), BYTES("whole"));
    CHECK(mkdir(left, 0700) == 0);
    CHECK(!write_floor(place, 3) && says(place, "/high-water.new cannot be made: File exists."));
    CHECK_INT(floor_seen(place), 2);
    CHECK(rmdir(left) == 0 && write_floor(place, 4));
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
        CHECK(!is_there(below(place->state, "high-water.new")) && state_file_is_there(&place->file));
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

    if (unshare(CLONE_NEWNS) == 0) {
        return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
    }
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

    check_refused(place, place->state, STATE_FAILED, full); /* one page: the lock's */
    CHECK(remount(place, 0, "size=8k"));
    CHECK_INT(reopen(place), STATE_FRESH);
    CHECK(!write_floor(place, 1) && says(place, full));
    CHECK(state_file_is_there(&place->file) && !is_there(below(place->state, "high-water.new")));
    CHECK_INT(reopen(place), STATE_OPEN); /* a full disk can be read, and locked */
    CHECK(!write_floor(place, 1));
    CHECK(remount(place, 0, "size=64k"));
    check_writes(place, 2);
}

static void check_read_only_disk(struct place *place)
{
    state_file_close(&place->file);
    CHECK(remount(place, MS_RDONLY, NULL));
    check_refused(place, place->state, STATE_FAILED, "/lock cannot be opened: Read-only file system.");
    CHECK_INT(floor_seen(place), 2);
    CHECK(remount(place, 0, NULL));
    CHECK_INT(reopen(place), STATE_OPEN);
    check_writes(place, 3);
}

TEST_PLACE(on_a_full_or_read_only_disk_nothing_goes_wrong_and_afterwards_all_is_well)
{
    pid_t child;
    int status = 0;

    CHECK(mkdir(place->state, 0700) == 0);
    child = child_new();
    if (child == 0) {
        if (!namespace_enter() || mount("tmpfs", place->state, "tmpfs", 0, "size=4k,mode=0700") != 0) {
            _exit(77);
        }
        check_full_disk(place);
        check_read_only_disk(place);
        fflush(stdout);
        _exit(check_state.failing);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) {
        check_skip("this process may not mount anything, not even in a namespace of its own");
    } else {
        CHECK_INT(WEXITSTATUS(status), 0);
    }
}

/* -- crashes */

/* Killed at this system call of a write, counted in stops: one before and one after each; has_ended: the
 * write had returned by then. The number of stops until it was over, if it was over before. */
static int killed_at(struct place *place, int stop, atomic_bool *has_ended)
{
    int status, stops = 0;
    pid_t child = child_new();

    if (child == 0) {
        if (reopen(place) != STATE_OPEN || ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) {
            _exit(2);
        }
        raise(SIGSTOP);
        if (!write_floor(place, 2)) {
            _exit(3);
        }
        atomic_store(has_ended, true);
        getppid();
        _exit(0);
    }
    if (!CHECK(waitpid(child, &status, 0) == child && WIFSTOPPED(status))) {
        return -1;
    }
    ptrace(PTRACE_SETOPTIONS, child, NULL, (void *)PTRACE_O_EXITKILL);
    while (stops < stop && ptrace(PTRACE_SYSCALL, child, NULL, NULL) == 0 &&
           waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
        stops++;
    }
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

/* -- in step with what is wanted */

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
    for (unsigned i = 0; i < TURNS; i++) {
        loop_turn(place->loop, 1);
    }
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
    memset(&same.members[same.member_count], 0xa5, sizeof(same.members[0])); /* behind the list */
    state_file_want(&place->file, &same);
    CHECK(!place->file.is_busy);
    CHECK_INT(atomic_load(&disk.syncs), syncs);
    same.members[1].id[0] = 'c';
    state_file_want(&place->file, &same);
    WAIT(place, place->wrote == 2);
    CHECK_INT(place->on_disk.members[1].id[0], 'c');
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
        CHECK(!is_there(below(place->state, "high-water.new")) && state_file_is_there(&place->file));
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
        if (!place.file.is_busy) {
            want_floor(&place, 8);
        }
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
    CHECK_INT(place->file.recorded.floor, 7);
}

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

TEST_FRESH(a_directory_that_was_taken_away_is_lost_for_good)
{
    const char *away = below(place->root, "away");

    keep_floor(place, 7);
    CHECK_INT(rename(place->state, away), 0);
    check_lost(place);
    CHECK_INT(rename(away, place->state), 0);
    check_lost(place);
}

TEST_FRESH(a_directory_that_goes_during_a_write_is_lost_when_the_write_is_over)
{
    unsigned syncs;

    keep_floor(place, 7);
    syncs = atomic_load(&disk.syncs);
    atomic_store(&disk.held, true);
    want_floor(place, 8);
    WAIT(place, atomic_load(&disk.syncs) == syncs + 1);
    CHECK_INT(rename(place->state, below(place->root, "away")), 0);
    CHECK(state_file_trouble(&place->file) == NULL); /* the writer has it just now */
    atomic_store(&disk.held, false);
    WAIT(place, !place->file.is_busy);
    check_lost(place);
}

TEST_FRESH(a_high_water_file_that_was_deleted_is_a_loss)
{
    keep_floor(place, 7);
    CHECK_INT(unlink(below(place->state, "high-water")), 0);
    check_lost(place);
}

TEST(none_of_all_these_ends_has_left_a_file_open)
{
    CHECK_INT(files_open(), files_open_at_first);
}

int main(void)
{
    loop_free(loop_new()); /* what libuv keeps */
    files_open_at_first = files_open();
    return check_all();
}
