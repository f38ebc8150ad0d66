/* test_member.c - a process as a member of the store: real Redis, the scripts as they are embedded, every
 * arrow of the drawing in member.h. */
#include <errno.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include "tests/component/member_world.h"
#include "tests/unit/drawing.h"

enum { MANY_MEMBERS = 300, QUIET_CALLS = 8, ARROWS = 22, AT_ONCE = 5 };

/* The program's own fsync(): that of a directory can fail, when the file is replaced already. */
static atomic_bool dirs_fail;
static atomic_uint dirs_failed;

int fsync(int fd)
{
    struct stat is;

    if (atomic_load(&dirs_fail) && fstat(fd, &is) == 0 && S_ISDIR(is.st_mode)) {
        atomic_fetch_add(&dirs_failed, 1);
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_fsync, fd);
}

static struct party_plan lease_plan(const char *dir)
{
    return (struct party_plan){MEMBER_LEASE, dir, 1000, 1};
}

static struct party_plan gateway_plan(void)
{
    return (struct party_plan){MEMBER_GATEWAY, NULL, 1, 1};
}

/* It waits for the lease service, which is held up. */
static struct party *gateway_pending(struct stage *stage, struct party *lease)
{
    lease->held_up = true;
    struct party *gateway = party_open(stage, 1, gateway_plan());
    UNTIL(stage, gateway->member.state == MEMBER_PENDING);
    return gateway;
}

static struct party *gateway_in(struct stage *stage, struct party *lease)
{
    struct party *gateway = party_open(stage, 1, gateway_plan());

    UNTIL(stage,
          gateway->member.state == MEMBER_IN && listed(&lease->state_file.recorded, STATE_MEMBER) == 2);
    return gateway;
}

static bool went(const struct party *party, enum member_state from, enum member_state to)
{
    return party->member.walked[from] >> to & 1;
}

/* Damages one stripe: the next heartbeat shuts the gate. */
static void damage(struct stage *stage)
{
    redis_ask(&stage->redis, "DEL pawl:{00}");
}

/* So many calls more. */
static void calls_go_by(struct party *party, unsigned count)
{
    uint64_t calls = store_counts(party->store).done;

    UNTIL(party->stage, store_counts(party->store).done >= calls + count);
}

static void check_refused(struct party *party, enum problem wanted, const char *wanted_check)
{
    enum problem problem;
    char detail[EPOCH_DETAIL_SIZE];
    struct acquiring a;
    uint64_t calls = store_counts(party->store).calls;
    const char *check = epoch_check(party->store_epoch, &problem, detail);

    CHECK_TEXT(bytes_of(check != NULL ? check : "none"), bytes_of(wanted_check));
    CHECK_INT(problem, wanted);
    acquire_begin(party, &a, "x");
    CHECK_INT(a.problem, wanted);
    CHECK(a.ended);
    CHECK_INT(store_counts(party->store).calls, calls); /* at once, and without the store */
}

/* -- in */

TEST_MEMBER(what_an_answer_shows_is_remembered_before_anybody_is_answered)
{
    for (int64_t i = 1; i <= 3; i++) {
        struct acquiring a = acquire_once(lease, "x");
        CHECK_INT(a.problem, PROBLEM_NONE);
        CHECK_INT(a.seen, a.seq); /* "held" the second time: what was only read counts too */
        CHECK_INT(a.seq, 1);
    }
}

TEST_MEMBER(a_stripe_that_is_behind_what_was_seen_is_refused_and_its_holds_end)
{
    struct acquiring a = acquire_once(lease, "x");

    CHECK_TEXT(bytes_of(a.word), BYTES("granted"));
    CHECK_TEXT(bytes_of(redis_askf(&stage->redis, "HINCRBY %s seq -1", a.stripe)), BYTES(":0"));
    a = acquire_once(lease, "x");
    CHECK_INT(a.problem, PROBLEM_STORE_NOT_ADMITTED);
    UNTIL(stage, lease->member.state == MEMBER_IN && epoch_number(lease->store_epoch) > FIRST_EPOCH);
    CHECK(went(lease, MEMBER_IN, MEMBER_GATED) && went(lease, MEMBER_GATED, MEMBER_IN));
    CHECK_TEXT(bytes_of(lease->proof), BYTES("incomplete"));
    CHECK_INT(lease->told[TOLD_BEGUN], 1);
    UNTIL(stage, lease->member.ceiling > 1000);
    a = acquire_once(lease, "x"); /* free again, far above */
    CHECK_TEXT(bytes_of(a.word), BYTES("granted"));
    CHECK(a.token > 1000);
}

