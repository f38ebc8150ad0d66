/* handoff.h - leases in whose lines somebody waits are looked at when it is time: hand_on.lua.
 *
 * Every service asks when the next alarm of all rings (the member's look, every 50 ms) and sets its own timer
 * for it, so what is over is handed on within some milliseconds of its deadline, and by any service that
 * lives. Several may do it at once: the script finds nothing left to do. */
#ifndef PAWL_LEASE_HAND_ON_H
#define PAWL_LEASE_HAND_ON_H

#include "shared/member/call.h"
#include "shared/service/service.h"

struct hand_on;

struct hand_on *hand_on_new(struct worker *worker, struct record_line *line);
/* When the next alarm rings, in ms; -1: none is set; 0: now, or nobody knows. Until it is said anew. */
void hand_on_alarm(struct hand_on *hand_on, int64_t in_ms);
/* No new call is made; before the store is closed. */
void hand_on_stop(struct hand_on *hand_on);
/* When the store is closed. */
void hand_on_free(struct hand_on *hand_on);
/* A script has said "more": the lease is looked at again at once, until nothing is left to do. name is
 * copied. */
void hand_on_more(struct hand_on *hand_on, struct bytes name);

#endif
