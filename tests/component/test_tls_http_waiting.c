/* test_tls_http_waiting.c - requests that wait, the tests of test_http_waiting.c, over TLS. */
#define OVER_TLS

#include "tests/component/test_http_waiting.c"
