/* options.h - the flags of a program, or of a command of pawl: one table says what they are called, what they
 * take and which place each fills.
 *
 * Parts for everybody: options_word() reads a command line, options_set() a value, options_variable() names
 * the variable (PAWL_ + the flag in capitals), options_print_row() is a line of --help. options_read() is all
 * of it for a daemon: flags beat the environment, which beats the configuration file. An unknown flag, PAWL_
 * variable or member of the file, a value that does not fit, or a secret on the command line is an error with
 * a sentence that names it and says what is right. The file (--config FILE) is a strict JSON object whose
 * members are the flags' names without "--". A value is never empty; a name with "password" or "secret" (and
 * not ending in -file), or a URL with a password, is no flag, and is not repeated in a sentence. A wrong
 * value is an error also where a stronger one wins. */
#ifndef PAWL_SHARED_OPTIONS_H
#define PAWL_SHARED_OPTIONS_H

#include "shared/text/bytes.h"

enum option_kind {
    OPTION_TEXT,
    OPTION_LIST, /* a text whose members have commas between them; as a flag as often as you like */
    OPTION_FLAG,
    OPTION_UNSIGNED,
    OPTION_DURATION_MS, /* "250ms", "30s", "10m", "2h", "1d", or plain milliseconds */
    OPTION_DURATION,    /* not plain: 300 means seconds as often as milliseconds */
    OPTION_BYTES,       /* "1048576", "256MiB", "16KiB" */
    OPTION_CHOICE
};

struct option {
    const char *name; /* "listen": --listen, PAWL_LISTEN, member "listen" */
    enum option_kind kind;
    /* By kind: const char **, const char **, bool *, unsigned *, uint64_t * (ms, both), size_t *, int *
     * (number of the choice). */
    void *place;
    const char *value; /* how the value is called in --help: "ADDR:PORT"; for a choice "text|json" */
    const char *help;
    long long min, max;     /* of numbers, in the unit of the place */
    bool command_line_only; /* like --check-config: not in the environment, not in the file */
    char letter;            /* "-o"; 0: none */
    const char *wanted;     /* what it takes, for sentences; NULL: as kind, value, min and max say */
};

/* -- parts */

/* A command line that is being read; begins with argv and at = 1 (or where the flags begin). */
struct options_line {
    const struct option *table; /* ends with name NULL */
    char **argv;
    int argc, at;        /* at: the next word */
    int behind;          /* the first word behind the first "--"; 0: there was none */
    const char *letters; /* of the word before it, not read yet; NULL: none */
    const char *word;    /* what was read, as it stands there */
    char shown[64]; /* of an unknown flag: what is behind "=" may be a secret that was meant for elsewhere */
    const struct option *option; /* NULL: unknown */
    const char *value;           /* NULL: it takes none, or has none */
};

enum options_word {
    WORD_END,
    WORD_ARGUMENT,  /* word: no flag */
    WORD_FLAG,      /* option and value */
    WORD_NO_VALUE,  /* option needs one, and the line ends */
    WORD_HAS_VALUE, /* option takes none */
    WORD_HELP,      /* --help or -h, when the table has neither */
    WORD_UNKNOWN    /* shown */
};

/* The next: "--name value", "--name=value", or of a flag with a letter "-n", "-n value", "-nvalue", several
 * in one word. No abbreviations: what is clear today may be another flag's tomorrow. */
enum options_word options_word(struct options_line *line);
/* Fills the option's place; false, and the place untouched, when text does not fit. A text's place then
 * points to text itself. */
bool options_set(const struct option *option, const char *text);
/* "1d": milliseconds as options_set() reads them. */
void options_duration(unsigned long long ms, char *buf, size_t size);
/* "a whole number, from 1 to 64" */
void options_wanted(const struct option *option, char *buf, size_t size);
/* "log-level" becomes "PAWL_LOG_LEVEL". */
void options_variable(const char *name, char *buf, size_t size);
/* "  --name VALUE  help", with before in front of the name and width for what is in front of the help, which
 * goes to the next line when that is too long. present: the default; "": none. */
void options_print_row(const struct option *option, const char *before, int width, const char *present);
/* The nearest of names (NULL-terminated) to word, or NULL when none is near (more than two slips, or half of
 * it). */
const char *options_suggest(const char *word, const char *const *names);
/* The whole of a file of at most max bytes, malloc'd, a NUL behind it; NULL with a sentence in why. */
char *options_read_file(const char *path, size_t max, size_t *len, char *why, size_t why_size);

/* -- a daemon's */

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
 * A program's own --config, --check-config are rows of its table like the others. */
enum options_result options_read(const struct options_program *program, int argc, char **argv,
                                 char **environment, char *why, size_t why_size);
void options_texts_free(struct options_text *texts);
void options_print_help(const struct options_program *program);

#endif
