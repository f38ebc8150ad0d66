/* request.h - one request to one of the services, what its end is worth, and how a refusal is reported.
 *
 *   request_lease, request_resource ...   where it goes        64, or go on
 *   request_try                       send it, once more where that is safe; is the answer Pawl's?
 *   request_tell                      the refusal, or that nobody knows
 *   request_done                      free it all */
#ifndef PAWL_CLI_REQUEST_H
#define PAWL_CLI_REQUEST_H

#include <stdio.h>

#include "api/cli/flags.h"
#include "api/client/http_client.h"
#include "api/client/pawl.h"
#include "shared/text/json.h"
#include "shared/text/json_write.h"

enum request_repeat {
    REQUEST_ONCE,
    REQUEST_TWICE /* when the end is not known, once more: only for requests that are safe to repeat */
};

/* What a 2xx must be, else it is not Pawl's, and the end of the request is not known. */
enum request_wants {
    REQUEST_ANYTHING, /* the caller looks for himself, and does not tell it */
    REQUEST_JSON,     /* 200, with the members needs; a member lease is that of name */
    REQUEST_GRANT,    /* 200 or 201: the grant of name and lease_id */
    REQUEST_RELEASED, /* 204, or 200 with the holds that remain */
    REQUEST_WRITTEN,  /* 201 or 204, with ETag and Fencing-Status */
    REQUEST_DELETED,  /* 204, with Fencing-Status */
    REQUEST_CONTENT,  /* 200, with ETag and Fencing-Mark */
    REQUEST_ACCEPTED, /* 200, with a Fencing-Status that says so */
    REQUEST_STREAM    /* 200, a text/event-stream */
};

struct request {
    const char *what;                /* for sentences: "acquire" */
    const char *name;                /* and of what: "orders:42"; NULL: of nothing in particular */
    const char *service;             /* "the lease service" */
    const char *flag;                /* "--lease-url": what to look at when nobody answers */
    struct http_client_request http; /* its url is the request's own */
    enum request_repeat repeat;
    enum request_wants wants;
    const char *needs, *lease_id; /* for wants; needs: names with a blank between them */
    enum output output;           /* json: what it was refused, too */
    bool trace;                   /* say what curl would send (trace_curl()) */
    bool repeated;                /* there was a second attempt */
    const char *body_from; /* for it: the file of the body, "-" standard input; NULL: the body itself */
    char *url;
    struct http_client_answer answer; /* to the last attempt */
    struct json *json;                /* its body; NULL: it is none */
};

/* Fill service, flag and url. base NULL: the default. CLI_GO_ON, or CLI_USAGE. The request owes
 * request_done() in either case. */
enum request_service { REQUEST_LEASE_SERVICE, REQUEST_GATEWAY };
/* A path that needs no encoding. */
int request_service(struct request *request, enum request_service to, const char *base, const char *path);
/* deed: "", what is below the lease ("/history"), or is done with it ("/force-release"). */
int request_lease(struct request *request, const char *base, const char *name, const char *deed);
/* The intents of a lease; deed: "", or what is to be done with them ("/resolve"). */
int request_intents(struct request *request, const char *base, const char *lease, const char *deed);
/* Percent-encoded but for ':' and '/'. */
int request_resource(struct request *request, const char *base, const char *key);
/* Adds to the url; a value at NULL adds nothing. */
void request_query(struct request *request, const char *name, struct bytes value);
void request_header(struct request *request, const char *name, struct bytes value);
/* The answer to it, which another has got; the request's from now on. */
void request_take(struct request *request, const struct http_client_answer *answer);
void request_done(struct request *request);

/* CLI_GO_ON with a 2xx answer; else the exit status: stderr says what happened and what to do. */
int request_send(struct request *request);
/* The two halves of request_send(), for a caller that looks at a refusal first. UNKNOWN also when the answer
 * is not Pawl's: a proxy may have answered, which does not know what became of the request; answer.status is
 * then its status, else 0. */
enum http_client_outcome request_try(struct request *request);
int request_tell(const struct request *request, enum http_client_outcome outcome);

/* What to look at when a request could not be sent: who asks, or whom it trusts; NULL: none of that. */
const char *request_access_remedy(const char *why);

/* What the answer says by itself, as libpawl judges it; PAWL_UNKNOWN: the service does not know either. */
enum pawl_outcome request_judge(const struct request *request);
/* Whether the answer is this problem. */
bool request_is_problem(const struct request *request, const char *code);

/* The answer's object, with one more member or two at its end, on a line; NULL: no second one. */
void request_show(const struct request *request, const char *name, const char *value, const char *second,
                  struct bytes second_value);
/* Members of an answer; 0 or "" when they are missing, or json is NULL. */
int64_t request_int(const struct json *json, const char *name);
struct bytes request_text(const struct json *json, const char *name);

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
