/* flags.h - the flags of one command: read from the environment, then from the command line, which wins.
 *
 * PAWL_ and its name in capitals stands for it in the environment, unless it is a switch or for the command
 * line only. */
#ifndef PAWL_CLI_FLAGS_H
#define PAWL_CLI_FLAGS_H

#include <stdbool.h>

#include "shared/service/options.h"

enum output { OUTPUT_TEXT, OUTPUT_JSON, OUTPUT_ENV };

enum { FLAGS_MAX = 24, ARGUMENTS_MAX = 4 };

/* What help.txt says of a command; deploy/build/texts.py makes these rows of it. */
struct usage {
    const char *name;      /* "acquire" */
    const char *arguments; /* "KEY [FILE]": it must have the first, and may have the second */
    const char *examples;  /* --help begins with them */
    const char *summary;
    const struct option *flags; /* NULL in a row */
};
extern const struct usage usages[]; /* end with name NULL */
/* What completes a command line in a shell. */
extern const struct completion {
    const char *name, *text;
} completions[]; /* the same */

/* The command of that name. flags end with name NULL, or are NULL; with --lease-url or --gateway-url those
 * that say who asks are there, too, and become the environment's. CLI_GO_ON, or the exit status (0: --help
 * was asked for); has said why. arguments that were not given are NULL; arguments may be NULL. */
int flags_read(const char *name, const struct option *flags, int argc, char **argv,
               const char *arguments[ARGUMENTS_MAX + 1]);
/* Those in front of the command: the same up to the first word that is no flag, which is *used. */
int flags_read_front(const struct option *flags, int argc, char **argv, int *used);
/* What --help begins with: examples, arguments, and what the command does. */
void usage_print(const char *name);

/* Where the command of a command begins, which is the second word that is neither a flag nor a flag's value.
 */
int flags_split(const struct option *flags, int argc, char **argv);

/* CLI_GO_ON, or CLI_USAGE when the value (NULL is fine) cannot be that of a header: it has control
 * characters. */
int flags_check_line(const char *flag, const char *value);

/* -- commands by their names: of pawl itself (of: ""), of pawl store (of: "store ") */

struct command {
    const char *name; /* NULL behind the last */
    int (*run)(int argc, char **argv);
    const char *help; /* NULL: not for people */
};

/* NULL: there is none. */
const struct command *command_find(const struct command *commands, const char *name);
/* Runs the one that argv[0] names. */
int command_run(const struct command *commands, const char *of, int argc, char **argv);
/* As --help shows them. */
void command_list(const struct command *commands, int width);
void command_complete(const struct command *commands, const char *typed);
/* A command that has commands of its own. */
int command_group(const struct command *commands, const char *of, int argc, char **argv);
/* CLI_USAGE: has said that there is no such word, and which of names (NULL-terminated) was probably meant. */
int command_unknown(const char *of, const char *word, const char *const *names);

/* -- what may come next on a command line, out of the same tables as --help
 *
 * A command is asked by its own name, FLAGS_COMPLETE and the words that follow it so far, the last of which
 * is being typed (it may be empty): flags_read() prints then, and reads nothing. One candidate a line, a tab
 * and what it means behind it, or what a shell knows better:
 *
 *   :files  :directories   names of files          :leases  names of leases, as pawl ls tells them
 *   :hazards  :accidents   as pawl demo and pawl drill list them
 *   :command N             a command of its own begins N words before the end */
#define FLAGS_COMPLETE "--complete-words"

/* Whether it is this that the words ask for. */
bool flags_complete_wanted(int argc, char **argv);

/* -- rows */

/* FLAG_ENV is taken from the environment, too. The compiler looks that each place is of the flag's kind. */
#define FLAG_PLACE(type, place) (true ? (place) : (type *)NULL)
#define FLAG_ROW(of_kind, type, flag_name, flag_value, flag_help, flag_place, ...)                           \
    {                                                                                                        \
        .name = flag_name, .kind = of_kind, .place = FLAG_PLACE(type, flag_place), .value = flag_value,      \
        .help = flag_help, __VA_ARGS__                                                                       \
    }
