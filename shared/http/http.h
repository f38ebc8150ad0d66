/* http.h - HTTP/1.1 for one loop: the only door to libmicrohttpd. Here is what a handler needs; pieces.h has
 * bodies that come in pieces, http_server.h the server itself, answer.h the parser of others' answers.
 *
 * The server reads a whole request (headers within 10 s, body within 30 s, both bounded), finds the
 * route, and calls its handler once. The handler answers at once (ANSWERED) or registers a continuation
 * that will (SUSPENDED). Exactly one function ends a request well, http_answer(), and one badly,
 * http_refuse*(); each request is ended exactly once (asserted).
 *
 * What the server does by itself: refuses ambiguous framing (RFC 9112 section 6.3, 11.2: two
 * Content-Length, or with Transfer-Encoding; obs-fold; NUL or other CTL in a header; a second Host; a header
 * line without a name) with 400 and closes; 404, 405 with Allow, OPTIONS 204 with Allow; HEAD where there is
 * GET; 408, 413, 431; Expect: 100-continue; pipelining in order; "Cache-Control: no-store" on everything;
 * problems as RFC 9457. The request id (problem member "instance") is made by the server for each request.
 *
 * A client that leaves while its request is suspended: the continuation still runs, http_answer() then
 * goes nowhere. With http_suspend(), and of a stream, the end is reported at once: its FIN, its reset, or, of
 * a host that died, keep-alive within 15 s. */
#ifndef PAWL_SHARED_HTTP_H
#define PAWL_SHARED_HTTP_H

#include <stdint.h>
#include <sys/types.h>

#include "shared/loop/loop.h"
#include "shared/text/bytes.h"
#include "shared/text/json_write.h"
#include "shared/text/problem.h"

struct http_request;
struct http_owner; /* http_server.h */
struct tls_certificate;

enum http_method {
    HTTP_GET = 1,
    HTTP_HEAD = 2,
    HTTP_POST = 4,
    HTTP_PUT = 8,
    HTTP_DELETE = 16,
    HTTP_PATCH = 32,
    HTTP_OTHER = 64,
    HTTP_ANY = 127,
    /* Marks of a route, beside its methods. */
    HTTP_STREAMS = 256,  /* its answer has no end: a web page of another site may not even read it */
    HTTP_ANY_SITE = 512, /* no address of Pawl's own, or one without secrets: any web page, any Host */
    HTTP_KEEPS = 2048,   /* keeps, gives back or asks for health: taken on the last connections, too */
    HTTP_COMMAND = 1024  /* an operator's: a Content-Type must be JSON's, also without a body */
};

/* How the body of a request is treated. */
enum http_body_kind {
    HTTP_BODY_NONE,    /* a body is refused: 400 */
    HTTP_BODY_JSON,    /* collected, at most body_max; must be application/json if not empty (415) */
    HTTP_BODY_BYTES,   /* collected, at most body_max, any type */
    HTTP_BODY_DROPPED, /* read to its end and forgotten, at most body_max */
    HTTP_BODY_STREAMED /* collected up to HTTP_BODY_HELD_BYTES; what is longer comes in pieces (below) */
};

struct http_route {
    unsigned methods; /* HTTP_GET implies HTTP_HEAD; HTTP_ANY: every method, HTTP_OTHER included */
    /* "/v1/leases/{name}": {x} is one raw segment; "{x**}" at the end: one or more segments. A slash and two
     * stars, and nothing else: any path, "/" too. */
    const char *path;
    enum http_body_kind body;
    size_t body_max; /* bytes; 0 means the server's default; a streamed one has no limit */
    bool query;      /* whether a query is allowed; if not, one is 400 */
    enum step (*handle)(struct http_request *req);
    const char
        *operation; /* its operationId in api/openapi.yaml, a label of the metrics; of ANY, the first */
    unsigned needs; /* what the caller needs, in the owner's words (enum access_need); 0: forgotten */
};

/* -- reading. All bytes returned live until the request is ended. */

/* The request's own scratch space, zeroed at the start of the request, HTTP_SCRATCH_BYTES large, aligned for
 * anything. The caller asserts statically that its struct fits. */
enum { HTTP_SCRATCH_BYTES = 4128 };
void *http_scratch(struct http_request *req);
#define HTTP_SCRATCH(req, type)                                                                              \
    ((void)sizeof(char[sizeof(type) <= HTTP_SCRATCH_BYTES ? 1 : -1]), (type *)http_scratch(req))

