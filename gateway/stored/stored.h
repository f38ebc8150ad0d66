/* stored.h - resources that are kept in the store itself: their writes, and what is read.
 *
 *   _start    the request itself, then the token        400 | 401 | 403 | 428, or go on
 *   _ask      run the script                            suspended
 *   _answers  what the script may reply, and the statuses of that
 *
 * The check and the deed are one script: guarantee=committed. */
#ifndef PAWL_GATEWAY_STORED_H
#define PAWL_GATEWAY_STORED_H

#include "shared/http/http.h"

/* write.c: PUT, DELETE /v1/resources/{key} */
enum step write_start(struct http_request *req);
enum step remove_start(struct http_request *req);
/* read.c: GET, HEAD /v1/resources/{key}; GET /v1/resources, /v1/marks/{lease}; /v1/check/{lease}[/...] */
enum step read_start(struct http_request *req);
enum step resources_start(struct http_request *req);
enum step mark_start(struct http_request *req);
enum step check_start(struct http_request *req);

#endif
