/* test_tls_http_stream.c - streams, the tests of test_http_stream.c, over TLS. */
#define OVER_TLS

#include "tests/component/test_http_stream.c"
