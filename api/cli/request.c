/* request.c - one request to one of the services, what its end is worth, and how a refusal is reported. */
#include "api/cli/request.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "api/cli/cli.h"
#include "api/cli/print.h"
#include "api/client/client.h"
#include "shared/text/ascii.h"
#include "shared/text/problem.h"
#include "shared/token/name.h"

/* -- a request as the curl command that would send the same */

struct secret {
    const char *header, *variable;
};

static const struct secret secrets[] = {
    {"Lease-Id", "PAWL_LEASE_ID"},
    {"Fencing-Token", "PAWL_FENCING_TOKEN"},
    {"Session-Secret", "PAWL_SESSION_SECRET"},
};

static const char *variable_of(const char *header)
{
    for (unsigned i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++)
        if (strcasecmp(secrets[i].header, header) == 0)
            return secrets[i].variable;
    return NULL;
}

/* What stands between single quotes. A line feed can only be white space of JSON here: in a header it would
 * not be sent. */
static void print_quoted(FILE *out, struct bytes text)
{
    for (size_t i = 0, begin = 0; i <= text.len; i++) {
        bool quote = i < text.len && text.at[i] == '\'';
        bool space = i < text.len && strchr("\n\r\t", text.at[i]) != NULL && text.at[i] != '\0';

        if (i == text.len || quote || space) {
            print_safe(out, (struct bytes){text.at + begin, i - begin});
            fputs(quote ? "'\\''" : space ? " " : "", out);
            begin = i + 1;
        }
    }
}

/* Who asks, but for the access token itself. */
static void print_access(FILE *out, const struct http_client_access *access)
{
    static const char *const flags[] = {"cacert", "cert", "key"};

    for (unsigned i = HTTP_ACCESS_CA_FILE; i < HTTP_ACCESS_TEXTS; i++) {
        if (access->text[i] != NULL) {
            fprintf(out, " --%s '", flags[i - HTTP_ACCESS_CA_FILE]);
            print_quoted(out, bytes_of(access->text[i]));
            fputc('\'', out);
        }
    }
    if (access->text[HTTP_ACCESS_TOKEN] != NULL || access->text[HTTP_ACCESS_TOKEN_FILE] != NULL)
        fputs(" -H \"Authorization: Bearer $PAWL_ACCESS_TOKEN\"", out);
}

static void print_headers(FILE *out, const struct http_client_request *request)
{
    const struct http_client_header *header = request->headers;
    bool typed = false;

    for (unsigned i = 0; i < HTTP_CLIENT_HEADERS_MAX && header[i].name != NULL; i++) {
        const char *variable = variable_of(header[i].name);

        if (header[i].value.len == 0)
            continue;
        typed = typed || strcasecmp(header[i].name, "Content-Type") == 0;
        if (variable != NULL) {
            fprintf(out, " -H \"%s: $%s\"", header[i].name, variable);
        } else {
            fprintf(out, " -H '%s: ", header[i].name);
            print_quoted(out, header[i].value);
            fputc('\'', out);
        }
    }
    /* Else curl would call it a form. */
    fputs(request->body.at != NULL && !typed ? " -H 'Content-Type:'" : "", out);
}

/* The lease_id that an acquire proposes; empty: there is none. */
static struct bytes proposed(struct bytes body)
{
    static const char member[] = "\"lease_id\":\"";
    const char *at = body.len > 0 ? memmem(body.at, body.len, member, sizeof(member) - 1) : NULL;
    size_t left = at != NULL ? body.len - (size_t)(at - body.at) - (sizeof(member) - 1) : 0;
    const char *value = at != NULL ? at + sizeof(member) - 1 : NULL;
    const char *end = left > 0 ? memchr(value, '"', left) : NULL;

    return end != NULL ? (struct bytes){value, (size_t)(end - value)} : (struct bytes){NULL, 0};
}

