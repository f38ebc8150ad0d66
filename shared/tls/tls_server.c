/* tls_server.c - TLS for the side that accepts: its files, its connections, and the certificates of clients.
 *
 * GnuTLS asks for five bytes of a record, and then for the rest of it. So what the socket has is read ahead,
 * into the stack, and what is left of it when a caller has enough is kept until the next call. */
#include "shared/tls/tls_server.h"

#include <errno.h>
#include <gnutls/x509.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#include "shared/text/ascii.h"
#include "shared/text/memory.h"
#include "shared/tls/tls.h"
#include "shared/tls/tls_internal.h"

enum {
    AHEAD_BYTES = TLS_RECORD_MAX + 2048,
    SEALED_MAX = TLS_RECORD_MAX + 29, /* a whole record on the wire: TLS 1.2 with AES-GCM, and */
    SEAL_MIN = 21,                    /* what the shortest head and seal take: TLS 1.2, ChaCha20 */
    NAME_SIZE = 1024,
    NAMES_SIZE = 8192,
    JUDGED_S = 60
};

/* What was read at once, and never changes. */
struct tls_set {
    unsigned users; /* the server, and connections; under its lock */
    gnutls_certificate_credentials_t credentials;
    gnutls_x509_trust_list_t trusted; /* the credentials'; NULL: no certificate is asked for */
    int64_t ends[TLS_FILES];
};

struct tls_server {
    struct tls_files files;
    gnutls_priority_t priority;
    pthread_mutex_t lock;
    struct tls_set *set;
    atomic_uint generation; /* of the set */
};

struct shown {
    struct tls_certificate certificate;
    unsigned generation;
    time_t judged;
    char names[];
};

struct tls_peer {
    struct tls tls;
    struct tls_server *server;
    struct tls_set *set;
    struct shown *shown; /* NULL: not looked at yet */
    char *ahead, *fresh; /* what was read ahead; this call's place for that */
    char *kept;          /* where ahead is between two calls; NULL: nothing is left */
    size_t from, to;     /* of it */
    size_t part;         /* bytes of a record that GnuTLS has, at the most */
    int alert;           /* the client's, that ended the handshake; 0: none */
    bool has_begun, is_open, has_ended, said_bye;
};

/* == files */

struct reading {
    struct tls_reading file;
    gnutls_x509_crt_t *authorities; /* the set's in the end; the array is gnutls_free()'s */
    unsigned authority_count;
};

/* The credentials own the list, and free what is in it. */
static bool trusted_read(struct tls_set *set, const struct tls_files *files, struct reading *reading)
{
    reading->authorities = tls_certificates_read(&reading->file,
                                                 (struct tls_setting){"--tls-client-ca", files->client_ca},
                                                 &reading->authority_count, &set->ends[TLS_FILE_CLIENT_CA]);
    if (reading->authorities == NULL)
        return false;
    if (gnutls_x509_trust_list_init(&set->trusted, 0) < 0)
        abort(); /* no memory */
    gnutls_certificate_set_trust_list(set->credentials, set->trusted, 0);
    return true;
}

/* Its dates do not count: what is revoked remains so. Each authority by itself: of several with one name, as
 * they are while one gets a new key, GnuTLS would ask the first alone. */
static bool is_signed(const struct reading *reading, gnutls_x509_crl_t list)
{
    const unsigned dates = GNUTLS_CERT_REVOCATION_DATA_SUPERSEDED |
                           GNUTLS_CERT_REVOCATION_DATA_ISSUED_IN_FUTURE;
    unsigned status;

    for (unsigned i = 0; i < reading->authority_count; i++)
        if (gnutls_x509_crl_verify(list, &reading->authorities[i], 1, 0, &status) >= 0 &&
            (status & ~(dates | GNUTLS_CERT_INVALID)) == 0)
            return true;
    return false;
}

/* One that is revoked vouches for nobody: a chain with it is refused, and leaving it out must not help. */
static void authorities_drop(struct reading *reading, const gnutls_x509_crl_t *list, unsigned count)
{
    for (unsigned i = reading->authority_count; i-- > 0;) {
        if (gnutls_x509_crt_check_revocation(reading->authorities[i], list, count) <= 0)
            continue;
        gnutls_x509_crt_deinit(reading->authorities[i]);
        reading->authorities[i] = reading->authorities[--reading->authority_count];
    }
}

