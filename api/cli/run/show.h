/* show.h - who holds the lease that pawl run waits for: one line on a terminal, drawn again and again. */
#ifndef PAWL_CLI_RUN_SHOW_H
#define PAWL_CLI_RUN_SHOW_H

struct run_show;

/* NULL when standard error is no terminal on which we are in front, or it cannot be had: it is only shown. */
struct run_show *run_show_begin(const char *name, const char *lease_url);
/* The line is gone when it returns. It waits for nothing. */
void run_show_end(struct run_show *show);
/* Waits for a look that is under way, a second at most. NULL is fine. */
void run_show_free(struct run_show *show);

#endif
