/* http_client.h - a raw HTTP client for tests, with as much parsing as an answer needs. */
#ifndef PAWL_TESTS_HTTP_CLIENT_H
#define PAWL_TESTS_HTTP_CLIENT_H

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "shared/loop/loop.h"
#include "tests/component/loopback.h"
#ifdef OVER_TLS
#include "tests/component/http_over_tls.h"
#endif

enum { CLIENT_BYTES = 3 << 20, CLIENT_WAIT_S = 10 };

struct client {
    int fd;
    struct tls *tls; /* NULL: plain */
    char *buf;       /* what has come and was not yet taken */
    size_t len;
    bool ended; /* the server has closed */
    bool reset; /* and has thrown away what was sent */
    /* the answer that was read last */
    unsigned status;
    struct bytes head, body;
};

/* One whose kernel keeps at most so many bytes for it (0: as many as it likes). */
static inline void client_open_small(struct client *c, unsigned port, int bytes)
{
    struct timeval wait = {CLIENT_WAIT_S, 0};

    *c = (struct client){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), .buf = malloc(CLIENT_BYTES)};
    setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
    setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
    if (bytes > 0)
        setsockopt(c->fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
    CHECK(loopback_connect(c->fd, port) == 0);
#ifdef OVER_TLS
    c->tls = over_tls_open(c->fd, CLIENT_WAIT_S * 1000);
#endif
}

static inline void client_open(struct client *c, unsigned port)
{
    client_open_small(c, port, 0);
}

static inline void client_close(struct client *c)
{
    if (c->fd >= 0) {
        close(c->fd);
        free(c->buf);
#ifdef OVER_TLS
        tls_close(c->tls);
        c->tls = NULL;
#endif
    }
    c->fd = -1;
    c->buf = NULL;
}

/* As send(2) and recv(2). */
static inline ssize_t client_write(struct client *c, struct bytes bytes)
{
#ifdef OVER_TLS
    if (c->tls != NULL)
        return over_tls_write(c->tls, c->fd, bytes, CLIENT_WAIT_S * 1000);
#endif
    return TEMP_FAILURE_RETRY(send(c->fd, bytes.at, bytes.len, MSG_NOSIGNAL));
}

static inline ssize_t client_take(struct client *c, char *to, size_t size)
{
#ifdef OVER_TLS
    if (c->tls != NULL)
        return over_tls_read(c->tls, c->fd, to, size, CLIENT_WAIT_S * 1000);
#endif
    return TEMP_FAILURE_RETRY(recv(c->fd, to, size, 0)); /* it is interrupted when the process was stopped */
}

/* A server that has closed is noticed when reading. */
static inline void client_send(struct client *c, struct bytes bytes)
{
    for (size_t sent = 0; sent < bytes.len;) {
        ssize_t now = client_write(c, (struct bytes){bytes.at + sent, bytes.len - sent});

        if (now <= 0) {
            c->reset = true;
            return;
        }
        sent += (size_t)now;
    }
}

static inline void client_text(struct client *c, const char *text)
{
    client_send(c, bytes_of(text));
}

/* Reads once more; false at the end. */
static inline bool client_more(struct client *c)
{
    ssize_t got = client_take(c, c->buf + c->len, CLIENT_BYTES - c->len);

    if (got <= 0) {
        c->reset = c->reset || (got < 0 && errno == ECONNRESET);
        c->ended = got == 0 || c->reset;
        return false;
    }
    c->len += (size_t)got;
    return true;
}

/* The value of a header of the last answer; NULL when there is none. Names are given as the server writes
 * them. */
static inline struct bytes client_header(const struct client *c, const char *name)
{
    size_t len = strlen(name);

    for (const char *at = c->head.at; at != NULL;
         at = memchr(at, '\n', (size_t)(c->head.at + c->head.len - at))) {
        at += *at == '\n';
        if ((size_t)(c->head.at + c->head.len - at) > len + 2 && memcmp(at, name, len) == 0 &&
            at[len] == ':') {
            const char *end = memchr(at, '\r', (size_t)(c->head.at + c->head.len - at));

            return (struct bytes){at + len + 2, (size_t)(end - at) - len - 2};
        }
    }
    return (struct bytes){NULL, 0};
}

