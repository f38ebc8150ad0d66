/* test_keeper.c - what the state directory says is kept in step with what is wanted, and never said before it
 * is durable.
 *
 * fsync() of the program is this file's own: it can be held up, can fail, and is counted. */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shared/member/keeper.h"
#include "tests/unit/check.h"

enum { PLACE_MAX = 200, DEADLINE_MS = 20000, TURNS = 20 };

#define ID_A "aaaaaaaaaaaaaaaa"
#define ID_B "bbbbbbbbbbbbbbbb"
#define STORE_ID "ssssssssssssssssssssssss"

/* -- the program's own fsync() */

static struct {
    atomic_bool held, fails, dirs_fail;
    atomic_uint begun, ended;
} disk;

int fsync(int fd)
{
    struct stat is;
    bool is_dir = fstat(fd, &is) == 0 && S_ISDIR(is.st_mode);
    bool fails = atomic_load(&disk.fails) || (is_dir && atomic_load(&disk.dirs_fail));
    int status;

    atomic_fetch_add(&disk.begun, 1);
    while (atomic_load(&disk.held)) {
        sched_yield();
    }
    status = fails ? -1 : (int)syscall(SYS_fsync, fd);
    errno = fails ? EIO : errno;
    atomic_fetch_add(&disk.ended, 1);
    return status;
}

/* -- a place, a loop, a keeper */

struct place {
    struct keeper keeper;
    struct loop *loop;
    char root[PLACE_MAX], state[PLACE_MAX + 8], away[PLACE_MAX + 8], why[STATE_WHY_MAX];
    unsigned wrote;
    struct high_water on_disk; /* when it was told that a write has ended well */
};

#define WAIT(place, precondition)                                                                            \
    do {                                                                                                     \
        uint64_t till_ms_ = loop_now_ms() + DEADLINE_MS;                                                     \
        while (!(precondition) && loop_now_ms() < till_ms_) {                                                \
            loop_turn((place)->loop, 2);                                                                     \
        }                                                                                                    \
        CHECK(precondition);                                                                                 \
    } while (0)

static void place_wrote(struct keeper *keeper)
{
    struct place *place = container_of(keeper, struct place, keeper);

    place->wrote++;
    CHECK_INT(state_dir_peek(place->state, &place->on_disk, place->why), STATE_OPEN);
}

static void place_open(struct place *place)
{
    const char *tmp = getenv("TMPDIR");

    memset(place, 0, sizeof(*place));
    snprintf(place->root, sizeof(place->root), "%s/pawl-keeper-XXXXXX", tmp != NULL ? tmp : "/tmp");
    if (mkdtemp(place->root) == NULL) {
        abort();
    }
    snprintf(place->state, sizeof(place->state), "%s/s", place->root);
    snprintf(place->away, sizeof(place->away), "%s/a", place->root);
    place->loop = loop_new();
    CHECK(keeper_open(&place->keeper, place->state, place->why));
    keeper_start(&place->keeper, place->loop, place_wrote);
}

static void place_close(struct place *place)
{
    static const char *const names[] = {
        "s/lock", "s/high-water", "s/high-water.new", "a/lock", "a/high-water", "s", "a", ""};
    char path[2 * PLACE_MAX];

    atomic_store(&disk.held, false);
    atomic_store(&disk.fails, false);
    atomic_store(&disk.dirs_fail, false);
    loop_jobs_wait(place->loop);
    keeper_close(&place->keeper);
    loop_free(place->loop);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", place->root, names[i]);
        remove(path);
    }
}

/* What is recorded, with another floor, and the two members. */
static struct high_water with_floor(const struct keeper *keeper, int64_t floor)
{
    struct high_water water = keeper->recorded;

    snprintf(water.store, sizeof(water.store), STORE_ID);
    water.floor = floor;
    water.member_count = 2;
    water.members[0] = (struct state_member){MEMBER_LEASE, ID_A, ID_A, 0};
    water.members[1] = (struct state_member){MEMBER_GATEWAY, ID_B, ID_B, 0};
    return water;
}

static void want_floor(struct place *place, int64_t floor)
{
    struct high_water water = with_floor(&place->keeper, floor);

    keeper_want(&place->keeper, &water);
}

static void keep_floor(struct place *place, int64_t floor)
{
    unsigned wrote = place->wrote;

    want_floor(place, floor);
    WAIT(place, place->wrote == wrote + 1);
    CHECK_INT(place->keeper.recorded.floor, floor);
}

static bool trouble_names_the_place(struct place *place)
{
    const char *trouble = keeper_trouble(&place->keeper);

    return trouble != NULL && strstr(trouble, place->state) != NULL;
}

