/* acquire.h - pawl acquire: what was asked for. For its own files alone. */
#ifndef PAWL_CLI_ACQUIRE_H
#define PAWL_CLI_ACQUIRE_H

#include "api/cli/ask.h"
#include "api/cli/secret.h"
#include "shared/json_write.h"

struct acquire {
    const char *lease_url, *holder, *lease_id_file, *meta, *mode;
    uint64_t ttl_ms, wait_ms, lock_delay_ms;
    unsigned permits; /* 0: it is no semaphore */
    uint64_t wait_until_ms;
    enum output output;
    bool trace;
    const char *name;
    char lease_id[SECRET_SIZE], in_file[SECRET_SIZE]; /* in_file: what the file is known to have */
    enum secret_origin origin;
    bool in_doubt; /* it may have been granted */
    struct json_out body;
    struct ask ask;
};

/* The flags. CLI_GO_ON, or the exit status. */
int acquire_read(struct acquire *acquire, int argc, char **argv);
/* As ask.prepare: the body, with what is left of the wait, and a time limit that is longer than it. */
void acquire_prepare(struct ask *ask);
uint64_t acquire_left_ms(const struct acquire *acquire);

#endif
