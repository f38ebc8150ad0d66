/* options.c - gathers what flags, environment and file say, and fills the places: the strongest last. */
#include "shared/options.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "shared/options_source.h"
#include "shared/options_value.h"

enum { SHOWN_BYTES = 80, WANTED_BYTES = 256, NO_ROW = -1 };

/* -- sentences */

bool options_fail(const struct options_reading *reading, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(reading->why, reading->why_size, format, arguments);
    va_end(arguments);
    return false;
}

/* What was given may come from anywhere: no control character of it reaches the terminal. */
static void show(const char *value, char buf[SHOWN_BYTES])
{
    size_t i;

    for (i = 0; i + 1 < SHOWN_BYTES && value[i]; i++)
        buf[i] = iscntrl((unsigned char)value[i]) ? '?' : value[i];
    buf[i] = '\0';
}

bool options_fail_value(const struct options_reading *reading, const struct option *option,
                        const char *source, const char *value)
{
    char wanted[WANTED_BYTES], shown[SHOWN_BYTES];

    options_value_wanted(option, wanted, sizeof(wanted));
    if (value == NULL || options_value_is_secret(option) || options_value_has_password(value))
        return options_fail(reading, "%s has a value that does not fit; it takes %s.", source, wanted);
    show(value, shown);
    return options_fail(reading, "%s was given \"%s\"; it takes %s.", source, shown, wanted);
}

/* -- flags */

static int find_row(const struct options_reading *reading, struct bytes name)
{
    for (unsigned i = 0; i < reading->rows; i++) {
        if (bytes_are(name, reading->program->table[i].name))
            return (int)i;
    }
    return NO_ROW;
}

static bool fail_not_a_flag(const struct options_reading *reading, const char *argument)
{
    const char *name = reading->program->name;
    char shown[SHOWN_BYTES];

    show(argument, shown);
    shown[strcspn(shown, "=")] = '\0'; /* what is behind it may be a secret */
    if (argument[0] != '-')
        return options_fail(reading, "%s takes flags only, not \"%s\"; see %s --help.", name, shown, name);
    return options_fail(reading, "%s is not a flag of %s; see %s --help.", shown, name, name);
}

/* A command line is seen by everyone who can list processes. */
static bool fail_secret(const struct options_reading *reading, const struct option *option)
{
    return options_fail(
        reading,
        "--%s has a password in it, and a command line is seen by others: give it in the environment, "
        "in the configuration file, or by a flag that names a file.",
        option->name);
}

static bool take_value(struct options_reading *reading, unsigned row, const char *value)
{
    const struct option *option = &reading->program->table[row];

    if (reading->flags[row] && option->kind == OPTION_LIST)
        value = options_list_add(reading->program, reading->flags[row], value);
    else if (reading->flags[row])
        return options_fail(reading, "--%s is given twice.", option->name);
    if (options_value_is_secret(option) || (option->kind == OPTION_TEXT && options_value_has_password(value)))
        return fail_secret(reading, option);
    reading->flags[row] = value;
    return true;
}

/* The flag at argv[0]; *used says how many arguments it took. */
static bool take_flag(struct options_reading *reading, char **argv, int *used)
{
    const char *argument = argv[0];
    const char *equals = strchr(argument, '=');
    struct bytes name = {argument + 2, equals ? (size_t)(equals - argument) - 2 : strlen(argument) - 2};
    int row = find_row(reading, name);
    const struct option *option = row == NO_ROW ? NULL : &reading->program->table[row];

    *used = 1;
    if (option == NULL)
        return fail_not_a_flag(reading, argument);
    if (option->kind == OPTION_FLAG && equals)
        return options_fail(reading, "--%s takes no value.", option->name);
    if (option->kind == OPTION_FLAG)
        return take_value(reading, (unsigned)row, "true");
    if (equals)
        return take_value(reading, (unsigned)row, equals + 1);
    if (argv[1] == NULL ||
        strncmp(argv[1], "--", 2) == 0) /* the next flag is no value: something was left out */
        return options_fail(reading, "--%s needs a value: %s.", option->name, option->value);
    *used = 2;
    return take_value(reading, (unsigned)row, argv[1]);
}

static bool take_flags(struct options_reading *reading, int argc, char **argv)
{
    int used;

    for (int i = 1; i < argc; i += used) {
        if (strncmp(argv[i], "--", 2) != 0)
            return fail_not_a_flag(reading, argv[i]);
        if (!take_flag(reading, argv + i, &used))
            return false;
    }
    return true;
}

