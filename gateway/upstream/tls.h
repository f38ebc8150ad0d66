/* tls.h - what the two files of https share. Nobody else includes it, for it includes libcurl. */
#ifndef PAWL_GATEWAY_UPSTREAM_TLS_H
#define PAWL_GATEWAY_UPSTREAM_TLS_H

#include <curl/curl.h>

#include "gateway/upstream/upstream_internal.h"

struct upstream_tls {
    struct upstream_pool *pool;
    CURLM *multi;
    struct loop_timer timer;
    char *url, *ca_file;
};

/* One exchange. */
struct upstream_secured {
    struct upstream_link *link;
    CURL *easy;
    struct curl_slist *fields;
    bool send_waits, receive_waits; /* libcurl is told to go on when there is more, or room */
    bool done;
    CURLcode result;
};

/* Says to libcurl whom to ask, and what; tls_request.c. */
void tls_request_set(const struct upstream_tls *tls, struct upstream_secured *secured,
                     const struct upstream_request *request);

#endif
