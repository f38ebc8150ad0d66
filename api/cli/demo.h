/* demo.h - the hazards that pawl demo can show. */
#ifndef PAWL_CLI_DEMO_H
#define PAWL_CLI_DEMO_H

/* The exit status: 0 only if the hazard did harm without the fence, and none with it. */
int demo_stale_holder(void);

#endif
