/* reply.h - replies of hiredis, the lines of INFO, and what an error says. */
#ifndef PAWL_SHARED_STORE_REPLY_H
#define PAWL_SHARED_STORE_REPLY_H

#include "shared/store/store.h"

struct redisReply;

const struct store_reply *reply_of(const struct redisReply *reply);
/* What is certain after this error reply to FCALL or EVAL. */
enum store_outcome reply_error_outcome(struct bytes error);
/* NULL: it is none that is known. */
const struct store_refusal *reply_refusal(struct bytes code);
/* Whether it came out of a script that ran. */
bool reply_error_is_from_inside(struct bytes error);
/* Whether Redis does not have the function: it certainly did not run. */
bool reply_error_is_not_found(struct bytes error);
/* Whether nothing ran because Redis takes no write now. What does not write may run all the same. */
bool reply_error_is_of_writes(struct bytes error);
/* The code that an error begins with, "OOM" for example. */
struct bytes reply_error_code(struct bytes error);
/* Whether a Redis that answers a script with this code is no master, or has no data yet. */
bool reply_code_is_of_no_master(struct bytes code);

#endif
