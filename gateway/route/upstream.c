/* upstream.c - where a route leads: the URL of the upstream, and the files with what proves it and us. */
#include "gateway/route/route_internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sys/stat.h>

#include "shared/text/ascii.h"
#include "shared/text/read_all.h"
#include "shared/tls/tls.h"

enum { HOST_MAX = 253, SOCKET_PATH_MAX = 107, PORT_MAX = 65535, URL_MAX = 2048 };

/* The parts of a url, before it is known whether the table has such an upstream already. */
struct place {
    enum route_scheme scheme;
    char host[HOST_MAX + 1];
    bool bracketed;
    unsigned port;
    char prefix[ROUTE_PATTERN_MAX + 1];
};

/* -- reading */

static bool has_any(struct bytes text, const char *characters)
{
    for (size_t i = 0; i < text.len; i++)
        if (strchr(characters, text.at[i]) != NULL)
            return true;
    return false;
}

/* "unix:///run/a.sock" is what --redis takes, and the same. */
static bool unix_read(struct route_reading *reading, struct bytes path, struct place *place)
{
    place->scheme = ROUTE_UNIX;
    bytes_take(&path, BYTES("//"));
    if (path.len < 2 || path.at[0] != '/' || path.len > SOCKET_PATH_MAX) {
        return route_wrong(reading, "upstream: behind unix: stands an absolute path of at most %d bytes",
                           SOCKET_PATH_MAX);
    }
    memcpy(place->host, path.at, path.len);
    if (strstr(place->host, "//") != NULL || strstr(place->host, "/./") != NULL ||
        strstr(place->host, "/../") != NULL || path.at[path.len - 1] == '/')
        return route_wrong(reading, "upstream: the path of a socket has no segment that is empty, . or ..");
    return true;
}

static bool port_read(struct route_reading *reading, struct bytes text, struct place *place)
{
    int64_t port = bytes_number(text, 5);

    if (port < 1 || port > PORT_MAX || text.at[0] == '0')
        return route_wrong(reading, "upstream: the port must be 1 to %d", PORT_MAX);
    place->port = (unsigned)port;
    return true;
}

/* In brackets, and written again in the one way that inet_ntop(3) has. */
static bool host_is_ipv6(struct bytes text, char host[HOST_MAX + 1])
{
    struct in6_addr address;
    char copy[INET6_ADDRSTRLEN] = "";

    if (text.len < 4 || text.len - 2 >= sizeof(copy) || text.at[text.len - 1] != ']')
        return false;
    memcpy(copy, text.at + 1, text.len - 2);
    return inet_pton(AF_INET6, copy, &address) == 1 && inet_ntop(AF_INET6, &address, host, HOST_MAX) != NULL;
}

/* getaddrinfo(3) takes "127.1" and "0x7f000001" for addresses: a last label that is a number makes it one,
 * which must then be written with four of them. */
static bool host_is_named(struct bytes text, char host[HOST_MAX + 1])
{
    struct in_addr address;
    const char *label;

    if (text.len == 0 || text.len > HOST_MAX || !ascii_is_alnum(text.at[0]) ||
        !ascii_is_word(text, BYTES(".-_")))
        return false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];

        host[i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    host[text.len] = '\0';
    if (strstr(host, "..") != NULL)
        return false;
    label = strrchr(host, '.');
    label = label != NULL ? label + 1 : host;
    return !ascii_is_digit(label[0]) || inet_pton(AF_INET, host, &address) == 1 ||
           (strspn(label, "0123456789") != strlen(label) && strncmp(label, "0x", 2) != 0);
}

static bool prefix_read(struct route_reading *reading, struct bytes text, struct place *place)
{
    char path[ROUTE_PATH_MAX];
    size_t len = 0;
    const char *why = route_path_canonical(text, path, &len);

    if (why != NULL)
        return route_wrong(reading, "upstream: %s", why);
    if (len > ROUTE_PATTERN_MAX || !bytes_equal((struct bytes){path, len}, text)) {
        return route_wrong(reading,
                           "upstream: the path must be written in its canonical form, at most %d bytes",
                           ROUTE_PATTERN_MAX);
    }
    if (has_any(text, "{}*"))
        return route_wrong(reading, "upstream has no captures and no **: the path of the request follows it");
    len -= path[len - 1] == '/'; /* the request's path begins with one */
    memcpy(place->prefix, path, len);
    return true;
}

