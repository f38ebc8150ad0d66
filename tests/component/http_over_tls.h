/* http_over_tls.h - clients and servers of a program that defines OVER_TLS speak TLS. */
#ifndef PAWL_TESTS_HTTP_OVER_TLS_H
#define PAWL_TESTS_HTTP_OVER_TLS_H

#include <netinet/tcp.h>

#include "shared/loop/loop.h"
#include "shared/tls/tls.h"
#include "shared/tls/tls_server.h"
#include "tests/component/tls_peer.h"

/* One test program is one process with one thread (check.h). */
static struct {
    char cert[80], key[80];
    struct tls_server *server;
    struct tls_trust *trust;
    void (*turn)(void); /* of a server in this process; NULL: it has one of its own */
} over_tls;

static inline struct tls_server *over_tls_server(void)
{
    struct tls_files files = {.cert = over_tls.cert, .key = over_tls.key};
    const char *bad = NULL;
    char why[256] = "";

    if (over_tls.server != NULL)
        return over_tls.server;
    safe_open();
    snprintf(over_tls.cert, sizeof(over_tls.cert), "%s/s.pem", safe.dir);
    snprintf(over_tls.key, sizeof(over_tls.key), "%s/s.key", safe.dir);
    pair_write(&safe.authority, (struct certified){"localhost", true, -60, TLS_DAY_S, FOR_SERVERS},
               over_tls.cert, over_tls.key);
    over_tls.server = tls_server_new(&files, why, sizeof(why));
    over_tls.trust = tls_trust_new(safe.authority.file, &bad);
    if (!CHECK(over_tls.server != NULL && over_tls.trust != NULL))
        printf("# %s\n", why);
    unlink(over_tls.cert);
    unlink(over_tls.key);
    safe_close();
    return over_tls.server;
}

/* The server shall get on, or something come. */
static inline void over_tls_wait(int fd)
{
    struct pollfd in = {fd, POLLIN, 0};

    if (over_tls.turn != NULL)
        over_tls.turn();
    else
        poll(&in, 1, 5);
}

static inline struct tls *over_tls_open(int fd, uint64_t wait_ms)
{
    struct tls *tls = tls_open(over_tls.trust, fd, "localhost");
    uint64_t end_ms = loop_now_ms() + wait_ms;
    enum tls_step step;

    /* Else what follows the handshake waits until the server's kernel acknowledges it, 40 ms later. */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    while ((step = tls_handshake(tls)) == TLS_WAITS && loop_now_ms() < end_ms)
        over_tls_wait(fd);
    if (step == TLS_DONE)
        return tls;
    printf("# TLS: %s\n", step == TLS_FAILED ? tls_why(tls) : "no handshake in time");
    tls_close(tls);
    return NULL;
}

/* As recv(2) that waits. An end without TLS' word for it is one: tests of ends ask HTTP. */
static inline ssize_t over_tls_read(struct tls *tls, int fd, char *to, size_t size, uint64_t wait_ms)
{
    uint64_t end_ms = loop_now_ms() + wait_ms;
    ssize_t got;

    while ((got = tls_read(tls, to, size)) < 0 && errno == EAGAIN && loop_now_ms() < end_ms)
        over_tls_wait(fd);
    return got < 0 && errno == EPROTO ? 0 : got;
}

static inline ssize_t over_tls_write(struct tls *tls, int fd, struct bytes bytes, uint64_t wait_ms)
{
    uint64_t end_ms = loop_now_ms() + wait_ms;
    ssize_t now;

    while ((now = tls_write(tls, bytes)) < 0 && errno == EAGAIN && loop_now_ms() < end_ms)
        over_tls_wait(fd);
    return now;
}

#endif
