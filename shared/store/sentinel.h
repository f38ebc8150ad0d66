/* sentinel.h - where the primary is that sentinels watch: for the links and subscribers of a process. */
#ifndef PAWL_SHARED_STORE_SENTINEL_H
#define PAWL_SHARED_STORE_SENTINEL_H

#include "shared/store/dial.h"

/* Begins to ask, on this loop; url is of sentinel://, and password that of the nodes (NULL: none). */
struct store_finder *finder_open(struct loop *loop, const struct store_url *url,
                                 const struct store_options *options, const char *password);
/* After all that asks it. */
void finder_close(struct store_finder *finder);

/* -- from any thread */
/* Of a connection without a finder all is as it is. */
/* Host and port of the primary, into its url; false: why it is not known. */
bool finder_leads(struct dial *dial, char why[DIAL_WHY_MAX]);
/* Whether another node has been found to be primary since. */
bool finder_has_moved(const struct dial *dial);
/* The connection has ended. */
void finder_doubt(const struct dial *dial);
/* A pause before the next attempt is not long when the primary may be found any moment. */
uint64_t finder_pause_ms(const struct dial *dial, uint64_t pause_ms);

#endif
