/* flags.c - the flags of one command, on top of getopt_long. */
#include "api/cli/flags.h"

#include <assert.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "api/cli/cli.h"
#include "api/cli/flag_value.h"
#include "api/cli/flags_complete.h"
#include "api/cli/suggest.h"

enum { LONG_BASE = 256, HELP = 'h', LETTERS_SIZE = 2 * FLAGS_MAX + 8, NAME_SIZE = 64, SUM_SIZE = 64 };

/* -- help */

static void print_flag(const struct flag *flag)
{
    char sum[SUM_SIZE];
    int len = flag->letter != '\0' ? snprintf(sum, sizeof(sum), "-%c, --%s", flag->letter, flag->name)
                                   : snprintf(sum, sizeof(sum), "    --%s", flag->name);

    if (flag->value != NULL) {
        snprintf(sum + len, sizeof(sum) - (size_t)len, " %s", flag->value);
    }
    if (strlen(sum) <= 26) {
        printf("  %-26s  %s\n", sum, flag->help);
    } else {
        printf("  %s\n  %26s  %s\n", sum, "", flag->help);
    }
}

static int print_help(const struct usage *usage)
{
    printf("Examples:\n%s\nUsage: pawl %s%s%s%s\n\n%s\n", usage->examples, usage->name,
           *usage->arguments != '\0' ? " " : "", usage->arguments,
           strstr(usage->arguments, "[flags]") != NULL ? "" : " [flags]", usage->summary);
    printf("\nFlags:\n");
    for (const struct flag *flag = usage->flags; flag->name != NULL; flag++) {
        print_flag(flag);
    }
    print_flag(&(struct flag){.name = "help", .letter = HELP, .help = "this text"});
    return CLI_OK;
}

/* -- the command line */

/* What getopt_long wants, made of the flags. */
struct table {
    struct option options[FLAGS_MAX + 2];
    char letters[LETTERS_SIZE];
    unsigned count;
};

static void table_make(struct table *table, const struct usage *usage)
{
    size_t len = 0;

    memset(table, 0, sizeof(*table));
    len += (size_t)snprintf(table->letters, sizeof(table->letters), "%s:h",
                            usage->order == FLAGS_FIRST ? "+" : "");
    for (const struct flag *flag = usage->flags; flag->name != NULL; flag++) {
        assert(table->count < FLAGS_MAX);
        table->options[table->count] = (struct option){flag->name,
                                                       flag->on != NULL ? no_argument : required_argument,
                                                       NULL, LONG_BASE + (int)table->count};
        table->count++;
        if (flag->letter != '\0') {
            len += (size_t)snprintf(table->letters + len, sizeof(table->letters) - len, "%c%s", flag->letter,
                                    flag->on != NULL ? "" : ":");
        }
    }
    table->options[table->count] = (struct option){"help", no_argument, NULL, HELP};
}

static const struct flag *flag_of(const struct usage *usage, const struct table *table, int found)
{
    if (found >= LONG_BASE && found < LONG_BASE + (int)table->count) {
        return &usage->flags[found - LONG_BASE];
    }
    for (const struct flag *flag = usage->flags; flag->name != NULL; flag++) {
        if (flag->letter != '\0' && flag->letter == found) {
            return flag;
        }
    }
    return NULL;
}

/* What is behind "=" is not repeated: it may be a secret that was meant for elsewhere. */
static int fail_unknown(const struct usage *usage, const char *argument)
{
    char shown[NAME_SIZE];
    const char *names[FLAGS_MAX + 1] = {NULL};
    unsigned count = 0;
    const char *near;

    snprintf(shown, sizeof(shown), "%.*s", (int)strcspn(argument, "="), argument);
    for (const struct flag *flag = usage->flags; flag->name != NULL; flag++) {
        names[count++] = flag->name;
    }
    near = strncmp(shown, "--", 2) == 0 ? suggest(shown + 2, names) : NULL;
    if (near != NULL) {
        return cli_fail(CLI_USAGE, "%s is not a flag here; did you mean --%s?", shown, near);
    }
    return cli_fail(CLI_USAGE, "%s is not a flag here; see pawl %s%s--help", shown, usage->name,
                    *usage->name != '\0' ? " " : "");
}

/* getopt_long takes any beginning of a name that is clear today and may be another flag's tomorrow; we do
 * not. */
static bool is_abbreviated(const struct flag *flag, int found, char **argv)
{
    const char *word = argv[optind - 1];
    size_t len = strlen(flag->name);

    if (found < LONG_BASE) {
        return false;
    }
    if (optarg == word) {
        word = argv[optind - 2]; /* "--name value": the value was the last word taken */
    }
    return strncmp(word + 2, flag->name, len) != 0 || (word[2 + len] != '\0' && word[2 + len] != '=');
}

static int take(const struct usage *usage, const struct table *table, int found, char **argv)
{
    const char *argument = argv[optind - 1];
    const struct flag *flag = flag_of(usage, table, found);
    char source[NAME_SIZE];

    if (found == HELP) {
        return print_help(usage);
    }
    if (found == ':') {
        return cli_fail(CLI_USAGE, "%s needs a value; see pawl %s --help", argument, usage->name);
    }
    if (flag == NULL) {
        char letter[] = {'-', (char)optopt, '\0'};

        return fail_unknown(usage, optopt > 0 && optopt < LONG_BASE ? letter : argument);
    }
    if (is_abbreviated(flag, found, argv)) {
        return fail_unknown(usage, optarg == argument ? argv[optind - 2] : argument);
    }
    if (flag->on != NULL) {
        *flag->on = true;
        return CLI_GO_ON;
    }
    snprintf(source, sizeof(source), "--%s", flag->name);
    return flag_value_set(flag, source, optarg);
}

static int arguments_take(const struct usage *usage, int argc, char **argv,
                          const char *arguments[ARGUMENTS_MAX + 1])
{
    unsigned count = (unsigned)(argc - optind);

    if (count < usage->arguments_min || count > usage->arguments_max) {
        return cli_fail(CLI_USAGE, "%s: it is pawl %s%s%s; see pawl %s --help",
                        count < usage->arguments_min ? "something is missing" : "too many arguments",
                        usage->name, *usage->arguments != '\0' ? " " : "", usage->arguments, usage->name);
    }
    for (unsigned i = 0; i <= ARGUMENTS_MAX; i++) {
        arguments[i] = i < count ? argv[optind + (int)i] : NULL;
    }
    return CLI_GO_ON;
}

int flags_read(const struct usage *usage, int argc, char **argv, const char *arguments[ARGUMENTS_MAX + 1],
               int *used)
{
    struct table table;
    int status, found;

    if (flags_complete_wanted(argc, argv)) {
        return flags_complete(usage, argc, argv);
    }
    status = flag_values_from_environment(usage->flags);
    table_make(&table, usage);
    opterr = 0; /* the sentences are ours */
    optind = 0; /* glibc: begin anew, also with another order of arguments (getopt(3), NOTES) */
    while (status == CLI_GO_ON &&
           (found = getopt_long(argc, argv, table.letters, table.options, NULL)) != -1) {
        status = take(usage, &table, found, argv);
    }
    if (status == CLI_GO_ON && usage->order == FLAGS_MIXED) {
        status = arguments_take(usage, argc, argv, arguments);
    }
    if (used != NULL) {
        *used = optind;
    }
    return status;
}
