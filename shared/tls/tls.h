/* tls.h - TLS as a filter of bytes over a connected socket that does not block, for the side that connects.
 * The only door to GnuTLS.
 *
 * The caller keeps the socket, waits on it, and closes it. Nothing here blocks, and no byte of the socket is
 * kept behind: when tls_read() says EAGAIN, what comes next makes the socket readable.
 *
 *   tls_open()       over a socket that is connected
 *   tls_handshake()  until TLS_DONE: then the peer has shown a certificate for the name that is trusted
 *   tls_write(), tls_read() ...
 *   tls_bye()        says that nothing more comes, where the connection ends in order
 *   tls_close()
 *
 * An end that the peer has not announced (close_notify) is an error: somebody else may have cut the
 * connection (RFC 8446, 6.1). New keys and new tickets of TLS 1.3 are dealt with within tls_read(); a peer of
 * TLS 1.2 that asks for another handshake gets none, and its connection goes on. Versions and ciphers are
 * those that the system's administrator allows (GnuTLS' default priorities). ALPN names http/1.1. No session
 * is resumed.
 *
 * Safe in several threads, each with connections of its own; they may share a struct tls_trust.
 * Initialises nothing that the caller knows of (GnuTLS does so as it is loaded). Never ends the process here:
 * without memory it fails, and says so with NULL for the reason. (GMP, below GnuTLS, does end it.) */
#ifndef PAWL_SHARED_TLS_H
#define PAWL_SHARED_TLS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "shared/text/bytes.h"

/* Whom to trust. */
struct tls_trust;

/* The certificates of a file (PEM), or with NULL those of the system. NULL: *why says what is wrong, a static
 * text, or NULL: no memory. */
struct tls_trust *tls_trust_new(const char *ca_file, const char **why);
/* What connections show to who asks for a certificate: a file of it and its chain (PEM), and that of its key.
 * false: *why says what is wrong, as above. */
bool tls_trust_show(struct tls_trust *trust, const char *cert_file, const char *key_file, const char **why);
/* All of that at once, for a route: what its upstream_tls names, or NULL; cert_file and key_file are both
 * there, or none is. NULL: a sentence in why, which names member and file; one that others can change (of the
 * key: read) is refused, too. Ends the process without memory. */
struct tls_trust *tls_trust_load(const char *ca_file, const char *cert_file, const char *key_file, char *why,
                                 size_t why_size);
/* For one more owner, who frees it, too. */
struct tls_trust *tls_trust_share(struct tls_trust *trust);
/* The last owner's, or connection's, frees it. NULL is fine. */
void tls_trust_free(struct tls_trust *trust);

struct tls;

/* host: a name or a literal address, that the certificate must be for, and for servers, if it says for what;
 * copied. NULL: no memory. */
struct tls *tls_open(struct tls_trust *trust, int fd, const char *host);

enum tls_step { TLS_DONE, TLS_WAITS, TLS_FAILED };

/* TLS_WAITS: again when the socket is readable, or writable if tls_has_unsent(). */
enum tls_step tls_handshake(struct tls *tls);

/* As send(2): how many bytes the kernel has taken, encrypted; at least 1. -1: errno is EAGAIN: none of them
 * yet, or not all of a part; again with the same bytes, and any behind them, when the socket is writable. Any
 * other errno is send(2)'s, or EPROTO; tls_why() says more. */
ssize_t tls_write(struct tls *tls, struct bytes bytes);
/* As recv(2), at most one record of TLS (16 KiB); 0: the peer has said that nothing more comes. With a
 * smaller buffer, again until EAGAIN. */
ssize_t tls_read(struct tls *tls, char *to, size_t size);
/* Whether the last tls_read() took the beginning of a record, and not the whole of it. */
bool tls_is_midway(const struct tls *tls);
/* Whether something encrypted waits for the socket to be writable. */
bool tls_has_unsent(const struct tls *tls);
/* All bytes that the kernel has taken so far, of whatever kind: when it has not grown, nothing left. */
uint64_t tls_sent(const struct tls *tls);
/* Of the last failure: a static text; NULL: no memory. */
const char *tls_why(const struct tls *tls);

/* Without effect where something waits or was broken: then the end is none in order. */
void tls_bye(struct tls *tls);
/* NULL is fine. */
void tls_close(struct tls *tls);

#endif
