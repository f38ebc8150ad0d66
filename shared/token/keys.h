/* keys.h - how the keys of the store are laid out: what both services must know.
 *
 * 256 stripes; a lease belongs to the stripe of its name's CRC-32 (IEEE 802.3, as zlib's), low byte. All keys
 * of a lease carry its stripe's hash tag, so they lie in one Redis Cluster slot. SS: the stripe in two
 * lower-case hex digits. A name has no colon in front and no slash, so that NAME/LEASE_ID is never a name.
 *
 *   pawl:{SS}                  hash  the stripe, and its leases: below
 *   pawl:{SS}:due              zset  what a script must look at -> store time (ms) at which: below
 *   pawl:{SS}:x:NAME           zset  many holds: lease_id -> deadline, or an earlier time
 *   pawl:{SS}:n:NAME           hash  many holds: public name of the hold -> lease_id
 *   pawl:{SS}:q:NAME           zset  the line: lease_id -> ticket (lease/scripts/lib/line.lua)
 *   pawl:{SS}:w:NAME           hash  who waits in it: lease_id -> terms as JSON
 *   pawl:{SS}:p:NAME           zset  places in it that are kept: lease_id -> until which store time (ms)
 *   pawl:{SS}:k:NAME/LEASE_ID  hash  Idempotency-Keys of a hold -> what each has done
 *   pawl:{SS}:e:NAME           list  history: grants and ends (shared/member/scripts/lib/history.lua)
 *   pawl:{SS}:f:NAME           list  history: refusals, by the gateway
 *   pawl:{SS}:d:ID             hash  an inbox, where clients wait (lease/scripts/inbox_heartbeat.lua)
 *   pawl:{SS}:s:ID             hash  a session
 *   pawl:{SS}:y:ID             hash  its leases: NAME/LEASE_ID -> "", or how it was lost
 *   pawl:{SS}:r:KEY            hash  a stored resource (gateway/scripts/lib/version.lua)
 *   pawl:{SS}:g                zset  keys of the resources that are stored, all with score 0
 *   pawl:{SS}:u                hash  NAME -> bytes, NAME/ -> number of the resources stored for a lease
 *   pawl:{SS}:o                hash  what identities use (shared/member/scripts/lib/use.lua)
 *   pawl:{SS}:gone             zset  resource key -> store time (ms): its deletion is forgotten
 *   pawl:{SS}:i                zset  what is being sent to upstreams (gateway/scripts/lib/intent.lua)
 *   pawl:{SS}:marks            hash  marks of the check `mark` (gateway/scripts/lib/marks.lua)
 *   pawl:{SS}:marks:STORE      hash  the same, of tokens of another store
 *
 *   pawl:{store}               hash  the store's record (shared/member/scripts/lib/store.lua)
 *   pawl:{store}:members       set   ids of the members
 *   pawl:{store}:m:ID          hash  one member
 *   pawl:{store}:alarm         zset  leases that somebody waits for -> store time (ms): look
 *   pawl:{store}:doubt         hash  gateways that may have sent what the store has lost
 *   pawl:{store}:bars          hash  what has happened lately (shared/member/scripts/lib/bars.lua)
 *   pawl:{store}:marks         hash  below what no token of another store passes since a loss
 *
 * The stripe: seq rises with every changing script; counter the last token; epoch, which is alike in all
 * stripes, as a rule: "ID EPOCH ALIVE CLOCK CEILING". ID: "SCHEMA:ID" of the store; EPOCH of the epoch,
 * negative while nobody has admitted it; holds of an epoch below ALIVE are over (docs/decisions/0009);
 * CLOCK: ms added to Redis' TIME; no token above CEILING is granted. l:NAME is one lease, h:NAME/LEASE_ID
 * one of its many holds: each one text (shared/member/scripts/lib/hold.lua). listen: what of the history is
 * noted, and until when it is published (shared/member/scripts/lib/history.lua).
 *
 * In the due index stand names of leases, and ":d:ID", ":s:ID", ":k:NAME/LEASE_ID" (lease/scripts/sweep.lua).
 *
 * Channels: the key of an inbox, to wake it; pawl:e:NAME for each item of a lease's history;
 * pawl:{store}:i:GATEWAY, by which it is asked to close intents (gateway/forward/admit.c). */
#ifndef PAWL_SHARED_RECORD_KEYS_H
#define PAWL_SHARED_RECORD_KEYS_H

#include "shared/text/bytes.h"

/* How all this is laid out, and what the scripts make of it; in front of the store's id. A release that keeps
 * another schema refuses the store (store-not-ours). */
#define KEYS_SCHEMA "11"

enum { STRIPES = 256, KEYS_STRIPE_SIZE = 16, KEYS_RESOURCE_SIZE = 16 + 512 };

unsigned keys_stripe_of(struct bytes lease);

/* Each writes the key and a NUL and returns it. */
struct bytes keys_stripe(char buf[KEYS_STRIPE_SIZE], unsigned stripe);
struct bytes keys_due(char buf[KEYS_STRIPE_SIZE], unsigned stripe);
struct bytes keys_gone(char buf[KEYS_STRIPE_SIZE], unsigned stripe);
/* lease: the part of key in front of the first '/'. */
struct bytes keys_resource(char buf[KEYS_RESOURCE_SIZE], struct bytes lease, struct bytes key);

#endif
