/* flags_complete.c - what may come next on a command line. */
#include "api/cli/flags_complete.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "api/cli/cli.h"

enum { WORD_SIZE = 128 };

/* What has been typed in front of the last word. */
struct line {
    const struct usage *usage;
    const struct flag *flag; /* the one whose value is being typed */
    unsigned arguments;      /* typed so far */
    int behind;              /* index of the first word behind the first "--"; 0: there is none */
};

bool flags_complete_wanted(int argc, char **argv)
{
    return argc > 2 && strcmp(argv[1], FLAGS_COMPLETE) == 0;
}

void flags_complete_word(const char *typed, const char *word, const char *help)
{
    if (strncmp(word, typed, strlen(typed)) == 0) {
        printf("%s%s%s\n", word, *help != '\0' ? "\t" : "", help);
    }
}

/* -- what a value or an argument is called says what it may be */

/* "text|json", "[show|adopt]": one of these. Names in capitals stand for something. */
static bool is_choice(const char *name, size_t len)
{
    bool several = false;

    for (size_t i = 0; i < len; i++) {
        if (isupper((unsigned char)name[i]) || name[i] == ':') {
            return false;
        }
        several = several || name[i] == '|';
    }
    return several;
}

static void choices_print(const char *before, const char *typed, const char *name, size_t len)
{
    char word[WORD_SIZE];

    while (len > 0) {
        const char *bar = memchr(name, '|', len);
        size_t one = bar != NULL ? (size_t)(bar - name) : len;

        snprintf(word, sizeof(word), "%s%.*s", before, (int)one, name);
        flags_complete_word(typed, word, "");
        name += one + (bar != NULL);
        len -= one + (bar != NULL);
    }
}

static void value_print(const char *before, const char *typed, const char *name, size_t len)
{
    static const struct {
        const char *name, *said;
    } known[] = {
        {"FILE", ":files"}, {"DIR", ":directories"}, {"NAME", ":leases"},        {"LEASE", ":leases"},
        {"KEY", ":leases"}, {"HAZARD", ":hazards"},  {"ACCIDENT", ":accidents"},
    };

    if (is_choice(name, len)) {
        choices_print(before, typed, name, len);
        return;
    }
    for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strlen(known[i].name) == len && memcmp(known[i].name, name, len) == 0) {
            puts(known[i].said);
        }
    }
}

/* -- the words so far */

static const struct flag *flag_find(const struct usage *usage, const char *word)
{
    size_t len = word[1] == '-' ? strcspn(word + 2, "=") : 0;

    for (const struct flag *flag = usage->flags; flag->name != NULL; flag++) {
        if (word[1] == '-' ? strlen(flag->name) == len && memcmp(flag->name, word + 2, len) == 0
                           : flag->letter != '\0' && flag->letter == word[1]) {
            return flag;
        }
    }
    return NULL;
}

static bool takes_next_word(const struct flag *flag, const char *word)
{
    return flag != NULL && flag->on == NULL && (word[1] == '-' ? strchr(word, '=') == NULL : word[2] == '\0');
}

static void line_read(struct line *line, int argc, char **argv)
{
    for (int i = 2; i < argc - 1; i++) {
        const char *word = argv[i];
        bool is_flag = line->behind == 0 && word[0] == '-' && word[1] != '\0';

        if (is_flag && strcmp(word, "--") == 0) {
            line->behind = i + 1;
        } else if (!is_flag) {
            line->arguments++;
        } else if (takes_next_word(flag_find(line->usage, word), word)) {
            i++;
            line->flag = i == argc - 1 ? flag_find(line->usage, word) : NULL;
        }
    }
}

/* -- what comes next */

static bool is_given(const struct flag *flag, int argc, char **argv)
{
    for (int i = 2; i < argc - 1; i++) {
        if (strncmp(argv[i], "--", 2) == 0 && strncmp(argv[i] + 2, flag->name, strlen(flag->name)) == 0 &&
            strchr("=", argv[i][2 + strlen(flag->name)]) != NULL) {
            return true;
        }
    }
    return false;
}

static void flags_print(const struct line *line, int argc, char **argv)
{
    char word[WORD_SIZE];

    for (const struct flag *flag = line->usage->flags; flag->name != NULL; flag++) {
        if (is_given(flag, argc, argv)) {
            continue;
        }
        snprintf(word, sizeof(word), "--%s", flag->name);
        flags_complete_word(argv[argc - 1], word, flag->help);
        if (flag->letter != '\0' && argv[argc - 1][1] == '\0') {
            snprintf(word, sizeof(word), "-%c", flag->letter);
            flags_complete_word(argv[argc - 1], word, flag->help);
        }
    }
    flags_complete_word(argv[argc - 1], "--help", "this text");
}

/* "NAME", "[LEASE]", "KEY [FILE]", "NAME -- CMD...": the nth of them. */
static void argument_print(const struct line *line, const char *typed)
{
    const char *at = line->usage->arguments;

    for (unsigned i = 0;; i++) {
        const char *name = at + strspn(at, " [");
        size_t len = strcspn(name, " ].");

        if (len == 0 || strncmp(name, "--", 2) == 0) {
            return;
        }
        if (i == line->arguments || name[len] == '.') {
            value_print("", typed, name, len);
            return;
        }
        at = name + strcspn(name, " ");
    }
}

int flags_complete(const struct usage *usage, int argc, char **argv)
{
    struct line line = {.usage = usage};
    const char *typed = argv[argc - 1], *equals = strchr(typed, '=');
    const struct flag *flag;

    line_read(&line, argc, argv);
    if (line.flag != NULL) {
        value_print("", typed, line.flag->value, strlen(line.flag->value));
    } else if (line.behind > 0 && strstr(usage->arguments, "CMD") != NULL) {
        printf(":command %d\n", argc - line.behind);
    } else if (line.behind > 0 || typed[0] != '-') {
        argument_print(&line, typed);
    } else if (strncmp(typed, "--", 2) == 0 && equals != NULL) {
        char before[WORD_SIZE];

        flag = flag_find(usage, typed);
        snprintf(before, sizeof(before), "%.*s", (int)(equals - typed) + 1, typed);
        if (flag != NULL && flag->value != NULL) {
            value_print(before, typed, flag->value, strlen(flag->value));
        }
    } else {
        flags_print(&line, argc, argv);
    }
    return CLI_OK;
}
