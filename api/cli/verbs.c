/* verbs.c - the verbs that send one request and show the answer. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/cli/cli.h"
#include "api/cli/verb.h"
#include "shared/token/name.h"

enum { BODY_MAX = 256 << 20, READ_AT_ONCE = 65536, PAGE_MAX = 1000, TOKEN_CHARS_MAX = 15, LIMIT_SIZE = 16 };

/* -- flags */

static void pick(const struct option *all, const char *names, struct option *flags)
{
    struct bytes rest = bytes_of(names);

    while (rest.len > 0) {
        struct bytes name = bytes_cut(&rest, ' ');

        for (const struct option *flag = all; flag->name != NULL; flag++)
            if (bytes_are(name, flag->name))
                *flags++ = *flag;
    }
}

static void flags_make(const struct verb *verb, struct given *g, struct option flags[FLAGS_MAX + 1])
{
    const struct option all[] = {
        FLAG_WAIT("wait in line so long at most (default: not at all)",
                  "a duration above 0 with its unit (ms, s, m, h, d); to not wait, leave it out",
                  &g->wait_ms),
        FLAG_TTL(&g->ttl_ms),
        FLAG_MODE(&g->mode),
        FLAG_PERMITS(&g->permits),
        FLAG_MS("lock-delay", "DUR", "if the hold expires, nobody else gets it for so long",
                &g->lock_delay_ms),
        FLAG_MS("keep-place", "DUR", "keep the place in line so long when the connection breaks",
                &g->keep_place_ms),
        FLAG_TEXT("since", "ID", "begin behind this item (its id, as -o json tells it)", &g->since),
        FLAG_MS("idle", "DUR", "connect anew when nothing has come for so long (default 45s)", &g->idle_ms),
        FLAG_HOLDER(&g->holder),
        FLAG_TEXT("meta", "JSON", "an object that look and list show", &g->meta),
        FLAG_TEXT("held-by", "HOLDER", "only leases that this holder holds", &g->holder),
        FLAG_TEXT("prefix", "P", "only names that begin with P", &g->prefix),
        FLAG_TEXT("state", "held|waiting|delayed", "only leases in this state", &g->state),
        FLAG_NUMBER("limit", "at most N of them", &g->limit),
        FLAG_TEXT("reason", "TEXT", "why; it stands in the history", &g->reason),
        FLAG_TEXT("expect-token", "N", "only the hold that has this token", &g->expect_token),
        FLAG_TEXT("type", "TYPE", "its content type", &g->type),
        FLAG_TEXT("if-match", "ETAG", "only if the resource is still at this version", &g->if_match),
        FLAG_TEXT("if-none-match", "ETAG", "only if it is not at this version; \"*\": only if there is none",
                  &g->if_none_match),
        FLAG_TEXT("idempotency-key", "KEY", "makes it safe to send the same again", &g->idempotency_key),
        FLAG_ON("fenced", "send the fencing token: refused when stale, and no older write lands after it",
                &g->fenced),
        FLAG_TEXT("id", "N", "close this one", &g->id),
        FLAG_ON("all", "close all whose end nobody will tell (unknown, dead)", &g->all),
        FLAG_TEXT("gateway", "ID", "it is dead: with --dead", &g->gateway),
        FLAG_TEXT("incarnation", "ID", "only this process of it; else all but the one that is asked",
                  &g->incarnation),
        FLAG_ON("dead", "the gateway is dead", &g->dead),
        FLAG_ON("settled", "and nothing that it had sent is still on its way", &g->settled),
        FLAG_ON("force", "though its heartbeat is fresh; though it is being sent", &g->force),
        FLAG_ON("yes", "do not ask", &g->yes),
        FLAG_ON("once", "show it once, and end", &g->once),
        FLAG_ENV("lease-id-file", "FILE", "where the lease_id is (else PAWL_LEASE_ID)", &g->lease_id_file),
        FLAG_ENV("token-file", "FILE", "where the fencing token is (else PAWL_FENCING_TOKEN)",
                 &g->token_file),
        FLAG_OUTPUT(verb->outputs != NULL ? verb->outputs : "text|json|env",
                    verb->output_help != NULL ? verb->output_help
                    : verb->outputs != NULL   ? FLAG_OUTPUT_ANSWER
                                              : FLAG_OUTPUT_ANSWER "; env: for eval in a shell",
                    &g->output),
        FLAG_TRACE(&g->trace),
        FLAG_LEASE_URL(&g->lease_url),
        FLAG_GATEWAY_URL(&g->gateway_url),
        {0},
    };

    pick(all, verb->flags, flags);
}

