/* http_chunks.c - the framing of chunked requests, read byte by byte, before libmicrohttpd does.
 *
 * RFC 9112, 7.1, ends every line of it with CR LF. libmicrohttpd 0.9.75 takes a bare LF, too (connection.c,
 * process_request_body), and a proxy in front that does not would see other requests than we do. What it
 * reads it never shows: only the data. So its recv() is ours: a shared library's call of a function that the
 * program has goes to the program's (ld.so(8), symbol interposition). The bytes are looked at first, and of a
 * block with a fault it gets nothing.
 *
 * The bytes behind a head that came together with it are in its buffer already. How many: all that came on
 * the connection, less what lies before. Its buffer is always the same block of memory, and a request begins
 * at its begin, or behind empty lines (MHD_pool_reset(); tried). */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "shared/ascii.h"
#include "shared/http_internal.h"

/* Sizes of 15 digits; extensions and trailers are forgotten, so not much is taken of them. */
enum { CHUNK_DIGITS_MAX = 15, CHUNK_LINES_MAX = 4096 };

/* recv() has no argument that leads to it. */
static _Thread_local struct http_server *reading;

void http_chunks_run(struct http_server *server)
{
    reading = server;
    MHD_run(server->daemon);
    reading = NULL;
}

/* -- the grammar */

