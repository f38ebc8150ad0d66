/* pieces.h - bodies of requests and of answers that come in pieces, with back-pressure; streams. */
#ifndef PAWL_SHARED_HTTP_PIECES_H
#define PAWL_SHARED_HTTP_PIECES_H

#include "shared/http/http.h"

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
/* 200 and this Content-Type. The headers must fit (asserted). For HEAD the stream is gone from the beginning,
 * and `gone` is called. */
enum step http_stream_begin(struct http_request *req, struct http_response_writer *writer, const char *type);
/* Copied, and sent as one chunk. false: more than HTTP_STREAM_UNSENT_MAX bytes would wait for a client that
 * does not read, or it has gone: nothing was taken; the owner ends the stream. */
bool http_stream_write(struct http_response_writer *writer, struct bytes piece);
/* The body is whole; or it is not and never will be: then the connection is cut, so that the client sees it.
 * Fewer bytes than `length` are never whole. What was written to a stream still leaves, within the send
 * timeout. To be called once, in `gone` or anywhere else; the struct is the owner's again. */
enum http_response_writer_end { HTTP_RESPONSE_WRITER_WHOLE, HTTP_RESPONSE_WRITER_CUT };
void http_response_writer_end(struct http_response_writer *writer, enum http_response_writer_end end);
/* As http_stands(), until then. */
bool http_response_writer_stands(const struct http_response_writer *writer);

#endif