static bool revoked_read(struct tls_set *set, const struct tls_files *files, struct reading *reading)
{
    gnutls_x509_crl_t *list = NULL;
    unsigned count = 0;
    bool all_signed = true;

    if (!tls_text_read(&reading->file, (struct tls_setting){"--tls-crl", files->crl}, S_IWGRP | S_IWOTH))
        return false;
    if (gnutls_x509_crl_list_import2(&list, &count, &reading->file.text, GNUTLS_X509_FMT_PEM, 0) < 0)
        return tls_text_wrong(&reading->file,
                              "has no list of revoked certificates in it that can be read (PEM)", "");
    for (unsigned i = 0; i < count; i++) {
        all_signed = all_signed && is_signed(reading, list[i]);
        tls_ends_lower(&set->ends[TLS_FILE_CRL], gnutls_x509_crl_get_next_update(list[i]));
    }
    authorities_drop(reading, list, count);
    gnutls_x509_trust_list_add_crls(set->trusted, list, count, 0, 0);
    gnutls_free(list);
    return all_signed ||
           tls_text_wrong(&reading->file, "has a list in it that no authority of --tls-client-ca has signed",
                          "");
}

/* -- a set */

static void set_free(struct tls_set *set)
{
    gnutls_certificate_free_credentials(set->credentials);
    free(set);
}

static struct tls_set *set_read(const struct tls_files *files, char *why, size_t why_size)
{
    struct reading reading = {.file = {.why = why, .size = why_size}};
    struct tls_set *set = must_have(calloc(1, sizeof(*set)));
    bool good;

    set->users = 1;
    if (gnutls_certificate_allocate_credentials(&set->credentials) < 0)
        abort(); /* no memory */
    good = tls_pair_read(&reading.file, set->credentials, (struct tls_setting){"--tls-cert", files->cert},
                         (struct tls_setting){"--tls-key", files->key}, &set->ends[TLS_FILE_CERT]) &&
           (files->client_ca == NULL || trusted_read(set, files, &reading)) &&
           (files->crl == NULL || revoked_read(set, files, &reading));
    if (set->trusted != NULL) /* also to be freed with it */
        gnutls_x509_trust_list_add_cas(set->trusted, reading.authorities, reading.authority_count,
                                       GNUTLS_TL_USE_IN_TLS);
    tls_text_forget(&reading.file);
    gnutls_free(reading.authorities);
    if (good)
        return set;
    set_free(set);
    return NULL;
}

static struct tls_set *set_take(struct tls_server *server)
{
    struct tls_set *set;

    pthread_mutex_lock(&server->lock);
    set = server->set;
    set->users++;
    pthread_mutex_unlock(&server->lock);
    return set;
}

static void set_drop(struct tls_server *server, struct tls_set *set)
{
    unsigned users;

    pthread_mutex_lock(&server->lock);
    users = --set->users;
    pthread_mutex_unlock(&server->lock);
    if (users == 0)
        set_free(set);
}

/* -- the server */

struct tls_server *tls_server_new(const struct tls_files *files, char *why, size_t why_size)
{
    static const char priorities[] =
        "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-KX-ALL:+ECDHE-ECDSA:+ECDHE-RSA:-CIPHER-ALL:+AES-128-GCM:"
        "+AES-256-GCM:+CHACHA20-POLY1305:-MAC-ALL:+AEAD:-GROUP-ALL:+GROUP-X25519:+GROUP-SECP256R1:"
        "+GROUP-SECP384R1:-SIGN-RSA-SHA1:-SIGN-ECDSA-SHA1:-SIGN-DSA-SHA1:%SERVER_PRECEDENCE";
    struct tls_set *set = set_read(files, why, why_size);
    struct tls_server *server;

    if (set == NULL)
        return NULL;
    server = must_have(calloc(1, sizeof(*server)));
    server->files = *files;
    server->set = set;
    pthread_mutex_init(&server->lock, NULL);
    if (gnutls_priority_init(&server->priority, priorities, NULL) < 0)
        abort(); /* no memory, or not the GnuTLS that this was built for */
    return server;
}

bool tls_server_reload(struct tls_server *server, char *why, size_t why_size)
{
    struct tls_set *set = set_read(&server->files, why, why_size), *before = server->set;

    if (set == NULL)
        return false;
    pthread_mutex_lock(&server->lock);
    server->set = set;
    pthread_mutex_unlock(&server->lock);
    atomic_fetch_add(&server->generation, 1);
    set_drop(server, before);
    return true;
}

