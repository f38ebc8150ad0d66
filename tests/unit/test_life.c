/* test_life.c - what a process knows of the store's present life: from one thread, and from several that
 * hammer it at once (make SANITIZE=thread). */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "shared/loop/loop.h"
#include "shared/member/call.h"
#include "shared/member/epoch.h"
#include "tests/unit/check.h"

#define TEST_LIFE(sentence) TEST_IN(sentence, struct life *, life, life_new(), life_free(life))

enum { EPOCHS = 500, HAMMERS = 2, WATCHED = 3, PER_EPOCH = 1000, LOOKS = 50, ROUNDS = 500 };

#define RUN_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define RUN_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define REPLID "cccccccccccccccccccccccccccccccccccccccc"

static const uint64_t nothing[STRIPES];

static void admit(struct life *life, int64_t epoch)
{
    life_admit(life, "2:ours", RUN_A, BYTES(REPLID), epoch, nothing, 1000);
}

static void suspend(struct life *life)
{
    life_suspend(life, PROBLEM_STORE_NOT_ADMITTED, "store-not-admitted", "Closed.");
}

/* -- from one thread */

TEST_LIFE(at_first_nothing_is_allowed_and_nothing_known)
{
    enum problem problem = PROBLEM_NONE;
    char detail[LIFE_DETAIL_SIZE];

    CHECK_INT(life_allows(life, RUN_A, 0), PROBLEM_STORE_UNAVAILABLE);
    CHECK_TEXT(bytes_of(life_check(life, &problem, detail)), BYTES("store-connecting"));
    CHECK_INT(problem, PROBLEM_STORE_UNAVAILABLE);
    CHECK(detail[0] != '\0');
    CHECK_INT(life_epoch(life), 0);
    CHECK_TEXT(bytes_of(life_identity(life)), BYTES(""));
    CHECK_INT(life_now_ms(life), 0);
    CHECK_INT(life_let_through_most(life), 0);
    CHECK(!life_wants_pulse(life) && !life_is_doubtful(life) && !life_has_lost_its_floor(life));
    CHECK(!life_trouble(life, detail));
}

TEST_LIFE(calls_are_allowed_on_the_admitted_redis_by_links_that_stood_when_it_was_confirmed)
{
    static const struct {
        const char *run;
        uint64_t stood_us;
        enum problem problem;
    } rows[] = {
        {RUN_A, 0, PROBLEM_NONE},
        {RUN_A, 1000, PROBLEM_NONE},
        {RUN_A, 1001, PROBLEM_STORE_NOT_ADMITTED}, /* it came to stand after the pulse was sent */
        {RUN_B, 0, PROBLEM_STORE_NOT_ADMITTED},
        {RUN_B, 1000, PROBLEM_STORE_NOT_ADMITTED},
        {"", 0, PROBLEM_STORE_UNAVAILABLE}, /* no link stands */
    };

    admit(life, 7);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CHECK_INT(life_allows(life, rows[i].run, rows[i].stood_us), rows[i].problem);
    }
    life_confirm(life, nothing, 1001);
    CHECK_INT(life_allows(life, RUN_A, 1001), PROBLEM_NONE);
    CHECK_INT(life_allows(life, RUN_A, 1002), PROBLEM_STORE_NOT_ADMITTED);
    life_admit(life, "2:ours", RUN_B, BYTES(REPLID), 8, nothing, 2000);
    CHECK_INT(life_allows(life, RUN_A, 1000), PROBLEM_STORE_NOT_ADMITTED);
    CHECK_INT(life_allows(life, RUN_B, 2000), PROBLEM_NONE);
}

