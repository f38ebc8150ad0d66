/* test_store_diagnosis.c - what pawl store status says of a store, from its facts alone. */
#include "api/cli/store/store.h"

#include <stdio.h>

#include "api/cli/cli.h"
#include "shared/token/token.h"
#include "tests/unit/check.h"

#define ID "AAAAAAAAAAAAAAAAAAAAAAAA"

/* A lease service and a gateway that are alive, in a store that is in order. */
struct sample {
    struct member_fact members[2];
    struct store_facts facts;
    struct store_diagnosis diagnosis;
};

static void sample_init(struct sample *s)
{
    *s = (struct sample){
        .members = {{.id = "lease-1",
                     .role = "lease",
                     .state = "in",
                     .who = "pawl-lease pid 12 on host3",
                     .floor = 1000,
                     .roll = 4,
                     .since = 1,
                     .age_ms = 400,
                     .live = true},
                    {.id = "gate-1",
                     .role = "gateway",
                     .state = "in",
                     .who = "pawl-gateway pid 13 on host3",
                     .roll = 0,
                     .since = 2,
                     .age_ms = 500,
                     .live = true}},
        .facts = {.kind = FACT_STORE,
                  .identity = KEYS_SCHEMA ":" ID,
                  .sound = true,
                  .has_record = true,
                  .epoch = 7,
                  .roll = 4,
                  .ceiling = 1000,
                  .top = 12,
                  .top_stripe = "pawl:{3f}",
                  .run = "aaaa",
                  .redis_run = "aaaa",
                  .how = "complete",
                  .member_count = 2,
                  .machine.found = STATE_FRESH},
    };
    s->facts.members = s->members;
}

/* The verdict after one thing has been changed: its status, and a part of the only finding; NULL: no finding.
 */
#define AFTER(change, wanted_status, part)                                                                   \
    do {                                                                                                     \
        struct sample s;                                                                                     \
        sample_init(&s);                                                                                     \
        change;                                                                                              \
        store_diagnosis_make(&s.facts, &s.diagnosis);                                                        \
        CHECK_INT(s.diagnosis.status, wanted_status);                                                        \
        check_only(&s.diagnosis, part);                                                                      \
    } while (0)

static void check_only(const struct store_diagnosis *diagnosis, const char *part)
{
    CHECK_INT(diagnosis->count, part != NULL ? 1 : 0);
    if (part == NULL || diagnosis->count == 0)
        return;
    if (!CHECK(strstr(diagnosis->findings[0].what, part) != NULL ||
               strstr(diagnosis->findings[0].todo, part) != NULL))
        printf("# \"%s\" is not in: %s / %s\n", part, diagnosis->findings[0].what,
               diagnosis->findings[0].todo);
    CHECK(diagnosis->findings[0].what[0] != '\0' && diagnosis->findings[0].todo[0] != '\0');
    CHECK_INT(diagnosis->findings[0].weight, diagnosis->status == CLI_OK ? FINDING_WARNING : FINDING_REFUSED);
}

#define TEXT(place, text) snprintf((place), sizeof(place), "%s", (text))

TEST(a_store_in_order_gives_no_cause_for_complaint)
{
    AFTER((void)0, CLI_OK, NULL);
}

TEST(what_is_no_store_of_ours_is_told_as_such)
{
    AFTER(s.facts.kind = FACT_EMPTY, CLI_CONFIG, "pawl store init");
    AFTER(s.facts.kind = FACT_ANOTHER, CLI_CONFIG, "schema " KEYS_SCHEMA);
    AFTER((s.facts.kind = FACT_WRONG_KEY, TEXT(s.facts.wrong_key, "pawl:{3f}")), CLI_CONFIG, "pawl:{3f}");
}

TEST(an_empty_redis_beside_a_state_directory_is_told_to_have_lost_a_store)
{
    AFTER((s.facts.kind = FACT_EMPTY, s.facts.machine.found = STATE_OPEN, TEXT(s.facts.machine.store, ID)),
          CLI_CONFIG, "belongs to store " ID);
}

TEST(a_state_directory_of_another_store_is_told)
{
    AFTER((s.facts.machine.found = STATE_OPEN, TEXT(s.facts.machine.store, ID)), CLI_OK, NULL);
    AFTER((s.facts.machine.found = STATE_OPEN, TEXT(s.facts.machine.store, "BBBB")), CLI_CONFIG,
          "store-not-ours");
    AFTER((s.facts.machine.found = STATE_DAMAGED, TEXT(s.facts.machine.why, "no checksum")), CLI_OK,
          "no checksum");
}