int64_t tls_server_ends(struct tls_server *server, enum tls_file file)
{
    struct tls_set *set = set_take(server);
    int64_t ends = set->ends[file];

    set_drop(server, set);
    return ends;
}

void tls_server_free(struct tls_server *server)
{
    if (server == NULL)
        return;
    set_drop(server, server->set);
    gnutls_priority_deinit(server->priority);
    pthread_mutex_destroy(&server->lock);
    free(server);
}

/* == a connection */

/* -- what is read ahead */

static void ahead_fill(struct tls_peer *peer)
{
    ssize_t n;

    do
        n = recvfrom(peer->tls.fd, peer->fresh, AHEAD_BYTES, MSG_DONTWAIT, NULL, NULL);
    while (n < 0 && errno == EINTR);
    peer->tls.is_dry = n < AHEAD_BYTES;
    peer->tls.error = n < 0 && errno != EAGAIN ? errno : 0;
    peer->has_begun = peer->has_begun || n > 0;
    peer->has_ended = peer->has_ended || n == 0;
    peer->ahead = peer->fresh;
    peer->from = 0;
    peer->to = n > 0 ? (size_t)n : 0;
}

/* GnuTLS does not learn of the end: it would not write any more either, and an answer may be on its way. */
static ssize_t peer_pull(gnutls_transport_ptr_t tls_at, void *to, size_t size)
{
    struct tls_peer *peer = container_of(tls_at, struct tls_peer, tls);
    size_t left;

    if (peer->from == peer->to && !peer->tls.is_dry)
        ahead_fill(peer);
    left = peer->to - peer->from;
    if (left == 0) {
        gnutls_transport_set_errno(peer->tls.session, peer->tls.error != 0 ? peer->tls.error : EAGAIN);
        return -1;
    }
    size = size < left ? size : left;
    memcpy(to, peer->ahead + peer->from, size);
    peer->from += size;
    peer->part += size;
    return (ssize_t)size;
}

static void ahead_keep(struct tls_peer *peer)
{
    size_t left = peer->to - peer->from;
    char *kept = left > 0 ? must_have(malloc(left)) : NULL;

    if (left > 0)
        memcpy(kept, peer->ahead + peer->from, left);
    free(peer->kept);
    peer->ahead = peer->kept = kept;
    peer->from = 0;
    peer->to = left;
}

/* -- open and close */

/* GnuTLS breaks the handshake where a certificate that may not sign has signed, and its requests are to be
 * 401 instead (chain_wrong()). To pass over that belongs to one mode, whose other bows to bad clients count
 * in the hellos, which are over when this is called (3.7.9 and 3.8, _gnutls_check_key_usage_for_sig()). */
static int certificate_may_be_bad(gnutls_session_t session, unsigned type, unsigned when, unsigned incoming,
                                  const gnutls_datum_t *message)
{
    (void)type, (void)when, (void)message;
    if (!incoming)
        return 0;
    gnutls_session_enable_compatibility_mode(session);
    return tls_keys_judge(session);
}

static bool session_set(struct tls_peer *peer)
{
    static const gnutls_datum_t http = {(unsigned char *)(uintptr_t) "http/1.1", 8};
    gnutls_session_t session = peer->tls.session;

    if (peer->set->trusted != NULL) {
        gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUEST);
        gnutls_handshake_set_hook_function(session, GNUTLS_HANDSHAKE_CERTIFICATE_VERIFY, GNUTLS_HOOK_PRE,
                                           certificate_may_be_bad);
    }
    return gnutls_priority_set(session, peer->server->priority) >= 0 &&
           gnutls_alpn_set_protocols(session, &http, 1, GNUTLS_ALPN_MANDATORY) >= 0 &&
           gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, peer->set->credentials) >= 0;
}

struct tls_peer *tls_peer_open(struct tls_server *server, int fd)
{
    struct tls_peer *peer = calloc(1, sizeof(*peer));

    if (peer == NULL ||
        gnutls_init(&peer->tls.session, GNUTLS_SERVER | GNUTLS_NONBLOCK | GNUTLS_NO_TICKETS) < 0) {
        free(peer);
        return NULL;
    }
    peer->server = server;
    peer->set = set_take(server);
    tls_attach(&peer->tls, fd, peer_pull);
    if (session_set(peer))
        return peer;
    tls_peer_close(peer);
    return NULL;
}