enum http_method http_method(const struct http_request *req);
struct bytes http_method_text(const struct http_request *req); /* as it came */
struct bytes http_path(const struct http_request *req);        /* as it came, without the query */
/* The i-th {x} of the route as it came, not decoded. */
struct bytes http_path_part(const struct http_request *req, unsigned i);
/* The query as it came, without '?'; {NULL,0} when there is none. */
struct bytes http_query(const struct http_request *req);
/* The value of a query member, percent-decoded into buf, with a NUL behind it; -1 absent, -2 malformed (one
 * with a NUL in it, too), repeated or too long for buf, else its length. names_known (NULL-terminated) lists
 * all that the route knows: another member also gives -2. */
int http_query_text(const struct http_request *req, const char *const *names_known, const char *name,
                    char *buf, size_t size);
/* A member that is "true", or not there; false: it is something else. */
bool http_query_flag(const struct http_request *req, const char *const *names_known, const char *name,
                     bool *is_on);
/* The value of a header, without surrounding white space; {NULL,0} when there is none. count (may be
 * NULL): how often it came. */
struct bytes http_header(const struct http_request *req, const char *name, unsigned *count);
/* All headers in their order, as they came. */
unsigned http_field_count(const struct http_request *req);
void http_field_at(const struct http_request *req, unsigned i, struct bytes *name, struct bytes *value);
/* Whether the Accept header names this type; without a look at parameters: one that names it can read it. */
bool http_accepts(const struct http_request *req, const char *type);
struct bytes http_body(const struct http_request *req);
/* Address of the client: of the other end of the connection, or, if that is a trusted proxy, the last of
 * X-Forwarded-For. "127.0.0.1" or "::1"; "" when it has gone. */
enum { HTTP_ADDRESS_SIZE = 48 };
const char *http_client_address(const struct http_request *req, char text[HTTP_ADDRESS_SIZE]);
/* A number of that address (of IPv6: of its /64; over a unix socket: of the uid), which nobody outside can
 * choose; of a server with peers. */
uint64_t http_client_hash(const struct http_request *req);
/* The uid at the other end of a unix socket (SO_PEERCRED); false: it came another way. */
bool http_client_uid(const struct http_request *req, uid_t *uid);
/* Whether it came at the address for Pawl's own requests only, where nothing is forwarded (own_fd). */
bool http_is_own(const struct http_request *req);
/* "urn:uuid:" and a UUID, its own for each request; for logs and "instance". Returns id. */
enum { HTTP_ID_SIZE = 46 };
const char *http_request_id(const struct http_request *req, char id[HTTP_ID_SIZE]);
/* For the line in the log: the lease that the request names; what exactly went wrong. Both are kept by the
 * caller until the request is ended. */
void http_note_lease(struct http_request *req, struct bytes lease);
void http_note_why(struct http_request *req, const char *why);
/* The operator's own words for what it has done; kept as the two above. */
void http_note_reason(struct http_request *req, struct bytes reason);
/* How it has ended, for the log and the metrics. */
struct http_ending {
    enum problem problem;       /* how it was refused; PROBLEM_NONE: it was not, or not yet */
    bool was_handled;           /* its handler was called: nothing spoke against it before that */
    struct bytes lease, reason; /* as noted; of a lease that was not, the one in the path */
    const char *why;            /* as noted; "": it was not */
};
struct http_ending http_ending(const struct http_request *req);
/* Whether the Host is one under which this service is not to be reached by a web page (docs/contract.md). */
bool http_host_is_foreign(const struct http_request *req);
/* The row of the routes; NULL: none, or it is not known yet. */
const struct http_route *http_route(const struct http_request *req);
bool http_is_over_tls(const struct http_request *req);
/* What the client has shown in TLS (shared/tls/tls_server.h), judged as of now; NULL: a plain connection, or
 * it has gone. Good until the next call of this for a request of the same connection. */
const struct tls_certificate *http_client_certificate(const struct http_request *req);
/* Who asks, as http_options.enter has found; NULL: nobody. It outlives the request. */
const char *http_identity(const struct http_request *req);
/* Whether it still is who it was, by what it has shown (http_options.stands): when *judged_by has changed
 * it is asked anew. Also of one that is suspended; and, in pieces.h, of one that is answered in pieces. */
bool http_stands(struct http_request *req);
/* What it has shown in its head, as http_identify() was given it. */
struct bytes http_shown(const struct http_request *req);
/* Not after http_resume(). */
const char *http_identified_by(const struct http_request *req);
/* What http_server_new() was given. */
const struct http_owner *http_owner(const struct http_request *req);