int verb_read(struct call *call, int argc, char **argv)
{
    const struct verb *verb = call->verb;
    struct option flags[FLAGS_MAX + 1] = {{0}};
    const char *arguments[ARGUMENTS_MAX + 1];
    int status;

    flags_make(verb, &call->given, flags);
    status = flags_read(verb->name, flags, argc, argv, arguments);
    if (status != CLI_GO_ON)
        return status;
    call->name = arguments[0];
    call->file = arguments[1];
    call->request = (struct request){.what = verb->name,
                                     .wants = verb->asks.wants,
                                     .needs = verb->asks.needs,
                                     .lease_id = call->secret,
                                     .repeat = verb->repeat,
                                     .output = call->given.output,
                                     .trace = call->given.trace,
                                     .http = {.method = verb->asks.method, .url = verb->asks.path}};
    return verb->check != NULL ? verb->check(call) : CLI_GO_ON;
}

/* -- the request */

static int address(struct call *call)
{
    const struct given *g = &call->given;
    const char *path = call->request.http.url;

    switch (call->verb->asks.of) {
    case OF_A_LEASE: return request_lease(&call->request, g->lease_url, call->name, path);
    case OF_LEASES: return request_service(&call->request, REQUEST_LEASE_SERVICE, g->lease_url, path);
    case OF_A_RESOURCE: return request_resource(&call->request, g->gateway_url, call->name);
    case OF_THE_GATEWAY: return request_service(&call->request, REQUEST_GATEWAY, g->gateway_url, path);
    case OF_ITS_OWN: break;
    }
    return CLI_GO_ON;
}

/* Whether a verb takes a flag, whose name is no part of another's. */
static bool takes(const struct call *call, const char *flag)
{
    return strstr(call->verb->flags, flag) != NULL;
}

/* What goes into headers, and what proves the hold. */
static int headers(struct call *call)
{
    const struct given *g = &call->given;
    bool token = takes(call, "token-file") && (g->fenced || !takes(call, "fenced"));
    int status = CLI_GO_ON;

    if (g->idempotency_key != NULL && !name_is_idempotency_key(bytes_of(g->idempotency_key)))
        return cli_fail(CLI_USAGE, "--idempotency-key takes 1 to 128 visible ASCII characters");
    if (flags_check_line("--type", g->type) != CLI_GO_ON ||
        flags_check_line("--if-match", g->if_match) != CLI_GO_ON ||
        flags_check_line("--if-none-match", g->if_none_match) != CLI_GO_ON)
        return CLI_USAGE;
    if (takes(call, "lease-id-file"))
        status = secret_lease_id(g->lease_id_file, call->secret);
    else if (token)
        status = secret_token(g->token_file, call->secret);
    request_header(&call->request, token ? "Fencing-Token" : "Lease-Id", bytes_of(call->secret));
    request_header(&call->request, "Content-Type", bytes_of(g->type));
    request_header(&call->request, "If-Match", bytes_of(g->if_match));
    request_header(&call->request, "If-None-Match", bytes_of(g->if_none_match));
    request_header(&call->request, "Idempotency-Key", bytes_of(g->idempotency_key));
    return status;
}

/* The body as JSON. */
static void body_begin(struct call *call)
{
    json_out_reset(&call->body);
    json_object(&call->body, NULL);
}