/* -- a restart */

/* The connection stays, and no call has failed. A heartbeat may be due just then, which tells another
 * sentence: then once more. A replica goes on with its stream until it is a primary again. */
static bool look_notices(struct stage *stage, struct party *lease, const char *before, const char *seen)
{
    UNTIL(stage, lease->member.state == MEMBER_IN && loop_now_ms() > lease->member.heartbeat_ms + 200);
    int64_t epoch = epoch_number(lease->store_epoch);

    redis_ask(&stage->redis, before);
    redis_ask(&stage->redis, seen);
    lease->detail[0] = '\0';
    UNTIL(stage, lease->detail[0] != '\0');
    bool looked = strstr(lease->detail, "has begun a new replication stream") != NULL;
    redis_ask(&stage->redis, "REPLICAOF NO ONE");
    UNTIL(stage, epoch_number(lease->store_epoch) > epoch);
    CHECK_TEXT(bytes_of(lease->proof), BYTES("complete"));
    return looked;
}

TEST_MEMBER(a_new_stream_and_a_replica_are_noticed_by_the_look_and_forbid_calls)
{
    bool stream = false, replica = false;

    acquire_once(lease, "x");
    redis_ask(&stage->redis, "CONFIG SET replica-read-only no");
    for (unsigned i = 0; i < 5 && !(stream && replica); i++) {
        stream = stream || look_notices(stage, lease, "REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE");
        replica = replica || look_notices(stage, lease, "PING", "REPLICAOF 127.0.0.1 1");
    }
    CHECK(stream && replica);
    CHECK(store_counts(lease->store).reconnects == 0);
    CHECK_TEXT(bytes_of(acquire_once(lease, "x").word), BYTES("held"));
}

static int64_t alarm_in_ms;
static unsigned alarms_at_once; /* in a row: a heartbeat alone says it, too */

static void alarm_note(struct worker *first, int64_t in_ms)
{
    (void)first;
    alarm_in_ms = in_ms;
    alarms_at_once = in_ms == 0 ? alarms_at_once + 1 : 0;
}

TEST_MEMBER(the_look_tells_when_the_next_alarm_rings)
{
    static struct member_plan plan;

    plan = lease_member;
    plan.alarm = alarm_note;
    lease->member.plan = &plan;
    alarm_in_ms = 0;
    UNTIL(stage, alarm_in_ms == -1);
    redis_askf(&stage->redis, "ZADD pawl:{store}:alarm %lld x",
               (long long)epoch_now_ms(lease->store_epoch) + 60000);
    UNTIL(stage, alarm_in_ms > 0);
    CHECK(alarm_in_ms > 40000 && alarm_in_ms <= 60000);
    redis_askf(&stage->redis, "ZADD pawl:{store}:alarm %lld.5 x",
               (long long)epoch_now_ms(lease->store_epoch) + 3600000);
    UNTIL(stage, alarm_in_ms > 60000);
    redis_ask(&stage->redis, "ZADD pawl:{store}:alarm -5 put-there-by-hand");
    UNTIL(stage, alarms_at_once >= 3);
    redis_ask(&stage->redis, "SET pawl:{store}:alarm else");
    UNTIL(stage, alarm_in_ms == -1);
    CHECK_INT(lease->member.state, MEMBER_IN);
}

TEST_MEMBER(an_entry_of_the_list_that_cannot_be_read_keeps_the_gate_shut_and_is_named)
{
    redis_askf(&stage->redis, "HSET pawl:{store} majority 1 registrars \"1 %s\"",
               lease->state_file.recorded.member);
    UNTIL(stage, listed(&lease->state_file.recorded, STATE_REGISTRAR) == 1);
    redis_ask(&stage->redis, "HSET pawl:{store}:doubt \"x y\" \"open 7\"");
    redis_kill(&stage->redis);
    redis_run(&stage->redis, NULL);
    UNTIL(stage, strstr(lease->detail, "cannot be read: \"doubt x y ") != NULL);
    CHECK_INT(lease->member.state, MEMBER_GATED);
}

TEST_MEMBER(a_registrar_that_is_missing_is_logged_once_and_so_is_its_return)
{
    for (unsigned i = 0; i < 2; i++) {
        redis_askf(&stage->redis, "HSET pawl:{store} majority 1 registrars \"%u %s%s\"", i == 0 ? 3 : 1,
                   lease->state_file.recorded.member, i == 0 ? " gone-1 gone-2" : "");
        UNTIL(stage, lease->told[i == 0 ? TOLD_MISSING : TOLD_MISSING_NO_MORE] == 1);
        int64_t beats = lease->member.beats;
        UNTIL(stage, lease->member.beats >= beats + 2);
        CHECK_INT(lease->told[TOLD_MISSING], 1);
        CHECK_INT(lease->told[TOLD_MISSING_NO_MORE], i);
    }
}

