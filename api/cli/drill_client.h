/* drill_client.h - one client of a drill: its requests, each of which goes into the history with its end.
 *
 * A client belongs to one thread. It proposes its own lease_ids, so that an acquire without a known end can
 * be repeated and is then the same hold. */
#ifndef PAWL_CLI_DRILL_CLIENT_H
#define PAWL_CLI_DRILL_CLIENT_H

#include "api/cli/drill_history.h"
#include "api/cli/drill_random.h"
#include "api/cli/drill_world.h"

enum { DRILL_LEASES = 6, DRILL_LEASES_SPARE = 4, DRILL_LEASE_NAME_SIZE = 32, DRILL_LEASE_ID_SIZE = 23 };

struct drill_client {
    unsigned number;
    struct drill_random random;
    struct drill_world *world;
    struct drill_history *history;
    const struct drill_service *service; /* the lease service that it asks; NULL: another each time */
    char code[DRILL_CODE_SIZE];          /* of the last problem, "" without one */
};

/* A hold as its holder knows it; token "" when it has none. */
struct drill_hold {
    unsigned lease;
    uint64_t number; /* drill_event.hold */
    char lease_id[DRILL_LEASE_ID_SIZE];
    int64_t token, epoch;
    uint64_t begun, begun_ms;  /* of the first acquire; 0: not asked yet */
    uint64_t ttl_ms, until_ms; /* until_ms: counted from the sending */
    char fencing_token[512];
};

/* Names of the leases: 0 to DRILL_LEASES - 1 are the load's; DRILL_LEASES to DRILL_LEASES +
 * DRILL_LEASES_SPARE - 1 are for accidents, which nobody else asks for. Some of them share a stripe. */
void drill_lease_name(unsigned lease, char name[DRILL_LEASE_NAME_SIZE]);

/* A new lease_id and number, nothing asked yet. */
void drill_hold_new(struct drill_client *client, struct drill_hold *hold, unsigned lease, uint64_t ttl_ms);
/* One acquire (or, of the same hold, its repetition). */
enum drill_event_end drill_client_acquire(struct drill_client *client, struct drill_hold *hold);
/* ttl_ms 0: as before. */
enum drill_event_end drill_client_renew(struct drill_client *client, struct drill_hold *hold,
                                        uint64_t ttl_ms);
enum drill_event_end drill_client_release(struct drill_client *client, struct drill_hold *hold);
/* A write to the lease's resource, of a value that names this write. */
enum drill_event_end drill_client_write(struct drill_client *client, const struct drill_hold *hold);
enum drill_event_end drill_client_read(struct drill_client *client, unsigned lease);
/* The code of the last problem, "" without one. */
const char *drill_client_code(const struct drill_client *client);
#endif