static bool is_name_char(char c)
{
    return ascii_is_alnum(c) || (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static bool is_text_char(char c)
{
    return c == '\t' || ((unsigned char)c >= ' ' && c != 0x7f);
}

static enum http_chunk_place size_next(struct http_chunks *chunks, char c)
{
    int digit = ascii_hex_value(c);

    if (digit >= 0) {
        chunks->left = chunks->left * 16 + (uint64_t)digit;
        return ++chunks->digits <= CHUNK_DIGITS_MAX ? CHUNK_SIZE : CHUNK_WRONG;
    }
    if (chunks->digits == 0) {
        return CHUNK_WRONG;
    }
    return c == '\r' ? CHUNK_SIZE_LF : c == ';' ? CHUNK_EXTENSION : CHUNK_WRONG;
}

/* The place behind one byte that is none of a chunk's data. */
static enum http_chunk_place chunk_next(struct http_chunks *chunks, char c)
{
    switch (chunks->place) {
    case CHUNK_SIZE: return size_next(chunks, c);
    case CHUNK_EXTENSION: return c == '\r' ? CHUNK_SIZE_LF : is_text_char(c) ? CHUNK_EXTENSION : CHUNK_WRONG;
    case CHUNK_SIZE_LF:
        chunks->digits = 0;
        return c != '\n' ? CHUNK_WRONG : chunks->left > 0 ? CHUNK_DATA : CHUNK_TRAILER;
    case CHUNK_DATA_CR: return c == '\r' ? CHUNK_DATA_LF : CHUNK_WRONG;
    case CHUNK_DATA_LF: return c == '\n' ? CHUNK_SIZE : CHUNK_WRONG;
    case CHUNK_TRAILER: return c == '\r' ? CHUNK_END_LF : is_name_char(c) ? CHUNK_TRAILER_NAME : CHUNK_WRONG;
    case CHUNK_TRAILER_NAME:
        return c == ':' ? CHUNK_TRAILER_VALUE : is_name_char(c) ? CHUNK_TRAILER_NAME : CHUNK_WRONG;
    case CHUNK_TRAILER_VALUE:
        return c == '\r' ? CHUNK_TRAILER_LF : is_text_char(c) ? CHUNK_TRAILER_VALUE : CHUNK_WRONG;
    case CHUNK_TRAILER_LF: return c == '\n' ? CHUNK_TRAILER : CHUNK_WRONG;
    case CHUNK_END_LF: return c == '\n' ? CHUNK_END : CHUNK_WRONG;
    case CHUNK_DATA:
    case CHUNK_END:
    case CHUNK_WRONG: break;
    }
    return chunks->place;
}

size_t http_chunks_feed(struct http_chunks *chunks, struct bytes block)
{
    size_t at = 0;

    while (at < block.len && chunks->place != CHUNK_END && chunks->place != CHUNK_WRONG) {
        if (chunks->place == CHUNK_DATA) {
            size_t len = block.len - at < chunks->left ? block.len - at : (size_t)chunks->left;

            at += len;
            chunks->left -= len;
            chunks->place = chunks->left > 0 ? CHUNK_DATA : CHUNK_DATA_CR;
            continue;
        }
        chunks->lines = chunks->place == CHUNK_DATA_LF ? 0 : chunks->lines + 1;
        chunks->place = chunks->lines > CHUNK_LINES_MAX ? CHUNK_WRONG : chunk_next(chunks, block.at[at++]);
    }
    return at;
}

/* -- where a request begins and ends among the bytes of its connection */

enum problem http_chunks_begin(struct http_request *req, const char *method, size_t head_len)
{
    struct http_conn *conn = req->conn;
    ptrdiff_t skipped = method - conn->buffer;
    uint32_t head_end = conn->next_at + (uint32_t)(skipped + (ptrdiff_t)head_len);
    uint32_t waiting = conn->received - head_end;

    if (skipped != 0 && skipped != 2) {
        return PROBLEM_INVALID_REQUEST; /* more than one empty line in front, or one with a bare LF */
    }
    conn->next_at = head_end + (uint32_t)req->announced;
    if (req->length != LENGTH_CHUNKED) {
        return PROBLEM_NONE;
    }
    if (waiting > req->server->pool_bytes) {
        return PROBLEM_INTERNAL; /* another libmicrohttpd, that keeps its bytes elsewhere */
    }
    conn->next_at += (uint32_t)http_chunks_feed(&req->chunks, (struct bytes){method + head_len, waiting});
    return req->chunks.place == CHUNK_WRONG ? PROBLEM_INVALID_REQUEST : PROBLEM_NONE;
}

const char http_chunks_detail[] =
    "The request is not framed as HTTP/1.1 has it: one empty line in front at most, the "
    "sizes of chunks in hexadecimal, "
    "and each line ends with CR LF.";

/* false: the block is not to be seen by anybody. */
static bool conn_received(struct http_conn *conn, struct bytes block)
{
    struct http_request *req = conn->req;

    if (conn->buffer == NULL) {
        conn->buffer = block.at;
    }
    conn->received += (uint32_t)block.len;
    if (req == NULL || req->length != LENGTH_CHUNKED || req->state == STATE_HEAD) {
        return true;
    }
    conn->next_at += (uint32_t)http_chunks_feed(&req->chunks, block);
    if (req->chunks.place == CHUNK_WRONG && req->state == STATE_BODY) {
        (void)http_raw_refuse(req, PROBLEM_INVALID_REQUEST, http_chunks_detail);
    }
    return req->chunks.place != CHUNK_WRONG; /* what its owner has begun ends as if the client had gone */
}

ssize_t http_chunks_recv(int fd, void *block, size_t len, int flags) __asm__("recv");
ssize_t http_chunks_recv(int fd, void *block, size_t len, int flags)
{
    ssize_t got = recvfrom(fd, block, len, flags, NULL, NULL);
    struct http_conn *conn = reading != NULL && fd < reading->fd_count ? reading->by_fd[fd] : NULL;

    if (conn == NULL || got <= 0 || conn_received(conn, (struct bytes){block, (size_t)got})) {
        return got;
    }
    errno = ECONNRESET;
    return -1;
}

void http_chunks_watch(struct http_conn *conn)
{
    struct http_server *server = conn->server;

    if (conn->fd >= server->fd_count) {
        int count = conn->fd + 1024;
        size_t size = (size_t)count * sizeof(void *), before = (size_t)server->fd_count * sizeof(void *);
        struct http_conn **more = http_must_alloc(size);

        memset(more, 0, size);
        if (before > 0) {
            memcpy(more, server->by_fd, before);
        }
        free(server->by_fd);
        server->by_fd = more;
        server->fd_count = count;
    }
    server->by_fd[conn->fd] = conn;
}
