/* test_state_dir.c - the state directory: its text, its lock, and what stands in it after every kind of
 * accident.
 *
 * fsync(), renameat() and flock() of the program are this file's own: they note in which order they are
 * called, and fail when a test wants it. A crash is a kill -9, at every system call of a write (ptrace) and
 * at random moments. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "shared/member/state_dir.h"
#include "shared/token/random.h"
#include "tests/unit/check.h"

enum { PLACE_MAX = 200, KILLS = 200, DEADLINE_MS = 20000 };

/* -- the program's own fsync(), renameat() and flock() */

static struct {
    char order[16]; /* 'f': fsync of a file, 'd': of a directory, 'r': rename, 'l', 'L': locks of these */
    char fail;      /* which of these fails, */
    int error;      /* with this */
    bool sync_is_nothing; /* no fsync: a kill does not lose what the kernel has */
} disk;

static void disk_is_new(void)
{
    memset(&disk, 0, sizeof(disk));
}

static bool disk_fails(char what)
{
    size_t len = strlen(disk.order);

    if (len < sizeof(disk.order) - 1)
        disk.order[len] = what;
    errno = disk.error;
    return disk.fail == what;
}

int fsync(int fd)
{
    struct stat is;
    int kind = fstat(fd, &is);

    if (kind != 0 || disk_fails(S_ISDIR(is.st_mode) ? 'd' : 'f'))
        return -1;
    return disk.sync_is_nothing ? 0 : (int)syscall(SYS_fsync, fd);
}

int flock(int fd, int operation)
{
    struct stat is;
    int kind = fstat(fd, &is);

    if (kind != 0 || disk_fails(S_ISDIR(is.st_mode) ? 'L' : 'l'))
        return -1;
    return (int)syscall(SYS_flock, fd, operation);
}

int renameat(int old_dir, const char *old_name, int new_dir, const char *new_name)
{
    return disk_fails('r') ? -1 : (int)syscall(SYS_renameat2, old_dir, old_name, new_dir, new_name, 0);
}

/* -- places: each test has a directory of its own, and in it "s", the state directory */

struct place {
    char root[PLACE_MAX], state[PLACE_MAX + 8], why[STATE_WHY_MAX];
    struct state_dir dir;
    struct high_water water;
};

static void place_open(struct place *place)
{
    const char *tmp = getenv("TMPDIR");

    memset(place, 0, sizeof(*place));
    place->dir.dir_fd = place->dir.lock_fd = -1;
    disk_is_new();
    snprintf(place->root, sizeof(place->root), "%s/pawl-state-XXXXXX", tmp != NULL ? tmp : "/tmp");
    if (mkdtemp(place->root) == NULL)
        abort();
    snprintf(place->state, sizeof(place->state), "%s/s", place->root);
}

static void tree_remove(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *entry;
    char below[2 * PLACE_MAX];

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(below, sizeof(below), "%.200s/%.100s", path, entry->d_name);
        if (unlink(below) != 0)
            tree_remove(below);
    }
    if (dir != NULL)
        closedir(dir);
    rmdir(path);
}

