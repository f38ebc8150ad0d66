/* test_tls_http_guard.c - heads that are refused, the tests of test_http_guard.c, over TLS. */
#define OVER_TLS

#include "tests/component/test_http_guard.c"
