/* tls.c - requests to an upstream over https, through libcurl.
 *
 * libcurl makes the connection, TLS and the request; what comes back it hands on as it came, heads and chunks
 * among it, and the parser of answer.c reads it like any other: an answer is whole when the parser
 * says so. (libcurl alone would take two lengths, or a length together with chunks.)
 *
 * A write goes out on a connection of its own. On a kept one that turns out dead libcurl sends the request
 * again by itself, also a POST (url.c and transfer.c of 7.88, Curl_retry_request()); a read may be repeated
 * so, which does no harm. Whether a request may have been sent is known by the callback that comes just
 * before.
 *
 * libcurl calls back only to put bytes into the link and to take some out of it, since none of its functions
 * may be called from within: the owner is called at the end of the turn, by link.c. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "gateway/upstream/tls.h"

#include "shared/text/memory.h"

enum { REST_MAX = 65536 };

/* What libcurl wants to know of a socket. */
struct tls_socket {
    struct loop_watch watch;
    struct upstream_tls *tls;
    curl_socket_t fd;
};

/* -- libcurl and the loop */

/* Those that are over are told to their links; what is not taken yet comes first. */
static void tls_act(struct upstream_tls *tls, curl_socket_t fd, int events)
{
    int running, left;

    curl_multi_socket_action(tls->multi, fd, events, &running);
    for (const CURLMsg *told; (told = curl_multi_info_read(tls->multi, &left)) != NULL;) {
        char *secured_at = NULL;
        struct upstream_secured *secured;

        curl_easy_getinfo(told->easy_handle, CURLINFO_PRIVATE, &secured_at);
        secured = (struct upstream_secured *)(void *)secured_at;
        secured->done = true;
        secured->result = told->data.result;
        uplink_due(secured->link);
    }
}

static void tls_timer_fired(struct loop_timer *timer)
{
    tls_act(container_of(timer, struct upstream_tls, timer), CURL_SOCKET_TIMEOUT, 0);
}

static int tls_timer_set(CURLM *multi, long delay_ms, void *tls_at)
{
    struct upstream_tls *tls = tls_at;

    (void)multi;
    if (delay_ms < 0) {
        loop_timer_disarm(&tls->timer);
    } else {
        loop_timer_arm(&tls->timer, (uint64_t)delay_ms, 0);
    }
    return 0;
}

/* The socket may be gone when libcurl has acted. */
static void tls_socket_ready(struct loop_watch *watch, int events)
{
    struct tls_socket *socket = container_of(watch, struct tls_socket, watch);
    int told = (events & LOOP_READ ? CURL_CSELECT_IN : 0) | (events & LOOP_WRITE ? CURL_CSELECT_OUT : 0) |
               (events & LOOP_HANGUP ? CURL_CSELECT_ERR : 0);

    tls_act(socket->tls, socket->fd, told);
}

static int tls_socket_set(CURL *easy, curl_socket_t fd, int what, void *tls_at, void *socket_at)
{
    struct upstream_tls *tls = tls_at;
    struct tls_socket *socket = socket_at;
    int events = (what & CURL_POLL_IN ? LOOP_READ : 0) | (what & CURL_POLL_OUT ? LOOP_WRITE : 0);

    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        if (socket != NULL) {
            loop_watch_done(&socket->watch);
            free(socket);
        }
    } else if (socket == NULL) {
        socket = must_have(calloc(1, sizeof(*socket)));
        socket->tls = tls;
        socket->fd = fd;
        loop_watch_init(tls->pool->loop, &socket->watch, fd, tls_socket_ready, events);
        curl_multi_assign(tls->multi, fd, socket);
    } else {
        loop_watch_set(&socket->watch, events);
    }
    return 0;
}

/* -- the pool's part */

void upstream_tls_open(struct upstream_pool *pool, const struct route_upstream *upstream)
{
    struct upstream_tls *tls = must_have(calloc(1, sizeof(*tls)));
    bool is_ipv6 = strchr(upstream->host, ':') != NULL;
    int len;

    /* Counted, and since 7.84 several threads may (curl_global_init(3)). */
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0) {
        fprintf(stderr, "pawl: libcurl cannot be set up\n");
        abort();
    }
    tls->pool = pool;
    tls->multi = must_have(curl_multi_init());
    len = asprintf(&tls->url, "https://%s%s%s:%u/", is_ipv6 ? "[" : "", upstream->host, is_ipv6 ? "]" : "",
                   upstream->port);
    must_have(len > 0 ? tls->url : NULL);
    tls->ca_file = upstream->ca_file != NULL ? must_have(strdup(upstream->ca_file)) : NULL;
    loop_timer_init(pool->loop, &tls->timer, tls_timer_fired);
    curl_multi_setopt(tls->multi, CURLMOPT_SOCKETFUNCTION, tls_socket_set);
    curl_multi_setopt(tls->multi, CURLMOPT_SOCKETDATA, tls);
    curl_multi_setopt(tls->multi, CURLMOPT_TIMERFUNCTION, tls_timer_set);
    curl_multi_setopt(tls->multi, CURLMOPT_TIMERDATA, tls);
    curl_multi_setopt(tls->multi, CURLMOPT_MAXCONNECTS, (long)UPSTREAM_KEPT_MAX);
    curl_multi_setopt(tls->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING);
    pool->tls = tls;
}

