/* test_tls_http_limits.c - limits, the tests of test_http_limits.c, over TLS. */
#define OVER_TLS

#include "tests/component/test_http_limits.c"
