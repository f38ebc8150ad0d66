/* tls.c - TLS as a filter of bytes: GnuTLS above, a socket that does not block below.
 *
 * What GnuTLS has encrypted goes into a buffer of ours, which takes everything, and from there to the kernel.
 * So gnutls_record_send() never stops half-way: repeating it is not safe while the peer asks for new keys
 * (3.7: gnutls_record_send2() in RECORD_SEND_KEY_UPDATE_1 forgets what was to be flushed, or sends it twice).
 * At most one record waits there; then the caller waits. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "shared/tls/tls.h"
#include "shared/tls/tls_internal.h"

enum { OUT_FIRST = 2048, OUT_KEPT = 8192, RSA_BITS_MAX = 8192, RSA_EXPONENT_MAX = 4 };

struct tls_client {
    struct tls tls;
    struct tls_trust *trust;
    gnutls_typed_vdata_st wanted[2]; /* of the certificate; GnuTLS keeps no copy */
    char host[];                     /* nor of that */
};

/* -- whom to trust */

struct tls_trust *tls_trust_of_nobody(void)
{
    struct tls_trust *trust = calloc(1, sizeof(*trust));

    if (trust == NULL || gnutls_certificate_allocate_credentials(&trust->credentials) < 0) {
        free(trust);
        return NULL;
    }
    trust->users = 1;
    return trust;
}

struct tls_trust *tls_trust_of_system(void)
{
    struct tls_trust *trust = tls_trust_of_nobody();

    if (trust != NULL)
        gnutls_certificate_set_x509_system_trust(trust->credentials);
    return trust;
}

struct tls_trust *tls_trust_new(const char *ca_file, const char **why)
{
    struct tls_trust *trust = ca_file != NULL ? tls_trust_of_nobody() : tls_trust_of_system();
    int count;

    *why = NULL;
    if (trust == NULL || ca_file == NULL)
        return trust;
    count = gnutls_certificate_set_x509_trust_file(trust->credentials, ca_file, GNUTLS_X509_FMT_PEM);
    if (count > 0)
        return trust;
    *why = count == GNUTLS_E_MEMORY_ERROR ? NULL : "the file that says whom to trust has no certificate";
    tls_trust_free(trust);
    return NULL;
}

bool tls_trust_show(struct tls_trust *trust, const char *cert_file, const char *key_file, const char **why)
{
    int code = gnutls_certificate_set_x509_key_file(trust->credentials, cert_file, key_file,
                                                    GNUTLS_X509_FMT_PEM);

    *why = code >= 0 || code == GNUTLS_E_MEMORY_ERROR ? NULL
           : code == GNUTLS_E_FILE_ERROR
               ? "the file of the certificate to show, or that of its key, cannot be read"
           : code == GNUTLS_E_CERTIFICATE_KEY_MISMATCH
               ? "the certificate to show is not that of the key"
               : "the file of the certificate to show, or that of its "
                 "key, has none in it (PEM)";
    return code >= 0;
}

struct tls_trust *tls_trust_share(struct tls_trust *trust)
{
    trust->users++;
    return trust;
}

void tls_trust_free(struct tls_trust *trust)
{
    if (trust != NULL && --trust->users == 0) {
        gnutls_certificate_free_credentials(trust->credentials);
        free(trust);
    }
}

/* -- the socket */

static void out_empty(struct tls *tls)
{
    tls->from = tls->to = 0;
    if (tls->size > OUT_KEPT) {
        free(tls->out);
        tls->out = NULL;
        tls->size = 0;
    }
}

static ssize_t out_put(gnutls_transport_ptr_t tls_at, const void *bytes, size_t len)
{
    struct tls *tls = tls_at;
    size_t size = tls->size > 0 ? tls->size : OUT_FIRST;

    while (size - tls->to < len)
        size *= 2;
    if (size > tls->size) {
        char *out = realloc(tls->out, size);

        if (out == NULL) {
            gnutls_transport_set_errno(tls->session, ENOMEM);
            tls->error = ENOMEM;
            return -1;
        }
        tls->out = out;
        tls->size = size;
    }
    memcpy(tls->out + tls->to, bytes, len);
    tls->to += len;
    return (ssize_t)len;
}

