/* drill_play.c - one drill, from its world to its result. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/cli/cli.h"
#include "api/cli/drill.h"
#include "shared/record/keys.h"

enum {
    WARM_UP_GRANTS = 5,
    WARM_UP_MS = 10000,
    LOOK_AGAIN_MS = 5,
    PROBE = DRILL_LEASES + 2,
    PROBE_TTL_MS = 300
};

/* -- what an accident says */

__attribute__((format(printf, 3, 0))) static bool ends(struct drill *drill, enum drill_end end,
                                                       const char *format, va_list args)
{
    if (drill->end == DRILL_PLAYED) {
        drill->end = drill->world.interrupted ? DRILL_INTERRUPTED : end;
        vsnprintf(drill->why, sizeof(drill->why), format, args);
    }
    return false;
}

bool drill_wrong(struct drill *drill, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    ends(drill, DRILL_FAILED, format, args);
    va_end(args);
    return false;
}

bool drill_cannot(struct drill *drill, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    ends(drill, DRILL_NOT_RUN, format, args);
    va_end(args);
    return false;
}

bool drill_world_ok(struct drill *drill, bool ok)
{
    return ok || drill_wrong(drill, "%s", drill->world.why);
}

void drill_note(struct drill *drill, const char *format, ...)
{
    char *note = drill->result.note;
    size_t len = strlen(note);
    va_list args;

    if (len > 0 && len + 2 < DRILL_NOTE_SIZE) {
        memcpy(note + len, "; ", 3);
        len += 2;
    }
    va_start(args, format);
    vsnprintf(note + len, DRILL_NOTE_SIZE - len, format, args);
    va_end(args);
}

/* -- the beginning */

bool drill_begin_world(struct drill *drill, const struct drill_world_plan *plan)
{
    return drill_world_ok(drill, drill_world_open(&drill->world, plan, drill->keep, drill->accident->name));
}

bool drill_begin_load(struct drill *drill)
{
    drill->load = drill_load_start(&drill->world, &drill->history, drill->clients, drill->seed);
    return drill_let_work(drill, WARM_UP_GRANTS, WARM_UP_MS);
}

bool drill_begin(struct drill *drill, const struct drill_world_plan *plan)
{
    return drill_begin_world(drill, plan) && drill_begin_load(drill);
}

/* -- the end */

static int gap_compare(const void *one, const void *other)
{
    const uint64_t *a = one, *b = other;

    return (*a > *b) - (*a < *b);
}

static void gaps_sum_up(struct drill *drill)
{
    if (drill->gap_count > 0) {
        qsort(drill->gaps_ms, drill->gap_count, sizeof(drill->gaps_ms[0]), gap_compare);
        drill->result.gap_median_ms = drill->gaps_ms[drill->gap_count / 2];
        drill->result.gap_longest_ms = drill->gaps_ms[drill->gap_count - 1];
    }
}

static void judge_history(struct drill *drill)
{
    unsigned stripe_of[DRILL_LEASES + DRILL_LEASES_SPARE];
    struct drill_rules rules = {.stripe_of = stripe_of,
                                .leases = DRILL_LEASES + DRILL_LEASES_SPARE,
                                .slack_ms = drill->accident->slack_ms,
                                .allowed = drill->accident->allowed};

    rules.slack_ms = rules.slack_ms > 0 ? rules.slack_ms : DRILL_SLACK_MS;
    for (unsigned i = 0; i < rules.leases; i++) {
        char name[DRILL_LEASE_NAME_SIZE];

        drill_lease_name(i, name);
        stripe_of[i] = keys_stripe_of(bytes_of(name));
    }
    drill_judge(drill->history.events, drill->history.count, &rules, &drill->result.counts);
}

static void judge_result(struct drill *drill, bool on)
{
    const struct drill_counts *counts = &drill->result.counts;

    if (!on) {
        drill_wrong(drill, "it did not come to its end: %s", drill->world.why);
    }
    if (drill->result.rounds < drill->rounds) {
        drill_wrong(drill, "only %u of %u rounds were played", drill->result.rounds, drill->rounds);
    }
    if (!drill_counts_are_good(counts, drill->accident->allowed)) {
        drill_wrong(drill, "%s", counts->first[0] != '\0' ? counts->first : "nothing was granted or written");
    }
}

