/* test_epoch.c - what a process knows of the store's present epoch: from one thread, and from several that
 * hammer it at once (make SANITIZE=thread). */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include <hiredis/hiredis.h>

#include "shared/loop/loop.h"
#include "shared/member/member.h"
#include "shared/store/store_internal.h"
#include "tests/unit/check.h"

#define TEST_EPOCH(sentence)                                                                                 \
    TEST_IN(sentence, struct epoch *, store_epoch, epoch_new(), epoch_free(store_epoch))

enum { EPOCHS = 500, HAMMERS = 2, WATCHED = 3, PER_EPOCH = 1000, LOOKS = 50, ROUNDS = 500 };

#define RUN_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define RUN_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define REPLID "cccccccccccccccccccccccccccccccccccccccc"

static const uint64_t nothing[STRIPES];

static void admit(struct epoch *store_epoch, int64_t epoch)
{
    epoch_admit(store_epoch, "2:ours", RUN_A, BYTES(REPLID), epoch, nothing, 1000);
}

static void suspend(struct epoch *store_epoch)
{
    epoch_suspend(store_epoch, PROBLEM_STORE_NOT_ADMITTED, "store-not-admitted", "Closed.");
}

/* -- from one thread */

TEST_EPOCH(at_first_nothing_is_allowed_and_nothing_known)
{
    enum problem problem = PROBLEM_NONE;
    char detail[EPOCH_DETAIL_SIZE];

    CHECK_INT(epoch_allows(store_epoch, RUN_A, 0), PROBLEM_STORE_UNAVAILABLE);
    CHECK_TEXT(bytes_of(epoch_check(store_epoch, &problem, detail)), BYTES("store-connecting"));
    CHECK_INT(problem, PROBLEM_STORE_UNAVAILABLE);
    CHECK(detail[0] != '\0');
    CHECK_INT(epoch_number(store_epoch), 0);
    CHECK_TEXT(bytes_of(epoch_identity(store_epoch)), BYTES(""));
    CHECK_INT(epoch_now_ms(store_epoch), 0);
    CHECK_INT(epoch_let_through_most(store_epoch), 0);
    CHECK(!epoch_wants_heartbeat(store_epoch) && !epoch_is_doubtful(store_epoch) &&
          !epoch_has_lost_its_floor(store_epoch));
    CHECK(!epoch_trouble(store_epoch, detail));
}

TEST_EPOCH(calls_are_allowed_on_the_admitted_redis_by_links_that_stood_when_it_was_confirmed)
{
    static const struct {
        const char *run;
        uint64_t stood_us;
        enum problem problem;
    } rows[] = {
        {RUN_A, 0, PROBLEM_NONE},
        {RUN_A, 1000, PROBLEM_NONE},
        {RUN_A, 1001, PROBLEM_STORE_NOT_ADMITTED}, /* it came to stand after the heartbeat was sent */
        {RUN_B, 0, PROBLEM_STORE_NOT_ADMITTED},
        {RUN_B, 1000, PROBLEM_STORE_NOT_ADMITTED},
        {"", 0, PROBLEM_STORE_UNAVAILABLE}, /* no link stands */
    };

    admit(store_epoch, 7);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        CHECK_INT(epoch_allows(store_epoch, rows[i].run, rows[i].stood_us), rows[i].problem);
    epoch_confirm(store_epoch, nothing, 1001);
    CHECK_INT(epoch_allows(store_epoch, RUN_A, 1001), PROBLEM_NONE);
    CHECK_INT(epoch_allows(store_epoch, RUN_A, 1002), PROBLEM_STORE_NOT_ADMITTED);
    epoch_admit(store_epoch, "2:ours", RUN_B, BYTES(REPLID), 8, nothing, 2000);
    CHECK_INT(epoch_allows(store_epoch, RUN_A, 1000), PROBLEM_STORE_NOT_ADMITTED);
    CHECK_INT(epoch_allows(store_epoch, RUN_B, 2000), PROBLEM_NONE);
}