static void print_body(FILE *out, struct bytes body)
{
    struct bytes secret = proposed(body);

    fputs(" --data-binary '", out);
    while (body.len > 0) {
        const char *at = secret.len > 0 ? memmem(body.at, body.len, secret.at, secret.len) : NULL;
        size_t len = at != NULL ? (size_t)(at - body.at) : body.len;

        print_quoted(out, (struct bytes){body.at, len});
        if (at != NULL) {
            fputs("'\"$PAWL_LEASE_ID\"'", out);
            len += secret.len;
        }
        body = (struct bytes){body.at + len, body.len - len};
    }
    fputc('\'', out);
}

void trace_curl(FILE *out, const struct http_client_request *request, const char *body_from)
{
    const char *url = request->url, *target = strchr(url, ':') + 1;

    fprintf(out, "curl -sS --noproxy '*' --path-as-is -X %s", request->method);
    print_access(out, &request->access);
    print_headers(out, request);
    if (request->body.at != NULL && body_from != NULL) {
        fputs(" --data-binary '@", out);
        print_quoted(out, bytes_of(body_from));
        fputc('\'', out);
    } else if (request->body.at != NULL) {
        print_body(out, request->body);
    }
    if (*http_client_joint(url) != '\0') { /* unix:/PATH:/TARGET */
        fputs(" --unix-socket '", out);
        print_quoted(out, (struct bytes){target, strcspn(target, ":")});
        fputs("' 'http://localhost", out);
        url = target + strcspn(target, ":") + 1;
    } else {
        fputs(" '", out);
    }
    print_quoted(out, bytes_of(url));
    fputs("'\n", out);
}

/* -- one request */

enum {
    JSON_LEVELS = 16,
    MEMBER_SIZE = 32,
    SENTENCE_SIZE = 2048,
    WHAT_SIZE = 640,
    PATH_SIZE = NAME_MAX_BYTES + 64
};

/* -- where to */

/* Text as it is, and a value percent-encoded but for the character kept. */
static void url_add(struct request *request, const char *text, struct bytes value, char kept)
{
    size_t len = request->url != NULL ? strlen(request->url) : 0;
    size_t size = len + strlen(text) + 3 * value.len + 1;

    request->url = cli_realloc(request->url, size);
    len += (size_t)snprintf(request->url + len, size - len, "%s", text);
    len += ascii_percent_encode(request->url + len, value, kept);
    request->url[len] = '\0';
    request->http.url = request->url;
}

int request_service(struct request *request, enum request_service to, const char *base, const char *path)
{
    bool is_lease = to == REQUEST_LEASE_SERVICE;
    const char *wrong;

    request->service = is_lease ? "the lease service" : "the gateway";
    request->flag = is_lease ? "--lease-url" : "--gateway-url";
    base = base != NULL ? base : is_lease ? "http://127.0.0.1:8700" : "http://127.0.0.1:8701";
    if (strncmp(base, "http://", 7) != 0 && strncmp(base, "https://", 8) != 0 &&
        *http_client_joint(base) == '\0') {
        return cli_fail(
            CLI_USAGE,
            "%s cannot be used: it must begin with http:// or https:// and a host, or be unix:/PATH",
            request->flag);
    }
    request->http.access = http_client_access_usual();
    wrong = http_client_is_base(base) ? http_client_access_wrong(&request->http.access, base)
                                      : "it must be a plain address, like http://127.0.0.1:8700";
    if (wrong != NULL)
        return cli_fail(CLI_USAGE, "%s cannot be used: %s", request->flag, wrong);
    url_add(request, base, BYTES(""), '\0');
    for (size_t len = strlen(request->url); request->url[len - 1] == '/'; len--)
        request->url[len - 1] = '\0';
    url_add(request, http_client_joint(base), BYTES(""), '\0');
    url_add(request, path, BYTES(""), '\0');
    return CLI_GO_ON;
}

