/* test_tls_server.c - what only TLS does at a service: its files, certificates of clients, ends. */
#define OVER_TLS

#include "tests/component/http_waiting.h"

/* -- a server that asks for certificates, and says what it thinks of them */

enum { PATH_SIZE = 96 };

static struct {
    struct tls_files files;
    char paths[5][PATH_SIZE];
} asking;

static enum step asking_tell(struct http_request *req)
{
    const struct tls_certificate *certificate = http_client_certificate(req);
    struct json_out *json = http_json_begin(req);
    char names[512] = "";
    size_t len = 0;

    for (const char *name = certificate->names; *name != '\0'; name += strlen(name) + 1)
        len += (size_t)snprintf(names + len, sizeof(names) - len, "%s ", name);
    json_int(json, "certified", certificate->certified);
    json_int(json, "first_byte", certificate->sha256[0]);
    json_text(json, "why", bytes_of(certificate->why));
    json_text(json, "names", (struct bytes){names, len});
    return http_json_end(req, 200);
}

static const struct http_route asking_routes[] = {
    {HTTP_GET, "/who", HTTP_BODY_NONE, 0, false, asking_tell, NULL, 0},
    {HTTP_GET, "/suspend/{seat}", HTTP_BODY_NONE, 0, false, seat_suspend, NULL, 0},
    {HTTP_GET, "/hello", HTTP_BODY_NONE, 0, false, seat_hello, NULL, 0},
    {0, NULL, HTTP_BODY_NONE, 0, false, NULL, NULL, 0},
};

static const char *path_of(unsigned i, const char *name)
{
    snprintf(asking.paths[i], PATH_SIZE, "%s/%s", safe.dir, name);
    return asking.paths[i];
}

static struct certified certified_as(const char *purpose)
{
    return (struct certified){"Client.Example", false, -60, TLS_DAY_S, purpose};
}

static void asking_open(void)
{
    struct http_options options = waiting_options();
    const char *bad = NULL;
    char why[256] = "";

    safe_open();
    asking.files = (struct tls_files){path_of(0, "s.pem"), path_of(1, "s.key"), safe.authority.file, NULL};
    path_of(2, "c.pem");
    path_of(3, "c.key");
    pair_write(&safe.authority, (struct certified){"localhost", true, -60, TLS_DAY_S, FOR_SERVERS},
               asking.files.cert, asking.files.key);
    over_tls.server = tls_server_new(&asking.files, why, sizeof(why));
    over_tls.trust = tls_trust_new(safe.authority.file, &bad);
    if (!CHECK(over_tls.server != NULL))
        printf("# %s\n", why);
    options.routes = asking_routes;
    waiting_start_with(options);
}

static void asking_close(void)
{
    waiting_stop();
    tls_server_free(over_tls.server);
    tls_trust_free(over_tls.trust);
    for (unsigned i = 0; i < 5; i++)
        unlink(asking.paths[i]);
    safe_close();
}

/* The next clients show what stands in their files. */
static void asking_show(void)
{
    const char *bad = NULL;

    tls_trust_free(over_tls.trust);
    over_tls.trust = tls_trust_new(safe.authority.file, &bad);
    CHECK(tls_trust_show(over_tls.trust, asking.paths[2], asking.paths[3], &bad));
}

static void asking_show_this(gnutls_x509_crt_t certificate, gnutls_x509_privkey_t key)
{
    certificate_write(certificate, asking.paths[2]);
    key_write(key, asking.paths[3]);
    asking_show();
}

static void asked(struct client *c, enum tls_certified certified, const char *why, const char *names)
{
    client_text(c, GET("/who"));
    CHECK_INT(client_wait(c), 200);
    CHECK_INT(client_number(c, "certified"), certified);
    if (!CHECK(client_says(c, why)) || !CHECK(client_says(c, names)))
        printf("# %.*s\n", (int)c->body.len, c->body.at);
}

static void shown_is(enum tls_certified certified, const char *why, const char *names)
{
    struct client c;

    client_open(&c, waiting.port);
    asked(&c, certified, why, names);
    client_close(&c);
}

/* -- certificates */

