/* tls_server.h - TLS for the side that accepts: what a service shows, whom it trusts, and its connections.
 *
 * A struct tls_server has the files of a service, read whole or not at all, at start and again. A connection
 * takes what was read last before it was accepted, and keeps it; the certificate of its client is judged by
 * what was read last of all, whenever it is asked for. Safe in several threads.
 *
 * A struct tls_peer is a connection: a filter of bytes over a socket that does not block, as in tls.h, with
 * the handshake inside. TLS 1.2 and 1.3, AEAD and ECDHE; ALPN names http/1.1; no session is resumed, nothing
 * is early. It never calls recv(2) nor send(2), which shared/http has taken for itself. */
#ifndef PAWL_SHARED_TLS_SERVER_H
#define PAWL_SHARED_TLS_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/* Paths (PEM): a certificate with its chain and its key; whose certificates clients may show, and which of
 * those are revoked (NULL: none is asked for, none is). */
struct tls_files {
    const char *cert, *key, *client_ca, *crl;
};

struct tls_server;

/* NULL with a sentence in why, which names flag and file: others can write it (of the key: read), it has not
 * what it should, cert and key are no pair, a list is signed by no authority of client_ca. A list of revoked
 * certificates counts also when its time is over. The paths are kept by the caller. */
struct tls_server *tls_server_new(const struct tls_files *files, char *why, size_t why_size);
/* Reads them again. false, with a sentence as above: all is as before. From one thread only. */
bool tls_server_reload(struct tls_server *server, char *why, size_t why_size);
/* When the first certificate of a file ends (or the list is due), in seconds since 1970; 0: never, or there
 * is no such file. */
enum tls_file { TLS_FILE_CERT, TLS_FILE_CLIENT_CA, TLS_FILE_CRL, TLS_FILES };
int64_t tls_server_ends(struct tls_server *server, enum tls_file file);
/* Behind its connections. NULL is fine. */
void tls_server_free(struct tls_server *server);

/* -- a connection */

struct tls_peer;

/* NULL: no memory. */
struct tls_peer *tls_peer_open(struct tls_server *server, int fd);
/* As recv(2); and fewer bytes than asked for mean that nothing more has come. 0 also where the client has
 * closed without TLS' word for it: HTTP knows itself whether a request is whole. Any errno of recv(2), or
 * EPROTO. */
ssize_t tls_peer_read(struct tls_peer *peer, char *to, size_t size);
/* Whether the end is known: the next read that has no bytes says 0. */
bool tls_peer_has_ended(const struct tls_peer *peer);
/* Whether the handshake waits until the socket takes more: then tls_peer_read() again. */
bool tls_peer_has_unsent(const struct tls_peer *peer);
/* As sendmsg(2), and all that the kernel takes. After fewer bytes than asked for, or EAGAIN, the next call
 * has those that are left, in their order. Any errno of send(2), or EPROTO. */
ssize_t tls_peer_write(struct tls_peer *peer, const struct iovec *parts, int count);
/* How many bytes a caller may still get, at the most, of what has come; in_kernel: so many the socket has.
 * (How much of that are records' heads and seals is known only by reading them.) */
size_t tls_peer_waiting(const struct tls_peer *peer, size_t in_kernel);
/* Says once that nothing more comes. Without effect where something waits, or was broken. */
void tls_peer_bye(struct tls_peer *peer);
/* Whether its handshake has failed, asked when the connection is closed; is_late: for its deadline. Where
 * nothing has come, none was begun (somebody has looked whether the port is open). *why: a static text, or
 * NULL. */
enum tls_failure {
    TLS_FAILURE_PROTOCOL,    /* no TLS, nothing in common, or not as it should be */
    TLS_FAILURE_CERTIFICATE, /* the client refuses ours, or its own is broken */
    TLS_FAILURE_TIMEOUT,
    TLS_FAILURE_CLOSED, /* by the client */
    TLS_FAILURE_OTHER,
    TLS_FAILURES
};
bool tls_peer_has_failed(const struct tls_peer *peer, bool is_late, enum tls_failure *failure,
                         const char **why);
/* NULL is fine. */
void tls_peer_close(struct tls_peer *peer);

/* -- the certificate of its client. One that does not verify breaks no handshake. */

enum tls_certified {
    TLS_CERTIFIED_NONE,     /* it has shown none, or was not asked */
    TLS_CERTIFIED_GOOD,     /* now, and by what was read last: authority, dates, purposes, not revoked */
    TLS_CERTIFIED_OUTDATED, /* nothing but dates speaks against it: its own, or an authority's */
    TLS_CERTIFIED_BAD
};

enum { TLS_SHA256_BYTES = 32 };
struct tls_certificate {
    enum tls_certified certified;
    const char *why; /* of OUTDATED and BAD: a static sentence */
    unsigned char sha256[TLS_SHA256_BYTES];
    time_t ends; /* its own date */
    /* One behind the other, each with its NUL, an empty one behind the last: "uri:", if it has exactly one;
     * each "dns:", in small letters; "cn:", if it has no other name, of whatever kind. Of a BAD one they
     * prove nothing. */
    const char *names;
};
/* Never NULL; good until the next call for this connection. Judged anew after a reload, and once a minute. */
const struct tls_certificate *tls_peer_certificate(struct tls_peer *peer);

#endif
