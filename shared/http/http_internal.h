/* http_internal.h - what the files of the HTTP layer share; nobody else includes it.
 *
 *   server.c           the server: libmicrohttpd's callbacks, the loop
 *   listen.c           listening sockets
 *   peers.c            how many connections each address has; who is behind a trusted proxy
 *   receive.c          what libmicrohttpd receives of a connection
 *   head.c             the head of a request: guards, fields
 *   route.c            which route, what body it takes
 *   browser.c          what a web page made a browser send
 *   enter.c            a request from its head to its answer: the one handler that libmicrohttpd calls
 *   request.c          what handlers read
 *   chunks.c           the framing of chunked bodies
 *   body_reader.c      bodies that come in pieces
 *   reply.c            what handlers answer
 *   suspend.c          requests that wait for long
 *   flow.c             answers that come in pieces: what these two share
 *   stream.c           answers without an end
 *   response_writer.c  answers that are passed on, with back-pressure
 *   early.c            answers that are written past libmicrohttpd (flow.h has these)
 *   request_pool.c     the memory of requests
 *   raw.c              refusals that libmicrohttpd cannot send, and the end of a connection after them
 *   clock.c            deadlines on slow clients
 *   disconnect.c       clients that have closed their side: libmicrohttpd is made to look
 *   deferred.c         what owners are told at the end of a turn
 *
 * A request's states; http_state_may() knows the same, and a test compares the two:
 *
 *   HEAD     -> BODY ABORTED            its head is whole, or was refused
 *   BODY     -> RUNNING ABORTED         head accepted; reading the body, if there is one
 *   RUNNING  -> PARKED ANSWERED         its handler has been called
 *   PARKED   -> RUNNING                 it waits for long; a struct http_kept stands for it
 *   ANSWERED -> SENDING                 the answer is there, libmicrohttpd does not have it yet
 *   SENDING  ->                         libmicrohttpd has it; of a flow, its head: an http_kept is left
 *   ABORTED  ->                         refused past libmicrohttpd; the connection ends
 *
 * The struct goes back to the server when libmicrohttpd has told that the request is completed; when that
 * comes before ANSWERED (the client has left), it stays until the handler's continuation has answered into
 * the void.
 *
 * libmicrohttpd's pointer for a request is the connection, of which either req or kept is set (of a flow
 * whose head libmicrohttpd does not have yet: both; behind an early answer: neither). A parked request is
 * suspended in libmicrohttpd, or its connection has been closed before it was parked. */
#ifndef PAWL_SHARED_HTTP_INTERNAL_H
#define PAWL_SHARED_HTTP_INTERNAL_H

#include <microhttpd.h>
#include <netinet/in.h>
#include <stdalign.h>
#include <stddef.h>

#include "shared/http/http.h"

enum {
    HEAD_SHORT_MAX = 160, /* of the head that libmicrohttpd gets */
    /* libmicrohttpd's memory for a connection: what it reads of a body, the head of the answer. What
     * http_options.reply_head_max has above REPLY_VALUES_BYTES is added. */
    POOL_BYTES = 6144,
    REPLY_VALUES_BYTES = 1024, /* so an answer's own fields may have this much, with names and separators */
    REPLY_FIELDS_MAX = 12,
    REPLY_COPIES_MAX = 128, /* of http_reply_field() */
    FIELDS_MAX = 128,
    METHOD_MAX = 32,
    PARTS_MAX = 4,
    INLINE_BYTES = 1024, /* head and body of most requests fit in here */
    ID_PREFIX_CHARS = 8,
    ID_CHARS = 16
};

/* -- deadlines. One list for each phase; in each, the oldest first, because all wait equally long. */
enum http_phase {
    PHASE_NONE,
    PHASE_HEAD,
    PHASE_BODY,
    PHASE_SEND,
    PHASE_TAKE, /* an outlet is sent: does its client take anything? */
    PHASE_OVER, /* an early answer has been sent: the client may read it, and closes */
    PHASE_LINGER,
    PHASE_COUNT
};

struct http_deadline {
    struct http_deadline *prev, *next;
    uint64_t since_ms;
    enum http_phase phase;
};

