/* drill_judge.c - what a history says about the services.
 *
 *   judge_index    each hold: its grant, and where its holder let go of it
 *   judge_tokens   numbers that came twice
 *   judge_told     one pass over the events in the order in which they were told: what had been announced
 * when each request was begun is found by its place, in lists that only grow */
#include "api/cli/drill_judge.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/cli/cli.h"
#include "api/cli/drill.h"
#include "api/cli/drill_peaks.h"

/* One hold, as its holder was told of it. */
struct hold {
    const struct drill_event *grant; /* NULL: never announced */
    uint64_t let_go; /* where its holder began to give it back, or a renewal without a known end; 0: never */
    uint64_t over;   /* where its holder was told that it is over, or had released it; 0: not yet */
    uint64_t at_least_ms; /* until when it was promised: counted from the sending */
    uint64_t at_most_ms;  /* until when it can have lasted: counted from the answer */
    bool lost;            /* counted as ended early */
};

struct lease {
    struct drill_peaks grants, writes;
    const struct drill_event *last; /* the grant with the greatest (epoch, token) so far */
};

struct judge {
    const struct drill_event *events;
    size_t count;
    const struct drill_rules *rules;
    struct drill_counts *counts;
    struct hold *holds;                 /* by number */
    const struct drill_event **written; /* by value */
    uint64_t hold_count, value_count;
    struct lease *leases;
    uint64_t all_over, closed, opened; /* the last places of these marks; 0: none */
};

static void judge_index(struct judge *judge);
static void judge_tokens(struct judge *judge);
static void judge_told(struct judge *judge);

void drill_judge(const struct drill_event *events, size_t count, const struct drill_rules *rules,
                 struct drill_counts *counts)
{
    struct judge judge = {.events = events, .count = count, .rules = rules, .counts = counts};

    memset(counts, 0, sizeof(*counts));
    for (size_t i = 0; i < count; i++) {
        judge.hold_count = events[i].hold >= judge.hold_count ? events[i].hold + 1 : judge.hold_count;
        judge.value_count = events[i].value >= judge.value_count ? events[i].value + 1 : judge.value_count;
    }
    judge.holds = cli_alloc(judge.hold_count * sizeof(*judge.holds));
    memset(judge.holds, 0, judge.hold_count * sizeof(*judge.holds));
    judge.written = cli_alloc(judge.value_count * sizeof(struct drill_event *));
    memset(judge.written, 0, judge.value_count * sizeof(struct drill_event *));
    judge.leases = cli_alloc(rules->leases * sizeof(*judge.leases));
    memset(judge.leases, 0, rules->leases * sizeof(*judge.leases));
    judge_index(&judge);
    judge_tokens(&judge);
    judge_told(&judge);
    for (unsigned i = 0; i < rules->leases; i++) {
        drill_peaks_done(&judge.leases[i].grants);
        drill_peaks_done(&judge.leases[i].writes);
    }
    free(judge.leases);
    free(judge.written);
    free(judge.holds);
}

/* -- what is wrong */

__attribute__((format(printf, 4, 5))) static void wrong(struct judge *judge, uint64_t *count,
                                                        const struct drill_event *event, const char *format,
                                                        ...)
{
    struct drill_counts *counts = judge->counts;
    bool allowed = (count == &counts->lost && (judge->rules->allowed & DRILL_MAY_LOSE)) ||
                   (count == &counts->ended_early && (judge->rules->allowed & DRILL_MAY_END_EARLY));
    va_list args;
    int len;

    (*count)++;
    if (allowed || counts->first[0] != '\0') {
        return;
    }
    len = snprintf(counts->first, sizeof(counts->first),
                   "client %u, lease %u, token %" PRId64 " of epoch %" PRId64 ", places %" PRIu64
                   " to %" PRIu64 ": ",
                   event->client, event->lease, event->token, event->epoch, event->begun, event->told);
    va_start(args, format);
    vsnprintf(counts->first + len, sizeof(counts->first) - (size_t)len, format, args);
    va_end(args);
}

/* -- each hold */

static void judge_index(struct judge *judge)
{
    for (size_t i = 0; i < judge->count; i++) {
        const struct drill_event *event = &judge->events[i];
        struct hold *hold = &judge->holds[event->hold];
        bool gives_back = event->kind == DRILL_RELEASE && event->end != DRILL_NOT_DONE;
        bool unclear = event->kind == DRILL_RENEW && event->end == DRILL_UNKNOWN;

        if (event->kind == DRILL_ACQUIRE && event->end == DRILL_OK && hold->grant == NULL) {
            hold->grant = event;
        }
        if ((gives_back || unclear) && (hold->let_go == 0 || event->begun < hold->let_go)) {
            hold->let_go = event->begun;
        }
        if (event->kind == DRILL_WRITE) {
            judge->written[event->value] = event;
        }
    }
}

