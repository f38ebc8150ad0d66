/* look.h - what anybody may know of a lease: never a lease_id or a signature. */
#ifndef PAWL_LEASE_LOOK_H
#define PAWL_LEASE_LOOK_H

#include "shared/json_write.h"
#include "shared/store.h"

/* A lease as one JSON object, from elements at and behind: state, token, epoch, mode or "", how many wait,
 * {{token, holder, expires in ms, held for ms, holds, meta or ""}, ...}. */
void look_write(struct json_out *json, struct bytes name, const struct store_reply *reply, size_t at);

#endif
