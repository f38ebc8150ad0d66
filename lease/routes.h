/* routes.h - the addresses of pawl-lease. */
#ifndef PAWL_LEASE_ROUTES_H
#define PAWL_LEASE_ROUTES_H

#include "shared/http.h"

extern const struct http_route lease_routes[];

#endif
