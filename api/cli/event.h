/* event.h - one item of a lease's history, as pawl history and pawl watch show it. */
#ifndef PAWL_CLI_EVENT_H
#define PAWL_CLI_EVENT_H

#include "api/cli/print.h"
#include "shared/json.h"

enum { EVENT_COLUMNS = 6 };
extern const char *const event_head[EVENT_COLUMNS];

/* A row of a table with event_head. */
void event_add(struct print_table *table, const struct json *item);
/* The same as a line of its own, at once: on a terminal in columns, otherwise with tabs. */
void event_print_line(const struct json *item);
/* EVENT_ID='...' EVENT_TYPE='...' and so on, one line, for eval in a shell. */
void event_print_env(const struct json *item);

#endif
