/* fields.h - what a header is by its name: fields.def, where the kinds are explained. */
#ifndef PAWL_GATEWAY_FIELDS_H
#define PAWL_GATEWAY_FIELDS_H

#include "shared/text/bytes.h"

enum { FIELD_HOP = 1, FIELD_OWN = 2, FIELD_TARGET = 4, FIELD_VERSION = 8, FIELD_ANSWER = 16 };

/* All kinds that the name, which is not empty, is of, or 0; case does not matter. */
unsigned field_kinds(struct bytes name);
/* Whether the name has only letters, digits and "-": what else is in it becomes "_" as soon as CGI, WSGI, PHP
 * and their like make a variable of it, and so another name. */
bool field_is_plain(struct bytes name);

#endif