TEST_MEMBER(a_setting_that_was_unsafe_meanwhile_makes_the_next_restart_count_as_not_proven)
{
    store_look_every(lease->store, 20);
    redis_ask(&stage->redis, "CONFIG SET appendfsync everysec");
    UNTIL(stage, epoch_is_doubtful(lease->store_epoch));
    redis_ask(&stage->redis, "CONFIG SET appendfsync always");
    UNTIL(stage, store_unsafe(lease->store) == NULL);
    redis_kill(&stage->redis);
    redis_run(&stage->redis, NULL);
    UNTIL(stage, lease->member.state == MEMBER_IN && epoch_number(lease->store_epoch) > FIRST_EPOCH);
    CHECK_TEXT(bytes_of(lease->proof), BYTES("incomplete"));
    CHECK(!epoch_is_doubtful(lease->store_epoch));
}

TEST(nobody_joins_or_reports_before_every_worker_has_told_that_it_is_idle)
{
    struct stage stage;
    struct party *lease;

    stage_open(&stage, NULL);
    stage_init_store(&stage, 1000);
    lease = party_open(&stage, 0, (struct party_plan){MEMBER_LEASE, "a", 1000, 2});
    epoch_line_report(lease->store_epoch, 1, "", true, false);
    calls_go_by(lease, QUIET_CALLS);
    CHECK_INT(lease->member.state, MEMBER_PENDING); /* nor does anybody join before that */
    CHECK_TEXT(bytes_of(member_field(lease, "state")), BYTES("out"));
    epoch_line_report(lease->store_epoch, 1, lease->member.run, true, false);
    UNTIL(&stage, lease->member.state == MEMBER_IN);
    damage(&stage);
    UNTIL(&stage, lease->member.state == MEMBER_GATED);
    for (unsigned i = 0; i < 3; i++) {
        epoch_line_report(lease->store_epoch, 1, lease->member.run, false, false); /* a call is in flight */
        calls_go_by(lease, QUIET_CALLS);
        CHECK(!lease->member.reported);
        CHECK_TEXT(bytes_of(member_field(lease, "rgate")), BYTES("$-1"));
    }
    CHECK_INT(lease->member.state, MEMBER_GATED);
    epoch_line_report(lease->store_epoch, 1, "another-run", true, false);
    calls_go_by(lease, QUIET_CALLS);
    CHECK_INT(lease->member.state, MEMBER_GATED);
    epoch_line_report(lease->store_epoch, 1, lease->member.run, true, false);
    UNTIL(&stage, lease->member.state == MEMBER_IN);
    CHECK(epoch_number(lease->store_epoch) > FIRST_EPOCH);
    stage_close(&stage);
}

TEST_MEMBER(nothing_is_reported_while_it_is_not_certain_what_the_disk_says)
{
    atomic_store(&dirs_fail, true);
    party_open(stage, 1, gateway_plan()); /* a list to record */
    UNTIL(stage, !state_file_is_settled(&lease->state_file) && !lease->state_file.is_busy);
    damage(stage);
    UNTIL(stage, lease->member.state == MEMBER_GATED && strstr(lease->detail, lease->dir) != NULL);
    calls_go_by(lease, QUIET_CALLS);
    CHECK(lease->member.state == MEMBER_GATED && !lease->member.reported);
    CHECK_TEXT(bytes_of(member_field(lease, "rgate")), BYTES("$-1"));
    atomic_store(&dirs_fail, false);
    UNTIL(stage, lease->member.state == MEMBER_IN && epoch_number(lease->store_epoch) > FIRST_EPOCH);
    UNTIL(stage, state_file_is_settled(&lease->state_file));
}

/* -- others */

TEST_MEMBER(a_gateway_waits_until_the_lease_service_has_recorded_it)
{
    struct party *gateway = gateway_pending(stage, lease);

    check_refused(gateway, PROBLEM_STORE_NOT_ADMITTED, "store-not-admitted");
    CHECK(!member_is_settled(&gateway->member));
    CHECK_INT(listed(&lease->state_file.recorded, STATE_MEMBER), 1);
    lease->held_up = false;
    UNTIL(stage, gateway->member.state == MEMBER_IN);
    CHECK_INT(listed(&lease->state_file.recorded, STATE_MEMBER), 2);
    CHECK(went(gateway, MEMBER_AWAY, MEMBER_PENDING) && went(gateway, MEMBER_PENDING, MEMBER_IN));
    CHECK_INT(epoch_number(gateway->store_epoch), FIRST_EPOCH);
}