static void body_end(struct call *call)
{
    json_object_end(&call->body);
    call->request.http.body = json_out_bytes(&call->body);
    request_header(&call->request, "Content-Type", BYTES("application/json"));
}

static int send_and_show(struct call *call)
{
    int status = request_send(&call->request);

    if (status != CLI_GO_ON) {
        if (call->verb->advise != NULL)
            call->verb->advise(call);
        return status;
    }
    if (call->given.output == OUTPUT_JSON && call->request.json != NULL &&
        call->verb->asks.wants != REQUEST_WRITTEN)
        puts(call->request.answer.body);
    else if (call->verb->show != NULL)
        call->verb->show(call);
    /* 1 would say that it was refused. */
    if (strcmp(call->request.http.method, "GET") != 0 && (fflush(stdout) != 0 || ferror(stdout))) {
        return doubt_tell(DOUBT_UNKNOWN, OUTPUT_TEXT,
                          "%s%s%s: it was done, but the output could not be written", call->request.what,
                          call->name != NULL ? " " : "", call->name != NULL ? call->name : "");
    }
    return CLI_OK;
}

/* -- lists, page after page until there is no next cursor */

static int page_ask(struct call *call, int (*address_of)(struct call *call))
{
    const struct given *g = &call->given;
    size_t left = g->limit > 0 ? g->limit - call->shown : PAGE_MAX;
    char limit[LIMIT_SIZE];
    int status = address_of(call);

    if (status == CLI_GO_ON && strstr(call->request.needs, "next_cursor") != NULL) {
        snprintf(limit, sizeof(limit), "%zu", left < PAGE_MAX ? left : (size_t)PAGE_MAX);
        request_query(&call->request, "limit", bytes_of(limit));
        request_query(&call->request, "prefix", bytes_of(g->prefix));
        request_query(&call->request, "holder", bytes_of(g->holder));
        request_query(&call->request, "state", bytes_of(g->state));
        request_query(&call->request, "cursor", bytes_of(call->cursor));
    }
    return status == CLI_GO_ON ? request_send(&call->request) : status;
}

static char *cursor_of(struct bytes text)
{
    char *cursor = cli_alloc(text.len + 1);

    snprintf(cursor, text.len + 1, "%.*s", (int)text.len, text.at);
    return cursor;
}

static void page_show(struct call *call, const struct show_column *columns)
{
    const struct json *json = call->request.json;
    struct bytes next = request_text(json, "next_cursor");
    enum json_found found;
    size_t count = json_list_count(json, "items", &found);

    for (size_t i = 0; i < count; i++) {
        const struct json *item = json_list_object(json, "items", i);

        if (item != NULL && call->given.output == OUTPUT_ENV)
            show_env_line(columns, item);
        else if (item != NULL && call->given.output == OUTPUT_TEXT)
            show_row(&call->table, columns, item);
    }
    if (call->given.output == OUTPUT_JSON)
        puts(call->request.answer.body);
    call->shown += count;
    free(call->cursor);
    call->cursor = next.len > 0 ? cursor_of(next) : NULL;
}

/* A cursor that comes again is met, however long the circle (R. P. Brent, 1980): it is compared with one of
 * before, which is replaced after 1, 2, 4, 8, ... pages. */
static int page_goes_on(struct call *call)
{
    if (call->cursor == NULL)
        return CLI_GO_ON;
    if (call->before != NULL && strcmp(call->cursor, call->before) == 0) {
        return cli_fail(CLI_BUG, "%s: the service gave a cursor twice: the list would never end",
                        call->request.what);
    }
    call->pages++;
    if ((call->pages & (call->pages - 1)) == 0) {
        free(call->before);
        call->before = cursor_of(bytes_of(call->cursor));
    }
    return CLI_GO_ON;
}

