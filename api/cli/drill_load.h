/* drill_load.h - the clients of a drill: threads that acquire, write, pause, renew and release all the while.
 */
#ifndef PAWL_CLI_DRILL_LOAD_H
#define PAWL_CLI_DRILL_LOAD_H

#include "api/cli/drill_client.h"

enum { DRILL_CLIENTS_MAX = 64 };

struct drill_load; /* the threads */

/* The seed decides what each client does next, not when it is answered. */
struct drill_load *drill_load_start(struct drill_world *world, struct drill_history *history,
                                    unsigned clients, uint64_t seed);
/* No client begins anything from here on, until drill_load_resume(); returns when none is under way. */
void drill_load_pause(struct drill_load *load);
void drill_load_resume(struct drill_load *load);
/* Until the last thread has ended; frees. NULL is fine. */
void drill_load_stop(struct drill_load *load);

#endif
