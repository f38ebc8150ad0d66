/* test_state_wish.c - what is wanted in a state directory is recorded only when it is durable. */
#include "tests/component/state_world.h"

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
