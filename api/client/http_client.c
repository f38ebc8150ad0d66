/* http_client.c - one HTTP request, sent once. */
#include "api/client/http_client.h"

#include <curl/curl.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>

enum { BODY_SIZE_FIRST = 4096, LOOK_AGAIN_MS = 1000 };

/* One request under way. */
struct exchange {
    CURL *easy;
    struct curl_slist *headers;
    const struct http_client_request *request;
    struct http_client_answer *answer;
    size_t size;
    CURLcode wrong;  /* the first thing that could not be set */
    bool head_whole; /* the empty line behind the answer's head has come */
    char error[CURL_ERROR_SIZE];
};

static const char no_memory[] = "there is no memory for it";

/* -- the request */

static void note(struct exchange *exchange, CURLcode code)
{
    if (exchange->wrong == CURLE_OK) {
        exchange->wrong = code;
    }
}

static void header_add(struct exchange *exchange, const char *line)
{
    struct curl_slist *longer = curl_slist_append(exchange->headers, line);

    if (longer == NULL) {
        note(exchange, CURLE_OUT_OF_MEMORY);
        return;
    }
    exchange->headers = longer;
}

/* A line feed would begin a header of somebody else's choice. */
static bool is_one_line(struct bytes value)
{
    for (size_t at = 0; at < value.len; at++) {
        unsigned char c = (unsigned char)value.at[at];

        if (c < 0x20 || c == 0x7f) {
            return false;
        }
    }
    return true;
}

static void header_add_pair(struct exchange *exchange, const struct http_client_header *header)
{
    size_t size = strlen(header->name) + 2 + header->value.len + 1;
    char *line;

    if (!is_one_line(header->value)) {
        note(exchange, CURLE_BAD_FUNCTION_ARGUMENT);
        return;
    }
    line = malloc(size);
    if (line == NULL) {
        note(exchange, CURLE_OUT_OF_MEMORY);
        return;
    }
    snprintf(line, size, "%s: %.*s", header->name, (int)header->value.len, header->value.at);
    header_add(exchange, line);
    explicit_bzero(line, size);
    free(line);
}

static void headers_add(struct exchange *exchange)
{
    const struct http_client_header *header = exchange->request->headers;

    /* "Name:" takes a header of libcurl's own away (CURLOPT_HTTPHEADER(3)). With Expect, a 417 would make it
     * send twice. */
    header_add(exchange, "Expect:");
    header_add(exchange, "Content-Type:");
    for (unsigned i = 0; i < HTTP_CLIENT_HEADERS_MAX && header[i].name != NULL; i++) {
        if (header[i].value.len > 0) {
            header_add_pair(exchange, &header[i]);
        }
    }
    note(exchange, curl_easy_setopt(exchange->easy, CURLOPT_HTTPHEADER, exchange->headers));
}

/* Room for so many bytes and a NUL. What was there is wiped when it moves: a lease_id may be in it. */
static bool body_room(struct exchange *exchange, size_t len)
{
    struct http_client_answer *answer = exchange->answer;
    size_t size = exchange->size;
    char *body;

    while (len >= size) {
        size *= 2;
    }
    if (size == exchange->size) {
        return true;
    }
    body = malloc(size);
    if (body == NULL) {
        return false;
    }
    memcpy(body, answer->body, answer->len);
    explicit_bzero(answer->body, answer->len);
    free(answer->body);
    answer->body = body;
    exchange->size = size;
    return true;
}

/* An answer that is not what was asked for must not come out as if it were. */
static bool is_for_the_sink(const struct exchange *exchange)
{
    const struct http_client_header *needs = &exchange->request->sink_needs;
    struct curl_header *header = NULL;
    long status = 0;

    curl_easy_getinfo(exchange->easy, CURLINFO_RESPONSE_CODE, &status);
    return exchange->request->sink != NULL && status == 200 &&
           (needs->name == NULL ||
            (curl_easy_header(exchange->easy, needs->name, 0, CURLH_HEADER, -1, &header) == CURLHE_OK &&
             strncmp(header->value, needs->value.at != NULL ? needs->value.at : "", needs->value.len) == 0));
}

static size_t body_take(char *at, size_t one, size_t len, void *user)
{
    struct exchange *exchange = user;
    struct http_client_answer *answer = exchange->answer;

    (void)one; /* always 1 (CURLOPT_WRITEFUNCTION(3)) */
    if (is_for_the_sink(exchange)) {
        return fwrite(at, 1, len, exchange->request->sink);
    }
    if (answer->len + len > HTTP_CLIENT_ANSWER_MAX || !body_room(exchange, answer->len + len)) {
        return 0;
    }
    memcpy(answer->body + answer->len, at, len);
    answer->len += len;
    answer->body[answer->len] = '\0';
    return len;
}

/* libcurl 7.88 takes an answer that is cut within its head for one whose body ends there. */
static size_t head_take(char *at, size_t one, size_t len, void *user)
{
    struct exchange *exchange = user;

    (void)one; /* always 1 (CURLOPT_HEADERFUNCTION(3)) */
    exchange->head_whole = bytes_are((struct bytes){at, len}, "\r\n") ||
                           bytes_are((struct bytes){at, len}, "\n");
    return len;
}

