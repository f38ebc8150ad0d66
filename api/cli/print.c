/* print.c - how answers are shown. */
#include "api/cli/print.h"

#include <assert.h>
#include <inttypes.h>
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/cli/memory.h"
#include "shared/text/utf8.h"

enum { GAP = 2, LINE_SIZE = 8192 };

/* -- texts */

/* What a terminal obeys (C0, DEL and, as UTF-8, C1), and what is not seen itself but changes what is: a name
 * with one of them looks like another's, or stands the other way round (Unicode TR 36, section 2.5). */
static const struct {
    uint32_t first, last;
} deceptive[] = {
    {0x0000, 0x001f},   /* C0 */
    {0x007f, 0x009f},   /* DEL, C1 */
    {0x061c, 0x061c},   /* Arabic letter mark */
    {0x200b, 0x200f},   /* zero width; marks of direction */
    {0x2028, 0x202e},   /* separators of lines and paragraphs; embeddings and overrides */
    {0x2060, 0x206f},   /* joiners and operators that are not seen; isolates; obsolete formats */
    {0xfeff, 0xfeff},   /* byte order mark */
    {0xe0000, 0xe007f}, /* tags */
};

static bool is_deceptive(uint32_t character)
{
    for (unsigned i = 0; i < sizeof(deceptive) / sizeof(deceptive[0]); i++)
        if (character >= deceptive[i].first && character <= deceptive[i].last)
            return true;
    return false;
}

void print_safe(FILE *out, struct bytes text)
{
    while (text.len > 0) {
        uint32_t character = 0;
        size_t len = utf8_decode(text, &character);

        if (len == 0 || is_deceptive(character))
            fputc('?', out);
        else
            fwrite(text.at, 1, len, out);
        len = len > 0 ? len : 1;
        text = (struct bytes){text.at + len, text.len - len};
    }
}

void print_line_of(FILE *out, const char *format, va_list args)
{
    char line[LINE_SIZE];

    vsnprintf(line, sizeof(line), format, args);
    print_safe(out, bytes_of(line));
    fputc('\n', out);
}

void print_line(FILE *out, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print_line_of(out, format, args);
    va_end(args);
}

/* Between single quotes a shell takes everything as it is, but for the quote itself. */
void print_env(const char *key, struct bytes value)
{
    printf("%s='", key);
    for (size_t i = 0; i < value.len; i++)
        if (value.at[i] == '\'')
            fputs("'\\''", stdout);
        else
            putchar(value.at[i]);
    puts("'");
}

void print_env_word(const char *key, struct bytes value)
{
    printf("%s='", key);
    while (value.len > 0) {
        const char *quote = memchr(value.at, '\'', value.len);
        size_t len = quote != NULL ? (size_t)(quote - value.at) : value.len;

        print_safe(stdout, (struct bytes){value.at, len});
        if (len < value.len) {
            fputs("'\\''", stdout);
            len++;
        }
        value = (struct bytes){value.at + len, value.len - len};
    }
    fputs("' ", stdout);
}

const char *print_duration(char buf[PRINT_DURATION_SIZE], int64_t ms)
{
    int64_t s = ms / 1000;

    if (ms < 10000)
        snprintf(buf, PRINT_DURATION_SIZE, "%" PRId64 ".%" PRId64 " s", s, ms % 1000 / 100);
    else if (s < 60)
        snprintf(buf, PRINT_DURATION_SIZE, "%" PRId64 " s", s);
    else if (s < 3600)
        snprintf(buf, PRINT_DURATION_SIZE, "%" PRId64 " m %" PRId64 " s", s / 60, s % 60);
    else
        snprintf(buf, PRINT_DURATION_SIZE, "%" PRId64 " h %" PRId64 " m", s / 3600, s % 3600 / 60);
    return buf;
}

struct bytes print_number(char buf[PRINT_NUMBER_SIZE], int64_t number)
{
    return (struct bytes){buf, (size_t)snprintf(buf, PRINT_NUMBER_SIZE, "%" PRId64, number)};
}

void print_json_begin(struct json_out *out)
{
    json_out_init(out);
    json_object(out, NULL);
}

void print_json_end(struct json_out *out)
{
    json_object_end(out);
    printf("%.*s\n", (int)json_out_bytes(out).len, json_out_bytes(out).at);
    json_out_done(out);
}

/* -- tables */

void print_table_add(struct print_table *table, struct bytes text)
{
    char *cell = cli_alloc(text.len + 1);

    if (text.len > 0)
        memcpy(cell, text.at, text.len);
    cell[text.len] = '\0';
    if (table->count == table->size) {
        table->size = table->size > 0 ? table->size * 2 : 64;
        table->cells = cli_realloc(table->cells, table->size * sizeof(*table->cells));
    }
    table->cells[table->count++] = cell;
}

/* Places on the terminal, one for each character: wide ones are rare in holders and only spoil the alignment.
 */
static size_t places(const char *text)
{
    size_t count = 0;

    for (struct bytes rest = bytes_of(text); rest.len > 0; count++) {
        size_t len = utf8_length(rest);

        len = len > 0 ? len : 1;
        rest = (struct bytes){rest.at + len, rest.len - len};
    }
    return count;
}

static void print_row(const struct print_table *table, const char *const *cells, const size_t *widths)
{
    for (unsigned i = 0; i < table->columns; i++) {
        bool last = i + 1 == table->columns;

        print_safe(stdout, bytes_of(cells[i]));
        if (last)
            putchar('\n');
        else if (widths == NULL)
            putchar('\t');
        else
            printf("%*s", (int)(widths[i] - places(cells[i]) + GAP), "");
    }
}

static void print_aligned(const struct print_table *table)
{
    size_t widths[PRINT_COLUMNS_MAX];

    for (unsigned i = 0; i < table->columns; i++)
        widths[i] = places(table->head[i]);
    for (size_t i = 0; i < table->count; i++) {
        size_t width = places(table->cells[i]);

        widths[i % table->columns] = width > widths[i % table->columns] ? width : widths[i % table->columns];
    }
    print_row(table, table->head, widths);
    for (size_t i = 0; i < table->count; i += table->columns)
        print_row(table, (const char *const *)&table->cells[i], widths);
}

void print_table_end(struct print_table *table)
{
    assert(table->count % table->columns == 0);
    if (isatty(STDOUT_FILENO))
        print_aligned(table);
    else
        for (size_t i = 0; i < table->count; i += table->columns)
            print_row(table, (const char *const *)&table->cells[i], NULL);
    for (size_t i = 0; i < table->count; i++)
        free(table->cells[i]);
    free(table->cells);
    table->cells = NULL;
    table->count = table->size = 0;
}

/* -- the terminal */

bool print_colour(FILE *out)
{
    const char *no_colour = getenv("NO_COLOR");
    const char *term = getenv("TERM");

    return isatty(fileno(out)) && (no_colour == NULL || *no_colour == '\0') &&
           !(term != NULL && strcmp(term, "dumb") == 0);
}

bool print_utf8(void)
{
    locale_t named = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    bool is_utf8 = named != (locale_t)0 && strcmp(nl_langinfo_l(CODESET, named), "UTF-8") == 0;

    if (named != (locale_t)0)
        freelocale(named);
    return is_utf8;
}
