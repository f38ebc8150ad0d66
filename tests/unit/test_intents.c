/* test_intents.c - the list of the intents of a process: what is in it, and what is not in it any more; which
 * incarnations were before this one, and which of them are certainly dead. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gateway/intent/intent.h"
#include "gateway/intent/intent_internal.h"
#include "tests/unit/check.h"

#define HEAD(seq) "orders:42 000000000000007 000000000000033 " seq
#define SEQ "0000000000000012"
#define OWNER(id) "gateway-of-this_ incarnation-one_ " id
#define SENT HEAD(SEQ) " s o " OWNER("0.7") " h 100"
#define ASKED "orders:42 " OWNER("0.7")

#define LIST_TEST(sentence) TEST_WITH(sentence, struct intents, all, intents_init(all), intents_done(all))

static bool have(struct intents *all, const char *text)
{
    return intents_have(all, 5, bytes_of(text));
}

TEST(the_parts_of_a_text_and_who_began_the_hold)
{
    const struct bytes whose = BYTES(HEAD(SEQ) " s o~0.1,0.2 " OWNER("0.7") " g500@bill.ing-1 100");
    const struct bytes nobodys = BYTES(SENT);

    CHECK_TEXT(intent_part(whose, INTENT_NAME), BYTES("orders:42"));
    CHECK_TEXT(intent_part(whose, INTENT_KIND), BYTES("o~0.1,0.2"));
    CHECK_TEXT(intent_part(whose, INTENT_POLICY), BYTES("g500"));
    CHECK_TEXT(intent_part(whose, INTENT_IDENTITY), BYTES("bill.ing-1"));
    CHECK_TEXT(intent_part(whose, INTENT_AT), BYTES("100"));
    CHECK_TEXT(intent_part(nobodys, INTENT_POLICY), BYTES("h"));
    CHECK_INT(intent_part(nobodys, INTENT_IDENTITY).len, 0);
    CHECK_INT(intent_part(BYTES(ASKED), INTENT_IDENTITY).len, 0);
}

LIST_TEST(an_admission_is_known_by_its_number_until_it_is_dropped)
{
    struct intent *one;

    CHECK(!have(all, SENT));
    one = intent_new(all, 5, BYTES(ASKED), INTENT_ASKED);
    CHECK_INT(intents_count(all), 0);
    CHECK(have(all, SENT) && have(all, HEAD(SEQ) " q o " OWNER("0.7") " h 100"));
    CHECK(!have(all, HEAD(SEQ) " s o " OWNER("0.8") " h 100") &&
          !have(all, HEAD(SEQ) " s o " OWNER("1.7") " h 100"));
    CHECK(!intents_have(all, 6, BYTES(SENT)));
    intents_drop(all, one);
    CHECK(!have(all, SENT));
    CHECK_INT(intents_count(all), 0);
}

LIST_TEST(what_is_recorded_is_known_by_all_that_never_changes_of_it)
{
    struct intent *one = intent_new(all, 5, BYTES(ASKED), INTENT_ASKED);

    intent_recorded(all, one, BYTES(SENT));
    CHECK_INT(intents_count(all), 1);
    CHECK(have(all, SENT) && have(all, HEAD(SEQ) " u o " OWNER("0.7") " h 250"));
    CHECK(
        !have(all, HEAD("0000000000000011") " s o " OWNER("0.7") " h 100")); /* it was looked at once more */
    CHECK(!have(all, HEAD(SEQ) " s o " OWNER("0.8") " h 100"));
    intents_drop(all, one);
    CHECK_INT(intents_count(all), 0);
}

LIST_TEST(what_is_being_closed_or_forgotten_or_has_no_known_end_is_in_the_list)
{
    static const enum intent_word words[] = {INTENT_CLOSE, INTENT_SETTLE, INTENT_UNKNOWN, INTENT_FORGET};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        struct intent *one = intent_new(all, 5, BYTES(ASKED), INTENT_ASKED);

        if (words[i] != INTENT_FORGET)
            intent_text(all, one, BYTES(SENT));
        intent_set_word(all, one, words[i]);
        CHECK(have(all, SENT));
        CHECK_INT(intents_count(all), 1);
        intents_drop(all, one);
        CHECK_INT(intents_count(all), 0);
    }
}