TEST_MEMBER(who_waits_or_is_shut_out_does_not_heartbeat_more_often_than_every_second)
{
    struct party *gateway = gateway_pending(stage, lease);
    uint64_t calls;
    long beats;

    beats = strtol(member_field(gateway, "beats"), NULL, 10);
    calls_go_by(gateway, QUIET_CALLS);
    CHECK(strtol(member_field(gateway, "beats"), NULL, 10) <= beats + 1);
    damage(stage);
    UNTIL(stage, gateway->member.state == MEMBER_GATED && gateway->member.reported);
    uint64_t heartbeat_ms = gateway->member.heartbeat_ms;
    unsigned heartbeats = 0;
    calls = store_counts(gateway->store).done;
    while (store_counts(gateway->store).done < calls + QUIET_CALLS) {
        stage_turn(stage);
        heartbeats += gateway->member.heartbeat_ms != heartbeat_ms;
        heartbeat_ms = gateway->member.heartbeat_ms;
    }
    CHECK(heartbeats <= 1);
    CHECK(went(gateway, MEMBER_PENDING, MEMBER_GATED));
}

TEST_MEMBER(a_gateway_that_comes_while_the_store_is_gated_joins_as_newcomers_do)
{
    struct party *gateway;

    lease->held_up = true;
    damage(stage);
    gateway = party_open(stage, 1, gateway_plan());
    UNTIL(stage, gateway->member.state == MEMBER_GATED && gateway->member.reported);
    lease->held_up = false;
    gateway->held_up = true;
    UNTIL(stage, lease->told[TOLD_BEGUN] == 1);
    lease->held_up = true; /* before it has told that the gateway is recorded */
    gateway->held_up = false;
    UNTIL(stage, gateway->member.state == MEMBER_PENDING);
    lease->held_up = false;
    UNTIL(stage, gateway->member.state == MEMBER_IN);
    CHECK(went(gateway, MEMBER_AWAY, MEMBER_GATED) && went(gateway, MEMBER_GATED, MEMBER_PENDING));
    CHECK_INT(epoch_number(gateway->store_epoch), epoch_number(lease->store_epoch));
}

TEST_MEMBER(a_gateway_that_could_not_be_asked_joins_the_new_epoch_as_a_newcomer)
{
    struct party *gateway = gateway_in(stage, lease);

    gateway->held_up = true;
    redis_kill(&stage->redis);
    redis_run(&stage->redis, NULL);
    UNTIL(stage, lease->member.state == MEMBER_IN && epoch_number(lease->store_epoch) > FIRST_EPOCH);
    CHECK_TEXT(bytes_of(lease->proof), BYTES("incomplete"));
    CHECK_TEXT(bytes_of(lease->not_asked), bytes_of(gateway->state_file.recorded.member));
    gateway->held_up = false;
    UNTIL(stage, gateway->member.state == MEMBER_IN && epoch_number(gateway->store_epoch) > FIRST_EPOCH);
}

TEST_MEMBER(the_gate_stays_shut_until_it_is_on_disk_who_is_in_doubt)
{
    struct party *gateway = gateway_in(stage, lease);

    UNTIL(stage, state_file_is_settled(&lease->state_file));
    gateway->held_up = true;
    atomic_store(&dirs_fail, true);
    redis_kill(&stage->redis);
    redis_run(&stage->redis, NULL);
    UNTIL(stage, lease->member.state == MEMBER_GATED && strstr(lease->detail, lease->dir) != NULL);
    calls_go_by(lease, QUIET_CALLS);
    check_refused(lease, PROBLEM_STORE_NOT_ADMITTED, "state-dir");
    CHECK_INT(lease->told[TOLD_BEGUN], 0);
    unsigned failed = atomic_load(&dirs_failed);
    uint64_t from_ms = loop_now_ms();
    UNTIL(stage, loop_now_ms() >= from_ms + 2000);
    CHECK(atomic_load(&dirs_failed) - failed <=
          10); /* 50 ms after the first, 2 s in the end; and each heartbeat */
    atomic_store(&dirs_fail, false);
    UNTIL(stage, lease->member.state == MEMBER_IN && epoch_number(lease->store_epoch) > FIRST_EPOCH);
    UNTIL(stage, state_file_is_settled(&lease->state_file));
    CHECK_INT(listed(&lease->state_file.recorded, STATE_DOUBT), 1);
    CHECK(strstr(lease->state_file.recorded.list, textf("doubt %s", gateway->state_file.recorded.member)));
}