/* Reads one answer: its status, 0 when the server closed without one. The answer before it is thrown away. */
static inline unsigned client_read(struct client *c, bool has_body)
{
    size_t used = c->status != 0 ? c->head.len + c->body.len : 0, body_len;
    const char *end;

    memmove(c->buf, c->buf + used, c->len - used);
    c->len -= used;
    c->status = 0;
    while ((end = c->len > 0 ? memmem(c->buf, c->len, "\r\n\r\n", 4) : NULL) == NULL)
        if (!client_more(c))
            return 0;
    c->head = (struct bytes){c->buf, (size_t)(end - c->buf) + 4};
    struct bytes length = client_header(c, "Content-Length");
    body_len = has_body && length.at != NULL ? strtoul(length.at, NULL, 10) : 0;
    while (c->len < c->head.len + body_len && client_more(c)) {
    }
    if (c->len < c->head.len + body_len)
        return 0;
    c->body = (struct bytes){c->buf + c->head.len, body_len};
    c->status = c->head.len > 12 ? (unsigned)strtoul(c->buf + 9, NULL, 10) : 0;
    return c->status;
}

/* Whether the server closes now, with nothing more to say. */
static inline bool client_ends(struct client *c)
{
    size_t used = c->status != 0 ? c->head.len + c->body.len : 0;

    while (c->len == used && client_more(c)) {
    }
    return c->ended && c->len == used;
}

/* Whether the last answer's body has this text in it. */
static inline bool client_says(const struct client *c, const char *text)
{
    return c->body.len > 0 && memmem(c->body.at, c->body.len, text, strlen(text)) != NULL;
}

/* The code of the problem that the last answer is; "" if it is none. */
static inline struct bytes client_code(const struct client *c)
{
    const char *at = c->body.len > 0 ? memmem(c->body.at, c->body.len, "\"code\":\"", 8) : NULL;
    const char *end = at != NULL ? memchr(at + 8, '"', (size_t)(c->body.at + c->body.len - at - 8)) : NULL;

    return end != NULL ? (struct bytes){at + 8, (size_t)(end - at) - 8} : (struct bytes){"", 0};
}

/* A number in the last answer's JSON; -1 if it is not there. */
static inline long client_number(const struct client *c, const char *name)
{
    char key[64];
    int len = snprintf(key, sizeof(key), "\"%s\":", name);
    const char *at = c->body.len > 0 ? memmem(c->body.at, c->body.len, key, (size_t)len) : NULL;

    return at != NULL ? strtol(at + len, NULL, 10) : -1;
}

/* Sends on an open connection, reads one answer: its status. */
static inline unsigned client_next(struct client *c, const char *text)
{
    client_text(c, text);
    return client_read(c, true);
}

/* Whether the server closes the connection; closes it here, too. */
static inline bool client_ended(struct client *c)
{
    bool ends = client_ends(c);

    client_close(c);
    return ends;
}

/* Opens and sends. */
static inline void client_say(struct client *c, unsigned port, const char *text)
{
    client_open(c, port);
    client_text(c, text);
}

/* Opens, sends, reads one answer: its status. The connection stays open. */
static inline unsigned client_ask(struct client *c, unsigned port, const char *text)
{
    client_say(c, port, text);
    return client_read(c, true);
}

/* The same in place of the connection that was open, if there was one. */
static inline unsigned client_anew(struct client *c, unsigned port, const char *text)
{
    client_close(c);
    return client_ask(c, port, text);
}

/* A test with a client, which is closed behind it. */
#define TEST_CLIENT(sentence) TEST_WITH(sentence, struct client, c, c->fd = -1, client_close(c))

/* Asks the sample server to stop, until it has heard: it may be full for a moment yet. */
static inline void client_stop(unsigned port)
{
    struct client c = {.status = 0};

    for (unsigned i = 0; i < 10000 && c.status != 204; i++) {
        client_ask(&c, port, "POST /stop HTTP/1.1\r\nHost: x\r\n\r\n");
        client_close(&c);
    }
    CHECK_INT(c.status, 204);
}

/* Asks the sample server until this number of its is as wanted. */
static inline bool client_sees(unsigned port, const char *name, long wanted)
{
    uint64_t deadline_ms = loop_now_ms() + CLIENT_WAIT_S * 1000;
    long got = -1;

    while (got != wanted && loop_now_ms() < deadline_ms) {
        struct client c;

        client_ask(&c, port, "GET /stats HTTP/1.1\r\nHost: x\r\n\r\n");
        got = client_number(&c, name);
        client_close(&c);
    }
    return got == wanted;
}

#endif
