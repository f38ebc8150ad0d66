/* acquire.h - pawl acquire: what was asked for. For acquire.c and its test alone. */
#ifndef PAWL_CLI_ACQUIRE_H
#define PAWL_CLI_ACQUIRE_H

#include "api/cli/verb.h"

struct acquire {
    struct call call;          /* its secret is the lease_id */
    char in_file[SECRET_SIZE]; /* what the file is known to have */
    enum secret_origin origin;
    uint64_t wait_until_ms;
    bool in_doubt; /* it may have been granted */
};

/* As ask.prepare: the body, with what is left of the wait, and a time limit that is longer than it. */
void acquire_prepare(struct ask *ask);

#endif