LIST_TEST(what_was_only_asked_for_is_not_told_again)
{
    struct intent told[4], *one = intent_new(all, 5, BYTES(ASKED), INTENT_ASKED);

    intents_again(all);
    CHECK_INT(intents_copy(all, told, 4), 0);
    intent_recorded(all, one, BYTES(SENT));
    CHECK_INT(intents_copy(all, told, 4), 0); /* this store has it: under load there would be no end */
    intents_again(all);
    CHECK_INT(intents_copy(all, told, 4), 1);
    CHECK(bytes_are((struct bytes){told[0].text, told[0].len}, SENT));
    intents_drop(all, one);
}

LIST_TEST(what_is_shown_to_have_ended_is_dropped_when_no_closer_has_it_any_more)
{
    struct intent *one = intent_new(all, 5, BYTES(ASKED), INTENT_ASKED);

    intent_text(all, one, BYTES(SENT));
    intent_set_word(all, one, INTENT_UNKNOWN);
    intents_unknown(all, one);
    intents_drop_unknown(all, 5, BYTES(HEAD(SEQ) " u o " OWNER("0.8") " h 250"));
    intents_drop_unknown(all, 6, BYTES(SENT));
    CHECK_INT(intents_count(all), 1);
    intents_drop_unknown(all, 5, BYTES(HEAD(SEQ) " u o " OWNER("0.7") " h 250"));
    CHECK_INT(intents_count(all), 0);
}

LIST_TEST(of_several_writes_the_numbers_of_unknown_ends_stand_behind_the_kind_and_are_told_again)
{
    struct intent told[4], *one = intent_new(all, 5, BYTES(ASKED), INTENT_ASKED);

    intent_recorded(all, one, BYTES(HEAD(SEQ) " s o~ " OWNER("0.7") " h 100"));
    intent_add_ids(all, one, BYTES("0.8,0.9"));
    intent_set_word(all, one, INTENT_UNKNOWN);
    CHECK(have(all, HEAD(SEQ) " u o~0.8,0.9 " OWNER("0.7") " h 250"));
    intents_again(all);
    CHECK_INT(intents_copy(all, told, 4), 1);
    CHECK(bytes_are((struct bytes){told[0].text, told[0].len},
                    HEAD(SEQ) " s o~0.8,0.9 " OWNER("0.7") " h 100"));
}

/* By a probe of another request, while it is under way or a closer has it. */
LIST_TEST(what_is_shown_to_have_ended_before_that_was_told_is_dropped_when_it_is)
{
    static const enum intent_word words[] = {INTENT_OPEN, INTENT_UNKNOWN};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        struct intent *one = intent_new(all, 5, BYTES(ASKED), INTENT_ASKED);
        struct intent *closing;

        intent_recorded(all, one, BYTES(SENT));
        if (words[i] == INTENT_UNKNOWN)
            intent_set_word(all, one, INTENT_UNKNOWN);
        closing = intent_new(all, 5, BYTES(SENT), INTENT_OPEN); /* the prober's own */
        intent_set_word(all, closing, INTENT_CLOSE);
        intents_drop_unknown(all, 5, BYTES(SENT));
        CHECK_INT(intents_count(all), 2);
        if (words[i] == INTENT_OPEN)
            intent_set_word(all, one, INTENT_UNKNOWN);
        intents_unknown(all, one);
        CHECK_INT(intents_count(all), 1);
        intents_drop(all, closing);
        CHECK_INT(intents_count(all), 0);
    }
}