/* Not by send(2), which shared/http has taken for itself. */
int tls_flush(struct tls *tls)
{
    while (tls->from < tls->to) {
        ssize_t n = sendto(tls->fd, tls->out + tls->from, tls->to - tls->from, MSG_NOSIGNAL | MSG_DONTWAIT,
                           NULL, 0);

        if (n >= 0) {
            tls->from += (size_t)n;
            tls->sent += (uint64_t)n;
        } else if (errno != EINTR) {
            return -1;
        }
    }
    out_empty(tls);
    return 0;
}

static ssize_t in_take(gnutls_transport_ptr_t tls_at, void *to, size_t size)
{
    struct tls *tls = tls_at;
    ssize_t n = recv(tls->fd, to, size, MSG_DONTWAIT);

    tls->is_dry = n < 0;
    tls->is_midway = tls->is_midway || n > 0;
    if (n < 0) {
        gnutls_transport_set_errno(tls->session, errno);
        tls->error = errno == EAGAIN || errno == EINTR ? 0 : errno;
    }
    return n;
}

/* -- a connection */

static bool is_address(const char *host)
{
    struct in6_addr any;

    return inet_pton(AF_INET, host, &any) == 1 || inet_pton(AF_INET6, host, &any) == 1;
}

void tls_attach(struct tls *tls, int fd, gnutls_pull_func pull)
{
    tls->fd = fd;
    gnutls_transport_set_ptr(tls->session, tls);
    gnutls_transport_set_push_function(tls->session, out_put);
    gnutls_transport_set_pull_function(tls->session, pull);
}

void tls_release(struct tls *tls)
{
    gnutls_deinit(tls->session);
    free(tls->out);
}

/* The key is the other side's choice, and is used before anybody has vouched for it: one with a modulus and
 * an exponent of 32,768 bits would hold its thread up for 17 s. */
static bool key_is_quick(const gnutls_datum_t *der)
{
    gnutls_datum_t n = {NULL, 0}, e = {NULL, 0};
    gnutls_x509_crt_t one;
    unsigned bits = 0;
    bool is_quick = false;

    if (gnutls_x509_crt_init(&one) < 0)
        return false; /* no memory */
    if (gnutls_x509_crt_import(one, der, GNUTLS_X509_FMT_DER) >= 0) {
        switch (gnutls_x509_crt_get_pk_algorithm(one, &bits)) {
        case GNUTLS_PK_RSA:
        case GNUTLS_PK_RSA_PSS:
            is_quick = bits <= RSA_BITS_MAX && gnutls_x509_crt_get_pk_rsa_raw(one, &n, &e) >= 0 &&
                       e.size <= (unsigned)RSA_EXPONENT_MAX + (e.size > 0 && e.data[0] == 0);
            break;
        case GNUTLS_PK_ECDSA:
        case GNUTLS_PK_EDDSA_ED25519:
        case GNUTLS_PK_EDDSA_ED448: is_quick = true;
        }
    }
    gnutls_free(n.data);
    gnutls_free(e.data);
    gnutls_x509_crt_deinit(one);
    return is_quick;
}

int tls_keys_judge(gnutls_session_t session)
{
    unsigned count = 0;
    const gnutls_datum_t *der = gnutls_certificate_get_peers(session, &count);

    for (unsigned i = 0; i < count && i < TLS_CHAIN_MAX; i++)
        if (!key_is_quick(&der[i]))
            return GNUTLS_E_CERTIFICATE_ERROR;
    return 0;
}

/* In TLS 1.2 the server's key is used when its certificate has been verified. */
static int before_its_key_is_used(gnutls_session_t session, unsigned type, unsigned when, unsigned incoming,
                                  const gnutls_datum_t *message)
{
    (void)type, (void)when, (void)message;
    return incoming ? tls_keys_judge(session) : 0;
}

static bool session_set(struct tls_client *client)
{
    static const gnutls_datum_t http = {(unsigned char *)(uintptr_t) "http/1.1", 8};
    gnutls_session_t session = client->tls.session;

    if (!is_address(client->host) &&
        gnutls_server_name_set(session, GNUTLS_NAME_DNS, client->host, strlen(client->host)) < 0)
        return false;
    client->wanted[0] = (gnutls_typed_vdata_st){GNUTLS_DT_DNS_HOSTNAME, (unsigned char *)client->host, 0};
    client->wanted[1] = (gnutls_typed_vdata_st){GNUTLS_DT_KEY_PURPOSE_OID,
                                                (unsigned char *)(uintptr_t)GNUTLS_KP_TLS_WWW_SERVER, 0};
    gnutls_session_set_verify_cert2(session, client->wanted, 2, 0);
    gnutls_handshake_set_hook_function(session, GNUTLS_HANDSHAKE_CERTIFICATE_VERIFY, GNUTLS_HOOK_PRE,
                                       before_its_key_is_used);
    return gnutls_set_default_priority(session) >= 0 &&
           gnutls_alpn_set_protocols(session, &http, 1, 0) >= 0 &&
           gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, client->trust->credentials) >= 0;
}

