/* http_tls.c - https: libcurl, which is loaded when it is needed.
 *
 * It makes the connection, TLS, and sure who is at the other end (CURLOPT_CONNECT_ONLY); what goes over it is
 * ours, as over http. It is not linked, since it brings some thirty libraries, and a program that only speaks
 * to its neighbour waits for all of them (docs/decisions/0023-own-http-client.md). It is never unloaded: TLS
 * libraries do not bear that. */
#include <curl/curl.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/client/http_internal.h"

enum { LOOK_AGAIN_MS = 1000 };

/* Its functions, named and shaped as there. */
struct curl_library {
    CURL *(*easy_init)(void);
    CURLcode (*easy_setopt)(CURL *, CURLoption, ...);
    CURLcode (*easy_getinfo)(CURL *, CURLINFO, ...);
    CURLcode (*easy_send)(CURL *, const void *, size_t, size_t *);
    CURLcode (*easy_recv)(CURL *, void *, size_t, size_t *);
    const char *(*easy_strerror)(CURLcode);
    void (*easy_cleanup)(CURL *);
    CURLM *(*multi_init)(void);
    CURLMcode (*multi_add_handle)(CURLM *, CURL *);
    CURLMcode (*multi_remove_handle)(CURLM *, CURL *);
    CURLMcode (*multi_perform)(CURLM *, int *);
    CURLMcode (*multi_poll)(CURLM *, struct curl_waitfd *, unsigned, int, int *);
    CURLMsg *(*multi_info_read)(CURLM *, int *);
    CURLMcode (*multi_cleanup)(CURLM *);
};

struct http_tls {
    struct curl_library curl;
    CURL *easy;
    CURLM *multi;
    char error[CURL_ERROR_SIZE];
};

/* -- the library */

static bool functions_find(struct curl_library *curl, void *library)
{
    /* A void * that dlsym(3) returns may be put where a pointer to a function is (POSIX, dlsym()). */
    const struct {
        const char *name;
        void *at;
    } wanted[] = {{"curl_easy_init", &curl->easy_init},
                  {"curl_easy_setopt", &curl->easy_setopt},
                  {"curl_easy_getinfo", &curl->easy_getinfo},
                  {"curl_easy_send", &curl->easy_send},
                  {"curl_easy_recv", &curl->easy_recv},
                  {"curl_easy_strerror", &curl->easy_strerror},
                  {"curl_easy_cleanup", &curl->easy_cleanup},
                  {"curl_multi_init", &curl->multi_init},
                  {"curl_multi_add_handle", &curl->multi_add_handle},
                  {"curl_multi_remove_handle", &curl->multi_remove_handle},
                  {"curl_multi_perform", &curl->multi_perform},
                  {"curl_multi_poll", &curl->multi_poll},
                  {"curl_multi_info_read", &curl->multi_info_read},
                  {"curl_multi_cleanup", &curl->multi_cleanup}};

    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        void *function = dlsym(library, wanted[i].name);

        if (function == NULL) {
            return false;
        }
        memcpy(wanted[i].at, &function, sizeof(function));
    }
    return true;
}

static bool library_load(struct curl_library *curl)
{
    static const char *const names[] = {"libcurl-gnutls.so.4", "libcurl.so.4"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

        if (library != NULL && functions_find(curl, library)) {
            return true;
        }
    }
    return false;
}

/* -- connecting */

/* A child that the program starts meanwhile is not to keep it open. */
static curl_socket_t socket_open(void *unused, curlsocktype purpose, struct curl_sockaddr *address)
{
    int fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);

    (void)unused, (void)purpose;
    return fd < 0 ? CURL_SOCKET_BAD : fd;
}

