/* resolve_list.c - what pawl resolve shows.
 *
 *   list_page    GET /v1/intents or /v1/intents/{lease}, until there is no next cursor
 *   doubt_show   of all leases: GET /v1/gateways/doubt */
#include "api/cli/resolve_list.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/cli/ask.h"
#include "api/cli/cli.h"
#include "api/cli/print.h"

enum { NUMBER_SIZE = 24, TIME_SIZE = 24 };

struct pages {
    const struct resolve_list *list;
    char *cursor; /* NULL: no more pages */
    size_t shown;
    struct print_table table;
};

static int list_page(struct pages *pages);
static int doubt_show(const struct resolve_list *list, size_t open);

/* -- cells */

static void cell_number(struct print_table *table, int64_t number)
{
    char text[NUMBER_SIZE];
    int len = snprintf(text, sizeof(text), "%" PRId64, number);

    print_table_add(table, (struct bytes){text, (size_t)len});
}

static void cell_time(struct print_table *table, int64_t at_ms)
{
    char text[TIME_SIZE] = "-";
    time_t seconds = (time_t)(at_ms / 1000);
    struct tm broken;

    if (gmtime_r(&seconds, &broken) != NULL) {
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &broken);
    }
    print_table_add(table, bytes_of(text));
}

/* -- the intents */

static void item_add(struct pages *pages, const struct json *item)
{
    struct print_table *table = &pages->table;

    if (pages->list->lease == NULL) {
        print_table_add(table, ask_text(item, "lease"));
    }
    print_table_add(table, ask_text(item, "id"));
    print_table_add(table, ask_text(item, "state"));
    print_table_add(table, ask_text(item, "guarantee"));
    cell_number(table, ask_int(item, "token"));
    cell_time(table, ask_int(item, "at_ms"));
    print_table_add(table, ask_text(item, "gateway"));
    print_table_add(table, ask_text(item, "incarnation"));
    print_table_add(table, ask_text(item, "request"));
}

static int page_ask(const struct pages *pages, struct ask *ask)
{
    const struct resolve_list *list = pages->list;
    int status;

    *ask = (struct ask){.what = "resolve",
                        .wants = ASK_JSON,
                        .needs = "items next_cursor",
                        .output = list->output,
                        .trace = list->trace,
                        .request.method = "GET"};
    status = list->lease != NULL ? ask_intents(ask, list->gateway_url, list->lease, "")
                                 : ask_gateway(ask, list->gateway_url, "/v1/intents");
    if (status != CLI_GO_ON) {
        return status;
    }
    ask_query(ask, "limit", BYTES("1000"));
    if (pages->cursor != NULL) {
        ask_query(ask, "cursor", bytes_of(pages->cursor));
    }
    return CLI_GO_ON;
}

static void cursor_take(struct pages *pages, struct bytes next)
{
    free(pages->cursor);
    pages->cursor = NULL;
    if (next.len > 0) {
        pages->cursor = cli_alloc(next.len + 1);
        memcpy(pages->cursor, next.at, next.len);
        pages->cursor[next.len] = '\0';
    }
}

static int page_take(struct pages *pages, const struct ask *ask, const struct http_client_answer *answer)
{
    struct json *json = ask_json(ask, answer);
    enum json_found found;
    size_t count;

    if (json == NULL) {
        return CLI_BUG;
    }
    count = json_list_count(json, "items", &found);
    for (size_t i = 0; i < count; i++) {
        const struct json *item = json_list_object(json, "items", i);

        if (item != NULL && pages->list->output == OUTPUT_TEXT) {
            item_add(pages, item);
        }
        pages->shown += item != NULL;
    }
    if (pages->list->output == OUTPUT_JSON) {
        puts(answer->body);
    }
    cursor_take(pages, ask_text(json, "next_cursor"));
    json_free(json);
    return CLI_GO_ON;
}

