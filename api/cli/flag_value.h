/* flag_value.h - the value of a flag. For flags.c alone; others include flags.h. */
#ifndef PAWL_CLI_FLAG_VALUE_H
#define PAWL_CLI_FLAG_VALUE_H

#include "api/cli/flags.h"

/* Fills the flag's place; CLI_GO_ON, or CLI_USAGE when the text does not fit. source: how the sentence calls
 * it. */
int flag_value_set(const struct flag *flag, const char *source, const char *text);
/* The same for every flag that has a variable in the environment. flags ends with name NULL. */
int flag_values_from_environment(const struct flag *flags);

#endif