TEST(a_certificate_that_does_not_verify_breaks_no_handshake_and_says_why)
{
    struct authority other;
    const struct authority *const ours = &safe.authority;
    const struct {
        const struct authority *signer;
        struct certified certified;
        enum tls_certified judged;
        const char *why;
    } rows[] = {
        {ours, {"a", false, -60, 60, NULL}, TLS_CERTIFIED_GOOD, "\"why\":\"\""},
        {ours, {"a", false, -60, 60, FOR_CLIENTS}, TLS_CERTIFIED_GOOD, "\"why\":\"\""},
        {ours, {"a", false, -60, -1, NULL}, TLS_CERTIFIED_OUTDATED, "has expired"},
        {ours, {"a", false, 60, 120, NULL}, TLS_CERTIFIED_OUTDATED, "not valid yet"},
        {ours, {"a", false, -60, 60, FOR_SERVERS}, TLS_CERTIFIED_BAD, "not for clients"},
        {ours, {"a", false, -60, -1, FOR_SERVERS}, TLS_CERTIFIED_BAD, "not for clients"},
        {&other, {"a", false, -60, 60, NULL}, TLS_CERTIFIED_BAD, "no authority"},
        {&other, {"a", false, -60, -1, NULL}, TLS_CERTIFIED_BAD, "no authority"},
    };

    authority_make(&other, safe.dir, "other");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        pair_write(rows[i].signer, rows[i].certified, asking.paths[2], asking.paths[3]);
        asking_show();
        shown_is(rows[i].judged, rows[i].why, "\"dns:a \"");
    }
    authority_done(&other);
}

TEST(names_are_the_only_uri_each_dns_name_and_a_common_name_without_others)
{
    static const struct {
        const char *uris[2], *dns[2];
        bool has_address;
        const char *names;
    } rows[] = {
        {{NULL}, {NULL}, false, "\"cn:pawl test \""},
        {{"spiffe://a/b"}, {NULL}, false, "\"uri:spiffe://a/b \""},
        {{"spiffe://a/b", "spiffe://a/c"}, {NULL}, false, "\"names\":\"\""},
        {{"spiffe://a/b", "spiffe://a/c"}, {"x.example"}, false, "\"dns:x.example \""},
        {{"spiffe://a/b"},
         {"X.Example", "y.example"},
         false,
         "\"dns:x.example dns:y.example uri:spiffe://a/b \""},
        {{NULL}, {NULL}, true, "\"names\":\"\""},
    };
    static const unsigned char address[] = {127, 0, 0, 1};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        gnutls_x509_privkey_t key = key_make();
        gnutls_x509_crt_t crt = certificate_begin(key, "pawl test");

        for (unsigned j = 0; j < 2; j++) {
            if (rows[i].uris[j] != NULL)
                gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_URI, rows[i].uris[j],
                                                     (unsigned)strlen(rows[i].uris[j]), GNUTLS_FSAN_APPEND);
            if (rows[i].dns[j] != NULL)
                gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_DNSNAME, rows[i].dns[j],
                                                     (unsigned)strlen(rows[i].dns[j]), GNUTLS_FSAN_APPEND);
        }
        if (rows[i].has_address)
            gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_IPADDRESS, address, 4, GNUTLS_FSAN_APPEND);
        CHECK(gnutls_x509_crt_sign2(crt, safe.authority.certificate, safe.authority.key, GNUTLS_DIG_SHA256,
                                    0) == 0);
        asking_show_this(crt, key);
        shown_is(TLS_CERTIFIED_GOOD, "\"why\":\"\"", rows[i].names);
        gnutls_x509_crt_deinit(crt);
        gnutls_x509_privkey_deinit(key);
    }
}

/* An authority's list, with this certificate in it, unless it is NULL. */
static void crl_write(const struct authority *authority, gnutls_x509_crt_t revoked, int until_s,
                      const char *path)
{
    gnutls_datum_t pem = {NULL, 0};
    gnutls_x509_crl_t list;

    CHECK(gnutls_x509_crl_init(&list) == 0);
    gnutls_x509_crl_set_version(list, 2);
    gnutls_x509_crl_set_this_update(list, time(NULL) - 120);
    gnutls_x509_crl_set_next_update(list, time(NULL) + until_s);
    if (revoked != NULL)
        CHECK(gnutls_x509_crl_set_crt(list, revoked, time(NULL) - 120) == 0);
    CHECK(gnutls_x509_crl_sign2(list, authority->certificate, authority->key, GNUTLS_DIG_SHA256, 0) == 0);
    CHECK(gnutls_x509_crl_export2(list, GNUTLS_X509_FMT_PEM, &pem) == 0);
    pem_write(pem, path);
    gnutls_x509_crl_deinit(list);
}

/* A server of its own with what files say, and back. */
static bool reload_with(struct tls_files files, char why[256])
{
    struct tls_server *server = tls_server_new(&files, why, 256);

    tls_server_free(server);
    return server != NULL;
}

