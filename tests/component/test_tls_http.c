/* test_tls_http.c - ordinary requests and answers, the tests of test_http.c, over TLS. */
#define OVER_TLS

#include "tests/component/test_http.c"
