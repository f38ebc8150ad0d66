/* ls.c - pawl ls: the leases that are held, page after page until there is no next cursor. */
#include <inttypes.h>
#include <stdlib.h>

#include "api/cli/ask.h"
#include "api/cli/cli.h"
#include "api/cli/flags.h"
#include "api/cli/print.h"

enum { PAGE_MAX = 1000 };

struct ls {
    const char *lease_url, *prefix, *state;
    unsigned limit; /* 0: all */
    enum output output;
    bool trace;
    size_t shown;
    char *cursor; /* NULL: no more pages */
    struct print_table table;
};

static int ls_read(struct ls *ls, int argc, char **argv)
{
    const struct flag flags[] = {
        {.name = "prefix",
         .value = "P",
         .help = "only names that begin with P",
         .text = &ls->prefix,
         .where = FLAG_COMMAND_LINE},
        {.name = "state",
         .value = "held|waiting|delayed",
         .help = "only leases in this state",
         .text = &ls->state,
         .where = FLAG_COMMAND_LINE},
        {.name = "limit",
         .value = "N",
         .help = "at most N of them",
         .number = &ls->limit,
         .where = FLAG_COMMAND_LINE},
        flag_output(&ls->output, "text|json|env"),
        flag_trace(&ls->trace),
        flag_lease_url(&ls->lease_url),
        {0},
    };
    const struct usage usage = {
        .name = "ls",
        .arguments = "",
        .examples = "  pawl ls\n"
                    "  pawl ls --prefix orders: --limit 20\n"
                    "  pawl ls -o json | jq -r '.items[].lease'\n"
                    "  pawl ls -o env | while read -r line; do eval \"$line\"; echo \"$LEASE: "
                    "$LEASE_HOLDER\"; done\n",
        .summary = "Lists the leases that are held. On a terminal as a table; otherwise a line for each, "
                   "tabs between the\n"
                   "columns; with -o json the service's pages, a line for each; with -o env a line for each "
                   "lease, for\n"
                   "eval.",
        .flags = flags,
    };
    const char *arguments[ARGUMENTS_MAX + 1];

    return flags_read(&usage, argc, argv, arguments, NULL);
}

/* -- one page */

static int page_ask(const struct ls *ls, struct ask *ask)
{
    char limit[16];
    size_t left = ls->limit > 0 ? ls->limit - ls->shown : PAGE_MAX;
    int status;

    *ask = (struct ask){.what = "ls",
                        .wants = ASK_JSON,
                        .needs = "items next_cursor",
                        .output = ls->output,
                        .trace = ls->trace,
                        .request.method = "GET"};
    status = ask_leases(ask, ls->lease_url);
    if (status != CLI_GO_ON) {
        return status;
    }
    snprintf(limit, sizeof(limit), "%zu", left < PAGE_MAX ? left : (size_t)PAGE_MAX);
    ask_query(ask, "limit", bytes_of(limit));
    if (ls->prefix != NULL) {
        ask_query(ask, "prefix", bytes_of(ls->prefix));
    }
    if (ls->state != NULL) {
        ask_query(ask, "state", bytes_of(ls->state));
    }
    if (ls->cursor != NULL) {
        ask_query(ask, "cursor", bytes_of(ls->cursor));
    }
    return CLI_GO_ON;
}

static void cell_number(struct print_table *table, int64_t number)
{
    char text[24];
    int len = snprintf(text, sizeof(text), "%" PRId64, number);

    print_table_add(table, (struct bytes){text, (size_t)len});
}

static void cell_duration(struct print_table *table, int64_t ms)
{
    char text[PRINT_DURATION_SIZE];

    print_duration(text, ms);
    print_table_add(table, bytes_of(text));
}

