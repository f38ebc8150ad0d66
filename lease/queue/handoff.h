/* handoff.h - leases in whose lines somebody waits are looked at when it is time: handoff.lua.
 *
 * Every service asks when the next alarm of all rings (the member's look, every 50 ms) and sets its own timer
 * for it, so what is over is handed on within some milliseconds of its deadline, and by any service that
 * lives. Several may do it at once: the script finds nothing left to do. */
#ifndef PAWL_LEASE_HANDOFF_H
#define PAWL_LEASE_HANDOFF_H

#include "shared/member/member.h"
#include "shared/service/service.h"

struct handoff;

struct handoff *handoff_new(struct worker *worker, struct member_line *line);
/* When the next alarm rings, in ms; -1: none is set; 0: now, or nobody knows. Until it is said anew. */
void handoff_alarm(struct handoff *handoff, int64_t in_ms);
/* No new call is made; before the store is closed. */
void handoff_stop(struct handoff *handoff);
/* When the store is closed. */
void handoff_free(struct handoff *handoff);
/* A script has said "more": the lease is looked at again at once, until nothing is left to do. name is
 * copied. */
void handoff_more(struct handoff *handoff, struct bytes name);

#endif
