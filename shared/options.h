/* options.h - flags beat environment (PAWL_ + the flag in capitals) beat the configuration file.
 *
 * The program gives a table; each row fills one place. An unknown flag, PAWL_ variable or member of the
 * file, a value that does not fit, or a secret on the command line is an error with a sentence that names it
 * and says what is right. The file (--config FILE) is a strict JSON object whose members are the flags'
 * names without "--". A value is never empty; a name with "password" or "secret" (and not ending in -file),
 * or a URL with a password, is no flag, and is not repeated in a sentence. A wrong value is told also where
 * it loses. */
#ifndef PAWL_SHARED_OPTIONS_H
#define PAWL_SHARED_OPTIONS_H

#include <stddef.h>

#include "shared/bytes.h"

enum option_kind {
    OPTION_TEXT,
    OPTION_LIST, /* a text whose members have commas between them; as a flag as often as you like */
    OPTION_FLAG,
    OPTION_UNSIGNED,
    OPTION_DURATION_MS,
    OPTION_BYTES,
    OPTION_CHOICE
};

struct option {
    const char *name; /* "listen": --listen, PAWL_LISTEN, member "listen" */
    enum option_kind kind;
    /* By kind: const char **, const char **, bool *, unsigned *, uint64_t * (ms), size_t *, int * (number of
     * the choice). */
    void *place;
    const char *value; /* how the value is called in --help: "ADDR:PORT"; for a choice "text|json" */
    const char *help;
    long long min, max;     /* of numbers, in the unit of the place */
    bool command_line_only; /* like --check-config: not in the environment, not in the file */
};

/* The texts that came from the file; the caller has a list of them, NULL at first. */
struct options_text {
    struct options_text *next;
    char text[];
};

struct options_program {
    const char *name, *summary, *examples; /* --help begins with the examples */
    const struct option *table;            /* ends with name NULL */
    const char *const *ignored_variables;  /* other programs' PAWL_*, no error; ends with NULL; may be NULL */
    struct options_text **texts; /* where to keep the texts of the file; NULL: they are never freed */
};

enum options_result { OPTIONS_OK, OPTIONS_HELP, OPTIONS_VERSION, OPTIONS_BAD };

/* Fills the places. Texts point into argv, the environment, or program->texts. OPTIONS_HELP,
 * OPTIONS_VERSION: asked for, nothing else was looked at. OPTIONS_BAD: the sentence is in why[why_size].
 * Durations: "250ms", "30s", "10m", "2h", "1d", or plain milliseconds. Bytes: "1048576", "256MiB", "16KiB".
 * A program's own --config, --check-config are rows of its table like the others. */
enum options_result options_read(const struct options_program *program, int argc, char **argv,
                                 char **environment, char *why, size_t why_size);
/* Parse helpers, also for the command line tool. false: not one. */
bool options_duration_ms(const char *text, unsigned long long *ms);
void options_texts_free(struct options_text *texts);
void options_print_help(const struct options_program *program);
/* The whole of a file of at most max bytes, malloc'd, a NUL behind it; NULL with a sentence in why. */
char *options_read_file(const char *path, size_t max, size_t *len, char *why, size_t why_size);

#endif
