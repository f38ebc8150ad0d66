/* drill_redis.h - what the accidents of Redis have in common.
 *
 * All that return false have said why. */
#ifndef PAWL_CLI_DRILL_REDIS_H
#define PAWL_CLI_DRILL_REDIS_H

#include "api/cli/drill.h"

enum { DRILL_ADMIT_MS = 15000, DRILL_REFUSE_MS = 5000, DRILL_LONG_TTL_MS = 3600000 };

enum drill_end drill_play_cut_aof(struct drill *drill);
enum drill_end drill_play_restore_backup(struct drill *drill);
enum drill_end drill_play_foreign_store(struct drill *drill);

/* Redis is started, and must come up. */
bool drill_redis_return(struct drill *drill);
/* /readyz of every service comes to name this code, and each lease service refuses with it. That nothing is
 * granted before is for the judge to see. */
bool drill_all_refuse(struct drill *drill, const char *code);
bool drill_all_ready(struct drill *drill);
/* A random moment, so that the accident happens at another place each time. */
bool drill_pause_a_moment(struct drill *drill);
/* A hold of an hour, of a lease that nobody else wants; and whether it is still one: renewed under the same
 * token, its write let in and read again. */
bool drill_take_long(struct drill *drill, struct drill_client *client, struct drill_hold *hold);
bool drill_long_survived(struct drill *drill, struct drill_client *client, struct drill_hold *hold);

#endif
