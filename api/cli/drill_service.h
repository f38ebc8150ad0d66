/* drill_service.h - what the accidents of services, disks, clocks and counters have in common.
 *
 *   drill_service.c   the table; kill-service, idle-instance
 *   drill_lost.c      lost-directory     drill_disk.c   full-disk
 *   drill_clock.c     clock-jump         drill_end.c    counter-end
 *   drill_state.c     what they all look at: state directories, the highest token, the store's numbers
 *
 * All that return false have said why (drill_wrong). */
#ifndef PAWL_CLI_DRILL_SERVICE_H
#define PAWL_CLI_DRILL_SERVICE_H

#include "api/cli/drill.h"
#include "api/cli/drill_shim.h"
#include "shared/record/state_dir.h"

enum { DRILL_READY_MS = 20000, DRILL_GRANT_MS = 15000, DRILL_ANSWER_SIZE = 2048 };

enum drill_end drill_play_lost_directory(struct drill *drill);
enum drill_end drill_play_full_disk(struct drill *drill);
enum drill_end drill_play_clock_jump(struct drill *drill);
enum drill_end drill_play_counter_end(struct drill *drill);

/* What the state directory at this path has recorded. */
bool drill_state_read(struct drill *drill, const char *state, struct high_water *water);
/* The highest token that any client has been told of so far. */
int64_t drill_highest_token(struct drill *drill);
/* That no token was told that this state directory has not recorded as reserved. */
bool drill_check_reserved(struct drill *drill, const char *state);
/* A number of the store's record: "epoch". */
bool drill_store_number(struct drill *drill, const char *field, int64_t *value);
/* Started, and ready. */
bool drill_service_return(struct drill *drill, struct drill_service *service);
/* Until a client has been told of a token above this one. */
bool drill_await_token_above(struct drill *drill, int64_t token, unsigned limit_ms);
/* Asks the service for the lease without the history: only for what must be refused. The status, 0: no
 * answer; the body is cut to size. */
unsigned drill_ask_plainly(struct drill *drill, const struct drill_service *service, unsigned lease,
                           char *body, size_t size);
/* Asks in this way until the answer is 503 with this code; false also when it was granted. */
bool drill_await_refusal(struct drill *drill, const struct drill_service *service, unsigned lease,
                         const char *code, unsigned limit_ms);
/* `pawl store` with these words (up to four) and where the store and the state directory are. */
bool drill_run_store(struct drill *drill, const struct drill_service *service, const char *const *words,
                     char said[DRILL_REPLY_SIZE]);
/* The same again and again until it is taken: for 10 s a member that died counts as one that lives. */
bool drill_insist(struct drill *drill, const struct drill_service *service, const char *const *words);
/* Grants and releases the lease, which is a spare one, as fast as one client can, until a token is above
 * this. */
bool drill_use_tokens(struct drill *drill, struct drill_client *client, unsigned lease, int64_t above,
                      unsigned limit_ms);

#endif
