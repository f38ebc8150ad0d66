/* operation.h - what every operation on one lease has: the name, the keys, the call.
 *
 * An operation's struct begins with its own request and embeds a struct lease_call; it lives in the
 * request's scratch space. */
#ifndef PAWL_LEASE_OPERATION_H
#define PAWL_LEASE_OPERATION_H

#include "shared/http.h"
#include "shared/record/call.h"
#include "shared/record/daemon.h"
#include "shared/record/keys.h"
#include "shared/record/name.h"
#include "shared/service.h"
#include "shared/store.h"

enum { LEASE_KEYS = 3, LEASE_ARGS_MAX = 8, LEASE_NUMBER_SIZE = 24 };

struct lease_call {
    struct record_call record;
    struct http_request *req;
    unsigned stripe_number;
    struct bytes name;
    char name_text[NAME_MAX_BYTES + 1];
    char stripe[KEYS_STRIPE_SIZE], due[KEYS_STRIPE_SIZE], key[KEYS_LEASE_SIZE];
    char remember[LEASE_NUMBER_SIZE];
    struct bytes argv[LEASE_KEYS + LEASE_ARGS_MAX + RECORD_ARGS];
};

/* Reads the name from the path and fills the keys and argv[3], the name. NULL, or what is wrong with it:
 * 400. */
const char *lease_call_init(struct lease_call *call, struct http_request *req);
/* Runs the script with args arguments (argv[3] ...); done is called later, exactly once. Or refuses at once:
 * 503. */
enum step lease_call_run(struct lease_call *call, const struct store_script *script, unsigned args,
                         enum step (*done)(struct store_call *, enum store_outcome,
                                           const struct store_reply *));
/* --remember, as an argument of a script. */
struct bytes lease_call_remember(struct lease_call *call);

/* The Lease-Id header. NULL, or what is wrong: 400. */
const char *lease_id_read(const struct http_request *req, struct bytes *lease_id);
/* The optional Fencing-Token of a renew or release: then they act on that very hold only. hold is empty
 * when there is none. */
enum problem lease_hold_read(const struct lease_call *call, struct bytes *hold);

/* What a 410 says: how the hold ended. */
enum step lease_lost_answer(struct lease_call *call, const struct store_reply *reply);

/* The plan's metric rows. */
enum { COUNT_GRANTED, COUNT_REPLAYED, COUNT_RENEWED, COUNT_RELEASED, COUNT_EXPIRED, LEASE_COUNTS };

enum step acquire_start(struct http_request *req);
enum step renew_start(struct http_request *req);
enum step release_start(struct http_request *req);
enum step look_start(struct http_request *req);
enum step list_start(struct http_request *req);

#endif
