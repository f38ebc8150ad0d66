/* flags.h - the flags of one command: read from the environment, then from the command line, which wins.
 *
 * A flag has exactly one place; which one says what kind it is. PAWL_ and its name in capitals stands for it
 * in the environment, unless it is a switch or for the command line only. */
#ifndef PAWL_CLI_FLAGS_H
#define PAWL_CLI_FLAGS_H

#include <stdbool.h>
#include <stdint.h>

enum output { OUTPUT_TEXT, OUTPUT_JSON, OUTPUT_ENV };

struct flag {
    const char *name;
    char letter;       /* 0: none */
    const char *value; /* how the value is called in --help */
    const char *help;
    const char **text;
    bool *on;
    uint64_t *ms;
    unsigned *number;
    enum output *output;
    enum { FLAG_EVERYWHERE, FLAG_COMMAND_LINE } where;
};

enum { FLAGS_MAX = 16, ARGUMENTS_MAX = 4 };

struct usage {
    const char *name;      /* "acquire" */
    const char *arguments; /* "NAME" */
    const char *examples;  /* --help begins with them */
    const char *summary;
    const struct flag *flags; /* ends with name NULL */
    unsigned arguments_min, arguments_max;
    enum {
        FLAGS_MIXED,
        FLAGS_FIRST
    } order; /* FLAGS_FIRST: what begins with the first argument is not looked at */
};

/* CLI_GO_ON, or the exit status (0: --help was asked for); has said why. arguments that were not given are
 * NULL; with FLAGS_FIRST none is filled. *used: the first argument that was not looked at; may be NULL. */
int flags_read(const struct usage *usage, int argc, char **argv, const char *arguments[ARGUMENTS_MAX + 1],
               int *used);

/* CLI_GO_ON, or CLI_USAGE when the value (NULL is fine) cannot be that of a header: it has control
 * characters. */
int flags_check_line(const char *flag, const char *value);

/* Rows that several commands have. */
struct flag flag_lease_url(const char **place);
struct flag flag_gateway_url(const char **place);
struct flag flag_lease_id_file(const char **place);
struct flag flag_token_file(const char **place);
struct flag flag_output(enum output *place, const char *value);
struct flag flag_ttl(uint64_t *place);
struct flag flag_idempotency_key(const char **place);
struct flag flag_if_match(const char **place);
struct flag flag_trace(bool *place);

#endif