TEST(a_gating_names_whom_it_waits_for_and_what_to_do)
{
    AFTER((TEXT(s.facts.gate, "g"), TEXT(s.facts.why, "restarted"), s.facts.asked = 1,
           s.facts.waiting_count = 1, TEXT(s.facts.waiting[0], "lease-1"), s.members[0].age_ms = 40000),
          CLI_REFUSED, "lease-1 (pawl-lease pid 12 on host3, last seen 40 s ago)");
    AFTER((TEXT(s.facts.gate, "g"), s.facts.asked = 1, s.facts.waiting_count = 1,
           TEXT(s.facts.waiting[0], "lease-9")),
          CLI_REFUSED, "lease service lease-9");
    AFTER((TEXT(s.facts.gate, "g"), s.facts.asked = 1), CLI_REFUSED, "know of no others");
    AFTER((TEXT(s.facts.gate, "g"), s.facts.asked = 1, s.facts.outside = true), CLI_REFUSED,
          "First of all stop this Redis, for sentinels make what is started copy it");
    AFTER((TEXT(s.facts.gate, "g"), s.facts.asked = 0), CLI_REFUSED, "with its state directory: lease-1 (");
    AFTER((TEXT(s.facts.gate, "g"), s.facts.asked = 2), CLI_REFUSED, "about to admit");
}

TEST(what_nobody_has_noticed_yet_is_told)
{
    AFTER(TEXT(s.facts.redis_run, "bbbb"), CLI_REFUSED, "run aaaa, now bbbb");
    AFTER((s.facts.sound = false, s.facts.absent = 3, TEXT(s.facts.first_absent, "pawl:{40}")), CLI_REFUSED,
          "3 of the 256 stripes are missing (pawl:{40} first)");
    AFTER((s.facts.sound = false, s.facts.has_record = false), CLI_REFUSED,
          "the record pawl:{store} is missing");
    AFTER(s.facts.sound = false, CLI_REFUSED, "do not agree");
    AFTER((s.facts.sound = false, s.facts.shut = 256), CLI_REFUSED, "256 of the 256 stripes are shut");
}

TEST(without_a_living_lease_service_nothing_is_granted)
{
    AFTER(s.members[0].live = false, CLI_REFUSED, "Start one of these, with its state directory: lease-1 (");
    AFTER(TEXT(s.members[0].state, "out"), CLI_REFUSED, "with its state directory: lease-1 (");
    AFTER((s.members[0] = s.members[1], s.facts.open = true), CLI_REFUSED, "the first that comes may join");
    AFTER(s.members[0] = s.members[1], CLI_REFUSED, "None is listed");
}

TEST(a_ceiling_that_is_reached_names_the_one_that_holds_it_down)
{
    AFTER(s.facts.top = 999, CLI_OK, NULL);
    AFTER(s.facts.top = 1000, CLI_REFUSED, "state directory of lease service lease-1 (");
    AFTER(s.facts.top = s.facts.ceiling = TOKEN_NUMBER_MAX, CLI_REFUSED, "token-exhausted");
}

TEST(a_newcomer_is_told_with_what_it_waits_for)
{
    AFTER((TEXT(s.members[1].state, "pending")), CLI_REFUSED, "not every lease service has recorded it");
    AFTER((s.members[1] = s.members[0], TEXT(s.members[1].state, "pending"), s.members[1].since = 5),
          CLI_REFUSED, "not yet recorded the list");
    AFTER((s.members[1] = s.members[0], TEXT(s.members[1].state, "pending"), s.members[1].floor = 999),
          CLI_REFUSED, "not yet recorded its floor");
}

TEST(settings_that_can_lose_locks_and_keys_with_an_end_are_told)
{
    AFTER(TEXT(s.facts.unsafe, "appendfsync is everysec, must be always"), CLI_REFUSED,
          "appendfsync is everysec");
    AFTER((s.facts.ending = 2, TEXT(s.facts.ending_key, "pawl:{07}")), CLI_OK,
          "2 keys of ours have a TTL, pawl:{07}");
}

TEST(copies_are_told_when_they_are_fewer_than_must_be_and_who_is_away)
{
    static struct node_fact nodes[] = {
        {.node = "a:1", .kept = true, .gone_ms = -1},
        {.node = "b:1", .kept = true, .online = true, .gone_ms = -1},
        {.node = "c:1", .gone_ms = -1, .away = "priority-0"},
        {.node = "d:1", .gone_ms = 9000, .away = "unreachable"},
    };

#define NODES(n, wanted) s.facts.nodes = nodes, s.facts.node_count = (n), s.facts.copies = (wanted)
    AFTER((NODES(2, 2)), CLI_OK, NULL);
    AFTER((NODES(3, 2)), CLI_OK, NULL); /* it never was in the set */
    AFTER((NODES(4, 2)), CLI_OK, "away: d:1 (unreachable)");
    AFTER((NODES(4, 3)), CLI_REFUSED, "store-not-kept");
    nodes[1].away = "no-aof";
    AFTER((NODES(2, 2)), CLI_REFUSED, "away: b:1 (no-aof)");
    AFTER((NODES(2, 1)), CLI_OK, "away: b:1 (no-aof)"); /* it is taken out */
    nodes[1].away = "rewriting";
    AFTER((NODES(2, 2)), CLI_OK, NULL); /* what was on its disk before is there still */
    AFTER((NODES(2, 2), s.facts.unasked = true), CLI_REFUSED, "away: b:1 (rewriting)");
    nodes[1].away = "unreachable"; /* from here */
    AFTER((NODES(2, 2)), CLI_OK, NULL);
    nodes[1].lag_ms = 3000;
    AFTER((NODES(2, 2)), CLI_REFUSED, "store-not-kept");
}