/* -- environment */

/* Whether name is PAWL_ and the option's name in capitals. */
static bool is_variable_of(struct bytes name, const struct option *option)
{
    size_t len = strlen(option->name);

    if (name.len != len + 5)
        return false;
    for (size_t i = 0; i < len; i++) {
        char c = option->name[i] == '-' ? '_' : (char)toupper((unsigned char)option->name[i]);

        if (name.at[5 + i] != c)
            return false;
    }
    return true;
}

static int find_variable_row(const struct options_reading *reading, struct bytes name)
{
    for (unsigned i = 0; i < reading->rows; i++) {
        if (is_variable_of(name, &reading->program->table[i]))
            return (int)i;
    }
    return NO_ROW;
}

static bool is_ignored(const struct options_program *program, struct bytes name)
{
    const char *const *ignored = program->ignored_variables;

    while (ignored && *ignored && !bytes_are(name, *ignored))
        ignored++;
    return ignored && *ignored;
}

static bool take_variable(struct options_reading *reading, struct bytes name, const char *value)
{
    const char *program = reading->program->name;
    int row = find_variable_row(reading, name);
    int shown = name.len < SHOWN_BYTES ? (int)name.len : SHOWN_BYTES;

    if (row == NO_ROW)
        return is_ignored(reading->program, name) ||
               options_fail(reading, "%.*s is not a variable of %s; unset it, or see %s --help.", shown,
                            name.at, program, program);
    if (reading->program->table[row].command_line_only)
        return options_fail(reading, "%.*s is not taken from the environment; use --%s.", shown, name.at,
                            reading->program->table[row].name);
    if (reading->variables[row] == NULL) /* as getenv(3): the first counts */
        reading->variables[row] = value;
    return true;
}

static bool take_variables(struct options_reading *reading, char **environment)
{
    for (; environment && *environment; environment++) {
        const char *equals = strchr(*environment, '=');

        if (strncmp(*environment, "PAWL_", 5) != 0 || equals == NULL)
            continue;
        if (!take_variable(reading, (struct bytes){*environment, (size_t)(equals - *environment)},
                           equals + 1))
            return false;
    }
    return true;
}

/* -- filling the places */

static void variable_name(const struct option *option, char *buf, size_t size)
{
    snprintf(buf, size, "PAWL_%s", option->name);
    for (char *at = buf; *at; at++)
        *at = *at == '-' ? '_' : (char)toupper((unsigned char)*at);
}

static bool fill_row(const struct options_reading *reading, unsigned row)
{
    const struct option *option = &reading->program->table[row];
    const char *variable = reading->variables[row], *flag = reading->flags[row];
    char source[OPTIONS_SOURCE_BYTES];

    /* The variable also when the flag will win: a wrong one is told today, not when the flag is gone. */
    if (variable && !options_value_set(option, variable)) {
        variable_name(option, source, sizeof(source));
        return options_fail_value(reading, option, source, variable);
    }
    if (flag && !options_value_set(option, flag)) {
        snprintf(source, sizeof(source), "--%s", option->name);
        return options_fail_value(reading, option, source, flag);
    }
    return true;
}

static bool fill(const struct options_reading *reading)
{
    int row = find_row(reading, BYTES("config"));
    const char *path = NULL;

    if (row != NO_ROW)
        path = reading->flags[row] ? reading->flags[row] : reading->variables[row];
    if (path && !options_read_config(reading, path))
        return false;
    for (unsigned i = 0; i < reading->rows; i++) {
        if (!fill_row(reading, i))
            return false;
    }
    return true;
}

/* -- all of it */

static enum options_result asked_for(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return OPTIONS_HELP;
        if (strcmp(argv[i], "--version") == 0)
            return OPTIONS_VERSION;
    }
    return OPTIONS_OK;
}

enum options_result options_read(const struct options_program *program, int argc, char **argv,
                                 char **environment, char *why, size_t why_size)
{
    struct options_reading reading = {.program = program, .why = why, .why_size = why_size};
    enum options_result result = asked_for(argc, argv);
    const char **values;

    if (result != OPTIONS_OK)
        return result;
    while (program->table[reading.rows].name)
        reading.rows++;
    values = calloc(2 * (size_t)reading.rows + 1, sizeof(*values));
    if (values == NULL)
        abort();
    reading.flags = values;
    reading.variables = values + reading.rows;
    if (!take_flags(&reading, argc, argv) || !take_variables(&reading, environment) || !fill(&reading))
        result = OPTIONS_BAD;
    free(values);
    return result;
}
