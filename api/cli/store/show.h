/* show.h - the facts of a store and what they mean, for people and for programs. */
#ifndef PAWL_CLI_STORE_SHOW_H
#define PAWL_CLI_STORE_SHOW_H

#include <stdio.h>

#include "api/cli/store/verdict.h"

/* On stdout. */
void store_show_text(const struct store_facts *facts, const struct store_verdict *verdict);
void store_show_json(const struct store_facts *facts, const struct store_verdict *verdict);
/* The findings alone; nothing when there are none. */
void store_show_findings(FILE *out, const struct store_verdict *verdict);

#endif
