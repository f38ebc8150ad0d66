/* print.h - how answers are shown: as a table on a terminal, as lines for programs otherwise. */
#ifndef PAWL_CLI_PRINT_H
#define PAWL_CLI_PRINT_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include "shared/text/json_write.h"

/* Text that came from elsewhere: what a terminal obeys, or what is not seen and changes what is (marks of
 * direction, zero-width characters, separators of lines) becomes '?'. */
void print_safe(FILE *out, struct bytes text);
/* A line, in which that is done. */
void print_line(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
void print_line_of(FILE *out, const char *format, va_list args) __attribute__((format(printf, 2, 0)));

/* KEY='value' with everything quoted that a shell could understand otherwise. */
void print_env(const char *key, struct bytes value);
/* The same as one of several on a line, with a space behind it; what print_safe() replaces becomes '?', so
 * that it stays one line. */
void print_env_word(const char *key, struct bytes value);

enum { PRINT_DURATION_SIZE = 32 };
/* "0.4 s", "12 s", "3 m 20 s", "2 h 5 m"; in buf. */
const char *print_duration(char buf[PRINT_DURATION_SIZE], int64_t ms);

enum { PRINT_COLUMNS_MAX = 9, PRINT_NUMBER_SIZE = 24 };
/* The digits, in buf. */
struct bytes print_number(char buf[PRINT_NUMBER_SIZE], int64_t number);

/* One JSON object on stdout, with a line feed: its members are written between the two. */
void print_json_begin(struct json_out *out);
void print_json_end(struct json_out *out);

/* Rows of texts, kept until they are printed. */
struct print_table {
    const char *head[PRINT_COLUMNS_MAX]; /* as many as there are columns */
    unsigned columns;
    char **cells;
    size_t count, size;
};
void print_table_add(struct print_table *table, struct bytes text);
/* On a terminal aligned and with its head, otherwise rows with a tab between the columns; then empty again.
 */
void print_table_end(struct print_table *table);

/* Whether colours are welcome on this stream: a terminal, and NO_COLOR is not set (no-color.org). */
bool print_colour(FILE *out);
/* Whether texts are UTF-8 in the locale that the environment names. This process itself stays in C: others
 * have letters of their own ("i" in Turkish), and flags, variables and headers are ASCII. */
bool print_utf8(void);

#endif