TEST(what_is_read_again_judges_the_certificates_of_connections_that_stand)
{
    gnutls_x509_privkey_t key = key_make();
    gnutls_x509_crt_t crt = certificate_make(&safe.authority, certified_as(NULL), key);
    struct authority other;
    struct client c;
    char why[256], kept[PATH_SIZE];

    path_of(4, "crl.pem");
    crl_write(&safe.authority, NULL, 60, asking.paths[4]);
    struct tls_files files = asking.files;
    files.crl = asking.paths[4];
    struct tls_server *server = tls_server_new(&files, why, sizeof(why)), *before = over_tls.server;
    if (!CHECK(server != NULL))
        return;
    waiting.http->options.tls = server; /* for connections from now on */
    asking_show_this(crt, key);
    client_open(&c, waiting.port);
    asked(&c, TLS_CERTIFIED_GOOD, "\"why\":\"\"", "dns:client.example");

    crl_write(&safe.authority, crt, 60, asking.paths[4]);
    asked(&c, TLS_CERTIFIED_GOOD, "\"why\":\"\"", "dns:client.example");
    CHECK(tls_server_reload(server, why, sizeof(why)));
    asked(&c, TLS_CERTIFIED_BAD, "revoked", "dns:client.example");
    crl_write(&safe.authority, crt, -60, asking.paths[4]); /* a list that is old counts all the same */
    CHECK(tls_server_reload(server, why, sizeof(why)));
    CHECK(tls_server_ends(server, TLS_FILE_CRL) < time(NULL));
    asked(&c, TLS_CERTIFIED_BAD, "revoked", "dns:client.example");
    crl_write(&safe.authority, NULL, 60, asking.paths[4]);
    CHECK(tls_server_reload(server, why, sizeof(why)));
    asked(&c, TLS_CERTIFIED_GOOD, "\"why\":\"\"", "dns:client.example");

    authority_make(&other, safe.dir, "other"); /* takes the place of ours, in its file */
    crl_write(&other, NULL, 60, asking.paths[4]);
    CHECK(!tls_server_reload(server, why, sizeof(why)));
    CHECK(strstr(why, "no authority of --tls-client-ca has signed") != NULL);
    asked(&c, TLS_CERTIFIED_GOOD, "\"why\":\"\"", "dns:client.example");
    snprintf(kept, sizeof(kept), "%s/kept.pem", safe.dir);
    CHECK(rename(safe.authority.file, kept) == 0 && rename(other.file, safe.authority.file) == 0);
    CHECK(tls_server_reload(server, why, sizeof(why)));
    asked(&c, TLS_CERTIFIED_BAD, "no authority", "dns:client.example");
    CHECK(rename(kept, safe.authority.file) == 0);

    client_close(&c);
    UNTIL(http_server_connections(waiting.http) == 0);
    waiting.http->options.tls = before;
    tls_server_free(server);
    authority_done(&other);
    gnutls_x509_crt_deinit(crt);
    gnutls_x509_privkey_deinit(key);
}

/* -- files */

TEST(files_are_refused_with_the_name_of_their_flag)
{
    const struct tls_files good = asking.files;
    const struct {
        const char *path; /* which is changed */
        mode_t mode;
        const char *text; /* NULL: as it is */
        const char *why;
    } rows[] = {
        {good.cert, 0620, NULL, "--tls-cert: the file "},
        {good.cert, 0644, "nonsense", "has no certificate in it"},
        {good.key, 0604, NULL, "others can change it, or read it"},
        {good.key, 0620, NULL, "others can change it"},
        {good.key, 0600, "nonsense", "has no key in it that can be read"},
        {good.client_ca, 0602, NULL, "--tls-client-ca: the file "},
        {good.client_ca, 0644, "", "has no certificate in it"},
    };
    char why[256], kept[PATH_SIZE + 8];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        snprintf(kept, sizeof(kept), "%s.kept", rows[i].path);
        if (rows[i].text != NULL) {
            gnutls_datum_t text = {gnutls_malloc(16), (unsigned)strlen(rows[i].text)};

            memcpy(text.data, rows[i].text, text.size);
            CHECK(rename(rows[i].path, kept) == 0);
            pem_write(text, rows[i].path);
        }
        CHECK(chmod(rows[i].path, rows[i].mode) == 0);
        if (!CHECK(!reload_with(good, why)) || !CHECK(strstr(why, rows[i].why) != NULL))
            printf("# row %zu: %s\n", i, why);
        CHECK(!tls_server_reload(over_tls.server, why, sizeof(why)));
        if (rows[i].text != NULL)
            CHECK(rename(kept, rows[i].path) == 0);
        CHECK(chmod(rows[i].path, 0640) == 0);
        CHECK(tls_server_reload(over_tls.server, why, sizeof(why)));
    }
    pair_write(&safe.authority, certified_as(NULL), asking.paths[2], asking.paths[3]);
    CHECK(!reload_with((struct tls_files){good.cert, asking.paths[3], NULL, NULL}, why));
    CHECK(strstr(why, "is not the key of the certificate of --tls-cert") != NULL);
    CHECK(!reload_with((struct tls_files){"/nowhere", good.key, NULL, NULL}, why));
    CHECK(strstr(why, "--tls-cert: the file /nowhere cannot be read: No such file") != NULL);
}

/* -- bytes, and ends */