TEST_LIFE(while_calls_are_forbidden_every_link_is_told_the_problem)
{
    static const enum problem problems[] = {PROBLEM_STORE_NOT_ADMITTED, PROBLEM_STORE_NOT_OURS,
                                            PROBLEM_STORE_UNAVAILABLE};
    enum problem problem;
    char detail[LIFE_DETAIL_SIZE];

    for (size_t i = 0; i < sizeof(problems) / sizeof(problems[0]); i++) {
        admit(life, 7);
        CHECK(life_check(life, &problem, detail) == NULL);
        CHECK_INT(problem, PROBLEM_NONE);
        life_suspend(life, problems[i], "a-check", "A sentence.");
        CHECK_INT(life_allows(life, RUN_A, 0), problems[i]);
        CHECK_INT(life_allows(life, RUN_B, 0), problems[i]);
        CHECK_TEXT(bytes_of(life_check(life, &problem, detail)), BYTES("a-check"));
        CHECK_INT(problem, problems[i]);
        CHECK_TEXT(bytes_of(detail), BYTES("A sentence."));
        life_confirm(life, nothing, 1000);
        CHECK_INT(life_allows(life, RUN_A, 0), PROBLEM_NONE);
    }
}

TEST_LIFE(whatever_may_change_what_is_allowed_raises_the_changes)
{
    unsigned before = life_changes(life);

    admit(life, 7);
    CHECK(life_changes(life) != before);
    before = life_changes(life);
    life_confirm(life, nothing, 2000);
    CHECK(life_changes(life) != before);
    before = life_changes(life);
    suspend(life);
    CHECK(life_changes(life) != before);
    before = life_changes(life);
    life_saw(life, 0, 7, 5);
    life_line_tell(life, 0, RUN_A, true, false);
    CHECK_INT(life_changes(life), before);
}

TEST_LIFE(the_identity_is_taken_once_and_the_stream_with_each_admission)
{
    char stream[LIFE_STREAM_SIZE];

    admit(life, 7);
    CHECK_TEXT(bytes_of(life_identity(life)), BYTES("2:ours"));
    life_admit(life, "2:another", RUN_B, BYTES(REPLID), 9, nothing, 1000);
    CHECK_TEXT(bytes_of(life_identity(life)), BYTES("2:ours"));
    CHECK_INT(life_epoch(life), 9);
    CHECK_INT(life_stream(life, stream), 9);
    CHECK_TEXT(bytes_of(stream), BYTES("master_replid:" REPLID));
}

TEST_LIFE(what_was_seen_only_rises_and_belongs_to_its_epoch)
{
    uint64_t seqs[STRIPES] = {[3] = 30, [255] = 9};

    life_admit(life, "2:ours", RUN_A, BYTES(REPLID), 7, seqs, 1000);
    CHECK_INT(life_seen(life, 3, 7), 30);
    CHECK_INT(life_seen(life, 3, 6), 0);
    CHECK_INT(life_seen(life, 3, 8), 0);
    life_saw(life, 3, 7, 29);
    CHECK_INT(life_seen(life, 3, 7), 30);
    life_saw(life, 3, 7, 31);
    life_saw(life, 3, 6, 500);
    life_saw(life, 3, 8, 500);
    CHECK_INT(life_seen(life, 3, 7), 31);
    CHECK_INT(life_seen(life, 4, 7), 0);
    seqs[3] = 5;
    seqs[4] = 5;
    life_confirm(life, seqs, 2000); /* what was seen meanwhile stays */
    CHECK_INT(life_seen(life, 3, 7), 31);
    CHECK_INT(life_seen(life, 4, 7), 5);
    suspend(life);
    CHECK_INT(life_seen(life, 3, 7), 31);
    life_admit(life, "2:ours", RUN_B, BYTES(REPLID), 8, seqs, 3000);
    CHECK_INT(life_seen(life, 3, 8), 5);
    CHECK_INT(life_seen(life, 255, 8), 9);
    CHECK_INT(life_seen(life, 3, 7), 0);
    life_saw(life, 3, 7, 900); /* an answer of before */
    CHECK_INT(life_seen(life, 3, 8), 5);
}