TEST(without_a_directory_what_is_wanted_is_recorded_at_once)
{
    struct keeper keeper, other;
    char why[STATE_WHY_MAX];
    unsigned begun = atomic_load(&disk.begun);

    CHECK(keeper_open(&keeper, NULL, why) && keeper_open(&other, NULL, why));
    CHECK(keeper.is_fresh && !keeper.has_dir);
    CHECK_INT(strlen(keeper.recorded.member), MEMBER_ID_CHARS);
    CHECK(strcmp(keeper.recorded.member, other.recorded.member) != 0);
    struct high_water water = with_floor(&keeper, 7);
    keeper_want(&keeper, &water);
    CHECK(high_water_equal(&keeper.recorded, &water));
    CHECK(keeper_is_idle(&keeper) && keeper_trouble(&keeper) == NULL && !keeper_is_lost(&keeper));
    CHECK_INT(atomic_load(&disk.begun), begun);
    keeper_close(&keeper);
    keeper_close(&other);
}

#define TEST_PLACE(sentence) TEST_WITH(sentence, struct place, place, place_open(place), place_close(place))

TEST_PLACE(what_is_wanted_is_recorded_only_when_it_is_durable)
{
    CHECK(place->keeper.is_fresh && place->keeper.has_dir);
    atomic_store(&disk.held, true);
    unsigned begun = atomic_load(&disk.begun), ended = atomic_load(&disk.ended);
    struct high_water wanted = with_floor(&place->keeper, 1000);
    keeper_want(&place->keeper, &wanted);
    wanted.floor = 1; /* it was copied */
    WAIT(place, atomic_load(&disk.begun) == begun + 1);
    for (unsigned i = 0; i < TURNS; i++) {
        loop_turn(place->loop, 1);
    }
    CHECK_INT(place->keeper.recorded.floor, 0);
    CHECK_TEXT(bytes_of(place->keeper.recorded.store), BYTES(""));
    CHECK_INT(place->keeper.recorded.member_count, 0);
    CHECK_INT(place->wrote, 0);
    CHECK(!keeper_is_idle(&place->keeper) && keeper_trouble(&place->keeper) == NULL);
    atomic_store(&disk.held, false);
    WAIT(place, place->wrote == 1);
    CHECK_INT(atomic_load(&disk.ended), ended + 2); /* the file, then the directory */
    wanted.floor = 1000;
    CHECK(high_water_equal(&place->on_disk, &wanted) && high_water_equal(&place->keeper.recorded, &wanted));
    CHECK(keeper_is_idle(&place->keeper));
}

TEST_PLACE(a_wish_during_a_write_waits_for_the_next_one)
{
    atomic_store(&disk.held, true);
    want_floor(place, 1000);
    want_floor(place, 2000);
    want_floor(place, 3000);
    atomic_store(&disk.held, false);
    WAIT(place, place->wrote == 1);
    CHECK_INT(place->keeper.recorded.floor, 1000);
    CHECK_INT(place->on_disk.floor, 1000);
    CHECK(keeper_is_idle(&place->keeper)); /* nothing was kept in mind: every pulse brings the wish anew */
    keep_floor(place, 3000);
    CHECK_INT(place->on_disk.floor, 3000);
}

TEST_PLACE(what_is_recorded_already_is_not_written_again)
{
    keep_floor(place, 1000);
    unsigned begun = atomic_load(&disk.begun);
    struct high_water same = with_floor(&place->keeper, 1000);
    keeper_want(&place->keeper, &same);
    memset(&same, 0xa5, sizeof(same)); /* what is between the parts and behind the list says nothing */
    snprintf(same.member, sizeof(same.member), "%s", place->keeper.recorded.member);
    snprintf(same.store, sizeof(same.store), STORE_ID);
    same.floor = 1000;
    same.epoch = same.roll = 0;
    same.member_count = 2;
    same.doubt_count = 0;
    for (unsigned i = 0; i < 2; i++) {
        same.members[i].role = i == 0 ? MEMBER_LEASE : MEMBER_GATEWAY;
        snprintf(same.members[i].id, sizeof(same.members[i].id), "%s", i == 0 ? ID_A : ID_B);
        snprintf(same.members[i].incarnation, sizeof(same.members[i].incarnation), "%s",
                 i == 0 ? ID_A : ID_B);
        same.members[i].store_epoch = 0;
    }
    keeper_want(&place->keeper, &same);
    CHECK(keeper_is_idle(&place->keeper));
    CHECK_INT(atomic_load(&disk.begun), begun);
    same.members[1].id[0] = 'c';
    keeper_want(&place->keeper, &same);
    WAIT(place, place->wrote == 2);
    CHECK_TEXT(bytes_of(place->on_disk.members[1].id), BYTES("cbbbbbbbbbbbbbbb"));
}

TEST_PLACE(what_was_recorded_is_there_when_it_is_opened_again)
{
    struct keeper second;
    char why[STATE_WHY_MAX];

    keep_floor(place, 1000);
    CHECK(!keeper_open(&second, place->state, why)); /* locked */
    CHECK(why[0] != '\0');
    keeper_close(&place->keeper);
    CHECK(keeper_open(&second, place->state, why));
    CHECK(!second.is_fresh && second.has_dir);
    CHECK(high_water_equal(&second.recorded, &place->on_disk));
    keeper_close(&second);
}