int verb_list(struct call *call, const struct show_column *columns, int (*address_of)(struct call *call))
{
    const struct request fresh = call->request;
    int status;

    show_head(&call->table, columns);
    do {
        request_done(&call->request);
        call->request = fresh;
        status = page_ask(call, address_of);
        if (status == CLI_GO_ON) {
            page_show(call, columns);
            status = page_goes_on(call);
        }
    } while (status == CLI_GO_ON && call->cursor != NULL &&
             (call->given.limit == 0 || call->shown < call->given.limit));
    return status;
}

static int list(struct call *call)
{
    int status = verb_list(call, call->verb->columns, address);

    if (call->given.output == OUTPUT_TEXT && (status == CLI_GO_ON || call->shown > 0))
        print_table_end(&call->table);
    return status == CLI_GO_ON ? CLI_OK : status;
}

/* -- renew, release, get */

static int renew_load(struct call *call)
{
    if (call->given.ttl_ms > 0) {
        body_begin(call);
        json_int(&call->body, "ttl_ms", (int64_t)call->given.ttl_ms);
        body_end(call);
    } else {
        call->request.http.body = BYTES("");
    }
    return CLI_GO_ON;
}

static void renew_show(const struct call *call)
{
    show_grant(call->request.json, SHOW_GRANT_RENEWED, call->given.output);
}

/* One that -o env of another lease has put there was never this hold's. */
static void hold_advise(const struct call *call)
{
    const char *lease = getenv("PAWL_LEASE");

    if (lease != NULL && *lease != '\0' && strcmp(lease, call->name) != 0 &&
        call->given.lease_id_file == NULL && request_is_problem(&call->request, "lease-lost"))
        cli_hint("PAWL_LEASE_ID stands beside PAWL_LEASE, another lease: is it this hold's?");
}

/* 204: it is free; 200: so many acquires of this hold are still to be released. */
static void release_show(const struct call *call)
{
    const struct json *json = call->request.json;

    if (call->given.output == OUTPUT_ENV && json == NULL)
        puts("unset PAWL_LEASE PAWL_TOKEN PAWL_FENCING_TOKEN PAWL_LEASE_ID");
    else if (call->given.output == OUTPUT_TEXT && json != NULL)
        printf("%s released once; %" PRId64 " more to go\n", call->name, request_int(json, "holds"));
    else if (call->given.output == OUTPUT_TEXT)
        printf("%s released\n", call->name);
}

/* Not PAWL_...: that would speak to the next command. Of several holders the first. */
static const struct show_column get_columns[] = {
    {NULL, "LEASE", "lease", SHOW_TEXT},
    {NULL, "LEASE_STATE", "state", SHOW_TEXT},
    {NULL, "LEASE_TOKEN", "token", SHOW_NUMBER},
    {NULL, "LEASE_WAITING", "waiting", SHOW_NUMBER},
    {NULL, "LEASE_HOLDER", "holders.holder", SHOW_TEXT},
    {NULL, "LEASE_EXPIRES_IN_MS", "holders.expires_in_ms", SHOW_NUMBER},
    {0},
};

static void get_show(const struct call *call)
{
    if (call->given.output == OUTPUT_ENV)
        show_env(get_columns, call->request.json);
    else
        show_look(stdout, call->request.json);
}

static const struct show_column ls_columns[] = {
    {"LEASE", "LEASE", "lease", SHOW_TEXT},
    {"STATE", "LEASE_STATE", "state", SHOW_TEXT},
    {"TOKEN", "LEASE_TOKEN", "token", SHOW_NUMBER},
    {"HOLDER", "LEASE_HOLDER", "holders.holder", SHOW_TEXT_OR_DASH},
    {"HELD FOR", NULL, "holders.held_for_ms", SHOW_DURATION},
    {"LEFT", "LEASE_EXPIRES_IN_MS", "holders.expires_in_ms", SHOW_DURATION},
    {0},
};