struct tls *tls_open(struct tls_trust *trust, int fd, const char *host)
{
    size_t len = strlen(host);
    struct tls_client *client = calloc(1, sizeof(*client) + len + 1);
    struct tls *tls = client != NULL ? &client->tls : NULL;

    if (tls == NULL || gnutls_init(&tls->session, GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_NO_TICKETS |
                                                      GNUTLS_FORCE_CLIENT_CERT) < 0) {
        free(client);
        return NULL;
    }
    tls_attach(tls, fd, in_take);
    client->trust = tls_trust_share(trust);
    /* The dot of an absolute name is in no certificate (RFC 6066, 3). */
    memcpy(client->host, host, len > 1 && host[len - 1] == '.' ? len - 1 : len);
    if (!session_set(client)) {
        tls_close(tls);
        return NULL;
    }
    return tls;
}

void tls_close(struct tls *tls)
{
    if (tls != NULL) {
        struct tls_client *client = container_of(tls, struct tls_client, tls);

        tls_release(tls);
        tls_trust_free(client->trust);
        free(client);
    }
}

static const char *why_untrusted(gnutls_session_t session)
{
    static const struct {
        unsigned flag;
        const char *why;
    } reasons[] = {
        {GNUTLS_CERT_UNEXPECTED_OWNER, "its certificate is for another name"},
        {GNUTLS_CERT_EXPIRED, "its certificate has expired"},
        {GNUTLS_CERT_NOT_ACTIVATED, "its certificate is not valid yet"},
        {GNUTLS_CERT_SIGNER_NOT_FOUND, "its certificate comes from no authority that is trusted"},
        {GNUTLS_CERT_REVOKED, "its certificate is revoked"},
        {GNUTLS_CERT_PURPOSE_MISMATCH, "its certificate is not that of a server"},
    };
    unsigned status = gnutls_session_get_verify_cert_status(session);

    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
        if (status & reasons[i].flag)
            return reasons[i].why;
    return "its certificate cannot be trusted";
}

/* Static texts: who asks has closed the connection by then. */
static const char *why_refused(gnutls_alert_description_t alert)
{
#define REFUSED "it refuses TLS with this side"
    switch ((int)alert) {
    case GNUTLS_A_HANDSHAKE_FAILURE: return REFUSED ": the handshake failed";
    case GNUTLS_A_PROTOCOL_VERSION: return REFUSED ": no version of TLS that both speak";
    case GNUTLS_A_BAD_CERTIFICATE: return REFUSED ": the certificate is bad";
    case GNUTLS_A_UNSUPPORTED_CERTIFICATE: return REFUSED ": the certificate is of an unsupported kind";
    case GNUTLS_A_CERTIFICATE_REVOKED: return REFUSED ": the certificate was revoked";
    case GNUTLS_A_CERTIFICATE_EXPIRED: return REFUSED ": the certificate has expired";
    case GNUTLS_A_CERTIFICATE_UNKNOWN: return REFUSED ": the certificate is not accepted";
    case GNUTLS_A_UNKNOWN_CA: return REFUSED ": the certificate's authority is unknown";
    case GNUTLS_A_CERTIFICATE_REQUIRED: return REFUSED ": it wants a certificate";
    case GNUTLS_A_ACCESS_DENIED: return REFUSED ": access denied";
    default: return REFUSED;
    }
}

int tls_fail(struct tls *tls, int code)
{
    int error = tls->error != 0 ? tls->error : code == GNUTLS_E_MEMORY_ERROR ? ENOMEM : EPROTO;

    tls->is_broken = true;
    tls->code = code;
    switch (code) {
    case GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR: tls->why = why_untrusted(tls->session); break;
    case GNUTLS_E_FATAL_ALERT_RECEIVED: tls->why = why_refused(gnutls_alert_get(tls->session)); break;
    case GNUTLS_E_PREMATURE_TERMINATION: tls->why = "its connection ended without TLS' word for it"; break;
    case GNUTLS_E_UNEXPECTED_PACKET_LENGTH:
    case GNUTLS_E_UNEXPECTED_PACKET:
    case GNUTLS_E_UNSUPPORTED_VERSION_PACKET: tls->why = "it does not speak TLS"; break;
    default: tls->why = error == EPROTO ? gnutls_strerror(code) : strerrordesc_np(error); break;
    }
    if (error == ENOMEM)
        tls->why = NULL;
    errno = error;
    return -1;
}

