/* test_tls_http_suspend.c - requests that wait for long, the tests of test_http_suspend.c, over TLS. */
#define OVER_TLS

#include "tests/component/test_http_suspend.c"