TEST_EPOCH(while_calls_are_forbidden_every_link_is_told_the_problem)
{
    static const enum problem problems[] = {PROBLEM_STORE_NOT_ADMITTED, PROBLEM_STORE_NOT_OURS,
                                            PROBLEM_STORE_UNAVAILABLE};
    enum problem problem;
    char detail[EPOCH_DETAIL_SIZE];

    for (size_t i = 0; i < sizeof(problems) / sizeof(problems[0]); i++) {
        admit(store_epoch, 7);
        CHECK(epoch_check(store_epoch, &problem, detail) == NULL);
        CHECK_INT(problem, PROBLEM_NONE);
        epoch_suspend(store_epoch, problems[i], "a-check", "A sentence.");
        CHECK_INT(epoch_allows(store_epoch, RUN_A, 0), problems[i]);
        CHECK_INT(epoch_allows(store_epoch, RUN_B, 0), problems[i]);
        CHECK_TEXT(bytes_of(epoch_check(store_epoch, &problem, detail)), BYTES("a-check"));
        CHECK_INT(problem, problems[i]);
        CHECK_TEXT(bytes_of(detail), BYTES("A sentence."));
        epoch_confirm(store_epoch, nothing, 1000);
        CHECK_INT(epoch_allows(store_epoch, RUN_A, 0), PROBLEM_NONE);
    }
}

TEST_EPOCH(whatever_may_change_what_is_allowed_raises_the_changes)
{
    unsigned before = epoch_changes(store_epoch);

    admit(store_epoch, 7);
    CHECK(epoch_changes(store_epoch) != before);
    before = epoch_changes(store_epoch);
    epoch_confirm(store_epoch, nothing, 2000);
    CHECK(epoch_changes(store_epoch) != before);
    before = epoch_changes(store_epoch);
    suspend(store_epoch);
    CHECK(epoch_changes(store_epoch) != before);
    before = epoch_changes(store_epoch);
    epoch_saw(store_epoch, 0, 7, 5);
    epoch_line_report(store_epoch, 0, RUN_A, true, false);
    CHECK_INT(epoch_changes(store_epoch), before);
}

TEST_EPOCH(the_identity_is_taken_once_and_the_stream_with_each_admission)
{
    char stream[EPOCH_STREAM_SIZE];

    admit(store_epoch, 7);
    CHECK_TEXT(bytes_of(epoch_identity(store_epoch)), BYTES("2:ours"));
    epoch_admit(store_epoch, "2:another", RUN_B, BYTES(REPLID), 9, nothing, 1000);
    CHECK_TEXT(bytes_of(epoch_identity(store_epoch)), BYTES("2:ours"));
    CHECK_INT(epoch_number(store_epoch), 9);
    CHECK_INT(epoch_stream(store_epoch, stream), 9);
    CHECK_TEXT(bytes_of(stream), BYTES("master_replid:" REPLID));
}

TEST_EPOCH(what_was_seen_only_rises_and_belongs_to_its_epoch)
{
    uint64_t seqs[STRIPES] = {[3] = 30, [255] = 9};

    epoch_admit(store_epoch, "2:ours", RUN_A, BYTES(REPLID), 7, seqs, 1000);
    CHECK_INT(epoch_seen(store_epoch, 3, 7), 30);
    CHECK_INT(epoch_seen(store_epoch, 3, 6), 0);
    CHECK_INT(epoch_seen(store_epoch, 3, 8), 0);
    epoch_saw(store_epoch, 3, 7, 29);
    CHECK_INT(epoch_seen(store_epoch, 3, 7), 30);
    epoch_saw(store_epoch, 3, 7, 31);
    epoch_saw(store_epoch, 3, 6, 500);
    epoch_saw(store_epoch, 3, 8, 500);
    CHECK_INT(epoch_seen(store_epoch, 3, 7), 31);
    CHECK_INT(epoch_seen(store_epoch, 4, 7), 0);
    seqs[3] = 5;
    seqs[4] = 5;
    epoch_confirm(store_epoch, seqs, 2000); /* what was seen meanwhile stays */
    CHECK_INT(epoch_seen(store_epoch, 3, 7), 31);
    CHECK_INT(epoch_seen(store_epoch, 4, 7), 5);
    suspend(store_epoch);
    CHECK_INT(epoch_seen(store_epoch, 3, 7), 31);
    epoch_admit(store_epoch, "2:ours", RUN_B, BYTES(REPLID), 8, seqs, 3000);
    CHECK_INT(epoch_seen(store_epoch, 3, 8), 5);
    CHECK_INT(epoch_seen(store_epoch, 255, 8), 9);
    CHECK_INT(epoch_seen(store_epoch, 3, 7), 0);
    epoch_saw(store_epoch, 3, 7, 900); /* an answer of before */
    CHECK_INT(epoch_seen(store_epoch, 3, 8), 5);
}