/* Whom to trust: what the system does, or the file that other programs are told by the same name. */
static void options_set(struct http_tls *tls, const char *url)
{
    const struct curl_library *curl = &tls->curl;
    const char *trusted = secure_getenv("SSL_CERT_FILE");

    curl->easy_setopt(tls->easy, CURLOPT_URL, url);
    curl->easy_setopt(tls->easy, CURLOPT_PROTOCOLS_STR, "https");
    curl->easy_setopt(tls->easy, CURLOPT_CONNECT_ONLY, 1L);
    curl->easy_setopt(tls->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    /* Also switches off https_proxy and all_proxy (CURLOPT_PROXY(3)). */
    curl->easy_setopt(tls->easy, CURLOPT_PROXY, "");
    curl->easy_setopt(tls->easy, CURLOPT_SSL_VERIFYPEER, 1L);
    curl->easy_setopt(tls->easy, CURLOPT_SSL_VERIFYHOST, 2L);
    curl->easy_setopt(tls->easy, CURLOPT_FRESH_CONNECT, 1L);
    curl->easy_setopt(tls->easy, CURLOPT_NOSIGNAL, 1L);
    curl->easy_setopt(tls->easy, CURLOPT_OPENSOCKETFUNCTION, socket_open);
    /* Without it, giving up would wait for a slow getaddrinfo() (lib/asyn-thread.c Curl_resolver_kill()). */
    curl->easy_setopt(tls->easy, CURLOPT_QUICK_EXIT, 1L);
    curl->easy_setopt(tls->easy, CURLOPT_ERRORBUFFER, tls->error);
    if (trusted != NULL && *trusted != '\0') {
        curl->easy_setopt(tls->easy, CURLOPT_CAINFO, trusted);
        curl->easy_setopt(tls->easy, CURLOPT_CAPATH, NULL);
    }
}

static void why_set(struct http_wire *wire, CURLcode code)
{
    struct http_tls *tls = wire->tls;

    wire->why = tls->error[0] != '\0' ? tls->error : tls->curl.easy_strerror(code);
}

/* It is over: how? */
static enum http_wait connect_ended(struct http_wire *wire)
{
    struct http_tls *tls = wire->tls;
    curl_socket_t fd = CURL_SOCKET_BAD;
    int left;
    const CURLMsg *message = tls->curl.multi_info_read(tls->multi, &left);
    CURLcode code = message != NULL && message->msg == CURLMSG_DONE ? message->data.result
                                                                    : CURLE_OUT_OF_MEMORY;

    if (code == CURLE_OK) {
        code = tls->curl.easy_getinfo(tls->easy, CURLINFO_ACTIVESOCKET, &fd);
    }
    if (code != CURLE_OK || fd == CURL_SOCKET_BAD) {
        why_set(wire, code);
        return HTTP_FAILED;
    }
    wire->fd = fd;
    return HTTP_READY;
}

static enum http_wait connect_run(struct http_wire *wire, int64_t until_ms)
{
    const struct curl_library *curl = &wire->tls->curl;

    for (;;) {
        struct curl_waitfd extra[HTTP_CLIENT_STOPS_MAX];
        unsigned count = 0;
        int64_t left_ms = until_ms - pawl_now_ms();
        enum http_wait looked = http_wire_wait(wire, NULL, 0, 0);
        int running = 0;

        if (looked != HTTP_LATE) {
            return looked;
        }
        if (left_ms <= 0) {
            return HTTP_LATE;
        }
        if (curl->multi_perform(wire->tls->multi, &running) != CURLM_OK || running == 0) {
            return connect_ended(wire);
        }
        for (; wire->stop_fds != NULL && count < HTTP_CLIENT_STOPS_MAX && wire->stop_fds[count] >= 0;
             count++) {
            extra[count] = (struct curl_waitfd){.fd = wire->stop_fds[count], .events = CURL_WAIT_POLLIN};
        }
        curl->multi_poll(wire->tls->multi, extra, count,
                         left_ms < LOOK_AGAIN_MS ? (int)left_ms : LOOK_AGAIN_MS, NULL);
    }
}

enum http_wait http_tls_connect(struct http_wire *wire, const char *url, int64_t until_ms)
{
    struct http_tls *tls = calloc(1, sizeof(*tls));

    if (tls == NULL) {
        return HTTP_FAILED;
    }
    if (!library_load(&tls->curl)) {
        free(tls);
        wire->why = "https needs libcurl, and neither libcurl-gnutls.so.4 nor libcurl.so.4 can be loaded";
        return HTTP_FAILED;
    }
    wire->tls = tls;
    /* Makes libcurl ready, the first time, under a lock of its own (7.84 and later: lib/easy.c). */
    tls->easy = tls->curl.easy_init();
    tls->multi = tls->curl.multi_init();
    if (tls->easy == NULL || tls->multi == NULL) {
        return HTTP_FAILED;
    }
    options_set(tls, url);
    if (tls->curl.multi_add_handle(tls->multi, tls->easy) != CURLM_OK) {
        return HTTP_FAILED;
    }
    return connect_run(wire, until_ms);
}

/* -- bytes */

static ssize_t bytes_went(struct http_wire *wire, CURLcode code, size_t len)
{
    if (code == CURLE_OK) {
        return (ssize_t)len;
    }
    errno = code == CURLE_AGAIN ? EAGAIN : EPROTO;
    if (code != CURLE_AGAIN) {
        why_set(wire, code);
    }
    return -1;
}

ssize_t http_tls_send(struct http_wire *wire, struct bytes bytes)
{
    size_t len = 0;
    CURLcode code = wire->tls->curl.easy_send(wire->tls->easy, bytes.at, bytes.len, &len);

    return bytes_went(wire, code, len);
}

ssize_t http_tls_receive(struct http_wire *wire, char *to, size_t size)
{
    size_t len = 0;
    CURLcode code = wire->tls->curl.easy_recv(wire->tls->easy, to, size, &len);

    return bytes_went(wire, code, len);
}

void http_tls_close(struct http_wire *wire)
{
    struct http_tls *tls = wire->tls;

    if (tls->easy != NULL && tls->multi != NULL) {
        tls->curl.multi_remove_handle(tls->multi, tls->easy);
    }
    if (tls->easy != NULL) {
        tls->curl.easy_cleanup(tls->easy);
    }
    if (tls->multi != NULL) {
        tls->curl.multi_cleanup(tls->multi);
    }
    free(tls);
    wire->tls = NULL;
}