static void place_close(struct place *place)
{
    state_dir_close(&place->dir);
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

static enum state_open reopen(struct place *place)
{
    state_dir_close(&place->dir);
    return state_dir_open(&place->dir, place->state, &place->water, place->why);
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

static void file_put(const char *path, struct bytes content)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    if (fd < 0 || write(fd, content.at, content.len) != (ssize_t)content.len || close(fd) != 0)
        abort();
}

static struct bytes file_get(const char *path, char *buf, size_t size)
{
    int fd = open(path, O_RDONLY);
    ssize_t len = fd >= 0 ? read(fd, buf, size) : 0;

    if (fd >= 0)
        close(fd);
    return (struct bytes){buf, len > 0 ? (size_t)len : 0};
}

static bool is_there(const char *path)
{
    struct stat is;

    return lstat(path, &is) == 0;
}

static int files_open_at_first;

static int files_open(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int count = 0;

    while (dir != NULL && readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count;
}

static mode_t mode_of(const char *path)
{
    struct stat is;

    return lstat(path, &is) == 0 ? is.st_mode & 0777 : 0;
}

static bool says(const struct place *place, const char *part)
{
    bool said = strstr(place->why, part) != NULL;

    if (!said)
        printf("# said: %s\n", place->why);
    return said;
}

/* One content for each floor, of another length each time. */
static struct high_water water_of(int64_t floor)
{
    struct high_water water;

    memset(&water, 0, sizeof(water));
    memcpy(water.member, "member_-01234567", MEMBER_ID_CHARS);
    memcpy(water.store, "store_-ABCDEFGHIJKLMNOPQ", STORE_ID_CHARS);
    water.floor = floor;
    water.epoch = floor % 7;
    water.roll = floor % 5;
    water.member_count = (unsigned)(floor % 40);
    for (unsigned i = 0; i < water.member_count; i++) {
        water.members[i].role = i % 3 == 0 ? MEMBER_GATEWAY : MEMBER_LEASE;
        snprintf(water.members[i].id, sizeof(water.members[i].id), "id%014u", i);
        snprintf(water.members[i].incarnation, sizeof(water.members[i].incarnation), "%016" PRId64, floor);
    }
    return water;
}

static bool write_floor(struct place *place, int64_t floor)
{
    struct high_water water = water_of(floor);

    return state_dir_write(&place->dir, &water, place->why);
}

/* The floor of the file as who looks from outside sees it, -1 if it is not sound or not water_of() this
 * floor. */
static int64_t floor_seen(struct place *place)
{
    struct high_water seen, whole;

    if (state_dir_peek(place->state, &seen, place->why) != STATE_OPEN)
        return -1;
    whole = water_of(seen.floor);
    return high_water_equal(&seen, &whole) ? seen.floor : -1;
}

static int exit_of(pid_t child)
{
    int status = 0;

    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

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

static int64_t now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
}

/* -- the text */

#define ID_A "abcdefghijklmnop"
#define ID_B "ABCDEFGHIJKLMNOP"
#define INCARNATION "0123456789_-0123"
#define STORE "none_is_a_part_of_this_1"
#define HEAD "pawl high-water 1\nid " ID_A "\nstore " STORE "\nfloor 34\nepoch 2\nroll 7\n"

/* The text with the checksum that belongs to it. */
static struct bytes sealed(struct bytes body)
{
    static char text[2 * HIGH_WATER_TEXT_MAX];
    char sum[DIGEST_TEXT + 1];

    digest_text(&body, 1, sum);
    memcpy(text, body.at, body.len);
    return (struct bytes){text, body.len + (size_t)snprintf(text + body.len, 64, "checksum %s\n", sum)};
}

static bool is_taken(struct bytes text)
{
    struct high_water water;

    return high_water_parse(text.at, text.len, &water);
}

TEST(the_text_is_for_people_and_ends_with_the_blake2b_of_what_stands_before)
{
    static const char text[] = HEAD "member lease " ID_A " " INCARNATION "\nmember gateway " ID_B
                                    " " INCARNATION
                                    "\nchecksum uUmpB_PIZoBCZ3KI8ekeQDA3pytkkm3wgx3ZmS5xSZo\n";
    struct high_water water;
    char again[HIGH_WATER_TEXT_MAX];

    if (!CHECK(high_water_parse(text, sizeof(text) - 1, &water)))
        return;
    CHECK_TEXT(bytes_of(water.member), BYTES(ID_A));
    CHECK_TEXT(bytes_of(water.store), BYTES(STORE));
    CHECK_INT(water.floor, 34);
    CHECK_INT(water.epoch, 2);
    CHECK_INT(water.roll, 7);
    CHECK_INT(water.member_count, 2);
    CHECK_INT(water.members[0].role, MEMBER_LEASE);
    CHECK_TEXT(bytes_of(water.members[0].id), BYTES(ID_A));
    CHECK_INT(water.members[1].role, MEMBER_GATEWAY);
    CHECK_TEXT(bytes_of(water.members[1].id), BYTES(ID_B));
    CHECK_TEXT(bytes_of(water.members[1].incarnation), BYTES(INCARNATION));
    CHECK_TEXT(((struct bytes){again, high_water_print(&water, again, sizeof(again))}),
               ((struct bytes){text, sizeof(text) - 1}));
}

static void check_comes_back(const struct high_water *water)
{
    char text[HIGH_WATER_TEXT_MAX];
    struct high_water again;
    size_t len = high_water_print(water, text, sizeof(text));

    memset(&again, 0xA5, sizeof(again));
    CHECK(len > 0 && high_water_parse(text, len, &again) && high_water_equal(water, &again));
}

TEST(every_content_comes_back_as_it_was)
{
    struct high_water water = water_of(0);

    check_comes_back(&water);
    memset(water.store, 0, sizeof(water.store));
    check_comes_back(&water);
    for (int64_t floor = 1; floor < 80; floor++) {
        water = water_of(floor);
        check_comes_back(&water);
    }
    water = water_of(HIGH_WATER_MAX);
    water.epoch = water.roll = HIGH_WATER_MAX;
    water.member_count = STATE_MEMBERS_MAX;
    for (unsigned i = 0; i < STATE_MEMBERS_MAX; i++) {
        water.members[i] = (struct state_member){MEMBER_GATEWAY, "", INCARNATION, 0};
        snprintf(water.members[i].id, sizeof(water.members[i].id), "id%014u", i);
    }
    check_comes_back(&water);
    memcpy(water.doubts, water.members, sizeof(water.doubts));
    for (water.doubt_count = 0; water.doubt_count < STATE_DOUBTS_MAX; water.doubt_count++) {
        water.doubts[water.doubt_count].role = MEMBER_DOUBT;
        water.doubts[water.doubt_count].store_epoch = HIGH_WATER_MAX - water.doubt_count;
    }
    check_comes_back(&water);
}

TEST(two_contents_are_equal_when_every_part_is)
{
    struct high_water a = water_of(34), b[11], c = water_of(34);

    memset(a.members + a.member_count, 0xA5, sizeof(a.members[0])); /* is not listed, and does not count */
    CHECK(high_water_equal(&a, &c) && high_water_equal(&c, &a));
    for (size_t i = 0; i < 11; i++)
        b[i] = water_of(34);
    b[0].member[15] = 'x';
    b[1].store[0] = '\0';
    b[2].floor++;
    b[3].epoch++;
    b[4].roll++;
    b[5].member_count--;
    b[6].members[33].id[15] = 'x';
    b[7].members[0].incarnation[0] = 'x';
    b[8].members[0].role = MEMBER_LEASE;
    b[9].doubt_count = 1;
    b[10].members[0].store_epoch = 1;
    for (size_t i = 0; i < 11; i++)
        CHECK(!high_water_equal(&a, &b[i]) && !high_water_equal(&b[i], &a));
}

TEST(a_text_with_one_bit_changed_or_cut_or_longer_is_damaged)
{
    struct high_water water = water_of(34), untouched = water_of(1);
    char text[HIGH_WATER_TEXT_MAX + 2];
    size_t len = high_water_print(&water, text, HIGH_WATER_TEXT_MAX);

    for (size_t i = 0; i < len * 8; i++) {
        text[i / 8] = (char)(text[i / 8] ^ 1 << i % 8);
        CHECK(!is_taken((struct bytes){text, len}));
        text[i / 8] = (char)(text[i / 8] ^ 1 << i % 8);
    }
    for (size_t cut = 0; cut < len; cut++)
        CHECK(!is_taken((struct bytes){text, cut}));
    CHECK(is_taken((struct bytes){text, len}));
    text[len] = '\n';
    CHECK(!is_taken((struct bytes){text, len + 1}));
    CHECK(!is_taken((struct bytes){text + 1, len - 1}));
    CHECK(!is_taken((struct bytes){NULL, 0}));
    water = untouched;
    CHECK(!high_water_parse(text, len + 1, &water) && high_water_equal(&water, &untouched));
}

#define SECOND "pawl high-water 2\n"
#define FIRST "pawl high-water 1\n"
#define ID "id " ID_A "\n"
#define OF_STORE "store " STORE "\n"
#define NUMBERS "floor 34\nepoch 2\nroll 7\n"
#define LEASE_A "member lease " ID_A " " INCARNATION "\n"
#define GATEWAY_B "member gateway " ID_B " " INCARNATION "\n"
#define DOUBT_A "doubt " ID_A " " INCARNATION

static const struct {
    const char *body;
    bool taken;
} text_cases[] = {
    {FIRST ID OF_STORE NUMBERS, true},
    {FIRST ID OF_STORE NUMBERS LEASE_A GATEWAY_B, true},
    {FIRST ID "store none\n" NUMBERS GATEWAY_B LEASE_A, true},
    {FIRST ID OF_STORE "floor 0\nepoch 0\nroll 0\n", true},
    {FIRST ID OF_STORE "floor 999999999999999\nepoch 999999999999999\nroll 999999999999999\n", true},
    {"", false},
    {"\n", false},
    {FIRST, false},
    {FIRST ID OF_STORE, false},
    {FIRST ID NUMBERS, false},
    {ID OF_STORE NUMBERS, false},
    {"pawl high-water 0\n" ID OF_STORE NUMBERS, false},
    {"pawl high-water 2\n" ID OF_STORE NUMBERS, false},
    {"pawl high-water 01\n" ID OF_STORE NUMBERS, false},
    {"pawl high-water\n" ID OF_STORE NUMBERS, false},
    {"Pawl high-water 1\n" ID OF_STORE NUMBERS, false},
    {"\xef\xbb\xbf" FIRST ID OF_STORE NUMBERS, false},
    {FIRST "\n" ID OF_STORE NUMBERS, false},
    {FIRST OF_STORE ID NUMBERS, false},
    {FIRST ID ID OF_STORE NUMBERS, false},
    {FIRST ID OF_STORE OF_STORE NUMBERS, false},
    {FIRST ID OF_STORE NUMBERS "roll 7\n", false},
    {FIRST ID OF_STORE NUMBERS "ceiling 7\n", false},
    {FIRST ID OF_STORE NUMBERS "\n", false},
    {FIRST ID OF_STORE NUMBERS "# a comment\n", false},
    {FIRST ID OF_STORE "floor 34\nroll 7\nepoch 2\n", false},
    {FIRST ID OF_STORE "floor 1000000000000000\nepoch 2\nroll 7\n", false},
    {FIRST ID OF_STORE "floor 99999999999999999999999999\nepoch 2\nroll 7\n", false},
    {FIRST ID OF_STORE "floor 34\nepoch 1000000000000000\nroll 7\n", false},
    {FIRST ID OF_STORE "floor 34\nepoch 2\nroll 1000000000000000\n", false},
    {FIRST ID OF_STORE "floor 034\nepoch 2\nroll 7\n", false},
    {FIRST ID OF_STORE "floor 00\nepoch 2\nroll 7\n", false},
    {FIRST ID OF_STORE "floor -1\nepoch 2\nroll 7\n", false},
    {FIRST ID OF_STORE "floor +1\nepoch 2\nroll 7\n", false},
    {FIRST ID OF_STORE "floor \nepoch 2\nroll 7\n", false},
    {FIRST ID OF_STORE "floor  34\nepoch 2\nroll 7\n", false},
    {FIRST ID OF_STORE "floor 34 \nepoch 2\nroll 7\n", false},
    {FIRST ID OF_STORE "floor 34\r\nepoch 2\nroll 7\n", false},
    {FIRST ID OF_STORE "floor 0x22\nepoch 2\nroll 7\n", false},
    {FIRST ID OF_STORE "floor 34\nepoch 2\nroll 7", false},
    {FIRST "id abcdefghijklmno\n" OF_STORE NUMBERS, false},
    {FIRST "id abcdefghijklmnopq\n" OF_STORE NUMBERS, false},
    {FIRST "id abcdefghijklmn.p\n" OF_STORE NUMBERS, false},
    {FIRST "id none\n" OF_STORE NUMBERS, false},
    {FIRST ID "store \n" NUMBERS, false},
    {FIRST ID "store None\n" NUMBERS, false},
    {FIRST ID "store none_is_a_part_of_this_\n" NUMBERS, false},
    {FIRST ID "store none_is_a_part_of_this_12\n" NUMBERS, false},
    {FIRST ID "store none_is_a part_of_this_1\n" NUMBERS, false},
    {FIRST ID OF_STORE NUMBERS LEASE_A LEASE_A, false},
    {FIRST ID OF_STORE NUMBERS LEASE_A GATEWAY_B "member gateway " ID_A " " ID_B "\n", false},
    {FIRST ID OF_STORE NUMBERS "member " ID_A " " INCARNATION "\n", false},
    {FIRST ID OF_STORE NUMBERS "member keeper " ID_A " " INCARNATION "\n", false},
    {FIRST ID OF_STORE NUMBERS "member lease " ID_A "\n", false},
    {FIRST ID OF_STORE NUMBERS "member lease " ID_A "  " INCARNATION "\n", false},
    {FIRST ID OF_STORE NUMBERS "member lease " ID_A " " INCARNATION " 1\n", false},
    {FIRST ID OF_STORE NUMBERS "member lease " ID_A " 0123456789_-012!\n", false},
    {FIRST ID OF_STORE NUMBERS "member lease " ID_A " " INCARNATION, false},
    {SECOND ID OF_STORE NUMBERS DOUBT_A " 0\n", true},
    {SECOND ID OF_STORE NUMBERS LEASE_A DOUBT_A " 999999999999999\n", true},
    {SECOND ID OF_STORE NUMBERS DOUBT_A " 1\ndoubt " ID_A " " ID_B " 1\n", true},
    {FIRST ID OF_STORE NUMBERS DOUBT_A " 1\n", false},
    {SECOND ID OF_STORE NUMBERS LEASE_A, false},
    {SECOND ID OF_STORE NUMBERS DOUBT_A " 1\n" LEASE_A, false},
    {SECOND ID OF_STORE NUMBERS DOUBT_A " 1\n" DOUBT_A " 2\n", false},
    {SECOND ID OF_STORE NUMBERS DOUBT_A "\n", false},
    {SECOND ID OF_STORE NUMBERS DOUBT_A " 1", false},
    {SECOND ID OF_STORE NUMBERS DOUBT_A " 1 2\n", false},
    {SECOND ID OF_STORE NUMBERS DOUBT_A " 01\n", false},
    {SECOND ID OF_STORE NUMBERS DOUBT_A " 1000000000000000\n", false},
};

TEST(what_is_sealed_but_otherwise_written_is_damaged)
{
    for (size_t i = 0; i < sizeof(text_cases) / sizeof(text_cases[0]); i++) {
        if (!CHECK_INT(is_taken(sealed(bytes_of(text_cases[i].body))), text_cases[i].taken))
            printf("# of case %zu\n", i);
    }
    CHECK(!is_taken(sealed(BYTES(FIRST "id abcdefgh\0jklmnop\n" OF_STORE NUMBERS))));
    CHECK(!is_taken(sealed(BYTES(FIRST ID "store \0one_is_a_part_of_this_1\n" NUMBERS))));
    CHECK(!is_taken(sealed(BYTES(FIRST ID OF_STORE NUMBERS "\0"))));
}

/* A file with so many members, and one with so many doubts. */
static bool members_are_taken(unsigned count)
{
    char body[HIGH_WATER_TEXT_MAX + 128];
    size_t len = (size_t)snprintf(body, sizeof(body), "%s", HEAD);

    for (unsigned i = 0; i < count; i++)
        len += (size_t)snprintf(body + len, sizeof(body) - len, "member lease %016u %s\n", i, INCARNATION);
    return is_taken(sealed((struct bytes){body, len}));
}

static bool doubts_are_taken(unsigned count)
{
    char body[HIGH_WATER_TEXT_MAX + 128];
    size_t len = (size_t)snprintf(body, sizeof(body), "%s", SECOND ID OF_STORE NUMBERS);

    for (unsigned i = 0; i < count; i++)
        len += (size_t)snprintf(body + len, sizeof(body) - len, "doubt %016u %s 7\n", i, INCARNATION);
    return is_taken(sealed((struct bytes){body, len}));
}

TEST(at_most_256_members_and_256_doubts_are_listed)
{
    CHECK(members_are_taken(STATE_MEMBERS_MAX));
    CHECK(!members_are_taken(STATE_MEMBERS_MAX + 1));
    CHECK(doubts_are_taken(STATE_DOUBTS_MAX));
    CHECK(!doubts_are_taken(STATE_DOUBTS_MAX + 1));
}

TEST_FRESH(what_is_not_sound_is_not_written)
{
    struct high_water bad[12];
    char text[HIGH_WATER_TEXT_MAX];

    CHECK(write_floor(place, 3));
    for (size_t i = 0; i < 12; i++)
        bad[i] = water_of(5);
    bad[0].floor = -1;
    bad[1].floor = HIGH_WATER_MAX + 1;
    bad[2].epoch = HIGH_WATER_MAX + 1;
    bad[3].roll = -1;
    bad[4].member_count = STATE_MEMBERS_MAX + 1;
    bad[5].member[MEMBER_ID_CHARS - 1] = '\0';
    bad[6].member[0] = '\n';
    bad[7].store[0] = ' ';
    bad[8].store[5] = '\0';
    memcpy(bad[9].members[4].id, bad[9].members[0].id, MEMBER_ID_CHARS);
    bad[10].members[4].incarnation[0] = '\0';
    bad[11].members[0].role = (enum member_role)2;
    for (size_t i = 0; i < 12; i++) {
        CHECK(!high_water_is_sound(&bad[i]));
        CHECK_INT(high_water_print(&bad[i], text, sizeof(text)), 0);
        CHECK(!state_dir_write(&place->dir, &bad[i], place->why) && says(place, "not sound"));
    }
    CHECK_INT(floor_seen(place), 3);
}

TEST(the_version_is_what_the_first_line_names)
{
    CHECK_INT(high_water_version("pawl high-water 1\n", 18), 1);
    CHECK_INT(high_water_version("pawl high-water 27\nwhatever", 27), 27);
    CHECK_INT(high_water_version("pawl high-water 27", 18), 0);
    CHECK_INT(high_water_version("pawl high-water x\n", 18), 0);
    CHECK_INT(high_water_version("pawl high-water 1000000000000000\n", 33), 0);
    CHECK_INT(high_water_version(NULL, 0), 0);
}

/* -- where it is */

static void environment_is(const char *directory, const char *xdg, const char *home)
{
    const char *const names[] = {"STATE_DIRECTORY", "XDG_STATE_HOME", "HOME"}, *const values[] = {directory,
                                                                                                  xdg, home};

    for (size_t i = 0; i < 3; i++) {
        if (values[i] != NULL ? setenv(names[i], values[i], 1) != 0 : unsetenv(names[i]) != 0)
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
        const char *wrong;

        environment_is(path_cases[i].directory, path_cases[i].xdg, path_cases[i].home);
        wrong = state_dir_path(path_cases[i].given, path);
        if (path_cases[i].path != NULL)
            CHECK(wrong == NULL && CHECK_TEXT(bytes_of(path), bytes_of(path_cases[i].path)));
        else
            CHECK(wrong != NULL && strstr(wrong, path_cases[i].wrong) != NULL);
    }
    environment_is(NULL, NULL, home);
}

TEST_PLACE(a_path_has_at_most_1023_bytes)
{
    char given[STATE_PATH_MAX + 2], path[STATE_PATH_MAX];

    memset(given, 'a', sizeof(given));
    given[0] = '/';
    given[STATE_PATH_MAX] = '\0';
    CHECK(state_dir_path(given, path) != NULL);
    CHECK_INT(state_dir_open(&place->dir, given, &place->water, place->why), STATE_FAILED);
    CHECK(says(place, "1,023 bytes"));
    CHECK_INT(state_dir_peek(given, &place->water, place->why), STATE_FAILED);
    given[STATE_PATH_MAX - 1] = '\0';
    CHECK(state_dir_path(given, path) == NULL && strcmp(path, given) == 0);
    CHECK_INT(state_dir_open(&place->dir, given, &place->water, place->why), STATE_FAILED);
    CHECK(says(place, "File name too long"));
}

/* -- open and peek */

TEST(a_directory_that_is_not_there_is_made_and_keeps_its_member_id)
{
    struct place place;
    char first[MEMBER_ID_CHARS + 1];

    place_open_fresh(&place);
    memcpy(first, place.water.member, sizeof(first));
    CHECK_INT(strlen(first), MEMBER_ID_CHARS);
    CHECK_INT(place.water.floor + place.water.epoch + place.water.roll, 0);
    CHECK_INT(place.water.member_count, 0);
    CHECK_TEXT(bytes_of(place.water.store), BYTES(""));
    CHECK_TEXT(bytes_of(place.why), BYTES(""));
    CHECK_INT(mode_of(place.state), 0700);
    CHECK_INT(mode_of(below(place.state, "high-water")), 0600);
    CHECK(state_dir_is_there(&place.dir));
    CHECK_INT(reopen(&place), STATE_OPEN);
    CHECK_TEXT(bytes_of(place.water.member), bytes_of(first));
    CHECK(state_dir_is_there(&place.dir));
    place_close(&place);
    place_open_fresh(&place);
    CHECK(strcmp(first, place.water.member) != 0);
    place_close(&place);
}

TEST_PLACE(parents_are_made_for_others_to_enter_and_the_directory_for_nobody_else)
{
    CHECK_INT(state_dir_open(&place->dir, below(place->root, "a//b/state/"), &place->water, place->why),
              STATE_FRESH);
    CHECK_INT(mode_of(below(place->root, "a")), 0755);
    CHECK_INT(mode_of(below(place->root, "a/b")), 0755);
    CHECK_INT(mode_of(below(place->root, "a/b/state")), 0700);
    CHECK(strcmp(disk.order, "dddlLfrd") == 0); /* three parents; locks; file, rename, directory */
}

TEST_PLACE(a_relative_path_and_a_link_to_a_directory_are_as_good)
{
    int here = open(".", O_RDONLY | O_DIRECTORY);

    CHECK(here >= 0 && chdir(place->root) == 0);
    CHECK_INT(state_dir_open(&place->dir, "r/s", &place->water, place->why), STATE_FRESH);
    CHECK(state_dir_is_there(&place->dir) && is_there(below(place->root, "r/s/high-water")));
    state_dir_close(&place->dir);
    CHECK(symlink("r/s", "link") == 0);
    CHECK_INT(state_dir_open(&place->dir, "link", &place->water, place->why), STATE_OPEN);
    CHECK(state_dir_is_there(&place->dir));
    CHECK(fchdir(here) == 0 && close(here) == 0);
}

TEST_PLACE(a_directory_that_cannot_be_had_is_told_with_the_reason)
{
    file_put(below(place->root, "file"), BYTES("x"));
    CHECK_INT(state_dir_open(&place->dir, below(place->root, "file"), &place->water, place->why),
              STATE_FAILED);
    CHECK(says(place, "/file cannot be opened: Not a directory."));
    CHECK_INT(state_dir_peek(below(place->root, "file"), &place->water, place->why), STATE_FAILED);
    CHECK(says(place, "/file cannot be opened: Not a directory."));
    CHECK_INT(state_dir_open(&place->dir, below(place->root, "file/s"), &place->water, place->why),
              STATE_FAILED);
    CHECK(says(place, "/file/s cannot be opened: Not a directory."));
    CHECK(symlink("nowhere/at/all", below(place->root, "link")) == 0);
    CHECK_INT(state_dir_open(&place->dir, below(place->root, "link"), &place->water, place->why),
              STATE_FAILED);
    CHECK(says(place, "/link cannot be opened: No such file or directory."));
    CHECK_INT(state_dir_open(&place->dir, "/proc/no/state", &place->water, place->why), STATE_FAILED);
    CHECK(says(place, "The state directory /proc/no/state cannot be made: "));
    disk.fail = 'd';
    disk.error = EIO;
    CHECK_INT(reopen(place), STATE_FAILED);
    CHECK(says(place, "cannot be made: Input/output error."));
    CHECK(place->dir.dir_fd == -1 && place->dir.lock_fd == -1);
}

TEST_PLACE(who_peeks_makes_nothing_and_asks_for_no_lock)
{
    struct high_water seen;

    CHECK_INT(state_dir_peek(place->state, &seen, place->why), STATE_FRESH);
    CHECK(!is_there(place->state));
    CHECK(mkdir(place->state, 0700) == 0);
    memset(&seen, 1, sizeof(seen));
    CHECK_INT(state_dir_peek(place->state, &seen, place->why), STATE_FRESH);
    CHECK_TEXT(bytes_of(seen.member), BYTES(""));
    CHECK(!is_there(below(place->state, "lock")) && !is_there(below(place->state, "high-water")));
    CHECK_INT(reopen(place), STATE_FRESH);
    disk_is_new();
    CHECK_INT(state_dir_peek(place->state, &seen, place->why), STATE_OPEN);
    CHECK(high_water_equal(&seen, &place->water));
    CHECK_TEXT(bytes_of(disk.order), BYTES(""));
}

TEST_FRESH(what_is_read_is_made_durable_before_anybody_builds_on_it)
{
    CHECK(write_floor(place, 9));
    disk_is_new();
    CHECK_INT(reopen(place), STATE_OPEN);
    CHECK_TEXT(bytes_of(disk.order), BYTES("lLfd"));
    disk.error = EIO;
    for (int i = 0; i < 2; i++) {
        disk.fail = "fd"[i];
        CHECK_INT(reopen(place), STATE_FAILED);
        CHECK(says(place, "/high-water cannot be synced to the disk: Input/output error."));
    }
}

/* -- what is damaged */

static void check_damaged(struct place *place, const char *part)
{
    for (int peeks = 0; peeks < 2; peeks++) {
        enum state_open end = peeks ? state_dir_peek(place->state, &place->water, place->why) : reopen(place);

        CHECK_INT(end, STATE_DAMAGED);
        CHECK(says(place, part) && says(place, "/high-water is "));
        CHECK(place->dir.dir_fd == -1 && place->dir.lock_fd == -1);
    }
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
    struct high_water water = water_of(3);
    char *text = calloc(1, 1024 * 1024);

    if (text == NULL)
        abort();
    high_water_print(&water, text, HIGH_WATER_TEXT_MAX);
    file_put(below(place->state, "high-water"), (struct bytes){text, 1024 * 1024});
    check_damaged(place, "(it is too long)");
    free(text);
}

TEST_FRESH(a_high_water_file_that_is_no_file_is_damaged_and_holds_nobody_up)
{
    const char *file, *target;

    file = below(place->state, "high-water");
    target = below(place->root, "target");
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

    if (pipe(ready) != 0)
        abort();
    child = child_new();
    if (child == 0) {
        end = (char)state_dir_open(&place->dir, place->state, &place->water, place->why);
        if (write(ready[1], &end, 1) == 1)
            pause();
        _exit(1);
    }
    close(ready[1]);
    CHECK(read(ready[0], &end, 1) == 1 && (end == STATE_FRESH || end == STATE_OPEN));
    close(ready[0]);
    return child;
}

static void kill_and_wait(pid_t child)
{
    int status;

    kill(child, SIGKILL);
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

TEST_PLACE(of_two_processes_one_has_it_and_the_other_is_told_which)
{
    struct high_water seen;
    char name[64];
    pid_t holder;

    holder = holder_new(place);
    snprintf(name, sizeof(name), "is in use by process %d;", (int)holder);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(reopen(place), STATE_IN_USE);
        CHECK(says(place, name) && says(place, place->state));
        CHECK(place->dir.dir_fd == -1 && place->dir.lock_fd == -1);
    }
    CHECK_INT(state_dir_peek(place->state, &seen, place->why), STATE_OPEN);
    kill_and_wait(holder);
    CHECK_INT(reopen(place), STATE_OPEN);
    CHECK(high_water_equal(&seen, &place->water));
}

TEST_FRESH(a_process_cannot_open_it_twice_and_can_again_when_it_was_closed)
{
    struct state_dir second;
    struct high_water water;

    CHECK_INT(state_dir_open(&second, place->state, &water, place->why), STATE_IN_USE);
    CHECK(write_floor(place, 2));
    state_dir_close(&place->dir);
    state_dir_close(&place->dir);
    CHECK_INT(state_dir_open(&second, place->state, &water, place->why), STATE_OPEN);
    CHECK_INT(water.floor, 2);
    state_dir_close(&second);
}

TEST_FRESH(a_program_that_is_started_inherits_no_lock)
{
    CHECK((fcntl(place->dir.lock_fd, F_GETFD) & FD_CLOEXEC) != 0);
    CHECK((fcntl(place->dir.dir_fd, F_GETFD) & FD_CLOEXEC) != 0);
}

TEST_FRESH(who_deletes_the_lock_lets_nobody_in_and_is_noticed)
{
    struct state_dir second;
    struct high_water water;

    CHECK(write_floor(place, 2) && state_dir_is_there(&place->dir));
    CHECK(unlink(below(place->state, "lock")) == 0);
    CHECK(!state_dir_is_there(&place->dir));
    CHECK_INT(state_dir_open(&second, place->state, &water, place->why), STATE_IN_USE);
    CHECK(says(place, "in use by another process;"));
    CHECK(is_there(below(place->state, "lock")) && !state_dir_is_there(&place->dir));
    CHECK(!write_floor(place, 3) && says(place, "deleted, moved or replaced"));
    CHECK_INT(floor_seen(place), 2);
    CHECK_INT(reopen(place), STATE_OPEN);
    CHECK(state_dir_is_there(&place->dir) && write_floor(place, 3));
}

/* As NFS does, which takes LOCK_EX only on what is open for writing. */
TEST_PLACE(where_directories_cannot_be_locked_the_lock_file_is_enough)
{
    struct state_dir second;
    struct high_water water;

    disk.fail = 'L';
    disk.error = EBADF;
    CHECK_INT(reopen(place), STATE_FRESH);
    CHECK_INT(state_dir_open(&second, place->state, &water, place->why), STATE_IN_USE);
    CHECK(unlink(below(place->state, "lock")) == 0);
    CHECK_INT(state_dir_open(&second, place->state, &water, place->why), STATE_OPEN);
    CHECK(!state_dir_is_there(&place->dir) && !write_floor(place, 1));
    CHECK(state_dir_is_there(&second));
    state_dir_close(&second);
}

TEST_PLACE(a_lock_that_cannot_be_had_for_another_reason_is_not_called_in_use)
{
    disk.fail = 'l';
    disk.error = ENOLCK;
    CHECK_INT(reopen(place), STATE_FAILED);
    CHECK(says(place, "/lock cannot be locked: No locks available."));
    CHECK(place->dir.dir_fd == -1 && place->dir.lock_fd == -1 &&
          !is_there(below(place->state, "high-water")));
}

TEST_FRESH(a_lock_with_anything_in_it_is_good_and_one_that_is_no_file_is_not)
{
    const char *lock;

    lock = below(place->state, "lock");
    file_put(lock, BYTES("99999999999999999999999999 and much more than one line\nof text\n"));
    CHECK_INT(reopen(place), STATE_OPEN);
    state_dir_close(&place->dir);
    CHECK(unlink(lock) == 0 && symlink("elsewhere", lock) == 0);
    CHECK_INT(reopen(place), STATE_FAILED);
    CHECK(says(place, "/lock cannot be opened: Too many levels of symbolic links.") &&
          !is_there(below(place->state, "elsewhere")));
    CHECK(unlink(lock) == 0 && mkdir(lock, 0700) == 0);
    CHECK_INT(reopen(place), STATE_FAILED);
    CHECK(says(place, "/lock cannot be opened: Is a directory."));
    CHECK(rmdir(lock) == 0 && mkfifo(lock, 0600) == 0);
    CHECK_INT(reopen(place), STATE_FAILED);
    CHECK(says(place, "/lock is not a regular file"));
}

/* -- whether it is still there */

static void check_gone(struct place *place, const char *accident)
{
    if (!CHECK(!state_dir_is_there(&place->dir)))
        printf("# after: %s\n", accident);
}

TEST_FRESH(a_high_water_file_that_was_deleted_replaced_or_changed_is_noticed)
{
    const char *file, *copy;
    char old[HIGH_WATER_TEXT_MAX];
    struct bytes text;

    file = below(place->state, "high-water");
    copy = below(place->root, "copy");
    CHECK(write_floor(place, 41) && write_floor(place, 81) && state_dir_is_there(&place->dir));
    text = file_get(file, old, sizeof(old));
    CHECK(rename(file, copy) == 0);
    check_gone(place, "moved away");
    CHECK(rename(copy, file) == 0 && state_dir_is_there(&place->dir));
    CHECK(unlink(file) == 0);
    check_gone(place, "deleted");
    CHECK(mkdir(file, 0700) == 0);
    check_gone(place, "a directory in its place");
    CHECK(rmdir(file) == 0 && symlink("copy", file) == 0);
    check_gone(place, "a link in its place");
    CHECK(unlink(file) == 0);
    file_put(file, text);
    check_gone(place, "the same text in a new file");
    CHECK(write_floor(place, 82) && state_dir_is_there(&place->dir));
    file_put(file, text);
    check_gone(place, "an old text in the same file");
    CHECK(write_floor(place, 83) && state_dir_is_there(&place->dir));
    CHECK_INT(floor_seen(place), 83);
    CHECK(truncate(file, 0) == 0);
    check_gone(place, "emptied");
}

TEST_FRESH(a_directory_that_was_deleted_or_moved_is_noticed_and_not_written_to)
{
    const char *moved;

    moved = below(place->root, "moved");
    CHECK(write_floor(place, 2) && rename(place->state, moved) == 0);
    check_gone(place, "the directory moved");
    CHECK(!write_floor(place, 3) && says(place, "deleted, moved or replaced"));
    CHECK(mkdir(place->state, 0700) == 0);
    check_gone(place, "another directory in its place");
    CHECK(!write_floor(place, 3) && !is_there(below(place->state, "high-water")));
    CHECK(rmdir(place->state) == 0 && rename(moved, place->state) == 0);
    CHECK(state_dir_is_there(&place->dir) && write_floor(place, 4));
    tree_remove(place->state);
    check_gone(place, "everything deleted");
    CHECK(!write_floor(place, 5) && !is_there(place->state));
    CHECK_INT(reopen(place), STATE_FRESH);
    state_dir_close(&place->dir);
    CHECK(!state_dir_is_there(&place->dir) && !write_floor(place, 6));
}

/* -- writing */

TEST_FRESH(what_is_written_is_on_the_disk_before_it_has_its_name_and_its_name_before_it_is_told)
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

/* One write that fails at this step, and the one after it. */
static void check_fails_once(char step, int error, const char *why, int64_t stands)
{
    struct place place;

    place_open_fresh(&place);
    CHECK(write_floor(&place, 7));
    disk_is_new();
    disk.fail = step;
    disk.error = error;
    CHECK(!write_floor(&place, 8) && says(&place, why));
    CHECK_INT(floor_seen(&place), stands);
    CHECK(strchr(disk.order, step) == strrchr(disk.order, step)); /* not tried again */
    CHECK(!is_there(below(place.state, "high-water.new")));
    CHECK(state_dir_is_there(&place.dir));
    disk_is_new();
    CHECK(write_floor(&place, 9) && state_dir_is_there(&place.dir));
    CHECK_TEXT(bytes_of(disk.order), BYTES("frd"));
    CHECK_INT(floor_seen(&place), 9);
    place_close(&place);
}

TEST(a_write_that_fails_at_any_step_leaves_a_sound_file_and_the_next_one_begins_anew)
{
    check_fails_once('f', EIO, "/high-water.new cannot be synced to the disk: Input/output error.", 7);
    check_fails_once('f', EDQUOT, "/high-water.new cannot be synced to the disk: Disk quota exceeded.", 7);
    check_fails_once('r', EROFS, "/high-water.new cannot be renamed: Read-only file system.", 7);
    check_fails_once('d', EIO, "The state directory ", 8);
    check_fails_once('d', EIO, "/s cannot be synced to the disk: Input/output error.", 8);
}

TEST_PLACE(a_first_write_that_fails_is_told_and_leaves_no_half_of_a_file)
{
    CHECK(mkdir(place->state, 0700) == 0);
    disk.fail = 'f';
    disk.error = ENOSPC;
    CHECK_INT(reopen(place), STATE_FAILED);
    CHECK(says(place, "/high-water.new cannot be synced to the disk: No space left on device."));
    CHECK(!is_there(below(place->state, "high-water")) && !is_there(below(place->state, "high-water.new")));
    disk_is_new();
    CHECK_INT(reopen(place), STATE_FRESH);
}

TEST_FRESH(what_a_crash_has_left_beside_it_is_in_nobodys_way)
{
    const char *left, *target;
    char now[8];

    left = below(place->state, "high-water.new");
    target = below(place->root, "target");
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
    bool written[3];
    static const rlim_t rooms[] = {0, 1, 200};

    CHECK(write_floor(place, 38));
    signal(SIGXFSZ, SIG_IGN);
    fflush(stdout);
    getrlimit(RLIMIT_FSIZE, &all);
    for (int i = 0; i < 3; i++) {
        little = (struct rlimit){rooms[i], all.rlim_max};
        setrlimit(RLIMIT_FSIZE, &little);
        written[i] = write_floor(place, 39);
        setrlimit(RLIMIT_FSIZE, &all);
        CHECK(!written[i] && says(place, "/high-water.new cannot be written: File too large."));
        CHECK(!is_there(below(place->state, "high-water.new")) && state_dir_is_there(&place->dir));
        CHECK_INT(floor_seen(place), 38);
    }
    CHECK(write_floor(place, 40));
    CHECK_INT(floor_seen(place), 40);
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

static void check_full_disk(struct place *place)
{
    CHECK_INT(reopen(place), STATE_FAILED); /* one page: the lock's */
    CHECK(says(place, "/high-water.new cannot be written: No space left on device."));
    CHECK(mount(NULL, place->state, NULL, MS_REMOUNT, "size=8k") == 0);
    CHECK_INT(reopen(place), STATE_FRESH);
    CHECK(!write_floor(place, 1) &&
          says(place, "/high-water.new cannot be written: No space left on device."));
    CHECK(state_dir_is_there(&place->dir) && !is_there(below(place->state, "high-water.new")));
    CHECK_INT(reopen(place), STATE_OPEN); /* a full disk can be read, and locked */
    CHECK(!write_floor(place, 1));
    CHECK(mount(NULL, place->state, NULL, MS_REMOUNT, "size=64k") == 0);
    CHECK(write_floor(place, 2));
    CHECK_INT(floor_seen(place), 2);
}

static void check_read_only_disk(struct place *place)
{
    state_dir_close(&place->dir);
    CHECK(mount(NULL, place->state, NULL, MS_REMOUNT | MS_RDONLY, NULL) == 0);
    CHECK_INT(reopen(place), STATE_FAILED);
    CHECK(says(place, "/lock cannot be opened: Read-only file system."));
    CHECK_INT(floor_seen(place), 2);
    CHECK(mount(NULL, place->state, NULL, MS_REMOUNT, NULL) == 0);
    CHECK_INT(reopen(place), STATE_OPEN);
    CHECK(write_floor(place, 3));
    CHECK_INT(floor_seen(place), 3);
}

TEST_PLACE(on_a_full_or_read_only_disk_nothing_goes_wrong_and_afterwards_all_is_well)
{
    pid_t child;
    int status;

    CHECK(mkdir(place->state, 0700) == 0);
    child = child_new();
    if (child == 0) {
        if (!namespace_enter() || mount("tmpfs", place->state, "tmpfs", 0, "size=4k,mode=0700") != 0)
            _exit(77);
        check_full_disk(place);
        check_read_only_disk(place);
        fflush(stdout);
        _exit(check_state.failing);
    }
    status = exit_of(child);
    if (status == 77)
        check_skip("this process may not mount anything, not even in a namespace of its own");
    else
        CHECK_INT(status, 0);
}

/* -- crashes */

/* Killed at this system call of a write, counted in stops: one before and one after each. The number of stops
 * until it was over, if it was over before. */
static int killed_at(struct place *place, int stop)
{
    int status, stops = 0;
    pid_t child = child_new();

    if (child == 0) {
        if (reopen(place) != STATE_OPEN || ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(2);
        raise(SIGSTOP);
        _exit(write_floor(place, 2) ? 0 : 3);
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

TEST_FRESH(killed_before_or_after_any_system_call_of_a_write_the_old_or_the_new_file_stands)
{
    int olds = 0, news = 0, stop = 0, stops;

    do {
        int64_t floor;

        CHECK(write_floor(place, 1));
        state_dir_close(&place->dir);
        stops = killed_at(place, stop);
        floor = floor_seen(place);
        CHECK(floor == 1 || floor == 2);
        olds += floor == 1;
        news += floor == 2;
        CHECK(floor == 2 || news == 0); /* the rename is one moment */
        CHECK_INT(reopen(place), STATE_OPEN);
    } while (stops == stop++ && stop < 500);
    printf("# %d ends: the old file after %d, the new one after %d\n", olds + news, olds, news);
    CHECK(stops >= 0 && olds >= 8 && news >= 4);
}

/* What the killed child and this process share. */
struct progress {
    _Atomic int64_t begun, done;
};

static void write_until_killed(struct place *place, struct progress *progress)
{
    disk.sync_is_nothing = true;
    if (reopen(place) != STATE_OPEN)
        _exit(1);
    for (int64_t floor = place->water.floor + 1;; floor++) {
        atomic_store(&progress->begun, floor);
        if (!write_floor(place, floor))
            _exit(1);
        atomic_store(&progress->done, floor);
    }
}

static bool wait_done(struct progress *progress, int64_t floor)
{
    int64_t deadline = now_us() + DEADLINE_MS * INT64_C(1000);

    while (atomic_load(&progress->done) < floor && now_us() < deadline)
        sched_yield();
    return atomic_load(&progress->done) >= floor;
}

TEST_FRESH(of_a_process_killed_at_any_moment_no_floor_is_lost_that_it_was_told_stands)
{
    struct progress *progress = mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE,
                                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    uint64_t seed = (uint64_t)now_us();
    int64_t floor = 0;

    if (progress == MAP_FAILED)
        abort();
    printf("# seed %" PRIu64 "\n", seed);
    CHECK(write_floor(place, 1));
    state_dir_close(&place->dir);
    for (int i = 0; i < KILLS && !check_state.failing; i++) {
        int64_t before = i == 0 ? 1 : floor, until;
        pid_t child;

        atomic_store(&progress->begun, before);
        atomic_store(&progress->done, before);
        child = child_new();
        if (child == 0)
            write_until_killed(place, progress);
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        CHECK(wait_done(progress, before + (int64_t)(seed >> 33) % 3));
        until = now_us() + (int64_t)(seed >> 40) % 100;
        while (now_us() < until)
            ;
        kill_and_wait(child);
        floor = floor_seen(place);
        CHECK(floor >= atomic_load(&progress->done) && floor <= atomic_load(&progress->begun));
    }
    printf("# %d kills, %" PRId64 " floors\n", KILLS, floor);
    munmap(progress, sizeof(*progress));
}

TEST(none_of_all_these_ends_has_left_a_file_open)
{
    CHECK_INT(files_open(), files_open_at_first);
}

int main(void)
{
    files_open_at_first = files_open();
    return check_all();
}
