/* tls_internal.h - what both sides of TLS share: who connects, and who accepts; and the files of both. */
#ifndef PAWL_SHARED_TLS_INTERNAL_H
#define PAWL_SHARED_TLS_INTERNAL_H

#include <gnutls/x509.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "shared/text/bytes.h"

enum {
    TLS_RECORD_MAX = 16384,
    TLS_CHAIN_MAX = 16, /* as GnuTLS verifies it */
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
    int code;       /* of GnuTLS, when it is broken */
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
/* It has failed: the other side gets an alert, where there is one for code. */
void tls_handshake_end(struct tls *tls, int code);
/* Of the certificates that the other side has shown, before one of their keys is used: 0, or
 * GNUTLS_E_CERTIFICATE_ERROR. */
int tls_keys_judge(gnutls_session_t session);
/* Whether GnuTLS is to be asked again at once. */
bool tls_is_to_be_repeated(int code);
/* Sets errno, and why; -1. */
int tls_fail(struct tls *tls, int code);

struct tls_trust {
    gnutls_certificate_credentials_t credentials;
    atomic_uint users; /* its owner, and connections */
};

/* NULL: no memory. A system without certificates trusts nobody, too. */
struct tls_trust *tls_trust_of_nobody(void);
struct tls_trust *tls_trust_of_system(void);

/* -- tls_files.c: one after the other. What is false or NULL has said why. */

/* A file, and what the sentence that refuses it calls it: "--tls-key". */
struct tls_setting {
    const char *name, *path;
};

struct tls_reading {
    char *why;
    size_t size;
    struct tls_setting setting; /* the one that is being read */
    gnutls_datum_t text;        /* of its file */
};

/* refused: rights that nobody else may have. */
bool tls_text_read(struct tls_reading *reading, struct tls_setting setting, mode_t refused);
void tls_text_forget(struct tls_reading *reading);
/* false, with the sentence. */
bool tls_text_wrong(const struct tls_reading *reading, const char *what, const char *more);
/* All that there are, each the caller's, as is the array, for gnutls_free(). ends: when the first of them
 * does; 0: never. */
gnutls_x509_crt_t *tls_certificates_read(struct tls_reading *reading, struct tls_setting setting,
                                         unsigned *count, int64_t *ends);
bool tls_pair_read(struct tls_reading *reading, gnutls_certificate_credentials_t credentials,
                   struct tls_setting cert, struct tls_setting key, int64_t *ends);
void tls_ends_lower(int64_t *ends, time_t at);

#endif