TEST_LIFE(a_life_is_settled_when_every_worker_was_idle_after_the_last_suspension_on_the_same_redis)
{
    admit(life, 7);
    life_line_tell(life, 0, RUN_A, true, false);
    life_line_tell(life, 1, RUN_A, true, false);
    suspend(life);
    CHECK(!life_is_settled(life, 2, RUN_A)); /* idle they were before */
    life_line_tell(life, 0, RUN_A, true, false);
    CHECK(life_is_settled(life, 1, RUN_A));
    CHECK(!life_is_settled(life, 2, RUN_A));
    life_line_tell(life, 1, RUN_A, false, false);
    CHECK(!life_is_settled(life, 2, RUN_A));
    life_line_tell(life, 1, RUN_A, true, false);
    CHECK(life_is_settled(life, 2, RUN_A));
    CHECK(!life_is_settled(life, 2, RUN_B));
    life_line_tell(life, 1, "", true, false);
    CHECK(!life_is_settled(life, 2, RUN_A));
    life_line_tell(life, 1, RUN_B, true, false);
    CHECK(!life_is_settled(life, 2, RUN_A) && !life_is_settled(life, 2, RUN_B));
    life_line_tell(life, 0, RUN_B, true, false);
    CHECK(life_is_settled(life, 2, RUN_B));
    suspend(life); /* nothing was sent since */
    CHECK(life_is_settled(life, 2, RUN_B));
}

TEST_LIFE(nothing_is_settled_while_calls_are_allowed)
{
    life_line_tell(life, 0, RUN_A, true, false);
    CHECK(life_is_settled(life, 1, RUN_A));
    admit(life, 7);
    CHECK(!life_is_settled(life, 1, RUN_A));
    life_line_tell(life, 0, RUN_A, true, false);
    CHECK(!life_is_settled(life, 1, RUN_A));
    suspend(life);
    CHECK(!life_is_settled(life, 1, RUN_A));
    life_line_tell(life, 0, RUN_A, true, false);
    CHECK(life_is_settled(life, 1, RUN_A));
    life_confirm(life, nothing, 2000);
    CHECK(!life_is_settled(life, 1, RUN_A));
    suspend(life);
    CHECK(!life_is_settled(life, 1, RUN_A));
}

TEST_LIFE(doubt_arises_only_while_calls_are_allowed_and_ends_with_the_next_life)
{
    life_line_tell(life, 0, RUN_A, true, true);
    CHECK(!life_is_doubtful(life));
    admit(life, 7);
    CHECK(!life_is_doubtful(life));
    life_line_tell(life, 0, RUN_A, true, false);
    CHECK(!life_is_doubtful(life));
    life_line_tell(life, 1, RUN_A, false, true);
    CHECK(life_is_doubtful(life));
    life_line_tell(life, 1, RUN_A, false, false); /* mended: what was lost meanwhile is lost */
    life_confirm(life, nothing, 2000);
    suspend(life);
    CHECK(life_is_doubtful(life));
    life_confirm(life, nothing, 3000);
    CHECK(life_is_doubtful(life));
    suspend(life);
    life_admit(life, "2:ours", RUN_B, BYTES(REPLID), 8, nothing, 4000);
    CHECK(!life_is_doubtful(life));
    suspend(life);
    life_line_tell(life, 0, RUN_A, true, true);
    CHECK(!life_is_doubtful(life));
}

TEST_LIFE(the_lower_bound_of_the_clock_goes_on_and_only_rises)
{
    int64_t base_ms = 1700000000000;
    uint64_t began_ms = loop_now_ms();

    life_clock_sample(life, base_ms);
    int64_t first = life_now_ms(life);
    CHECK(first >= base_ms && first <= base_ms + (int64_t)(loop_now_ms() - began_ms) + 1);
    life_clock_sample(life, base_ms - 86400000); /* the store's clock went back */
    CHECK(life_now_ms(life) >= first);
    life_clock_sample(life, base_ms + 86400000);
    CHECK(life_now_ms(life) >= base_ms + 86400000);
    began_ms = loop_now_ms();
    first = life_now_ms(life);
    while (loop_now_ms() < began_ms + 5) {
    }
    CHECK(life_now_ms(life) >= first + 4);
}

