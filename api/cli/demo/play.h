/* play.h - plays a hazard. */
#ifndef PAWL_CLI_DEMO_PLAY_H
#define PAWL_CLI_DEMO_PLAY_H

#include "api/cli/demo/hazard.h"

struct play_plan {
    unsigned ttl_ms;
    const char *shim; /* its file; NULL: where the build or the installation has it */
};

/* The exit status: CLI_OK only if the recipe was seen to fail and Pawl was seen to hold. */
int play(const struct hazard *hazard, const struct play_plan *plan);

#endif
