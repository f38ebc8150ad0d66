/* show.c - answers of the services as people and shells see them. */
#include "api/cli/verb.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CELL_SIZE = 512, LIST_SIZE = 16, META_SIZE = 2048, EVENT_COLUMNS = 6, LINE_SHOWN = 10 };

/* -- cells */

/* The object that has the column's member: the item, or the first of a list in it; NULL: there is none. */
static const struct json *owner_of(const struct json *item, const char **member)
{
    const char *dot = strchr(*member, '.');
    char list[LIST_SIZE];
    enum json_found found;

    if (dot == NULL)
        return item;
    snprintf(list, sizeof(list), "%.*s", (int)(dot - *member), *member);
    *member = dot + 1;
    return json_list_count(item, list, &found) > 0 ? json_list_object(item, list, 0) : NULL;
}

/* As -o env has it. */
static struct bytes value(const struct show_column *column, const struct json *item, char buf[CELL_SIZE])
{
    const char *member = column->member;
    const struct json *owner = owner_of(item, &member);

    return column->kind == SHOW_TEXT || column->kind == SHOW_TEXT_OR_DASH || column->kind == SHOW_TEXT_OR_LIST
               ? request_text(owner, member)
               : print_number(buf, request_int(owner, member));
}

static struct bytes list_text(const struct json *owner, const char *member, char buf[CELL_SIZE])
{
    char list[LIST_SIZE];
    struct bytes text;
    int len = 0;

    snprintf(list, sizeof(list), "%ss", member);
    for (size_t i = 0; len < CELL_SIZE && json_list_text(owner, list, i, &text); i++) {
        len += snprintf(buf + len, (size_t)(CELL_SIZE - len), "%s%.*s", i > 0 ? "," : "", (int)text.len,
                        text.at);
    }
    return (struct bytes){buf, len < CELL_SIZE ? (size_t)len : CELL_SIZE - 1};
}

/* Milliseconds since 1970 as "2026-11-22T17:35:00.250Z"; "-" when it is none. */
static void time_text(char buf[CELL_SIZE], int64_t at_ms)
{
    time_t seconds = (time_t)(at_ms / 1000);
    struct tm broken;
    size_t len;

    snprintf(buf, CELL_SIZE, "-");
    if (at_ms > 0 && gmtime_r(&seconds, &broken) != NULL) {
        len = strftime(buf, CELL_SIZE, "%Y-%m-%dT%H:%M:%S", &broken);
        snprintf(buf + len, CELL_SIZE - len, ".%03dZ", (int)(at_ms % 1000));
    }
}

static struct bytes cell(const struct show_column *column, const struct json *item, char buf[CELL_SIZE])
{
    const char *member = column->member;
    const struct json *owner = owner_of(item, &member);
    struct bytes text = value(column, item, buf);

    switch (column->kind) {
    case SHOW_TEXT:
    case SHOW_NUMBER: return text;
    case SHOW_TEXT_OR_LIST: return text.len > 0 ? text : list_text(owner, member, buf);
    case SHOW_TEXT_OR_DASH: return text.len > 0 ? text : BYTES("-");
    case SHOW_NUMBER_OR_DASH: return request_int(owner, member) > 0 ? text : BYTES("-");
    case SHOW_DURATION:
        if (isatty(STDOUT_FILENO) == 0)
            return text; /* for programs: milliseconds */
        print_duration(buf, request_int(owner, member));
        break;
    case SHOW_TIME:
    case SHOW_SECONDS: time_text(buf, request_int(owner, member)); break;
    }
    if (column->kind == SHOW_SECONDS && strchr(buf, '.') != NULL)
        memcpy(strchr(buf, '.'), "Z", sizeof("Z"));
    return bytes_of(buf);
}

/* -- tables and variables */

void show_head(struct print_table *table, const struct show_column *columns)
{
    for (table->columns = 0; columns->member != NULL; columns++)
        if (columns->head != NULL)
            table->head[table->columns++] = columns->head;
}

void show_row(struct print_table *table, const struct show_column *columns, const struct json *item)
{
    char buf[CELL_SIZE];

    for (; columns->member != NULL; columns++)
        if (columns->head != NULL)
            print_table_add(table, cell(columns, item, buf));
}

void show_table(const struct show_column *columns, const struct json *owner, const char *list,
                const char *before)
{
    struct print_table table = {0};
    enum json_found found;
    size_t count = json_list_count(owner, list, &found);

    if (count == 0)
        return;
    fputs(before, stdout);
    show_head(&table, columns);
    for (size_t i = 0; i < count; i++)
        show_row(&table, columns, json_list_object(owner, list, i));
    print_table_end(&table);
}

void show_env(const struct show_column *columns, const struct json *item)
{
    char buf[CELL_SIZE];

    for (; columns->member != NULL; columns++)
        if (columns->variable != NULL)
            print_env(columns->variable, value(columns, item, buf));
}

void show_env_line(const struct show_column *columns, const struct json *item)
{
    char buf[CELL_SIZE];

    for (; columns->member != NULL; columns++)
        if (columns->variable != NULL)
            print_env_word(columns->variable, value(columns, item, buf));
    putchar('\n');
}

/* -- an item of a history */