TEST(who_is_gone_without_a_word_is_told_while_grants_go_on)
{
    AFTER(s.members[1].live = false, CLI_OK, "pawl store forget gate-1");
    AFTER((s.members[1].live = false, TEXT(s.members[1].id, "-gate")), CLI_OK, "pawl store forget -- -gate");
    AFTER((s.members[1] = s.members[0], TEXT(s.members[1].id, "lease-2"), s.members[1].live = false), CLI_OK,
          "nobody can admit the store without it");
    AFTER((s.members[1].live = false, TEXT(s.members[1].state, "forgotten")), CLI_OK, NULL);
}

TEST(too_few_registrars_stop_all_where_sentinels_watch_and_else_the_next_admission)
{
#define REGISTRARS(n, needed)                                                                                \
    s.members[1] = s.members[0], TEXT(s.members[1].id, "lease-2"), s.members[1].live = false,                \
    s.members[0].registrar = s.members[1].registrar = true, s.facts.registrars = (n),                        \
    s.facts.majority = (needed)
    AFTER((REGISTRARS(3, 1)), CLI_OK, "pawl store registrar replace lease-2 OTHER");
    AFTER((REGISTRARS(3, 2)), CLI_OK,
          "after the next restart of Redis nobody can admit the store: lease-2 (");
    AFTER((REGISTRARS(3, 2), TEXT(s.facts.form, "sentinel")), CLI_REFUSED,
          "1 of 3 registrars is heard, and 2 must be: nothing is answered (store-not-admitted); missing are "
          "lease-2 (");
    AFTER((REGISTRARS(3, 2), TEXT(s.facts.form, "sentinel"), s.members[1].live = true,
           s.members[1].age_ms = 4000),
          CLI_REFUSED, "lease-2 (");
    AFTER((REGISTRARS(3, 2), TEXT(s.facts.form, "sentinels")), CLI_REFUSED,
          "Start them; if too few of them exist any more: pawl store recover --floor N --force.");
}

TEST(who_is_in_doubt_is_told_with_what_ends_it)
{
    static struct doubt_fact doubts[] = {
        {.gateway = "gate-7", .incarnation = "one", .state = "open", .dead_ms = -1},
        {.gateway = "gate-8", .incarnation = "two", .state = "dead"}};

    AFTER((s.facts.doubts = doubts, s.facts.doubt_count = 1), CLI_OK, "1 incarnation of gateways");
    AFTER((s.facts.doubts = doubts, s.facts.doubt_count = 2), CLI_OK, "2 incarnations of gateways");
    AFTER((s.facts.doubts = doubts, s.facts.doubt_count = 1), CLI_OK,
          "pawl resolve --gateway gate-7 --incarnation one --dead");
}

/* Nobody's heartbeat arrives, so all look dead: of that nothing follows, and nothing is advised that ends
 * holds. */
TEST(a_redis_that_takes_no_writes_is_told_and_nothing_else_is_made_of_it)
{
    static const struct store_refusal refusal = {.code = "NOREPLICAS",
                                                 .check = "store-refuses-writes",
                                                 .what = "takes no writes",
                                                 .todo = "bring them back"};

    AFTER((s.facts.refusal = &refusal, s.members[0].live = s.members[1].live = false), CLI_REFUSED,
          "takes no writes");
    AFTER((s.facts.refusal = &refusal, TEXT(s.facts.gate, "gate"), TEXT(s.facts.why, "restarted")),
          CLI_REFUSED, "bring them back");
}

TEST(memory_is_told_before_it_is_full_and_when_it_is)
{
    static const struct store_refusal full = {
        .code = "OOM", .check = STORE_FULL, .what = "full", .todo = "more"};

    AFTER((s.facts.memory = 7400, s.facts.maxmemory = 10000), CLI_OK, NULL);
    AFTER((s.facts.memory = 7600, s.facts.maxmemory = 10000), CLI_OK, "not far from 90 %");
    AFTER((s.facts.memory = 9200, s.facts.maxmemory = 10000), CLI_REFUSED, "store-full");
    AFTER((s.facts.memory = 100, s.facts.maxmemory = 10000, s.facts.refusal = &full), CLI_REFUSED,
          "store-full");
    AFTER((s.facts.memory = 9200, s.facts.maxmemory = 0), CLI_OK, NULL);
}

TEST(a_gateway_with_another_table_than_the_one_that_is_served_is_told)
{
    AFTER((TEXT(s.facts.routes, "one"), TEXT(s.members[1].routes, "one")), CLI_OK, NULL);
    AFTER((TEXT(s.members[1].routes, "one")), CLI_OK, NULL);
    AFTER((TEXT(s.facts.routes, "one")), CLI_OK, NULL);
    AFTER((TEXT(s.facts.routes, "one"), TEXT(s.members[1].routes, "two")), CLI_REFUSED, "pawl routes adopt");
    AFTER(TEXT(s.facts.marks_lost, ID), CLI_OK, "pawl store marks --of " ID " --at EPOCH.TOKEN");
}

CHECK_MAIN
