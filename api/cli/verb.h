/* verb.h - a verb that sends one request (or one for each page of a list) and shows the answer: a row of the
 * table in verbs.c.
 *
 *   verb_read   flags, where it goes, what proves the hold      64, or go on
 *   before      on a terminal: sure?                            1 | 64, or go on
 *   verb_send   the request, judged (request.h)                     69 ..., or go on
 *   show        the answer                                      0 */
#ifndef PAWL_CLI_VERB_H
#define PAWL_CLI_VERB_H

#include "api/cli/request.h"
#include "api/cli/secret.h"
#include "api/cli/show.h"

/* The values of all flags of all verbs. */
struct given {
    const char *lease_url, *gateway_url, *lease_id_file, *token_file, *type, *if_match, *if_none_match,
        *idempotency_key, *holder, *meta, *mode, *prefix, *state, *since, *reason, *expect_token, *id,
        *gateway, *incarnation;
    uint64_t ttl_ms, wait_ms, lock_delay_ms, keep_place_ms, idle_ms;
    unsigned permits, limit;
    bool fenced, all, dead, settled, force, yes, trace;
    enum output output;
};

struct call {
    const struct verb *verb;
    struct given given;
    const char *name, *file; /* its arguments; NULL: not given */
    struct request request;
    char secret[SECRET_SIZE]; /* the lease_id, or the fencing token */
    struct json_out body;
    char *content; /* what put writes */
    int64_t token; /* that force-release means; 0: any holder */
    /* of a list */
    char *cursor; /* NULL: no more pages */
    char *before; /* one of before */
    unsigned pages;
    size_t shown;
    struct print_table table;
};

struct verb {
    struct {
        const char *name, *arguments, *examples, *summary;
    } usage;
    const char *flags; /* names, in the order of --help, with a blank between them */
    struct {
        enum { OF_A_LEASE, OF_LEASES, OF_A_RESOURCE, OF_THE_GATEWAY, OF_ITS_OWN } of;
        const char *method, *path; /* path: below the lease; of OF_LEASES and OF_THE_GATEWAY all of it */
        enum request_wants wants;
        const char *needs; /* request.h */
    } asks;
    enum request_repeat repeat;
    const char *outputs, *output_help; /* NULL: as most have them */
    const struct show_column *columns; /* of its items, when it lists */
    /* NULL: nothing to do. CLI_GO_ON, or the exit status. */
    int (*check)(struct call *call);  /* the flags; may change the request */
    int (*before)(struct call *call); /* asks, or does all of it */
    int (*load)(struct call *call);   /* the body */
    /* Not with -o json, when the answer is JSON: it is shown as it is then. */
    void (*show)(const struct call *call);
    void (*advise)(const struct call *call); /* behind a refusal */
};

/* The flags, and check. */
int verb_read(struct call *call, int argc, char **argv);
/* Page after page of call.columns; call.request is set anew for each by address. */
int verb_list(struct call *call, const struct show_column *columns, int (*address)(struct call *call));
void verb_done(struct call *call);
/* Members of a body, if they were given. */
void verb_text(struct json_out *body, const char *name, const char *text);
void verb_number(struct json_out *body, const char *name, uint64_t number);

/* resolve.c */
int resolve_check(struct call *call);
int resolve_all(struct call *call);

/* -- pawl acquire (acquire.c) */

struct acquire {
    struct call call;          /* its secret is the lease_id */
    char in_file[SECRET_SIZE]; /* what the file is known to have */
    enum secret_origin origin;
    uint64_t wait_until_ms;
    bool in_doubt; /* it may have been granted */
};

/* As request.prepare: the body, with what is left of the wait, and a time limit that is longer than it. */
void acquire_prepare(struct request *request);

#endif
