/* client_body.h - the small JSON object that a request carries, in a buffer of fixed size. */
#ifndef PAWL_CLIENT_CLIENT_BODY_H
#define PAWL_CLIENT_CLIENT_BODY_H

#include <stdint.h>

#include "api/client/client.h"

struct client_body {
    char at[CLIENT_BODY_SIZE];
    size_t len;
    bool full; /* something did not fit: not to be sent */
};

void body_begin(struct client_body *body);
void body_text(struct client_body *body, const char *name, const char *value); /* NULL: not at all */
void body_number(struct client_body *body, const char *name, uint64_t value);
/* value is JSON already. */
void body_raw(struct client_body *body, const char *name, const char *value);
void body_end(struct client_body *body);

#endif