TEST_EPOCH(what_is_told_late_of_an_epoch_that_was_only_raised_is_seen_in_the_next)
{
    uint64_t seqs[STRIPES] = {[3] = 30};

    epoch_admit(store_epoch, "2:ours", RUN_A, BYTES(REPLID), 7, seqs, 1000);
    epoch_granted(store_epoch, 3, 7, 40);
    epoch_admit(store_epoch, "2:ours", RUN_A, BYTES(REPLID), 8, NULL, 2000);
    epoch_saw(store_epoch, 3, 7, 31);
    CHECK_INT(epoch_seen(store_epoch, 3, 8), 31);
    CHECK_INT(epoch_granted_most(store_epoch, 3, 8), 40);
    epoch_saw(store_epoch, 3, 9, 500);
    epoch_saw(store_epoch, 3, 6, 500);
    CHECK_INT(epoch_seen(store_epoch, 3, 8), 31);
    epoch_admit(store_epoch, "2:ours", RUN_A, BYTES(REPLID), 9, seqs, 3000);
    epoch_saw(store_epoch, 3, 8, 500);
    CHECK_INT(epoch_seen(store_epoch, 3, 9), 30);
}

TEST_EPOCH(an_epoch_is_settled_when_every_worker_was_idle_after_the_last_suspension_on_the_same_redis)
{
    admit(store_epoch, 7);
    epoch_line_report(store_epoch, 0, RUN_A, true, false);
    epoch_line_report(store_epoch, 1, RUN_A, true, false);
    suspend(store_epoch);
    CHECK(!epoch_is_settled(store_epoch, 2, RUN_A)); /* idle they were before */
    epoch_line_report(store_epoch, 0, RUN_A, true, false);
    CHECK(epoch_is_settled(store_epoch, 1, RUN_A));
    CHECK(!epoch_is_settled(store_epoch, 2, RUN_A));
    epoch_line_report(store_epoch, 1, RUN_A, false, false);
    CHECK(!epoch_is_settled(store_epoch, 2, RUN_A));
    epoch_line_report(store_epoch, 1, RUN_A, true, false);
    CHECK(epoch_is_settled(store_epoch, 2, RUN_A));
    CHECK(!epoch_is_settled(store_epoch, 2, RUN_B));
    epoch_line_report(store_epoch, 1, "", true, false);
    CHECK(!epoch_is_settled(store_epoch, 2, RUN_A));
    epoch_line_report(store_epoch, 1, RUN_B, true, false);
    CHECK(!epoch_is_settled(store_epoch, 2, RUN_A) && !epoch_is_settled(store_epoch, 2, RUN_B));
    epoch_line_report(store_epoch, 0, RUN_B, true, false);
    CHECK(epoch_is_settled(store_epoch, 2, RUN_B));
    suspend(store_epoch); /* nothing was sent since */
    CHECK(epoch_is_settled(store_epoch, 2, RUN_B));
}

TEST_EPOCH(nothing_is_settled_while_calls_are_allowed)
{
    epoch_line_report(store_epoch, 0, RUN_A, true, false);
    CHECK(epoch_is_settled(store_epoch, 1, RUN_A));
    admit(store_epoch, 7);
    CHECK(!epoch_is_settled(store_epoch, 1, RUN_A));
    epoch_line_report(store_epoch, 0, RUN_A, true, false);
    CHECK(!epoch_is_settled(store_epoch, 1, RUN_A));
    suspend(store_epoch);
    CHECK(!epoch_is_settled(store_epoch, 1, RUN_A));
    epoch_line_report(store_epoch, 0, RUN_A, true, false);
    CHECK(epoch_is_settled(store_epoch, 1, RUN_A));
    epoch_confirm(store_epoch, nothing, 2000);
    CHECK(!epoch_is_settled(store_epoch, 1, RUN_A));
    suspend(store_epoch);
    CHECK(!epoch_is_settled(store_epoch, 1, RUN_A));
}

