/* options_value.c - durations, sizes, choices and the other kinds of values. */
#include "shared/options_value.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct unit {
    const char *name;
    unsigned long long factor;
};

/* The largest first, so that a number is told in the largest that divides it. */
static const struct unit duration_units[] = {{"d", 86400000}, {"h", 3600000}, {"m", 60000},
                                             {"s", 1000},     {"ms", 1},      {NULL, 0}};
static const struct unit byte_units[] = {
    {"GiB", 1024ull * 1024 * 1024}, {"MiB", 1024 * 1024}, {"KiB", 1024}, {NULL, 0}};
static const struct unit no_units[] = {{NULL, 0}};

/* -- reading */

/* The digits at the beginning of text; NULL: there are none, or too many. Else what is behind them. */
static const char *read_digits(const char *text, unsigned long long *number)
{
    const char *at = text;

    for (*number = 0; *at >= '0' && *at <= '9'; at++) {
        if (__builtin_mul_overflow(*number, 10, number) ||
            __builtin_add_overflow(*number, (unsigned)(*at - '0'), number))
            return NULL;
    }
    return at > text ? at : NULL;
}

/* Digits and one of the units behind them, or none. */
static bool read_number(const char *text, const struct unit *units, unsigned long long *number)
{
    unsigned long long digits;
    const char *behind = read_digits(text, &digits);

    if (behind == NULL)
        return false;
    if (*behind == '\0') {
        *number = digits;
        return true;
    }
    for (; units->name; units++) {
        if (strcmp(behind, units->name) == 0)
            return !__builtin_mul_overflow(digits, units->factor, number);
    }
    return false;
}

bool options_duration_ms(const char *text, unsigned long long *ms)
{
    unsigned long long number;

    if (!read_number(text, duration_units, &number))
        return false;
    *ms = number;
    return true;
}

/* -- the ranges of numbers */

static bool is_number(const struct option *option)
{
    return option->kind == OPTION_UNSIGNED || option->kind == OPTION_DURATION_MS ||
           option->kind == OPTION_BYTES;
}

static const struct unit *units_of(const struct option *option)
{
    if (option->kind == OPTION_DURATION_MS)
        return duration_units;
    return option->kind == OPTION_BYTES ? byte_units : no_units;
}

/* A row that states no max goes as far as its place. */
static unsigned long long max_of(const struct option *option)
{
    unsigned long long place_max = option->kind == OPTION_UNSIGNED ? UINT_MAX : LLONG_MAX;

    return option->max > 0 && (unsigned long long)option->max < place_max ? (unsigned long long)option->max
                                                                          : place_max;
}

static unsigned long long min_of(const struct option *option)
{
    return option->min > 0 ? (unsigned long long)option->min : 0;
}

static bool set_number(const struct option *option, unsigned long long number)
{
    if (number < min_of(option) || number > max_of(option))
        return false;
    if (option->kind == OPTION_UNSIGNED)
        *(unsigned *)option->place = (unsigned)number;
    else if (option->kind == OPTION_DURATION_MS)
        *(uint64_t *)option->place = number;
    else
        *(size_t *)option->place = (size_t)number;
    return true;
}

bool options_value_set_int(const struct option *option, int64_t number)
{
    return is_number(option) && number >= 0 && set_number(option, (unsigned long long)number);
}

/* -- the other kinds */

static bool set_flag(const struct option *option, const char *text)
{
    bool yes = strcmp(text, "1") == 0 || strcmp(text, "true") == 0;

    if (!yes && strcmp(text, "0") != 0 && strcmp(text, "false") != 0)
        return false;
    *(bool *)option->place = yes;
    return true;
}

/* The choice with this number in "text|json", {NULL,0} behind the last. */
static struct bytes choice(const struct option *option, int number)
{
    const char *at = option->value;

    for (; number > 0; number--) {
        at = strchr(at, '|');
        if (at == NULL)
            return (struct bytes){NULL, 0};
        at++;
    }
    return (struct bytes){at, strcspn(at, "|")};
}

static bool set_choice(const struct option *option, const char *text)
{
    for (int i = 0; choice(option, i).at; i++) {
        if (bytes_are(choice(option, i), text)) {
            *(int *)option->place = i;
            return true;
        }
    }
    return false;
}

static bool set_text(const struct option *option, const char *text)
{
    if (*text == '\0')
        return false;
    *(const char **)option->place = text;
    return true;
}

