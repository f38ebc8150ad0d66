/* resolve.c - pawl resolve: what was sent for a lease and has no known end, and an operator's word on how it
 * ended, or that a gateway is dead.
 *
 *   resolve_check     what goes together                     64, or go on
 *   resolve_show      the list, and who is in doubt; or, on a terminal, what is to be closed, and go on
 *   resolve_confirm   the name, typed                        1, or go on
 *   resolve_send      one, all, or a gateway                 0 | 1
 *   resolve_shown     all that was shown                     0 | 1 */
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/cli/cli.h"
#include "api/cli/verb.h"
#include "shared/text/ascii.h"

enum { SEQ_MAX_CHARS = 16, PATH_SIZE = 64, ID_CHARS = 16 };

static bool changes(const struct given *g)
{
    return g->id != NULL || g->all || g->gateway != NULL;
}

static bool is_id(const char *text)
{
    return text == NULL || (strlen(text) == ID_CHARS && ascii_is_word(bytes_of(text), BYTES("_-")));
}

int resolve_check(struct call *call)
{
    const struct given *g = &call->given;
    const char *lease = call->name;
    const struct {
        bool is_wrong;
        const char *what;
    } rules[] = {
        {g->gateway == NULL && (g->dead || g->settled || g->incarnation != NULL),
         "--dead, --settled and --incarnation go with --gateway ID"},
        {g->force && g->gateway == NULL && g->id == NULL, "--force goes with --id N, or with --gateway ID"},
        {g->gateway != NULL && !g->dead,
         "--gateway ID goes with --dead: what it was sending cannot be closed at once"},
        {g->gateway != NULL && (lease != NULL || g->id != NULL || g->all),
         "it is either a lease, or --gateway ID --dead"},
        {lease == NULL && (g->id != NULL || g->all), "--id and --all are of one lease: which?"},
        {g->id != NULL && g->all, "it is either --id N or --all"},
        {g->yes && !changes(g), "--yes goes with --id, --all or --gateway"},
        {g->id != NULL && bytes_number(bytes_of(g->id), SEQ_MAX_CHARS) < 0,
         "--id takes a whole number, as the list tells it"},
        {!is_id(g->gateway) || !is_id(g->incarnation), "the id of a gateway, and of an incarnation, is 16 "
                                                       "characters of A-Z a-z 0-9 _ -, as the list tells it"},
    };

    for (unsigned i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
        if (rules[i].is_wrong)
            return cli_fail(CLI_USAGE, "%s; see pawl resolve --help", rules[i].what);
    if (changes(g) && !g->yes && !isatty(STDIN_FILENO)) {
        return cli_fail(CLI_USAGE,
                        "a stale write can land if this is wrong: say --yes, or do it in a terminal");
    }
    return CLI_GO_ON;
}

/* -- the list */

static const struct show_column intents[] = {{"LEASE", NULL, "lease", SHOW_TEXT},
                                             {"ID", NULL, "id", SHOW_TEXT},
                                             {"STATE", NULL, "state", SHOW_TEXT},
                                             {"GUARANTEE", NULL, "guarantee", SHOW_TEXT},
                                             {"TOKEN", NULL, "token", SHOW_NUMBER},
                                             {"SINCE", NULL, "at_ms", SHOW_SECONDS},
                                             {"GATEWAY", NULL, "gateway", SHOW_TEXT},
                                             {"INCARNATION", NULL, "incarnation", SHOW_TEXT},
                                             {"REQUEST", NULL, "request", SHOW_TEXT_OR_LIST},
                                             {0}};
static const struct show_column doubts[] = {{"GATEWAY", NULL, "gateway", SHOW_TEXT},
                                            {"INCARNATION", NULL, "incarnation", SHOW_TEXT},
                                            {"IN DOUBT", NULL, "state", SHOW_TEXT},
                                            {"SINCE", NULL, "since_ms", SHOW_SECONDS},
                                            {0}};

static int list_address(struct call *call)
{
    call->request.needs = "items next_cursor";
    return call->name != NULL
               ? request_intents(&call->request, call->given.gateway_url, call->name, "")
               : request_service(&call->request, REQUEST_GATEWAY, call->given.gateway_url, "/v1/intents");
}

static void doubt_print(const struct json *json, size_t open)
{
    int64_t in_doubt = request_int(json, "in_doubt");

    if (in_doubt == 0) {
        fputs(open == 0 ? "Nothing is open, and no gateway is in doubt.\n" : "", stderr);
        return;
    }
    show_table(doubts, json, "gateways", open > 0 ? "\n" : "");
    fflush(stdout);
    cli_hint("In doubt: %" PRId64
             ". The store has lost data, and each of these may have sent on what it lost: writes of ordered "
             "routes are 503 in-doubt until that is settled. A process that runs tells the store by itself. "
             "For one that is dead: pawl resolve --gateway ID --incarnation ID --dead, and with --settled "
             "when nothing that it had sent is still on its way.",
             in_doubt);
}

/* Of all leases, behind the list. */
static int doubt_show(struct call *call)
{
    struct request request = verb_request(call, "GET", "in_doubt gateways");
    int status = request_service(&request, REQUEST_GATEWAY, call->given.gateway_url, "/v1/gateways/doubt");

    status = status == CLI_GO_ON ? request_send(&request) : status;
    if (status == CLI_GO_ON && call->given.output == OUTPUT_JSON)
        puts(request.answer.body);
    else if (status == CLI_GO_ON)
        doubt_print(request.json, call->shown);
    request_done(&request);
    return status;
}

/* Of the list of one lease the ids, the first column, of those that --all closes; a space around each. What
 * comes to be unknown while somebody looks at the upstream is not meant. NULL when several have one id: then
 * all are. */
static void meant_keep(struct call *call)
{
    const struct print_table *table = &call->table;
    bool has_twice = false;
    size_t size = 2;

    for (size_t i = 0; i < table->count; i += table->columns)
        size += strlen(table->cells[i]) + 1;
    call->content = cli_alloc(size);
    memcpy(call->content, " ", 2);
    for (size_t i = 0; i < table->count; i += table->columns) {
        bool is_meant = strcmp(table->cells[i + 1], "unknown") == 0 ||
                        strcmp(table->cells[i + 1], "dead") == 0;
        size_t len = strlen(call->content);

        if (!is_meant)
            continue;
        snprintf(call->content + len, size - len, "%s ", table->cells[i]);
        has_twice |= strstr(call->content, call->content + len - 1) != call->content + len - 1;
    }
    if (has_twice) {
        free(call->content);
        call->content = NULL;
    }
}

/* Who is to type a name sees what it is about; the answer to a program is one JSON document. */
static int resolve_show(struct call *call)
{
    bool is_text = call->given.output == OUTPUT_TEXT;
    int status = verb_list(call, intents + (call->name != NULL), list_address); /* its name is in no row */

    if (call->given.all)
        meant_keep(call);
    if (call->shown > 0 && is_text)
        print_table_end(&call->table);
    if (status == CLI_GO_ON && call->name == NULL)
        status = doubt_show(call);
    else if (status == CLI_GO_ON && call->shown == 0 && is_text)
        fprintf(stderr, "%s: nothing is open\n", call->name);
    return status;
}

/* -- sure? */

static int resolve_confirm(const struct call *call)
{
    const struct given *g = &call->given;

    fflush(stdout);
    if (g->gateway == NULL) {
        fprintf(stderr,
                "You have looked at the upstream: %s%s of %s has ended, whether it was applied or not.\n"
                "Newer writes go on at once; if it still is on its way, it lands after them.\n",
                g->all ? "all that is unknown or dead" : "intent ", g->all ? "" : g->id, call->name);
    } else {
        fprintf(stderr, "Gateway %s is dead, and never sends again what it has let through%s.\n", g->gateway,
                g->settled ? "; and nothing that it had sent is still on its way" : "");
        fputs("If it only stands still, its writes land after newer ones.\n", stderr);
    }
    return cli_confirm(g->gateway != NULL ? g->gateway : call->name);
}

/* -- the word */

static int send_address(const struct given *g, const char *id, const char *lease, struct request *request)
{
    const struct bytes yes = BYTES("true"), none = {NULL, 0};
    char path[PATH_SIZE];
    int status;

    if (g->gateway == NULL) {
        status = request_intents(request, g->gateway_url, lease, "/resolve");
    } else {
        snprintf(path, sizeof(path), "/v1/gateways/%s/dead", g->gateway);
        request->name = g->gateway;
        status = request_service(request, REQUEST_GATEWAY, g->gateway_url, path);
    }
    if (status == CLI_GO_ON) {
        request_query(request, "id", bytes_of(id));
        request_query(request, "incarnation", bytes_of(g->incarnation));
        request_query(request, "settled", g->settled ? yes : none);
        request_query(request, "force", g->force ? yes : none);
    }
    return status;
}

static void tell_resolved(const struct call *call, const struct json *json)
{
    const char *id = call->given.id;
    int64_t sending = request_int(json, "sending");

    if (id == NULL)
        printf("%s: %" PRId64 " closed\n", call->name, request_int(json, "resolved"));
    else if (request_int(json, "resolved") > 0)
        printf("%s: intent %s is closed\n", call->name, id);
    else
        cli_fail(CLI_REFUSED, "%s: intent %s was not closed", call->name, id);
    if (sending > 0) {
        cli_hint("%" PRId64
                 " still being sent: a gateway may yet tell the end. If that gateway is dead, say so first "
                 "(--gateway ID --dead); if it is not to wait any longer: --id N --force.",
                 sending);
    }
}

static void tell_dead(const struct call *call, const struct json *json)
{
    int64_t intents_left = request_int(json, "intents"), in_doubt = request_int(json, "in_doubt");

    printf("%s is dead: %" PRId64 " of its writes have no known end\n", call->given.gateway, intents_left);
    if (intents_left > 0) {
        cli_hint("Where a route has a grace, they end with it; else look at the upstream, and then: pawl "
                 "resolve LEASE --all.");
    }
    if (in_doubt > 0) {
        cli_hint("The store may have lost others (%" PRId64
                 " of its processes). When nothing of it is on its way any more, say so: --settled.",
                 in_doubt);
    }
}

static int resolve_send(const struct call *call)
{
    const struct given *g = &call->given;
    struct request request = verb_request(call, "POST",
                                          g->gateway == NULL ? "resolved sending" : "intents in_doubt");
    int status = send_address(g, g->id, call->name, &request);

    status = status == CLI_GO_ON ? request_send(&request) : status;
    if (status == CLI_GO_ON) {
        if (g->output == OUTPUT_JSON)
            puts(request.answer.body);
        else if (g->gateway != NULL)
            tell_dead(call, request.json);
        else
            tell_resolved(call, request.json);
        /* Only what was meant and is closed has been resolved. */
        status = g->id != NULL && request_int(request.json, "resolved") == 0 ? CLI_REFUSED : CLI_OK;
    }
    request_done(&request);
    return status;
}

/* Those that were shown, one by one. */
static int resolve_shown(const struct call *call)
{
    struct bytes rest = bytes_of(call->content + 1);
    int status = CLI_GO_ON;
    int64_t closed = 0;

    while (status == CLI_GO_ON && rest.len > 0) {
        struct bytes one = bytes_cut(&rest, ' ');
        struct request request = verb_request(call, "POST", "resolved sending");
        enum http_client_outcome outcome;
        char id[SEQ_MAX_CHARS + 1];

        snprintf(id, sizeof(id), "%.*s", (int)one.len, one.at);
        status = send_address(&call->given, id, call->name, &request);
        if (status == CLI_GO_ON) {
            outcome = request_try(&request);
            if (outcome != HTTP_CLIENT_ANSWERED || !request_is_problem(&request, "not-found"))
                status = request_tell(&request, outcome); /* else somebody else has closed it */
        }
        closed += request_int(request.json, "resolved");
        request_done(&request);
    }
    printf("%s: %" PRId64 " closed\n", call->name, closed);
    return status == CLI_GO_ON ? CLI_OK : status;
}

int resolve_all(struct call *call)
{
    const struct given *g = &call->given;
    bool shows = g->gateway == NULL && !(changes(g) && (g->yes || g->output == OUTPUT_JSON));
    int status = shows ? resolve_show(call) : CLI_GO_ON;

    if (status != CLI_GO_ON || !changes(g))
        return status == CLI_GO_ON ? CLI_OK : status;
    status = g->yes ? CLI_GO_ON : resolve_confirm(call);
    if (status != CLI_GO_ON)
        return status;
    return call->content != NULL ? resolve_shown(call) : resolve_send(call);
}
