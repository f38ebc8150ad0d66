/* routes.c - the addresses of pawl-gateway, and the operation behind each. */
#include "gateway/fenced_call.h"
#include "gateway/forward/forward.h"
#include "gateway/intent/intent.h"
#include "gateway/stored/stored.h"
#include "shared/access/access.h"
#include "shared/member/member.h"

const struct http_route gateway_routes[] = {
    {HTTP_PUT, "/v1/resources/{key**}", HTTP_BODY_BYTES, 0, false, write_start, "writeResource",
     ACCESS_NEEDS(ACCESS_KEY, ACCESS_WRITE)},
    {HTTP_DELETE, "/v1/resources/{key**}", HTTP_BODY_NONE, 0, false, remove_start, "deleteResource",
     ACCESS_NEEDS(ACCESS_KEY, ACCESS_WRITE)},
    {HTTP_GET, "/v1/resources/{key**}", HTTP_BODY_NONE, 0, false, read_start, "readResource",
     ACCESS_NEEDS(ACCESS_KEY, ACCESS_READ)},
    {HTTP_GET, "/v1/resources", HTTP_BODY_NONE, 0, true, resources_start, "listResources",
     ACCESS_NEEDS(ACCESS_SOME, ACCESS_READ)},
    {HTTP_GET, "/v1/marks/{lease}", HTTP_BODY_NONE, 0, false, mark_start, "getMark",
     ACCESS_NEEDS(ACCESS_NAME, ACCESS_LOOK)},
    {HTTP_ANY | HTTP_ANY_SITE, "/v1/check/{lease**}", HTTP_BODY_DROPPED, 0, true, check_start, "checkToken",
     ACCESS_NEEDS(ACCESS_FIRST, ACCESS_CHECK)},
    {HTTP_GET, "/v1/intents", HTTP_BODY_NONE, 0, true, intents_all_start, "listIntents",
     ACCESS_NEEDS(ACCESS_SOME, ACCESS_RESOLVE)},
    {HTTP_GET, "/v1/intents/{lease}", HTTP_BODY_NONE, 0, true, intents_start, "listLeaseIntents",
     ACCESS_NEEDS(ACCESS_NAME, ACCESS_RESOLVE)},
    {HTTP_POST | HTTP_COMMAND, "/v1/intents/{lease}/resolve", HTTP_BODY_DROPPED, 0, true, resolve_start,
     "resolveIntents", ACCESS_NEEDS(ACCESS_NAME, ACCESS_RESOLVE)},
    {HTTP_GET, "/v1/gateways/doubt", HTTP_BODY_NONE, 0, false, doubt_start, "listGatewaysInDoubt",
     ACCESS_NEEDS(ACCESS_SOME, ACCESS_OBSERVE)},
    {HTTP_POST | HTTP_COMMAND, "/v1/gateways/{id}/dead", HTTP_BODY_DROPPED, 0, true, dead_start,
     "declareGatewayDead", ACCESS_NEEDS(ACCESS_SOME, ACCESS_OPERATE)},
    {HTTP_GET, "/v1/routes", HTTP_BODY_NONE, 0, false, routes_start, "getRoutes",
     ACCESS_NEEDS(ACCESS_SOME, ACCESS_OBSERVE)},
    {HTTP_POST | HTTP_COMMAND, "/v1/routes/adopt", HTTP_BODY_DROPPED, 0, false, adopt_start, "adoptRoutes",
     ACCESS_NEEDS(ACCESS_SOME, ACCESS_OPERATE)},
    {HTTP_GET | HTTP_STREAMS, "/v1/overview", HTTP_BODY_NONE, 0, false, overview_start, "getOverview",
     ACCESS_NEEDS(ACCESS_SOME, ACCESS_LOOK)},
    {HTTP_POST, "/v1/tokens/inspect", HTTP_BODY_JSON, INSPECT_BODY_MAX, false, inspect_start, "inspectToken",
     ACCESS_NEEDS(ACCESS_SOME, ACCESS_LOOK)},
    {0, NULL, HTTP_BODY_NONE, 0, false, NULL, NULL, 0},
};

const struct http_route gateway_rest = {
    HTTP_ANY | HTTP_ANY_SITE, "/**", HTTP_BODY_STREAMED, 0, true, forward_start, "forward", ACCESS_HANDLER};