TEST_EPOCH(doubt_arises_only_while_calls_are_allowed_and_ends_with_the_next_epoch)
{
    epoch_line_report(store_epoch, 0, RUN_A, true, true);
    CHECK(!epoch_is_doubtful(store_epoch));
    admit(store_epoch, 7);
    CHECK(!epoch_is_doubtful(store_epoch));
    epoch_line_report(store_epoch, 0, RUN_A, true, false);
    epoch_line_report(store_epoch, 0, RUN_B, true, true); /* restarted, and nothing was asked there yet */
    CHECK(!epoch_is_doubtful(store_epoch));
    epoch_line_report(store_epoch, 1, RUN_A, false, true);
    CHECK(epoch_is_doubtful(store_epoch));
    epoch_line_report(store_epoch, 1, RUN_A, false, false); /* mended: what was lost meanwhile is lost */
    epoch_confirm(store_epoch, nothing, 2000);
    suspend(store_epoch);
    CHECK(epoch_is_doubtful(store_epoch));
    epoch_confirm(store_epoch, nothing, 3000);
    CHECK(epoch_is_doubtful(store_epoch));
    suspend(store_epoch);
    epoch_admit(store_epoch, "2:ours", RUN_B, BYTES(REPLID), 8, nothing, 4000);
    CHECK(!epoch_is_doubtful(store_epoch));
    suspend(store_epoch);
    epoch_line_report(store_epoch, 0, RUN_A, true, true);
    CHECK(!epoch_is_doubtful(store_epoch));
}

TEST_EPOCH(the_lower_bound_of_the_clock_goes_on_and_only_rises)
{
    int64_t base_ms = 1700000000000;
    uint64_t began_ms = loop_now_ms();

    epoch_clock_sample(store_epoch, base_ms);
    int64_t first = epoch_now_ms(store_epoch);
    CHECK(first >= base_ms && first <= base_ms + (int64_t)(loop_now_ms() - began_ms) + 1);
    epoch_clock_sample(store_epoch, base_ms - 86400000); /* the store's clock went back */
    CHECK(epoch_now_ms(store_epoch) >= first);
    epoch_clock_sample(store_epoch, base_ms + 86400000);
    CHECK(epoch_now_ms(store_epoch) >= base_ms + 86400000);
    began_ms = loop_now_ms();
    first = epoch_now_ms(store_epoch);
    while (loop_now_ms() < began_ms + 5) {
    }
    CHECK(epoch_now_ms(store_epoch) >= first + 4);
}

TEST_EPOCH(what_is_no_time_is_no_sample_of_the_clock)
{
    static const int64_t nonsense[] = {INT64_MIN, -1, 0, INT64_MAX, INT64_MAX / 1000};

    for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++) {
        epoch_clock_sample(store_epoch, nonsense[i]);
        CHECK_INT(epoch_now_ms(store_epoch), 0);
    }
    epoch_clock_sample(store_epoch, 1);
    CHECK(epoch_now_ms(store_epoch) >= 1);
}

TEST_EPOCH(a_token_above_the_bound_wants_one_heartbeat_until_the_next_bound)
{
    epoch_granted(store_epoch, 0, 1, 999999999999999);
    CHECK(!epoch_wants_heartbeat(store_epoch)); /* no bound is known */
    epoch_set_ceiling(store_epoch, 150, 50);
    epoch_granted(store_epoch, 0, 1, 100);
    CHECK(!epoch_wants_heartbeat(store_epoch));
    epoch_granted(store_epoch, 0, 1, 101);
    CHECK(epoch_wants_heartbeat(store_epoch));
    epoch_granted(store_epoch, 0, 1, 102);
    CHECK(!epoch_wants_heartbeat(store_epoch));
    epoch_set_ceiling(store_epoch, 250, 50);
    epoch_granted(store_epoch, 0, 1, 200);
    CHECK(!epoch_wants_heartbeat(store_epoch));
    epoch_granted(store_epoch, 0, 1, 201);
    CHECK(epoch_wants_heartbeat(store_epoch));
}

TEST_EPOCH(the_highest_token_let_through_stays_and_is_never_told_above_the_ceiling)
{
    epoch_let_through(store_epoch, 7);
    CHECK_INT(epoch_let_through_most(store_epoch), 0); /* no ceiling is known */
    epoch_set_ceiling(store_epoch, 8, 0);
    epoch_let_through(store_epoch, 3);
    CHECK_INT(epoch_let_through_most(store_epoch), 7);
    admit(store_epoch, 8);
    CHECK_INT(epoch_let_through_most(store_epoch), 7);
    epoch_let_through(store_epoch, 999999999999999);
    CHECK_INT(epoch_let_through_most(store_epoch), 8);
}

