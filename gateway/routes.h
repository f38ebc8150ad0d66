/* routes.h - the addresses of pawl-gateway. */
#ifndef PAWL_GATEWAY_ROUTES_H
#define PAWL_GATEWAY_ROUTES_H

#include "shared/http.h"

extern const struct http_route gateway_routes[];
/* What is not an address of its own: it is forwarded, if a route of the table matches. */
extern const struct http_route gateway_rest;

#endif
