/* test_tls_http_response_writer.c - answers in pieces, the tests of test_http_response_writer.c, over TLS. */
#define OVER_TLS

#include "tests/component/test_http_response_writer.c"