static void item_add(struct ls *ls, const struct json *item)
{
    enum json_found found;
    size_t holders = json_list_count(item, "holders", &found);
    const struct json *first = holders > 0 ? json_list_object(item, "holders", 0) : NULL;

    print_table_add(&ls->table, ask_text(item, "lease"));
    print_table_add(&ls->table, ask_text(item, "state"));
    cell_number(&ls->table, ask_int(item, "token"));
    print_table_add(&ls->table, first != NULL ? ask_text(first, "holder") : BYTES("-"));
    cell_duration(&ls->table, first != NULL ? ask_int(first, "held_for_ms") : 0);
    cell_duration(&ls->table, first != NULL ? ask_int(first, "expires_in_ms") : 0);
}

static void env_number(const char *key, int64_t number)
{
    char text[24];
    int len = snprintf(text, sizeof(text), "%" PRId64, number);

    print_env_word(key, (struct bytes){text, (size_t)len});
}

static void item_print_env(const struct json *item)
{
    enum json_found found;
    size_t holders = json_list_count(item, "holders", &found);
    const struct json *first = holders > 0 ? json_list_object(item, "holders", 0) : NULL;

    print_env_word("LEASE", ask_text(item, "lease"));
    print_env_word("LEASE_STATE", ask_text(item, "state"));
    env_number("LEASE_TOKEN", ask_int(item, "token"));
    print_env_word("LEASE_HOLDER", first != NULL ? ask_text(first, "holder") : BYTES(""));
    env_number("LEASE_EXPIRES_IN_MS", first != NULL ? ask_int(first, "expires_in_ms") : 0);
    putchar('\n');
}

static void cursor_take(struct ls *ls, struct bytes next)
{
    free(ls->cursor);
    ls->cursor = NULL;
    if (next.len > 0) {
        ls->cursor = cli_alloc(next.len + 1);
        memcpy(ls->cursor, next.at, next.len);
        ls->cursor[next.len] = '\0';
    }
}

static int page_take(struct ls *ls, const struct ask *ask, const struct http_client_answer *answer)
{
    enum json_found found;
    struct json *json = ask_json(ask, answer);
    size_t count;

    if (json == NULL) {
        return CLI_BUG;
    }
    count = json_list_count(json, "items", &found);
    for (size_t i = 0; ls->output != OUTPUT_JSON && i < count; i++) {
        const struct json *item = json_list_object(json, "items", i);

        if (item != NULL && ls->output == OUTPUT_ENV) {
            item_print_env(item);
        } else if (item != NULL) {
            item_add(ls, item);
        }
    }
    if (ls->output == OUTPUT_JSON) {
        puts(answer->body);
    }
    ls->shown += count;
    cursor_take(ls, ask_text(json, "next_cursor"));
    json_free(json);
    return CLI_GO_ON;
}

static int ls_page(struct ls *ls)
{
    struct ask ask;
    struct http_client_answer answer = {0};
    int status = page_ask(ls, &ask);

    if (status == CLI_GO_ON) {
        status = ask_send(&ask, &answer);
    }
    if (status == CLI_GO_ON) {
        status = page_take(ls, &ask, &answer);
    }
    http_client_answer_done(&answer);
    ask_done(&ask);
    return status;
}

int cli_ls(int argc, char **argv)
{
    static const char *const head[] = {"LEASE", "STATE", "TOKEN", "HOLDER", "HELD FOR", "LEFT"};
    struct ls ls = {.table = {.head = head, .columns = sizeof(head) / sizeof(head[0])}};
    int status = ls_read(&ls, argc, argv);

    if (status != CLI_GO_ON) {
        return status;
    }
    do {
        status = ls_page(&ls);
    } while (status == CLI_GO_ON && ls.cursor != NULL && (ls.limit == 0 || ls.shown < ls.limit));
    free(ls.cursor);
    if (ls.output == OUTPUT_TEXT && (status == CLI_GO_ON || ls.shown > 0)) {
        print_table_end(&ls.table);
    }
    return status == CLI_GO_ON ? CLI_OK : status;
}