static bool tcp_read(struct route_reading *reading, struct bytes text, struct place *place)
{
    const char *slash = text.len > 0 ? memchr(text.at, '/', text.len) : NULL;
    struct bytes host = {text.at, slash != NULL ? (size_t)(slash - text.at) : text.len}, port = {NULL, 0};
    struct bytes prefix = {slash, text.len - host.len};
    const char *colon;

    place->bracketed = host.len > 0 && host.at[0] == '[';
    colon = host.len == 0 || host.at[host.len - 1] == ']' ? NULL : memrchr(host.at, ':', host.len);
    if (colon != NULL) {
        port = (struct bytes){colon + 1, (size_t)(host.at + host.len - colon - 1)};
        host.len = (size_t)(colon - host.at);
    }
    if (!(place->bracketed ? host_is_ipv6(host, place->host) : host_is_named(host, place->host))) {
        return route_wrong(reading,
                           "upstream needs a host: a name, an IPv4 address, or an IPv6 address in []");
    }
    place->port = place->scheme == ROUTE_HTTPS ? 443 : 80;
    if (colon != NULL && !port_read(reading, port, place))
        return false;
    return prefix.len == 0 || prefix_read(reading, prefix, place);
}

/* The report of a fault does not repeat the url: there may be a password in it. */
static bool place_read(struct route_reading *reading, struct bytes url, struct place *place)
{
    struct bytes rest = url;

    if (url.len > URL_MAX)
        return route_wrong(reading, "upstream must have at most %d bytes", URL_MAX);
    if (!ascii_is_visible(url))
        return route_wrong(reading, "upstream must have visible ASCII characters only");
    if (bytes_take(&rest, BYTES("unix:")))
        return unix_read(reading, rest, place);
    if (bytes_take(&rest, BYTES("http://")))
        place->scheme = ROUTE_HTTP;
    else if (bytes_take(&rest, BYTES("https://")))
        place->scheme = ROUTE_HTTPS;
    else
        return route_wrong(reading, "upstream must begin with http://, https:// or unix:/");
    if (has_any(rest, "@"))
        return route_wrong(reading, "upstream must have no user and no password in it");
    if (has_any(rest, "?#"))
        return route_wrong(reading, "upstream must have no query and no fragment");
    return tcp_read(reading, rest, place);
}

/* -- the table's */

static bool has_files(const struct route_upstream *one, const struct bytes files[ROUTE_TLS_FILES])
{
    for (unsigned i = 0; i < ROUTE_TLS_FILES; i++)
        if (!bytes_equal(bytes_of(one->tls_files[i]), files[i]))
            return false;
    return true;
}

static struct route_upstream *upstream_find(const struct route_table *table, const struct place *place,
                                            const struct bytes files[ROUTE_TLS_FILES])
{
    for (unsigned i = 0; i < table->upstream_count; i++) {
        struct route_upstream *one = table->upstreams[i];

        if (one->scheme == place->scheme && one->port == place->port && strcmp(one->host, place->host) == 0 &&
            strcmp(one->prefix, place->prefix) == 0 && has_files(one, files))
            return one;
    }
    return NULL;
}

/* As the Host header has it (RFC 9110, section 7.2): without the port that the scheme has anyway. */
static char *authority_of(struct route_table *table, const struct place *place)
{
    size_t size = sizeof(place->host) + sizeof("[]:65535");
    char *text = route_alloc(table, size, 1);
    unsigned usual = place->scheme == ROUTE_HTTPS ? 443 : 80;

    if (place->scheme == ROUTE_UNIX) {
        snprintf(text, size, "localhost");
        return text;
    }
    snprintf(text, size, place->bracketed ? "[%s]" : "%s", place->host);
    if (place->port != usual) {
        size_t len = strlen(text);
        snprintf(text + len, size - len, ":%u", place->port);
    }
    return text;
}

static struct route_upstream *upstream_add(struct route_table *table, const struct place *place,
                                           const struct bytes files[ROUTE_TLS_FILES])
{
    struct route_upstream *one = route_alloc(table, 1, sizeof(*one));

    *one = (struct route_upstream){
        .scheme = place->scheme,
        .host = route_text(table, bytes_of(place->host)),
        .port = place->port,
        .authority = authority_of(table, place),
        .prefix = route_text(table, bytes_of(place->prefix)),
        .index = table->upstream_count,
    };
    for (unsigned i = 0; i < ROUTE_TLS_FILES; i++)
        one->tls_files[i] = files[i].len > 0 ? route_text(table, files[i]) : NULL;
    table->upstreams[table->upstream_count++] = one;
    return one;
}