void tls_peer_bye(struct tls_peer *peer)
{
    if (peer->is_open && !peer->said_bye) {
        peer->said_bye = true;
        tls_bye(&peer->tls);
    }
}

/* -- why a handshake has failed */

static bool is_about_certificates(int alert)
{
    return (alert >= GNUTLS_A_BAD_CERTIFICATE && alert <= GNUTLS_A_CERTIFICATE_UNKNOWN) ||
           alert == GNUTLS_A_UNKNOWN_CA || alert == GNUTLS_A_CERTIFICATE_REQUIRED;
}

static enum tls_failure failure_of(const struct tls_peer *peer)
{
    if (peer->alert != 0)
        return is_about_certificates(peer->alert) ? TLS_FAILURE_CERTIFICATE : TLS_FAILURE_PROTOCOL;
    switch (peer->tls.code) {
    case GNUTLS_E_CERTIFICATE_ERROR:
    case GNUTLS_E_UNSUPPORTED_CERTIFICATE_TYPE:
    case GNUTLS_E_PK_SIG_VERIFY_FAILED:
    case GNUTLS_E_ASN1_DER_ERROR:
    case GNUTLS_E_ASN1_TAG_ERROR: return TLS_FAILURE_CERTIFICATE;
    case GNUTLS_E_PULL_ERROR:
    case GNUTLS_E_PUSH_ERROR: return TLS_FAILURE_CLOSED;
    case GNUTLS_E_MEMORY_ERROR:
    case GNUTLS_E_INTERNAL_ERROR: return TLS_FAILURE_OTHER;
    default: return TLS_FAILURE_PROTOCOL;
    }
}

bool tls_peer_has_failed(const struct tls_peer *peer, bool is_late, enum tls_failure *failure,
                         const char **why)
{
    const struct tls *tls = &peer->tls;

    if (peer->is_open || !peer->has_begun)
        return false;
    *why = !tls->is_broken    ? NULL
           : peer->alert != 0 ? gnutls_alert_get_name((gnutls_alert_description_t)peer->alert)
                              : tls->why;
    *failure = tls->is_broken ? failure_of(peer) : is_late ? TLS_FAILURE_TIMEOUT : TLS_FAILURE_CLOSED;
    return true;
}

void tls_peer_close(struct tls_peer *peer)
{
    if (peer == NULL)
        return;
    tls_release(&peer->tls);
    set_drop(peer->server, peer->set);
    free(peer->shown);
    free(peer->kept);
    free(peer);
}

/* -- bytes */

/* OpenSSL says in plain text what it has against our certificate (TLS 1.3, before it knows the keys), and
 * GnuTLS takes that for a record that it cannot decrypt. */
static int alert_of(const struct tls_peer *peer)
{
    static const char head[] = {21, 3, 3, 0, 2};
    const size_t size = sizeof(head) + 2;
    const char *record = peer->from >= size ? peer->ahead + peer->from - size : NULL;

    if (peer->tls.code == GNUTLS_E_FATAL_ALERT_RECEIVED)
        return (int)gnutls_alert_get(peer->tls.session);
    return peer->tls.code == GNUTLS_E_DECRYPTION_FAILED && record != NULL &&
                   memcmp(record, head, sizeof(head)) == 0
               ? (unsigned char)record[size - 1]
               : 0;
}

static bool peer_opens(struct tls_peer *peer)
{
    enum tls_step step = peer->is_open ? TLS_DONE : tls_handshake(&peer->tls);
    unsigned silent = 0;

    /* GnuTLS stops behind each record, and no event comes for what is read already. */
    while (step == TLS_WAITS && !tls_has_unsent(&peer->tls) && (peer->from < peer->to || !peer->tls.is_dry))
        step = ++silent < TLS_SILENT_MAX ? tls_handshake(&peer->tls) : TLS_FAILED;
    if (silent == TLS_SILENT_MAX)
        tls_handshake_end(&peer->tls, GNUTLS_E_TOO_MANY_HANDSHAKE_PACKETS);
    peer->is_open = step == TLS_DONE;
    if (step == TLS_FAILED)
        peer->alert = alert_of(peer);
    if (step == TLS_WAITS)
        errno = peer->has_ended ? ECONNRESET : EAGAIN;
    return peer->is_open;
}

