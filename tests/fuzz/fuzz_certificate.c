/* fuzz_certificate.c - the certificates that a client shows: one behind the other, as DER. As they came,
 * nobody whom the service trusts has signed them, and they are good for nothing; the first one signed anew by
 * its authority has the names that it is meant to have, and is good only if it is for clients. */
#include "shared/tls/tls_server.c" /* peer_judge() */

#include <assert.h>

#include "tests/component/tls_peer.h"

enum { CERTIFICATES = TLS_CHAIN_MAX + 1 };

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static struct tls_server *server_make(void)
{
    char cert[160], key[160], why[256];
    struct tls_files files = {cert, key, safe.authority.file, NULL};
    struct tls_server *server;

    safe_open();
    snprintf(cert, sizeof(cert), "%s/cert.pem", safe.dir);
    snprintf(key, sizeof(key), "%s/key.pem", safe.dir);
    pair_write(&safe.authority, (struct certified){"localhost", true, -60, TLS_DAY_S, NULL}, cert, key);
    server = tls_server_new(&files, why, sizeof(why));
    assert(server != NULL);
    unlink(cert);
    unlink(key);
    unlink(safe.authority.file);
    rmdir(safe.dir);
    return server;
}

static unsigned chain_cut(const unsigned char *data, size_t size, gnutls_datum_t der[CERTIFICATES])
{
    unsigned count = 0;

    while (size > 0 && count < CERTIFICATES) {
        size_t len = size >= 4 && data[1] == 0x82 ? 4 + ((size_t)data[2] << 8 | data[3]) : size;

        len = len < size ? len : size;
        der[count++] = (gnutls_datum_t){(unsigned char *)(uintptr_t)data, (unsigned)len};
        data += len;
        size -= len;
    }
    return count;
}

/* Texts of a line, each with its kind; of URIs one at most, and a common name alone. */
static void names_check(const char *names)
{
    unsigned count = 0, uris = 0, common = 0;

    for (; *names != '\0'; names += strlen(names) + 1, count++) {
        bool is_dns = strncmp(names, "dns:", 4) == 0;

        uris += strncmp(names, "uri:", 4) == 0;
        common += strncmp(names, "cn:", 3) == 0;
        assert(is_dns + uris + common > 0 && *(strchr(names, ':') + 1) != '\0');
        for (const char *c = names; *c != '\0'; c++)
            assert((unsigned char)*c >= ' ' && *c != 0x7f && !(is_dns && *c >= 'A' && *c <= 'Z'));
    }
    assert(uris <= 1 && (common == 0 || count == 1));
}

static enum tls_certified judged(struct tls_server *server, const gnutls_datum_t *der, unsigned count)
{
    struct tls_peer peer = {.server = server};
    enum tls_certified certified = TLS_CERTIFIED_BAD;

    if (peer_judge(&peer, der, count)) {
        certified = peer.shown->certificate.certified;
        assert(certified != TLS_CERTIFIED_NONE);
        assert((certified == TLS_CERTIFIED_GOOD) == (peer.shown->certificate.why == NULL));
        names_check(peer.shown->certificate.names);
    }
    free(peer.shown);
    return certified;
}

static bool is_for_clients(gnutls_x509_crt_t leaf)
{
    char oid[64];
    size_t len = sizeof(oid);
    int code;

    for (unsigned i = 0;; i++, len = sizeof(oid)) {
        code = gnutls_x509_crt_get_key_purpose_oid(leaf, i, oid, &len, NULL);
        if (code < 0)
            return i == 0;
        if (strcmp(oid, GNUTLS_KP_TLS_WWW_CLIENT) == 0 || strcmp(oid, GNUTLS_KP_ANY) == 0)
            return true;
    }
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    static struct tls_server *server;
    gnutls_datum_t der[CERTIFICATES], anew = {NULL, 0};
    gnutls_x509_crt_t leaf;
    unsigned count;

    if (server == NULL)
        server = server_make();
    count = chain_cut(data, size, der);
    if (count == 0)
        return 0;
    assert(judged(server, der, count) == TLS_CERTIFIED_BAD);
    assert(gnutls_x509_crt_init(&leaf) == 0);
    if (gnutls_x509_crt_import(leaf, &der[0], GNUTLS_X509_FMT_DER) >= 0 &&
        gnutls_x509_crt_sign2(leaf, safe.authority.certificate, safe.authority.key, GNUTLS_DIG_SHA256, 0) >=
            0 &&
        gnutls_x509_crt_export2(leaf, GNUTLS_X509_FMT_DER, &anew) >= 0)
        assert(judged(server, &anew, 1) != TLS_CERTIFIED_GOOD || is_for_clients(leaf));
    gnutls_free(anew.data);
    gnutls_x509_crt_deinit(leaf);
    return 0;
}
