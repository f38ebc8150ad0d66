/* routes.c - the addresses of pawl-lease, and the operation behind each. */
#include "lease/routes.h"

#include "lease/ask.h"
#include "lease/operation.h"

const struct http_route lease_routes[] = {
    {HTTP_POST, "/v1/leases/{name}", HTTP_BODY_JSON, ASK_BODY_MAX, false, acquire_start},
    {HTTP_PUT, "/v1/leases/{name}", HTTP_BODY_JSON, ASK_BODY_MAX, false, renew_start},
    {HTTP_DELETE, "/v1/leases/{name}", HTTP_BODY_NONE, 0, true, release_start},
    {HTTP_GET, "/v1/leases/{name}", HTTP_BODY_NONE, 0, false, look_start},
    {HTTP_GET, "/v1/leases", HTTP_BODY_NONE, 0, true, list_start},
    {0, NULL, HTTP_BODY_NONE, 0, false, NULL},
};
