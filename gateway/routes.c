/* routes.c - the addresses of pawl-gateway, and the operation behind each. */
#include "gateway/routes.h"

#include "gateway/gate.h"

const struct http_route gateway_routes[] = {
    {HTTP_PUT, "/v1/resources/{key**}", HTTP_BODY_BYTES, 0, false, write_start},
    {HTTP_DELETE, "/v1/resources/{key**}", HTTP_BODY_NONE, 0, false, remove_start},
    {HTTP_GET, "/v1/resources/{key**}", HTTP_BODY_NONE, 0, false, read_start},
    {HTTP_GET, "/v1/marks/{lease}", HTTP_BODY_NONE, 0, false, mark_start},
    {HTTP_ANY, "/v1/check/{lease**}", HTTP_BODY_DROPPED, 0, true, check_start},
    {0, NULL, HTTP_BODY_NONE, 0, false, NULL},
};