/* A lease's name needs no encoding. */
static int at_lease(struct request *request, enum request_service to, const char *base, const char *before,
                    const char *name, const char *deed)
{
    char path[PATH_SIZE];

    request->name = name;
    if (!name_is_lease(bytes_of(name))) {
        return cli_fail(
            CLI_USAGE,
            "\"%s\" is not the name of a lease: 1 to 128 of A-Z a-z 0-9 . _ : -, beginning with a "
            "letter or a digit",
            name);
    }
    snprintf(path, sizeof(path), "%s%s%s", before, name, deed);
    return request_service(request, to, base, path);
}

int request_lease(struct request *request, const char *base, const char *name, const char *deed)
{
    return at_lease(request, REQUEST_LEASE_SERVICE, base, "/v1/leases/", name, deed);
}

int request_intents(struct request *request, const char *base, const char *lease, const char *deed)
{
    return at_lease(request, REQUEST_GATEWAY, base, "/v1/intents/", lease, deed);
}

int request_resource(struct request *request, const char *base, const char *key)
{
    char buf[RESOURCE_KEY_MAX_BYTES + 1];
    struct bytes decoded, lease;
    const char *wrong;
    size_t before;
    int status = request_service(request, REQUEST_GATEWAY, base, "/v1/resources/");

    request->name = key;
    if (status != CLI_GO_ON)
        return status;
    before = strlen(request->url);
    url_add(request, "", bytes_of(key), '/');
    wrong = resource_key_from_path(bytes_of(request->url + before), buf, &decoded, &lease);
    return wrong == NULL ? CLI_GO_ON
                         : cli_fail(CLI_USAGE, "\"%s\" is not the key of a resource: %s", key, wrong);
}

void request_query(struct request *request, const char *name, struct bytes value)
{
    char text[MEMBER_SIZE];

    if (value.at != NULL) {
        snprintf(text, sizeof(text), "%c%s=", strchr(request->url, '?') != NULL ? '&' : '?', name);
        url_add(request, text, value, '\0');
    }
}

void request_header(struct request *request, const char *name, struct bytes value)
{
    for (unsigned i = 0; i < HTTP_CLIENT_HEADERS_MAX; i++) {
        if (request->http.headers[i].name == NULL) {
            request->http.headers[i] = (struct http_client_header){name, value};
            return;
        }
    }
    abort();
}

static void answer_drop(struct request *request)
{
    http_client_answer_done(&request->answer);
    json_free(request->json);
    request->json = NULL;
}

void request_take(struct request *request, const struct http_client_answer *answer)
{
    answer_drop(request);
    request->answer = *answer;
    if (answer->body != NULL)
        request->json = json_parse((struct bytes){answer->body, answer->len}, JSON_LEVELS, NULL);
}

void request_done(struct request *request)
{
    answer_drop(request);
    free(request->url);
    request->url = NULL;
}

/* -- reading */

int64_t request_int(const struct json *json, const char *name)
{
    int64_t value = 0;

    return json != NULL && json_get_int(json, name, &value) == JSON_FOUND ? value : 0;
}

struct bytes request_text(const struct json *json, const char *name)
{
    struct bytes value;

    return json != NULL && json_get_text(json, name, &value) == JSON_FOUND ? value : (struct bytes){NULL, 0};
}

bool request_is_problem(const struct request *request, const char *code)
{
    return request->answer.status >= 400 && bytes_are(request_text(request->json, "code"), code);
}

/* -- whether an answer is Pawl's */

static bool has_all(const struct json *json, const char *needs)
{
    char name[MEMBER_SIZE];
    int64_t unused = 0;

    for (size_t len; *needs != '\0'; needs += len + (needs[len] == ' ')) {
        len = strcspn(needs, " ");
        snprintf(name, sizeof(name), "%.*s", (int)len, needs);
        if (json_get_int(json, name, &unused) == JSON_ABSENT)
            return false;
    }
    return true;
}

/* What is said of another lease is no answer. */
static bool is_of(const struct json *json, const char *name)
{
    struct bytes lease = {NULL, 0};

    return name == NULL || json_get_text(json, "lease", &lease) != JSON_FOUND || bytes_are(lease, name);
}