/* What there is, up to size bytes; the code of what ended that: more than 0 if nothing did. */
static size_t peer_take(struct tls_peer *peer, char *to, size_t size, ssize_t *code)
{
    struct tls *tls = &peer->tls;
    unsigned silent = 0;
    size_t len = 0;

    for (*code = 1; *code > 0 && len < size;) {
        *code = gnutls_record_recv(tls->session, to + len, size - len);
        len += *code > 0 ? (size_t)*code : 0;
        peer->part = *code == GNUTLS_E_AGAIN ? peer->part : 0;
        if (tls_is_to_be_repeated((int)*code) ||
            (*code == GNUTLS_E_AGAIN && (!tls->is_dry || peer->from < peer->to)))
            *code = ++silent < TLS_SILENT_MAX ? 1 : GNUTLS_E_TOO_MANY_HANDSHAKE_PACKETS;
    }
    return len;
}

static ssize_t peer_read(struct tls_peer *peer, char *to, size_t size)
{
    ssize_t code;
    size_t len = peer_take(peer, to, size, &code);

    if (tls_has_unsent(&peer->tls) && peer->tls.owed == 0)
        (void)tls_flush(&peer->tls); /* new keys; else the next write brings it along */
    peer->has_ended = peer->has_ended || code == 0;
    if (len > 0 || code == 0 || (code == GNUTLS_E_AGAIN && peer->has_ended))
        return (ssize_t)len;
    if (code != GNUTLS_E_AGAIN)
        return tls_fail(&peer->tls, (int)code);
    errno = EAGAIN;
    return -1;
}

ssize_t tls_peer_read(struct tls_peer *peer, char *to, size_t size)
{
    char fresh[AHEAD_BYTES];
    ssize_t n = -1;

    peer->fresh = fresh;
    peer->tls.is_dry = false;
    peer->tls.error = 0;
    if (peer_opens(peer))
        n = peer_read(peer, to, size);
    int error = errno;
    ahead_keep(peer);
    errno = error;
    return n;
}

bool tls_peer_has_ended(const struct tls_peer *peer)
{
    return peer->has_ended;
}

bool tls_peer_has_unsent(const struct tls_peer *peer)
{
    return !peer->is_open && tls_has_unsent(&peer->tls);
}

/* The next bytes for a record, behind the first skipped ones of all parts; those of several are joined. */
static struct bytes parts_next(const struct iovec *parts, int count, size_t skipped, char *joined)
{
    struct bytes next = {NULL, 0};

    for (int i = 0; i < count && next.len < TLS_RECORD_MAX; i++) {
        size_t before = skipped < parts[i].iov_len ? skipped : parts[i].iov_len;
        struct bytes part = {(char *)parts[i].iov_base + before, parts[i].iov_len - before};

        skipped -= before;
        if (part.len > TLS_RECORD_MAX - next.len)
            part.len = TLS_RECORD_MAX - next.len;
        if (part.len == 0)
            continue;
        if (next.len > 0 && next.at != joined)
            memcpy(joined, next.at, next.len);
        if (next.len > 0)
            memcpy(joined + next.len, part.at, part.len);
        next = (struct bytes){next.len > 0 ? joined : part.at, next.len + part.len};
    }
    return next;
}

ssize_t tls_peer_write(struct tls_peer *peer, const struct iovec *parts, int count)
{
    char joined[TLS_RECORD_MAX];
    struct tls *tls = &peer->tls;
    struct bytes next;
    size_t done = 0;
    ssize_t n = 0;

    if (!peer->is_open || tls->is_broken) {
        errno = EPROTO;
        return -1;
    }
    while (n >= 0 && (next = parts_next(parts, count, done, joined)).len > 0) {
        n = tls_write(tls, next);
        done += n > 0 ? (size_t)n : 0;
    }
    if (tls->from == tls->to) { /* idle connections are many */
        free(tls->out);
        tls->out = NULL;
        tls->size = 0;
    }
    return done > 0 ? (ssize_t)done : n;
}

size_t tls_peer_waiting(const struct tls_peer *peer, size_t in_kernel)
{
    size_t sealed = in_kernel + (peer->to - peer->from) + peer->part;
    size_t seals = (sealed + SEALED_MAX - 1) / SEALED_MAX * SEAL_MIN;

    return gnutls_record_check_pending(peer->tls.session) + (sealed > seals ? sealed - seals : 0);
}