static const struct show_column sessions_columns[] = {
    {"SESSION", "SESSION", "session", SHOW_TEXT},
    {"HOLDER", "SESSION_HOLDER", "holder", SHOW_TEXT},
    {"LEASES", "SESSION_LEASES", "leases", SHOW_NUMBER},
    {"LOST", "SESSION_LOST", "lost", SHOW_NUMBER},
    {"OPEN FOR", NULL, "open_for_ms", SHOW_DURATION},
    {"LEFT", "SESSION_EXPIRES_IN_MS", "expires_in_ms", SHOW_DURATION},
    {0},
};

/* -- force-release */

static int force_check(struct call *call)
{
    const struct given *g = &call->given;
    const char *digits = g->expect_token;

    if (g->reason != NULL && !name_is_reason(bytes_of(g->reason)))
        return cli_fail(CLI_USAGE, "--reason takes 1 to 256 bytes of printable UTF-8");
    call->token = digits != NULL ? bytes_number(bytes_of(digits), TOKEN_CHARS_MAX) : 0;
    if (digits != NULL && call->token <= 0)
        return cli_fail(CLI_USAGE, "--expect-token takes a token: a whole number from 1");
    return g->yes || isatty(STDIN_FILENO)
               ? CLI_GO_ON
               : cli_fail(CLI_USAGE, "somebody loses the lease by this: say --yes, or do it on a terminal");
}

/* Who is shown is who is meant: not one who comes while the name is being typed. */
static int force_before(struct call *call)
{
    struct request look = verb_request(call, "GET", "lease state token holders waiting");
    enum json_found found;
    int status;

    if (call->given.yes)
        return CLI_GO_ON;
    status = request_lease(&look, call->given.lease_url, call->name, "");
    status = status == CLI_GO_ON ? request_send(&look) : status;
    if (status == CLI_GO_ON) {
        size_t holders = json_list_count(look.json, "holders", &found);

        show_look(stderr, look.json);
        if (call->token == 0 && holders == 1)
            call->token = request_int(json_list_object(look.json, "holders", 0), "token");
        if (call->token == 0 && holders == 0 && call->given.output == OUTPUT_TEXT) {
            printf("%s: nobody held it\n", call->name);
            status = CLI_OK;
        } else {
            fprintf(stderr, "Its holder is told only when it asks; until then it may go on working.\n");
            status = cli_confirm(call->name);
        }
    }
    request_done(&look);
    return status;
}

static int force_load(struct call *call)
{
    body_begin(call);
    if (call->given.reason != NULL)
        json_text(&call->body, "reason", bytes_of(call->given.reason));
    if (call->token > 0)
        json_int(&call->body, "expect_token", call->token);
    body_end(call);
    return CLI_GO_ON;
}

static void force_show(const struct call *call)
{
    int64_t token = request_int(call->request.json, "released_token");
    char text[PRINT_NUMBER_SIZE];

    if (call->given.output == OUTPUT_ENV)
        print_env("LEASE_RELEASED_TOKEN", print_number(text, token));
    else if (token == 0)
        printf("%s: nobody held it\n", call->name);
    else
        printf("%s: the hold with token %" PRId64 " has ended\n", call->name, token);
}

/* -- put, cat, rm */

static int load_all(struct call *call, FILE *in, const char *name)
{
    size_t size = READ_AT_ONCE, len = 0, got;

    call->content = cli_alloc(size);
    while ((got = fread(call->content + len, 1, size - len, in)) > 0) {
        len += got;
        if (len > BODY_MAX)
            return cli_fail(CLI_USAGE, "%s is longer than 256 MiB, which no gateway takes", name);
        if (len == size) {
            size *= 2;
            call->content = cli_realloc(call->content, size);
        }
    }
    call->request.http.body = (struct bytes){call->content, len};
    return ferror(in) ? cli_fail(CLI_REFUSED, "%s cannot be read: %s", name, strerror(errno)) : CLI_GO_ON;
}