/* Each item that is of a lease has its name: what a shell completes, too. */
static bool items_are_of_leases(const struct json *json)
{
    enum json_found found;
    size_t count = json_list_count(json, "items", &found);

    for (size_t i = 0; i < count; i++) {
        const struct json *item = json_list_object(json, "items", i);
        struct bytes lease = {NULL, 0};

        if (item != NULL && json_get_text(item, "lease", &lease) == JSON_FOUND && !name_is_lease(lease))
            return false;
    }
    return true;
}

static bool has_good_json(const struct request *request)
{
    const struct json *json = request->json;

    if (json == NULL || request->wants == REQUEST_RELEASED)
        return json != NULL && request_int(json, "holds") > 0;
    if (request->wants == REQUEST_GRANT) {
        return bytes_are(request_text(json, "lease"), request->name) && request_int(json, "token") > 0 &&
               request_text(json, "fencing_token").len > 0 &&
               bytes_are(request_text(json, "lease_id"), request->lease_id);
    }
    return has_all(json, request->needs) && is_of(json, request->name) && items_are_of_leases(json);
}

static bool is_good(const struct request *request)
{
    static const char accepted[] = "pawl; verdict=accepted;";
    const struct http_client_answer *answer = &request->answer;
    bool checked = strncmp(answer->fencing_status, "pawl;", 5) == 0;

    switch (request->wants) {
    case REQUEST_ANYTHING: return true;
    case REQUEST_JSON: return answer->status == 200 && has_good_json(request);
    case REQUEST_GRANT: return (answer->status == 200 || answer->status == 201) && has_good_json(request);
    case REQUEST_RELEASED: return answer->status == 204 || (answer->status == 200 && has_good_json(request));
    case REQUEST_WRITTEN:
        return (answer->status == 201 || answer->status == 204) && checked && answer->etag[0] != '\0';
    case REQUEST_DELETED: return answer->status == 204 && checked;
    case REQUEST_CONTENT:
        return answer->status == 200 && answer->etag[0] != '\0' && answer->fencing_mark[0] != '\0';
    case REQUEST_ACCEPTED:
        return answer->status == 200 && strncmp(answer->fencing_status, accepted, sizeof(accepted) - 1) == 0;
    case REQUEST_STREAM:
        return answer->status == 200 && strncmp(answer->content_type, "text/event-stream", 17) == 0;
    }
    return false;
}

static bool is_2xx(const struct request *request)
{
    return request->answer.status >= 200 && request->answer.status < 300;
}

static bool is_pawls(const struct request *request)
{
    return request->wants == REQUEST_ANYTHING || is_2xx(request)
               ? is_good(request)
               : problem_is_pawls(&request->answer, request->json);
}

enum pawl_outcome request_judge(const struct request *request)
{
    struct pawl_problem unused;

    return judge_answer(HTTP_CLIENT_ANSWERED, &request->answer, &unused);
}

/* -- sending it */

static enum http_client_outcome try_once(struct request *request)
{
    struct http_client_answer answer;
    enum http_client_outcome outcome = http_client_send(&request->http, &answer);

    request_take(request, &answer);
    if (outcome == HTTP_CLIENT_ANSWERED && !is_pawls(request)) {
        snprintf(request->answer.why, sizeof(request->answer.why), "it was answered %u, and not as Pawl does",
                 request->answer.status);
        return HTTP_CLIENT_UNKNOWN;
    }
    return outcome;
}

enum http_client_outcome request_try(struct request *request)
{
    enum http_client_outcome outcome;
    enum pawl_outcome judged;