TEST_MEMBER(a_doubt_that_cannot_be_read_is_named_and_nothing_is_admitted_until_it_is_mended)
{
    redis_ask(&stage->redis, "HSET pawl:{store}:doubt \"by hand\" \"open 7\"");
    damage(stage);
    UNTIL(stage, strstr(lease->detail, "\"doubt by hand 7\"") != NULL);
    check_refused(lease, PROBLEM_STORE_NOT_ADMITTED, "store-not-admitted");
    CHECK_INT(lease->told[TOLD_BEGUN], 0);
    redis_ask(&stage->redis, "DEL pawl:{store}:doubt");
    UNTIL(stage, lease->member.state == MEMBER_IN && epoch_number(lease->store_epoch) > FIRST_EPOCH);
}

TEST_MEMBER(who_slept_through_a_whole_gating_is_pending_in_the_new_epoch)
{
    struct party *gateway = gateway_in(stage, lease);
    struct acquiring a;

    gateway->held_up = true;
    damage(stage);
    UNTIL(stage, lease->member.state == MEMBER_IN && epoch_number(lease->store_epoch) > FIRST_EPOCH);
    CHECK_INT(gateway->member.state, MEMBER_IN);
    acquire_begin(gateway, &a, "x"); /* it does not know yet */
    CHECK(!a.ended);
    gateway->held_up = false;
    UNTIL(stage, a.ended);
    CHECK_INT(a.problem, PROBLEM_STORE_NOT_ADMITTED);
    UNTIL(stage, gateway->member.state == MEMBER_IN && epoch_number(gateway->store_epoch) > FIRST_EPOCH);
    CHECK(went(gateway, MEMBER_IN, MEMBER_PENDING));
    CHECK_INT(acquire_once(gateway, "x").problem, PROBLEM_NONE);
}

/* B has its place, and is gone. Its events are told once however often it is asked. */
TEST_MEMBER(without_the_floor_of_another_lease_service_nobody_admits_and_that_is_told_once)
{
    struct party *other;
    char id[MEMBER_ID_CHARS + 1];

    other = party_open(stage, 1, lease_plan("b"));
    UNTIL(stage, other->member.state == MEMBER_IN && listed(&lease->state_file.recorded, STATE_MEMBER) == 2 &&
                     listed(&other->state_file.recorded, STATE_MEMBER) == 2);
    snprintf(id, sizeof(id), "%s", other->state_file.recorded.member);
    party_close(other);
    redis_kill(&stage->redis);
    UNTIL(stage, lease->member.state == MEMBER_AWAY);
    redis_run(&stage->redis, NULL);
    UNTIL(stage, strstr(lease->detail, id) != NULL);
    unsigned suspended = lease->told[TOLD_SUSPENDED];
    CHECK_INT(suspended, 3); /* the link broke, the store is closed, one is waited for */
    calls_go_by(lease, 4 * QUIET_CALLS);
    CHECK_INT(lease->told[TOLD_SUSPENDED], suspended);
    CHECK_INT(lease->told[TOLD_BEGUN], 0);
    check_refused(lease, PROBLEM_STORE_NOT_ADMITTED, "store-not-admitted");
    other = party_open(stage, 1, lease_plan("b"));
    UNTIL(stage, lease->member.state == MEMBER_IN && other->member.state == MEMBER_IN);
    CHECK_INT(epoch_number(lease->store_epoch), epoch_number(other->store_epoch));
    CHECK_INT(lease->told[TOLD_BEGUN] + other->told[TOLD_BEGUN], 1);
    const char *proof = lease->told[TOLD_BEGUN] > 0 ? lease->proof : other->proof;
    CHECK_TEXT(bytes_of(proof), BYTES("incomplete")); /* what it remembered is gone */
}

