/* http_internal.h - what the files of the HTTP layer share; nobody else includes it.
 *
 *   server.c           connections; deadlines; clients that disconnect
 *   listen.c           listening sockets; how many connections each address has; trusted proxies
 *   unix_socket.c      clients over a socket in the file system, or at the address of Pawl's own requests
 *   socket.c           what goes through a connection's socket, plain or in TLS
 *   receive.c          what libmicrohttpd receives: the head of a request, the framing of its body
 *   route.c            which route, what body it takes; what a web page made a browser send; what is read
 *   request.c          libmicrohttpd runs, and takes a request from its head to its answer
 *   suspend.c          requests that wait for long; the memory of all of them
 *   body_reader.c      bodies that come in pieces
 *   raw.c              what is written past libmicrohttpd, and what becomes of the connection then
 *   response_writer.c  answers that come in pieces
 *   answer.c           the parser of other servers' answers (answer.h), which needs none of these
 *
 * A request's states; http_state_may() knows the same, and a test compares the two:
 *
 *   HEAD --its head is whole--> BODY
 *   HEAD --it was refused--> ABORTED                 past libmicrohttpd; the connection ends
 *   BODY --accepted; the body, if any, is read--> RUNNING     its handler has been called
 *   BODY --it was refused--> ABORTED
 *   RUNNING --it waits for long--> SUSPENDED         a struct http_kept stands for it
 *   SUSPENDED --it goes on--> RUNNING
 *   RUNNING --the answer is there--> ANSWERED        libmicrohttpd does not have it yet
 *   ANSWERED --libmicrohttpd has it--> SENDING       of one in pieces its head: http_kept stays
 *
 * The struct goes back to the server when libmicrohttpd reports that the request is completed; when that
 * comes before ANSWERED (the client has left), it stays until the handler's continuation has answered into
 * the void.
 *
 * libmicrohttpd's pointer for a request is the connection, of which either req or kept is set (of an answer
 * in pieces whose head libmicrohttpd does not have yet: both; behind an early answer: neither). A suspended
 * request's connection is suspended in libmicrohttpd, too, or has been closed before. */
#ifndef PAWL_SHARED_HTTP_INTERNAL_H
#define PAWL_SHARED_HTTP_INTERNAL_H

#include <microhttpd.h>
#include <netinet/in.h>
#include <stdalign.h>
#include <stddef.h>

#include "shared/http/http_server.h"
#include "shared/http/pieces.h"

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
    POOL_OUTS = 256,
    ID_DIGITS = 12 /* of a request's number, at the end of its UUID */
};

/* -- deadlines. One list for each phase; in each, the oldest first, because all wait equally long. */
enum http_phase {
    PHASE_NONE,
    PHASE_HEAD,
    PHASE_BODY,
    PHASE_SEND,
    PHASE_TAKE, /* an answer in pieces is sent: does its client take anything? */
    PHASE_OVER, /* an early answer has been sent: the client may read it, and closes */
    PHASE_LINGER,
    PHASE_COUNT
};

struct http_deadline {
    TAILQ_ENTRY(http_deadline) place;
    uint64_t since_ms;
    enum http_phase phase;
};

struct http_clock {
    TAILQ_HEAD(http_deadlines, http_deadline) lists[PHASE_COUNT];
    unsigned timeout_ms[PHASE_COUNT];
    uint64_t now_ms;   /* as of the start of this run, or of what was done since */
    uint64_t armed_ms; /* when the timer will fire; UINT64_MAX: never */
    struct loop_timer timer;
};

/* -- calls deferred to the end of the turn, because an owner is never called from inside a call of its own */
struct http_deferred {
    struct http_deferred *next, **at; /* at NULL: not on the list */
    void (*run)(struct http_deferred *deferred);
};

/* -- a connection, from accept to close */

/* How far a head has been searched for its end, and where the line begins that is not whole. */
struct http_scan {
    uint32_t at, line;
};

struct http_conn {
    struct http_deadline deadline;
    struct http_server *server;
    struct MHD_Connection *mhd;
    struct http_request *req;  /* the one that is being read or answered; NULL between requests */
    struct http_kept *kept;    /* the one that is suspended, or answered in pieces */
    int fd;                    /* libmicrohttpd's */
    struct tls_peer *tls;      /* NULL: plain */
    struct http_flush *flush;  /* of a handshake; NULL: nothing waits for the socket */
    struct http_peer *peer;    /* the address that it counts for; NULL: none */
    struct json_out unread;    /* a plain buffer: what came and libmicrohttpd has not got */
    struct http_scan scan;     /* of the head at its begin */
    struct in6_addr *client;   /* behind a trusted proxy; NULL: this is none */
    bool more;                 /* the last read was as long as it could be, or there is something unread */
    bool is_unix;              /* it came by unix_fd */
    bool is_own;               /* it came by own_fd */
    bool reserved;             /* one of the last, see http_options */
    bool is_late;              /* it is closed, for nothing has come in time */
    bool over;                 /* its last answer was an early one: it is only to be closed */
    struct http_deferred left; /* on the list of those whose client has closed its side; run is NULL */
};

