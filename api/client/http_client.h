/* http_client.h - one HTTP request, sent once.
 *
 * No proxy, no redirect, no .netrc, HTTP/1.1, a connection of its own for each request: so nothing is ever
 * sent twice. The answer is parsed strictly (shared/http/answer.h): what can be understood in two ways is not
 * known. An answer that is whole before the whole request was sent is one; a request whose end is not known
 * is reset, so that what the kernel still has of it does not arrive later. Over https the other side must be
 * who the URL says, for the certificates that the system trusts, or for those in the file that ca_file, or
 * else SSL_CERT_FILE, names (shared/tls/tls.h). unix:/PATH:/TARGET is a target behind a unix socket.
 * Every request has a time limit. Safe in several threads; never ends the process: without memory a request
 * is not sent, or its end is not known. */
#ifndef PAWL_CLIENT_HTTP_CLIENT_H
#define PAWL_CLIENT_HTTP_CLIENT_H

#include <pthread.h>
#include <stdio.h>

#include "shared/text/bytes.h"

enum http_client_outcome {
    HTTP_CLIENT_ANSWERED, /* there is a whole answer, of whatever status */
    HTTP_CLIENT_NOT_SENT, /* not one byte of the request left: it certainly did not happen */
    HTTP_CLIENT_UNKNOWN   /* sent, or begun to be, and no whole answer came: it may have happened */
};

enum {
    HTTP_CLIENT_HEADERS_MAX = 6,
    HTTP_CLIENT_STOPS_MAX = 3,
    HTTP_CLIENT_HEADER_SIZE = 256,     /* of an answer's header that is kept */
    HTTP_CLIENT_ANSWER_MAX = 16 << 20, /* bytes of an answer that is kept in memory; more is an error */
    HTTP_CLIENT_TIMEOUT_MS =
        15000, /* when the request says 0: above all limits of the services but a slow body's */
    HTTP_CLIENT_CONNECT_TIMEOUT_MS = 5000
};

struct http_client_header {
    const char *name;
    struct bytes value; /* empty: the header is not sent; with a control character the request is not sent */
};

enum http_access {
    HTTP_ACCESS_TOKEN_FILE, /* it is read for each request, so a new one counts; beats the token itself */
    HTTP_ACCESS_TOKEN,
    HTTP_ACCESS_CA_FILE, /* of https */
    HTTP_ACCESS_CERT_FILE,
    HTTP_ACCESS_KEY_FILE,
    HTTP_ACCESS_TEXTS
};

/* Who asks, and whom it trusts. The texts are the caller's for as long as the request. */
struct http_client_access {
    const char *text[HTTP_ACCESS_TEXTS]; /* NULL: not said */
    bool plaintext;                      /* the access token is sent over http:// to other machines, too */
};

/* What the environment says: PAWL_ACCESS_TOKEN_FILE, PAWL_ACCESS_TOKEN, PAWL_CACERT, PAWL_CERT,
 * PAWL_CERT_KEY, PAWL_ALLOW_PLAINTEXT. */
struct http_client_access http_client_access_usual(void);
/* NULL, or why a good address cannot be asked so: no request to it is sent. */
const char *http_client_access_wrong(const struct http_client_access *access, const char *url);

struct http_client_request {
    const char *method, *url;
    struct http_client_access access;
    struct http_client_header headers[HTTP_CLIENT_HEADERS_MAX]; /* ends with name NULL, or is full */
    struct bytes body;                                          /* at NULL: none at all */
    unsigned timeout_ms;
    const int *stop_fds; /* NULL, or descriptors and -1 behind the last, at most HTTP_CLIENT_STOPS_MAX: when
                          * one is readable the request is given up */
    /* Where the body of a 200 goes as it comes, if the answer has the header whose value begins so (value
     * empty: whatever it is); else, and with NULL, it goes into the answer. */
    FILE *sink;
    struct http_client_header sink_needs;
};

struct http_client_answer {
    unsigned status;
    char *body; /* with a NUL behind; never NULL after an answer */
    size_t len;
    bool stopped, no_memory; /* why it was not ANSWERED, if it is one of these */
    unsigned retry_after_s;  /* 0: not given, or as a date */
    char etag[HTTP_CLIENT_HEADER_SIZE], content_type[HTTP_CLIENT_HEADER_SIZE], date[HTTP_CLIENT_HEADER_SIZE],
        fencing_status[HTTP_CLIENT_HEADER_SIZE], fencing_mark[HTTP_CLIENT_HEADER_SIZE]; /* "": there was none,
                                                                                         * or it was longer */
    char why[HTTP_CLIENT_HEADER_SIZE]; /* when not ANSWERED: a sentence */
};

/* Whether a URL is a service's address, to which paths can be added: plain, without a user, a query, a
 * fragment; or unix:/PATH, without a colon in it. */
bool http_client_is_base(const char *url);
/* What stands between a base, without its slashes at the end, and a path: ":" or "". */
const char *http_client_joint(const char *base);

/* Fills the answer, which http_client_answer_done() wipes and frees, whatever the outcome. */
enum http_client_outcome http_client_send(const struct http_client_request *request,
                                          struct http_client_answer *answer);
void http_client_answer_done(struct http_client_answer *answer);

/* As pthread_create(3), with every signal blocked: they are for the program's own threads. */
int client_thread_start(pthread_t *thread, void *(*work)(void *of), void *of);
/* fd, or in its place a copy that is none of the first three, which is closed by exec; -1: none. Where those
 * are closed, what the program prints would go into it, and what it opens in their place would replace it. */
int client_fd_high(int fd);

#endif
