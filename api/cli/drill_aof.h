/* drill_aof.h - the newest append-only file of a drill's Redis: how much of it there is, and cutting it, as a
 * machine that dies does. Redis must not run while it is cut. */
#ifndef PAWL_CLI_DRILL_AOF_H
#define PAWL_CLI_DRILL_AOF_H

#include "api/cli/drill_world.h"

struct drill_aof {
    char path[DRILL_PATH_SIZE];
    int64_t size;
};

/* The newest file of increments, by the manifest. */
bool drill_aof_find(struct drill_world *world, struct drill_aof *aof);
/* Waits until this text is in its last bytes; size is then that of the file which has it. */
bool drill_aof_await(struct drill_world *world, struct drill_aof *aof, const char *text, unsigned limit_ms);
/* Everything behind size is gone. */
bool drill_aof_cut(struct drill_world *world, const struct drill_aof *aof, int64_t size);
/* redis-check-aof --fix, as an operator would run it. */
bool drill_aof_fix(struct drill_world *world);
/* Rewrites it now, so that it is short, and waits for the end of that. Redis runs. */
bool drill_aof_rewrite(struct drill_world *world, unsigned limit_ms);

#endif
