/* tls_peer.h - the other side of TLS, played by a test: authorities, certificates made by them, and a session
 * over a socket that does not block. */
#ifndef PAWL_TESTS_TLS_PEER_H
#define PAWL_TESTS_TLS_PEER_H

#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <sys/stat.h>
#include <time.h>

#include "tests/unit/check.h"

enum { TLS_DAY_S = 86400 };

#define FOR_SERVERS GNUTLS_KP_TLS_WWW_SERVER
#define FOR_CLIENTS GNUTLS_KP_TLS_WWW_CLIENT

/* Who signs; its own certificate is in a file. */
struct authority {
    gnutls_x509_privkey_t key;
    gnutls_x509_crt_t certificate;
    char file[128];
};

static inline gnutls_x509_privkey_t key_make(void)
{
    gnutls_x509_privkey_t key;

    CHECK(gnutls_x509_privkey_init(&key) == 0);
    CHECK(gnutls_x509_privkey_generate(key, GNUTLS_PK_ECDSA, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1),
                                       0) == 0);
    return key;
}

static inline gnutls_x509_crt_t certificate_begin(gnutls_x509_privkey_t key, const char *name)
{
    static unsigned char serial;
    gnutls_x509_crt_t certificate;

    serial++;
    CHECK(gnutls_x509_crt_init(&certificate) == 0);
    gnutls_x509_crt_set_version(certificate, 3);
    gnutls_x509_crt_set_serial(certificate, &serial, sizeof(serial));
    gnutls_x509_crt_set_activation_time(certificate, time(NULL) - TLS_DAY_S);
    gnutls_x509_crt_set_expiration_time(certificate, time(NULL) + TLS_DAY_S);
    CHECK(gnutls_x509_crt_set_dn_by_oid(certificate, GNUTLS_OID_X520_COMMON_NAME, 0, name,
                                        (unsigned)strlen(name)) == 0);
    CHECK(gnutls_x509_crt_set_key(certificate, key) == 0);
    return certificate;
}

/* Nobody else may read what is written: it may be a key. The text is freed. */
static inline void pem_write(gnutls_datum_t pem, const char *path)
{
    FILE *file;

    unlink(path);
    file = fopen(path, "we");
    CHECK(file != NULL && fchmod(fileno(file), 0600) == 0 &&
          fwrite(pem.data, 1, pem.size, file) == pem.size && fclose(file) == 0);
    gnutls_free(pem.data);
}

static inline void certificate_write(gnutls_x509_crt_t certificate, const char *path)
{
    gnutls_datum_t pem = {NULL, 0};

    CHECK(gnutls_x509_crt_export2(certificate, GNUTLS_X509_FMT_PEM, &pem) == 0);
    pem_write(pem, path);
}

static inline void key_write(gnutls_x509_privkey_t key, const char *path)
{
    gnutls_datum_t pem = {NULL, 0};

    CHECK(gnutls_x509_privkey_export2(key, GNUTLS_X509_FMT_PEM, &pem) == 0);
    pem_write(pem, path);
}

static inline void authority_make(struct authority *authority, const char *dir, const char *name)
{
    authority->key = key_make();
    authority->certificate = certificate_begin(authority->key, name);
    gnutls_x509_crt_set_ca_status(authority->certificate, 1);
    CHECK(gnutls_x509_crt_sign2(authority->certificate, authority->certificate, authority->key,
                                GNUTLS_DIG_SHA256, 0) == 0);
    snprintf(authority->file, sizeof(authority->file), "%s/%s.pem", dir, name);
    certificate_write(authority->certificate, authority->file);
}

static inline void authority_done(struct authority *authority)
{
    unlink(authority->file);
    gnutls_x509_crt_deinit(authority->certificate);
    gnutls_x509_privkey_deinit(authority->key);
}

/* For whom, and valid from when to when, in seconds from now. */
struct certified {
    const char *dns;
    bool is_loopback; /* also for 127.0.0.1 */
    int from_s, until_s;
    const char *purpose; /* an extended key usage; NULL: for all */
};