struct http_clock {
    struct http_deadline *first[PHASE_COUNT], *last[PHASE_COUNT];
    unsigned timeout_ms[PHASE_COUNT];
    uint64_t now_ms;   /* as of the start of this run, or of what was done since */
    uint64_t armed_ms; /* when the timer will fire; UINT64_MAX: never */
    struct loop_timer timer;
};

void http_clock_init(struct http_server *server);
void http_clock_done(struct http_server *server);
/* Takes the deadline off its list and puts it on that of the phase, from now on; PHASE_NONE: on none. */
void http_clock_set(struct http_server *server, struct http_deadline *deadline, enum http_phase phase);

/* -- what is told to an owner at the end of a turn, never from inside a call of this module */
struct http_deferred {
    struct http_deferred *next, **at; /* at NULL: nothing is to be told */
    void (*tell)(struct http_deferred *told);
};

/* Nothing, if it is to be told already. */
void http_deferred_add(struct http_server *server, struct http_deferred *told);
void http_deferred_remove(struct http_deferred *told);
void http_tell_all(struct http_server *server);

/* -- a connection, from accept to close */

/* How far a head has been looked at for its end, and where the line begins that is not whole. */
struct http_scan {
    uint32_t at, line;
};

struct http_conn {
    struct http_deadline deadline;
    struct http_server *server;
    struct MHD_Connection *mhd;
    struct http_request *req; /* the one that is being read or answered; NULL between requests */
    struct http_kept *kept;   /* the one that is parked, or whose answer is a flow */
    int fd;                   /* libmicrohttpd's */
    struct http_peer *peer;   /* for whom it is counted; NULL: for nobody */
    struct json_out unread;   /* a plain buffer: what came and libmicrohttpd has not got */
    struct http_scan scan;    /* of the head at its begin */
    struct in6_addr *client;  /* behind a trusted proxy; NULL: this is none */
    bool more;                /* the last read was as long as it could be, or there is something unread */
    bool reserved;            /* one of the last, see http_options */
    bool over;                /* its last answer was an early one: it is only to be closed */
    /* of those whose client has closed its side; hung_at NULL: not so */
    struct http_conn *hung_next, **hung_at;
};

/* -- a request */
enum http_state {
    STATE_HEAD,
    STATE_BODY,
    STATE_RUNNING,
    STATE_PARKED,
    STATE_ANSWERED,
    STATE_SENDING,
    STATE_ABORTED,
    STATE_COUNT
};

struct http_span {
    uint16_t at, len;
};

struct http_field {
    struct http_span name, value; /* in head */
};

struct http_reply_field {
    const char *name;
    uint16_t value_at; /* in reply_values, ends with NUL */
};

/* What http_reply_field() has copied: names and values lie in text, each with NUL. */
struct http_reply_copies {
    unsigned count;
    size_t len;
    uint16_t name_at[REPLY_COPIES_MAX], value_at[REPLY_COPIES_MAX];
    char text[];
};

/* Where in a chunked body the next byte stands. */
enum http_chunk_place {
    CHUNK_SIZE,
    CHUNK_EXTENSION,
    CHUNK_SIZE_LF,
    CHUNK_DATA,
    CHUNK_DATA_CR,
    CHUNK_DATA_LF,
    CHUNK_TRAILER,
    CHUNK_TRAILER_NAME,
    CHUNK_TRAILER_VALUE,
    CHUNK_TRAILER_LF,
    CHUNK_END_LF,
    CHUNK_END,
    CHUNK_WRONG
};

struct http_chunks {
    enum http_chunk_place place;
    unsigned digits, lines; /* lines: what framing takes since the last chunk's data */
    uint64_t left;          /* of this chunk's data; of a body that is not chunked, all of it */
};

enum http_length { LENGTH_NONE, LENGTH_ANNOUNCED, LENGTH_CHUNKED };

/* What is known of the body behind its held part; the drawing is in body_reader.c. */
enum http_rest { REST_NONE, REST_HELD, REST_READING, REST_FULL, REST_SILENT, REST_BROKEN, REST_COUNT };