LIST_TEST(what_is_kept_of_the_dead_is_forgotten_when_all_of_a_stripe_is_seen_again)
{
    intents_keep(all, 5, BYTES(SENT));
    intents_keep(all, 6, BYTES(SENT));
    intents_forget_aged(all, 5, INTENT_KEPT); /* nothing is aged */
    CHECK_INT(intents_count(all), 2);
    intents_age(all, 5, INTENT_KEPT);
    intents_keep(all, 5, BYTES(HEAD(SEQ) " d o " OWNER("0.7") " h 250 0"));
    CHECK_INT(intents_count(all), 3);
    intents_forget_aged(all, 5, INTENT_KEPT);
    CHECK_INT(intents_count(all), 2);
    CHECK(intents_have(all, 5, BYTES(SENT)) && intents_have(all, 6, BYTES(SENT)));
}

LIST_TEST(an_unknown_one_that_the_store_had_and_does_not_list_any_more_is_forgotten)
{
    struct intent *one = intent_new(all, 5, BYTES(ASKED), INTENT_ASKED);

    intent_recorded(all, one, BYTES(SENT));
    intent_set_word(all, one, INTENT_UNKNOWN);
    intents_age(all, 5, INTENT_UNKNOWN); /* a closer has it yet */
    intents_forget_aged(all, 5, INTENT_UNKNOWN);
    intents_unknown(all, one);
    intents_forget_aged(all, 5, INTENT_UNKNOWN); /* it was not aged */
    intents_age(all, 5, INTENT_UNKNOWN);
    CHECK(have(all, SENT)); /* it is listed */
    intents_forget_aged(all, 5, INTENT_UNKNOWN);
    CHECK_INT(intents_count(all), 1);
    intents_age(all, 5, INTENT_UNKNOWN);
    intents_forget_aged(all, 6, INTENT_UNKNOWN);
    CHECK_INT(intents_count(all), 1);
    intents_forget_aged(all, 5, INTENT_UNKNOWN);
    CHECK_INT(intents_count(all), 0);
}

/* -- incarnations */

#define BOOT "11111111-1111-4111-8111-111111111111"
#define OTHER_BOOT "22222222-2222-4222-8222-222222222222"
#define LINE(id, boot) id " " boot "\n"
#define ONE "incarnation-one_"
#define TWO "incarnation-two_"
#define THREE "incarnation-3rd_"

static bool parse(struct incarnations *found, const char *text)
{
    return incarnations_parse(found, text, strlen(text), BOOT);
}

/* "d" dead, "e" ended in order, "u" nothing is proven: and which. */
static void check_found(const struct incarnations *found, const char *wanted)
{
    char text[256] = "";
    size_t len = 0;

    for (unsigned i = 0; i < found->count && len < sizeof(text); i++) {
        const struct incarnation *one = &found->former[i];

        len += (size_t)snprintf(text + len, sizeof(text) - len, "%c %s ",
                                one->is == INCARNATION_DEAD    ? 'd'
                                : one->is == INCARNATION_ENDED ? 'e'
                                                               : 'u',
                                one->id);
    }
    CHECK_TEXT(bytes_of(text), bytes_of(wanted));
}

TEST(those_of_this_boot_are_dead_and_of_the_others_nothing_is_known)
{
    struct incarnations found;

    CHECK(parse(&found, LINE(ONE, BOOT) LINE(TWO, OTHER_BOOT) LINE(THREE, BOOT)));
    check_found(&found, "d " ONE " u " TWO " d " THREE " ");
    CHECK(parse(&found, ""));
    check_found(&found, "");
}

TEST(a_file_that_is_none_means_that_there_was_somebody)
{
    static const char *const wrong[] = {
        "x",
        LINE(ONE, BOOT) "x",
        LINE(ONE, BOOT) "incarnation/two_ " BOOT "\n",
        LINE(ONE, BOOT) ONE "-" BOOT "\n",
        LINE(ONE, BOOT) ONE " " BOOT "x",
    };
    enum { LINE_LEN = sizeof(LINE(ONE, BOOT)) - 1 };
    char many[(INCARNATIONS_MAX + 1) * LINE_LEN];
    struct incarnations found;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        CHECK(!parse(&found, wrong[i]));
        check_found(&found, "u " INCARNATION_LOST " ");
    }
    for (int i = 0; i <= INCARNATIONS_MAX; i++)
        memcpy(many + i * LINE_LEN, LINE(ONE, BOOT), LINE_LEN);
    CHECK(incarnations_parse(&found, many, INCARNATIONS_MAX * LINE_LEN, BOOT));
    CHECK_INT(found.count, INCARNATIONS_MAX);
    CHECK(!incarnations_parse(&found, many, sizeof(many), BOOT));
    check_found(&found, "u " INCARNATION_LOST " ");
}

