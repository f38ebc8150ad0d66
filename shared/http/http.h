/* http.h - HTTP/1.1 for one loop: the only door to libmicrohttpd.
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

#include "shared/loop/loop.h"
#include "shared/text/bytes.h"
#include "shared/text/json_write.h"
#include "shared/text/problem.h"

struct http_server;
struct http_request;

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
};

/* -- reading. All bytes returned live until the request is ended. */

/* The request's own scratch space, zeroed at the start of the request, HTTP_SCRATCH_BYTES large, aligned for
 * anything. The caller asserts statically that its struct fits. */
enum { HTTP_SCRATCH_BYTES = 4096 };
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
/* The value of a query member, percent-decoded into buf; -1 absent, -2 malformed, repeated or too long
 * for buf, else its length. names_known (NULL-terminated) lists all that the route knows: another member
 * also gives -2. */
int http_query_get(const struct http_request *req, const char *const *names_known, const char *name,
                   char *buf, size_t size);
/* The value of a header, without surrounding white space; {NULL,0} when there is none. count (may be
 * NULL): how often it came. */
struct bytes http_header(const struct http_request *req, const char *name, unsigned *count);
/* All headers in their order, as they came. */
unsigned http_field_count(const struct http_request *req);
void http_field_at(const struct http_request *req, unsigned i, struct bytes *name, struct bytes *value);
struct bytes http_body(const struct http_request *req);
/* Address of the client: of the other end of the connection, or, if that is a trusted proxy, the last of
 * X-Forwarded-For. "127.0.0.1" or "::1"; "" when it has gone. */
enum { HTTP_ADDRESS_SIZE = 48 };
const char *http_client_address(const struct http_request *req, char text[HTTP_ADDRESS_SIZE]);
/* "urn:uuid:" and a UUID, its own for each request; for logs and "instance". Returns id. */
enum { HTTP_ID_SIZE = 46 };
const char *http_request_id(const struct http_request *req, char id[HTTP_ID_SIZE]);
/* For the line in the log: the lease that the request names; what exactly went wrong. Both are kept by the
 * caller until the request is ended. */
void http_note_lease(struct http_request *req, struct bytes lease);
void http_note_why(struct http_request *req, const char *why);
struct bytes http_noted_lease(const struct http_request *req);
const char *http_noted_why(const struct http_request *req);
/* How the request was refused; PROBLEM_NONE if it was not, or not yet. For the log and the metrics. */
enum problem http_problem(const struct http_request *req);
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

/* -- bodies that come in pieces. The handler of a route with HTTP_BODY_STREAMED is called when the whole body
 * is there, or when HTTP_BODY_HELD_BYTES of a longer one are: then http_body_is_whole() is false and
 * http_body() is its beginning. Such a handler, or a continuation of its, calls http_body_take() for the rest
 * before it ends the request, or refuses: then the connection is closed behind the answer, and what still
 * comes is read and forgotten for a little while. */
enum { HTTP_BODY_HELD_BYTES = 65536, HTTP_BODY_TIMED_BYTES = 1 << 20 };
struct http_body_reader {
    /* The next piece, valid during the call; returns how many of its bytes were taken. If not all, the client
     * is not read from until http_body_reader_more(), and the rest is shown again then. Never from inside a
     * call of this module (http_server_drain() excepted, as for handlers). */
    size_t (*piece)(struct http_body_reader *body_reader, struct bytes piece);
    /* Called once: the body is whole, or it never will be (the client has gone, has not sent the next
     * HTTP_BODY_TIMED_BYTES within body_timeout_ms, or broke the chunking). The request
     * is still to be ended, once and at any later time; after a body that broke, that goes nowhere, but to a
     * client that was only too slow. */
    void (*whole)(struct http_body_reader *body_reader);
    void (*broken)(struct http_body_reader *body_reader);
    bool keeps;               /* nothing is done with it before it is whole: the client may get the refusal */
    struct http_request *req; /* the server's own */
};
bool http_body_is_whole(const struct http_request *req);
/* It is not, and never will be: the client has gone, before http_body_take() too. */
bool http_body_is_broken(const struct http_request *req);
/* The length that was announced; -1: chunked. 0: none. */
int64_t http_body_announced(const struct http_request *req);
/* Once, and only if http_body_is_whole() is false (asserted). The owner keeps the struct until whole or
 * broken was called, or the request is ended: then neither is called any more. A client that goes while its
 * owner has no room is noticed, save in a chunked body: there, only a reset; its end when all that came was
 * taken. */
