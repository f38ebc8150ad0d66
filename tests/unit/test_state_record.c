/* test_state_record.c - the text of a state directory, and where the directory is. */
#include "shared/token/random.h"
#include "tests/unit/state_record.h"

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
#define REGISTRAR_A "registrar " ID_A " 7 34\n"
#define INSYNC_A "insync 12 3 feed 10.0.0.1:6379/beef 10.0.0.2:6379/cafe\n"
#define PROMISE "promise 13 " ID_B "\n"
#define INSYNC "pawl high-water 4\n" ID OF_STORE NUMBERS PROMISE LEASE_A REGISTRAR_A INSYNC_A DOUBT_A
#define REGISTRARS "pawl high-water 3\n" ID OF_STORE NUMBERS LEASE_A REGISTRAR_A DOUBT_A

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
        wanted = {.member = ID_A,
                  .store = STORE,
                  .floor = 34,
                  .epoch = 2,
                  .members_version = 7,
                  .list = "lease " ID_A " " INCARNATION ",gateway " ID_B " " INCARNATION};
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
    char insync[STATE_INSYNC_MAX - 1];

    record.store[0] = '\0';
    check_comes_back(&record);
    for (int64_t floor = 0; floor < 80; floor++) {
        record = record_of(floor);
        check_comes_back(&record);
    }
    record.floor = record.epoch = record.members_version = record.promised = STATE_NUMBER_MAX;
    memcpy(record.gate, ID_A, sizeof(record.gate));
    record.list[0] = '\0';
    for (unsigned i = 0; i < STATE_MEMBERS_MAX; i++)
        list_line(record.list, "gateway id%014u " INCARNATION, i);
    for (unsigned i = 0; i < STATE_REGISTRARS_MAX; i++)
        list_line(record.list, "registrar id%014u %" PRId64 " %u", i, STATE_NUMBER_MAX - i, i);
    memset(insync, 'x', sizeof(insync));
    memcpy(insync, "insync ", 7);
    CHECK(state_list_add(record.list, (struct bytes){insync, sizeof(insync)}));
    for (unsigned i = 0; i < STATE_DOUBTS_MAX; i++)
        list_line(record.list, "doubt id%014u " INCARNATION " %" PRId64, i, STATE_NUMBER_MAX - i);
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

TEST(two_contents_are_equal_when_every_part_is_and_what_is_not_sound_is_not_written)
{
    struct state_record a = record_of(34), c = a;
    char text[STATE_TEXT_MAX];

    a.list[strlen(a.list) + 1] = 'x'; /* is not listed, and does not count */
    CHECK(state_record_equal(&a, &c) && state_record_equal(&c, &a) && state_record_is_sound(&a));
    CHANGED(true, b.member[15] = 'x');
    CHANGED(true, b.store[0] = '\0');
    CHANGED(true, b.floor++);
    CHANGED(true, b.epoch++);
    CHANGED(true, b.members_version++);
    CHANGED(true, *strrchr(b.list, ',') = '\0');
    a.promised = 9;
    memcpy(a.gate, ID_A, sizeof(a.gate));
    CHANGED(true, b.promised++);
    CHANGED(true, b.gate[0] = 'x');
    CHANGED(false, b.promised = 0);
    CHANGED(false, b.promised = STATE_NUMBER_MAX + 1);
    CHANGED(false, b.gate[3] = '\0');
    CHANGED(false, b.floor = -1);
    CHANGED(false, b.floor = STATE_NUMBER_MAX + 1);
    CHANGED(false, b.epoch = STATE_NUMBER_MAX + 1);
    CHANGED(false, b.members_version = -1);
    CHANGED(false, b.member[MEMBER_ID_CHARS - 1] = '\0');
    CHANGED(false, memset(b.member, 'x', sizeof(b.member)));
    CHANGED(false, b.member[0] = '\n');
    CHANGED(false, b.store[0] = ' ');
    CHANGED(false, b.store[5] = '\0');
}

#define A ID_A " " ID_B
#define B ID_B " " ID_A

static void check_members(const char *list, bool is_sound)
{
    struct state_record record = record_of(0);

    snprintf(record.list, sizeof(record.list), "%s", list);
    if (!CHECK(state_record_is_sound(&record) == is_sound))
        printf("# %s\n", list);
}