TEST_LIFE(what_is_no_time_is_no_sample_of_the_clock)
{
    static const int64_t nonsense[] = {INT64_MIN, -1, 0, INT64_MAX, INT64_MAX / 1000};

    for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++) {
        life_clock_sample(life, nonsense[i]);
        CHECK_INT(life_now_ms(life), 0);
    }
    life_clock_sample(life, 1);
    CHECK(life_now_ms(life) >= 1);
}

TEST_LIFE(a_wish_for_a_pulse_is_taken_back_by_whoever_asks)
{
    life_want_pulse(life);
    life_want_pulse(life);
    CHECK(life_wants_pulse(life));
    CHECK(!life_wants_pulse(life));
}

TEST_LIFE(a_token_above_the_bound_wants_one_pulse_until_the_next_bound)
{
    life_granted(life, 0, 1, 999999999999999);
    CHECK(!life_wants_pulse(life)); /* no bound is known */
    life_set_ceiling(life, 150, 50);
    life_granted(life, 0, 1, 100);
    CHECK(!life_wants_pulse(life));
    life_granted(life, 0, 1, 101);
    CHECK(life_wants_pulse(life));
    life_granted(life, 0, 1, 102);
    CHECK(!life_wants_pulse(life));
    life_set_ceiling(life, 250, 50);
    life_granted(life, 0, 1, 200);
    CHECK(!life_wants_pulse(life));
    life_granted(life, 0, 1, 201);
    CHECK(life_wants_pulse(life));
}

TEST_LIFE(the_highest_token_let_through_stays_and_is_never_told_above_the_ceiling)
{
    life_let_through(life, 7);
    CHECK_INT(life_let_through_most(life), 0); /* no ceiling is known */
    life_set_ceiling(life, 8, 0);
    life_let_through(life, 3);
    CHECK_INT(life_let_through_most(life), 7);
    admit(life, 8);
    CHECK_INT(life_let_through_most(life), 7);
    life_let_through(life, 999999999999999);
    CHECK_INT(life_let_through_most(life), 8);
}

TEST_LIFE(trouble_with_the_state_directory_is_told_and_goes)
{
    char detail[LIFE_DETAIL_SIZE];

    life_set_trouble(life, "The disk is full.", false);
    CHECK(life_trouble(life, detail) && !life_has_lost_its_floor(life));
    CHECK_TEXT(bytes_of(detail), BYTES("The disk is full."));
    life_set_trouble(life, "It is gone.", true);
    CHECK(life_has_lost_its_floor(life));
    life_set_trouble(life, "", false);
    CHECK(!life_trouble(life, detail) && !life_has_lost_its_floor(life));
    CHECK_TEXT(bytes_of(detail), BYTES(""));
}

/* -- from several */

/* What the threads of a test have in common. */
struct crowd {
    struct life *life;
    atomic_bool over, busy;
    atomic_uint calls;
};

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
        int64_t epoch = life_epoch(crowd->life);

        for (unsigned stripe = 0; stripe < WATCHED; stripe++) {
            life_saw(crowd->life, stripe, epoch, number_of(epoch, k));
            life_saw(crowd->life, stripe, before, number_of(before, k));
        }
        before = k % 16 == 0 ? epoch : before;
        atomic_fetch_add(&crowd->calls, 1);
    }
    return NULL;
}

/* How often something of another epoch was seen in this one, or a number fell. */
static unsigned look_at_epoch(struct life *life, int64_t epoch)
{
    uint64_t last[WATCHED] = {0};
    unsigned wrong = 0;

    for (unsigned look = 0; look < LOOKS; look++) {
        for (unsigned stripe = 0; stripe < WATCHED; stripe++) {
            uint64_t seen = life_seen(life, stripe, epoch);

            wrong += seen / PER_EPOCH != number_of(epoch, 0) / PER_EPOCH || seen < last[stripe];
            last[stripe] = seen;
        }
    }
    return wrong;
}