/* Everything as the judge saw it, for who wants to look closer. */
static void history_write(struct drill *drill)
{
    static const char *const kinds[] = {"acquire", "renew",    "release", "write",
                                        "read",    "all-over", "closed",  "opened"};
    static const char *const ends_of[] = {"ok", "held", "over", "odd", "not-done", "unknown"};
    char path[DRILL_PATH_SIZE];
    FILE *file = drill_world_path(&drill->world, path, drill->world.dir, "history") ? fopen(path, "we")
                                                                                    : NULL;

    if (file == NULL) {
        return;
    }
    fputs("begun told begun_ms told_ms client kind lease hold epoch token ttl_ms value end code\n", file);
    for (size_t i = 0; i < drill->history.count; i++) {
        const struct drill_event *e = &drill->history.events[i];

        fprintf(file,
                "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %u %s %u %" PRIu64 " %" PRId64 " %" PRId64
                " %" PRIu64 " %" PRIu64 " %s %s\n",
                e->begun, e->told, e->begun_ms, e->told_ms, e->client, kinds[e->kind], e->lease, e->hold,
                e->epoch, e->token, e->ttl_ms, e->value, ends_of[e->end], e->code);
    }
    fclose(file);
}

/* The last writes too must be seen by a read. */
static void read_all(struct drill *drill)
{
    struct drill_client client = drill_main_client(drill, NULL);

    for (unsigned i = 0; i < DRILL_LEASES + DRILL_LEASES_SPARE; i++) {
        drill_client_read(&client, i);
    }
}

enum drill_end drill_finish(struct drill *drill, bool on)
{
    drill_load_stop(drill->load);
    drill->load = NULL;
    if (on) {
        read_all(drill);
    }
    if (drill->world.torn > 0) {
        drill_note(drill, "a kill tore Redis' last write %u times, and redis-check-aof was run",
                   drill->world.torn);
    }
    judge_history(drill);
    gaps_sum_up(drill);
    judge_result(drill, on);
    if (drill->keep != NULL) {
        history_write(drill);
    }
    drill_world_close(&drill->world);
    return drill->end;
}

/* -- in between */

bool drill_round_done(struct drill *drill)
{
    drill->result.rounds++;
    if (drill->verbose) {
        fprintf(stderr, "%s: round %u of %u, %" PRIu64 " grants so far\n", drill->accident->name,
                drill->result.rounds, drill->rounds, drill_history_grants(&drill->history));
    }
    return drill_world_ok(drill, drill_world_sleep(&drill->world, 0));
}

bool drill_await_grant(struct drill *drill, uint64_t since, uint64_t from_ms, unsigned limit_ms)
{
    uint64_t told_ms = drill_history_await_grant(&drill->history, since, from_ms + limit_ms);
    uint64_t gap_ms = told_ms > from_ms ? told_ms - from_ms : 0;

    if (told_ms == 0 || gap_ms > limit_ms) {
        char body[DRILL_REPLY_SIZE];
        unsigned status = drill_world_readyz(&drill->world, &drill->world.lease[0], body, sizeof(body));

        return drill_wrong(drill, "no grant within %u ms in round %u; /readyz of lease-0 says %u %.300s",
                           limit_ms, drill->result.rounds + 1, status, body);
    }
    if (drill->gap_count < DRILL_GAPS_MAX) {
        drill->gaps_ms[drill->gap_count++] = gap_ms;
    }
    return true;
}

bool drill_let_work(struct drill *drill, unsigned grants, unsigned limit_ms)
{
    uint64_t wanted = drill_history_grants(&drill->history) + grants, until_ms = cli_now_ms() + limit_ms;

    while (drill_history_grants(&drill->history) < wanted) {
        if (cli_now_ms() >= until_ms) {
            return drill_wrong(drill, "no %u grants within %u ms in round %u", grants, limit_ms,
                               drill->result.rounds + 1);
        }
        if (!drill_world_ok(drill, drill_world_sleep(&drill->world, LOOK_AGAIN_MS))) {
            return false;
        }
    }
    return true;
}

struct drill_client drill_main_client(struct drill *drill, const struct drill_service *service)
{
    return (struct drill_client){.random = drill_random_split(drill->seed, drill_random_next(&drill->random)),
                                 .world = &drill->world,
                                 .history = &drill->history,
                                 .service = service};
}

bool drill_expect_refusal(struct drill *drill, const struct drill_service *service, const char *code)
{
    struct drill_client client = drill_main_client(drill, service);
    struct drill_hold hold;
    enum drill_event_end end;

    drill_hold_new(&client, &hold, PROBE, PROBE_TTL_MS);
    end = drill_client_acquire(&client, &hold);
    return (end != DRILL_OK && strcmp(client.code, code) == 0) ||
           drill_wrong(drill, "%s was to refuse with %s; it %s %s", service->process.name, code,
                       end == DRILL_OK ? "granted" : "said", end == DRILL_OK ? "a lease" : client.code);
}