void http_body_take(struct http_request *req, struct http_body_reader *body_reader);
void http_body_reader_more(struct http_body_reader *body_reader);

/* -- answers that come in pieces. The owner embeds the struct and keeps it until http_response_writer_end().
 * The headers are set before it begins; the request is ended well then, as by http_answer(), and not to be
 * touched any more. It counts as open and running until its end, and http_owner.ended() is called then. For
 * HEAD nothing is to be written.
 *
 * With back-pressure: at most HTTP_RESPONSE_WRITER_UNSENT_MAX bytes wait for the client, and the connection
 * is kept, if all went well. A stream has no end: chunked (for HTTP/1.0 as it comes), at most
 * HTTP_STREAM_UNSENT_MAX bytes wait, and the connection is closed behind it. */
enum { HTTP_RESPONSE_WRITER_UNSENT_MAX = 65536, HTTP_STREAM_UNSENT_MAX = 262144 };
struct http_response_writer {
    /* After http_response_writer_write() took less than all: there is room again. */
    void (*room)(struct http_response_writer *writer);
    /* The client has closed its side, or the connection is broken (as in struct http_suspended), or takes
     * nothing: for send_timeout_ms (a quarter more at most), of a stream for 13 s though the kernel has
     * something for it. http_response_writer_end() is still to be called; WHOLE, if all had been written
     * before, still reaches a client that has closed its side only. Neither is called from inside a call of
     * this module, nor after http_response_writer_end(). */
    void (*gone)(struct http_response_writer *writer);
    struct http_response *response; /* the server's own */
};
/* length: of the whole body, or -1: not known, sent chunked. For HEAD the length is sent. */
enum step http_response_writer_begin(struct http_request *req, struct http_response_writer *writer,
                                     unsigned status, int64_t length);
/* Copied; returns how much was taken; 0 after `gone`. More than `length` in all is a mistake (asserted), but
 * for answers without a body, where it is forgotten. */
size_t http_response_writer_write(struct http_response_writer *writer, struct bytes piece);
/* The headers must fit (asserted). For HEAD the stream is gone from the beginning, and `gone` is called. */
enum step http_stream_begin(struct http_request *req, struct http_response_writer *writer, unsigned status);
/* Copied, and sent as one chunk. false: more than HTTP_STREAM_UNSENT_MAX bytes would wait for a client that
 * does not read, or it has gone: nothing was taken; the owner ends the stream. */
bool http_stream_write(struct http_response_writer *writer, struct bytes piece);
/* The body is whole; or it is not and never will be: then the connection is cut, so that the client sees it.
 * Fewer bytes than `length` are never whole. What was written to a stream still leaves, within the send
 * timeout. To be called once, in `gone` or anywhere else; the struct is the owner's again. */
enum http_response_writer_end { HTTP_RESPONSE_WRITER_WHOLE, HTTP_RESPONSE_WRITER_CUT };
void http_response_writer_end(struct http_response_writer *writer, enum http_response_writer_end end);

/* -- the server. */
enum http_limit { HTTP_LIMIT_ALL, HTTP_LIMIT_ADDRESS };
struct http_owner { /* the service embeds this and finds itself with container_of */
    /* Called once for each ended request, for the log and the metrics; may be NULL. */
    void (*ended)(const struct http_owner *owner, const struct http_request *req, unsigned status,
                  uint64_t took_us);
    /* A connection was closed at a limit before anything was read from it; may be NULL. */
    void (*closed)(const struct http_owner *owner, enum http_limit limit, const char *address);
};

