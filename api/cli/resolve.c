/* resolve.c - pawl resolve: what was sent for a lease and has no known end, and an operator's word on how it
 * ended, or that a gateway is dead.
 *
 *   resolve_read      flags                                  64, or go on
 *   resolve_show      the list; or, in a terminal, what is to be closed, and go on
 *   resolve_confirm   the name, typed                        1 | 64, or go on
 *   resolve_send      one, all, or a gateway                 0 | 1 */
#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "api/cli/ask.h"
#include "api/cli/cli.h"
#include "api/cli/flags.h"
#include "api/cli/print.h"
#include "shared/record/name.h"

enum { NUMBER_SIZE = 24, SEQ_MAX_CHARS = 16, PATH_SIZE = 64, TIME_SIZE = 24, ID_CHARS = 16 };

struct resolve {
    const char *gateway_url, *lease, *id, *gateway, *incarnation;
    bool all, dead, settled, yes;
    enum output output;
};

static int resolve_show(const struct resolve *r);
static int resolve_confirm(const struct resolve *r);
static int resolve_send(const struct resolve *r);

/* -- what is asked for */

static bool changes(const struct resolve *r)
{
    return r->id != NULL || r->all || r->gateway != NULL;
}

static bool is_id(const char *text)
{
    return strlen(text) == ID_CHARS && strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                                    "0123456789_-") == ID_CHARS;
}

static bool is_number(const char *text)
{
    size_t len = strlen(text);

    return len > 0 && len <= SEQ_MAX_CHARS && strspn(text, "0123456789") == len;
}

/* NULL, or what does not go together. */
static const char *resolve_wrong(const struct resolve *r)
{
    if (r->gateway == NULL && (r->dead || r->settled || r->incarnation != NULL)) {
        return "--dead, --settled and --incarnation go with --gateway ID";
    }
    if (r->gateway != NULL && !r->dead) {
        return "--gateway ID goes with --dead: what it was sending cannot be closed at once";
    }
    if (r->gateway != NULL && (r->lease != NULL || r->id != NULL || r->all)) {
        return "it is either a lease, or --gateway ID --dead";
    }
    if (r->gateway == NULL && r->lease == NULL) {
        return "which lease, or which --gateway ID --dead?";
    }
    if (r->id != NULL && r->all) {
        return "it is either --id N or --all";
    }
    if (r->yes && !changes(r)) {
        return "--yes goes with --id, --all or --gateway";
    }
    if (r->id != NULL && !is_number(r->id)) {
        return "--id takes a whole number, as the list tells it";
    }
    if ((r->gateway != NULL && !is_id(r->gateway)) || (r->incarnation != NULL && !is_id(r->incarnation))) {
        return "the id of a gateway, and of an incarnation, is 16 characters of A-Z a-z 0-9 _ -, as the list "
               "tells it";
    }
    return NULL;
}

static const struct usage resolve_usage = {
    .name = "resolve",
    .arguments = "[LEASE]",
    .examples =
        "  pawl resolve orders:42                 # what is open, and what to look for at the upstream\n"
        "  pawl resolve orders:42 --id 17         # I have looked: that one has ended\n"
        "  pawl resolve orders:42 --all\n"
        "  pawl resolve --gateway M3mb3rIdOf16Char --dead\n",
    .summary =
        "Shows the writes that were sent on for LEASE and have no known end: newer ones get 503 in-doubt\n"
        "meanwhile. With --id or --all they are closed by your word. Look at the upstream first: it\n"
        "got each with the Pawl-Request-Id GATEWAY-INCARNATION-REQUEST. One that has not been applied\n"
        "yet, and still is on its way, lands after newer ones when you are wrong.\n"
        "\n"
        "  queued   waits for its turn; nothing was sent. Closed by --id it is not sent\n"
        "  sending  its gateway may yet tell its end; not closed unless that gateway is dead\n"
        "  unknown  its gateway will not learn the end\n"
        "  dead     its gateway is known to be dead; the grace of a route that has one counts from then\n"
        "\n"
        "With --gateway: that gateway is dead, and never comes back. Do not say so of one that only\n"
        "stands still.\n"
        "\n"
        "Exit status 1: there is no such intent, it is being sent, or this was not confirmed.",
    .arguments_max = 1,
};