struct place {
    char path[64];
    int dir_fd;
};

static void place_open(struct place *place)
{
    snprintf(place->path, sizeof(place->path), "/tmp/pawl-incarnations-XXXXXX");
    CHECK(mkdtemp(place->path) != NULL);
    place->dir_fd = open(place->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void place_write(int dir_fd, const char *text)
{
    int fd = openat(dir_fd, "incarnations", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}

static void place_close(struct place *place)
{
    unlinkat(place->dir_fd, "incarnations", 0);
    unlinkat(place->dir_fd, "incarnations.new", AT_REMOVEDIR);
    close(place->dir_fd);
    rmdir(place->path);
}

#define PLACE_TEST(sentence) TEST_WITH(sentence, struct place, place, place_open(place), place_close(place))

PLACE_TEST(each_start_knows_those_before_it_and_which_have_ended_in_order)
{
    struct incarnations found;

    incarnations_end(place->dir_fd, ONE);
    CHECK(incarnations_begin(&found, place->dir_fd, ONE));
    check_found(&found, "");
    CHECK(incarnations_begin(&found, place->dir_fd, TWO));
    check_found(&found, "d " ONE " ");
    incarnations_end(place->dir_fd, ONE); /* it is not the one that runs */
    CHECK(incarnations_begin(&found, place->dir_fd, THREE));
    check_found(&found, "d " ONE " d " TWO " ");
    incarnations_end(place->dir_fd, THREE);
    CHECK(incarnations_begin(&found, place->dir_fd, ONE));
    check_found(&found, "d " ONE " d " TWO " e " THREE " ");
    CHECK(incarnations_begin(&found, -1, THREE));
    check_found(&found, "");
}

PLACE_TEST(in_a_copy_of_the_directory_nobody_is_known_to_be_dead)
{
    struct incarnations found;
    struct place copy;

    CHECK(incarnations_begin(&found, place->dir_fd, ONE));
    place_open(&copy);
    CHECK(linkat(place->dir_fd, "incarnations", copy.dir_fd, "incarnations", 0) == 0);
    CHECK(incarnations_begin(&found, copy.dir_fd, TWO));
    check_found(&found, "u " ONE " ");
    CHECK(incarnations_begin(&found, place->dir_fd, THREE));
    check_found(&found, "d " ONE " ");
    place_close(&copy);
}

static void check_somebody_is_lost(int dir_fd)
{
    struct incarnations found;

    CHECK(incarnations_begin(&found, dir_fd, ONE));
    check_found(&found, "u " INCARNATION_LOST " ");
    CHECK(incarnations_begin(&found, dir_fd, TWO));
    check_found(&found, "u " INCARNATION_LOST " d " ONE " ");
}

PLACE_TEST(what_a_damaged_file_had_is_not_forgotten_by_the_next_start_either)
{
    place_write(place->dir_fd, "damaged");
    check_somebody_is_lost(place->dir_fd);
}

PLACE_TEST(a_file_that_cannot_be_read_had_somebody)
{
    CHECK(symlinkat("incarnations", place->dir_fd, "incarnations") == 0); /* ELOOP, also for root */
    check_somebody_is_lost(place->dir_fd);
}

PLACE_TEST(when_it_cannot_be_written_nobody_is_known_to_be_dead_and_nobody_forgotten)
{
    struct incarnations found;

    place_write(place->dir_fd, LINE(ONE, OTHER_BOOT));
    CHECK(incarnations_begin(&found, place->dir_fd, TWO));
    CHECK(mkdirat(place->dir_fd, "incarnations.new", 0700) == 0);
    CHECK(!incarnations_begin(&found, place->dir_fd, THREE));
    check_found(&found, "u " ONE " u " TWO " ");
}

CHECK_MAIN
