/* tls.c - the certificates of a daemon: read at the start and again on SIGHUP; when they end. */
#include <time.h>

#include "shared/service/service.h"
#include "shared/tls/tls_server.h"

enum { WHY_SIZE = 512 };

static const char *settings_wrong(const struct service_settings *s)
{
    bool pair = s->tls_cert != NULL && s->tls_key != NULL;

    return pair != (s->tls_cert != NULL || s->tls_key != NULL)
               ? "--tls-cert and --tls-key go together: a certificate with its chain, and its key"
           : s->tls_client_ca != NULL && !pair
               ? "--tls-client-ca is of use with --tls-cert and --tls-key only"
           : s->tls_crl != NULL && s->tls_client_ca == NULL ? "--tls-crl is of use with --tls-client-ca only"
                                                            : NULL;
}

int service_tls_open(struct service *service)
{
    const struct service_settings *s = &service->settings;
    const struct tls_files files = {s->tls_cert, s->tls_key, s->tls_client_ca, s->tls_crl};
    const char *bad = settings_wrong(s);
    char why[WHY_SIZE];

    if (bad == NULL && s->tls_cert != NULL &&
        (service->tls = tls_server_new(&files, why, sizeof(why))) == NULL)
        bad = why;
    return bad != NULL ? service_fail(service, "%s", bad) : -1;
}

/* That of the setting with which the sentence begins. */
static const char *file_of(const struct service_settings *s, const char *why)
{
    const struct {
        struct bytes name;
        const char *file;
    } files[] = {{BYTES("--tls-key:"), s->tls_key},
                 {BYTES("--tls-client-ca:"), s->tls_client_ca},
                 {BYTES("--tls-crl:"), s->tls_crl}};
    struct bytes text = bytes_of(why);

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        if (bytes_take(&text, files[i].name))
            return files[i].file;
    return s->tls_cert;
}

void service_tls_reload(struct service *service)
{
    char why[WHY_SIZE] = "";
    bool good = service->tls == NULL || tls_server_reload(service->tls, why, sizeof(why));
    struct log_field fields[] = {LOG_T("file", bytes_of(file_of(&service->settings, why))),
                                 good ? LOG_END : LOG_T("why", bytes_of(why)), LOG_END};

    atomic_store(&service->tls_lacking, !good);
    if (service->tls != NULL)
        log_event(&service->log, good ? LOG_INFO : LOG_ERROR, good ? "access-loaded" : "access-refused",
                  fields);
}

void service_tls_metrics(const struct service *service, struct json_out *out)
{
    static const char *const flags[] = {
        [TLS_FILE_CERT] = "tls-cert", [TLS_FILE_CLIENT_CA] = "tls-client-ca", [TLS_FILE_CRL] = "tls-crl"};
    const struct metric metric = {"pawl_tls_ends_seconds", METRIC_GAUGE, NULL,
                                  "Until the first certificate of the file ends, or the list of revoked "
                                  "ones is due."};

    if (service->tls == NULL)
        return;
    metric_head_write(&metric, out);
    for (enum tls_file file = 0; file < TLS_FILES; file++) {
        int64_t ends = tls_server_ends(service->tls, file);

        if (ends > 0)
            json_out_print(out, "%s{file=\"%s\"} %lld\n", metric.name, flags[file],
                           (long long)(ends - time(NULL)));
    }
}