    if (request->trace)
        trace_curl(stderr, &request->http, request->body_from);
    outcome = try_once(request);
    if (request->repeat == REQUEST_ONCE || outcome == HTTP_CLIENT_NOT_SENT ||
        (outcome == HTTP_CLIENT_ANSWERED && request_judge(request) != PAWL_UNKNOWN))
        return outcome;
    request->repeated = true;
    outcome = try_once(request);
    judged = outcome == HTTP_CLIENT_ANSWERED ? request_judge(request) : PAWL_UNKNOWN;
    if (judged == PAWL_HELD || judged == PAWL_NOT_DONE) {
        /* What was said to the repeat is no word about the attempt before it. */
        struct bytes code = request_text(request->json, "code");

        snprintf(request->answer.why, sizeof(request->answer.why),
                 "the first attempt has no known end; the second was told %.*s", (int)code.len,
                 code.len > 0 ? code.at : "");
        return HTTP_CLIENT_UNKNOWN;
    }
    /* The first may have happened: that the second did not leave does not make it certain. */
    return outcome == HTTP_CLIENT_NOT_SENT ? HTTP_CLIENT_UNKNOWN : outcome;
}

/* -- its end, reported */

static const struct {
    const char *says, *word;
} doubts[] = {
    [DOUBT_NOT_DONE] = {"certainly not done", "not-done"},
    [DOUBT_UNKNOWN] = {"may have been done", "unknown"},
};

int doubt_tell(enum doubt doubt, enum output output, const char *format, ...)
{
    char sentence[SENTENCE_SIZE];
    struct json_out out;
    va_list args;

    va_start(args, format);
    vsnprintf(sentence, sizeof(sentence), format, args);
    va_end(args);
    cli_fail(CLI_UNREACHABLE, "%s: %s", doubts[doubt].says, sentence);
    if (output == OUTPUT_JSON) {
        print_json_begin(&out);
        json_text(&out, "outcome", bytes_of(doubts[doubt].word));
        json_text(&out, "code", BYTES(""));
        json_text(&out, "why", bytes_of(sentence));
        print_json_end(&out);
    }
    return CLI_UNREACHABLE;
}

/* A read changes nothing, whatever became of it; but a fenced one keeps older writes from landing. */
static bool changes_nothing(const struct http_client_request *request)
{
    for (unsigned i = 0; i < HTTP_CLIENT_HEADERS_MAX && request->headers[i].name != NULL; i++)
        if (strcmp(request->headers[i].name, "Fencing-Token") == 0 && request->headers[i].value.len > 0)
            return false;
    return strcmp(request->method, "GET") == 0;
}

/* What a refusal says beyond its sentence. */
static void tell_members(const struct json *json)
{
    static const struct {
        const char *name, *label;
    } members[] = {
        {"holder", "holder"},
        {"token", "token"},
        {"presented_token", "token sent"},
        {"current_token", "current token"},
        {"ended", "the hold ended"},
        {"intents", "writes that are open"},
        {"gateways_in_doubt", "gateways that have yet to say what they have sent"},
        {"identity", "who asked"},
        {"verb", "which needs"},
        {"why", "why"},
        {"expires_in_ms", "free in"},
        {"code", "code"},
        {"instance", "request"},
    };

    for (unsigned i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        struct bytes text = request_text(json, members[i].name);
        char duration[PRINT_DURATION_SIZE];
        int64_t number = 0;

        if (json_get_int(json, members[i].name, &number) != JSON_FOUND) {
            if (text.len > 0)
                cli_hint("%s: %.*s", members[i].label, (int)text.len, text.at);
        } else if (strcmp(members[i].name, "expires_in_ms") == 0) {
            cli_hint("free in: %s, if it is not renewed", print_duration(duration, number));
        } else {
            cli_hint("%s: %lld", members[i].label, (long long)number);
        }
    }
}

/* A problem that this program does not know is a newer service's. */
static int status_of(unsigned http_status, struct bytes code)
{
    enum problem problem = problem_find(code);

    if (problem != PROBLEM_NONE)
        return problem_info(problem)->exit_status;
    return http_status >= 500                         ? CLI_UNREACHABLE
           : http_status == 401 || http_status == 403 ? CLI_NOT_ALLOWED
                                                      : CLI_REFUSED;
}