struct http_request {
    struct http_server *server;
    struct http_conn *conn; /* NULL when the client has left */
    struct MHD_Connection *mhd;
    struct http_request *next; /* of the free or the dead ones */
    enum http_state state;
    bool suspended;  /* in libmicrohttpd's sense */
    bool polled;     /* it waits, not suspended */
    bool in_handler; /* which will be asked for the answer when it returns */
    uint64_t started_us, waiting_ms;
    unsigned long queued_run;

    /* read */
    enum http_method method;
    unsigned method_len; /* of method_text, which only HTTP_OTHER has */
    bool asks_options, is_1_0;
    const struct http_route *route;
    char *head; /* as it came */
    size_t head_len;
    struct bytes path, query, parts[PARTS_MAX];
    struct bytes authority; /* of a target in absolute-form; at NULL: it was none */
    unsigned field_count;
    enum http_length length;
    uint64_t announced;
    struct http_chunks chunks;
    enum problem refusal;                 /* to be told when the request is complete */
    const char *refusal_detail, *foreign; /* foreign: for PROBLEM_FOREIGN_ORIGIN, by what it was known */
    unsigned allow;
    char *body;
    size_t body_len, body_size, body_max, reserved;

    /* the rest of a body that is longer than what is held */
    enum http_rest rest;
    bool again; /* http_body_reader_more() was called from inside of piece() */
    struct http_body_reader *body_reader;
    uint64_t received;       /* of the whole body */
    uint64_t timed;          /* of it, when the time for the next part began */
    struct json_out unshown; /* a plain buffer: what libmicrohttpd has read and the owner did not take */
    struct http_deferred told;

    /* answered */
    struct http_flow *flow; /* the answer comes in pieces */
    unsigned status;
    enum problem problem;
    struct bytes note_lease; /* for the log */
    const char *note_why;
    size_t status_at; /* of the three digits in a problem */
    struct json_out out;
    struct bytes reply;
    struct http_reply_field reply_fields[REPLY_FIELDS_MAX];
    unsigned reply_field_count;
    size_t reply_values_len, reply_bytes;
    bool reply_overflow;
    struct http_reply_copies *reply_copies;

    /* not cleared for a new request */
    char reply_values[REPLY_VALUES_BYTES];
    struct http_field fields[FIELDS_MAX];
    char method_text[METHOD_MAX + 1];
    char id[ID_CHARS + 1];
    char inline_bytes[INLINE_BYTES];
    alignas(max_align_t) unsigned char scratch[HTTP_SCRATCH_BYTES];
};

enum { SPARE_OUTS = 256 };

/* -- what stays of a request that is parked, or whose answer is a flow. There may be as many as there are
 * connections: small. */
struct http_kept {
    struct http_server *server;
    struct http_conn *conn; /* NULL when it has been closed */
    const struct http_route *route;
    struct http_parked *parked; /* one of these two is NULL */
    struct http_flow *flow;
    struct http_deferred told; /* that the client has gone */
    uint64_t started_us;
    enum http_method method;
    uint16_t path_len;
    uint8_t method_len;
    bool is_gone;
    char id[ID_CHARS + 1];
    char text[]; /* path and method_text */
};

/* -- clients that have closed their side */
struct http_disconnect {
    int epoll_fd;
    struct loop_watch watch;
    struct loop_timer timer;
    struct http_conn *first;
    struct http_deferred *to_tell;
    bool look; /* at the end of this turn */
};

void http_disconnect_init(struct http_server *server);
void http_disconnect_done(struct http_server *server);
void http_disconnect_watch(struct http_conn *conn);
void http_disconnect_forget(struct http_conn *conn);
/* At the end of a turn. */
void http_disconnect_look(struct http_server *server);
/* Its owner will be told at the end of a turn, once. */
void http_disconnect_tell(struct http_kept *kept);

