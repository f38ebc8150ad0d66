/* ask.h - one question to one of the services, and the telling of its refusal. */
#ifndef PAWL_CLI_ASK_H
#define PAWL_CLI_ASK_H

#include "api/cli/flags.h"
#include "api/client/http_client.h"
#include "shared/json.h"

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
    struct http_client_request request; /* url is given by ask_url() */
    enum ask_repeat repeat;
    enum ask_wants wants;
    const char *needs, *lease_id; /* for wants; needs: names with a blank between them */
    enum output output;           /* json: that it was not done, or may have been, is told so too */
    bool trace;                   /* say what curl would send (trace.h) */
    /* Before each attempt; NULL: the second is the same as the first. */
    void (*prepare)(struct ask *ask);
    bool repeated;         /* there was a second attempt */
    const char *body_from; /* for it: the file of the body, "-" standard input; NULL: the body itself */
    char *url;
};

/* Fills service, flag and url: of the base (or, when NULL, the default) with path and the name,
 * percent-encoded but for
 * ':' and, when it is a resource key, '/'. CLI_GO_ON, or CLI_USAGE. ask_done() frees. */
int ask_lease(struct ask *ask, const char *base, const char *name);
/* What is below it ("/history"), or is done with it ("/force-release"). */
int ask_lease_deed(struct ask *ask, const char *base, const char *name, const char *deed);
/* Of the lease service, a path that needs no encoding; ask_query() adds to it. */
int ask_lease_service(struct ask *ask, const char *base, const char *path);
int ask_leases(struct ask *ask, const char *base); /* the list of them; ask_query() adds to it */
int ask_resource(struct ask *ask, const char *base, const char *key);
/* The intents of a lease; deed: "", or what is to be done with them ("/resolve"). */
int ask_intents(struct ask *ask, const char *base, const char *lease, const char *deed);
/* Of the gateway, a path that needs no encoding. */
int ask_gateway(struct ask *ask, const char *base, const char *path);
void ask_query(struct ask *ask, const char *name, struct bytes value);
void ask_header(struct ask *ask, const char *name, struct bytes value);
void ask_done(struct ask *ask);

/* CLI_GO_ON with a 2xx answer; else the exit status: has told on stderr what happened and what to do. answer
 * is filled either way. */
int ask_send(struct ask *ask, struct http_client_answer *answer);

/* The two halves of ask_send() (UNKNOWN also when the answer is not Pawl's; status is then what it said, else
 * 0), for who wants to look at a refusal first. */
enum http_client_outcome ask_try(struct ask *ask, struct http_client_answer *answer);
int ask_tell(const struct ask *ask, enum http_client_outcome outcome,
             const struct http_client_answer *answer);
/* Whether the answer is this problem. */
bool ask_is_problem(const struct http_client_answer *answer, const char *code);

/* The answer as JSON; NULL when it is none, which has been told (CLI_BUG then). The caller frees. */
struct json *ask_json(const struct ask *ask, const struct http_client_answer *answer);
/* Members of it; 0 or "" when they are missing. */
int64_t ask_int(const struct json *json, const char *name);
struct bytes ask_text(const struct json *json, const char *name);

#endif