static int resolve_read(struct resolve *r, int argc, char **argv)
{
    const struct flag flags[] = {
        {.name = "id", .value = "N", .help = "close this one", .text = &r->id, .where = FLAG_COMMAND_LINE},
        {.name = "all", .help = "close all whose end nobody will tell (unknown, dead)", .on = &r->all},
        {.name = "gateway",
         .value = "ID",
         .help = "it is dead: with --dead",
         .text = &r->gateway,
         .where = FLAG_COMMAND_LINE},
        {.name = "incarnation",
         .value = "ID",
         .help = "only this process of it; else all but the one that is asked",
         .text = &r->incarnation,
         .where = FLAG_COMMAND_LINE},
        {.name = "dead", .help = "the gateway is dead", .on = &r->dead},
        {.name = "settled", .help = "and nothing that it had sent is still on its way", .on = &r->settled},
        {.name = "yes", .help = "do not ask", .on = &r->yes},
        flag_output(&r->output, "text|json"),
        flag_gateway_url(&r->gateway_url),
        {0},
    };
    struct usage usage = resolve_usage;
    const char *arguments[ARGUMENTS_MAX + 1], *wrong;
    int status;

    usage.flags = flags;
    status = flags_read(&usage, argc, argv, arguments, NULL);
    if (status != CLI_GO_ON) {
        return status;
    }
    r->lease = arguments[0];
    wrong = resolve_wrong(r);
    return wrong == NULL ? CLI_GO_ON : cli_fail(CLI_USAGE, "%s; see pawl resolve --help", wrong);
}

/* -- the list */

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

static void list_print(const struct json *json)
{
    static const char *const head[] = {"ID",    "STATE",   "GUARANTEE",   "TOKEN",
                                       "SINCE", "GATEWAY", "INCARNATION", "REQUEST"};
    struct print_table table = {.head = head, .columns = sizeof(head) / sizeof(head[0])};
    enum json_found found;
    size_t count = json_list_count(json, "items", &found);

    for (size_t i = 0; i < count; i++) {
        const struct json *item = json_list_object(json, "items", i);

        if (item != NULL) {
            print_table_add(&table, ask_text(item, "id"));
            print_table_add(&table, ask_text(item, "state"));
            print_table_add(&table, ask_text(item, "guarantee"));
            cell_number(&table, ask_int(item, "token"));
            cell_time(&table, ask_int(item, "at_ms"));
            print_table_add(&table, ask_text(item, "gateway"));
            print_table_add(&table, ask_text(item, "incarnation"));
            print_table_add(&table, ask_text(item, "request"));
        }
    }
    print_table_end(&table);
}

static int list_take(const struct resolve *r, const struct ask *ask, const struct http_client_answer *answer)
{
    struct json *json = ask_json(ask, answer);

    if (json == NULL) {
        return CLI_BUG;
    }
    if (r->output == OUTPUT_JSON) {
        puts(answer->body);
    } else {
        list_print(json);
    }
    json_free(json);
    return CLI_OK;
}

/* Who is to type a name sees what it is about; the answer to a program is one JSON document. */
static int resolve_show(const struct resolve *r)
{
    struct ask ask = {.what = "resolve", .request.method = "GET"};
    struct http_client_answer answer = {0};
    int status;

    if (r->gateway != NULL || (changes(r) && (r->yes || r->output == OUTPUT_JSON))) {
        return CLI_GO_ON;
    }
    status = ask_intents(&ask, r->gateway_url, r->lease, "");
    if (status == CLI_GO_ON) {
        status = ask_send(&ask, &answer);
    }
    if (status == CLI_GO_ON) {
        status = list_take(r, &ask, &answer);
    }
    http_client_answer_done(&answer);
    ask_done(&ask);
    return status == CLI_OK && changes(r) ? CLI_GO_ON : status;
}

/* -- sure? */

static void confirm_explain(const struct resolve *r)
{
    if (r->gateway == NULL) {
        fprintf(stderr,
                "You have looked at the upstream: %s%s of %s has ended, whether it was applied or not.\n"
                "Newer writes go on at once; if it still is on its way, it lands after them.\n",
                r->all ? "all that is unknown or dead" : "intent ", r->all ? "" : r->id, r->lease);
        return;
    }
    fprintf(stderr, "Gateway %s is dead, and never sends again what it has let through%s.\n", r->gateway,
            r->settled ? "; and nothing that it had sent is still on its way" : "");
    fputs("If it only stands still, its writes land after newer ones.\n", stderr);
}

