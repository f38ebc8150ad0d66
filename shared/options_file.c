/* options_file.c - the configuration file: one JSON object, its members named like the flags. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "shared/json.h"
#include "shared/options_source.h"
#include "shared/options_value.h"
#include "shared/read_all.h"

enum { CONFIG_BYTES_MAX = 1024 * 1024, CONFIG_DEPTH_MAX = 8 };

/* -- a file as a whole */

static char *read_open_file(int fd, const char *path, size_t max, size_t *len, char *why, size_t why_size)
{
    char *text = malloc(max + 1);
    ssize_t n;

    if (text == NULL)
        abort();
    n = read_all(fd, text, max + 1); /* one more shows that it is too long; its place is then the NUL's */
    if (n < 0)
        snprintf(why, why_size, "%s cannot be read: %s.", path, strerror(errno));
    else if ((size_t)n > max)
        snprintf(why, why_size, "%s has more than %zu bytes.", path, max);
    if (n < 0 || (size_t)n > max) {
        free(text);
        return NULL;
    }
    text[n] = '\0';
    *len = (size_t)n;
    return text;
}

char *options_read_file(const char *path, size_t max, size_t *len, char *why, size_t why_size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *text;

    if (fd < 0) {
        snprintf(why, why_size, "%s cannot be opened: %s.", path, strerror(errno));
        return NULL;
    }
    text = read_open_file(fd, path, max, len, why, why_size);
    close(fd);
    return text;
}

/* -- its members */

static bool takes_text(const struct option *option)
{
    return option->kind != OPTION_FLAG && option->kind != OPTION_UNSIGNED;
}

const char *options_list_add(const struct options_program *program, const char *before, const char *text)
{
    size_t size = strlen(before) + strlen(text) + 2;
    struct options_text *kept = malloc(sizeof(*kept) + size);

    if (kept == NULL)
        abort();
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

static bool set_text(const struct options_reading *reading, unsigned row, const char *text,
                     const char *source)
{
    const struct option *option = &reading->program->table[row];

    if (!takes_text(option) || *text == '\0')
        return options_fail_value(reading, option, source, text);
    if (option->kind != OPTION_TEXT && option->kind != OPTION_LIST)
        return options_value_set(option, text) || options_fail_value(reading, option, source, text);
    if (reading->flags[row] || reading->variables[row])
        return true;
    *(const char **)option->place = options_list_add(reading->program, "", text);
    return true;
}

static bool set_int(const struct options_reading *reading, unsigned row, int64_t number, const char *source)
{
    const struct option *option = &reading->program->table[row];
    char value[24];

    if (options_value_set_int(option, number))
        return true;
    snprintf(value, sizeof(value), "%lld", (long long)number);
    return options_fail_value(reading, option, source, value);
}

/* The value of a member decides how it is read, and the option whether that is right. */
static bool set_member(const struct options_reading *reading, unsigned row, const struct json *json,
                       const char *path)
{
    const struct option *option = &reading->program->table[row];
    char source[OPTIONS_SOURCE_BYTES];
    struct bytes text;
    int64_t number;
    bool yes;

    if (json_get_text(json, option->name, &text) == JSON_ABSENT)
        return true;
    snprintf(source, sizeof(source), "Member \"%s\" of %s", option->name, path);
    if (json_get_text(json, option->name, &text) == JSON_FOUND)
        return set_text(reading, row, text.at, source);
    if (json_get_int(json, option->name, &number) == JSON_FOUND)
        return set_int(reading, row, number, source);
    if (json_get_bool(json, option->name, &yes) == JSON_FOUND && option->kind == OPTION_FLAG)
        return options_value_set(option, yes ? "true" : "false");
    return options_fail_value(reading, option, source, NULL);
}

static bool in_file(const struct option *option)
{
    return !option->command_line_only && strcmp(option->name, "config") != 0;
}

static bool check_names(const struct options_reading *reading, const struct json *json, const char *path)
{
    const char **names = calloc(reading->rows + 1, sizeof(*names));
    const char *unknown;
    unsigned count = 0;

    if (names == NULL)
        abort();
    for (unsigned i = 0; i < reading->rows; i++) {
        if (in_file(&reading->program->table[i]))
            names[count++] = reading->program->table[i].name;
    }
    unknown = json_unknown(json, names);
    free(names);
    if (unknown)
        return options_fail(reading,
                            "%s has a member \"%.64s\", which %s does not take there; see %s --help.", path,
                            unknown, reading->program->name, reading->program->name);
    return true;
}

static bool set_members(const struct options_reading *reading, const struct json *json, const char *path)
{
    if (!check_names(reading, json, path))
        return false;
    for (unsigned i = 0; i < reading->rows; i++) {
        if (!set_member(reading, i, json, path))
            return false;
    }
    return true;
}

bool options_read_config(const struct options_reading *reading, const char *path)
{
    size_t len;
    const char *wrong;
    char *text = options_read_file(path, CONFIG_BYTES_MAX, &len, reading->why, reading->why_size);
    struct json *json;
    bool good;

    if (text == NULL)
        return false;
    json = json_parse((struct bytes){text, len}, CONFIG_DEPTH_MAX, &wrong);
    good = json ? set_members(reading, json, path) : options_fail(reading, "%s: %s", path, wrong);
    json_free(json);
    free(text);
    return good;
}