struct http_server {
    struct http_options options;
    struct loop *loop;
    struct MHD_Daemon *daemon;
    struct http_conn **by_fd; /* those that are open, by descriptor */
    int fd_count;
    size_t pool_bytes, reply_bytes_max, reply_pool_bytes; /* of the last libmicrohttpd's has room */
    char head_max_detail[160];
    struct loop_watch watch; /* libmicrohttpd's epoll descriptor */
    struct loop_hook hook;
    struct http_clock clock;
    struct http_disconnect disconnect;
    bool draining;
    unsigned connections, running, open, polled, lingering;
    size_t body_memory;
    struct http_request *free, *dead;
    unsigned free_count, free_low; /* how many of them there are, and were at least for a while */
    struct loop_timer trim;
    bool trims;
    unsigned mapped;
    struct json_out spare[SPARE_OUTS];
    unsigned spare_count;
    char id_prefix[ID_PREFIX_CHARS + 1];
    uint64_t id_next;

    /* of the running of libmicrohttpd */
    bool must_run, in_run;
    unsigned long run;
    uint64_t ran_us;
    unsigned unsent,
        unsent_next; /* answers that libmicrohttpd got in this run, or for the next, and has not sent */
    unsigned started, moved, shown, quiet;
};

/* enter.c */
void http_state_set(struct http_request *req, enum http_state state);
bool http_state_may(enum http_state from, enum http_state to);
enum MHD_Result http_enter(struct http_conn *conn, const char *upload, size_t *upload_len);
extern const char http_no_body_detail[];
/* It is not looked at any more, until it is resumed. */
void http_request_suspend(struct http_request *req);
void http_request_resume(struct http_request *req);
/* It is not polled any more, if it was. */
void http_request_unpoll(struct http_request *req);
/* Calls the handler; rest: of a body that is not whole, what libmicrohttpd has read behind the held part. */
enum MHD_Result http_enter_run(struct http_request *req, struct bytes rest);
/* After a call of its handler, or of whom the body's end was told: it was answered, or waits from now on. */
enum MHD_Result http_enter_leave(struct http_conn *conn, struct http_request *req);
/* Room for so many bytes of the body in all; PROBLEM_NONE or PROBLEM_OVERLOADED. */
enum problem http_body_reserve(struct http_request *req, size_t size);

/* http_head.c: makes a copy of the path the request's. */
void http_head_keep(struct http_request *req, struct bytes path);
/* The length of the head with which the text begins, with an empty line in front of it; 0: it is not whole.
 * One with a bare line feed ends there. scan is {0, 0} at first. */
size_t http_head_end(struct http_scan *scan, struct bytes text);
/* Reads and checks a head, of which too long ones need not be whole. PROBLEM_NONE, or what is wrong, with a
 * detail. */
enum problem http_head_read(struct http_request *req, struct bytes text, const char **detail);
/* What libmicrohttpd must know of it; not longer than it. */
size_t http_head_short(const struct http_request *req, char text[HEAD_SHORT_MAX]);
bool http_waits_for_continue(const struct http_request *req);
/* The first field of this name; NULL when there is none. */
const struct http_field *http_field_find(const struct http_request *req, const char *name, unsigned *count);
struct bytes http_field_value(const struct http_request *req, const struct http_field *field);

/* browser.c: NULL, or what says that a web page of another site is behind it: "origin", "site", "host".
 */
const char *http_browser_why(const struct http_request *req);

/* route.c: finds the route and what speaks against the request before its body is read. */
void http_route_find(struct http_request *req);
/* Fills the parts of the request from its route and its path. */
void http_route_parts(struct http_request *req);
void http_reply_allow(struct http_request *req);
bool http_has_json_type(const struct http_request *req);

/* receive.c: runs libmicrohttpd. */
void http_recv_run(struct http_server *server);
void http_recv_watch(struct http_conn *conn);
/* What is unread is dropped. */
void http_recv_forget(struct http_conn *conn);
/* Time is up: the connection's request, also if only its request line has come; NULL: none. */
struct http_request *http_recv_cut(struct http_conn *conn);

/* chunks.c */
/* How many bytes of the block belong to the body. */
size_t http_chunks_feed(struct http_chunks *chunks, struct bytes block);

