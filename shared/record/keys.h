/* keys.h - how the keys of the store are laid out: what both services must know.
 *
 * 256 stripes; a lease belongs to the stripe of its name's CRC-32 (IEEE 802.3, as zlib's), low byte. All keys
 * of a lease carry its stripe's hash tag, so they lie in one Redis Cluster slot. SS: the stripe in two
 * lower-case hex digits.
 *
 *   pawl:{SS}            hash    the stripe: id epoch seq counter ceiling clock alive (docs/decisions/0009):
 *                                id "SCHEMA:ID" of the store; epoch of the life, negative while nobody has
 * admitted it; seq rises with every changing script; counter the last token; no token above ceiling is
 * granted; clock ms added to Redis' TIME; holds of an epoch below alive are over pawl:{store}         hash
 * the store's record (shared/record/store.lua) pawl:{store}:members set     ids of the members
 * pawl:{store}:m:ID  hash  one member pawl:{SS}:due        zset    lease name -> store time (ms) at which a
 * script should look at it: deadline of the hold, or end of the memory of it pawl:{SS}:l:NAME     hash    one
 * lease (shared/record/hold.lua) pawl:{SS}:r:KEY      hash    one stored resource (gateway/scripts/)
 *   pawl:{SS}:gone       zset    resource key -> store time (ms) at which the memory of its deletion ends */
#ifndef PAWL_SHARED_RECORD_KEYS_H
#define PAWL_SHARED_RECORD_KEYS_H

#include "shared/bytes.h"

enum { STRIPES = 256, KEYS_STRIPE_SIZE = 16, KEYS_LEASE_SIZE = 16 + 128, KEYS_RESOURCE_SIZE = 16 + 512 };

unsigned keys_stripe_of(struct bytes lease);

/* Each writes the key and a NUL and returns it. */
struct bytes keys_stripe(char buf[KEYS_STRIPE_SIZE], unsigned stripe);
struct bytes keys_due(char buf[KEYS_STRIPE_SIZE], unsigned stripe);
struct bytes keys_gone(char buf[KEYS_STRIPE_SIZE], unsigned stripe);
struct bytes keys_lease(char buf[KEYS_LEASE_SIZE], struct bytes lease);
/* lease: the part of key in front of the first '/'. */
struct bytes keys_resource(char buf[KEYS_RESOURCE_SIZE], struct bytes lease, struct bytes key);

#endif
