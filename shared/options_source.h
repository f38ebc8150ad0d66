/* options_source.h - what the three sources of options share. Only for shared/options*.c. */
#ifndef PAWL_SHARED_OPTIONS_SOURCE_H
#define PAWL_SHARED_OPTIONS_SOURCE_H

#include "shared/options.h"

/* The values as flags and environment give them, for each row of the table; NULL: not given. */
struct options_reading {
    const struct options_program *program;
    unsigned rows;
    const char **flags, **variables;
    char *why;
    size_t why_size;
};

enum { OPTIONS_SOURCE_BYTES = 512 };

/* Writes the sentence. Returns false, so that a caller can pass it on. */
bool options_fail(const struct options_reading *reading, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* "SOURCE was given VALUE; it takes ..."; a value that is or has a secret is not shown. */
bool options_fail_value(const struct options_reading *reading, const struct option *option,
                        const char *source, const char *value);
/* Both, with a comma between them; before may be "". Kept with the program's texts. */
const char *options_list_add(const struct options_program *program, const char *before, const char *text);
/* Fills the places of the members of the file. Texts only where neither flag nor variable will. */
bool options_read_config(const struct options_reading *reading, const char *path);

#endif