TEST_EPOCH(trouble_with_the_state_directory_is_told_and_goes)
{
    char detail[EPOCH_DETAIL_SIZE];

    epoch_set_trouble(store_epoch, "The disk is full.", false);
    CHECK(epoch_trouble(store_epoch, detail) && !epoch_has_lost_its_floor(store_epoch));
    CHECK_TEXT(bytes_of(detail), BYTES("The disk is full."));
    epoch_set_trouble(store_epoch, "It is gone.", true);
    CHECK(epoch_has_lost_its_floor(store_epoch));
    epoch_set_trouble(store_epoch, "", false);
    CHECK(!epoch_trouble(store_epoch, detail) && !epoch_has_lost_its_floor(store_epoch));
    CHECK_TEXT(bytes_of(detail), BYTES(""));
}

/* -- from several */

/* What the threads of a test have in common. */
struct crowd {
    struct epoch *store_epoch;
    atomic_bool over, busy;
    atomic_uint calls;
    pthread_t thread[HAMMERS];
    unsigned count;
};

static void crowd_begin(struct crowd *crowd, unsigned count, void *(*work)(void *))
{
    for (crowd->count = 0; crowd->count < count; crowd->count++)
        pthread_create(&crowd->thread[crowd->count], NULL, work, crowd);
}

/* Ends when all have ended. */
static void crowd_end(struct crowd *crowd)
{
    atomic_store(&crowd->over, true);
    for (unsigned i = 0; i < crowd->count; i++)
        pthread_join(crowd->thread[i], NULL);
}

/* A test with an epoch that several threads know. */
#define TEST_CROWD(sentence)                                                                                 \
    TEST_WITH(sentence, struct crowd, crowd, crowd->store_epoch = epoch_new(), epoch_free(crowd->store_epoch))

/* A number says of which epoch it is, and the older the epoch, the greater the number. */
static uint64_t number_of(int64_t epoch, uint64_t k)
{
    return (uint64_t)(EPOCHS + 1 - epoch) * PER_EPOCH + k;
}

/* Answers of the epoch that is, and of the one before, which come at any moment. */
static void *hammer(void *argument)
{
    struct crowd *crowd = argument;
    int64_t before = 0;

    for (uint64_t k = 0; !atomic_load(&crowd->over); k = (k + 1) % PER_EPOCH) {
        int64_t epoch = epoch_number(crowd->store_epoch);

        for (unsigned stripe = 0; stripe < WATCHED; stripe++) {
            epoch_saw(crowd->store_epoch, stripe, epoch, number_of(epoch, k));
            epoch_saw(crowd->store_epoch, stripe, before, number_of(before, k));
        }
        before = k % 16 == 0 ? epoch : before;
        atomic_fetch_add(&crowd->calls, 1);
    }
    return NULL;
}

/* How often something of another epoch was seen in this one, or a number fell. */
static unsigned look_at_epoch(struct epoch *store_epoch, int64_t epoch)
{
    uint64_t last[WATCHED] = {0};
    unsigned wrong = 0;

    for (unsigned look = 0; look < LOOKS; look++) {
        for (unsigned stripe = 0; stripe < WATCHED; stripe++) {
            uint64_t seen = epoch_seen(store_epoch, stripe, epoch);

            wrong += seen / PER_EPOCH != number_of(epoch, 0) / PER_EPOCH || seen < last[stripe];
            last[stripe] = seen;
        }
    }
    return wrong;
}

TEST_CROWD(an_answer_of_a_former_epoch_never_raises_what_is_seen_in_the_next)
{
    uint64_t seqs[STRIPES];
    unsigned wrong = 0;

    crowd_begin(crowd, HAMMERS, hammer);
    for (int64_t epoch = 1; epoch <= EPOCHS; epoch++) {
        unsigned calls = atomic_load(&crowd->calls);

        for (unsigned i = 0; i < STRIPES; i++)
            seqs[i] = number_of(epoch, 0);
        epoch_admit(crowd->store_epoch, "2:ours", RUN_A, BYTES(REPLID), epoch, seqs, 1000);
        wrong += look_at_epoch(crowd->store_epoch, epoch);
        while (epoch % 50 == 0 && atomic_load(&crowd->calls) - calls < HAMMERS)
            sched_yield(); /* so that some epochs last, however few processors there are */
        wrong += look_at_epoch(crowd->store_epoch, epoch);
    }
    crowd_end(crowd);
    CHECK_INT(wrong, 0);
}

