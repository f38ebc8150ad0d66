/* http_head.c - from a URL, headers and who asks to the text of a request. */
#include <arpa/inet.h>
#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/un.h>
#include <unistd.h>

#include "api/client/http_internal.h"
#include "shared/text/ascii.h"
#include "shared/text/read_all.h"

enum { ACCESS_TOKEN_SIZE = 4096, HEAD_OWN_MAX = 256 /* of what is the same in all requests */ };

/* -- the URL */

static const char not_plain[] = "its address is not a plain http:// or https:// one, nor unix:/PATH";

/* The bytes before the first of these, which url is moved over. */
static struct bytes part_until(const char **url, const char *ends)
{
    struct bytes part = {*url, strcspn(*url, ends)};

    *url += part.len;
    return part;
}

static bool host_read(struct http_place *place, struct bytes host)
{
    bool is_ipv6 = host.len > 2 && host.at[0] == '[' && host.at[host.len - 1] == ']';

    if (is_ipv6)
        host = (struct bytes){host.at + 1, host.len - 2};
    if (host.len == 0 || host.len >= sizeof(place->host) ||
        !ascii_is_word(host, is_ipv6 ? BYTES(":.") : BYTES("-._")))
        return false;
    memcpy(place->host, host.at, host.len);
    place->host[host.len] = '\0';
    return !is_ipv6 || inet_pton(AF_INET6, place->host, &(struct in6_addr){0}) == 1;
}

static bool port_read(struct http_place *place, struct bytes port)
{
    int64_t number = bytes_number(port, sizeof(place->port) - 1);

    if (number < 1 || number > UINT16_MAX)
        return false;
    memcpy(place->port, port.at, port.len);
    place->port[port.len] = '\0';
    return true;
}

static bool authority_read(struct http_place *place)
{
    struct bytes host = place->authority;
    const char *port = place->is_tls ? "443" : "80";
    size_t at = host.len;

    while (at > 0 && ascii_is_digit(host.at[at - 1]))
        at--;
    if (at > 0 && host.at[at - 1] == ':') {
        return port_read(place, (struct bytes){host.at + at, host.len - at}) &&
               host_read(place, (struct bytes){host.at, at - 1});
    }
    memcpy(place->port, port, strlen(port) + 1);
    return host_read(place, host);
}

/* A line feed would begin a header of another's choice. */
static bool is_one_line(struct bytes text)
{
    for (size_t at = 0; at < text.len; at++) {
        unsigned char c = (unsigned char)text.at[at];

        if (c < 0x20 || c == 0x7f)
            return false;
    }
    return true;
}

static bool is_target(struct bytes target)
{
    return is_one_line(target) && memchr(target.at, ' ', target.len) == NULL &&
           memchr(target.at, '#', target.len) == NULL;
}

static const char unix_socket[] = "unix:";

/* unix:PATH, and the target behind another colon. */
static const char *unix_read(struct http_place *place, const char *url)
{
    url += sizeof(unix_socket) - 1;
    place->authority = part_until(&url, ":");
    if (*url == ':' && *++url != '/')
        return not_plain;
    place->target = (struct bytes){url, strlen(url)};
    if (place->authority.len < 2 || place->authority.at[0] != '/' || !is_target(place->authority) ||
        place->authority.len >= sizeof(((struct sockaddr_un *)NULL)->sun_path) || !is_target(place->target))
        return not_plain;
    memcpy(place->host, place->authority.at, place->authority.len);
    place->host[place->authority.len] = place->port[0] = '\0';
    return NULL;
}

const char *http_place_read(struct http_place *place, const char *url)
{
    static const char plain[] = "http://", secure[] = "https://";

    place->is_tls = strncmp(url, secure, sizeof(secure) - 1) == 0;
    place->is_unix = *http_client_joint(url) != '\0';
    if (place->is_unix)
        return unix_read(place, url);
    if (place->is_tls)
        url += sizeof(secure) - 1;
    else if (strncmp(url, plain, sizeof(plain) - 1) == 0)
        url += sizeof(plain) - 1;
    else
        return not_plain;
    place->authority = part_until(&url, "/?#");
    place->target = (struct bytes){url, strlen(url)};
    if (*url == '?' || !is_target(place->target) || !authority_read(place))
        return not_plain;
    return NULL;
}

bool http_client_is_base(const char *url)
{
    struct http_place place;

    return http_place_read(&place, url) == NULL && memchr(place.target.at, '?', place.target.len) == NULL &&
           !(place.is_unix && place.target.len > 0);
}

const char *http_client_joint(const char *base)
{
    return strncmp(base, unix_socket, sizeof(unix_socket) - 1) == 0 ? ":" : "";
}

/* -- who asks */

struct http_client_access http_client_access_usual(void)
{
    static const char *const variables[] = {"PAWL_ACCESS_TOKEN_FILE", "PAWL_ACCESS_TOKEN", "PAWL_CACERT",
                                            "PAWL_CERT", "PAWL_CERT_KEY"};
    const char *plaintext = secure_getenv("PAWL_ALLOW_PLAINTEXT");
    struct http_client_access access = {
        .plaintext = plaintext != NULL && (strcmp(plaintext, "1") == 0 || strcmp(plaintext, "true") == 0)};

    for (unsigned i = 0; i < HTTP_ACCESS_TEXTS; i++) {
        const char *value = secure_getenv(variables[i]);

        access.text[i] = value != NULL && *value != '\0' ? value : NULL;
    }
    return access;
}

