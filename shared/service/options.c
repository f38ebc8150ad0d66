/* options.c - the flags of a program: words of a command line, values, and all the settings of a daemon.
 *
 *   take_flags       the command line: which flag has which value
 *   check_variables  the environment: nothing that nobody knows
 *   config_read      the file
 *   fill             the places, the strongest last */
#include "shared/service/options.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "shared/text/json.h"
#include "shared/text/memory.h"
#include "shared/text/read_all.h"

enum {
    SHOWN_BYTES = 80,
    TEXT_BYTES = 256,
    SOURCE_BYTES = 512,
    CONFIG_BYTES_MAX = 1024 * 1024,
    CONFIG_DEPTH_MAX = 8
};

/* -- the words of a command line */

static const struct option *find(const struct option *table, struct bytes name)
{
    while (table->name != NULL && !bytes_are(name, table->name))
        table++;
    return table->name != NULL ? table : NULL;
}

/* Not in the table; the rest of the word is not looked at. */
static enum options_word unknown(struct options_line *line, const char *word, size_t len)
{
    line->letters = NULL;
    line->option = NULL;
    snprintf(line->shown, sizeof(line->shown), "%.*s", (int)len, word);
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 ? WORD_HELP : WORD_UNKNOWN;
}

/* value: what stands behind the flag in its own word; NULL: nothing does, and the next word is its value. */
static enum options_word take(struct options_line *line, const char *value)
{
    line->value = value;
    if (line->option->kind == OPTION_FLAG)
        return value == NULL ? WORD_FLAG : WORD_HAS_VALUE;
    line->letters = NULL;
    if (value == NULL && line->argv[line->at] == NULL)
        return WORD_NO_VALUE;
    line->value = value != NULL ? value : line->argv[line->at++];
    return WORD_FLAG;
}

static enum options_word take_letter(struct options_line *line)
{
    char shown[] = {'-', *line->letters, '\0'};

    for (line->option = line->table; line->option->name != NULL; line->option++) {
        if (line->option->letter == *line->letters) {
            line->letters = line->letters[1] != '\0' ? line->letters + 1 : NULL;
            return take(line, line->option->kind != OPTION_FLAG ? line->letters : NULL);
        }
    }
    return unknown(line, shown, 2);
}

static enum options_word take_name(struct options_line *line)
{
    size_t len = strcspn(line->word, "=");

    line->option = find(line->table, (struct bytes){line->word + 2, len - 2});
    if (line->option != NULL)
        return take(line, line->word[len] == '=' ? line->word + len + 1 : NULL);
    return unknown(line, line->word, len);
}

enum options_word options_word(struct options_line *line)
{
    if (line->letters != NULL)
        return take_letter(line);
    if (line->at >= line->argc)
        return WORD_END;
    line->word = line->argv[line->at++];
    if (line->behind > 0 || line->word[0] != '-' || line->word[1] == '\0')
        return WORD_ARGUMENT;
    if (line->word[1] != '-') {
        line->letters = line->word + 1;
        return take_letter(line);
    }
    if (line->word[2] != '\0')
        return take_name(line);
    line->behind = line->at;
    return options_word(line);
}

/* -- values */

