/* routes.h - the addresses of pawl-gateway. */
#ifndef PAWL_GATEWAY_ROUTES_H
#define PAWL_GATEWAY_ROUTES_H

#include "shared/http.h"

extern const struct http_route gateway_routes[];

#endif
