/* ask.h - one request to one of the services, what its end is worth, and how a refusal is reported.
 *
 *   ask_lease, ask_resource ...   where it goes        64, or go on
 *   ask_try                       send it, once more where that is safe; is the answer Pawl's?
 *   ask_tell                      the refusal, or that nobody knows
 *   ask_done                      free it all */
#ifndef PAWL_CLI_ASK_H
#define PAWL_CLI_ASK_H

#include <stdio.h>

#include "api/cli/flags.h"
#include "api/client/http_client.h"
#include "shared/text/json.h"

enum ask_repeat {
    ASK_ONCE,
    ASK_TWICE /* when the end is not known, once more: only for requests that are safe to repeat */
};

/* What a 2xx must be, else it is not Pawl's, and the end of the request is not known. */
enum ask_wants {
    ASK_ANYTHING, /* the caller looks for himself, and does not tell it */
    ASK_JSON,     /* 200, with the members needs; a member lease is that of name */
    ASK_GRANT,    /* 200 or 201: the grant of name and lease_id */
    ASK_RELEASED, /* 204, or 200 with the holds that remain */
    ASK_WRITTEN,  /* 201 or 204, with ETag and Fencing-Status */
    ASK_DELETED,  /* 204, with Fencing-Status */
    ASK_CONTENT,  /* 200, with ETag and Fencing-Mark */
    ASK_ACCEPTED, /* 200, with a Fencing-Status that says so */
    ASK_STREAM    /* 200, a text/event-stream */
};

struct ask {
    const char *what;                   /* for sentences: "acquire" */
    const char *name;                   /* and of what: "orders:42"; NULL: of nothing in particular */
    const char *service;                /* "the lease service" */
    const char *flag;                   /* "--lease-url": what to look at when nobody answers */
    struct http_client_request request; /* its url is the ask's own */
    enum ask_repeat repeat;
    enum ask_wants wants;
    const char *needs, *lease_id; /* for wants; needs: names with a blank between them */
    enum output output;           /* json: also reports that it was not done, or may have been */
    bool trace;                   /* say what curl would send (trace_curl()) */
    /* Before each attempt; NULL: the second is the same as the first. */
    void (*prepare)(struct ask *ask);
    bool repeated;         /* there was a second attempt */
    const char *body_from; /* for it: the file of the body, "-" standard input; NULL: the body itself */
    char *url;
    struct http_client_answer answer; /* to the last attempt */
    struct json *json;                /* its body; NULL: it is none */
};

/* Fill service, flag and url. base NULL: the default. CLI_GO_ON, or CLI_USAGE. Whatever they said, the ask
 * owes ask_done(). */
enum ask_service { ASK_LEASE_SERVICE, ASK_GATEWAY };
/* A path that needs no encoding. */
int ask_service(struct ask *ask, enum ask_service to, const char *base, const char *path);
int ask_lease(struct ask *ask, const char *base, const char *name);
/* What is below a lease ("/history"), or is done with it ("/force-release"). */
int ask_lease_deed(struct ask *ask, const char *base, const char *name, const char *deed);
/* The intents of a lease; deed: "", or what is to be done with them ("/resolve"). */
int ask_intents(struct ask *ask, const char *base, const char *lease, const char *deed);
/* Percent-encoded but for ':' and '/'. */
int ask_resource(struct ask *ask, const char *base, const char *key);
/* Adds to the url; a value at NULL adds nothing. */
void ask_query(struct ask *ask, const char *name, struct bytes value);
void ask_header(struct ask *ask, const char *name, struct bytes value);
void ask_done(struct ask *ask);

/* CLI_GO_ON with a 2xx answer; else the exit status: stderr says what happened and what to do. */
int ask_send(struct ask *ask);
/* The two halves of ask_send(), for a caller that looks at a refusal first. UNKNOWN also when the answer is
 * not Pawl's: a proxy may have answered, which does not know what became of the request; answer.status is
 * then its status, else 0. */
enum http_client_outcome ask_try(struct ask *ask);
int ask_tell(const struct ask *ask, enum http_client_outcome outcome);

/* What an answer to an attempt is worth, after another of unknown end. */
enum ask_worth {
    ASK_CERTAIN, /* done, or a hold that is over, whatever became of the attempt before */
    ASK_REFUSED, /* the attempt before may yet arrive */
    ASK_IN_DOUBT /* the service does not know either */
};
enum ask_worth ask_worth(const struct ask *ask);
/* Whether the answer is this problem. */
bool ask_is_problem(const struct ask *ask, const char *code);

/* An answer as JSON; NULL when it is none, which has been reported. The caller frees. */
struct json *ask_json(const struct ask *ask, const struct http_client_answer *answer);
/* Members of it; 0 or "" when they are missing, or json is NULL. */
int64_t ask_int(const struct json *json, const char *name);
struct bytes ask_text(const struct json *json, const char *name);

/* How a request is reported that was not done, or has no known end (exit status 69): what scripts look for
 * is the same in every command (docs/man/pawl.1.md, "EXIT STATUS"). */
enum doubt {
    DOUBT_NOT_DONE, /* it certainly was not done, or it changes nothing */
    DOUBT_UNKNOWN   /* it may have been done */
};
/* "pawl: certainly not done: " or "pawl: may have been done: " and the sentence on stderr; with OUTPUT_JSON
 * also an object with "outcome" ("not-done" or "unknown"), "code" ("") and "why" on stdout. CLI_UNREACHABLE.
 */
int doubt_tell(enum doubt doubt, enum output output, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* -- a request as the curl command that would send the same
 *
 * What proves a hold is not in it, but the variable that has it: "$PAWL_LEASE_ID", "$PAWL_FENCING_TOKEN",
 * "$PAWL_SESSION_SECRET". So the line can be pasted into a terminal, a ticket or a chat. */

/* One line. body_from: where the body comes from, "-" being standard input; NULL: it is shown. */
void trace_curl(FILE *out, const struct http_client_request *request, const char *body_from);

#endif