static void *raise_seen(void *argument)
{
    struct crowd *crowd = argument;

    for (uint64_t seq = 1; seq <= ROUNDS; seq++) {
        epoch_saw(crowd->store_epoch, 0, 7, seq);
        epoch_let_through(crowd->store_epoch, (int64_t)seq);
        epoch_clock_sample(crowd->store_epoch, 1000000 + (int64_t)seq);
    }
    return NULL;
}

TEST_CROWD(of_what_several_threads_have_seen_the_highest_stays)
{
    admit(crowd->store_epoch, 7);
    epoch_set_ceiling(crowd->store_epoch, ROUNDS, 0);
    crowd_begin(crowd, HAMMERS, raise_seen);
    crowd_end(crowd);
    CHECK_INT(epoch_seen(crowd->store_epoch, 0, 7), ROUNDS);
    CHECK_INT(epoch_let_through_most(crowd->store_epoch), ROUNDS);
    CHECK(epoch_now_ms(crowd->store_epoch) >= 1000000 + ROUNDS);
}

/* A worker as call.c makes one: it asks again only when something has changed, its calls stay in flight for a
 * while, and it tells that it is idle when none is. */
static void *work(void *argument)
{
    struct crowd *crowd = argument;
    unsigned known = epoch_changes(crowd->store_epoch) - 1, left = 0;
    bool allowed = false;

    while (!atomic_load(&crowd->over)) {
        unsigned changes = epoch_changes(crowd->store_epoch);

        if (changes != known) {
            allowed = epoch_allows(crowd->store_epoch, RUN_A, 0) == PROBLEM_NONE;
            known = changes;
        }
        if (left > 0) {
            left--;
        } else if (allowed) {
            left = 3;
            atomic_fetch_add(&crowd->calls, 1);
        }
        atomic_store(&crowd->busy, left > 0);
        epoch_line_report(crowd->store_epoch, 0, RUN_A, left == 0, false);
        epoch_check(crowd->store_epoch, &(enum problem){0}, (char[EPOCH_DETAIL_SIZE]){""});
    }
    return NULL;
}

TEST_CROWD(once_settled_no_worker_has_a_call_in_flight_nor_makes_one)
{
    unsigned wrong = 0;

    crowd_begin(crowd, 1, work);
    for (int64_t round = 1; round <= ROUNDS; round++) {
        unsigned calls = atomic_load(&crowd->calls);

        admit(crowd->store_epoch, round);
        while (atomic_load(&crowd->calls) == calls)
            sched_yield();
        suspend(crowd->store_epoch);
        while (!epoch_is_settled(crowd->store_epoch, 1, RUN_A))
            sched_yield();
        calls = atomic_load(&crowd->calls);
        wrong += atomic_load(&crowd->busy);
        sched_yield();
        wrong += atomic_load(&crowd->calls) != calls;
    }
    crowd_end(crowd);
    CHECK_INT(wrong, 0);
}

/* Forbids calls for one reason and another in turn. */
static void *forbid(void *argument)
{
    struct crowd *crowd = argument;

    while (!atomic_load(&crowd->over)) {
        epoch_suspend(crowd->store_epoch, PROBLEM_STORE_NOT_ADMITTED, "store-not-admitted",
                      "store-not-admitted");
        epoch_suspend(crowd->store_epoch, PROBLEM_STORE_UNAVAILABLE, "store-connecting", "store-connecting");
        atomic_fetch_add(&crowd->calls, 1);
    }
    return NULL;
}

TEST_CROWD(why_calls_are_forbidden_is_of_one_reason)
{
    unsigned wrong = 0;

    admit(crowd->store_epoch, 1);
    suspend(crowd->store_epoch);
    crowd_begin(crowd, 1, forbid);
    while (atomic_load(&crowd->calls) < ROUNDS * 500) {
        char detail[EPOCH_DETAIL_SIZE];
        enum problem problem;
        const char *check = epoch_check(crowd->store_epoch, &problem, detail);

        wrong += strcmp(check, "store-connecting") == 0 && problem != PROBLEM_STORE_UNAVAILABLE;
        wrong += strcmp(detail, "Closed.") != 0 && strcmp(check, detail) != 0;
    }
    crowd_end(crowd);
    CHECK_INT(wrong, 0);
}