static int put_load(struct call *call)
{
    bool standard = call->file == NULL || strcmp(call->file, "-") == 0;
    FILE *in = standard ? stdin : fopen(call->file, "rbe");
    int status;

    call->request.body_from = call->file != NULL ? call->file : "-";
    if (in == NULL)
        return cli_fail(CLI_REFUSED, "%s cannot be read: %s", call->file, strerror(errno));
    status = load_all(call, in, standard ? "standard input" : call->file);
    if (!standard)
        fclose(in);
    return status;
}

static void put_show(const struct call *call)
{
    bool created = call->request.answer.status == 201;
    struct bytes key = bytes_of(call->name), etag = bytes_of(call->request.answer.etag);
    struct json_out out;

    if (call->given.output == OUTPUT_TEXT) {
        print_line(stdout, "%s %s, ETag %s", key.at, created ? "created" : "written", etag.at);
    } else if (call->given.output == OUTPUT_ENV) {
        print_env("RESOURCE_KEY", key);
        print_env("RESOURCE_ETAG", etag);
    } else {
        print_json_begin(&out);
        json_text(&out, "key", key);
        json_bool(&out, "created", created);
        json_text(&out, "etag", etag);
        print_json_end(&out);
    }
}

static int cat_check(struct call *call)
{
    call->request.http.sink = stdout;
    call->request.http.sink_needs.name = "Fencing-Mark";
    return CLI_GO_ON;
}

static void rm_show(const struct call *call)
{
    struct json_out out;

    if (call->given.output == OUTPUT_JSON) {
        print_json_begin(&out);
        json_text(&out, "key", bytes_of(call->name));
        json_bool(&out, "deleted", true);
        print_json_end(&out);
        return;
    }
    print_line(stdout, "%s deleted", call->name);
}

/* -- routes */

static int routes_check(struct call *call)
{
    static const char *const words[] = {"show", "adopt", NULL};
    const char *word = call->name;

    call->name = NULL;
    if (word == NULL || strcmp(word, "show") == 0)
        return CLI_GO_ON;
    if (strcmp(word, "adopt") == 0) {
        call->request.what = "routes adopt";
        call->request.needs = "hash before";
        call->request.http.method = "POST";
        call->request.http.url = "/v1/routes/adopt";
        return CLI_GO_ON;
    }
    return command_unknown("routes ", word, words);
}

static const struct show_column routes_columns[] = {
    {"HASH", NULL, "hash", SHOW_TEXT}, {"ROUTES", NULL, "routes", SHOW_NUMBER}, {0}};

static void routes_show(const struct call *call)
{
    struct bytes hash = request_text(call->request.json, "hash"),
                 before = request_text(call->request.json, "before");
    struct print_table table = {0};

    if (strcmp(call->request.http.method, "GET") == 0) {
        show_head(&table, routes_columns);
        show_row(&table, routes_columns, call->request.json);
        print_table_end(&table);
        return;
    }
    print_safe(stdout, hash);
    if (bytes_equal(hash, before)) {
        puts(" is served already; nothing was changed");
        return;
    }
    puts(" is served from now on");
    if (before.len > 0)
        cli_hint("Gateways with other routes answer 503 routes-differ until they have this file.");
}

/* The refusal says how many there are; this, where to look. */
static void routes_advise(const struct call *call)
{
    if (request_is_problem(&call->request, "intents-open")) {
        cli_hint("pawl resolve LEASE shows what is open for a lease, and of which gateway. What is being "
                 "sent ends by itself, a grace too.");
        cli_hint("For the rest look at the upstream, then: pawl resolve LEASE --all. A gateway that never "
                 "comes back: pawl resolve --gateway ID --dead.");
    }
}

/* -- the table */

