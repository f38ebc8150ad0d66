/* event.c - one item of a lease's history. */
#include "api/cli/event.h"

#include <inttypes.h>
#include <unistd.h>

#include "api/cli/ask.h"

enum { NUMBER_SIZE = 24 };

const char *const event_head[EVENT_COLUMNS] = {"TIME", "WHAT", "LEASE", "TOKEN", "HOLDER", "REASON"};

static struct bytes or_dash(struct bytes text)
{
    return text.len > 0 ? text : BYTES("-");
}

static struct bytes number(char buf[NUMBER_SIZE], const struct json *item, const char *name)
{
    int len = snprintf(buf, NUMBER_SIZE, "%" PRId64, ask_int(item, name));

    return (struct bytes){buf, (size_t)len};
}

static struct bytes moment(char buf[PRINT_TIME_SIZE], const struct json *item)
{
    print_time(buf, ask_int(item, "at_ms"));
    return bytes_of(buf);
}

void event_add(struct print_table *table, const struct json *item)
{
    char time[PRINT_TIME_SIZE], token[NUMBER_SIZE];

    print_table_add(table, moment(time, item));
    print_table_add(table, ask_text(item, "type"));
    print_table_add(table, or_dash(ask_text(item, "lease")));
    print_table_add(table, ask_int(item, "token") > 0 ? number(token, item, "token") : BYTES("-"));
    print_table_add(table, or_dash(ask_text(item, "holder")));
    print_table_add(table, or_dash(ask_text(item, "reason")));
}

void event_print_line(const struct json *item)
{
    static const int widths[EVENT_COLUMNS] = {24, 15, 20, 6, 20, 0};
    char time[PRINT_TIME_SIZE], token[NUMBER_SIZE];
    const struct bytes cells[EVENT_COLUMNS] = {
        moment(time, item),
        ask_text(item, "type"),
        or_dash(ask_text(item, "lease")),
        ask_int(item, "token") > 0 ? number(token, item, "token") : BYTES("-"),
        or_dash(ask_text(item, "holder")),
        or_dash(ask_text(item, "reason")),
    };
    bool aligned = isatty(STDOUT_FILENO);

    for (unsigned i = 0; i < EVENT_COLUMNS; i++) {
        int gap = widths[i] > (int)cells[i].len ? widths[i] - (int)cells[i].len : 0;

        print_safe(stdout, cells[i]);
        if (i + 1 == EVENT_COLUMNS) {
            putchar('\n');
        } else if (aligned) {
            printf("%*s", gap + 2, "");
        } else {
            putchar('\t');
        }
    }
}

void event_print_env(const struct json *item)
{
    char text[NUMBER_SIZE];

    print_env_word("EVENT_ID", ask_text(item, "id"));
    print_env_word("EVENT_TYPE", ask_text(item, "type"));
    print_env_word("EVENT_LEASE", ask_text(item, "lease"));
    print_env_word("EVENT_TOKEN", number(text, item, "token"));
    print_env_word("EVENT_HOLDER", ask_text(item, "holder"));
    print_env_word("EVENT_AT_MS", number(text, item, "at_ms"));
    print_env_word("EVENT_REASON", ask_text(item, "reason"));
    putchar('\n');
}
