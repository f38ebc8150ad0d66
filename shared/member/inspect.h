/* inspect.h - POST /v1/tokens/inspect: why is a write with this token refused, or would be? */
#ifndef PAWL_SHARED_MEMBER_INSPECT_H
#define PAWL_SHARED_MEMBER_INSPECT_H

#include "shared/http/http.h"

enum { INSPECT_BODY_MAX = 4096 };
/* The handler, of both daemons. */
enum step inspect_start(struct http_request *req);

#endif
