/* test_member_list.c - the list of members: as it is told, it is read again; nothing malformed is taken. */
#include "shared/member/member_internal.h"
#include "tests/component/store_world.h"

#define ID_A "aaaaaaaaaaaaaaaa"
#define ID_B "BBBBBBBB-_BBBBBB"
#define ID_C "0123456789abcdef"

struct reading {
    struct probe probe;
    struct state_record record;
    bool good;
};

static void reading_done(struct probe *probe, const struct store_reply *reply)
{
    struct reading *reading = container_of(probe, struct reading, probe);

    reading->good = member_list_read(store_reply_list(reply, 1), &reading->record);
}

/* Whether the store's list of these and so many more is taken. */
static bool list_is_read(struct world *world, const char *members, unsigned more, struct state_record *record)
{
    struct reading reading = {.probe.then = reading_done, .record = *record};

    reading.probe.argv[0] = bytes_of(members);
    reading.probe.argv[1] = bytes_of(textf("%u", more));
    probe_run(world, &reading.probe, &script_LISTED, 0, 2);
    WAIT(world, reading.probe.ends == 1, 2000);
    CHECK_TEXT(bytes_of(reading.probe.text), BYTES("listed"));
    *record = reading.record;
    return reading.good;
}

#define MEMBERS "lease " ID_A " " ID_B ",gateway " ID_C " " ID_A
#define INSYNC "insync 9 1 feed a:1/b"
#define DOUBTS "doubt " ID_C " " ID_B " 34"

TEST_STORE(a_list_that_is_read_replaces_the_one_before_and_stands_in_the_order_of_its_kinds, 2000)
{
    static const char *const lists[][2] = {
        {MEMBERS, MEMBERS},
        {"", ""},
        {MEMBERS "," INSYNC "," DOUBTS, MEMBERS "," INSYNC "," DOUBTS},
        {DOUBTS "," INSYNC ",registrar " ID_A " 1 2," MEMBERS,
         MEMBERS ",registrar " ID_A " 1 2," INSYNC "," DOUBTS},
    };
    struct state_record record = {.member = ID_A};

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        CHECK(list_is_read(world, lists[i][0], 0, &record));
        CHECK_TEXT(bytes_of(record.list), bytes_of(lists[i][1]));
    }
}

TEST_STORE(the_most_that_was_seen_of_a_registrar_is_kept, 2000)
{
    struct state_record record = {.member = ID_A};

    CHECK(list_is_read(world, "registrar " ID_A " 7 100,registrar " ID_B " 8 90", 0, &record));
    CHECK(list_is_read(world, "registrar " ID_A " 6 110,registrar " ID_B " 9 0,registrar " ID_C " 0 0", 0,
                       &record));
    CHECK_TEXT(bytes_of(record.list),
               BYTES("registrar " ID_A " 7 110,registrar " ID_B " 9 90,registrar " ID_C " 0 0"));
    CHECK(list_is_read(world, "registrar " ID_C " 1 1", 0, &record));
    CHECK_TEXT(bytes_of(record.list), BYTES("registrar " ID_C " 1 1"));
}

TEST_STORE(a_list_with_something_malformed_is_not_taken, 2000)
{
    static const char *const malformed[] = {"NIL", "17", "lease " ID_A, MEMBERS ",NIL", MEMBERS "," MEMBERS};

    for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++) {
        struct state_record record = {.member = ID_A};

        if (!CHECK(!list_is_read(world, malformed[i], 0, &record)))
            printf("# %s\n", malformed[i]);
    }
}

TEST_STORE(a_list_of_more_than_fit_and_no_list_at_all_are_not_taken, 2000)
{
    struct state_record record = {.member = ID_A};

    CHECK(list_is_read(world, "", STATE_MEMBERS_MAX, &record));
    CHECK(!list_is_read(world, "", STATE_MEMBERS_MAX + 1, &record));
    CHECK(!list_is_read(world, "", 5000, &record));
    CHECK(!member_list_read(NULL, &record));
}

CHECK_MAIN
