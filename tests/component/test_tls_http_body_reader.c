/* test_tls_http_body_reader.c - requests in pieces, the tests of test_http_body_reader.c, over TLS. */
#define OVER_TLS

#include "tests/component/test_http_body_reader.c"