TEST_EPOCH(a_store_is_full_from_ninety_percent_of_the_lower_bound_until_it_is_below_eighty_eight)
{
    enum { ROOM = 1000000 };
    static const struct {
        uint64_t setting, used, maxmemory, allowed;
        bool is_full;
    } rows[] = {
        {0, 5 * ROOM, 0, 0, false}, /* no bound at all */
        {0, 899999, ROOM, ROOM, false},       {0, 900000, ROOM, ROOM, true},
        {0, 880000, ROOM, ROOM, true},        {0, 879999, ROOM, ROOM, false},
        {0, 890000, ROOM, ROOM, false},       {0, 5 * ROOM, ROOM, ROOM, true},
        {0, 5 * ROOM, 0, 0, false},           {ROOM, 900000, 0, ROOM, true},
        {ROOM, 900000, 2 * ROOM, ROOM, true}, {ROOM, 500000, 2, 2, true},
        {2 * ROOM, 900000, ROOM, ROOM, true},
    };
    bool was_full = false;

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t used, allowed;

        if (i > 0 && rows[i].setting != rows[i - 1].setting) {
            epoch_set_memory_max(store_epoch, rows[i].setting);
            was_full = false;
        }
        CHECK_INT(epoch_set_memory(store_epoch, rows[i].used, rows[i].maxmemory),
                  rows[i].is_full != was_full);
        was_full = rows[i].is_full;
        CHECK_INT(epoch_is_full(store_epoch), rows[i].is_full);
        epoch_memory(store_epoch, &used, &allowed);
        CHECK(used == rows[i].used && allowed == rows[i].allowed);
    }
}

TEST_EPOCH(what_redis_refuses_the_heartbeat_for_is_told_until_it_takes_one)
{
    static const struct store_refusal refusal = {.code = "NOREPLICAS"};

    CHECK(epoch_refusal(store_epoch) == NULL && !epoch_set_refusal(store_epoch, NULL));
    CHECK(epoch_set_refusal(store_epoch, &refusal) && epoch_refusal(store_epoch) == &refusal);
    CHECK(!epoch_set_refusal(store_epoch, &refusal) && epoch_set_refusal(store_epoch, NULL) &&
          epoch_refusal(store_epoch) == NULL);
}

TEST(what_redis_has_no_memory_for_is_told_as_a_full_store)
{
    static const struct store_refusal full = {.check = STORE_FULL}, other = {.check = "store-refuses-writes"};
    struct member_call call = {.store_epoch = epoch_new()};

    CHECK_INT(member_problem(&call, STORE_NOT_SENT, NULL), PROBLEM_STORE_UNAVAILABLE);
    CHECK(!epoch_wants_heartbeat(call.store_epoch));
    call.store.refusal = &other;
    CHECK_INT(member_problem(&call, STORE_NOT_SENT, NULL), PROBLEM_STORE_UNAVAILABLE);
    call.store.refusal = &full;
    CHECK_INT(member_problem(&call, STORE_NOT_SENT, NULL), PROBLEM_STORE_FULL);
    CHECK(epoch_wants_heartbeat(call.store_epoch));
    CHECK_INT(member_problem(&call, STORE_UNKNOWN, NULL), PROBLEM_OUTCOME_UNKNOWN);
    epoch_free(call.store_epoch);
}

TEST(what_comes_after_the_lease_on_the_epoch_is_unknown)
{
    redisReply words[] = {{.type = REDIS_REPLY_STRING, .str = (char *)"done", .len = 4},
                          {.type = REDIS_REPLY_INTEGER, .integer = 7}};
    redisReply *both[] = {&words[0], &words[1]},
               list = {.type = REDIS_REPLY_ARRAY, .elements = 2, .element = both};
    struct member_call call = {.store_epoch = epoch_new()};

    CHECK_INT(member_problem(&call, STORE_DONE, reply_of(&list)), PROBLEM_NONE);
    epoch_lease_until(call.store_epoch, epoch_clock_us() + 60000000);
    CHECK_INT(member_problem(&call, STORE_DONE, reply_of(&list)), PROBLEM_NONE);
    epoch_lease_until(call.store_epoch, epoch_clock_us());
    CHECK_INT(member_problem(&call, STORE_DONE, reply_of(&list)), PROBLEM_OUTCOME_UNKNOWN);
    CHECK_INT(member_problem(&call, STORE_NOT_SENT, NULL), PROBLEM_STORE_UNAVAILABLE);
    epoch_free(call.store_epoch);
}

CHECK_MAIN