static const struct verb verbs[] = {
    {"renew",
     "ttl lease-id-file output trace lease-url",
     {OF_A_LEASE, "PUT", "", REQUEST_GRANT, NULL},
     .repeat = REQUEST_TWICE,
     .load = renew_load,
     .show = renew_show,
     .advise = hold_advise},
    {"release",
     "lease-id-file output trace lease-url",
     {OF_A_LEASE, "DELETE", "", REQUEST_RELEASED, NULL},
     .show = release_show,
     .advise = hold_advise},
    {"get",
     "output trace lease-url",
     {OF_A_LEASE, "GET", "", REQUEST_JSON, "lease state token holders waiting"},
     .show = get_show},
    {"ls",
     "held-by prefix state limit output trace lease-url",
     {OF_LEASES, "GET", "/v1/leases", REQUEST_JSON, "items next_cursor"},
     .columns = ls_columns},
    {"sessions",
     "limit output trace lease-url",
     {OF_LEASES, "GET", "/v1/sessions", REQUEST_JSON, "items next_cursor"},
     .columns = sessions_columns},
    {"history",
     "output trace lease-url",
     {OF_A_LEASE, "GET", "/history", REQUEST_JSON, "items"},
     .columns = show_event},
    {"force-release",
     "reason expect-token yes output trace lease-url",
     {OF_A_LEASE, "POST", "/force-release", REQUEST_JSON, "released_token"},
     .check = force_check,
     .before = force_before,
     .load = force_load,
     .show = force_show},
    {"put",
     "type if-match if-none-match idempotency-key token-file output trace gateway-url",
     {OF_A_RESOURCE, "PUT", NULL, REQUEST_WRITTEN, NULL},
     .output_help = "what is told of it: json: one object; env: for eval in a shell",
     .load = put_load,
     .show = put_show},
    {"cat",
     "fenced token-file trace gateway-url",
     {OF_A_RESOURCE, "GET", NULL, REQUEST_CONTENT, NULL},
     .check = cat_check},
    {"rm",
     "if-match idempotency-key token-file output trace gateway-url",
     {OF_A_RESOURCE, "DELETE", NULL, REQUEST_DELETED, NULL},
     .outputs = "text|json",
     .output_help = "json: one object, for programs",
     .show = rm_show},
    {"routes",
     "output trace gateway-url",
     {OF_THE_GATEWAY, "GET", "/v1/routes", REQUEST_JSON, "hash routes"},
     .outputs = "text|json",
     .check = routes_check,
     .show = routes_show,
     .advise = routes_advise},
    {"resolve",
     "id all gateway incarnation dead settled force yes output trace gateway-url",
     {OF_ITS_OWN, "GET", NULL, REQUEST_JSON, NULL},
     .outputs = "text|json",
     .check = resolve_check,
     .before = resolve_all},
};

static int run(struct call *call, int argc, char **argv)
{
    const struct verb *verb = call->verb;
    int status = verb_read(call, argc, argv);

    if (status == CLI_GO_ON && verb->columns != NULL)
        return list(call);
    status = status == CLI_GO_ON ? address(call) : status;
    status = status == CLI_GO_ON ? headers(call) : status;
    if (status == CLI_GO_ON && verb->before != NULL)
        status = verb->before(call);
    if (status == CLI_GO_ON && verb->load != NULL)
        status = verb->load(call);
    return status == CLI_GO_ON ? send_and_show(call) : status;
}

struct request verb_request(const struct call *call, const char *method, const char *needs)
{
    return (struct request){.what = call->verb->name,
                            .wants = REQUEST_JSON,
                            .needs = needs,
                            .output = call->given.output,
                            .trace = call->given.trace,
                            .http.method = method};
}

void verb_done(struct call *call)
{
    request_done(&call->request);
    json_out_done(&call->body);
    free(call->content);
    free(call->cursor);
    free(call->before);
}

int cli_verb(int argc, char **argv)
{
    struct call call = {.verb = verbs};
    int status;

    while (strcmp(call.verb->name, argv[0]) != 0)
        call.verb++; /* main.c calls this for what stands in the table */
    json_out_init(&call.body);
    status = run(&call, argc, argv);
    verb_done(&call);
    return status;
}
