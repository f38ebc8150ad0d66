/* options_help.c - --help: examples, then every flag with what it takes and what it is if not given. */
#include <stdio.h>

#include "shared/options_value.h"

enum { PRESENT_BYTES = 256 };

static bool takes_value(const struct option *option)
{
    return option->kind != OPTION_FLAG;
}

static size_t left_width(const struct option *option)
{
    return strlen(option->name) + (takes_value(option) ? 1 + strlen(option->value) : 0);
}

static size_t widest(const struct option *table)
{
    size_t widest = strlen("version");

    for (; table->name; table++) {
        if (left_width(table) > widest)
            widest = left_width(table);
    }
    return widest;
}

static void print_row(const char *name, const char *value, size_t width, const char *help)
{
    int pad = (int)(width - strlen(name) - (*value ? 1 + strlen(value) : 0));

    printf("  --%s%s%s%*s  %s", name, *value ? " " : "", value, pad, "", help);
}

static void print_option(const struct option *option, size_t width)
{
    char present[PRESENT_BYTES];

    print_row(option->name, takes_value(option) ? option->value : "", width, option->help);
    options_value_present(option, present, sizeof(present));
    if (present[0])
        printf(" (default %s)", present);
    putchar('\n');
}

static bool has_config(const struct option *table)
{
    while (table->name && strcmp(table->name, "config") != 0)
        table++;
    return table->name;
}

void options_print_help(const struct options_program *program)
{
    size_t width = widest(program->table);

    printf("Examples:\n%s\n\n%s - %s\n\nFlags:\n", program->examples, program->name, program->summary);
    for (const struct option *option = program->table; option->name; option++)
        print_option(option, width);
    print_row("help", "", width, "this text\n");
    print_row("version", "", width, "which Pawl this is\n");
    printf("\nEach flag is a variable too, PAWL_ and its name in capitals (--log-level: PAWL_LOG_LEVEL)");
    printf(has_config(program->table)
               ? ", and a member\nof the JSON object in the --config file (\"log-level\"). "
                 "Flags beat variables, variables beat the file.\n"
               : ".\nFlags beat variables.\n");
}