/* The largest first, so that a number is written in the largest that divides it. */
static const struct unit {
    const char *name;
    unsigned long long factor;
} durations[] = {{"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}, {0}},
  sizes[] = {{"GiB", 1ULL << 30}, {"MiB", 1ULL << 20}, {"KiB", 1ULL << 10}, {0}}, none[] = {{0}};

/* The kinds that are numbers. */
static const struct {
    const char *noun;
    const struct unit *units;
} numbers[] = {
    [OPTION_UNSIGNED] = {"a whole number", none},
    [OPTION_DURATION_MS] = {"a duration like 250ms, 30s or 10m", durations},
    [OPTION_DURATION] = {"a duration with its unit (ms, s, m, h, d): 500ms, 30s, 10m, 2h, 1d", durations},
    [OPTION_BYTES] = {"a size like 16KiB or 256MiB", sizes},
    [OPTION_CHOICE] = {NULL, NULL},
};

/* Digits, and behind them one of the units or, unless the kind needs one, nothing. A duration that needs one
 * is not 0 either. */
static bool number_read(enum option_kind kind, const char *text, unsigned long long *number)
{
    const char *at = text;

    for (*number = 0; *at >= '0' && *at <= '9'; at++)
        if (__builtin_mul_overflow(*number, 10, number) ||
            __builtin_add_overflow(*number, (unsigned)(*at - '0'), number))
            return false;
    if (*at == '\0')
        return at > text && kind != OPTION_DURATION;
    for (const struct unit *unit = numbers[kind].units; unit->name != NULL && at > text; unit++) {
        if (strcmp(at, unit->name) == 0)
            return !__builtin_mul_overflow(*number, unit->factor, number) &&
                   (kind != OPTION_DURATION || *number > 0);
    }
    return false;
}

static void number_write(const struct option *option, unsigned long long number, char *buf, size_t size)
{
    const struct unit *unit = numbers[option->kind].units;

    while (unit->name != NULL && (number == 0 || number % unit->factor != 0))
        unit++;
    snprintf(buf, size, "%llu%s", unit->name != NULL ? number / unit->factor : number,
             unit->name != NULL ? unit->name : "");
}

void options_duration(unsigned long long ms, char *buf, size_t size)
{
    number_write(&(struct option){.kind = OPTION_DURATION}, ms, buf, size);
}

/* A row that states no max goes as far as its place. */
static unsigned long long number_max(const struct option *option)
{
    unsigned long long most = option->kind == OPTION_UNSIGNED ? UINT_MAX : LLONG_MAX;

    return option->max > 0 && (unsigned long long)option->max < most ? (unsigned long long)option->max : most;
}

static bool number_set(const struct option *option, unsigned long long number)
{
    if (number < (unsigned long long)option->min || number > number_max(option))
        return false;
    if (option->kind == OPTION_UNSIGNED)
        *(unsigned *)option->place = (unsigned)number;
    else if (option->kind == OPTION_BYTES)
        *(size_t *)option->place = (size_t)number;
    else
        *(uint64_t *)option->place = number;
    return true;
}

static bool switch_set(const struct option *option, const char *text)
{
    bool yes = strcmp(text, "1") == 0 || strcmp(text, "true") == 0;

    if (!yes && strcmp(text, "0") != 0 && strcmp(text, "false") != 0)
        return false;
    *(bool *)option->place = yes;
    return true;
}

/* The choice with this number in "text|json", {NULL, 0} behind the last. */
static struct bytes choice(const struct option *option, int number)
{
    struct bytes left = bytes_of(option->value), one = bytes_cut(&left, '|');

    for (; number > 0; number--)
        one = bytes_cut(&left, '|');
    return one;
}

static bool choice_set(const struct option *option, const char *text)
{
    for (int i = 0; choice(option, i).at != NULL; i++) {
        if (bytes_are(choice(option, i), text)) {
            *(int *)option->place = i;
            return true;
        }
    }
    return false;
}

bool options_set(const struct option *option, const char *text)
{
    unsigned long long number;

    switch (option->kind) {
    case OPTION_TEXT:
    case OPTION_LIST: *(const char **)option->place = text; return true;
    case OPTION_FLAG: return switch_set(option, text);
    case OPTION_CHOICE: return choice_set(option, text);
    case OPTION_UNSIGNED:
    case OPTION_DURATION_MS:
    case OPTION_DURATION:
    case OPTION_BYTES: return number_read(option->kind, text, &number) && number_set(option, number);
    }
    abort();
}

static void number_wanted(const struct option *option, char *buf, size_t size)
{
    char min[32], max[32];

    number_write(option, (unsigned long long)option->min, min, sizeof(min));
    number_write(option, number_max(option), max, sizeof(max));
    if (option->max > 0)
        snprintf(buf, size, "%s, from %s to %s", numbers[option->kind].noun, min, max);
    else
        snprintf(buf, size, option->min > 0 ? "%s, %s or more" : "%s", numbers[option->kind].noun, min);
}

static void choice_wanted(const struct option *option, char *buf, size_t size)
{
    size_t len = 0;

    buf[0] = '\0';
    for (int i = 0; choice(option, i).at != NULL && len < size; i++) {
        struct bytes name = choice(option, i);
        const char *between = i == 0 ? "" : choice(option, i + 1).at != NULL ? ", " : " or ";

        len += (size_t)snprintf(buf + len, size - len, "%s%.*s", between, (int)name.len, name.at);
    }
}

void options_wanted(const struct option *option, char *buf, size_t size)
{
    if (option->wanted != NULL || option->kind == OPTION_TEXT || option->kind == OPTION_LIST)
        snprintf(buf, size, "%s", option->wanted != NULL ? option->wanted : option->value);
    else if (option->kind == OPTION_FLAG)
        snprintf(buf, size, "true or false");
    else if (option->kind == OPTION_CHOICE)
        choice_wanted(option, buf, size);
    else
        number_wanted(option, buf, size);
}

/* -- the word that was probably meant: Damerau's distance, restricted to neighbours that changed places */

enum { WORD_MAX = 40, SLIPS_MAX = 2 };

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static unsigned distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
    unsigned slips[WORD_MAX + 1][WORD_MAX + 1];

    for (unsigned i = 0; i <= a_len; i++)
        slips[i][0] = i;
    for (unsigned j = 0; j <= b_len; j++)
        slips[0][j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        for (size_t j = 1; j <= b_len; j++) {
            unsigned best = slips[i - 1][j - 1] + (a[i - 1] != b[j - 1]);

            best = least(best, least(slips[i - 1][j], slips[i][j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = least(best, slips[i - 2][j - 2] + 1);
            slips[i][j] = best;
        }
    }
    return slips[a_len][b_len];
}

const char *options_suggest(const char *word, const char *const *names)
{
    size_t len = strlen(word);
    const char *near = NULL;
    unsigned best = SLIPS_MAX + 1;

    for (; *names != NULL && len <= WORD_MAX; names++) {
        size_t name_len = strlen(*names);
        unsigned slips = name_len <= WORD_MAX ? distance(word, len, *names, name_len) : best;

        if (slips < best && slips * 2 <= name_len) {
            best = slips;
            near = *names;
        }
    }
    return near;
}

/* -- secrets */

/* Whether the value itself, by the option's name, is a secret (a file's name is none). */
static bool is_secret(const struct option *option)
{
    size_t len = strlen(option->name);

    if (len >= 5 && strcmp(option->name + len - 5, "-file") == 0)
        return false;
    return strstr(option->name, "password") || strstr(option->name, "secret");
}

/* Whether a text is a URL with a password in it. What stands behind unix:// is a path. */
static bool has_password(const char *text)
{
    const char *authority = strstr(text, "://");
    const char *colon, *at;

    if (authority == NULL)
        return false;
    authority += 3;
    if (strncmp(text, "unix:", 5) == 0)
        return has_password(authority); /* of the next in a list */
    /* A password may hold anything, '/' too when it was not encoded: so the last '@' of all ends it. */
    at = strrchr(authority, '@');
    colon = strchr(authority, ':');
    return at && colon && colon < at;
}

/* -- help */

/* What the place holds now, as it would be written; "" when it holds nothing or must not be shown. */
static void present(const struct option *option, char *buf, size_t size)
{
    const void *place = option->place;
    unsigned long long number = 0;
    const char *text;
    struct bytes name;

    buf[0] = '\0';
    switch (option->kind) {
    case OPTION_TEXT:
    case OPTION_LIST:
        text = *(const char *const *)place;
        snprintf(buf, size, "%s", text != NULL && !is_secret(option) && !has_password(text) ? text : "");
        return;
    case OPTION_FLAG: return; /* named: true; not named: what it is without */
    case OPTION_CHOICE:
        name = *(const int *)place < 0 ? BYTES("") : choice(option, *(const int *)place);
        snprintf(buf, size, "%.*s", (int)name.len, name.at);
        return;
    case OPTION_UNSIGNED: number = *(const unsigned *)place; break;
    case OPTION_BYTES: number = *(const size_t *)place; break;
    case OPTION_DURATION:
    case OPTION_DURATION_MS: number = *(const uint64_t *)place; break;
    }
    if (number >= (unsigned long long)option->min)
        number_write(option, number, buf, size); /* else it says itself what it is without */
}

static const char *value_name(const struct option *option)
{
    return option->kind != OPTION_FLAG && option->value != NULL ? option->value : "";
}

void options_print_row(const struct option *option, const char *before, int width, const char *now)
{
    char sum[TEXT_BYTES];
    const char *value = value_name(option);
    int len = snprintf(sum, sizeof(sum), "%s--%s%s%s", before, option->name, *value ? " " : "", value);

    if (len <= width)
        printf("  %-*s  %s", width, sum, option->help);
    else
        printf("  %s\n  %*s  %s", sum, width, "", option->help);
    printf(*now ? " (default %s)\n" : "%s\n", now);
}

void options_print_help(const struct options_program *program)
{
    const struct option *table = program->table;
    int width = (int)strlen("--version");
    char now[TEXT_BYTES];

    for (const struct option *option = table; option->name != NULL; option++) {
        int len = (int)(strlen(option->name) + strlen(value_name(option)) + (*value_name(option) ? 3 : 2));

        width = len > width ? len : width;
    }
    printf("Examples:\n%s\n\n%s - %s\n\nFlags:\n", program->examples, program->name, program->summary);
    for (const struct option *option = table; option->name != NULL; option++) {
        present(option, now, sizeof(now));
        options_print_row(option, "", width, now);
    }
    options_print_row(&(struct option){.name = "help", .help = "this text"}, "", width, "");
    options_print_row(&(struct option){.name = "version", .help = "which Pawl this is"}, "", width, "");
    printf("\nEach flag is a variable too, PAWL_ and its name in capitals (--log-level: PAWL_LOG_LEVEL)");
    printf(find(table, BYTES("config")) != NULL
               ? ", and a member\nof the JSON object in the --config file (\"log-level\"). "
                 "Flags beat variables, variables beat the file.\n"
               : ".\nFlags beat variables.\n");
}

/* -- a daemon's sentences */

struct reading {
    const struct options_program *program;
    size_t rows;        /* of its table */
    const char **flags; /* the values of the rows of the table on the command line; NULL: not there */
    char **environment;
    char *why;
    size_t why_size;
};

/* Writes the sentence. Returns false, so that a caller can pass it on. */
__attribute__((format(printf, 2, 3))) static bool fail(const struct reading *reading, const char *format, ...)
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

/* A value that is or has a secret is not shown. */
static bool fail_value(const struct reading *reading, const struct option *option, const char *source,
                       const char *value)
{
    char wanted[TEXT_BYTES], shown[SHOWN_BYTES];

    options_wanted(option, wanted, sizeof(wanted));
    if (value == NULL || is_secret(option) || has_password(value))
        return fail(reading, "%s has a value that does not fit; it takes %s.", source, wanted);
    show(value, shown);
    return fail(reading, "%s was given \"%s\"; it takes %s.", source, shown, wanted);
}

static bool fail_not_a_flag(const struct reading *reading, const char *word)
{
    const char **names = must_have(calloc(reading->rows + 1, sizeof(*names)));
    const char *name = reading->program->name, *near;
    char shown[SHOWN_BYTES];

    show(word, shown);
    shown[strcspn(shown, "=")] = '\0'; /* what is behind it may be a secret */
    for (size_t i = 0; i < reading->rows; i++)
        names[i] = reading->program->table[i].name;
    near = strncmp(shown, "--", 2) == 0 ? options_suggest(shown + 2, names) : NULL;
    free(names);
    if (word[0] != '-')
        return fail(reading, "%s takes flags only, not \"%s\"; see %s --help.", name, shown, name);
    if (near != NULL)
        return fail(reading, "%s is not a flag of %s; did you mean --%s?", shown, name, near);
    return fail(reading, "%s is not a flag of %s; see %s --help.", shown, name, name);
}

/* -- its command line */

/* Both, with a comma between them; before may be "". Kept with the program's texts. */
static const char *list_add(const struct options_program *program, const char *before, const char *text)
{
    size_t size = strlen(before) + strlen(text) + 2;
    struct options_text *kept = must_have(malloc(sizeof(*kept) + size));

    snprintf(kept->text, size, "%s%s%s", before, before[0] != '\0' ? "," : "", text);
    kept->next = NULL;
    if (program->texts != NULL) {
        kept->next = *program->texts;
        *program->texts = kept;
    }
    return kept->text;
}

void options_texts_free(struct options_text *texts)
{
    while (texts != NULL) {
        struct options_text *next = texts->next;

        free(texts);
        texts = next;
    }
}

static const char **flag_of(const struct reading *reading, const struct option *option)
{
    return &reading->flags[option - reading->program->table];
}

static bool take_value(const struct reading *reading, const struct option *option, const char *value)
{
    const char **flag = flag_of(reading, option);

    if (*flag != NULL && option->kind != OPTION_LIST)
        return fail(reading, "--%s is given twice.", option->name);
    if (is_secret(option) ||
        ((option->kind == OPTION_TEXT || option->kind == OPTION_LIST) && has_password(value)))
        return fail(reading, /* a command line is seen by everyone who can list processes */
                    "--%s has a password in it, and a command line is seen by others: give it in the "
                    "environment, in the configuration file, or by a flag that names a file.",
                    option->name);
    *flag = *flag != NULL ? list_add(reading->program, *flag, value) : value;
    return true;
}

static bool take_flag(const struct reading *reading, struct options_line *line)
{
    const char *word = line->argv[line->at];
    bool is_flag = strncmp(word, "--", 2) == 0 && word[2] != '\0';
    enum options_word found = is_flag ? options_word(line) : WORD_UNKNOWN;
    const struct option *option = line->option;

    if (found == WORD_UNKNOWN || option == NULL)
        return fail_not_a_flag(reading, word);
    if (found == WORD_HAS_VALUE)
        return fail(reading, "--%s takes no value.", option->name);
    /* The next flag is no value: something was left out. */
    if (found == WORD_NO_VALUE ||
        (line->value == line->argv[line->at - 1] && strncmp(line->value, "--", 2) == 0))
        return fail(reading, "--%s needs a value: %s.", option->name, option->value);
    return take_value(reading, option, option->kind == OPTION_FLAG ? "true" : line->value);
}

static bool take_flags(const struct reading *reading, int argc, char **argv)
{
    struct options_line line = {.table = reading->program->table, .argv = argv, .argc = argc, .at = 1};

    while (line.at < argc)
        if (!take_flag(reading, &line))
            return false;
    return true;
}

/* -- its environment */

void options_variable(const char *name, char *buf, size_t size)
{
    snprintf(buf, size, "PAWL_%s", name);
    for (char *at = buf; *at != '\0'; at++)
        *at = *at == '-' ? '_' : (char)toupper((unsigned char)*at);
}

static bool is_variable_of(struct bytes name, const struct option *option)
{
    char variable[SHOWN_BYTES];

    options_variable(option->name, variable, sizeof(variable));
    return bytes_are(name, variable);
}

/* As getenv(3): the first counts. */
static const char *variable_of(const struct reading *reading, const struct option *option)
{
    for (char **at = reading->environment; at != NULL && *at != NULL; at++) {
        const char *equals = strchr(*at, '=');

        if (equals != NULL && is_variable_of((struct bytes){*at, (size_t)(equals - *at)}, option))
            return equals + 1;
    }
    return NULL;
}

static bool check_variable(const struct reading *reading, struct bytes name)
{
    const struct options_program *program = reading->program;
    const char *const *ignored = program->ignored_variables;
    const struct option *option = program->table;
    int shown = name.len < SHOWN_BYTES ? (int)name.len : SHOWN_BYTES;

    while (option->name != NULL && !is_variable_of(name, option))
        option++;
    while (ignored != NULL && *ignored != NULL && !bytes_are(name, *ignored))
        ignored++;
    if (option->name == NULL && (ignored == NULL || *ignored == NULL))
        return fail(reading, "%.*s is not a variable of %s; unset it, or see %s --help.", shown, name.at,
                    program->name, program->name);
    if (option->name != NULL && option->command_line_only)
        return fail(reading, "%.*s is not taken from the environment; use --%s.", shown, name.at,
                    option->name);
    return true;
}

/* -- its file */

char *options_read_file(const char *path, size_t max, size_t *len, char *why, size_t why_size)
{
    int fd = open_to_read(path);
    char *text = fd < 0 ? NULL : must_have(malloc(max + 1));
    ssize_t n = fd < 0 ? -1 : read_all(fd, text, max + 1); /* one more shows that it is too long */

    if (n < 0)
        snprintf(why, why_size, "%s cannot be %s: %s.", path, fd < 0 ? "opened" : "read", strerror(errno));
    else if ((size_t)n > max)
        snprintf(why, why_size, "%s has more than %zu bytes.", path, max);
    if (fd >= 0)
        close(fd);
    if (n < 0 || (size_t)n > max) {
        free(text);
        return NULL;
    }
    text[n] = '\0';
    *len = (size_t)n;
    return text;
}

/* The value of a member decides how it is read, and the option whether that is right. */
static bool member_set(const struct reading *reading, const struct option *option, const struct json *json,
                       const char *path)
{
    char source[SOURCE_BYTES], digits[BYTES_NUMBER_SIZE];
    const char *value = NULL;
    struct bytes text;
    int64_t number;
    bool yes, fits = false;

    if (json_get_text(json, option->name, &text) == JSON_FOUND) {
        value = text.at;
        fits = *value != '\0' && option->kind != OPTION_FLAG && option->kind != OPTION_UNSIGNED &&
               options_set(option, list_add(reading->program, "", value));
    } else if (json_get_int(json, option->name, &number) == JSON_FOUND) {
        snprintf(digits, sizeof(digits), "%" PRId64, number);
        value = digits;
        fits = numbers[option->kind].noun != NULL && options_set(option, digits);
    } else if (json_get_bool(json, option->name, &yes) != JSON_ABSENT) {
        fits = option->kind == OPTION_FLAG && json_get_bool(json, option->name, &yes) == JSON_FOUND &&
               options_set(option, yes ? "true" : "false");
    } else {
        return true;
    }
    snprintf(source, sizeof(source), "Member \"%s\" of %s", option->name, path);
    return fits || fail_value(reading, option, source, value);
}

static bool check_names(const struct reading *reading, const struct json *json, const char *path)
{
    const char **names = must_have(calloc(reading->rows + 1, sizeof(*names)));
    const char *unknown, *program = reading->program->name;
    size_t count = 0;

    for (const struct option *option = reading->program->table; option->name != NULL; option++)
        if (!option->command_line_only && strcmp(option->name, "config") != 0)
            names[count++] = option->name;
    unknown = json_unknown(json, names);
    free(names);
    return unknown == NULL ||
           fail(reading, "%s has a member \"%.64s\", which %s does not take there; see %s --help.", path,
                unknown, program, program);
}

static bool config_read(const struct reading *reading, const char *path)
{
    size_t len;
    struct json_fault fault;
    char *text = options_read_file(path, CONFIG_BYTES_MAX, &len, reading->why, reading->why_size);
    struct json *json;
    bool good;

    if (text == NULL)
        return false;
    json = json_parse((struct bytes){text, len}, CONFIG_DEPTH_MAX, &fault);
    good = json != NULL ? check_names(reading, json, path) : fail(reading, "%s: %s", path, fault.why);
    for (const struct option *option = reading->program->table; good && option->name != NULL; option++)
        good = member_set(reading, option, json, path);
    json_free(json);
    free(text);
    return good;
}

/* -- filling the places */

static bool fill_value(const struct reading *reading, const struct option *option, const char *source,
                       const char *value)
{
    return value == NULL || (*value != '\0' && options_set(option, value)) ||
           fail_value(reading, option, source, value);
}

/* The variable also when the flag will win: a wrong one is an error today, not when the flag is gone. */
static bool fill_row(const struct reading *reading, const struct option *option)
{
    char variable[SHOWN_BYTES], flag[SHOWN_BYTES];

    options_variable(option->name, variable, sizeof(variable));
    snprintf(flag, sizeof(flag), "--%s", option->name);
    return fill_value(reading, option, variable, variable_of(reading, option)) &&
           fill_value(reading, option, flag, *flag_of(reading, option));
}

static bool fill(const struct reading *reading)
{
    const struct option *option = find(reading->program->table, BYTES("config"));
    const char *path = NULL;
    bool good;

    if (option != NULL)
        path = *flag_of(reading, option) != NULL ? *flag_of(reading, option) : variable_of(reading, option);
    good = path == NULL || config_read(reading, path);
    for (option = reading->program->table; good && option->name != NULL; option++)
        good = fill_row(reading, option);
    return good;
}

/* -- all of it */

enum options_result options_read(const struct options_program *program, int argc, char **argv,
                                 char **environment, char *why, size_t why_size)
{
    struct reading reading = {
        .program = program, .environment = environment, .why = why, .why_size = why_size};
    bool good;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return OPTIONS_HELP;
        if (strcmp(argv[i], "--version") == 0)
            return OPTIONS_VERSION;
    }
    while (program->table[reading.rows].name != NULL)
        reading.rows++;
    reading.flags = must_have(calloc(reading.rows + 1, sizeof(*reading.flags)));
    good = take_flags(&reading, argc, argv);
    for (char **at = environment; good && at != NULL && *at != NULL; at++) {
        const char *equals = strchr(*at, '=');

        if (strncmp(*at, "PAWL_", 5) == 0 && equals != NULL)
            good = check_variable(&reading, (struct bytes){*at, (size_t)(equals - *at)});
    }
    good = good && fill(&reading);
    free(reading.flags);
    return good ? OPTIONS_OK : OPTIONS_BAD;
}