bool options_value_set(const struct option *option, const char *text)
{
    unsigned long long number;

    switch (option->kind) {
    case OPTION_TEXT:
    case OPTION_LIST: return set_text(option, text);
    case OPTION_FLAG: return set_flag(option, text);
    case OPTION_CHOICE: return set_choice(option, text);
    case OPTION_UNSIGNED:
    case OPTION_DURATION_MS:
    case OPTION_BYTES: return read_number(text, units_of(option), &number) && set_number(option, number);
    }
    abort();
}

/* -- telling */

static void write_number(const struct option *option, unsigned long long number, char *buf, size_t size)
{
    const struct unit *unit = units_of(option);

    while (unit->name && (number == 0 || number % unit->factor != 0))
        unit++;
    if (unit->name)
        snprintf(buf, size, "%llu%s", number / unit->factor, unit->name);
    else
        snprintf(buf, size, "%llu", number);
}

static void wanted_number(const struct option *option, char *buf, size_t size)
{
    static const char *const nouns[] = {[OPTION_UNSIGNED] = "a whole number",
                                        [OPTION_DURATION_MS] = "a duration like 250ms, 30s or 10m",
                                        [OPTION_BYTES] = "a size like 16KiB or 256MiB"};
    char min[32], max[32];

    write_number(option, min_of(option), min, sizeof(min));
    write_number(option, max_of(option), max, sizeof(max));
    if (option->max > 0)
        snprintf(buf, size, "%s, from %s to %s", nouns[option->kind], min, max);
    else if (option->min > 0)
        snprintf(buf, size, "%s, %s or more", nouns[option->kind], min);
    else
        snprintf(buf, size, "%s", nouns[option->kind]);
}

static void wanted_choice(const struct option *option, char *buf, size_t size)
{
    size_t len = 0;

    buf[0] = '\0';
    for (int i = 0; choice(option, i).at && len < size; i++) {
        struct bytes name = choice(option, i);
        const char *between = i == 0 ? "" : choice(option, i + 1).at ? ", " : " or ";

        len += (size_t)snprintf(buf + len, size - len, "%s%.*s", between, (int)name.len, name.at);
    }
}

void options_value_wanted(const struct option *option, char *buf, size_t size)
{
    switch (option->kind) {
    case OPTION_TEXT:
    case OPTION_LIST: snprintf(buf, size, "%s", option->value); return;
    case OPTION_FLAG: snprintf(buf, size, "true or false"); return;
    case OPTION_CHOICE: wanted_choice(option, buf, size); return;
    case OPTION_UNSIGNED:
    case OPTION_DURATION_MS:
    case OPTION_BYTES: wanted_number(option, buf, size); return;
    }
    abort();
}

static void present_text(const struct option *option, char *buf, size_t size)
{
    const char *text = *(const char **)option->place;

    if (text && !options_value_is_secret(option) && !options_value_has_password(text))
        snprintf(buf, size, "%s", text);
}

static void present_choice(const struct option *option, char *buf, size_t size)
{
    int number = *(const int *)option->place;
    struct bytes name = number < 0 ? (struct bytes){NULL, 0} : choice(option, number);

    snprintf(buf, size, "%.*s", (int)name.len, name.len ? name.at : "");
}

void options_value_present(const struct option *option, char *buf, size_t size)
{
    buf[0] = '\0';
    switch (option->kind) {
    case OPTION_TEXT:
    case OPTION_LIST: present_text(option, buf, size); return;
    case OPTION_FLAG: return; /* named: true; not named: what it is without */
    case OPTION_CHOICE: present_choice(option, buf, size); return;
    case OPTION_UNSIGNED:
        if (*(const unsigned *)option->place >= min_of(option)) /* else it says itself what it is without */
            write_number(option, *(const unsigned *)option->place, buf, size);
        return;
    case OPTION_DURATION_MS: write_number(option, *(const uint64_t *)option->place, buf, size); return;
    case OPTION_BYTES: write_number(option, *(const size_t *)option->place, buf, size); return;
    }
    abort();
}

/* -- secrets */

bool options_value_is_secret(const struct option *option)
{
    size_t len = strlen(option->name);

    if (len >= 5 && strcmp(option->name + len - 5, "-file") == 0)
        return false;
    return strstr(option->name, "password") || strstr(option->name, "secret");
}

bool options_value_has_password(const char *text)
{
    const char *authority = strstr(text, "://");
    const char *colon, *at;

    if (authority == NULL)
        return false;
    authority += 3;
    /* A password may hold anything, '/' too when it was not encoded: so the last '@' of all ends it. */
    at = strrchr(authority, '@');
    colon = strchr(authority, ':');
    return at && colon && colon < at;
}