/* body_reader.c: the held part is there; piece: what libmicrohttpd has read behind it. */
bool http_rest_may(enum http_rest from, enum http_rest to);
enum MHD_Result http_body_reader_begin(struct http_request *req, struct bytes piece);
/* After the handler. */
enum MHD_Result http_body_reader_held(struct http_request *req, struct bytes piece);
/* The next piece has been read, or (empty) the whole body. */
enum MHD_Result http_body_reader_enter(struct http_request *req, struct bytes piece);
/* The client has closed its side, or was silent for too long, or libmicrohttpd has closed the connection. */
void http_body_reader_hung(struct http_request *req);
void http_body_reader_silent(struct http_request *req);
void http_body_reader_closed(struct http_request *req);
/* The request has been ended: nobody is told anything any more. */
void http_body_reader_leave(struct http_request *req);

/* reply.c: gives the answer to libmicrohttpd. */
enum MHD_Result http_reply_queue(struct http_request *req);
/* The i-th field of the answer that is sent; false behind the last. name NULL: left out. */
bool http_reply_at(const struct http_request *req, unsigned i, const char **name, const char **value);
/* Whether it is written past libmicrohttpd. */
bool http_reply_is_early(const struct http_request *req);
/* Adds the fields of the request's answer. */
void http_reply_fields(const struct http_request *req, struct MHD_Response *response);
void http_problem_write(struct http_request *req, enum problem problem, const char *detail);

/* suspend.c: what stays of the request, and the request made of it again, in state PARKED. */
struct http_kept *http_kept_new(const struct http_request *req);
struct http_request *http_kept_request(const struct http_kept *kept, struct http_conn *conn);
void http_kept_free(struct http_kept *kept);

/* listen.c: a client that does not acknowledge what it is sent is dead as soon as one that is not sent
 * anything. */
void http_socket_hurry(int fd);

/* peers.c */
struct in6_addr http_peer_address(const struct sockaddr *address);
const char *http_peer_text(const struct in6_addr *address, char text[HTTP_ADDRESS_SIZE]);
bool http_peers_trust(const struct http_peers *peers, const struct in6_addr *address);
bool http_peers_full(struct http_peers *peers, const struct in6_addr *address);
struct http_peer *http_peer_enter(struct http_peers *peers, const struct in6_addr *address);
void http_peer_leave(struct http_peers *peers, struct http_peer *peer);
/* The head of a request was read: whose it is, if a trusted proxy says so. false: that one has too many. */
bool http_peer_forwarded(struct http_request *req);
/* The connection, or the request that a trusted proxy has forwarded, is over. */
void http_peer_over(struct http_conn *conn);

/* raw.c: writes the problem to the socket past libmicrohttpd; the connection is not used any more.
 * MHD_NO, which makes libmicrohttpd close it. */
enum MHD_Result http_raw_refuse(struct http_request *req, enum problem problem, const char *detail);
/* The same from outside of the handler: the socket is shut down. */
void http_raw_timeout(struct http_conn *conn);
/* A request that its handler has answered before any of its body was read: the same with that answer. */
enum MHD_Result http_raw_answer(struct http_request *req);
/* Only tells the client: the request is still its owner's. */
void http_raw_say(const struct http_request *req, enum problem problem);
/* The head of the answer; length -1: of a body in chunks, or, in HTTP/1.0, up to the end of the connection.
 */
void http_raw_head(const struct http_request *req, unsigned status, int64_t length, struct json_out *out);
/* The client sees that it was cut off: a reset, and nothing that looks like an end. */
void http_raw_reset(int fd);
/* Drops what still comes, behind libmicrohttpd's back. */
void http_linger_begin(struct http_conn *conn);
void http_linger_end(struct http_deadline *deadline);

/* request_pool.c */
void http_request_pool_init(struct http_server *server);
void http_request_pool_done(struct http_server *server);
struct http_request *http_request_new(struct http_conn *conn);
/* One without an id; conn may be NULL. */
struct http_request *http_request_take(struct http_server *server, struct http_conn *conn);
void http_request_free(struct http_request *req);
/* Freed after this run of libmicrohttpd, or the next: the caller may still look at it. */
void http_request_bury(struct http_request *req);
/* The memory is there, or the process ends: nothing could be answered without it. */
void *http_must_alloc(size_t size);

#endif