/* Whether nobody on the way hears what is sent there. A name may be anybody's. */
static bool is_private(const struct http_place *place)
{
    struct in6_addr six;
    struct in_addr four;

    return place->is_tls || place->is_unix || strcasecmp(place->host, "localhost") == 0 ||
           (inet_pton(AF_INET, place->host, &four) == 1 && ntohl(four.s_addr) >> 24 == 127) ||
           (inet_pton(AF_INET6, place->host, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six));
}

static bool shows_token(const struct http_client_access *access)
{
    return access->text[HTTP_ACCESS_TOKEN] != NULL || access->text[HTTP_ACCESS_TOKEN_FILE] != NULL;
}

const char *http_client_access_wrong(const struct http_client_access *access, const char *url)
{
    struct http_place place;
    bool hidden = http_place_read(&place, url) == NULL && is_private(&place);

    if ((access->text[HTTP_ACCESS_CERT_FILE] != NULL) != (access->text[HTTP_ACCESS_KEY_FILE] != NULL))
        return "a certificate to show and its key come together";
    if (shows_token(access) && !access->plaintext && !hidden) {
        return "an access token is sent over https://, a unix socket and loopback alone; elsewhere only with "
               "--allow-plaintext (PAWL_ALLOW_PLAINTEXT), where others may hear it";
    }
    return NULL;
}

/* NULL, and the token is in buf (""; there is none), or why not; it itself is in no sentence. */
static const char *access_token_take(const struct http_client_access *access, char buf[ACCESS_TOKEN_SIZE])
{
    const char *file = access->text[HTTP_ACCESS_TOKEN_FILE], *token = access->text[HTTP_ACCESS_TOKEN];
    /* A FIFO that nobody writes to is empty, and not waited for. */
    int fd = file != NULL ? open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;
    ssize_t got = fd >= 0 ? read_all(fd, buf, ACCESS_TOKEN_SIZE - 1) : -1;
    size_t len = file == NULL && token != NULL ? strnlen(token, ACCESS_TOKEN_SIZE - 1) : 0;

    if (fd >= 0)
        close(fd);
    if (file != NULL && got < 0)
        return "the file of the access token cannot be read";
    if (file != NULL)
        len = (size_t)got;
    else if (len > 0)
        memcpy(buf, token, len);
    if (len == ACCESS_TOKEN_SIZE - 1)
        return "the access token is too long";
    while (len > 0 && (buf[len - 1] == '\n' || buf[len - 1] == '\r'))
        len--;
    buf[len] = '\0';
    if (len == 0 && shows_token(access))
        return "the access token is empty";
    return ascii_is_visible((struct bytes){buf, len}) ? NULL
                                                      : "the access token has a character that is in none";
}

/* -- the head */

static void header_add(struct bytes_out *text, const char *name, struct bytes value)
{
    bytes_put(text, bytes_of(name));
    bytes_put(text, BYTES(": "));
    bytes_put(text, value);
    bytes_put(text, BYTES("\r\n"));
}

/* A server may refuse one of these without a length (RFC 9110, 8.6). */
static bool wants_length(const struct http_client_request *request)
{
    return request->body.at != NULL || strcmp(request->method, "POST") == 0 ||
           strcmp(request->method, "PUT") == 0 || strcmp(request->method, "PATCH") == 0;
}

static void head_write(struct bytes_out *text, const struct http_client_request *request,
                       const struct http_place *place, const char *token)
{
    const struct http_client_header *header = request->headers;
    char length[BYTES_NUMBER_SIZE];

    bytes_put(text, bytes_of(request->method));
    bytes_put(text, BYTES(" "));
    bytes_put(text, place->target.len > 0 ? place->target : BYTES("/"));
    bytes_put(text, BYTES(" HTTP/1.1\r\n"));
    header_add(text, "Host", place->is_unix ? BYTES("localhost") : place->authority);
    header_add(text, "User-Agent", BYTES("pawl/" PAWL_VERSION));
    header_add(text, "Accept", BYTES("*/*"));
    if (*token != '\0') {
        bytes_put(text, BYTES("Authorization: Bearer "));
        bytes_put(text, bytes_of(token));
        bytes_put(text, BYTES("\r\n"));
    }
    for (unsigned i = 0; i < HTTP_CLIENT_HEADERS_MAX && header[i].name != NULL; i++)
        if (header[i].value.len > 0)
            header_add(text, header[i].name, header[i].value);
    if (wants_length(request))
        header_add(text, "Content-Length", bytes_of_number(length, (int64_t)request->body.len));
    bytes_put(text, BYTES("\r\n"));
}

char *http_head_new(const struct http_client_request *request, const struct http_place *place, size_t *len,
                    const char **why)
{
    struct bytes_out text = {.size = HEAD_OWN_MAX + strlen(request->method) + strlen(request->url)};
    char token[ACCESS_TOKEN_SIZE];

    for (unsigned i = 0; i < HTTP_CLIENT_HEADERS_MAX && request->headers[i].name != NULL; i++) {
        if (!is_one_line(request->headers[i].value)) {
            *why = "it has a header with a control character";
            return NULL;
        }
        text.size += strlen(request->headers[i].name) + request->headers[i].value.len + sizeof(": \r\n");
    }
    *why = http_client_access_wrong(&request->access, request->url);
    *why = *why == NULL ? access_token_take(&request->access, token) : *why;
    if (*why == NULL) {
        text.size += strlen(token);
        text.at = malloc(text.size);
        if (text.at != NULL)
            head_write(&text, request, place, token);
        assert(!text.is_full);
    }
    explicit_bzero(token, sizeof(token));
    *len = text.len;
    return text.at;
}
