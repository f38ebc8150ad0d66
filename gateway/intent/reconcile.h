/* reconcile.h - a store that was set back has again, as open, what this process had closed: it is closed once
 * more, or newer holders would wait until this gateway starts anew.
 *
 * An intent is a stray when the store lists it as one of this very incarnation and the list of the process
 * (intents.h) has it not. Then it has ended, and nothing of it is sent any more:
 *   - an admission is in the list before its script leaves, on whichever worker; a script that had not left
 *     recorded nothing that could be listed before; the list is asked after the listing has arrived. So what
 *     was listed has been in the list, and has been taken out of it since.
 *   - who takes it out is the closer, when the store has acknowledged that its end is known or that it was
 *     never sent; or store.c, when the store said that it was refused, or the call was not sent.
 *   - what was sent, and has no known end, is never taken out (INTENT_UNKNOWN), nor what is being closed.
 * What is queued is in the list as INTENT_ASKED, also while it is being promoted. */
#ifndef PAWL_GATEWAY_RECONCILE_H
#define PAWL_GATEWAY_RECONCILE_H

#include "gateway/worker.h"

enum { RECONCILE_PAGE_ARGS = 3 };

struct reconcile {
    struct gateway_worker *own;
    /* All stripes were looked at, and what was found is the closer's; or a call failed. Never from inside
     * reconcile_begin(). */
    void (*ended)(struct reconcile *reconcile, bool good);
    struct member_call call;
    unsigned stripe, found;
    char key[KEYS_STRIPE_SIZE];
    size_t from_len; /* where a stripe goes on */
    char from[INTENT_TEXT_MAX];
    struct bytes argv[1 + RECONCILE_PAGE_ARGS + MEMBER_ARGS];
};

/* own and ended are set. False: no call can be made now; ended is not called. */
bool reconcile_begin(struct reconcile *reconcile);

#endif
