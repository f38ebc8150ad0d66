/* tls_request.c - a request over https, as libcurl is to make it: of itself it adds, follows,
 * decodes and believes nothing. */
#include <stdlib.h>
#include <strings.h>

#include "gateway/upstream/tls.h"
#include "shared/text/memory.h"

enum { KEPT_MAX_S = 1, NAME_KEPT_S = 10 };

static curl_socket_t tls_socket_open(void *pool_at, curlsocktype purpose, struct curl_sockaddr *address)
{
    const struct upstream_pool *pool = pool_at;
    int fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);

    (void)purpose;
    if (fd < 0) {
        return CURL_SOCKET_BAD;
    }
    uplink_tune_socket(fd, pool->user_timeout_ms);
    return fd;
}

static void field_add(struct upstream_secured *secured, const char *line)
{
    secured->fields = must_have(curl_slist_append(secured->fields, line));
}

static bool fields_have(struct bytes fields, const char *name)
{
    size_t len = strlen(name);

    while (fields.len > len) {
        const char *end = memchr(fields.at, '\n', fields.len);

        if (strncasecmp(fields.at, name, len) == 0 && fields.at[len] == ':') {
            return true;
        }
        fields.len -= (size_t)(end + 1 - fields.at);
        fields.at = end + 1;
    }
    return false;
}

/* A line without a value would take the field away; with a semicolon for the colon it is sent
 * (CURLOPT_HTTPHEADER(3)). */
static void fields_copy(struct upstream_secured *secured, struct bytes fields)
{
    char *copy = must_have(strndup(fields.at != NULL ? fields.at : "", fields.len));

    for (char *line = copy, *next; *line != '\0'; line = next) {
        char *end = strstr(line, "\r\n"), *colon = strchr(line, ':');

        next = end + 2;
        *end = '\0';
        if (colon[1 + strspn(colon + 1, " \t")] == '\0') {
            colon[0] = ';';
            colon[1] = '\0';
        }
        field_add(secured, line);
    }
    free(copy);
}

static void fields_set(struct upstream_secured *secured, const struct upstream_request *request)
{
    fields_copy(secured, request->fields);
    if (!fields_have(request->fields, "Accept")) {
        field_add(secured, "Accept:");
    }
    field_add(secured, "Expect:");
    if (request->body_length < 0) {
        field_add(secured, "Transfer-Encoding: chunked");
    }
    if (secured->link->says_close) {
        field_add(secured, "Connection: close");
    }
    curl_easy_setopt(secured->easy, CURLOPT_HTTPHEADER, secured->fields);
}

static void method_set(CURL *easy, const struct upstream_request *request)
{
    char *method = must_have(strndup(request->method.at, request->method.len));
    char *target = must_have(strndup(request->target.at, request->target.len));
    bool has_length = uplink_wants_length(request);

    if (bytes_are(request->method, "HEAD")) {
        curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    } else if (has_length || request->body_length < 0) {
        curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)request->body_length);
    }
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, method);
    curl_easy_setopt(easy, CURLOPT_REQUEST_TARGET, target);
    free(method);
    free(target);
}

static void peer_set(CURL *easy, const struct upstream_tls *tls)
{
    curl_easy_setopt(easy, CURLOPT_URL, tls->url);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "https");
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_HTTP_TRANSFER_DECODING, 0L);
    curl_easy_setopt(easy, CURLOPT_HTTP_CONTENT_DECODING, 0L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
    if (tls->ca_file != NULL) { /* instead of all that the system trusts */
        curl_easy_setopt(easy, CURLOPT_CAINFO, tls->ca_file);
        curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    }
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)UPSTREAM_CONNECT_MS);
    curl_easy_setopt(easy, CURLOPT_DNS_CACHE_TIMEOUT, (long)NAME_KEPT_S);
    curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, (long)KEPT_MAX_S);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, tls_socket_open);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, tls->pool);
}

void tls_request_set(const struct upstream_tls *tls, struct upstream_secured *secured,
                     const struct upstream_request *request)
{
    peer_set(secured->easy, tls);
    method_set(secured->easy, request);
    fields_set(secured, request);
}