/* == the certificate of its client */

/* -- its names */

struct names {
    char text[NAMES_SIZE];
    size_t len;
};

/* Whether it is in the list now: it has to be text, so that it can be compared with a text. */
static bool name_add(struct names *names, const char *kind, struct bytes name)
{
    size_t before = strlen(kind), size = before + name.len + 1;

    for (size_t i = 0; i < name.len; i++)
        if ((unsigned char)name.at[i] < ' ' || name.at[i] == 0x7f)
            return false;
    if (name.len == 0 || size > sizeof(names->text) - 1 - names->len)
        return false;
    memcpy(names->text + names->len, kind, before);
    memcpy(names->text + names->len + before, name.at, name.len);
    names->text[names->len + size - 1] = '\0';
    names->len += size;
    return true;
}

static void names_add_common(struct names *names, gnutls_x509_crt_t leaf)
{
    char name[NAME_SIZE], other[NAME_SIZE];
    size_t len = sizeof(name), other_len = sizeof(other);

    if (gnutls_x509_crt_get_dn_by_oid(leaf, GNUTLS_OID_X520_COMMON_NAME, 0, 0, name, &len) == 0 &&
        gnutls_x509_crt_get_dn_by_oid(leaf, GNUTLS_OID_X520_COMMON_NAME, 1, 0, other, &other_len) ==
            GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE)
        name_add(names, "cn:", (struct bytes){name, len});
}

/* A name that cannot be read may be a second URI. */
static void names_read(struct names *names, gnutls_x509_crt_t leaf)
{
    char name[NAME_SIZE], uri[NAME_SIZE];
    struct bytes only = {uri, 0};
    unsigned count = 0, uris = 0;
    int kind;

    for (;; count++) {
        size_t len = sizeof(name);

        kind = gnutls_x509_crt_get_subject_alt_name(leaf, count, name, &len, NULL);
        if (kind < 0 && kind != GNUTLS_E_SHORT_MEMORY_BUFFER)
            break;
        uris += kind < 0 ? 2 : kind == GNUTLS_SAN_URI;
        if (kind == GNUTLS_SAN_URI) {
            memcpy(uri, name, len);
            only.len = len;
        }
        for (size_t i = 0; i < len && kind == GNUTLS_SAN_DNSNAME; i++)
            name[i] = ascii_lower(name[i]);
        if (kind == GNUTLS_SAN_DNSNAME)
            name_add(names, "dns:", (struct bytes){name, len});
    }
    if (kind != GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE)
        names->len = 0;
    else if (count == 0)
        names_add_common(names, leaf);
    else if (uris == 1)
        name_add(names, "uri:", only);
    names->text[names->len++] = '\0';
}

/* -- is it good? */

/* Of an end that signs (RFC 5280, 4.2.1.3); a certificate that does not say what its key is for may. */
static bool may_sign(gnutls_x509_crt_t leaf)
{
    unsigned usage = 0;
    int code = gnutls_x509_crt_get_key_usage(leaf, &usage, NULL);

    return code == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE ||
           (code >= 0 && (usage & GNUTLS_KEY_DIGITAL_SIGNATURE) != 0);
}

/* NULL, or why not. */
static const char *chain_wrong(gnutls_x509_trust_list_t trusted, gnutls_x509_crt_t *chain, unsigned count,
                               unsigned flags)
{
    static const struct {
        unsigned flag;
        const char *why;
    } reasons[] = {
        {GNUTLS_CERT_REVOKED, "The certificate is revoked."},
        {GNUTLS_CERT_SIGNER_NOT_FOUND, "The certificate comes from no authority that this service trusts."},
        {GNUTLS_CERT_SIGNER_NOT_CA, "The certificate comes from one that may sign none."},
        {GNUTLS_CERT_PURPOSE_MISMATCH, "The certificate is not for clients (extended key usage)."},
        {GNUTLS_CERT_INSECURE_ALGORITHM,
         "The certificate, or one above it, has a key or a hash that is weak."},
        {GNUTLS_CERT_EXPIRED, "The certificate, or one above it, has expired."},
        {GNUTLS_CERT_NOT_ACTIVATED, "The certificate, or one above it, is not valid yet."},
    };
    gnutls_typed_vdata_st purpose = {GNUTLS_DT_KEY_PURPOSE_OID,
                                     (unsigned char *)(uintptr_t)GNUTLS_KP_TLS_WWW_CLIENT, 0};
    unsigned status = GNUTLS_CERT_INVALID;

    flags |= GNUTLS_PROFILE_TO_VFLAGS(GNUTLS_PROFILE_MEDIUM);
    if (gnutls_x509_trust_list_verify_crt2(trusted, chain, count, &purpose, 1, flags, &status, NULL) >= 0 &&
        status == 0)
        return may_sign(chain[0]) ? NULL : "The certificate's key is not for signatures (key usage).";
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
        if (status & reasons[i].flag)
            return reasons[i].why;
    return "The certificate cannot be verified.";
}