/* Whether the next thing that the client reads is TLS' word that nothing more comes. */
static bool is_farewell(struct client *c)
{
    char byte;
    ssize_t got = 0;

    UNTIL((got = tls_read(c->tls, &byte, 1)) >= 0 || errno != EAGAIN);
    return got == 0;
}

TEST(a_connection_that_ends_in_order_says_so_in_tls)
{
    static const struct {
        const char *request;
        unsigned status;
    } rows[] = {
        {"GET /hello HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n", 200},
        {"GET /hello HTTP/1.0\r\n\r\n", 200},
        {"GET https://x/hello HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n", 200},
        {"GET http://x/hello HTTP/1.1\r\n" HOST "\r\n", 400}, /* another scheme is another origin */
        {"GET /hello HTTP/1.1\r\nbroken\r\n\r\n", 400},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct client c;

        client_open(&c, waiting.port);
        client_text(&c, rows[i].request);
        CHECK_INT(client_wait(&c), rows[i].status);
        CHECK(is_farewell(&c));
        client_close(&c);
    }
}

TEST_CLIENT(a_client_that_says_farewell_is_answered_and_told_the_same)
{
    client_open(c, waiting.port);
    client_text(c, GET("/hello"));
    tls_bye(c->tls);
    CHECK_INT(client_wait(c), 200);
    CHECK(is_farewell(c));
}

TEST_CLIENT(requests_and_records_may_be_cut_anywhere)
{
    char requests[4096] = "";

    client_open(c, waiting.port);
    for (unsigned i = 0, at = 0; i < 20; i++)
        at += (unsigned)snprintf(requests + at, sizeof(requests) - at, "%s", GET("/hello"));
    client_text(c, requests); /* in one record */
    for (unsigned i = 0; i < 20; i++)
        CHECK_INT(client_wait(c), 200);
    for (unsigned i = 0; i < 3; i++)
        for (const char *at = GET("/hello"); *at != '\0'; at++)
            client_send(c, (struct bytes){at, 1}); /* a record for each byte */
    for (unsigned i = 0; i < 3; i++)
        CHECK_INT(client_wait(c), 200);
}

/* A handshake of some 15 KB towards a client that takes little, through a socket that takes less. */
TEST(a_handshake_that_the_kernel_does_not_take_at_once_goes_on)
{
    struct http_options options = waiting_options();
    const char *bad = NULL;
    char why[256], all[PATH_SIZE], name[80];
    struct client c;
    FILE *file;

    waiting_stop();
    snprintf(all, sizeof(all), "%s/all.pem", safe.dir);
    file = fopen(all, "we");
    for (unsigned i = 0; i < 200; i++) {
        struct authority one;
        gnutls_datum_t pem = {NULL, 0};

        snprintf(name, sizeof(name), "an authority of many, whose name shall be long, number %u", i);
        authority_make(&one, safe.dir, name);
        CHECK(gnutls_x509_crt_export2(one.certificate, GNUTLS_X509_FMT_PEM, &pem) == 0);
        fwrite(pem.data, 1, pem.size, file);
        gnutls_free(pem.data);
        authority_done(&one);
    }
    fclose(file);
    struct tls_files files = {asking.files.cert, asking.files.key, all, NULL};
    struct tls_server *before = over_tls.server;
    over_tls.server = tls_server_new(&files, why, sizeof(why));
    CHECK(over_tls.server != NULL);
    options.routes = asking_routes;
    waiting_start_small(options, 4096);
    tls_trust_free(over_tls.trust);
    over_tls.trust = tls_trust_new(safe.authority.file, &bad);

    c = (struct client){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), .buf = malloc(CLIENT_BYTES)};
    setsockopt(c.fd, SOL_SOCKET, SO_RCVBUF, &(int){2048}, sizeof(int));
    CHECK(loopback_connect(c.fd, waiting.port) == 0);
    struct tls *tls = tls_open(over_tls.trust, c.fd, "localhost");
    CHECK_INT(tls_handshake(tls), TLS_WAITS);
    turns_in_ms(20);
    CHECK_INT(http_server_connections(waiting.http), 1);
    CHECK(waiting.http->by_fd != NULL);
    enum tls_step step = TLS_WAITS;
    UNTIL((step = tls_handshake(tls)) != TLS_WAITS);
    if (!CHECK_INT(step, TLS_DONE))
        printf("# %s\n", tls_why(tls));
    c.tls = tls;
    asked(&c, TLS_CERTIFIED_NONE, "\"why\":\"\"", "\"names\":\"\"");
    client_close(&c);
    UNTIL(http_server_connections(waiting.http) == 0);
    waiting_stop();
    tls_server_free(over_tls.server);
    over_tls.server = before;
    unlink(all);
    waiting_start_with(options);
}

int main(void)
{
    asking_open();
    check_all_as(NULL);
    asking_close();
    return check_done();
}
