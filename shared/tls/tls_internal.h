/* tls_internal.h - what both sides of TLS share: who connects, and who accepts. */
#ifndef PAWL_SHARED_TLS_INTERNAL_H
#define PAWL_SHARED_TLS_INTERNAL_H

#include <gnutls/gnutls.h>
#include <stdbool.h>

enum {
    TLS_RECORD_MAX = 16384,
    /* Records without bytes for the caller, of one read: GnuTLS says AGAIN behind each. */
    TLS_SILENT_MAX = 64
};

struct tls {
    gnutls_session_t session;
    int fd;
    char *out; /* encrypted, for the kernel: [from, to) */
    size_t from, to, size;
    size_t owed; /* plain bytes of the caller's that are in it, and not yet reported */
    uint64_t sent;
    int error;      /* of the socket, as errno says it; 0: none */
    bool is_dry;    /* the socket had nothing when it was last read */
    bool is_midway; /* a part of a record has come, and not yet the rest */
    bool is_secure, is_broken;
    const char *why;
};

/* The session writes to tls->out, and reads as pull says, with tls for its argument. */
void tls_attach(struct tls *tls, int fd, gnutls_pull_func pull);
/* What tls has of its own; the struct is the caller's. */
void tls_release(struct tls *tls);
/* What waits, to the kernel: 0; or -1 and errno. */
int tls_flush(struct tls *tls);
/* Whether GnuTLS is to be asked again at once. */
bool tls_is_to_be_repeated(int code);
/* Sets errno, and why; -1. */
int tls_fail(struct tls *tls, int code);

#endif
