/* grant.h - a grant as it is shown. */
#ifndef PAWL_CLI_GRANT_H
#define PAWL_CLI_GRANT_H

#include "api/cli/ask.h"
#include "api/cli/flags.h"

/* Shows the grant in the answer; done: "acquired", "renewed". As text without its secrets. The exit status.
 */
int grant_show(const struct ask *ask, const struct http_client_answer *answer, enum output output,
               const char *done);

#endif