struct route_upstream *route_upstream_read(struct route_reading *reading, struct bytes url,
                                           const struct bytes tls_files[ROUTE_TLS_FILES])
{
    struct place place = {0};
    struct route_upstream *found;

    if (!place_read(reading, url, &place))
        return NULL;
    if (tls_files[ROUTE_CA_FILE].len + tls_files[ROUTE_CERT_FILE].len > 0 && place.scheme != ROUTE_HTTPS) {
        route_wrong(reading, "upstream_tls is for an upstream that begins with https://");
        return NULL;
    }
    found = upstream_find(reading->table, &place, tls_files);
    return found != NULL ? found : upstream_add(reading->table, &place, tls_files);
}

/* http and https of one host, both at their usual ports, are one, too. */
bool route_upstream_same_server(const struct route_upstream *a, const struct route_upstream *b)
{
    bool usual = (a->port == 80 && b->port == 443) || (a->port == 443 && b->port == 80);

    return strcmp(a->host, b->host) == 0 && (a->port == b->port || usual);
}

/* == what proves the upstream to the gateway, and the gateway to the upstream */

enum { AUTHORIZATION_MAX = 4096 };

/* Those who read the same files share what was in them: the system's list is long. */
static bool trust_load(struct route_reading *reading, struct route_upstream *upstream)
{
    char *const *files = upstream->tls_files;
    const struct bytes named[] = {bytes_of(files[0]), bytes_of(files[1]), bytes_of(files[2])};
    char why[ROUTE_WHY_SIZE];

    for (unsigned i = 0; i < upstream->index && upstream->trust == NULL; i++) {
        const struct route_upstream *one = reading->table->upstreams[i];

        if (one->trust != NULL && has_files(one, named))
            upstream->trust = tls_trust_share(one->trust);
    }
    if (upstream->trust == NULL)
        upstream->trust = tls_trust_load(files[ROUTE_CA_FILE], files[ROUTE_CERT_FILE], files[ROUTE_KEY_FILE],
                                         why, sizeof(why));
    return upstream->trust != NULL || route_wrong(reading, "%s", why);
}

/* The report of a fault repeats nothing of the file. */
static bool authorization_load(struct route_reading *reading, struct route *route)
{
    static const char name[] = "upstream_authorization_file";
    char text[AUTHORIZATION_MAX + 2]; /* a line's end, and one more to see that it is too long */
    mode_t mode;
    ssize_t got = read_all_of(route->authorization_file, text, sizeof(text), &mode);
    struct bytes value = {text, got > 0 ? (size_t)got : 0};
    bool good = false;

    if (value.len > 0 && text[value.len - 1] == '\n')
        value.len--;
    for (size_t i = 0; i < value.len; i++)
        good = (i == 0 || good) && (unsigned char)text[i] >= ' ' && (unsigned char)text[i] < 0x7f;
    if (got < 0)
        route_wrong(reading, "%s: the file %s cannot be read: %s", name, route->authorization_file,
                    strerrordesc_np(errno));
    else if (S_ISREG(mode) && (mode & (S_IRWXO | S_IWGRP)) != 0)
        route_wrong(reading, "%s: the file %s is refused: others can change it, or read it", name,
                    route->authorization_file);
    else if (!good || value.len > AUTHORIZATION_MAX || !bytes_equal(value, bytes_trim(value)))
        route_wrong(reading,
                    "%s: the file %s must have one line of at most %d visible ASCII characters: all "
                    "that follows \"Authorization: \"",
                    name, route->authorization_file, AUTHORIZATION_MAX);
    else
        route->authorization = route_text(reading->table, value);
    explicit_bzero(text, sizeof(text));
    return !reading->wrong;
}

bool route_proofs_load(struct route_table *table, char why[ROUTE_WHY_SIZE])
{
    struct route_reading reading = {.table = table, .why = why};

    for (unsigned i = 0; i < table->count; i++) {
        struct route *route = reading.route = &table->routes[i];

        if ((route->upstream->scheme == ROUTE_HTTPS && route->upstream->trust == NULL &&
             !trust_load(&reading, route->upstream)) ||
            (route->authorization_file != NULL && !authorization_load(&reading, route)))
            return false;
    }
    return true;
}

void route_table_forget(struct route_table *table)
{
    for (unsigned i = 0; i < table->upstream_count; i++) {
        tls_trust_free(table->upstreams[i]->trust);
        table->upstreams[i]->trust = NULL;
    }
    for (unsigned i = 0; i < table->count; i++)
        if (table->routes[i].authorization != NULL)
            explicit_bzero(table->routes[i].authorization, strlen(table->routes[i].authorization));
}