static int resolve_confirm(const struct resolve *r)
{
    const char *name = r->gateway != NULL ? r->gateway : r->lease;
    char typed[NAME_MAX_BYTES + 2] = "";
    size_t len = strlen(name);

    if (r->yes) {
        return CLI_GO_ON;
    }
    fflush(stdout);
    confirm_explain(r);
    fprintf(stderr, "Type \"%s\" to go on: ", name);
    if (fgets(typed, sizeof(typed), stdin) == NULL || strncmp(typed, name, len) != 0 ||
        strcmp(typed + len, "\n") != 0) {
        return cli_fail(CLI_REFUSED, "nothing was changed");
    }
    return CLI_GO_ON;
}

/* -- the word */

static int send_init(const struct resolve *r, struct ask *ask)
{
    char path[PATH_SIZE];
    int status;

    ask->request.method = "POST";
    if (r->gateway == NULL) {
        status = ask_intents(ask, r->gateway_url, r->lease, "/resolve");
        if (status == CLI_GO_ON && r->id != NULL) {
            ask_query(ask, "id", bytes_of(r->id));
        }
        return status;
    }
    snprintf(path, sizeof(path), "/v1/gateways/%s/dead", r->gateway);
    ask->name = r->gateway;
    status = ask_gateway(ask, r->gateway_url, path);
    if (status == CLI_GO_ON && r->incarnation != NULL) {
        ask_query(ask, "incarnation", bytes_of(r->incarnation));
    }
    if (status == CLI_GO_ON && r->settled) {
        ask_query(ask, "settled", BYTES("true"));
    }
    return status;
}

/* Only what was meant and is closed has been resolved. */
static int resolved_status(const struct resolve *r, const struct json *json)
{
    return r->id != NULL && ask_int(json, "resolved") == 0 ? CLI_REFUSED : CLI_OK;
}

static void tell_resolved(const struct resolve *r, const struct json *json)
{
    int64_t sending = ask_int(json, "sending");

    if (resolved_status(r, json) != CLI_OK) {
        cli_fail(CLI_REFUSED, "%s: intent %s was not closed", r->lease, r->id);
    } else if (r->id != NULL) {
        printf("%s: intent %s is closed\n", r->lease, r->id);
    } else {
        printf("%s: %" PRId64 " closed\n", r->lease, ask_int(json, "resolved"));
    }
    if (sending > 0) {
        cli_hint("%" PRId64
                 " still being sent: a gateway may yet tell the end. If that gateway is dead, say so "
                 "first (--gateway ID --dead).",
                 sending);
    }
}

static void tell_dead(const struct resolve *r, const struct json *json)
{
    int64_t intents = ask_int(json, "intents"), in_doubt = ask_int(json, "in_doubt");

    printf("%s is dead: %" PRId64 " of its writes have no known end\n", r->gateway, intents);
    if (intents > 0) {
        cli_hint("Where a route has a grace, they end with it; else look at the upstream, and then: pawl "
                 "resolve LEASE --all.");
    }
    if (in_doubt > 0) {
        cli_hint("The store may have lost others (%" PRId64
                 " of its processes). When nothing of it is on its "
                 "way any more, say so: --settled.",
                 in_doubt);
    }
}

static int send_take(const struct resolve *r, const struct ask *ask, const struct http_client_answer *answer)
{
    struct json *json = ask_json(ask, answer);
    int status;

    if (json == NULL) {
        return CLI_BUG;
    }
    status = r->gateway == NULL ? resolved_status(r, json) : CLI_OK;
    if (r->output == OUTPUT_JSON) {
        puts(answer->body);
    } else if (r->gateway != NULL) {
        tell_dead(r, json);
    } else {
        tell_resolved(r, json);
    }
    json_free(json);
    return status;
}

static int resolve_send(const struct resolve *r)
{
    struct ask ask = {.what = "resolve"};
    struct http_client_answer answer = {0};
    int status = send_init(r, &ask);

    if (status == CLI_GO_ON) {
        status = ask_send(&ask, &answer);
    }
    if (status == CLI_GO_ON) {
        status = send_take(r, &ask, &answer);
    }
    http_client_answer_done(&answer);
    ask_done(&ask);
    return status;
}

int cli_resolve(int argc, char **argv)
{
    struct resolve r = {0};
    int status = resolve_read(&r, argc, argv);

    if (status == CLI_GO_ON && changes(&r) && !r.yes && !isatty(STDIN_FILENO)) {
        status = cli_fail(CLI_USAGE,
                          "a stale write can land if this is wrong: say --yes, or do it in a terminal");
    }
    if (status == CLI_GO_ON) {
        status = resolve_show(&r);
    }
    if (status == CLI_GO_ON) {
        status = resolve_confirm(&r);
    }
    return status == CLI_GO_ON ? resolve_send(&r) : status;
}
