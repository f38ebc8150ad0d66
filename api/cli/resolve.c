/* resolve.c - pawl resolve: what was sent for a lease and has no known end, and an operator's word on how it
 * ended, or that a gateway is dead.
 *
 *   resolve_read      flags                                  64, or go on
 *   resolve_show      the list (resolve_list.c); or, in a terminal, what is to be closed, and go on
 *   resolve_confirm   the name, typed                        1 | 64, or go on
 *   resolve_send      one, all, or a gateway                 0 | 1 */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "api/cli/ask.h"
#include "api/cli/cli.h"
#include "api/cli/confirm.h"
#include "api/cli/flags.h"
#include "api/cli/print.h"
#include "api/cli/resolve_list.h"
#include "shared/record/name.h"

enum { SEQ_MAX_CHARS = 16, PATH_SIZE = 64, ID_CHARS = 16 };

struct resolve {
    const char *gateway_url, *lease, *id, *gateway, *incarnation;
    bool all, dead, settled, force, yes, trace;
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
    if (r->force && r->gateway == NULL && r->id == NULL) {
        return "--force goes with --id N, or with --gateway ID";
    }
    if (r->gateway != NULL && !r->dead) {
        return "--gateway ID goes with --dead: what it was sending cannot be closed at once";
    }
    if (r->gateway != NULL && (r->lease != NULL || r->id != NULL || r->all)) {
        return "it is either a lease, or --gateway ID --dead";
    }
    if (r->lease == NULL && (r->id != NULL || r->all)) {
        return "--id and --all are of one lease: which?";
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
        "  pawl resolve                           # what is open, of all leases, and who is in doubt\n"
        "  pawl resolve orders:42                 # of this one, and what to look for at the upstream\n"
        "  pawl resolve orders:42 --id 17         # I have looked: that one has ended\n"
        "  pawl resolve orders:42 --id 17 --force # and its gateway shall give it up, if it is being sent\n"
        "  pawl resolve orders:42 --all\n"
        "  pawl resolve --gateway M3mb3rIdOf16Char --dead\n",
    .summary =
        "Shows the writes that were sent on for LEASE, or for any, and have no known end: newer ones get\n"
        "503 in-doubt meanwhile; without LEASE also the gateways that may have sent what the store has\n"
        "lost. With --id or --all they are closed by your word. Look at the upstream first: it\n"
        "got each with the Pawl-Request-Id GATEWAY-INCARNATION-REQUEST. One that has not been applied\n"
        "yet, and still is on its way, lands after newer ones when you are wrong.\n"
        "\n"
        "  queued   waits for its turn; nothing was sent. Closed by --id it is not sent\n"
        "  sending  its gateway may yet tell its end; closed only with --id N --force, which makes that\n"
        "           gateway close the connection first, or when it is dead\n"
        "  unknown  its gateway will not learn the end\n"
        "  dead     its gateway is known to be dead; the grace of a route that has one counts from then\n"
        "\n"
        "With --gateway: that gateway is dead, and never comes back. Do not say so of one that only\n"
        "stands still. What it was sending is dead then, and still waited for; with --settled nobody waits\n"
        "any more for what the store may have lost of it: say so when nothing that it had sent can still\n"
        "arrive. One whose last pulse came within 10 s is refused: stop it, or --force.\n"
        "\n"
        "Exit status 1: there is no such intent or gateway, it is being sent, or lives, or this was not\n"
        "confirmed.",
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
        {.name = "force", .help = "though its pulse is fresh; though it is being sent", .on = &r->force},
        {.name = "yes", .help = "do not ask", .on = &r->yes},
        flag_output(&r->output, "text|json"),
        flag_trace(&r->trace),
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

/* Who is to type a name sees what it is about; the answer to a program is one JSON document. */
static int resolve_show(const struct resolve *r)
{
    const struct resolve_list list = {r->gateway_url, r->lease, r->trace, r->output};
    int status;

    if (r->gateway != NULL || (changes(r) && (r->yes || r->output == OUTPUT_JSON))) {
        return CLI_GO_ON;
    }
    status = resolve_list_show(&list);
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
    if (r->yes) {
        return CLI_GO_ON;
    }
    fflush(stdout);
    confirm_explain(r);
    return confirm_name(r->gateway != NULL ? r->gateway : r->lease);
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
        if (status == CLI_GO_ON && r->force) {
            ask_query(ask, "force", BYTES("true"));
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
    if (status == CLI_GO_ON && r->force) {
        ask_query(ask, "force", BYTES("true"));
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
                 "first (--gateway ID --dead); if it is not to wait any longer: --id N --force.",
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
    struct ask ask = {.what = "resolve",
                      .wants = ASK_JSON,
                      .needs = r->gateway == NULL ? "resolved sending" : "intents in_doubt",
                      .output = r->output,
                      .trace = r->trace};
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