static void options_set(struct exchange *exchange)
{
    const struct http_client_request *request = exchange->request;
    CURL *easy = exchange->easy;
    long timeout_ms = request->timeout_ms > 0 ? (long)request->timeout_ms : HTTP_CLIENT_TIMEOUT_MS;

    note(exchange, curl_easy_setopt(easy, CURLOPT_URL, request->url));
    note(exchange, curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method));
    note(exchange, curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https"));
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    /* Also switches off http_proxy and all_proxy (CURLOPT_PROXY(3)). */
    note(exchange, curl_easy_setopt(easy, CURLOPT_PROXY, ""));
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
    curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)HTTP_CLIENT_CONNECT_TIMEOUT_MS);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, timeout_ms);
    /* Without it, giving up would wait for a slow getaddrinfo() (lib/asyn-thread.c Curl_resolver_kill()). */
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
    note(exchange, curl_easy_setopt(easy, CURLOPT_USERAGENT, "pawl/" PAWL_VERSION));
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, exchange->error);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, head_take);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, exchange);
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
                      code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_ABORTED_BY_CALLBACK ||
                      code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL;

    return on_the_way && curl_easy_getinfo(easy, CURLINFO_REQUEST_SIZE, &sent) == CURLE_OK && sent == 0;
}

/* -- sending */

static bool is_stopped(const struct exchange *exchange, struct curl_waitfd *extra, unsigned *count)
{
    const int *fds = exchange->request->stop_fds;
    struct pollfd ready[HTTP_CLIENT_STOPS_MAX];

    *count = 0;
    for (; fds != NULL && *count < HTTP_CLIENT_STOPS_MAX && fds[*count] >= 0; ++*count) {
        extra[*count] = (struct curl_waitfd){.fd = fds[*count], .events = CURL_WAIT_POLLIN};
        ready[*count] = (struct pollfd){.fd = fds[*count], .events = POLLIN};
    }
    return *count > 0 && poll(ready, *count, 0) > 0;
}

static CURLcode multi_result(CURLM *multi)
{
    int left;
    const CURLMsg *message = curl_multi_info_read(multi, &left);

    return message != NULL && message->msg == CURLMSG_DONE ? message->data.result : CURLE_OUT_OF_MEMORY;
}

static CURLcode multi_run(struct exchange *exchange, CURLM *multi)
{
    struct curl_waitfd extra[HTTP_CLIENT_STOPS_MAX];
    unsigned count;
    bool stopped = is_stopped(exchange, extra, &count);
    int running = 1;

    while (!stopped) {
        if (curl_multi_perform(multi, &running) != CURLM_OK) {
            return CURLE_OUT_OF_MEMORY;
        }
        if (running == 0) {
            return multi_result(multi);
        }
        if (curl_multi_poll(multi, extra, count, LOOK_AGAIN_MS, NULL) != CURLM_OK) {
            return CURLE_OUT_OF_MEMORY;
        }
        stopped = is_stopped(exchange, extra, &count);
    }
    exchange->answer->stopped = true;
    return CURLE_ABORTED_BY_CALLBACK;
}

static CURLcode exchange_perform(struct exchange *exchange)
{
    CURLM *multi = curl_multi_init();
    CURLcode code = CURLE_OUT_OF_MEMORY;

    if (multi != NULL && curl_multi_add_handle(multi, exchange->easy) == CURLM_OK) {
        code = multi_run(exchange, multi);
        curl_multi_remove_handle(multi, exchange->easy);
    }
    curl_multi_cleanup(multi);
    return code;
}

static enum http_client_outcome exchange_run(struct exchange *exchange)
{
    struct http_client_answer *answer = exchange->answer;
    CURLcode code = exchange_perform(exchange);
    curl_off_t again = 0;
    long status = 0;

    if (code == CURLE_OK && !exchange->head_whole) {
        code = CURLE_PARTIAL_FILE;
    }
    if (code != CURLE_OK) {
        snprintf(answer->why, sizeof(answer->why), "%s",
                 exchange->error[0] != '\0' ? exchange->error : curl_easy_strerror(code));
        return certainly_not_sent(exchange->easy, code) ? HTTP_CLIENT_NOT_SENT : HTTP_CLIENT_UNKNOWN;
    }
    curl_easy_getinfo(exchange->easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(exchange->easy, CURLINFO_RETRY_AFTER, &again);
    answer->status = (unsigned)status;
    answer->retry_after_s = again > 0 && again < UINT16_MAX ? (unsigned)again : 0;
    header_keep(exchange, "ETag", answer->etag);
    header_keep(exchange, "Content-Type", answer->content_type);
    header_keep(exchange, "Date", answer->date);
    header_keep(exchange, "Fencing-Status", answer->fencing_status);
    header_keep(exchange, "Fencing-Mark", answer->fencing_mark);
    return HTTP_CLIENT_ANSWERED;
}

enum http_client_outcome http_client_send(const struct http_client_request *request,
                                          struct http_client_answer *answer)
{
    struct exchange exchange = {.request = request, .answer = answer, .size = BODY_SIZE_FIRST};
    enum http_client_outcome outcome = HTTP_CLIENT_NOT_SENT;

    *answer = (struct http_client_answer){.body = malloc(exchange.size)};
    /* Makes libcurl ready, the first time, under a lock of its own (7.84 and later: lib/easy.c). */
    exchange.easy = curl_easy_init();
    if (answer->body == NULL || exchange.easy == NULL) {
        snprintf(answer->why, sizeof(answer->why), "%s", no_memory);
        answer->no_memory = true;
    } else {
        answer->body[0] = '\0';
        options_set(&exchange);
        if (exchange.wrong == CURLE_OK) {
            outcome = exchange_run(&exchange);
        } else {
            answer->no_memory = exchange.wrong == CURLE_OUT_OF_MEMORY;
            snprintf(answer->why, sizeof(answer->why), "%s",
                     answer->no_memory ? no_memory : "it has a header with a control character");
        }
    }
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