TEST_PLACE(a_write_that_failed_is_told_and_tried_again_with_the_next_wish)
{
    keep_floor(place, 1000);
    atomic_store(&disk.fails, true);
    for (unsigned i = 0; i < 2; i++) {
        want_floor(place, 2000);
        WAIT(place, keeper_is_idle(&place->keeper));
        CHECK(trouble_names_the_place(place));
        CHECK_INT(place->keeper.recorded.floor, 1000);
        CHECK_INT(place->wrote, 1);
        CHECK(!keeper_is_lost(&place->keeper));
    }
    atomic_store(&disk.fails, false);
    CHECK(keeper_trouble(&place->keeper) != NULL); /* until something was written */
    keep_floor(place, 2000);
    CHECK(keeper_trouble(&place->keeper) == NULL);
    CHECK_INT(place->on_disk.floor, 2000);
}

TEST_PLACE(a_write_that_failed_before_the_file_was_replaced_leaves_no_doubt_of_what_the_disk_says)
{
    keep_floor(place, 1000);
    atomic_store(&disk.fails, true);
    want_floor(place, 2000);
    CHECK(!keeper_is_settled(&place->keeper)); /* it is under way */
    WAIT(place, keeper_is_idle(&place->keeper));
    CHECK(keeper_is_settled(&place->keeper));
    unsigned begun = atomic_load(&disk.begun);
    keeper_mend(&place->keeper); /* there is nothing to mend */
    CHECK(keeper_is_idle(&place->keeper));
    CHECK_INT(atomic_load(&disk.begun), begun);
}

TEST_PLACE(a_write_that_failed_half_way_leaves_doubt_until_one_ends_well)
{
    struct high_water read;

    keep_floor(place, 1000);
    atomic_store(&disk.dirs_fail, true);
    want_floor(place, 2000);
    for (unsigned i = 0; i < 2; i++) {
        WAIT(place, keeper_is_idle(&place->keeper));
        CHECK_INT(state_dir_peek(place->state, &read, place->why), STATE_OPEN);
        CHECK_INT(read.floor, 2000); /* perhaps, after a power cut */
        CHECK_INT(place->keeper.recorded.floor, 1000);
        CHECK(!keeper_is_settled(&place->keeper) && trouble_names_the_place(place));
        keeper_mend(&place->keeper); /* nobody has a wish */
        CHECK(!keeper_is_idle(&place->keeper));
    }
    WAIT(place, keeper_is_idle(&place->keeper));
    atomic_store(&disk.dirs_fail, false);
    keeper_mend(&place->keeper);
    WAIT(place, place->wrote == 2);
    CHECK(keeper_is_settled(&place->keeper) && keeper_trouble(&place->keeper) == NULL);
    CHECK_INT(place->keeper.recorded.floor, 2000);
}

TEST_PLACE(what_is_not_sound_is_never_recorded)
{
    keep_floor(place, 1000);
    want_floor(place, HIGH_WATER_MAX + 1);
    WAIT(place, keeper_is_idle(&place->keeper));
    CHECK(keeper_trouble(&place->keeper) != NULL);
    CHECK_INT(place->keeper.recorded.floor, 1000);
}

TEST_PLACE(a_directory_that_was_taken_away_is_lost_for_good)
{
    keep_floor(place, 1000);
    CHECK(keeper_trouble(&place->keeper) == NULL && !keeper_is_lost(&place->keeper));
    CHECK_INT(rename(place->state, place->away), 0);
    CHECK(trouble_names_the_place(place) && keeper_is_lost(&place->keeper));
    CHECK_INT(rename(place->away, place->state), 0);
    CHECK(keeper_trouble(&place->keeper) != NULL && keeper_is_lost(&place->keeper));
    unsigned begun = atomic_load(&disk.begun);
    want_floor(place, 2000);
    CHECK(keeper_is_idle(&place->keeper));
    CHECK_INT(place->keeper.recorded.floor, 1000);
    CHECK_INT(atomic_load(&disk.begun), begun);
}

TEST_PLACE(a_directory_that_goes_during_a_write_is_lost_when_the_write_is_over)
{
    keep_floor(place, 1000);
    unsigned begun = atomic_load(&disk.begun);
    atomic_store(&disk.held, true);
    want_floor(place, 2000);
    WAIT(place, atomic_load(&disk.begun) == begun + 1);
    CHECK_INT(rename(place->state, place->away), 0);
    CHECK(keeper_trouble(&place->keeper) == NULL); /* the writer has it just now */
    atomic_store(&disk.held, false);
    WAIT(place, keeper_is_idle(&place->keeper));
    CHECK(keeper_trouble(&place->keeper) != NULL && keeper_is_lost(&place->keeper));
    CHECK_INT(place->keeper.recorded.floor, 1000);
    CHECK_INT(place->wrote, 1);
}

TEST_PLACE(a_high_water_file_that_was_deleted_is_a_loss)
{
    char file[2 * PLACE_MAX];

    keep_floor(place, 1000);
    snprintf(file, sizeof(file), "%s/high-water", place->state);
    CHECK_INT(unlink(file), 0);
    CHECK(keeper_trouble(&place->keeper) != NULL && keeper_is_lost(&place->keeper));
}

CHECK_MAIN