static void shown_judge(struct shown *shown, struct tls_server *server, gnutls_x509_crt_t *chain,
                        unsigned count)
{
    struct tls_certificate *certificate = &shown->certificate;
    gnutls_x509_trust_list_t trusted;
    struct tls_set *set;

    shown->generation = atomic_load(&server->generation);
    shown->judged = time(NULL);
    set = set_take(server); /* this generation's, or a later one: then it is judged once more */
    trusted = set->trusted;
    certificate->why = chain_wrong(trusted, chain, count, 0);
    if (certificate->why == NULL)
        certificate->certified = TLS_CERTIFIED_GOOD;
    else if (chain_wrong(trusted, chain, count, GNUTLS_VERIFY_DISABLE_TIME_CHECKS) == NULL)
        certificate->certified = TLS_CERTIFIED_OUTDATED;
    else
        certificate->certified = TLS_CERTIFIED_BAD;
    set_drop(server, set);
}

static struct shown *shown_new(gnutls_x509_crt_t leaf, const gnutls_datum_t *der)
{
    struct names names = {.len = 0};
    struct shown *shown;
    size_t size = TLS_SHA256_BYTES;

    names_read(&names, leaf);
    shown = must_have(calloc(1, sizeof(*shown) + names.len));
    memcpy(shown->names, names.text, names.len);
    shown->certificate.names = shown->names;
    shown->certificate.ends = gnutls_x509_crt_get_expiration_time(leaf);
    if (gnutls_fingerprint(GNUTLS_DIG_SHA256, der, shown->certificate.sha256, &size) < 0)
        abort(); /* no memory */
    return shown;
}

/* Whether it has judged: the chain can be read. */
static bool peer_judge(struct tls_peer *peer, const gnutls_datum_t *der, unsigned count)
{
    gnutls_x509_crt_t chain[TLS_CHAIN_MAX];
    unsigned made = 0;
    bool good = count <= TLS_CHAIN_MAX;

    while (good && made < count) {
        if (gnutls_x509_crt_init(&chain[made]) < 0)
            abort(); /* no memory */
        good = gnutls_x509_crt_import(chain[made], &der[made], GNUTLS_X509_FMT_DER) >= 0;
        made++;
    }
    if (good && peer->shown == NULL)
        peer->shown = shown_new(chain[0], &der[0]);
    if (good)
        shown_judge(peer->shown, peer->server, chain, count);
    while (made > 0)
        gnutls_x509_crt_deinit(chain[--made]);
    return good;
}

static bool shown_is_judged(const struct shown *shown, const struct tls_server *server)
{
    time_t now = time(NULL);

    return shown->generation == atomic_load(&server->generation) && now >= shown->judged &&
           now < shown->judged + JUDGED_S &&
           (now <= shown->certificate.ends || shown->certificate.certified != TLS_CERTIFIED_GOOD);
}

const struct tls_certificate *tls_peer_certificate(struct tls_peer *peer)
{
    static const struct tls_certificate none = {.names = ""};
    static const struct tls_certificate unread = {
        .certified = TLS_CERTIFIED_BAD, .why = "The certificate cannot be read.", .names = ""};
    unsigned count = 0;
    const gnutls_datum_t *der = peer->is_open && peer->set->trusted != NULL
                                    ? gnutls_certificate_get_peers(peer->tls.session, &count)
                                    : NULL;

    if (der == NULL || count == 0)
        return &none;
    if (peer->shown != NULL && shown_is_judged(peer->shown, peer->server))
        return &peer->shown->certificate;
    return peer_judge(peer, der, count) ? &peer->shown->certificate : &unread;
}
