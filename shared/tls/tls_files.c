/* tls_files.c - certificates, keys and authorities, from files that nobody else can change. A file that is no
 * good is refused with a sentence that names its setting and the file. */
#include <errno.h>
#include <sys/stat.h>

#include "shared/text/memory.h"
#include "shared/text/read_all.h"
#include "shared/tls/tls.h"
#include "shared/tls/tls_internal.h"

enum { FILE_MAX = 64 << 20 };

bool tls_text_wrong(const struct tls_reading *reading, const char *what, const char *more)
{
    snprintf(reading->why, reading->size, "%s: the file %s %s%s.", reading->setting.name,
             reading->setting.path, what, more);
    return false;
}

void tls_text_forget(struct tls_reading *reading)
{
    if (reading->text.data != NULL)
        explicit_bzero(reading->text.data, reading->text.size);
    free(reading->text.data);
    reading->text = (gnutls_datum_t){NULL, 0};
}

bool tls_text_read(struct tls_reading *reading, struct tls_setting setting, mode_t refused)
{
    ssize_t got;
    mode_t mode;

    tls_text_forget(reading);
    reading->setting = setting;
    reading->text.data = must_have(malloc(FILE_MAX + 1));
    got = read_all_of(setting.path, (char *)reading->text.data, FILE_MAX + 1, &mode);
    reading->text.size = got > 0 ? (unsigned)got : 0;
    if (got < 0)
        return tls_text_wrong(reading, "cannot be read: ", strerrordesc_np(errno));
    if (S_ISREG(mode) && (mode & refused) != 0)
        return tls_text_wrong(reading, "is refused: others can change it",
                              (refused & S_IROTH) ? ", or read it" : "");
    return got <= FILE_MAX || tls_text_wrong(reading, "has more than 64 MiB", "");
}

void tls_ends_lower(int64_t *ends, time_t at)
{
    if (at > 0 && (*ends == 0 || at < *ends))
        *ends = at;
}

gnutls_x509_crt_t *tls_certificates_read(struct tls_reading *reading, struct tls_setting setting,
                                         unsigned *count, int64_t *ends)
{
    gnutls_x509_crt_t *list = NULL;
    int code;

    if (!tls_text_read(reading, setting, S_IWGRP | S_IWOTH))
        return NULL;
    code = gnutls_x509_crt_list_import2(&list, count, &reading->text, GNUTLS_X509_FMT_PEM, 0);
    if (code < 0) {
        tls_text_wrong(reading,
                       code == GNUTLS_E_NO_CERTIFICATE_FOUND
                           ? "has no certificate in it (PEM: -----BEGIN CERTIFICATE-----)"
                           : "has a certificate in it that is damaged or cut short",
                       "");
        return NULL;
    }
    for (unsigned i = 0; i < *count; i++)
        tls_ends_lower(ends, gnutls_x509_crt_get_expiration_time(list[i]));
    return list;
}

static void certificates_free(gnutls_x509_crt_t *list, unsigned count)
{
    for (unsigned i = 0; list != NULL && i < count; i++)
        gnutls_x509_crt_deinit(list[i]);
    gnutls_free(list);
}

static bool key_take(const struct tls_reading *reading, gnutls_certificate_credentials_t credentials,
                     gnutls_x509_crt_t *chain, unsigned count, const char *cert_name)
{
    gnutls_x509_privkey_t key;
    int code = gnutls_x509_privkey_init(&key);

    if (code < 0)
        abort(); /* no memory */
    code = gnutls_x509_privkey_import2(key, &reading->text, GNUTLS_X509_FMT_PEM, NULL, 0);
    if (code >= 0)
        code = gnutls_certificate_set_x509_key(credentials, chain, (int)count, key);
    gnutls_x509_privkey_deinit(key);
    if (code == GNUTLS_E_CERTIFICATE_KEY_MISMATCH)
        return tls_text_wrong(reading, "is not the key of the certificate of ", cert_name);
    return code >= 0 ||
           tls_text_wrong(reading, "has no key in it that can be read (PEM, without a password)", "");
}

bool tls_pair_read(struct tls_reading *reading, gnutls_certificate_credentials_t credentials,
                   struct tls_setting cert, struct tls_setting key, int64_t *ends)
{
    unsigned count = 0;
    gnutls_x509_crt_t *chain = tls_certificates_read(reading, cert, &count, ends);
    bool good = chain != NULL && tls_text_read(reading, key, S_IRWXO | S_IWGRP) &&
                key_take(reading, credentials, chain, count, cert.name);

    certificates_free(chain, count);
    return good;
}

/* -- whom to trust, and what to show */

static bool authorities_read(struct tls_reading *reading, struct tls_trust *trust, struct tls_setting setting)
{
    unsigned count = 0;
    int64_t ends = 0;
    gnutls_x509_crt_t *list = tls_certificates_read(reading, setting, &count, &ends);
    bool good = list != NULL;

    if (good && gnutls_certificate_set_x509_trust(trust->credentials, list, (int)count) < 0)
        good = tls_text_wrong(reading, "has a certificate in it that cannot be used", "");
    certificates_free(list, count);
    return good;
}

struct tls_trust *tls_trust_load(const char *ca_file, const char *cert_file, const char *key_file, char *why,
                                 size_t why_size)
{
    const struct tls_setting ca = {"upstream_tls.ca_file", ca_file},
                             cert = {"upstream_tls.cert_file", cert_file},
                             key = {"upstream_tls.key_file", key_file};
    struct tls_reading reading = {.why = why, .size = why_size};
    struct tls_trust *trust = must_have(ca_file == NULL ? tls_trust_of_system() : tls_trust_of_nobody());
    int64_t ends = 0;
    bool good = (ca_file == NULL || authorities_read(&reading, trust, ca)) &&
                (cert_file == NULL || tls_pair_read(&reading, trust->credentials, cert, key, &ends));

    tls_text_forget(&reading);
    if (good)
        return trust;
    tls_trust_free(trust);
    return NULL;
}