/* A certificate of the authority's for this key. */
static inline gnutls_x509_crt_t certificate_make(const struct authority *authority,
                                                 struct certified certified, gnutls_x509_privkey_t key)
{
    static const unsigned char loopback[] = {127, 0, 0, 1};
    gnutls_x509_crt_t certificate = certificate_begin(key, "pawl test");

    gnutls_x509_crt_set_activation_time(certificate, time(NULL) + certified.from_s);
    gnutls_x509_crt_set_expiration_time(certificate, time(NULL) + certified.until_s);
    gnutls_x509_crt_set_subject_alt_name(certificate, GNUTLS_SAN_DNSNAME, certified.dns,
                                         (unsigned)strlen(certified.dns), GNUTLS_FSAN_SET);
    if (certified.is_loopback) {
        gnutls_x509_crt_set_subject_alt_name(certificate, GNUTLS_SAN_IPADDRESS, loopback, sizeof(loopback),
                                             GNUTLS_FSAN_APPEND);
    }
    if (certified.purpose != NULL)
        CHECK(gnutls_x509_crt_set_key_purpose_oid(certificate, certified.purpose, 0) == 0);
    CHECK(gnutls_x509_crt_sign2(certificate, authority->certificate, authority->key, GNUTLS_DIG_SHA256, 0) ==
          0);
    return certificate;
}

/* A key, and a certificate of the authority's for it. */
static inline gnutls_certificate_credentials_t identity_make(const struct authority *authority,
                                                             struct certified certified)
{
    gnutls_certificate_credentials_t credentials;
    gnutls_x509_privkey_t key = key_make();
    gnutls_x509_crt_t certificate = certificate_make(authority, certified, key);

    CHECK(gnutls_certificate_allocate_credentials(&credentials) == 0);
    CHECK(gnutls_certificate_set_x509_key(credentials, &certificate, 1, key) == 0);
    gnutls_x509_crt_deinit(certificate);
    gnutls_x509_privkey_deinit(key);
    return credentials;
}

/* The same as two files. */
static inline void pair_write(const struct authority *authority, struct certified certified, const char *cert,
                              const char *key_file)
{
    gnutls_x509_privkey_t key = key_make();
    gnutls_x509_crt_t certificate = certificate_make(authority, certified, key);

    certificate_write(certificate, cert);
    key_write(key, key_file);
    gnutls_x509_crt_deinit(certificate);
    gnutls_x509_privkey_deinit(key);
}

/* One authority, and what a peer shows that it certified, for localhost and 127.0.0.1. */
static struct {
    char dir[64];
    struct authority authority;
    gnutls_certificate_credentials_t identity;
} safe;

static inline void safe_open(void)
{
    const char *dir = getenv("TMPDIR");

    snprintf(safe.dir, sizeof(safe.dir), "%s/tlsXXXXXX", dir != NULL && strlen(dir) < 40 ? dir : "/tmp");
    CHECK(mkdtemp(safe.dir) != NULL);
    authority_make(&safe.authority, safe.dir, "ours");
    safe.identity = identity_make(&safe.authority,
                                  (struct certified){"localhost", true, -60, TLS_DAY_S, FOR_SERVERS});
}

static inline void safe_close(void)
{
    gnutls_certificate_free_credentials(safe.identity);
    authority_done(&safe.authority);
    rmdir(safe.dir);
}

/* The server's side, over a socket that is connected; versions as GnuTLS names them. */
static inline gnutls_session_t session_open(gnutls_certificate_credentials_t credentials, int fd,
                                            const char *versions)
{
    gnutls_session_t session;

    CHECK(gnutls_init(&session, GNUTLS_SERVER | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL) == 0);
    CHECK(gnutls_priority_set_direct(session, versions, NULL) == 0);
    CHECK(gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, credentials) == 0);
    gnutls_transport_set_int(session, fd);
    return session;
}

/* Whether the handshake is over; *code: how. */
static inline bool session_is_through(gnutls_session_t session, int *code)
{
    *code = gnutls_handshake(session);
    return *code != GNUTLS_E_AGAIN && *code != GNUTLS_E_INTERRUPTED;
}

#endif