const struct show_column show_event[] = {
    {NULL, "EVENT_ID", "id", SHOW_TEXT},
    {"TIME", NULL, "at_ms", SHOW_TIME},
    {"WHAT", "EVENT_TYPE", "type", SHOW_TEXT},
    {"LEASE", "EVENT_LEASE", "lease", SHOW_TEXT_OR_DASH},
    {"TOKEN", "EVENT_TOKEN", "token", SHOW_NUMBER_OR_DASH},
    {"HOLDER", "EVENT_HOLDER", "holder", SHOW_TEXT_OR_DASH},
    {NULL, "EVENT_AT_MS", "at_ms", SHOW_NUMBER},
    {"REASON", "EVENT_REASON", "reason", SHOW_TEXT_OR_DASH},
    {0},
};

void show_event_line(const struct json *item)
{
    static const int widths[EVENT_COLUMNS] = {24, 15, 20, 6, 20, 0};
    bool aligned = isatty(STDOUT_FILENO);
    unsigned at = 0;

    for (const struct show_column *column = show_event; column->member != NULL; column++) {
        char buf[CELL_SIZE];
        struct bytes text = column->head != NULL ? cell(column, item, buf) : BYTES("");
        int gap = widths[at] > (int)text.len ? widths[at] - (int)text.len : 0;

        if (column->head == NULL)
            continue;
        print_safe(stdout, text);
        if (++at == EVENT_COLUMNS)
            putchar('\n');
        else if (aligned)
            printf("%*s", gap + 2, "");
        else
            putchar('\t');
    }
}

/* -- who holds a lease */

static void show_holder(FILE *out, const struct json *holder)
{
    char left[PRINT_DURATION_SIZE], since[PRINT_DURATION_SIZE], meta[META_SIZE];
    struct bytes name = request_text(holder, "holder"), mode = request_text(holder, "mode");
    size_t len = 0;
    bool has_meta = json_get_object_raw(holder, "meta", meta, sizeof(meta), &len) == JSON_FOUND && len > 2 &&
                    len <= sizeof(meta);

    print_line(out, "  %.*s, token %" PRId64 ", %.*s: for %s, %s left%s%.*s", (int)name.len, name.at,
               request_int(holder, "token"), (int)mode.len, mode.at,
               print_duration(since, request_int(holder, "held_for_ms")),
               print_duration(left, request_int(holder, "expires_in_ms")), has_meta ? ", " : "",
               has_meta ? (int)len : 0, meta);
}

void show_look(FILE *out, const struct json *look)
{
    enum json_found found;
    size_t count = json_list_count(look, "holders", &found);

    print_safe(out, request_text(look, "lease"));
    fprintf(out, " is ");
    print_safe(out, request_text(look, "state"));
    if (request_int(look, "token") > 0)
        fprintf(out, ", last token %" PRId64, request_int(look, "token"));
    if (request_int(look, "waiting") > 0)
        fprintf(out, ", %" PRId64 " waiting", request_int(look, "waiting"));
    fputc('\n', out);
    for (size_t i = 0; i < count; i++) {
        const struct json *holder = json_list_object(look, "holders", i);

        if (holder != NULL)
            show_holder(out, holder);
    }
    count = json_list_count(look, "line", &found);
    for (size_t i = 0; i < count && i < LINE_SHOWN; i++) {
        const struct json *one = json_list_object(look, "line", i);
        struct bytes name = request_text(one, "holder");
        char since[PRINT_DURATION_SIZE];

        print_line(out, "  in line: %.*s, for %s", (int)name.len, name.at,
                   print_duration(since, request_int(one, "waits_ms")));
    }
}

/* -- a grant */

const char *show_grant_word(enum show_grant kind)
{
    return kind == SHOW_GRANT_NEW ? "new" : kind == SHOW_GRANT_SAME ? "same" : NULL;
}

static void show_grant_text(const struct json *grant, enum show_grant kind)
{
    static const char *const done[] = {"acquired", "is held already", "renewed"};
    char duration[PRINT_DURATION_SIZE];

    print_safe(stdout, request_text(grant, "lease"));
    printf(" %s: token %" PRId64 ", %s left\n", done[kind], request_int(grant, "token"),
           print_duration(duration, request_int(grant, "expires_in_ms")));
}

/* LEASE_...: what is PAWL_... would speak to the next command. */
static void show_grant_env(const struct json *grant, enum show_grant kind)
{
    static const struct show_column of_the_hold[] = {
        {NULL, "PAWL_LEASE", "lease", SHOW_TEXT},
        {NULL, "PAWL_TOKEN", "token", SHOW_NUMBER},
        {NULL, "PAWL_FENCING_TOKEN", "fencing_token", SHOW_TEXT},
        {NULL, "PAWL_LEASE_ID", "lease_id", SHOW_TEXT},
        {0},
    };
    static const struct show_column count[] = {{NULL, "LEASE_HOLDS", "holds", SHOW_NUMBER}, {0}};

    show_env(of_the_hold, grant);
    if (show_grant_word(kind) != NULL) {
        print_env("LEASE_GRANT", bytes_of(show_grant_word(kind)));
        show_env(count, grant);
    }
    puts("export PAWL_LEASE PAWL_TOKEN PAWL_FENCING_TOKEN PAWL_LEASE_ID");
}

void show_grant(const struct json *grant, enum show_grant kind, enum output output)
{
    (output == OUTPUT_ENV ? show_grant_env : show_grant_text)(grant, kind);
}