/* -- numbers that came twice */

struct issued {
    unsigned stripe;
    const struct drill_event *grant;
};

static int issued_compare(const void *one, const void *other)
{
    const struct issued *a = one, *b = other;

    if (a->stripe != b->stripe) {
        return a->stripe < b->stripe ? -1 : 1;
    }
    if (a->grant->token != b->grant->token) {
        return a->grant->token < b->grant->token ? -1 : 1;
    }
    return (a->grant->told > b->grant->told) - (a->grant->told < b->grant->told);
}

static void judge_tokens(struct judge *judge)
{
    struct issued *all = cli_alloc(judge->count * sizeof(*all));
    size_t count = 0;

    for (size_t i = 0; i < judge->count; i++) {
        const struct drill_event *event = &judge->events[i];

        if (event->kind == DRILL_ACQUIRE && event->end == DRILL_OK) {
            all[count++] = (struct issued){judge->rules->stripe_of[event->lease], event};
        }
    }
    qsort(all, count, sizeof(*all), issued_compare);
    for (size_t i = 1; i < count; i++) {
        if (all[i].stripe == all[i - 1].stripe && all[i].grant->token == all[i - 1].grant->token &&
            all[i].grant->hold != all[i - 1].grant->hold) {
            wrong(judge, &judge->counts->twice, all[i].grant,
                  "the same number was granted to client %u at place %" PRIu64 " (epoch %" PRId64 ")",
                  all[i - 1].grant->client, all[i - 1].grant->told, all[i - 1].grant->epoch);
        }
    }
    free(all);
}

/* -- holds that ended early */

static void hold_ended(struct judge *judge, struct hold *hold, const struct drill_event *shown_by)
{
    bool let_go = hold->let_go != 0 && hold->let_go < shown_by->told;

    if (hold->grant == NULL || hold->lost || let_go || hold->over != 0 ||
        shown_by->told_ms >= hold->at_least_ms) {
        return;
    }
    hold->lost = true;
    wrong(judge, &judge->counts->ended_early, hold->grant,
          "the hold had ended %" PRIu64 " ms before its time, as client %u was told (%s)",
          hold->at_least_ms - shown_by->told_ms, shown_by->client,
          shown_by->code[0] != '\0' ? shown_by->code : "granted");
}

/* -- one request after the other */

/* What holds for everything that is let in with a hold: renewals and writes. */
static void judge_let_in(struct judge *judge, const struct drill_event *event)
{
    struct drill_counts *counts = judge->counts;
    const struct hold *hold = &judge->holds[event->hold];
    const struct drill_peak newer = drill_peaks_before(&judge->leases[event->lease].grants, event->begun);

    if (drill_is_above(newer.epoch, newer.token, event->epoch, event->token)) {
        wrong(judge, event->kind == DRILL_WRITE ? &counts->stale : &counts->overlapped, event,
              "let in though token %" PRId64 " of epoch %" PRId64 " had been announced", newer.token,
              newer.epoch);
    }
    if (hold->grant != NULL && hold->grant->told < judge->all_over && judge->all_over < event->begun) {
        wrong(judge, &counts->stale, event, "let in though the store had lost all holds at place %" PRIu64,
              judge->all_over);
    }
    if (hold->over != 0 && hold->over < event->begun) {
        wrong(judge, &counts->revived, event, "let in though its hold was over at place %" PRIu64,
              hold->over);
    }
    if (hold->grant != NULL && hold->let_go == 0 &&
        event->begun_ms > hold->at_most_ms + judge->rules->slack_ms) {
        wrong(judge, &counts->outlived, event, "let in %" PRIu64 " ms after the end of its ttl",
              event->begun_ms - hold->at_most_ms);
    }
}

static void judge_closed(struct judge *judge, const struct drill_event *event)
{
    bool shut = judge->closed > judge->opened && judge->closed < event->begun;

    if (shut) {
        wrong(judge, &judge->counts->unadmitted, event, "acknowledged while the store had to refuse");
    }
}

