/* trace.h - a request as the curl command that would send the same.
 *
 * What proves a hold is not in it, but the variable that has it: "$PAWL_LEASE_ID", "$PAWL_FENCING_TOKEN",
 * "$PAWL_SESSION_SECRET". So the line can be pasted into a terminal, a ticket or a chat. */
#ifndef PAWL_CLI_TRACE_H
#define PAWL_CLI_TRACE_H

#include <stdio.h>

#include "api/client/http_client.h"

/* One line. body_from: where the body comes from, "-" being standard input; NULL: it is shown. */
void trace_curl(FILE *out, const struct http_client_request *request, const char *body_from);

#endif
