/* test_incarnations.c - which incarnations were before this one, and which of them are certainly dead. */
#include "gateway/intent/intent_internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/check.h"

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

PLACE_TEST(what_a_damaged_file_had_is_not_forgotten_by_the_next_start_either)
{
    struct incarnations found;

    place_write(place->dir_fd, "damaged");
    CHECK(incarnations_begin(&found, place->dir_fd, ONE));
    check_found(&found, "u " INCARNATION_LOST " ");
    CHECK(incarnations_begin(&found, place->dir_fd, TWO));
    check_found(&found, "u " INCARNATION_LOST " d " ONE " ");
}

PLACE_TEST(a_file_that_cannot_be_read_had_somebody_and_one_that_is_not_there_nobody)
{
    struct incarnations found;

    CHECK(symlinkat("incarnations", place->dir_fd, "incarnations") == 0); /* ELOOP, also for root */
    CHECK(incarnations_begin(&found, place->dir_fd, ONE));
    check_found(&found, "u " INCARNATION_LOST " ");
    CHECK(incarnations_begin(&found, place->dir_fd, TWO));
    check_found(&found, "u " INCARNATION_LOST " d " ONE " ");
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
