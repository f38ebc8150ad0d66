/* http_server.h - for a program that runs an HTTP server: its options, its end, listening sockets. */
#ifndef PAWL_SHARED_HTTP_SERVER_H
#define PAWL_SHARED_HTTP_SERVER_H

#include <stdatomic.h>

#include "shared/http/http.h"
#include "shared/tls/tls_server.h"

struct http_server;

enum http_limit { HTTP_LIMIT_ALL, HTTP_LIMIT_ADDRESS };
struct http_owner { /* the service embeds this and finds itself with container_of */
    /* Called once for each ended request, for the log and the metrics; may be NULL. */
    void (*ended)(const struct http_owner *owner, const struct http_request *req, unsigned status,
                  uint64_t took_us);
    /* A connection was closed at a limit before anything was read from it; may be NULL. */
    void (*closed)(const struct http_owner *owner, enum http_limit limit, const char *address);
    /* The connection of a client was closed with whom there was no TLS; may be NULL. why: static, or NULL. */
    void (*handshake_failed)(const struct http_owner *owner, enum tls_failure failure, const char *why,
                             const char *address);
};

/* In bytes; what would be more is 503 overloaded, and one body that is more than all of it 413. */
struct http_memory {
    size_t max;
    atomic_size_t used, unread; /* unread: of used, what has come of heads, and behind requests */
    atomic_size_t untaken;      /* beside used, and as much at most: long answers to reads */
};

enum { HTTP_HEAD_MAX = 8192 };
struct http_options {
    int listen_fd;                   /* bound and listening; the server takes it over */
    int unix_fd;                     /* one of http_listen_unix(), taken over too; 0: none */
    int own_fd;                      /* as listen_fd, on another port; 0: none. http_is_own() */
    struct tls_server *tls;          /* outlives the server; NULL: plain connections */
    const struct http_route *routes; /* ends with path NULL; the first that matches is taken */
    struct http_owner *owner;
    /* Asked of a request to a route with HTTP_BODY_STREAMED whose client waits for "100 Continue", before it
     * is sent, or announces more than HTTP_BODY_HELD_BYTES: does its head alone forbid it? If so the handler
     * is called at once, without any of the body, and answers at once (asserted); the connection is then
     * closed. NULL: never. */
    bool (*refuses)(struct http_request *req);
    /* Asked of every request whose head is well, before its route counts: who asks (http_identify())? Then,
     * when its route is found, before its query and its body count: may it? Each says PROBLEM_NONE, or why
     * not. NULL: not asked. */
    enum problem (*enter)(struct http_request *req);
    enum problem (*permits)(struct http_request *req);
    /* Asked of one that enter() has let in, also long after: is it still who it was, by what it has shown
     * (http_shown(), http_client_certificate(), http_client_uid())? Its headers may be gone. */
    bool (*stands)(struct http_request *req);
    /* Changes when all of them are to be asked again, the first two of requests whose body is still coming;
     * NULL: never. */
    const unsigned *judged_by;
    unsigned connections_max;
    /* The last so many of them take only requests to routes with HTTP_KEEPS: others are 503 overloaded,
     * closed. */
    unsigned connections_reserved;
    struct http_peers *peers; /* shared by the servers of a process; NULL: no address has a limit */
    /* Web pages (route.c): whether it listens on loopback only, where a Host must be a loopback name
     * or address, or one of these; the origins that may change something though they are not the Host's.
     * Lists with commas; NULL: none. */
    bool on_loopback, own_on_loopback; /* of listen_fd, of own_fd */
    /* What routes forward has the origin of listen_fd: a page there gives no commands (HTTP_COMMAND). */
    bool shares_origin;
    const char *allow_hosts, *allow_origins;
    size_t body_max_default;    /* for routes with body_max 0 */
    struct http_memory *memory; /* of all bodies held at once; shared by the servers of a process */
    unsigned head_max;          /* request line and headers; 0: HTTP_HEAD_MAX */
    unsigned header_timeout_ms; /* 10,000 */
    unsigned body_timeout_ms;   /* 30,000 */
    unsigned send_timeout_ms;   /* for a client to take its whole answer; 0: 30,000 */
    /* Of http_reply_field(), in bytes, on a connection that is kept; 0: 1,024. Each connection takes one byte
     * more for each above. */
    unsigned reply_head_max;
    bool suspend_always; /* the fallback that libmicrohttpd documents; otherwise short waits poll */
};

/* per_address: how many connections an address (of IPv6: a /64) may have. trusted: proxies, as addresses or
 * networks, with commas between them, or NULL; their own connections are not counted, but the requests that
 * they carry for an address. NULL, with a reason in *why (static): the list is not one. */
struct http_peers *http_peers_new(unsigned per_address, const char *trusted, const char **why);
void http_peers_free(struct http_peers *peers);

/* For enter() and permits(): who asks, by which kind of credential (a literal), and that credential, if it
 * stands in the head; nobody if it is not called. The text of identity outlives the server. */
void http_identify(struct http_request *req, const char *identity, const char *by, struct bytes shown);
/* For enter() and permits(): the detail (static, or NULL), and a member of the problem, as often as
 * HTTP_REFUSAL_MEMBERS; of both texts name is static, value is kept by the caller until the request is ended;
 * {NULL, 0}: null. */
enum { HTTP_REFUSAL_MEMBERS = 3 };
void http_refusal_detail(struct http_request *req, const char *detail);
void http_refusal_member(struct http_request *req, const char *name, struct bytes value);

/* NULL, or what is wrong with the two lists. */
const char *http_browser_lists_check(const char *hosts, const char *origins);

struct http_server *http_server_new(struct loop *loop, const struct http_options *options);
/* Stop accepting; new requests on open connections get 503 draining and "Connection: close". Not from
 * inside a handler. */
void http_server_drain(struct http_server *server);
/* Requests that have a handler running or suspended, or whose answer has not been handed to
 * the kernel in whole. */
unsigned http_server_open_requests(const struct http_server *server);
/* Of them, those without an answer yet, or with a stream to which more may come. */
unsigned http_server_running_requests(const struct http_server *server);
unsigned http_server_connections(const struct http_server *server);
/* Only when no handler is running, no request suspended and no stream open (asserted). Closes all
 * connections. */
void http_server_free(struct http_server *server);

/* A listening socket with SO_REUSEPORT and SO_REUSEADDR for "127.0.0.1:8700", "[::1]:0"; -1 with a reason
 * in *why (static). *port: the port that the kernel gave. */
int http_listen(const char *address, unsigned *port, const char **why);
/* A listening unix socket, mode 0660; one that is left there and that nobody listens on is replaced. -1:
 * *why. / */
int http_listen_unix(const char *path, const char **why);
/* Takes over a socket that somebody else has bound: sets what http_listen() sets, and writes its address, as
 * --listen has it, and its port. false, with a reason in *why: not a listening TCP socket. */
enum { HTTP_LISTEN_SIZE = HTTP_ADDRESS_SIZE + 16 };
bool http_listen_given(int fd, char address[HTTP_LISTEN_SIZE], unsigned *port, const char **why);
/* Whether nobody listens there yet. SO_REUSEPORT would let two services of one user share a port by mistake:
 * to be asked before the first http_listen(). *why as above. */
bool http_address_is_free(const char *address, const char **why);
/* Whether the address is a loopback one; a malformed one is not. */
bool http_address_is_loopback(const char *address);

#endif