enum { HTTP_HEAD_MAX = 8192 };
struct http_options {
    int listen_fd;                   /* bound and listening; the server takes it over */
    const struct http_route *routes; /* ends with path NULL; the first that matches is taken */
    struct http_owner *owner;
    /* Asked of a request to a route with HTTP_BODY_STREAMED whose client waits for "100 Continue", before it
     * is sent, or announces more than HTTP_BODY_HELD_BYTES: does its head alone forbid it? If so the handler
     * is called at once, without any of the body, and answers at once (asserted); the connection is then
     * closed. NULL: never. */
    bool (*refuses)(struct http_request *req);
    unsigned connections_max;
    /* The last so many of them take only requests to routes with HTTP_KEEPS: others are 503 overloaded,
     * closed. */
    unsigned connections_reserved;
    struct http_peers *peers; /* shared by the servers of a process; NULL: no address has a limit */
    /* Web pages (route.c): whether it listens on loopback only, where a Host must be a loopback name
     * or address, or one of these; the origins that may change something though they are not the Host's.
     * Lists with commas; NULL: none. */
    bool on_loopback;
    const char *allow_hosts, *allow_origins;
    size_t body_max_default;    /* for routes with body_max 0 */
    size_t body_memory_max;     /* of all bodies held at once; beyond it 503 overloaded */
    unsigned head_max;          /* request line and headers; 0: HTTP_HEAD_MAX */
    unsigned header_timeout_ms; /* 10,000 */
    unsigned body_timeout_ms;   /* 30,000 */
    unsigned send_timeout_ms;   /* for a client to take its whole answer; 0: 30,000 */
    /* Of http_reply_field(), in bytes, on a connection that is kept; 0: 1,024. Each connection takes one byte
     * more for each above. */
    unsigned reply_head_max;
    bool suspend_always; /* the fallback that libmicrohttpd documents; otherwise short waits poll */
};

/* per_address: how many connections an address (of IPv6: a /64) may have. trusted: proxies, as addresses or
 * networks, with commas between them, or NULL; their own connections are not counted, but the requests that
 * they carry for an address. NULL, with a reason in *why (static): the list is not one. */
struct http_peers *http_peers_new(unsigned per_address, const char *trusted, const char **why);
void http_peers_free(struct http_peers *peers);

/* NULL, or what is wrong with the two lists. */
const char *http_browser_lists_check(const char *hosts, const char *origins);

struct http_server *http_server_new(struct loop *loop, const struct http_options *options);
/* Stop accepting; new requests on open connections get 503 draining and "Connection: close". Not from
 * inside a handler. */
void http_server_drain(struct http_server *server);
/* Requests that have a handler running or suspended, or whose answer has not been handed to
 * the kernel in whole. */
unsigned http_server_open_requests(const struct http_server *server);
unsigned http_server_connections(const struct http_server *server);
/* Only when no handler is running, no request suspended and no stream open (asserted). Closes all
 * connections. */
void http_server_free(struct http_server *server);

/* A listening socket with SO_REUSEPORT and SO_REUSEADDR for "127.0.0.1:8700", "[::1]:0"; -1 with a reason
 * in *why (static). *port: the port that the kernel gave. */
int http_listen(const char *address, unsigned *port, const char **why);
/* Takes over a socket that somebody else has bound: sets what http_listen() sets, and writes its address, as
 * --listen has it, and its port. false, with a reason in *why: not a listening TCP socket. */
enum { HTTP_LISTEN_SIZE = HTTP_ADDRESS_SIZE + 16 };
bool http_listen_given(int fd, char address[HTTP_LISTEN_SIZE], unsigned *port, const char **why);
/* Whether nobody listens there yet. SO_REUSEPORT would let two services of one user share a port by mistake:
 * to be asked before the first http_listen(). *why as above. */
bool http_address_is_free(const char *address, const char **why);
/* Whether the address is a loopback one; a malformed one is not. */
bool http_address_is_loopback(const char *address);

#endif
