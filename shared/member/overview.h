/* overview.h - GET /v1/overview: how things stand, for people: the worst that is the matter, the store, its
 * members, and what has happened in the last ten minutes. Once, or each second. */
#ifndef PAWL_SHARED_MEMBER_OVERVIEW_H
#define PAWL_SHARED_MEMBER_OVERVIEW_H

#include "shared/service/service.h"

/* The handler, of both daemons. */
enum step overview_start(struct http_request *req);

/* -- of the process */
struct overview;
struct overview *overview_new(void);
void overview_free(struct overview *overview);
/* Every 100 ms, on each worker's own thread. */
void overview_tick(struct worker *worker);

#endif