/* -- answering. Headers are set before the one call that ends. name is a literal; value is copied; a
 * value with CR, LF or NUL is a programmer's mistake (assert); an empty one is left out; a second
 * Content-Type replaces the first. At most 12 headers and 1,024 bytes of them, names included: an answer
 * with more becomes 500 internal. */
enum { HTTP_REPLY_LONG = 32768 };
void http_reply_header(struct http_request *req, const char *name, struct bytes value);
/* The same with a name that is copied too, and room for HTTP_REPLY_LONG bytes in all if
 * http_options.reply_head_max is set (what is longer than that closes the connection behind it), else for
 * 1,024, those of http_reply_header() included (set these first), and 64 fields; for heads that come from
 * elsewhere: such a head has no "Cache-Control: no-store" of the server's. Several of one name stay several,
 * in their order; an empty value is left out. false: no room, or it cannot be sent (its bytes, or it is
 * Content-Length, Transfer-Encoding, Connection or Date, which are the server's); nothing was added. */
bool http_reply_field(struct http_request *req, struct bytes name, struct bytes value);
/* The head comes from elsewhere, even if no field of it is passed on. */
void http_reply_foreign(struct http_request *req);
/* Nothing of the head of the answer has been set. */
void http_reply_forget(struct http_request *req);
/* Body of the answer, copied, unless it is what http_json() wrote; type NULL: no Content-Type. For HEAD
 * and for 304 only the length is sent; 204 and 304 have no Content-Type. */
void http_reply_body(struct http_request *req, const char *type, struct bytes body);
/* The same of what outlives the server: it is not copied, however many clients are slow to take it. */
void http_reply_static(struct http_request *req, const char *type, struct bytes body);
/* A writer into the request's own answer buffer (8 KiB at first, grows), for JSON bodies;
 * http_reply_json() makes it the body. */
struct json_out *http_json(struct http_request *req);
void http_reply_json(struct http_request *req);
enum step http_answer(struct http_request *req, unsigned status);
/* A body that is one JSON object: opens it, and forgets what was written before; closes it and answers. */
struct json_out *http_json_begin(struct http_request *req);
enum step http_json_end(struct http_request *req, unsigned status);

/* Ends the request with a problem: its status, type, title, code, retryable, instance, and the detail of
 * problems.def, or one of its own (what happened and what to do now). */
enum step http_refuse(struct http_request *req, enum problem problem);
enum step http_refuse_detail(struct http_request *req, enum problem problem, const char *detail);
/* For members of its own and other statuses: http_problem_begin() opens the object with the standard
 * members and leaves it open; the caller adds members with json_*; then http_problem_end(). status 0:
 * that of the problem. _final: the request is not to be sent again as it is, though other requests with this
 * problem may; retryable is false. */
struct json_out *http_problem_begin(struct http_request *req, enum problem problem, const char *detail);
struct json_out *http_problem_begin_final(struct http_request *req, enum problem problem, const char *detail);
enum step http_problem_end(struct http_request *req, unsigned status);

/* -- long waits. A request that may wait for seconds is suspended: its memory (some 8 KiB) goes back, and
 * about 120 bytes stay. The owner embeds the struct and keeps it until it has resumed.
 *
 *   handler or continuation: http_suspend(), return SUSPENDED
 *   later, outside of a handler: req = http_resume(), then answer, or SUSPENDED again with a continuation, or
 *   http_suspend() again
 *
 * It counts as open and running all the time. http_server_drain() does not touch it: its owner ends it. */
struct http_suspended {
    /* Set by the owner before http_suspend(); may be NULL. The client has closed its side, or the connection
     * is broken: called once for each http_suspend(), at the end of a turn, never from inside a call of this
     * module, and not after http_resume(). The request is still to be resumed and answered, which goes
     * nowhere. A client that has sent its next request already and stays has not gone. */
    void (*gone)(struct http_suspended *suspended);
    struct http_kept *kept; /* the server's own */
};

/* Whatever http_*() has returned of the request is gone, its scratch space and the headers of its answer too.
 */
void http_suspend(struct http_request *req, struct http_suspended *suspended);
/* The request, whole again: its id, method, path with its parts, route and time of arrival are what they
 * were; it has no headers, no body and no query any more; its scratch space is zeroed. It must be answered in
 * this turn, or a continuation of its own be registered. */
struct http_request *http_resume(struct http_suspended *suspended);
/* Whether the client of a suspended request has gone, as far as is known: before `gone` is called. */
bool http_suspended_is_gone(const struct http_suspended *suspended);
bool http_suspended_stands(const struct http_suspended *suspended);

#endif
