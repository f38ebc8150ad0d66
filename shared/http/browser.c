/* browser.c - what a web page makes a browser on this machine send does nothing.
 *
 * A page of any site can have its visitor's browser post to loopback (a form, fetch() with no-cors), and with
 * a name of its own that it points at loopback (DNS rebinding) read the answer, too. The browser says whose
 * page it was in Origin and Sec-Fetch-Site, which no page can set, and by which name it found the service in
 * Host. A program that is no browser sends neither of the first two. */
#include <arpa/inet.h>
#include <strings.h>

#include "shared/http/http_internal.h"
#include "shared/text/ascii.h"

static const struct bytes schemes[] = {{"http://", 7}, {"https://", 8}};
static const struct bytes default_ports[] = {{":80", 3}, {":443", 4}};

static bool is_same_text(struct bytes a, struct bytes b)
{
    return a.len == b.len && strncasecmp(a.at, b.at, a.len) == 0;
}

/* In a list with commas; NULL: there is none. */
static bool list_names(const char *list, struct bytes wanted)
{
    while (list != NULL && *list != '\0') {
        struct bytes one = {list, strcspn(list, ",")};

        if (is_same_text(one, wanted)) {
            return true;
        }
        list += one.len + (list[one.len] == ',');
    }
    return false;
}

static struct bytes without_end(struct bytes text, struct bytes end)
{
    bool ends = text.len >= end.len && memcmp(text.at + text.len - end.len, end.at, end.len) == 0;

    return (struct bytes){text.at, text.len - (ends ? end.len : 0)};
}

/* -- Host */

/* Without the port; {NULL, 0}: what stands behind the colon is none. */
static struct bytes host_name(struct bytes host)
{
    size_t at = host.len;

    while (at > 0 && ascii_is_digit(host.at[at - 1])) {
        at--;
    }
    if (at > 0 && host.at[at - 1] == ':') {
        host.len = at - 1;
    }
    return host.len > 0 && (host.at[0] == '[' || memchr(host.at, ':', host.len) == NULL)
               ? host
               : (struct bytes){NULL, 0};
}

/* RFC 6761, 6.3: nobody else can give out a name below localhost. */
static bool is_loopback_name(struct bytes name)
{
    static const struct bytes below = {".localhost", 10};
    char text[HTTP_ADDRESS_SIZE + 4];

    name = without_end(name, BYTES("."));
    if (bytes_are(name, "127.0.0.1") || /* nearly always */
        is_same_text(name, BYTES("localhost")) ||
        (name.len > below.len &&
         is_same_text((struct bytes){name.at + name.len - below.len, below.len}, below))) {
        return true;
    }
    if (name.len > HTTP_ADDRESS_SIZE) {
        return false;
    }
    memcpy(text, name.at, name.len);
    memcpy(text + name.len, ":0", 3);
    return http_address_is_loopback(text);
}

static bool is_foreign_host(const struct http_request *req)
{
    const struct http_options *options = &req->server->options;
    struct bytes host = http_header(req, "Host", NULL), name = host_name(host);

    if (host.at == NULL || (!options->on_loopback && options->allow_hosts == NULL)) {
        return false; /* HTTP/1.0, which no browser speaks; or its names are not known */
    }
    return name.at == NULL || !(is_loopback_name(name) || list_names(options->allow_hosts, name));
}

/* -- Origin */

static bool is_own_origin(const struct http_request *req, struct bytes origin)
{
    struct bytes host = http_header(req, "Host", NULL);

    for (unsigned i = 0; i < 2; i++) {
        struct bytes scheme = schemes[i], port = default_ports[i];

        if (origin.len > scheme.len && strncasecmp(origin.at, scheme.at, scheme.len) == 0) {
            struct bytes authority = {origin.at + scheme.len, origin.len - scheme.len};

            return is_same_text(without_end(authority, port), without_end(host, port));
        }
    }
    return false; /* "null", too */
}

const char *http_browser_why(const struct http_request *req)
{
    unsigned origins = 0, sites = 0, marks = req->route != NULL ? req->route->methods : 0;
    struct bytes origin = http_header(req, "Origin", &origins);
    struct bytes site = http_header(req, "Sec-Fetch-Site", &sites);
    bool is_listed = origins == 1 && list_names(req->server->options.allow_origins, origin);
    bool reads = (req->method == HTTP_GET || req->method == HTTP_HEAD || req->asks_options) &&
                 !(marks & HTTP_STREAMS);

    if (marks & HTTP_ANY_SITE) {
        return NULL;
    }
    if (is_foreign_host(req)) {
        return "host";
    }
    if (reads || is_listed) {
        return NULL;
    }
    if (origins > 1 || (origins == 1 && !is_own_origin(req, origin))) {
        return "origin";
    }
    return sites == 0 || (sites == 1 && (bytes_are(site, "same-origin") || bytes_are(site, "none"))) ? NULL
                                                                                                     : "site";
}

/* -- the lists, as an operator gave them */

const char *http_browser_lists_check(const char *hosts, const char *origins)
{
    while (hosts != NULL && *hosts != '\0') {
        struct bytes one = {hosts, strcspn(hosts, ",")}, name = host_name(one);

        if (one.len == 0 || name.len != one.len || memchr(one.at, '/', one.len) != NULL) {
            return "--allow-host takes a name or an address as it stands in Host, without a port";
        }
        hosts += one.len + (hosts[one.len] == ',');
    }
    while (origins != NULL && *origins != '\0') {
        struct bytes one = {origins, strcspn(origins, ",")};
        size_t scheme = strncmp(one.at, "https://", 8) == 0 ? 8 : strncmp(one.at, "http://", 7) == 0 ? 7 : 0;

        if (scheme == 0 || one.len == scheme || memchr(one.at + scheme, '/', one.len - scheme) != NULL) {
            return "--allow-origin takes https://NAME, as a browser says it in Origin";
        }
        origins += one.len + (origins[one.len] == ',');
    }
    return NULL;
}