static void told_acquire(struct judge *judge, const struct drill_event *event)
{
    struct lease *lease = &judge->leases[event->lease];
    struct hold *hold = &judge->holds[event->hold];
    const struct drill_peak before = drill_peaks_before(&lease->grants, event->begun);

    judge->counts->grants++;
    if (hold->grant != event && hold->grant->token != event->token) {
        wrong(judge, &judge->counts->twice, event, "its lease_id had been granted token %" PRId64 " before",
              hold->grant->token);
    }
    if (hold->grant != event) {
        return; /* a replay: it has nothing new */
    }
    if (event->token <= before.any_token || event->epoch < before.epoch) {
        wrong(judge, &judge->counts->regressed, event,
              "granted after token %" PRId64 " (the highest: %" PRId64 ") of epoch %" PRId64
              " had been announced",
              before.token, before.any_token, before.epoch);
    }
    hold->at_least_ms = event->begun_ms + event->ttl_ms;
    hold->at_most_ms = event->told_ms + event->ttl_ms;
    if (lease->last == NULL ||
        drill_is_above(event->epoch, event->token, lease->last->epoch, lease->last->token)) {
        if (lease->last != NULL) {
            hold_ended(judge, &judge->holds[lease->last->hold], event);
        }
        lease->last = event;
    } else if (lease->last->told > event->begun) {
        hold_ended(judge, hold, lease->last); /* it was announced too late: another had come already */
    }
    drill_peaks_add(&lease->grants, event);
}

static void told_renew(struct judge *judge, const struct drill_event *event)
{
    struct hold *hold = &judge->holds[event->hold];

    judge->counts->renewals++;
    judge_let_in(judge, event);
    hold->at_least_ms = event->begun_ms + event->ttl_ms;
    hold->at_most_ms = event->told_ms + event->ttl_ms;
}

static void told_write(struct judge *judge, const struct drill_event *event)
{
    judge->counts->writes++;
    judge_let_in(judge, event);
    drill_peaks_add(&judge->leases[event->lease].writes, event);
}

static void told_release(struct judge *judge, const struct drill_event *event)
{
    struct hold *hold = &judge->holds[event->hold];

    judge->counts->releases++;
    hold->over = hold->over != 0 ? hold->over : event->told;
}

/* A write that may have happened at any time from its beginning on contradicts nothing. */
static void told_read(struct judge *judge, const struct drill_event *event)
{
    const struct drill_event *write = event->value > 0 ? judge->written[event->value] : NULL;
    uint64_t written_begun = drill_peaks_before(&judge->leases[event->lease].writes, event->begun)
                                 .latest_begun;

    judge->counts->reads++;
    if (write == NULL) {
        if (event->value > 0 || written_begun > 0) {
            wrong(judge, &judge->counts->lost, event, "read nothing of what had been written");
        }
    } else if (write->end == DRILL_OK) {
        if (written_begun > write->told) {
            wrong(judge, &judge->counts->lost, event,
                  "read write %" PRIu64 ", though another had been begun after it, at place %" PRIu64
                  ", and acknowledged",
                  event->value, written_begun);
        }
    } else if (write->end != DRILL_UNKNOWN) {
        wrong(judge, &judge->counts->stale, event, "read write %" PRIu64 ", which had been refused (%s)",
              event->value, write->code);
    }
}

static void told_well(struct judge *judge, const struct drill_event *event)
{
    switch (event->kind) {
    case DRILL_ACQUIRE: told_acquire(judge, event); break;
    case DRILL_RENEW: told_renew(judge, event); break;
    case DRILL_RELEASE: told_release(judge, event); return;
    case DRILL_WRITE: told_write(judge, event); break;
    case DRILL_READ: told_read(judge, event); return;
    case DRILL_ALL_OVER: judge->all_over = event->told; return;
    case DRILL_CLOSED: judge->closed = event->told; return;
    case DRILL_OPENED: judge->opened = event->told; return;
    }
    judge_closed(judge, event);
}

static void told_over(struct judge *judge, const struct drill_event *event)
{
    struct hold *hold = &judge->holds[event->hold];

    judge->counts->refused++;
    judge->counts->fenced += event->kind == DRILL_WRITE;
    hold_ended(judge, hold, event);
    hold->over = hold->over != 0 ? hold->over : event->told;
}

static void judge_told(struct judge *judge)
{
    for (size_t i = 0; i < judge->count; i++) {
        const struct drill_event *event = &judge->events[i];

        switch (event->end) {
        case DRILL_OK: told_well(judge, event); break;
        case DRILL_OVER: told_over(judge, event); break;
        case DRILL_HELD: judge->counts->refused++; break;
        case DRILL_NOT_DONE: judge->counts->not_done++; break;
        case DRILL_UNKNOWN: judge->counts->unknown++; break;
        case DRILL_ODD: wrong(judge, &judge->counts->odd, event, "refused: %s", event->code); break;
        }
    }
}

bool drill_counts_are_good(const struct drill_counts *counts, unsigned allowed)
{
    uint64_t never = counts->twice + counts->regressed + counts->stale + counts->revived + counts->outlived +
                     counts->overlapped + counts->unadmitted + counts->odd;

    return never == 0 && (counts->lost == 0 || (allowed & DRILL_MAY_LOSE)) &&
           (counts->ended_early == 0 || (allowed & DRILL_MAY_END_EARLY)) && counts->grants > 0 &&
           counts->writes > 0;
}
