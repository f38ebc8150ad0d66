/* routes.c - the addresses of pawl-lease, and the operation behind each. */
#include "lease/operation.h"
#include "lease/request.h"

const struct http_route lease_routes[] = {
    {HTTP_POST, "/v1/leases/{name}", HTTP_BODY_JSON, REQUEST_BODY_MAX, false, acquire_start, "acquireLease"},
    {HTTP_PUT | HTTP_KEEPS, "/v1/leases/{name}", HTTP_BODY_JSON, REQUEST_BODY_MAX, false, renew_start,
     "renewLease"},
    {HTTP_DELETE | HTTP_KEEPS, "/v1/leases/{name}", HTTP_BODY_NONE, 0, true, release_start, "releaseLease"},
    {HTTP_GET, "/v1/leases/{name}", HTTP_BODY_NONE, 0, false, look_start, "getLease"},
    {HTTP_POST | HTTP_COMMAND, "/v1/leases/{name}/force-release", HTTP_BODY_JSON, REQUEST_BODY_MAX, false,
     force_release_start, "forceReleaseLease"},
    {HTTP_GET, "/v1/leases/{name}/history", HTTP_BODY_NONE, 0, false, history_start, "getLeaseHistory"},
    {HTTP_GET | HTTP_STREAMS, "/v1/events", HTTP_BODY_NONE, 0, true, events_start, "watchEvents"},
    {HTTP_GET, "/v1/leases", HTTP_BODY_NONE, 0, true, list_start, "listLeases"},
    {HTTP_POST, "/v1/leases", HTTP_BODY_JSON, REQUEST_BODY_MAX, false, acquire_several_start,
     "acquireLeases"},
    {HTTP_POST, "/v1/sessions", HTTP_BODY_JSON, REQUEST_BODY_MAX, false, session_open_start, "openSession"},
    {HTTP_PUT | HTTP_KEEPS, "/v1/sessions/{id}", HTTP_BODY_NONE, 0, false, session_renew_start,
     "renewSession"},
    {HTTP_DELETE | HTTP_KEEPS, "/v1/sessions/{id}", HTTP_BODY_NONE, 0, false, session_end_start,
     "endSession"},
    {HTTP_GET, "/v1/sessions/{id}", HTTP_BODY_NONE, 0, false, session_look_start, "getSession"},
    {0, NULL, HTTP_BODY_NONE, 0, false, NULL, NULL},
};
