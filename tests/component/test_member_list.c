/* test_member_list.c - the list of members: as it is told, it is read again; nothing malformed is taken. */
#include "shared/member/member_internal.h"
#include "tests/component/store_world.h"

#define ID_A "aaaaaaaaaaaaaaaa"
#define ID_B "BBBBBBBB-_BBBBBB"
#define ID_C "0123456789abcdef"

/* A list of what stands in ARGV[1] between the commas, and behind it as many members as ARGV[2] says. */
static const char list_text[] = LIBRARY("pawl_list")
    FUNCTION("list", "",
             "local list = {} "
             "for one in string.gmatch(ARGV[1] .. ',', '([^,]*),') do "
             "list[#list + 1] = one == 'NIL' and false or tonumber(one) or one end "
             "if ARGV[1] == '' then list = {} end "
             "for i = 1, ARGV[2] do list[#list + 1] = string.format('gateway %016d " ID_C "', i) end "
             "return {'listed', list}");

static const struct store_library list_library = {"pawl_list", list_text, sizeof(list_text) - 1, NULL};
static const struct store_script script_list = {"list", "list", "", &list_library, false, true};

/* -- a Redis that answers with lists */

struct list_world {
    struct redis redis;
    struct world world;
};

static void list_world_open(struct list_world *list)
{
    redis_start(&list->redis, NULL);
    world_open(&list->world, &(struct store_options){.url = list->redis.url,
                                                     .timeout_ms = 2000,
                                                     .allow_unsafe = true,
                                                     .library = &list_library});
    WAIT(&list->world, world_ready(&list->world), 2000);
}

static void list_world_close(struct list_world *list)
{
    world_close(&list->world);
    redis_stop(&list->redis);
}

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

static struct state_record empty_record(void)
{
    return (struct state_record){.member = ID_A};
}

/* Whether the store's list of these and so many more is taken. */
static bool list_is_read(struct list_world *list, const char *members, unsigned more,
                         struct state_record *record)
{
    struct reading reading = {.probe.then = reading_done, .record = *record};
    char number[16];

    snprintf(number, sizeof(number), "%u", more);
    reading.probe.argv[0] = bytes_of(members);
    reading.probe.argv[1] = bytes_of(number);
    probe_run(&list->world, &reading.probe, &script_list, 0, 2);
    WAIT(&list->world, reading.probe.ends == 1, 2000);
    CHECK_TEXT(bytes_of(reading.probe.text), BYTES("listed"));
    *record = reading.record;
    return reading.good;
}

#define TEST_LIST(sentence)                                                                                  \
    TEST_WITH(sentence, struct list_world, list, list_world_open(list), list_world_close(list))

#define MEMBERS "lease " ID_A " " ID_B ",gateway " ID_C " " ID_A
#define INSYNC "insync 9 1 feed a:1/b"
#define DOUBTS "doubt " ID_C " " ID_B " 34"

TEST_LIST(a_list_that_is_read_replaces_the_one_before_and_stands_in_the_order_of_its_kinds)
{
    static const char *const lists[][2] = {
        {MEMBERS, MEMBERS},
        {"", ""},
        {MEMBERS "," INSYNC "," DOUBTS, MEMBERS "," INSYNC "," DOUBTS},
        {DOUBTS "," INSYNC ",registrar " ID_A " 1 2," MEMBERS,
         MEMBERS ",registrar " ID_A " 1 2," INSYNC "," DOUBTS},
    };
    struct state_record record = empty_record();

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        CHECK(list_is_read(list, lists[i][0], 0, &record));
        CHECK_TEXT(bytes_of(record.list), bytes_of(lists[i][1]));
    }
}

TEST_LIST(the_most_that_was_seen_of_a_registrar_is_kept)
{
    struct state_record record = empty_record();

    CHECK(list_is_read(list, "registrar " ID_A " 7 100,registrar " ID_B " 8 90", 0, &record));
    CHECK(list_is_read(list, "registrar " ID_A " 6 110,registrar " ID_B " 9 0,registrar " ID_C " 0 0", 0,
                       &record));
    CHECK_TEXT(bytes_of(record.list),
               BYTES("registrar " ID_A " 7 110,registrar " ID_B " 9 90,registrar " ID_C " 0 0"));
    CHECK(list_is_read(list, "registrar " ID_C " 1 1", 0, &record));
    CHECK_TEXT(bytes_of(record.list), BYTES("registrar " ID_C " 1 1"));
}

TEST_LIST(a_list_with_something_malformed_is_not_taken)
{
    static const char *const malformed[] = {"NIL", "17", "lease " ID_A, MEMBERS ",NIL", MEMBERS "," MEMBERS};
    struct state_record record = empty_record();

    for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++) {
        record = empty_record();
        if (!CHECK(!list_is_read(list, malformed[i], 0, &record)))
            printf("# %s\n", malformed[i]);
    }
}

TEST(a_list_of_more_than_fit_and_no_list_at_all_are_not_taken)
{
    struct list_world list;
    struct state_record record = empty_record();

    list_world_open(&list);
    CHECK(list_is_read(&list, "", STATE_MEMBERS_MAX, &record));
    CHECK(!list_is_read(&list, "", STATE_MEMBERS_MAX + 1, &record));
    CHECK(!list_is_read(&list, "", 5000, &record));
    list_world_close(&list);
    CHECK(!member_list_read(NULL, &record));
}

CHECK_MAIN