/* -- a request */
enum http_state {
    STATE_HEAD,
    STATE_BODY,
    STATE_RUNNING,
    STATE_SUSPENDED,
    STATE_ANSWERED,
    STATE_SENDING,
    STATE_ABORTED,
    STATE_COUNT
};

struct http_span {
    uint16_t at, len;
};

struct http_field {
    struct http_span name, value; /* in head.text */
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

struct http_head { /* receive.c */
    char *text;    /* as it came */
    size_t len;
    struct bytes path, query, parts[PARTS_MAX];
    struct bytes authority; /* of a target in absolute-form; at NULL: it was none */
    unsigned method_len;    /* of method_text, which only HTTP_OTHER has */
    unsigned field_count;
    bool asks_options, is_1_0;
    enum http_length length;
    uint64_t announced;
    struct http_chunks chunks;
};

struct http_refusal { /* route.c: sent when the request is complete */
    enum problem problem;
    const char *detail;
    struct {
        const char *name;
        struct bytes value;
    } members[HTTP_REFUSAL_MEMBERS]; /* of the problem, beside the standard ones */
    unsigned member_count, allow;
};

struct http_body { /* request.c: the held part */
    char *at;
    size_t len, size, max, reserved; /* max: of the held part */
};

/* What is known of the body behind its held part; the drawing is in body_reader.c. */
enum http_rest_state { REST_NONE, REST_HELD, REST_READING, REST_FULL, REST_SILENT, REST_BROKEN, REST_COUNT };

struct http_rest { /* body_reader.c: the rest of a body that is longer than what is held */
    enum http_rest_state state;
    bool again; /* http_body_reader_more() was called from inside of piece() */
    struct http_body_reader *reader;
    uint64_t received;       /* of the whole body */
    uint64_t timed;          /* of it, when the time for the next part began */
    struct json_out unshown; /* a plain buffer: what libmicrohttpd has read and the owner did not take */
    struct http_deferred deferred;
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

struct http_reply {                 /* request.c */
    struct http_response *response; /* the answer comes in pieces */
    unsigned status;
    enum problem problem;
    size_t status_at; /* of the three digits in a problem */
    struct json_out out;
    size_t untaken; /* of out, what counts as memory of answers */
    struct bytes body;
    struct http_reply_field fields[REPLY_FIELDS_MAX];
    unsigned field_count;
    size_t values_len, bytes;
    bool overflow;
    struct http_reply_copies *copies;
};

struct http_request {
    struct http_server *server;
    struct http_conn *conn; /* NULL when the client has left */
    struct MHD_Connection *mhd;
    struct http_request *next; /* of the free or the dead ones */
    enum http_state state;
    bool suspended; /* in libmicrohttpd's sense */
    bool polled;    /* it waits, not suspended */
    bool was_handled;
    bool in_handler; /* which will be asked for the answer when it returns */
    uint64_t id, started_us, waiting_ms;
    unsigned judged; /* as of *options.judged_by */
    unsigned long queued_run;
    enum http_method method;
    const struct http_route *route;
    struct http_head head;
    struct http_refusal refusal;
    struct http_body body;
    struct http_rest rest;
    struct http_reply reply;
    struct bytes note_lease, note_reason; /* for the log */
    const char *note_why;
    const char *identity, *identified_by; /* who asks; NULL: nobody */
    struct bytes shown;                   /* in head.text */

