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
static const struct store_script script_list = {"list", "list", "", &list_library, false};

/* -- a Redis that answers with lists */

struct list_world {
    struct redis redis;
    struct world world;
};

static void list_world_open(struct list_world *list)
{
    char url[64];

    redis_start(&list->redis, NULL);
    snprintf(url, sizeof(url), "unix://%s", list->redis.socket);
    world_open(&list->world,
               &(struct store_options){
                   .url = url, .timeout_ms = 2000, .allow_unsafe = true, .library = &list_library});
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

TEST(an_empty_list_is_an_empty_text)
{
    struct state_record record = empty_record();
    char text[MEMBER_LIST_SIZE];

    CHECK_INT(member_list_print(&record, text).len, 0);
}

TEST(members_are_told_with_a_comma_between)
{
    struct state_record record = empty_record();
    char text[MEMBER_LIST_SIZE];

    record.member_count = 2;
    record.members[0] = (struct state_member){MEMBER_LEASE, ID_A, ID_B, 0};
    record.members[1] = (struct state_member){MEMBER_GATEWAY, ID_C, ID_A, 0};
    CHECK_TEXT(member_list_print(&record, text), BYTES("lease " ID_A " " ID_B ",gateway " ID_C " " ID_A));
    record.doubt_count = 1;
    record.doubts[0] = (struct state_member){MEMBER_DOUBT, ID_C, ID_B, 34};
    CHECK_TEXT(member_list_print(&record, text),
               BYTES("lease " ID_A " " ID_B ",gateway " ID_C " " ID_A ",doubt " ID_C " " ID_B " 34"));
    record.member_count = 0;
    CHECK_TEXT(member_list_print(&record, text), BYTES("doubt " ID_C " " ID_B " 34"));
}

/* What was printed goes to Redis and comes back as a list. */
static void comes_back(struct list_world *list, const struct state_record *record)
{
    struct state_record read = empty_record();
    char text[MEMBER_LIST_SIZE + 1];
    struct bytes printed = member_list_print(record, text);

    CHECK(printed.len < MEMBER_LIST_SIZE);
    text[printed.len] = '\0';
    CHECK(list_is_read(list, text, 0, &read));
    CHECK(state_record_equal(&read, record));
}

#define TEST_LIST(sentence)                                                                                  \
    TEST_WITH(sentence, struct list_world, list, list_world_open(list), list_world_close(list))

TEST_LIST(what_is_printed_is_read_as_the_same)
{
    static const unsigned counts[] = {0, 1, 2, STATE_MEMBERS_MAX};

    for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++) {
        struct state_record record = empty_record();

        record.member_count = counts[k];
        for (unsigned i = 0; i < counts[k]; i++) {
            record.members[i] = (struct state_member){.role = i % 3 == 0 ? MEMBER_LEASE : MEMBER_GATEWAY,
                                                      .incarnation = ID_B};
            snprintf(record.members[i].id, sizeof(record.members[i].id), "%016u", i % STATE_MEMBERS_MAX);
        }
        record.doubt_count = counts[k];
        for (unsigned i = 0; i < counts[k]; i++) {
            record.doubts[i] = (struct state_member){MEMBER_DOUBT, ID_A, "", STATE_NUMBER_MAX};
            snprintf(record.doubts[i].incarnation, sizeof(record.doubts[i].incarnation), "%016u", i);
        }
        comes_back(list, &record);
    }
}

TEST_LIST(a_list_that_is_read_replaces_the_one_before)
{
    struct state_record record = empty_record();

    CHECK(list_is_read(list, "", 5, &record));
    CHECK_INT(record.member_count, 5);
    CHECK(list_is_read(list, "lease " ID_A " " ID_B, 0, &record));
    CHECK_INT(record.member_count, 1);
    CHECK_TEXT(bytes_of(record.members[0].id), BYTES(ID_A));
    CHECK_TEXT(bytes_of(record.members[0].incarnation), BYTES(ID_B));
    CHECK_INT(record.members[0].role, MEMBER_LEASE);
    CHECK_TEXT(bytes_of(record.members[1].id), BYTES(""));
    CHECK(list_is_read(list, "", 0, &record));
    CHECK_INT(record.member_count, 0);
}

TEST_LIST(the_most_that_was_seen_of_a_registrar_is_kept)
{
    struct state_record record = empty_record();
    char text[MEMBER_LIST_SIZE];

    CHECK(list_is_read(list, "registrar " ID_A " 7 100,registrar " ID_B " 8 90", 0, &record));
    CHECK(list_is_read(list, "registrar " ID_A " 6 110,registrar " ID_B " 9 0,registrar " ID_C " 0 0", 0,
                       &record));
    CHECK_TEXT(member_list_print(&record, text),
               BYTES("registrar " ID_A " 7 110,registrar " ID_B " 9 90,registrar " ID_C " 0 0"));
    CHECK(list_is_read(list, "registrar " ID_C " 1 1", 0, &record));
    CHECK_TEXT(member_list_print(&record, text), BYTES("registrar " ID_C " 1 1"));
}

TEST_LIST(a_list_with_something_malformed_is_not_taken)
{
    static const char *const malformed[] = {
        "NIL",
        "17",
        "lease",
        "lease ",
        "lease " ID_A,
        "lease " ID_A " ",
        "lease  " ID_A " " ID_B,
        "lease " ID_A "  " ID_B,
        " lease " ID_A " " ID_B,
        "lease " ID_A " " ID_B " ",
        "lease " ID_A " " ID_B " more",
        "lease\t" ID_A " " ID_B,
        "Lease " ID_A " " ID_B,
        "leases " ID_A " " ID_B,
        "gateways " ID_A " " ID_B,
        "gatewaygateway " ID_A " " ID_B,
        "operator " ID_A " " ID_B,
        "lease " ID_A "x " ID_B,
        "lease " ID_A " " ID_B "x",
        "lease aaaaaaaaaaaaaaa " ID_B,
        "lease " ID_A " aaaaaaaaaaaaaaa",
        "lease aaaaaaaaaaaaaaa. " ID_B,
        "lease " ID_A " aaaaaaaaaaaaaaa\n",
        "lease " ID_A " " ID_B ",",
        "lease " ID_A " " ID_B ",,gateway " ID_C " " ID_B,
        "lease " ID_A " " ID_B ",gateway " ID_A " " ID_C, /* one id, twice */
        "lease " ID_A " " ID_B ",NIL",
        "registrar " ID_A " 1",
        "registrar " ID_A " 1 -1",
        "registrar " ID_A " 1 1,registrar " ID_A " 1 1",
        "doubt " ID_A " " ID_B,
        "doubt " ID_A " " ID_B " ",
        "doubt " ID_A " " ID_B " x",
        "doubt " ID_A " " ID_B " -1",
        "doubt " ID_A " " ID_B " 1000000000000000",
        "doubt " ID_A " " ID_B " 1 2",
        "doubt " ID_A " " ID_B " 1,doubt " ID_A " " ID_B " 2",
        "lease " ID_A " " ID_B " 1",
    };
    struct state_record record = empty_record();

    CHECK(list_is_read(list, "lease " ID_A " " ID_B ",gateway " ID_C " " ID_B, 0, &record));
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
    CHECK_INT(record.member_count, STATE_MEMBERS_MAX);
    CHECK(!list_is_read(&list, "", STATE_MEMBERS_MAX + 1, &record));
    CHECK(!list_is_read(&list, "", 5000, &record));
    list_world_close(&list);
    CHECK(!member_list_read(NULL, &record));
}

CHECK_MAIN
