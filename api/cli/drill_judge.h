/* drill_judge.h - what a history says about the services: pure, from events to counts.
 *
 * "Announced" means told to the client that asked. What must always be 0:
 *   twice        grants of one stripe with the same number, whatever the epoch, that are not the same hold
 *   regressed    grants whose number or epoch is not above (the epoch: not below) that of a grant of the same
 *                lease that had been announced before this one was asked for
 *   stale        writes that were let in though they were begun after a newer grant of the lease had been
 * announced, or after the store had lost their hold (DRILL_ALL_OVER); values that are read though their write
 * was refused revived      writes let in, or renewals, begun after their holder had been told that the hold
 * is over, or had released it outlived     writes let in, or renewals, begun more than slack_ms after the
 * hold's ttl, counted from the moment at which its grant or last renewal was told overlapped   renewals begun
 * after a newer grant of the lease had been announced: two holders at once unadmitted   grants, renewals and
 * writes between DRILL_CLOSED and DRILL_OPENED odd          answers that no accident explains: the drill
 * itself is at fault, or the service What an accident may allow: lost         acknowledged writes that a
 * later read contradicts ended_early  holds of which their holder was told, or of which another's announced
 * grant shows, that they ended before their ttl, counted from the sending of the acquire or of the last
 * renewal, without a release: grants that were lost
 *
 * A request without a known end may have happened at any time from its beginning on, and is never held
 * against anybody. */
#ifndef PAWL_CLI_DRILL_JUDGE_H
#define PAWL_CLI_DRILL_JUDGE_H

#include "api/cli/drill_history.h"

enum { DRILL_SLACK_MS = 250, DRILL_FIRST_SIZE = 320 };

struct drill_counts {
    uint64_t grants, writes, reads, renewals, releases;
    uint64_t refused, not_done, unknown; /* fenced off or held; 503; 504 and broken connections */
    uint64_t fenced;                     /* of refused: writes that were told that their hold is over */
    uint64_t twice, regressed, stale, revived, outlived, overlapped, unadmitted, odd;
    uint64_t lost, ended_early;
    char first[DRILL_FIRST_SIZE]; /* the first wrong thing of those that are not allowed, as a sentence; "" */
};

struct drill_rules {
    const unsigned *stripe_of; /* of each lease number */
    unsigned leases;
    uint64_t slack_ms;
    unsigned
        allowed; /* DRILL_MAY_... (drill.h): counted all the same, but not told as the first wrong thing */
};

/* events: ordered by told. */
void drill_judge(const struct drill_event *events, size_t count, const struct drill_rules *rules,
                 struct drill_counts *counts);
/* Whether everything that must be 0 is, and something happened at all. */
bool drill_counts_are_good(const struct drill_counts *counts, unsigned allowed);

#endif
