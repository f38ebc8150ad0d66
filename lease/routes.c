/* routes.c - the addresses of pawl-lease, and the operation behind each. */
#include "lease/operation.h"
#include "lease/request.h"
#include "shared/access/access.h"
#include "shared/member/member.h"

const struct http_route lease_routes[] = {
    {HTTP_POST, "/v1/leases/{name}", HTTP_BODY_JSON, REQUEST_BODY_MAX, false, acquire_start, "acquireLease",
     ACCESS_NEEDS(ACCESS_NAME, ACCESS_ACQUIRE)},
    {HTTP_PUT | HTTP_KEEPS, "/v1/leases/{name}", HTTP_BODY_JSON, REQUEST_BODY_MAX, false, renew_start,
     "renewLease", ACCESS_NEEDS(ACCESS_NAME, ACCESS_ACQUIRE)},
    {HTTP_DELETE | HTTP_KEEPS, "/v1/leases/{name}", HTTP_BODY_NONE, 0, true, release_start, "releaseLease",
     ACCESS_NEEDS(ACCESS_HOLD, ACCESS_ACQUIRE)},
    {HTTP_GET, "/v1/leases/{name}", HTTP_BODY_NONE, 0, false, look_start, "getLease",
     ACCESS_NEEDS(ACCESS_NAME, ACCESS_LOOK)},
    {HTTP_POST | HTTP_COMMAND, "/v1/leases/{name}/force-release", HTTP_BODY_JSON, REQUEST_BODY_MAX, false,
     force_release_start, "forceReleaseLease", ACCESS_NEEDS(ACCESS_NAME, ACCESS_FORCE_RELEASE)},
    {HTTP_GET, "/v1/leases/{name}/history", HTTP_BODY_NONE, 0, false, history_start, "getLeaseHistory",
     ACCESS_NEEDS(ACCESS_NAME, ACCESS_LOOK)},
    {HTTP_GET | HTTP_STREAMS, "/v1/events", HTTP_BODY_NONE, 0, true, events_start, "watchEvents",
     ACCESS_NEEDS(ACCESS_SOME, ACCESS_LOOK)},
    {HTTP_GET, "/v1/leases", HTTP_BODY_NONE, 0, true, list_start, "listLeases",
     ACCESS_NEEDS(ACCESS_SOME, ACCESS_LOOK)},
    {HTTP_POST, "/v1/leases", HTTP_BODY_JSON, REQUEST_BODY_MAX, false, acquire_several_start, "acquireLeases",
     ACCESS_HANDLER},
    {HTTP_POST, "/v1/sessions", HTTP_BODY_JSON, REQUEST_BODY_MAX, false, session_open_start, "openSession",
     ACCESS_NEEDS(ACCESS_SOME, ACCESS_SESSION)},
    {HTTP_GET, "/v1/sessions", HTTP_BODY_NONE, 0, true, session_list_start, "listSessions",
     ACCESS_NEEDS(ACCESS_SOME, ACCESS_LOOK)},
    {HTTP_POST | HTTP_COMMAND, "/v1/sessions/{id}/end", HTTP_BODY_JSON, REQUEST_BODY_MAX, false,
     session_force_end_start, "forceEndSession", ACCESS_NEEDS(ACCESS_SOME, ACCESS_OPERATE)},
    {HTTP_PUT | HTTP_KEEPS, "/v1/sessions/{id}", HTTP_BODY_NONE, 0, false, session_renew_start,
     "renewSession", ACCESS_KNOWN},
    {HTTP_DELETE | HTTP_KEEPS, "/v1/sessions/{id}", HTTP_BODY_NONE, 0, false, session_end_start, "endSession",
     ACCESS_KNOWN},
    {HTTP_GET, "/v1/sessions/{id}", HTTP_BODY_NONE, 0, false, session_look_start, "getSession", ACCESS_KNOWN},
    {HTTP_GET | HTTP_STREAMS, "/v1/overview", HTTP_BODY_NONE, 0, false, overview_start, "getOverview",
     ACCESS_NEEDS(ACCESS_SOME, ACCESS_LOOK)},
    {HTTP_POST, "/v1/tokens/inspect", HTTP_BODY_JSON, INSPECT_BODY_MAX, false, inspect_start, "inspectToken",
     ACCESS_NEEDS(ACCESS_SOME, ACCESS_LOOK)},
    {0, NULL, HTTP_BODY_NONE, 0, false, NULL, NULL, 0},
};
