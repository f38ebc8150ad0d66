/* grant.h - a grant as it is shown. */
#ifndef PAWL_CLI_GRANT_H
#define PAWL_CLI_GRANT_H

#include "api/cli/ask.h"

enum grant_kind {
    GRANT_NEW,    /* the lease was acquired */
    GRANT_SAME,   /* an acquire that found that its lease_id holds the lease already */
    GRANT_RENEWED /* the answer to a renewal */
};

/* Shows the grant in the answer as ask.output wants it; as text without its secrets. env and json say of an
 * acquire which of the two it was. The exit status. */
int grant_show(const struct ask *ask, const struct http_client_answer *answer, enum grant_kind kind);

#endif