TEST(more_members_than_a_list_has_room_for_let_nobody_in_but_floors_go_on)
{
    struct stage stage;
    struct party *lease, *gateway;
    char name[16];

    stage_open(&stage, NULL);
    stage_init_store(&stage, 4);
    lease = party_open(&stage, 0, (struct party_plan){MEMBER_LEASE, "a", 4, 1});
    UNTIL(&stage, lease->member.state == MEMBER_IN && !lease->state_file.is_busy &&
                      lease->state_file.recorded.members_version == lease->member.members_version);
    redis_askf(&stage.redis,
               "EVAL 'for i = 1, %d do local id = string.format(\"%%016d\", i) "
               "redis.call(\"SADD\", KEYS[1] .. \":members\", id) "
               "redis.call(\"HSET\", KEYS[1] .. \":m:\" .. id, \"role\", \"gateway\", \"incarnation\", id, "
               "\"state\", \"in\", \"epoch\", 7, \"beats\", 0, \"floor\", 0, \"roll\", 0, \"since\", 0) end "
               "redis.call(\"HINCRBY\", KEYS[1], \"roll\", 1)' 1 pawl:{store}",
               MANY_MEMBERS);
    int64_t roll = lease->state_file.recorded.members_version;
    uint64_t till_ms = loop_now_ms() + STAGE_MS;
    for (unsigned i = 0; lease->member.ceiling <= 8 && loop_now_ms() < till_ms; i++) {
        snprintf(name, sizeof(name), "x%u", i);
        if (keys_stripe_of(bytes_of(name)) == 0) {
            struct acquiring a = acquire_once(lease, name);
            CHECK_INT(a.problem, PROBLEM_NONE);
            epoch_granted(lease->store_epoch, 0, lease->member.epoch, a.token);
        }
    }
    CHECK(lease->state_file.recorded.floor > 8);
    CHECK_INT(lease->state_file.recorded.members_version, roll);
    CHECK_INT(listed(&lease->state_file.recorded, STATE_MEMBER), 1);
    gateway = party_open(&stage, 1, gateway_plan());
    UNTIL(&stage, gateway->member.state == MEMBER_PENDING);
    long beats = lease->member.beats;
    UNTIL(&stage, lease->member.beats >= beats + 2);
    CHECK_INT(gateway->member.state, MEMBER_PENDING);
    stage_close(&stage);
}

/* -- refused */

TEST_MEMBER(an_emptied_redis_is_noticed_and_every_call_refused_at_once)
{
    redis_ask(&stage->redis, "FLUSHALL");
    CHECK_INT(acquire_once(lease, "x").problem, PROBLEM_STORE_NOT_OURS);
    UNTIL(stage, lease->member.state == MEMBER_REFUSED);
    check_refused(lease, PROBLEM_STORE_NOT_OURS, "store-not-ours");
    CHECK(went(lease, MEMBER_IN, MEMBER_REFUSED));
    CHECK(member_is_settled(&lease->member));
    unsigned suspended = lease->told[TOLD_SUSPENDED];
    calls_go_by(lease, 4 * QUIET_CALLS);
    CHECK_INT(lease->told[TOLD_SUSPENDED], suspended);
    CHECK_TEXT(bytes_of(redis_ask(&stage->redis, "DBSIZE")), BYTES(":0")); /* nothing is made by accident */
    redis_kill(&stage->redis);
    UNTIL(stage, lease->member.state == MEMBER_AWAY);
}

/* The store is put aside and comes back. */
TEST_MEMBER(a_store_that_comes_back_is_taken_up_again)
{
    struct party *gateway;

    redis_ask(&stage->redis, "SWAPDB 0 1");
    UNTIL(stage, lease->member.state == MEMBER_REFUSED);
    gateway = party_open(stage, 1, gateway_plan());
    UNTIL(stage, gateway->member.state == MEMBER_REFUSED);
    CHECK(strstr(gateway->detail, "empty") != NULL);
    redis_ask(&stage->redis, "SWAPDB 0 1");
    UNTIL(stage, lease->member.state == MEMBER_IN && gateway->member.state == MEMBER_IN);
    CHECK_INT(epoch_number(lease->store_epoch), FIRST_EPOCH); /* nothing was lost */
    CHECK(went(lease, MEMBER_REFUSED, MEMBER_IN) && went(gateway, MEMBER_REFUSED, MEMBER_PENDING));
    redis_ask(&stage->redis, "SWAPDB 0 1");
    UNTIL(stage, lease->member.state == MEMBER_REFUSED && gateway->member.state == MEMBER_REFUSED);
    redis_ask(&stage->redis, "SWAPDB 0 1");
    lease->held_up = true;
    damage(stage);
    UNTIL(stage, gateway->member.state == MEMBER_GATED);
    redis_ask(&stage->redis, "FLUSHALL");
    UNTIL(stage, gateway->member.state == MEMBER_REFUSED);
    CHECK(went(gateway, MEMBER_REFUSED, MEMBER_GATED) && went(gateway, MEMBER_GATED, MEMBER_REFUSED));
}