/* The wish for another handshake is ignored (RFC 5246, 7.4.1.1): the peer may go on with its answer, and that
 * in the middle of one GnuTLS takes for an error. */
bool tls_is_to_be_repeated(int code)
{
    return code == GNUTLS_E_INTERRUPTED || code == GNUTLS_E_WARNING_ALERT_RECEIVED ||
           code == GNUTLS_E_REHANDSHAKE;
}

void tls_handshake_end(struct tls *tls, int code)
{
    gnutls_alert_send_appropriate(tls->session, code);
    tls_flush(tls);
    tls_fail(tls, code);
}

enum tls_step tls_handshake(struct tls *tls)
{
    int code = 0;

    while (!tls->is_secure && (code = gnutls_handshake(tls->session)) < 0) {
        if (code != GNUTLS_E_AGAIN && !tls_is_to_be_repeated(code)) {
            tls_handshake_end(tls, code);
            return TLS_FAILED;
        }
        if (code == GNUTLS_E_AGAIN)
            break;
    }
    tls->is_midway = tls->is_midway && tls->is_secure;
    tls->is_secure = tls->is_secure || code == 0;
    if (tls_flush(tls) != 0 && errno != EAGAIN) {
        tls->error = errno;
        tls_fail(tls, GNUTLS_E_PUSH_ERROR);
        return TLS_FAILED;
    }
    return tls->is_secure && !tls_has_unsent(tls) ? TLS_DONE : TLS_WAITS;
}

/* -- bytes */

ssize_t tls_write(struct tls *tls, struct bytes bytes)
{
    size_t owed;

    if (tls->owed == 0) {
        ssize_t n = gnutls_record_send(tls->session, bytes.at,
                                       bytes.len < TLS_RECORD_MAX ? bytes.len : TLS_RECORD_MAX);

        if (n < 0)
            return tls_fail(tls, (int)n);
        tls->owed = (size_t)n;
    }
    if (tls_flush(tls) != 0) {
        if (errno != EAGAIN) {
            tls->error = errno;
            return tls_fail(tls, GNUTLS_E_PUSH_ERROR);
        }
        return -1;
    }
    owed = tls->owed;
    tls->owed = 0;
    return (ssize_t)owed;
}

ssize_t tls_read(struct tls *tls, char *to, size_t size)
{
    ssize_t n = GNUTLS_E_AGAIN;

    tls->error = 0;
    for (unsigned i = 0; i < TLS_SILENT_MAX; i++) {
        tls->is_dry = false;
        n = gnutls_record_recv(tls->session, to, size);
        tls->is_midway = tls->is_midway && n == GNUTLS_E_AGAIN && tls->is_dry;
        if (!tls_is_to_be_repeated((int)n) && (n != GNUTLS_E_AGAIN || tls->is_dry))
            break;
    }
    while (n > 0 && (size_t)n < size && gnutls_record_check_pending(tls->session) > 0) {
        ssize_t more = gnutls_record_recv(tls->session, to + n, size - (size_t)n);

        if (more <= 0)
            break;
        n += more;
    }
    /* New keys have something to say; if the kernel takes it not, the next write brings it along. */
    if (tls_has_unsent(tls) && tls->owed == 0)
        tls_flush(tls);
    if (n >= 0)
        return n;
    if (n == GNUTLS_E_AGAIN || tls_is_to_be_repeated((int)n)) {
        errno = EAGAIN;
        return -1;
    }
    return tls_fail(tls, (int)n);
}

bool tls_is_midway(const struct tls *tls)
{
    return tls->is_midway;
}

bool tls_has_unsent(const struct tls *tls)
{
    return tls->from < tls->to;
}

uint64_t tls_sent(const struct tls *tls)
{
    return tls->sent;
}

const char *tls_why(const struct tls *tls)
{
    return tls->why;
}

void tls_bye(struct tls *tls)
{
    if (tls->is_secure && !tls->is_broken && tls->owed == 0 && !tls_has_unsent(tls)) {
        gnutls_bye(tls->session, GNUTLS_SHUT_WR);
        tls_flush(tls);
    }
}
