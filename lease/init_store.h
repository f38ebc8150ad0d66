/* init_store.h - pawl-lease --init-store: make a store in an empty Redis. */
#ifndef PAWL_LEASE_INIT_STORE_H
#define PAWL_LEASE_INIT_STORE_H

#include "shared/service/service.h"

/* The exit status: 0 created; 1 there is one already; 69 the store cannot be reached; 78 it can lose
 * locks. Says so. */
int init_store(struct service *service);

#endif
