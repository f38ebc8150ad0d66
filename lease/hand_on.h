/* hand_on.h - leases in whose lines somebody waits are looked at when it is time: hand_on.lua.
 *
 * Every service looks at the alarms of all (alarm.lua, every HAND_ON_LOOK_MS) and sets its own timer for the
 * next one, so what is over is handed on within some milliseconds of its deadline, and by any service that
 * lives. Several may do it at once: the script finds nothing left to do. */
#ifndef PAWL_LEASE_HAND_ON_H
#define PAWL_LEASE_HAND_ON_H

#include "shared/record/call.h"
#include "shared/service.h"

enum { HAND_ON_LOOK_MS = 40 };

struct hand_on;

/* looks: whether this one looks at the alarms (the first worker's), or only does what it is told. */
enum hand_on_kind { HAND_ON_TOLD, HAND_ON_LOOKS };
struct hand_on *hand_on_new(struct worker *worker, struct record_line *line, enum hand_on_kind kind);
/* No new call is made; before the store is closed. */
void hand_on_stop(struct hand_on *hand_on);
/* When the store is closed. */
void hand_on_free(struct hand_on *hand_on);
/* A script has said "more": the lease is looked at again at once, until nothing is left to do. name is
 * copied. */
void hand_on_more(struct hand_on *hand_on, struct bytes name);

#endif