TEST(an_answer_of_a_former_epoch_never_raises_what_is_seen_in_the_next)
{
    struct crowd crowd = {.life = life_new()};
    pthread_t thread[HAMMERS];
    uint64_t seqs[STRIPES];
    unsigned wrong = 0;

    for (unsigned i = 0; i < HAMMERS; i++) {
        pthread_create(&thread[i], NULL, hammer, &crowd);
    }
    for (int64_t epoch = 1; epoch <= EPOCHS; epoch++) {
        unsigned calls = atomic_load(&crowd.calls);

        for (unsigned i = 0; i < STRIPES; i++) {
            seqs[i] = number_of(epoch, 0);
        }
        life_admit(crowd.life, "2:ours", RUN_A, BYTES(REPLID), epoch, seqs, 1000);
        wrong += look_at_epoch(crowd.life, epoch);
        while (epoch % 50 == 0 && atomic_load(&crowd.calls) - calls < HAMMERS) {
            sched_yield(); /* so that some epochs last, however few processors there are */
        }
        wrong += look_at_epoch(crowd.life, epoch);
    }
    atomic_store(&crowd.over, true);
    for (unsigned i = 0; i < HAMMERS; i++) {
        pthread_join(thread[i], NULL);
    }
    CHECK_INT(wrong, 0);
    life_free(crowd.life);
}

static void *raise_seen(void *argument)
{
    struct crowd *crowd = argument;

    for (uint64_t seq = 1; seq <= ROUNDS; seq++) {
        life_saw(crowd->life, 0, 7, seq);
        life_let_through(crowd->life, (int64_t)seq);
        life_clock_sample(crowd->life, 1000000 + (int64_t)seq);
    }
    return NULL;
}

TEST(of_what_several_threads_have_seen_the_highest_stays)
{
    struct crowd crowd = {.life = life_new()};
    pthread_t thread[HAMMERS];

    admit(crowd.life, 7);
    life_set_ceiling(crowd.life, ROUNDS, 0);
    for (unsigned i = 0; i < HAMMERS; i++) {
        pthread_create(&thread[i], NULL, raise_seen, &crowd);
    }
    for (unsigned i = 0; i < HAMMERS; i++) {
        pthread_join(thread[i], NULL);
    }
    CHECK_INT(life_seen(crowd.life, 0, 7), ROUNDS);
    CHECK_INT(life_let_through_most(crowd.life), ROUNDS);
    CHECK(life_now_ms(crowd.life) >= 1000000 + ROUNDS);
    life_free(crowd.life);
}

/* A worker as call.c makes one: it asks again only when something has changed, its calls stay in flight for a
 * while, and it tells that it is idle when none is. */
static void *work(void *argument)
{
    struct crowd *crowd = argument;
    unsigned known = life_changes(crowd->life) - 1, left = 0;
    bool allowed = false;

    while (!atomic_load(&crowd->over)) {
        unsigned changes = life_changes(crowd->life);

        if (changes != known) {
            allowed = life_allows(crowd->life, RUN_A, 0) == PROBLEM_NONE;
            known = changes;
        }
        if (left > 0) {
            left--;
        } else if (allowed) {
            left = 3;
            atomic_fetch_add(&crowd->calls, 1);
        }
        atomic_store(&crowd->busy, left > 0);
        life_line_tell(crowd->life, 0, RUN_A, left == 0, false);
        life_check(crowd->life, &(enum problem){0}, (char[LIFE_DETAIL_SIZE]){""});
    }
    return NULL;
}

TEST(once_settled_no_worker_has_a_call_in_flight_nor_makes_one)
{
    struct crowd crowd = {.life = life_new()};
    pthread_t thread;
    unsigned wrong = 0;

    pthread_create(&thread, NULL, work, &crowd);
    for (int64_t round = 1; round <= ROUNDS; round++) {
        unsigned calls = atomic_load(&crowd.calls);

        admit(crowd.life, round);
        while (atomic_load(&crowd.calls) == calls) {
            sched_yield();
        }
        suspend(crowd.life);
        while (!life_is_settled(crowd.life, 1, RUN_A)) {
            sched_yield();
        }
        calls = atomic_load(&crowd.calls);
        wrong += atomic_load(&crowd.busy);
        sched_yield();
        wrong += atomic_load(&crowd.calls) != calls;
    }
    atomic_store(&crowd.over, true);
    pthread_join(thread, NULL);
    CHECK_INT(wrong, 0);
    life_free(crowd.life);
}