void upstream_tls_close(struct upstream_pool *pool)
{
    struct upstream_tls *tls = pool->tls;

    curl_multi_cleanup(tls->multi);
    loop_timer_done(&tls->timer);
    free(tls->url);
    free(tls->ca_file);
    free(tls);
    pool->tls = NULL;
    curl_global_cleanup();
}

/* -- bytes */

static void rest_add(struct upstream_link *link, const char *at, size_t len)
{
    char *kept = must_have(malloc(link->rest.len + len));

    if (link->rest.len > 0) {
        memcpy(kept, link->rest.at, link->rest.len);
    }
    memcpy(kept + link->rest.len, at, len);
    free(link->kept);
    link->kept = kept;
    link->rest = (struct bytes){kept, link->rest.len + len};
    if (link->taking == UPLINK_TAKES) {
        link->taking = UPLINK_RESUMES;
    }
    uplink_due(link);
}

static size_t head_came(char *at, size_t size, size_t count, void *secured_at)
{
    struct upstream_secured *secured = secured_at;

    if (size * count > 0) {
        rest_add(secured->link, at, size * count);
    }
    return size * count;
}

static size_t body_came(char *at, size_t size, size_t count, void *secured_at)
{
    struct upstream_secured *secured = secured_at;

    if (secured->link->rest.len >= REST_MAX) {
        secured->receive_waits = true;
        return CURL_WRITEFUNC_PAUSE;
    }
    return head_came(at, size, count, secured_at);
}

static size_t body_goes(char *to, size_t size, size_t count, void *secured_at)
{
    struct upstream_secured *secured = secured_at;
    struct upstream_link *link = secured->link;
    size_t len = uplink_unsent(link) < size * count ? uplink_unsent(link) : size * count;

    if (len == 0 && link->body_open) {
        secured->send_waits = true;
        return CURL_READFUNC_PAUSE;
    }
    uplink_take_out(link, to, len);
    uplink_due(link);
    return len;
}

/* The connection stands, and the request is about to be sent (CURLOPT_PREREQFUNCTION(3)). */
static int request_goes(void *secured_at, char *to_ip, char *from_ip, int to_port, int from_port)
{
    struct upstream_secured *secured = secured_at;

    (void)to_ip, (void)from_ip, (void)to_port, (void)from_port;
    secured->link->unsure = true;
    return CURL_PREREQFUNC_OK;
}

/* -- the request */

static void callbacks_set(struct upstream_secured *secured)
{
    CURL *easy = secured->easy;

    curl_easy_setopt(easy, CURLOPT_PRIVATE, secured);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, head_came);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, secured);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, body_came);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, secured);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, body_goes);
    curl_easy_setopt(easy, CURLOPT_READDATA, secured);
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, request_goes);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, secured);
}

void upstream_tls_begin(struct upstream_link *link, const struct upstream_request *request)
{
    struct upstream_tls *tls = link->pool->tls;
    struct upstream_secured *secured = must_have(calloc(1, sizeof(*secured)));
    bool is_alone = request->is_write || link->pool->draining;

    secured->link = link;
    secured->easy = must_have(curl_easy_init());
    link->secured = secured;
    tls_request_set(tls, secured, request);
    callbacks_set(secured);
    curl_easy_setopt(secured->easy, CURLOPT_FRESH_CONNECT, is_alone ? 1L : 0L);
    curl_easy_setopt(secured->easy, CURLOPT_FORBID_REUSE, is_alone ? 1L : 0L);
    curl_multi_add_handle(tls->multi, secured->easy);
}

/* -- what link.c asks for */

/* An answer that only the end of the connection completes is complete with TLS' own word for it only
 * (RFC 9112, 9.8), and libcurl with OpenSSL does not tell whether that came (7.88, tried). */
static const char *why_broken(const struct upstream_link *link)
{
    if (link->secured->result != CURLE_OK) {
        return curl_easy_strerror(link->secured->result);
    }
    return link->answer.place == ANSWER_AT_CLOSE ? "its answer has no length, nor chunks" : NULL;
}

/* libcurl may call back from within. */
void upstream_tls_go_on(struct upstream_link *link)
{
    struct upstream_secured *secured = link->secured;

    if (!secured->done && secured->send_waits && (uplink_unsent(link) > 0 || !link->body_open)) {
        secured->send_waits = false;
        curl_easy_pause(secured->easy, secured->receive_waits ? CURLPAUSE_RECV : CURLPAUSE_CONT);
    }
    if (!secured->done && secured->receive_waits && link->rest.len == 0) {
        secured->receive_waits = false;
        curl_easy_pause(secured->easy, secured->send_waits ? CURLPAUSE_SEND : CURLPAUSE_CONT);
    }
    if (secured->done && link->rest.len == 0) {
        uplink_fin(link, why_broken(link));
    }
}

void upstream_tls_hang_up(struct upstream_link *link)
{
    static const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    struct upstream_secured *secured = link->secured;
    curl_socket_t fd = CURL_SOCKET_BAD;

    curl_easy_getinfo(secured->easy, CURLINFO_ACTIVESOCKET, &fd);
    if (link->end == UPSTREAM_UNKNOWN && fd != CURL_SOCKET_BAD && !secured->done) {
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    }
    curl_multi_remove_handle(link->pool->tls->multi, secured->easy);
    curl_easy_cleanup(secured->easy);
    curl_slist_free_all(secured->fields);
    free(secured);
    link->secured = NULL;
}
