/* resolve_list.h - what pawl resolve shows: the writes that have no known end, and who is in doubt. */
#ifndef PAWL_CLI_RESOLVE_LIST_H
#define PAWL_CLI_RESOLVE_LIST_H

#include "api/cli/flags.h"

struct resolve_list {
    const char *gateway_url;
    const char *lease; /* NULL: of all leases, and who is in doubt */
    bool trace;        /* say what curl would send (trace.h) */
    enum output output;
};

/* Page after page, as a table or as the gateway's answers, a line for each. That nothing is open is said on
 * stderr. CLI_OK, or has told what went wrong. */
int resolve_list_show(const struct resolve_list *list);

#endif