void request_show(const struct request *request, const char *name, const char *value, const char *second,
                  struct bytes second_value)
{
    const char *end = memrchr(request->answer.body, '}', request->answer.len);
    struct json_out more;
    struct bytes members;

    print_json_begin(&more);
    json_text(&more, name, bytes_of(value));
    if (second != NULL)
        json_text(&more, second, second_value);
    json_object_end(&more);
    members = json_out_bytes(&more);
    printf("%.*s,%.*s\n", (int)(end - request->answer.body), request->answer.body, (int)members.len - 1,
           members.at + 1);
    json_out_done(&more);
}

static int tell_refusal(const struct request *request, const char *what)
{
    bool in_doubt = request_judge(request) == PAWL_UNKNOWN && !changes_nothing(&request->http);
    enum doubt doubt = in_doubt ? DOUBT_UNKNOWN : DOUBT_NOT_DONE;
    int status = status_of(request->answer.status, request_text(request->json, "code"));
    bool refused = status != CLI_UNREACHABLE && !in_doubt;
    bool only_asked = !in_doubt && request_is_problem(request, "outcome-unknown");
    char advice[SENTENCE_SIZE];
    struct bytes title = request_text(request->json, "title"), detail = request_text(request->json, "detail");

    if (request->output == OUTPUT_JSON)
        request_show(request, "outcome", refused ? "refused" : doubts[doubt].word,
                     json_member(request->json, "why") == NULL ? "why" : NULL, detail);
    detail = cli_advice(detail, advice, sizeof(advice));
    if (only_asked) {
        title = BYTES("The store did not answer in time");
        detail = BYTES("Nothing was changed by asking. Ask again.");
    }
    cli_fail(status, "%s%s%s: %.*s", refused ? "" : doubts[doubt].says, refused ? "" : ": ", what,
             (int)title.len, title.at);
    cli_hint("%.*s", (int)detail.len, detail.at);
    tell_members(request->json);
    return status;
}

static int tell_unknown(const struct request *request, const char *what)
{
    enum doubt doubt = changes_nothing(&request->http) ? DOUBT_NOT_DONE : DOUBT_UNKNOWN;

    doubt_tell(doubt, request->output, "%s: %s%s", what,
               request->answer.status == 0 ? "no whole answer came: " : "", request->answer.why);
    cli_hint("%s %s right, and what stands between?",
             doubt == DOUBT_UNKNOWN ? "Look before you go on: is" : "Is", request->flag);
    return CLI_UNREACHABLE;
}

const char *request_access_remedy(const char *why)
{
    return strstr(why, "access token") != NULL  ? "Is --access-token-file (PAWL_ACCESS_TOKEN_FILE) right?"
           : strstr(why, "certificate") != NULL ? "Are --cacert, --cert and --cert-key right?"
                                                : NULL;
}

int request_tell(const struct request *request, enum http_client_outcome outcome)
{
    const char *remedy = request_access_remedy(request->answer.why);
    char what[WHAT_SIZE]; /* "acquire orders:42" */

    snprintf(what, sizeof(what), "%s%s%s", request->what, request->name != NULL ? " " : "",
             request->name != NULL ? request->name : "");
    switch (outcome) {
    case HTTP_CLIENT_NOT_SENT:
        doubt_tell(DOUBT_NOT_DONE, request->output, "%s: %s cannot be reached: %s", what, request->service,
                   request->answer.why);
        if (remedy != NULL)
            cli_hint("%s", remedy);
        else
            cli_hint("Is it running (pawl dev starts one), and is %s right?", request->flag);
        return CLI_UNREACHABLE;
    case HTTP_CLIENT_UNKNOWN: return tell_unknown(request, what);
    case HTTP_CLIENT_ANSWERED: return is_2xx(request) ? CLI_GO_ON : tell_refusal(request, what);
    }
    abort();
}

int request_send(struct request *request)
{
    return request_tell(request, request_try(request));
}