    /* not cleared for a new request */
    char reply_values[REPLY_VALUES_BYTES];
    struct http_field fields[FIELDS_MAX];
    char method_text[METHOD_MAX + 1];
    char inline_bytes[INLINE_BYTES];
    alignas(max_align_t) unsigned char scratch[HTTP_SCRATCH_BYTES];
};

/* What stays of a request that is suspended, or answered in pieces. There may be as many as there are
 * connections: small. */
struct http_kept {
    struct http_server *server;
    struct http_conn *conn; /* NULL when it has been closed */
    const struct http_route *route;
    const char *identity;
    struct http_suspended *suspended; /* one of these two is NULL */
    struct http_response *response;
    struct http_deferred deferred; /* that the client has gone */
    uint64_t id, started_us;
    enum http_method method;
    unsigned judged;
    uint16_t path_len, shown_len;
    uint8_t method_len;
    bool is_gone;
    char text[]; /* path, shown and method_text */
};

/* An answer in pieces. Held by its owner, by the connection, and by libmicrohttpd's response; the last of
 * them ends the request. */
enum { HTTP_RESPONSE_LOOKS = 4 }; /* within the send timeout */
enum http_response_end { RESPONSE_OPEN, RESPONSE_WHOLE, RESPONSE_CUT };

struct http_response {
    struct http_kept *kept;
    struct http_response_writer *writer; /* as long as its owner has not ended it */
    struct json_out unsent;              /* a plain buffer, of which the first `sent` bytes have gone */
    size_t sent;
    struct http_deferred room;
    struct loop_watch watch;
    int64_t length, left; /* of the body, and what its owner has not written of it; -1: not known */
    unsigned status, holds, idle_looks;
    int queued; /* what the kernel had for the client at the last look */
    enum http_response_end end;
    bool is_stream;   /* it has no end: a client that does not read is given up */
    bool no_body;     /* of the answer: HEAD, 204, 304 */
    bool until_close; /* only the end of the connection shows the client where the body ends */
    bool waits;       /* suspended in libmicrohttpd: there was nothing to send */
    bool wants_room;
    bool moved; /* something was given to the kernel since the last look */
    bool early; /* written past libmicrohttpd */
    bool begun; /* and that has begun; the connection is suspended */
    bool watched;
};

/* -- the server */

struct http_disconnect { /* server.c: clients that have closed their side */
    int epoll_fd;
    struct loop_watch watch;
    struct loop_timer timer;
    struct http_deferred *left, *deferred;
    bool look; /* at the end of this turn */
};

struct http_request_pool { /* suspend.c */
    struct http_request *free, *dead;
    unsigned free_count, free_low; /* how many of them there are, and were at least for a while */
    struct loop_timer trim;
    bool trims;
    unsigned mapped;
    struct json_out outs[POOL_OUTS];
    unsigned out_count;
};

struct http_runs { /* request.c: of libmicrohttpd */
    bool is_due, is_on;
    unsigned long count;
    uint64_t ended_us;
    /* answers that libmicrohttpd got in this run, or for the next, and has not sent */
    unsigned unsent, unsent_next;
    unsigned started, moved, shown, quiet;
};

enum { HTTP_LISTENERS = 3 }; /* unix_fd, own_fd and listen_fd */
struct http_listener {
    struct http_server *server;
    struct loop_watch watch;
    struct loop_timer again;
    int fd; /* 0: none */
};

struct http_server {
    struct http_options options;
    struct loop *loop;
    struct MHD_Daemon *daemon;
    struct http_conn **by_fd; /* those that are open, by descriptor */
    int fd_count;
    size_t pool_bytes, reply_bytes_max, reply_pool_bytes; /* of the last libmicrohttpd's has room */
    char head_max_detail[160];
    struct loop_watch watch; /* libmicrohttpd's epoll descriptor */
    struct http_listener listeners[HTTP_LISTENERS];
    uid_t uid_of_others;
    struct loop_hook hook;
    struct http_clock clock;
    struct http_disconnect disconnect;
    struct http_request_pool pool;
    struct http_runs runs;
    bool draining;
    unsigned connections, running, open, polled, lingering;
    char id_prefix[HTTP_ID_SIZE - ID_DIGITS];
    uint64_t id_next;
};

/* server.c */
/* Takes the deadline off its list and puts it on that of the phase, from now on; PHASE_NONE: on none. */
void http_clock_set(struct http_server *server, struct http_deadline *deadline, enum http_phase phase);
/* Once, however often it is added. */
void http_deferred_add(struct http_server *server, struct http_deferred *deferred);
void http_deferred_remove(struct http_deferred *deferred);
/* At the end of a turn: those that have closed their side, and the deferred calls. */
void http_disconnect_look(struct http_server *server);
/* Defers the call of the owner's `gone`, once. */
void http_disconnect_report(struct http_kept *kept);

/* listen.c: a client that does not acknowledge what it is sent is dead as soon as one that is not sent
 * anything. */
void http_socket_hurry(int fd);
struct in6_addr http_peer_address(const struct sockaddr *address);
const char *http_peer_text(const struct in6_addr *address, char text[HTTP_ADDRESS_SIZE]);
/* A number of what counts as one address, which nobody outside can choose; key is cut to that. */
uint64_t http_peers_hash(const struct http_peers *peers, struct in6_addr *key);
bool http_peers_trust(const struct http_peers *peers, const struct in6_addr *address);
bool http_peers_full(struct http_peers *peers, const struct in6_addr *address);
struct http_peer *http_peer_enter(struct http_peers *peers, const struct in6_addr *address);
void http_peer_leave(struct http_peers *peers, struct http_peer *peer);
/* The head of a request was read: finds its client, if a trusted proxy names one. false: that one has too
 * many. */
bool http_peer_forwarded(struct http_request *req);
/* The connection, or the request that a trusted proxy has forwarded, is over. */
void http_peer_over(struct http_conn *conn);

/* unix_socket.c */
/* What stands for the address of who connected here: another one for each uid. */
struct in6_addr http_unix_peer(int fd);
void http_listeners_watch(struct http_server *server);
/* Takes what the kernel has already accepted for us. */
void http_listeners_done(struct http_server *server);
bool http_conn_is_own(const struct http_conn *conn);

/* socket.c */
/* Runs libmicrohttpd, whose calls for its sockets are taken here meanwhile. */
void http_socket_run(struct http_server *server);
void http_socket_open(struct http_conn *conn);
void http_socket_close(struct http_conn *conn);
/* As recv(2), send(2) and shutdown(2) of the bytes of HTTP, without waiting. A read sets conn->more. What is
 * written goes past libmicrohttpd, which must have nothing half sent. */
ssize_t http_socket_read(struct http_conn *conn, char *block, size_t size);
ssize_t http_socket_write(struct http_conn *conn, const struct iovec *parts, int count);
void http_socket_shut(struct http_conn *conn, int how);
/* Whether it has certainly less than so many bytes to be read. */
bool http_socket_lacks(const struct http_conn *conn, uint64_t wanted);

/* receive.c: what libmicrohttpd gets for a recv(2). */
ssize_t http_receive(struct http_conn *conn, char *block, size_t len);
/* Runs libmicrohttpd, and sees to what the next requests have sent already. */
void http_recv_run(struct http_server *server);
void http_recv_watch(struct http_conn *conn);
/* What is unread is dropped. */
void http_recv_forget(struct http_conn *conn);
/* Time is up: the connection's request, also if only its request line has come; NULL: none. */
struct http_request *http_recv_cut(struct http_conn *conn);
/* Makes a copy of both the request's; shown stands right behind path. */
void http_head_keep(struct http_request *req, struct bytes path, struct bytes shown);
bool http_waits_for_continue(const struct http_request *req);
/* Of enum http_method the one with this bit; NULL behind the last that has a name. */
const char *http_method_name(unsigned bit);
/* The first field of this name; NULL when there is none. */
const struct http_field *http_field_find(const struct http_request *req, const char *name, unsigned *count);
struct bytes http_field_value(const struct http_request *req, const struct http_field *field);

/* route.c: finds the route and what speaks against the request before its body is read. */
void http_route_find(struct http_request *req);
/* Whether those who judge still judge by the same. */
static inline bool http_is_judged(const struct http_server *server, unsigned judged)
{
    return server->options.judged_by == NULL || *server->options.judged_by == judged;
}
/* Its body has come meanwhile: if those who judge have others to judge by, they are asked again. */
void http_judge_again(struct http_request *req);
/* Fills the parts of the request from its route and its path. */
void http_route_parts(struct http_request *req);
bool http_has_json_type(const struct http_request *req);

/* request.c */
void http_state_set(struct http_request *req, enum http_state state);
bool http_state_may(enum http_state from, enum http_state to);
/* What libmicrohttpd calls (MHD_AccessHandlerCallback), and the loop. */
enum MHD_Result http_on_request(void *cls, struct MHD_Connection *mhd, const char *url, const char *method,
                                const char *version, const char *upload, size_t *upload_len, void **context);
void http_turn_end(struct loop_hook *hook);
void http_run(struct http_server *server);
/* A run at the end of this turn, also if the server's hook has been called already. */
void http_run_soon(struct http_server *server);
void http_free_dead(struct http_server *server);
extern const char http_no_body_detail[];
/* In the scratch space: no handler runs. */
const char *http_body_max_detail(struct http_request *req);
/* libmicrohttpd does not look at its connection any more, until it is resumed. */
void http_connection_suspend(struct http_request *req);
void http_connection_resume(struct http_request *req);
/* It is not polled any more, if it was. */
void http_request_unpoll(struct http_request *req);
/* Calls the handler; rest: of a body that is not whole, what libmicrohttpd has read behind the held part. */
enum MHD_Result http_enter_run(struct http_request *req, struct bytes rest);
/* After a call of its handler, or of its body reader: it was answered, or waits from now on. */
enum MHD_Result http_enter_leave(struct http_conn *conn, struct http_request *req);
/* Room for so many bytes of the body in all; PROBLEM_NONE or PROBLEM_OVERLOADED. */
enum problem http_body_reserve(struct http_request *req, size_t size);
/* The i-th field of the answer; false: it has no more. NULL: left out. One whose head comes from elsewhere
 * says itself how its body may be cached. */
bool http_reply_at(const struct http_request *req, unsigned i, const char **name, const char **value);
/* The whole body of the answer, with its type. */
void http_problem_write(struct http_request *req, enum problem problem, const char *detail);
/* Tells the owner that the request has ended. */
void http_reply_report(const struct http_request *req);
/* Gives the answer to libmicrohttpd. */
enum MHD_Result http_reply_queue(struct http_request *req);
/* Whether it is written past libmicrohttpd. */
bool http_reply_is_early(const struct http_request *req);
/* Adds the fields of the request's answer. */
void http_reply_fields(const struct http_request *req, struct MHD_Response *response);

/* suspend.c */
/* What stays of the request, and the request made of it again, in state SUSPENDED. */
struct http_kept *http_kept_new(const struct http_request *req);
struct http_request *http_kept_request(const struct http_kept *kept, struct http_conn *conn);
void http_kept_free(struct http_kept *kept);
/* As http_stands(). Of one whose client has gone nobody asks any more. */
bool http_kept_stands(struct http_kept *kept);
void http_request_pool_init(struct http_server *server);
void http_request_pool_done(struct http_server *server);
struct http_request *http_request_new(struct http_conn *conn);
/* One without an id; conn may be NULL. */
struct http_request *http_request_take(struct http_server *server, struct http_conn *conn);
void http_request_free(struct http_request *req);
/* Freed after this run of libmicrohttpd, or the next: the caller may still look at it. */
void http_request_bury(struct http_request *req);

/* body_reader.c: the held part is there; piece: what libmicrohttpd has read behind it. */
bool http_rest_may(enum http_rest_state from, enum http_rest_state to);
enum MHD_Result http_body_reader_begin(struct http_request *req, struct bytes piece);
/* After the handler. */
enum MHD_Result http_body_reader_held(struct http_request *req, struct bytes piece);
/* The next piece has been read, or (empty) the whole body. */
enum MHD_Result http_body_reader_enter(struct http_request *req, struct bytes piece);
/* The client has closed its side, or was silent for too long, or libmicrohttpd has closed the connection. */
void http_body_reader_disconnected(struct http_request *req);
void http_body_reader_silent(struct http_request *req);
void http_body_reader_closed(struct http_request *req);
/* The request has been ended: its body reader is called no more. */
void http_body_reader_leave(struct http_request *req);

/* raw.c */
/* Writes the problem to the socket past libmicrohttpd; the connection is not used any more. MHD_NO, which
 * makes libmicrohttpd close it. */
enum MHD_Result http_raw_refuse(struct http_request *req, enum problem problem, const char *detail);
/* The same from outside of the handler: the socket is shut down. */
void http_raw_timeout(struct http_conn *conn);
/* A request that its handler has answered before any of its body was read: the same with that answer. */
enum MHD_Result http_raw_answer(struct http_request *req);
/* The client gets the problem; the request is still its owner's. */
void http_raw_say(const struct http_request *req, enum problem problem);
/* The head of the answer; length -1: of a body in chunks, or, in HTTP/1.0, up to the end of the connection.
 */
void http_raw_head(const struct http_request *req, unsigned status, int64_t length, struct json_out *out);
/* The client sees that it was cut off: a reset, and nothing that looks like an end. */
void http_raw_reset(int fd);
/* Drops what still comes, behind libmicrohttpd's back. */
void http_linger_begin(struct http_conn *conn);
void http_linger_end(struct http_deadline *deadline);

/* response_writer.c: the head is given to libmicrohttpd, or written past it; the request is over. */
enum MHD_Result http_response_queue(struct http_request *req);
/* Its connection is closed, or goes on with the next request. */
void http_response_closed(struct http_kept *kept, enum MHD_RequestTerminationCode code);
/* From time to time: does the client take anything? */
void http_response_look(struct http_conn *conn);
/* Makes the request's answer one that is written past libmicrohttpd. */
void http_early_answer(struct http_request *req);
/* It cannot be sent any more; the connection is given back to libmicrohttpd to be closed. */
void http_early_drop(struct http_response *response);
/* Of an early answer that has been sent: a client that sends on is read from for a little while. */
enum MHD_Result http_early_over(struct http_conn *conn);
void http_early_stop(struct http_server *server);

#endif
