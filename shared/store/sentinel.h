/* sentinel.h - where the primary is that sentinels watch: for the links and subscribers of a process. */
#ifndef PAWL_SHARED_STORE_SENTINEL_H
#define PAWL_SHARED_STORE_SENTINEL_H

#include "shared/store/dial.h"

struct store_finder;

/* Begins to ask, on this loop; url is of sentinel://, and password that of the nodes (NULL: none). */
struct store_finder *finder_open(struct loop *loop, const struct store_url *url,
                                 const struct store_options *options, const char *password);
/* After all that asks it. */
void finder_close(struct store_finder *finder);

enum { FINDER_WHY_MAX = 448 };

/* -- from any thread */
/* Host and port of the primary, into the url, and their version; else why it is not known. */
bool finder_where(struct store_finder *finder, struct store_url *url, unsigned *version,
                  char why[FINDER_WHY_MAX]);
/* Whether another node has been found to be primary since. */
bool finder_has_moved(const struct store_finder *finder, unsigned version);
/* A connection to what was found under this version has ended. */
void finder_doubt(struct store_finder *finder, unsigned version);
/* A pause before the next attempt is not long when the primary may be found any moment. NULL: as it is. */
uint64_t finder_pause_ms(const struct store_finder *finder, uint64_t pause_ms);

#endif