TEST(another_store_is_refused)
{
    struct stage stage;
    struct party *lease;
    char id[MEMBER_ID_CHARS + 1];

    stage_open(&stage, NULL);
    stage_init_store(&stage, 1000);
    state_dir_init(textf("%s/b", stage.redis.dir), 1000, id);
    redis_ask(&stage.redis, "HSET pawl:{store} id " KEYS_SCHEMA ":tttttttttttttttttttttttt");
    lease = party_open(&stage, 0, lease_plan("b"));
    UNTIL(&stage, lease->member.state == MEMBER_REFUSED);
    check_refused(lease, PROBLEM_STORE_NOT_OURS, "store-not-ours");
    CHECK(strstr(lease->detail, KEYS_SCHEMA ":tttttttttttttttttttttttt") != NULL &&
          strstr(lease->detail, "schema " KEYS_SCHEMA ", and ours is " STORE_ID) != NULL);
    CHECK_TEXT(bytes_of(member_field(lease, "role")), BYTES("$-1"));
    stage_close(&stage);
}

TEST_MEMBER(of_two_copies_of_a_state_directory_the_older_process_is_refused_and_so_is_who_was_forgotten)
{
    struct party *copy;

    CHECK(system(textf("cd %s && mkdir b && cp -p a/high-water b/", stage->redis.dir)) == 0);
    copy = party_open(stage, 1, lease_plan("b"));
    UNTIL(stage, lease->member.state == MEMBER_REFUSED && copy->member.state == MEMBER_IN);
    check_refused(lease, PROBLEM_STORE_NOT_OURS, "store-not-ours");
    CHECK(strstr(lease->detail, "copies") != NULL);
    CHECK_INT(acquire_once(copy, "x").problem, PROBLEM_NONE);
    redis_askf(&stage->redis, "HSET %s state forgotten", copy->member.key);
    UNTIL(stage, copy->member.state == MEMBER_REFUSED);
    check_refused(copy, PROBLEM_STORE_NOT_OURS, "store-not-ours");
    CHECK(strstr(copy->detail, "forgotten") != NULL);
}

/* -- the clock */

TEST_MEMBER(a_store_whose_clock_went_back_is_corrected_and_that_is_told)
{
    int64_t ahead_ms = epoch_now_ms(lease->store_epoch) + 3600000;

    redis_askf(&stage->redis, "HSET pawl:{store} time %lld", (long long)ahead_ms);
    UNTIL(stage, lease->told[TOLD_CLOCK] > 0);
    CHECK(epoch_now_ms(lease->store_epoch) >= ahead_ms);
    const char *clock = textf("%s", store_field(stage, "clock"));
    CHECK(strtoll(clock, NULL, 10) > 3500000);
    CHECK(strstr(record_field(stage, "pawl:{ff}", "life"), textf(" %s ", clock)) != NULL);
    int64_t beats = lease->member.beats;
    UNTIL(stage, lease->member.beats >= beats + 2);
    CHECK_INT(lease->told[TOLD_CLOCK], 1);
}

/* -- the end */

TEST_MEMBER(a_gateway_that_leaves_is_gone_from_the_list_and_makes_no_call_any_more)
{
    struct party *gateway = gateway_in(stage, lease);

    unsigned suspended = gateway->told[TOLD_SUSPENDED];
    member_leave(&gateway->member);
    CHECK(!member_has_left(&gateway->member));
    UNTIL(stage, member_has_left(&gateway->member));
    CHECK_INT(gateway->member.state, MEMBER_LEFT);
    CHECK_TEXT(bytes_of(member_field(gateway, "role")), BYTES("$-1"));
    check_refused(gateway, PROBLEM_DRAINING, "draining");
    UNTIL(stage, listed(&lease->state_file.recorded, STATE_MEMBER) == 1);
    CHECK_INT(gateway->told[TOLD_SUSPENDED], suspended); /* an orderly end is nothing to warn of */
}

TEST_MEMBER(a_newcomer_that_cannot_write_its_state_directory_says_so)
{
    struct party *newcomer = party_open(stage, 1, lease_plan("b"));

    atomic_store(&dirs_fail, true);
    UNTIL(stage, newcomer->member.state == MEMBER_PENDING && strstr(newcomer->detail, newcomer->dir) != NULL);
    check_refused(newcomer, PROBLEM_STORE_NOT_ADMITTED, "state-dir");
    atomic_store(&dirs_fail, false);
    UNTIL(stage, newcomer->member.state == MEMBER_IN);
    CHECK_INT(listed(&lease->state_file.recorded, STATE_MEMBER), 2);
}

