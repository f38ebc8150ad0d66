/* options_value.h - one value of one option: reads it and says what it takes. For shared/options*.c. */
#ifndef PAWL_SHARED_OPTIONS_VALUE_H
#define PAWL_SHARED_OPTIONS_VALUE_H

#include <stdint.h>

#include "shared/options.h"

/* Fills the option's place from text; false, and the place untouched, when it does not fit. An OPTION_TEXT's
 * place then points to text itself. */
bool options_value_set(const struct option *option, const char *text);
/* The same for a number that the configuration file gives as such. */
bool options_value_set_int(const struct option *option, int64_t number);
/* "a whole number from 1 to 64" */
void options_value_wanted(const struct option *option, char *buf, size_t size);
/* What the place holds now, as it would be written; "" when it holds nothing or must not be shown. */
void options_value_present(const struct option *option, char *buf, size_t size);
/* Whether the value itself, by the option's name, is a secret (a file's name is none). */
bool options_value_is_secret(const struct option *option);
/* Whether a text is a URL with a password in it. */
bool options_value_has_password(const char *text);

#endif
