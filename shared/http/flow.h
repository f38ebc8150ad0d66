/* flow.h - answers that come in pieces: what flow.c, stream.c, response_writer.c and early.c
 * share; nobody outside of the HTTP layer includes it. */
#ifndef PAWL_SHARED_HTTP_FLOW_H
#define PAWL_SHARED_HTTP_FLOW_H

#include "shared/http/http_internal.h"

/* Held by its owner, by the connection, and by libmicrohttpd's response;
 * the last of them ends the request. */
enum { HTTP_FLOW_LOOKS = 4 }; /* within the send timeout */
enum http_flow_end { FLOW_OPEN, FLOW_WHOLE, FLOW_CUT };

struct http_flow {
    struct http_kept *kept;
    struct http_stream *stream; /* one of these two, as long as its owner has not ended it */
    struct http_response_writer *response_writer;
    struct json_out unsent; /* a plain buffer, of which the first `sent` bytes have gone */
    size_t sent;
    struct http_deferred room; /* of an outlet */
    struct loop_watch watch;
    int64_t length, left; /* of the body, and what its owner has not written of it; -1: not known */
    unsigned status, holds, idle_looks;
    int queued; /* what the kernel had for the client at the last look */
    enum http_flow_end end;
    bool is_response_writer;
    bool no_body;     /* of the answer: HEAD, 204, 304 */
    bool until_close; /* only the end of the connection tells the client where the body ends */
    bool waits;       /* suspended in libmicrohttpd: there was nothing to send */
    bool wants_room;
    bool moved; /* something was given to the kernel since the last look */
    bool early; /* written past libmicrohttpd */
    bool begun; /* and that has begun; the connection is suspended */
    bool watched;
};

/* flow.c: of a request that is answered with pieces; held by the connection, if that is still there. */
struct http_flow *http_flow_new(struct http_request *req, unsigned status);
/* When all of it is set: hands it over, unless the handler is to return first. */
enum step http_flow_start(struct http_request *req);
/* Gives the head to libmicrohttpd; the request is over. */
enum MHD_Result http_flow_queue(struct http_request *req);
void http_flow_append(struct http_flow *flow, struct bytes piece);
/* There is something to send, or the end. */
void http_flow_wake(struct http_flow *flow);
/* What its owner has done is told to the owner of the server, and the owner's hold is released. */
void http_flow_leave(struct http_flow *flow);
void http_flow_release(struct http_flow *flow);
/* Its connection is closed, or goes on with the next request. */
void http_flow_closed(struct http_kept *kept, enum MHD_RequestTerminationCode code);
/* libmicrohttpd, or the kernel, has taken something. */
void http_flow_moved(struct http_flow *flow);
/* From time to time: does the client take anything? */
void http_flow_look(struct http_conn *conn);
void http_flow_told(struct http_deferred *told);

/* early.c: makes the request's answer a flow that is written past libmicrohttpd. */
void http_early_answer(struct http_request *req);
/* With its head; to be called for each flow of a request whose body is not whole, and for each stream. */
void http_early_flow(struct http_request *req);
enum MHD_Result http_early_queue(struct http_request *req);
/* Around each piece of a body in chunks. */
void http_early_chunk(struct http_flow *flow, size_t len);
void http_early_chunk_end(struct http_flow *flow);
void http_early_wake(struct http_flow *flow);
/* It cannot be sent any more; the connection is given back to libmicrohttpd to be closed. */
void http_early_drop(struct http_flow *flow);
/* Of an early answer that has been sent: a client that sends on is read from for a little while. */
enum MHD_Result http_early_over(struct http_conn *conn);
void http_early_stop(struct http_server *server);

#endif
