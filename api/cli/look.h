/* look.h - who holds a lease, as pawl get shows it. */
#ifndef PAWL_CLI_LOOK_H
#define PAWL_CLI_LOOK_H

#include <stdio.h>

#include "shared/json.h"

void look_print_text(FILE *out, const struct json *look);
/* LEASE='...' and so on, a line each, for eval in a shell. */
void look_print_env(const struct json *look);

#endif