/* Forbids calls for one reason and another in turn. */
static void *forbid(void *argument)
{
    struct crowd *crowd = argument;

    while (!atomic_load(&crowd->over)) {
        life_suspend(crowd->life, PROBLEM_STORE_NOT_ADMITTED, "store-not-admitted", "store-not-admitted");
        life_suspend(crowd->life, PROBLEM_STORE_UNAVAILABLE, "store-connecting", "store-connecting");
        atomic_fetch_add(&crowd->calls, 1);
    }
    return NULL;
}

TEST(why_calls_are_forbidden_is_of_one_reason)
{
    struct crowd crowd = {.life = life_new()};
    pthread_t thread;
    unsigned wrong = 0;

    admit(crowd.life, 1);
    suspend(crowd.life);
    pthread_create(&thread, NULL, forbid, &crowd);
    while (atomic_load(&crowd.calls) < ROUNDS * 500) {
        char detail[LIFE_DETAIL_SIZE];
        enum problem problem;
        const char *check = life_check(crowd.life, &problem, detail);

        wrong += strcmp(check, "store-connecting") == 0 && problem != PROBLEM_STORE_UNAVAILABLE;
        wrong += strcmp(detail, "Closed.") != 0 && strcmp(check, detail) != 0;
    }
    atomic_store(&crowd.over, true);
    pthread_join(thread, NULL);
    CHECK_INT(wrong, 0);
    life_free(crowd.life);
}

TEST_LIFE(a_store_is_full_from_ninety_percent_of_the_lower_bound_until_it_is_below_eighty_eight)
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
            life_set_memory_max(life, rows[i].setting);
            was_full = false;
        }
        CHECK_INT(life_set_memory(life, rows[i].used, rows[i].maxmemory), rows[i].is_full != was_full);
        was_full = rows[i].is_full;
        CHECK_INT(life_is_full(life), rows[i].is_full);
        life_memory(life, &used, &allowed);
        CHECK(used == rows[i].used && allowed == rows[i].allowed);
    }
}

TEST_LIFE(what_redis_refuses_the_pulse_for_is_told_until_it_takes_one)
{
    static const struct store_refusal refusal = {.code = "NOREPLICAS"};

    CHECK(life_refusal(life) == NULL && !life_set_refusal(life, NULL));
    CHECK(life_set_refusal(life, &refusal) && life_refusal(life) == &refusal);
    CHECK(!life_set_refusal(life, &refusal) && life_set_refusal(life, NULL) && life_refusal(life) == NULL);
}

TEST(what_redis_has_no_memory_for_is_told_as_a_full_store)
{
    static const struct store_refusal full = {.check = STORE_FULL}, other = {.check = "store-refuses-writes"};
    struct record_call call = {.life = life_new()};

    CHECK_INT(record_problem(&call, STORE_NOT_SENT, NULL), PROBLEM_STORE_UNAVAILABLE);
    CHECK(!life_wants_pulse(call.life));
    call.store.refusal = &other;
    CHECK_INT(record_problem(&call, STORE_NOT_SENT, NULL), PROBLEM_STORE_UNAVAILABLE);
    call.store.refusal = &full;
    CHECK_INT(record_problem(&call, STORE_NOT_SENT, NULL), PROBLEM_STORE_FULL);
    CHECK(life_wants_pulse(call.life));
    CHECK_INT(record_problem(&call, STORE_UNKNOWN, NULL), PROBLEM_OUTCOME_UNKNOWN);
    life_free(call.life);
}

CHECK_MAIN