static int list_page(struct pages *pages)
{
    struct ask ask;
    struct http_client_answer answer = {0};
    int status = page_ask(pages, &ask);

    if (status == CLI_GO_ON) {
        status = ask_send(&ask, &answer);
    }
    if (status == CLI_GO_ON) {
        status = page_take(pages, &ask, &answer);
    }
    http_client_answer_done(&answer);
    ask_done(&ask);
    return status;
}

/* -- who is in doubt */

static void doubt_print(const struct json *json, size_t open)
{
    static const char *const head[] = {"GATEWAY", "INCARNATION", "IN DOUBT", "SINCE"};
    struct print_table table = {.head = head, .columns = sizeof(head) / sizeof(head[0])};
    enum json_found found;
    size_t count = json_list_count(json, "gateways", &found);
    int64_t in_doubt = ask_int(json, "in_doubt");

    if (in_doubt == 0) {
        if (open == 0) {
            fputs("Nothing is open, and no gateway is in doubt.\n", stderr);
        }
        return;
    }
    if (open > 0) {
        putchar('\n');
    }
    for (size_t i = 0; i < count; i++) {
        const struct json *item = json_list_object(json, "gateways", i);
        int64_t since_ms = 0;

        if (item != NULL) {
            print_table_add(&table, ask_text(item, "gateway"));
            print_table_add(&table, ask_text(item, "incarnation"));
            print_table_add(&table, ask_text(item, "state"));
            if (json_get_int(item, "since_ms", &since_ms) == JSON_FOUND) {
                cell_time(&table, since_ms);
            } else {
                print_table_add(&table, BYTES("-"));
            }
        }
    }
    print_table_end(&table);
    fflush(stdout);
    cli_hint(
        "In doubt: %" PRId64 ". These may have sent what the store has lost, so newer writes of ordered "
        "routes wait. One that lives says by itself that all is recorded again; for one that is dead, when "
        "nothing of it is on its way any more: pawl resolve --gateway ID --dead --settled.",
        in_doubt);
}

static int doubt_show(const struct resolve_list *list, size_t open)
{
    struct ask ask = {.what = "resolve",
                      .wants = ASK_JSON,
                      .needs = "in_doubt gateways",
                      .output = list->output,
                      .trace = list->trace,
                      .request.method = "GET"};
    struct http_client_answer answer = {0};
    int status = ask_gateway(&ask, list->gateway_url, "/v1/gateways/doubt");

    if (status == CLI_GO_ON) {
        status = ask_send(&ask, &answer);
    }
    if (status == CLI_GO_ON) {
        struct json *json = ask_json(&ask, &answer);

        status = json != NULL ? CLI_OK : CLI_BUG;
        if (json != NULL && list->output == OUTPUT_JSON) {
            puts(answer.body);
        } else if (json != NULL) {
            doubt_print(json, open);
        }
        json_free(json);
    }
    http_client_answer_done(&answer);
    ask_done(&ask);
    return status;
}

int resolve_list_show(const struct resolve_list *list)
{
    static const char *const head[] = {"LEASE", "ID",      "STATE",       "GUARANTEE", "TOKEN",
                                       "SINCE", "GATEWAY", "INCARNATION", "REQUEST"};
    unsigned skipped = list->lease != NULL; /* its name is in no row */
    struct pages pages = {
        .list = list,
        .table = {.head = head + skipped, .columns = sizeof(head) / sizeof(head[0]) - skipped},
    };
    int status;

    do {
        status = list_page(&pages);
    } while (status == CLI_GO_ON && pages.cursor != NULL);
    free(pages.cursor);
    if (pages.shown > 0 && list->output == OUTPUT_TEXT) {
        print_table_end(&pages.table);
    }
    if (status != CLI_GO_ON) {
        return status;
    }
    if (list->lease == NULL) {
        return doubt_show(list, pages.shown);
    }
    if (pages.shown == 0 && list->output == OUTPUT_TEXT) {
        fprintf(stderr, "%s: nothing is open\n", list->lease);
    }
    return CLI_OK;
}