TEST(a_list_with_something_malformed_or_twice_or_in_another_order_is_not_sound)
{
    static const char begun_well[] = "lease " A ",registrar " ID_A " 7 34,registrar " ID_B
                                     " 0 0,insync 9 1 feed";
    const char *unsound = /* with a ; between two */
        ",;lease;lease ;lease " ID_A ";lease " ID_A " ;lease  " A ";lease " ID_A "  " ID_B "; lease " A ";"
        "lease " A " ;lease " A " more;lease\t" A ";Lease " A ";gatewaygateway " A ";member lease " A ";"
        "lease " ID_A "x " ID_B ";lease " A "x;lease aaaaaaaaaaaaaaa " ID_B ";lease " ID_A " aaaaaaaaaaaaaaa;"
        "lease aaaaaaaaaaaaaaa. " ID_B ";lease " ID_A " aaaaaaaaaaaaaaa\n;lease " A ",;"
        "lease " A ",,gateway " B ";lease " A ",gateway " ID_A " " ID_A ";lease " A " 1;"
        "registrar " ID_A " 1;registrar " ID_A " 1 -1;registrar " ID_A " 01 1;"
        "registrar " ID_A " 1 1000000000000000;registrar " ID_A " 1 1 1;"
        "registrar " ID_A " 1 1,registrar " ID_A " 2 2;registrar " ID_A " 1 1,lease " A ";"
        "insync ;insync 9 \n;insync 9,insync 8;insync 9,registrar " ID_A " 1 1;"
        "doubt " A ";doubt " A " ;doubt " A " x;doubt " A " -1;doubt " A " 1000000000000000;"
        "doubt " A " 1 2;doubt " A " 1,doubt " A " 2;doubt " A " 1,insync 9";

    check_members("", true);
    check_members("lease " A ",gateway " B, true);
    check_members(textf("%s,doubt " A " 34,doubt " B " 0", begun_well), true);
    check_members("doubt " A " 1,doubt " ID_A " " ID_A " 1", true);
    for (const char *list; (list = check_part(&unsound, ";")) != NULL;)
        check_members(list, false);
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
    for (size_t cut = 0; cut < len; cut++)
        CHECK(!is_taken((struct bytes){text, cut}));
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
    DOUBTS "doubt " ID_A " " ID_B " 1\n",
    REGISTRARS,
    INSYNC};

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
    {MEMBERS, GATEWAY_B, {"# a comment\n", LEASE_A, "member lease " ID_B " " INCARNATION}},
    {MEMBERS, "lease ", {"", "keeper "}},
    {REGISTRARS, "water 3", {"water 1", "water 2", "water 4"}},
    {REGISTRARS, "registrar ", {"member registrar ", ""}},
    {INSYNC, "water 4", {"water 1", "water 2", "water 3", "water 5"}},
    {INSYNC, PROMISE, {PROMISE PROMISE, "promise 13\n", "promise 013 " ID_B "\n", "promise 0 " ID_B "\n"}},
    {INSYNC, INSYNC_A, {INSYNC_A INSYNC_A, "insync 1,2\n"}},
    {DOUBTS, SECOND, {FIRST}},
    {DOUBTS, LEASE_A DOUBT_A, {LEASE_A, DOUBT_A LEASE_A}},
};

static void check_spoilt(const char *good, const char *that, const char *this)
{
    const char *at = strstr(good, that);
    char body[STATE_TEXT_MAX];

    snprintf(body, sizeof(body), "%.*s%s%s", (int)(at - good), good, this, at + strlen(that));
    if (!CHECK(!is_taken_sealed(bytes_of(body))))
        printf("# taken: %s\n", body);
}

TEST(what_is_sealed_but_otherwise_written_is_damaged)
{
    for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
        if (!CHECK(is_taken_sealed(bytes_of(taken[i]))))
            printf("# not taken: %s\n", taken[i]);
    for (size_t i = 0; i < sizeof(spoilt) / sizeof(spoilt[0]); i++)
        for (size_t k = 0; spoilt[i].these[k] != NULL; k++)
            check_spoilt(spoilt[i].good, spoilt[i].that, spoilt[i].these[k]);
    CHECK(!is_taken_sealed(BYTES(FIRST "id abcdefgh\0jklmnop\n" OF_STORE NUMBERS)));
    CHECK(!is_taken_sealed(BYTES(FIRST ID "store \0one_is_a_part_of_this_1\n" NUMBERS)));
    CHECK(!is_taken_sealed(BYTES(FIRST ID OF_STORE NUMBERS "\0")));
}

/* Whether a file with so many lines that begin and end so is. */
static bool lines_are_taken(const char *head, const char *begin, const char *end, unsigned count)
{
    char body[STATE_TEXT_MAX + 128];
    size_t len = (size_t)snprintf(body, sizeof(body), "%s", head);

    for (unsigned i = 0; i < count; i++)
        len += (size_t)snprintf(body + len, sizeof(body) - len, "%s%016u " INCARNATION "%s\n", begin, i, end);
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
    if (value != NULL ? setenv(name, value, 1) != 0 : unsetenv(name) != 0)
        abort();
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
        if (path_cases[i].path != NULL)
            CHECK(wrong == NULL && CHECK_TEXT(bytes_of(path), bytes_of(path_cases[i].path)));
        else
            CHECK(wrong != NULL && strstr(wrong, path_cases[i].wrong) != NULL);
    }
    variable_is("STATE_DIRECTORY", NULL);
    variable_is("XDG_STATE_HOME", NULL);
    variable_is("HOME", home);
}

TEST(a_path_has_at_most_1023_bytes)
{
    char given[STATE_PATH_MAX + 2], path[STATE_PATH_MAX];

    memset(given, 'a', sizeof(given));
    given[0] = '/';
    given[STATE_PATH_MAX] = '\0';
    CHECK(strstr(state_path(given, path), "1,023 bytes") != NULL);
    given[STATE_PATH_MAX - 1] = '\0';
    CHECK(state_path(given, path) == NULL && strcmp(path, given) == 0);
}

CHECK_MAIN
