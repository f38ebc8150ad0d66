/* show.h - answers of the services as people and shells see them: members of a JSON object as cells of a
 * table, and as variables of -o env. */
#ifndef PAWL_CLI_SHOW_H
#define PAWL_CLI_SHOW_H

#include "api/cli/print.h"
#include "shared/text/json.h"

struct show_column {
    const char *head, *variable; /* NULL: in no table; in no -o env */
    const char *member;          /* "holders.token": token of the first in the list holders */
    enum show_kind {
        SHOW_TEXT,
        SHOW_TEXT_OR_DASH,
        SHOW_TEXT_OR_LIST, /* or, with an s behind its name, a list of texts; in a table only */
        SHOW_NUMBER,
        SHOW_NUMBER_OR_DASH,
        SHOW_DURATION,
        SHOW_TIME,   /* with its milliseconds */
        SHOW_SECONDS /* a time without them */
    } kind;
};

/* All of these: columns end with member NULL. */

/* Heads of the table. */
void show_head(struct print_table *table, const struct show_column *columns);
/* A row of it. */
void show_row(struct print_table *table, const struct show_column *columns, const struct json *item);
/* KEY='value' for eval in a shell: a line each, the values as they are; or all on one line. */
void show_env(const struct show_column *columns, const struct json *item);
void show_env_line(const struct show_column *columns, const struct json *item);

/* An item of a lease's history. */
extern const struct show_column show_event[];
/* A row of it at once: on a terminal in columns, otherwise with tabs. */
void show_event_line(const struct json *item);

/* Who holds a lease: its answer to a look. */
void show_look(FILE *out, const struct json *look);

/* The grant, by the words of the member grant; env also says which of the two an acquire got. */
enum show_grant {
    SHOW_GRANT_NEW,    /* the lease was acquired */
    SHOW_GRANT_SAME,   /* an acquire that found that its lease_id holds the lease already */
    SHOW_GRANT_RENEWED /* the answer to a renewal */
};
void show_grant_text(const struct json *grant, enum show_grant kind);
void show_grant_env(const struct json *grant, enum show_grant kind);
/* "new" or "same"; NULL: of a renewal. */
const char *show_grant_word(enum show_grant kind);

#endif
