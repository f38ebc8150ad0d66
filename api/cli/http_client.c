/* http_client.c - one HTTP request, sent once. */
#include "api/cli/http_client.h"

#include <assert.h>
#include <curl/curl.h>
#include <stdlib.h>

#include "api/cli/cli.h"

/* One request under way. */
struct exchange {
    CURL *easy;
    struct curl_slist *headers;
    const struct http_client_request *request;
    struct http_client_answer *answer;
    size_t size;
    char error[CURL_ERROR_SIZE];
};

/* -- the request */

static void header_add(struct exchange *exchange, const char *line)
{
    struct curl_slist *longer = curl_slist_append(exchange->headers, line);

    if (longer == NULL) {
        abort();
    }
    exchange->headers = longer;
}

static void headers_add(struct exchange *exchange)
{
    const struct http_client_header *header = exchange->request->headers;

    /* "Name:" takes a header of libcurl's own away (CURLOPT_HTTPHEADER(3)). With Expect, a 417 would make it
     * send twice. */
    header_add(exchange, "Expect:");
    header_add(exchange, "Content-Type:");
    for (unsigned i = 0; i < HTTP_CLIENT_HEADERS_MAX && header[i].name != NULL; i++) {
        size_t size = strlen(header[i].name) + 2 + header[i].value.len + 1;
        char *line;

        if (header[i].value.len == 0) {
            continue;
        }
        for (size_t at = 0; at < header[i].value.len; at++) {
            unsigned char c = (unsigned char)header[i].value.at[at];
            assert(c >= 0x20 && c != 0x7f); /* a line feed would begin a header of somebody else's choice */
        }
        line = cli_alloc(size);
        snprintf(line, size, "%s: %.*s", header[i].name, (int)header[i].value.len, header[i].value.at);
        header_add(exchange, line);
        explicit_bzero(line, size);
        free(line);
    }
    curl_easy_setopt(exchange->easy, CURLOPT_HTTPHEADER, exchange->headers);
}

static size_t body_take(char *at, size_t one, size_t len, void *user)
{
    struct exchange *exchange = user;
    struct http_client_answer *answer = exchange->answer;
    long status = 0;

    (void)one; /* always 1 (CURLOPT_WRITEFUNCTION(3)) */
    curl_easy_getinfo(exchange->easy, CURLINFO_RESPONSE_CODE, &status);
    if (exchange->request->sink != NULL && status >= 200 && status < 300) {
        return fwrite(at, 1, len, exchange->request->sink);
    }
    if (answer->len + len > HTTP_CLIENT_ANSWER_MAX) {
        return 0;
    }
    while (answer->len + len >= exchange->size) {
        exchange->size *= 2;
    }
    answer->body = cli_realloc(answer->body, exchange->size);
    memcpy(answer->body + answer->len, at, len);
    answer->len += len;
    answer->body[answer->len] = '\0';
    return len;
}

static void options_set(struct exchange *exchange)
{
    const struct http_client_request *request = exchange->request;
    CURL *easy = exchange->easy;
    long timeout_ms = request->timeout_ms > 0 ? (long)request->timeout_ms : HTTP_CLIENT_TIMEOUT_MS;

    curl_easy_setopt(easy, CURLOPT_URL, request->url);
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    /* Also switches off http_proxy and all_proxy (CURLOPT_PROXY(3)). */
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
    curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)HTTP_CLIENT_CONNECT_TIMEOUT_MS);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, timeout_ms);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "pawl/" PAWL_VERSION);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, exchange->error);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, body_take);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, exchange);
    if (request->body.at != NULL) {
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body.len);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request->body.at);
    }
    headers_add(exchange);
}

/* -- the answer */

static void header_keep(struct exchange *exchange, const char *name, char buf[HTTP_CLIENT_HEADER_SIZE])
{
    struct curl_header *header = NULL;

    if (curl_easy_header(exchange->easy, name, 0, CURLH_HEADER, -1, &header) == CURLHE_OK &&
        strlen(header->value) < HTTP_CLIENT_HEADER_SIZE) {
        snprintf(buf, HTTP_CLIENT_HEADER_SIZE, "%s", header->value);
    }
}

/* Both must agree that nothing left: how far libcurl came, and the count of its bytes of the request that
 * were handed to the kernel (CURLINFO_REQUEST_SIZE, raised in lib/http.c Curl_buffer_send() after each
 * write). */
static bool certainly_not_sent(CURL *easy, CURLcode code)
{
    long sent = -1;
    bool on_the_way = code == CURLE_OPERATION_TIMEDOUT || code == CURLE_COULDNT_CONNECT ||
                      code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_SSL_CONNECT_ERROR ||
                      code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_URL_MALFORMAT ||
                      code == CURLE_UNSUPPORTED_PROTOCOL;

    return on_the_way && curl_easy_getinfo(easy, CURLINFO_REQUEST_SIZE, &sent) == CURLE_OK && sent == 0;
}

static enum http_client_outcome exchange_run(struct exchange *exchange)
{
    struct http_client_answer *answer = exchange->answer;
    CURLcode code = curl_easy_perform(exchange->easy);
    long status = 0;

    if (code != CURLE_OK) {
        snprintf(answer->why, sizeof(answer->why), "%s",
                 exchange->error[0] != '\0' ? exchange->error : curl_easy_strerror(code));
        return certainly_not_sent(exchange->easy, code) ? HTTP_CLIENT_NOT_SENT : HTTP_CLIENT_UNKNOWN;
    }
    curl_easy_getinfo(exchange->easy, CURLINFO_RESPONSE_CODE, &status);
    answer->status = (unsigned)status;
    header_keep(exchange, "ETag", answer->etag);
    header_keep(exchange, "Fencing-Status", answer->fencing_status);
    return HTTP_CLIENT_ANSWERED;
}

enum http_client_outcome http_client_send(const struct http_client_request *request,
                                          struct http_client_answer *answer)
{
    struct exchange exchange = {.easy = curl_easy_init(), .request = request, .answer = answer, .size = 4096};
    enum http_client_outcome outcome;

    if (exchange.easy == NULL) {
        abort();
    }
    *answer = (struct http_client_answer){.body = cli_alloc(exchange.size)};
    answer->body[0] = '\0';
    options_set(&exchange);
    outcome = exchange_run(&exchange);
    curl_slist_free_all(exchange.headers);
    curl_easy_cleanup(exchange.easy);
    return outcome;
}

void http_client_answer_done(struct http_client_answer *answer)
{
    if (answer->body != NULL) {
        explicit_bzero(answer->body, answer->len); /* a lease_id may have been in it */
        free(answer->body);
    }
    answer->body = NULL;
    answer->len = 0;
}