#define FLAG_ENV(name, value, help, place)                                                                   \
    FLAG_ROW(OPTION_TEXT, const char *, name, value, help, place, .command_line_only = false)
#define FLAG_TEXT(name, value, help, place)                                                                  \
    FLAG_ROW(OPTION_TEXT, const char *, name, value, help, place, .command_line_only = true)
#define FLAG_ENV_MS(name, value, help, place)                                                                \
    FLAG_ROW(OPTION_DURATION, uint64_t, name, value, help, place, .command_line_only = false)
#define FLAG_MS(name, value, help, place)                                                                    \
    FLAG_ROW(OPTION_DURATION, uint64_t, name, value, help, place, .command_line_only = true)
/* wanted: NULL, or what to say instead of the limits. */
#define FLAG_UP_TO(name, help, flag_max, flag_wanted, place)                                                 \
    FLAG_ROW(OPTION_UNSIGNED, unsigned, name, "N", help, place, .min = 1, .max = flag_max,                   \
             .wanted = flag_wanted, .command_line_only = true)
#define FLAG_NUMBER(name, help, place) FLAG_UP_TO(name, help, 999999999, "a whole number from 1", place)
#define FLAG_ON(name, help, place) FLAG_ROW(OPTION_FLAG, bool, name, NULL, help, place, .min = 0)
/* Rows that several commands have. */
#define FLAG_LEASE_URL(place)                                                                                \
    FLAG_ENV("lease-url", "URL", "the lease service (default http://127.0.0.1:8700)", place)
#define FLAG_GATEWAY_URL(place)                                                                              \
    FLAG_ENV("gateway-url", "URL", "the gateway (default http://127.0.0.1:8701)", place)
#define FLAG_OUTPUT(choices, help, place)                                                                    \
    FLAG_ROW(OPTION_CHOICE, enum output, "output", choices, help, place, .letter = 'o', .wanted = choices)
#define FLAG_OUTPUT_OBJECT(place) FLAG_OUTPUT("text|json", "json: one object, for programs", place)
#define FLAG_OUTPUT_ANSWER "json: the service's answer as it is"
#define FLAG_WAIT(help, flag_wanted, place)                                                                  \
    FLAG_ROW(OPTION_DURATION, uint64_t, "wait", "DUR", help, place, .letter = 'w', .wanted = flag_wanted,    \
             .command_line_only = true)
#define FLAG_TTL(place)                                                                                      \
    FLAG_ENV_MS("ttl", "DUR", "how long the hold lasts (default 30s; renew: as before)", place)
#define FLAG_TRACE(place)                                                                                    \
    FLAG_ON("trace", "say on standard error what curl would send, without the secrets", place)
#define FLAG_MODE(place)                                                                                     \
    FLAG_TEXT("mode", "exclusive|shared", "alone (default), or beside others that are shared", place)
#define FLAG_PERMITS(place) FLAG_NUMBER("permits", "one of N: so many may hold it at once", place)
#define FLAG_HOLDER(place)                                                                                   \
    FLAG_ENV("holder", "TEXT", "who you are, for people who look (default user@host:pid)", place)

/* -- the PAWL_ variables: all that the three programs know */

/* CLI_GO_ON, or CLI_CONFIG when a PAWL_ variable is set that nobody knows: it was meant to do something, and
 * would silently not. */
int environment_check(void);
/* A copy without the variables that begin with one of these texts (NULL behind the last), with room for so
 * many more at its end. The list is the caller's to free, the texts are not. */
char **environment_without(const char *const *beginnings, size_t room);
/* What -o env prints when there is nothing to assign, as eval "$(pawl ...)" must not end well: on stdout, if
 * the command (NULL: none) sets variables, and the words of the command line (or PAWL_OUTPUT) ask for -o env,
 * the unset of those that are not true any more, and the status, which is not 0. */
void environment_failure(const char *command, int argc, char **argv, int status);
/* From now on the same is printed when a signal ends this process, with 128 and its number. A
 * lease_id stands: with it the same can be asked again. */
void environment_signals(const char *command, int argc, char **argv);

#endif
