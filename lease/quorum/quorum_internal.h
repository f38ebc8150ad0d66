/* quorum_internal.h - what nodes.c and round.c know of each other. */
#ifndef PAWL_LEASE_QUORUM_INTERNAL_H
#define PAWL_LEASE_QUORUM_INTERNAL_H

#include "lease/quorum/quorum.h"

struct loop *quorum_loop(const struct quorum *quorum);
bool quorum_is_stopped(const struct quorum *quorum);
unsigned quorum_timeout_ms(const struct quorum *quorum);
/* Who may be asked, a bit each. */
unsigned quorum_well(const struct quorum *quorum);
static inline unsigned quorum_bits(unsigned set)
{
    return (unsigned)__builtin_popcount(set);
}

struct store *node_store(const struct quorum *quorum, unsigned node);
/* The three arguments that node.lua wants. */
void node_args(const struct quorum *quorum, unsigned node, struct bytes args[3],
               char run[STORE_RUN_ID_LEN + 1], char seen[BYTES_NUMBER_SIZE]);
/* Whether it answered as one that is well; who does not is asked nothing from then on. */
bool node_heard(struct quorum *quorum, unsigned node, const struct store_reply *reply);
/* It has a number so high, which it will not lose unless it is in quarantine. */
void node_seen(struct quorum *quorum, unsigned node, int64_t number);

#endif