TEST_MEMBER(who_leaves_while_it_waits_to_get_in_is_gone_from_the_list)
{
    struct party *gateway, *newcomer;

    lease->held_up = true;
    gateway = party_open(stage, 1, gateway_plan());
    newcomer = party_open(stage, 2, lease_plan("b"));
    UNTIL(stage, gateway->member.state == MEMBER_PENDING && newcomer->member.state == MEMBER_PENDING);
    UNTIL(stage, member_field(newcomer, "role")[0] == 'l' && member_field(gateway, "role")[0] == 'g');
    UNTIL(stage, !newcomer->state_file.is_busy);
    newcomer->state_file.is_busy = true; /* as while it notes whose member it is */
    member_leave(&gateway->member);
    member_leave(&newcomer->member);
    UNTIL(stage, member_has_left(&gateway->member));
    CHECK_INT(newcomer->member.state, MEMBER_PENDING);
    newcomer->state_file.is_busy = false;
    UNTIL(stage, member_has_left(&newcomer->member));
    CHECK_TEXT(bytes_of(member_field(gateway, "role")), BYTES("$-1"));
    CHECK_TEXT(bytes_of(member_field(newcomer, "role")), BYTES("$-1"));
    CHECK(went(gateway, MEMBER_PENDING, MEMBER_LEFT));
}

TEST_MEMBER(the_last_lease_service_stays_listed_when_it_leaves_and_finds_its_place_again)
{
    member_leave(&lease->member);
    UNTIL(stage, member_has_left(&lease->member));
    CHECK_TEXT(bytes_of(member_field(lease, "state")), BYTES("out"));
    party_close(lease);
    lease = party_open(stage, 0, lease_plan("a"));
    UNTIL(stage, lease->member.state == MEMBER_IN);
    CHECK_INT(epoch_number(lease->store_epoch), FIRST_EPOCH);
}

TEST_MEMBER(who_is_shut_out_or_cannot_reach_the_store_leaves_without_a_word)
{
    struct party *gateway = gateway_pending(stage, lease);

    redis_kill(&stage->redis);
    UNTIL(stage, gateway->member.state == MEMBER_AWAY);
    lease->held_up = false;
    UNTIL(stage, lease->member.state == MEMBER_AWAY);
    member_leave(&lease->member);
    member_leave(&gateway->member);
    UNTIL(stage, member_has_left(&lease->member) && member_has_left(&gateway->member));
    CHECK_INT(lease->member.state, MEMBER_AWAY);
}

TEST_MEMBER(a_process_may_end_at_any_moment)
{
    struct acquiring a;

    acquire_begin(lease, &a, "x");
    UNTIL(stage, lease->member.in_flight);
    party_close(lease); /* in the middle of a heartbeat or a look, and of a call */
    CHECK(a.ended);
    lease = party_open(stage, 0, lease_plan("a"));
    UNTIL(stage, lease->member.state == MEMBER_IN);
    UNTIL(stage, lease->state_file.is_busy ||
                     lease->state_file.recorded.members_version == lease->member.members_version);
    party_close(lease); /* a write may be under way */
    lease = party_open(stage, 0, lease_plan("a"));
    damage(stage);
    UNTIL(stage, lease->member.state == MEMBER_GATED);
    redis_kill(&stage->redis);
    UNTIL(stage, lease->member.state == MEMBER_AWAY);
    CHECK(went(lease, MEMBER_GATED, MEMBER_AWAY));
}

TEST_MEMBER(a_pending_member_notices_that_the_store_is_gone)
{
    struct party *gateway = gateway_pending(stage, lease);

    redis_ask(&stage->redis, "FLUSHALL");
    UNTIL(stage, gateway->member.state == MEMBER_REFUSED);
    CHECK(went(gateway, MEMBER_PENDING, MEMBER_REFUSED));
}

/* -- the drawing */

static const char *const state_names[MEMBER_STATES] = {
    [MEMBER_AWAY] = "AWAY",   [MEMBER_PENDING] = "PENDING", [MEMBER_IN] = "IN",
    [MEMBER_GATED] = "GATED", [MEMBER_REFUSED] = "REFUSED", [MEMBER_LEFT] = "LEFT",
};

TEST(the_drawing_the_table_and_where_members_went_agree)
{
    CHECK_INT(
        drawing_check("shared/member/membership.c", state_names, MEMBER_STATES, member_allows, member_walked),
        ARROWS);
}

int main(void)
{
    member_walked = check_shared(MEMBER_STATES * sizeof(*member_walked));
    return check_all_in_children(AT_ONCE);
}
