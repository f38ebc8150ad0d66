/* unreported.h - who has yet to say what it had sent to upstreams, since a store has lost something
 * (docs/guarantees.md), whether this gateway's route table is the one that is served, and which marks of
 * other stores are lost: looked at by the first worker, told by /readyz, the metrics and the log.
 *
 * It is looked at when an epoch of the store begins for this process, then every second for as long as
 * somebody is in doubt or the tables differ, and every five otherwise; at once when a request was told that
 * they differ. */
#ifndef PAWL_GATEWAY_DOUBT_H
#define PAWL_GATEWAY_DOUBT_H

#include "gateway/worker.h"

enum { UNREPORTED_DETAIL_SIZE = READY_DETAIL_SIZE };

struct unreported *unreported_new(struct gateway_worker *own);
/* Every 100 ms. */
void unreported_tick(struct unreported *unreported);
void unreported_stop(struct unreported *unreported);
/* The store has ended its calls. */
void unreported_free(struct unreported *unreported);

/* What is to be said of one of them ("GATEWAY INCARNATION"), and what ends it. begin: a sentence in front. */
void unreported_detail(char detail[UNREPORTED_DETAIL_SIZE], const char *begin, struct bytes who);

/* service_plan: lacking. Any thread. */
const char *unreported_lacking(struct worker *worker, const char **member, char detail[READY_DETAIL_SIZE]);

#endif
