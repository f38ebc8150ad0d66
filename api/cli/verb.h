/* verb.h - a verb that sends one request (or one for each page of a list) and shows the answer: a row of the
 * table in verbs.c.
 *
 *   verb_read   flags, where it goes, what proves the hold      64, or go on
 *   before      on a terminal: sure?                            1 | 64, or go on
 *   verb_send   the request, judged (request.h)                     69 ..., or go on
 *   show        the answer                                      0 */
#ifndef PAWL_CLI_VERB_H
#define PAWL_CLI_VERB_H

#include "api/cli/print.h"
#include "api/cli/request.h"
#include "shared/text/bytes.h"
#include "shared/text/json.h"

/* -- answers of the services as people and shells see them: members of a JSON object as cells of a table, and
 * as variables of -o env (show.c) */

struct show_column {
    const char *head, *variable; /* NULL: in no table; in no -o env */
    const char *member;          /* "holders.token": token of the first in the list holders */
    enum show_kind {
        SHOW_TEXT,
        SHOW_TEXT_OR_DASH,
        SHOW_TEXT_OR_LIST, /* or, with an s behind its name, a list of texts; in a table only */
        SHOW_NUMBER,
        SHOW_NUMBER_OR_DASH,
        SHOW_DURATION, /* on a terminal; elsewhere the milliseconds */
        SHOW_TIME,     /* with its milliseconds */
        SHOW_SECONDS   /* a time without them */
    } kind;
};

/* All of these: columns end with member NULL. */

/* Heads of the table. */
void show_head(struct print_table *table, const struct show_column *columns);
/* A row for each object of the list, and before in front of the head; nothing when there is none. */
void show_table(const struct show_column *columns, const struct json *owner, const char *list,
                const char *before);
/* A row of it. */
void show_row(struct print_table *table, const struct show_column *columns, const struct json *item);
/* KEY='value' for eval in a shell: a line each, the values as they are; or all on one line. */
void show_env(const struct show_column *columns, const struct json *item);
void show_env_line(const struct show_column *columns, const struct json *item);

/* An item of a lease's history. */
extern const struct show_column show_event[];
/* A row of it at once: on a terminal in columns, otherwise with tabs. */
void show_event_line(const struct json *item);

/* Who holds a lease: its answer to a look. */
void show_look(FILE *out, const struct json *look);

/* The grant, by the words of the member grant; env also says which of the two an acquire got. */
enum show_grant {
    SHOW_GRANT_NEW,    /* the lease was acquired */
    SHOW_GRANT_SAME,   /* an acquire that found that its lease_id holds the lease already */
    SHOW_GRANT_RENEWED /* the answer to a renewal */
};
void show_grant(const struct json *grant, enum show_grant kind, enum output output);
/* "new" or "same"; NULL: of a renewal. */
const char *show_grant_word(enum show_grant kind);

/* -- the texts that must not stand in a command line: the lease_id, and the fencing token (secret.c) */

enum {
    SECRET_SIZE = 1100 /* the longest of them (a fencing token header) and a NUL */
};

/* The lease_id of a hold, out of the file (if one is named) or PAWL_LEASE_ID. CLI_GO_ON, or the exit status.
 */
int secret_lease_id(const char *file, char buf[SECRET_SIZE]);
/* The fencing token header, out of the file (if one is named) or PAWL_FENCING_TOKEN. */
int secret_token(const char *file, char buf[SECRET_SIZE]);

/* Where the lease_id of an acquire comes from, which decides what a hold of it that is over means. */
enum secret_origin {
    SECRET_NEW,      /* made now */
    SECRET_FILE,     /* the file had one from an earlier acquire: a new one may take its place */
    SECRET_LEFTOVER, /* PAWL_LEASE_ID stands beside PAWL_TOKEN: "-o env" of an earlier acquire left it */
    SECRET_PROPOSED  /* PAWL_LEASE_ID alone: the caller means this one and no other */
};

/* The lease_id that an acquire of this lease proposes. A new one: the file is not there yet or is empty, or
 * "-o env" has left that of another lease, which the children of a script share, and would share this one. */
int secret_propose(const char *file, const char *lease, char buf[SECRET_SIZE], enum secret_origin *origin);
/* Puts it into the file in the place of before ("": there was none), readable by its owner alone; the file is
 * whole or as before, also when the machine stops. When another process has put one there meanwhile, lease_id
 * becomes that one: those that share the file share the hold. CLI_GO_ON, or the exit status. */
int secret_keep(const char *file, const char *before, char lease_id[SECRET_SIZE]);
/* Takes the file away, unless it has another one by now. */
void secret_forget(const char *file, const char *lease_id);

/* -- a verb */

/* The values of all flags of all verbs. */
struct given {
    const char *lease_url, *gateway_url, *lease_id_file, *token_file, *type, *if_match, *if_none_match,
        *idempotency_key, *holder, *meta, *mode, *prefix, *state, *since, *reason, *expect_token, *id,
        *gateway, *incarnation;
    uint64_t ttl_ms, wait_ms, lock_delay_ms, keep_place_ms, idle_ms;
    unsigned permits, limit;
    bool fenced, all, dead, settled, force, yes, once, trace;
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
    const char *name;
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
/* Another request of the same verb, whose answer is JSON with the members needs. */
struct request verb_request(const struct call *call, const char *method, const char *needs);
void verb_done(struct call *call);

/* resolve.c */
int resolve_check(struct call *call);
int resolve_all(struct call *call);

#endif
