/* ask.c - one question to one of the services, and the telling of its refusal. */
#include "api/cli/ask.h"

#include <stdlib.h>

#include "api/cli/cli.h"
#include "api/cli/print.h"
#include "shared/problem.h"
#include "shared/record/name.h"

enum { JSON_LEVELS = 16, WHAT_SIZE = 640, DEED_PATH_SIZE = NAME_MAX_BYTES + 32 };

/* -- where to */

static bool stands_for_itself(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("-._~:", c));
}

/* buf: three times the text and a NUL. */
static size_t percent_encode(struct bytes text, char *buf, char kept)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t len = 0;

    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.at[i];

        if (stands_for_itself(c) || (kept != '\0' && c == (unsigned char)kept)) {
            buf[len++] = (char)c;
        } else {
            buf[len++] = '%';
            buf[len++] = digits[c >> 4];
            buf[len++] = digits[c & 15];
        }
    }
    buf[len] = '\0';
    return len;
}

/* A service's address, to which paths are added. */
static const char *base_wrong(const char *base)
{
    const char *host = strncmp(base, "http://", 7) == 0    ? base + 7
                       : strncmp(base, "https://", 8) == 0 ? base + 8
                                                           : NULL;

    if (host == NULL || *host == '\0' || *host == '/') {
        return "it must begin with http:// or https:// and a host";
    }
    for (const char *at = host; *at != '\0'; at++) {
        if ((unsigned char)*at <= ' ' || *at == 0x7f || strchr("?#@", *at) != NULL) {
            return "it must be a plain address, like http://127.0.0.1:8700";
        }
    }
    return NULL;
}

static int make_url(struct ask *ask, const char *base, const char *path, const char *name, char kept)
{
    const char *wrong = base_wrong(base);
    size_t len = strlen(base), size;

    if (wrong != NULL) {
        return cli_fail(CLI_USAGE, "%s cannot be used: %s", ask->flag, wrong);
    }
    while (base[len - 1] == '/') {
        len--;
    }
    size = len + strlen(path) + 3 * strlen(name) + 1;
    ask->url = cli_alloc(size);
    len = (size_t)snprintf(ask->url, size, "%.*s%s", (int)len, base, path);
    percent_encode(bytes_of(name), ask->url + len, kept);
    ask->request.url = ask->url;
    return CLI_GO_ON;
}

static int check_lease(const char *name)
{
    if (name_is_lease(bytes_of(name))) {
        return CLI_GO_ON;
    }
    return cli_fail(CLI_USAGE,
                    "\"%s\" is not the name of a lease: 1 to 128 of A-Z a-z 0-9 . _ : -, beginning with "
                    "a letter or a "
                    "digit",
                    name);
}

int ask_lease(struct ask *ask, const char *base, const char *name)
{
    int status = check_lease(name);

    ask->name = name;
    ask->service = "the lease service";
    ask->flag = "--lease-url";
    return status == CLI_GO_ON
               ? make_url(ask, base != NULL ? base : "http://127.0.0.1:8700", "/v1/leases/", name, '\0')
               : status;
}

int ask_lease_service(struct ask *ask, const char *base, const char *path)
{
    ask->service = "the lease service";
    ask->flag = "--lease-url";
    return make_url(ask, base != NULL ? base : "http://127.0.0.1:8700", path, "", '\0');
}

int ask_leases(struct ask *ask, const char *base)
{
    return ask_lease_service(ask, base, "/v1/leases");
}

int ask_lease_deed(struct ask *ask, const char *base, const char *name, const char *deed)
{
    char path[DEED_PATH_SIZE];
    int status = check_lease(name);

    if (status != CLI_GO_ON) {
        return status;
    }
    ask->name = name;
    snprintf(path, sizeof(path), "/v1/leases/%s%s", name, deed); /* a name needs no encoding */
    return ask_lease_service(ask, base, path);
}

int ask_gateway(struct ask *ask, const char *base, const char *path)
{
    ask->service = "the gateway";
    ask->flag = "--gateway-url";
    return make_url(ask, base != NULL ? base : "http://127.0.0.1:8701", path, "", '\0');
}

int ask_intents(struct ask *ask, const char *base, const char *lease, const char *deed)
{
    char path[DEED_PATH_SIZE];
    int status = check_lease(lease);

    if (status != CLI_GO_ON) {
        return status;
    }
    ask->name = lease;
    snprintf(path, sizeof(path), "/v1/intents/%s%s", lease, deed); /* a name needs no encoding */
    return ask_gateway(ask, base, path);
}

int ask_resource(struct ask *ask, const char *base, const char *key)
{
    char buf[RESOURCE_KEY_MAX_BYTES + 1];
    struct bytes decoded, lease;
    const char *wrong;
    int status;

    ask->name = key;
    ask->service = "the gateway";
    ask->flag = "--gateway-url";
    status = make_url(ask, base != NULL ? base : "http://127.0.0.1:8701", "/v1/resources/", key, '/');
    if (status != CLI_GO_ON) {
        return status;
    }
    wrong = resource_key_from_path(bytes_of(strstr(ask->url, "/v1/resources/") + strlen("/v1/resources/")),
                                   buf, &decoded, &lease);
    return wrong == NULL ? CLI_GO_ON
                         : cli_fail(CLI_USAGE, "\"%s\" is not the key of a resource: %s", key, wrong);
}

void ask_query(struct ask *ask, const char *name, struct bytes value)
{
    size_t len = strlen(ask->url);
    size_t size = len + strlen(name) + 3 * value.len + 3;

    ask->url = cli_realloc(ask->url, size);
    len += (size_t)snprintf(ask->url + len, size - len, "%c%s=", strchr(ask->url, '?') != NULL ? '&' : '?',
                            name);
    percent_encode(value, ask->url + len, '\0');
    ask->request.url = ask->url;
}

void ask_header(struct ask *ask, const char *name, struct bytes value)
{
    for (unsigned i = 0; i < HTTP_CLIENT_HEADERS_MAX; i++) {
        if (ask->request.headers[i].name == NULL) {
            ask->request.headers[i] = (struct http_client_header){name, value};
            return;
        }
    }
    abort();
}

void ask_done(struct ask *ask)
{
    free(ask->url);
    ask->url = NULL;
}

/* -- sending */

int ask_send(struct ask *ask, struct http_client_answer *answer)
{
    return ask_tell(ask, ask_try(ask, answer), answer);
}

/* -- telling */

/* "acquire orders:42" */
static const char *what_of(const struct ask *ask, char buf[WHAT_SIZE])
{
    snprintf(buf, WHAT_SIZE, "%s%s%s", ask->what, ask->name != NULL ? " " : "",
             ask->name != NULL ? ask->name : "");
    return buf;
}

/* What a refusal says beyond its sentence, if it does. */
static void tell_member(const struct json *json, const char *name, const char *label)
{
    struct bytes text = ask_text(json, name);

    if (text.len > 0) {
        fprintf(stderr, "  %s: ", label);
        print_safe(stderr, text);
        fputc('\n', stderr);
    }
}

static void tell_number(const struct json *json, const char *name, const char *label)
{
    int64_t number = 0;

    if (json_get_int(json, name, &number) == JSON_FOUND) {
        fprintf(stderr, "  %s: %lld\n", label, (long long)number);
    }
}

static void tell_members(const struct json *json)
{
    char duration[PRINT_DURATION_SIZE];
    int64_t ms = 0;

    tell_member(json, "holder", "holder");
    tell_number(json, "token", "token");
    tell_number(json, "presented_token", "token sent");
    tell_number(json, "current_token", "current token");
    tell_member(json, "ended", "the hold ended");
    tell_number(json, "intents", "writes that are open");
    tell_number(json, "gateways_in_doubt", "gateways that have yet to say what they have sent");
    if (json_get_int(json, "expires_in_ms", &ms) == JSON_FOUND) {
        print_duration(duration, ms);
        fprintf(stderr, "  free in: %s, if it is not renewed\n", duration);
    }
    tell_member(json, "code", "code");
    tell_member(json, "instance", "request");
}

/* A problem that this program does not know, or no problem at all: something else answered, or a newer
 * service. */
static int status_of(unsigned http_status, struct bytes code)
{
    enum problem problem = problem_find(code);

    if (problem != PROBLEM_NONE) {
        return problem_info(problem)->exit_status;
    }
    return http_status >= 500 ? CLI_UNREACHABLE : CLI_REFUSED;
}

static int tell_refusal(const struct ask *ask, const struct http_client_answer *answer)
{
    const char *why = NULL;
    struct json *json = json_parse((struct bytes){answer->body, answer->len}, JSON_LEVELS, &why);
    char what[WHAT_SIZE];
    int status;

    if (json == NULL || ask_text(json, "code").len == 0) {
        json_free(json);
        return cli_fail(answer->status >= 500 ? CLI_UNREACHABLE : CLI_REFUSED,
                        "%s: %s answered %u, and not as Pawl does: is %s right?", what_of(ask, what),
                        ask->url, answer->status, ask->flag);
    }
    fputs("pawl: ", stderr);
    print_safe(stderr, bytes_of(what_of(ask, what)));
    fputs(": ", stderr);
    print_safe(stderr, ask_text(json, "title"));
    fputs("\n  ", stderr);
    print_safe(stderr, ask_text(json, "detail"));
    fputc('\n', stderr);
    tell_members(json);
    status = status_of(answer->status, ask_text(json, "code"));
    json_free(json);
    return status;
}

static int tell_unknown(const struct ask *ask, const struct http_client_answer *answer)
{
    char what[WHAT_SIZE];

    if (answer->status == 0) {
        cli_fail(CLI_UNREACHABLE, "%s: no whole answer came, so it may or may not have happened: %s",
                 what_of(ask, what), answer->why);
    } else if (strcmp(ask->request.method, "GET") == 0) {
        cli_fail(CLI_UNREACHABLE, "%s: %s", what_of(ask, what), answer->why);
    } else {
        cli_fail(CLI_UNREACHABLE, "%s: %s, so it may or may not have happened", what_of(ask, what),
                 answer->why);
    }
    cli_hint("Look before you go on: is %s right, and what stands between?", ask->flag);
    return CLI_UNREACHABLE;
}

int ask_tell(const struct ask *ask, enum http_client_outcome outcome, const struct http_client_answer *answer)
{
    char what[WHAT_SIZE];

    switch (outcome) {
    case HTTP_CLIENT_NOT_SENT:
        cli_fail(CLI_UNREACHABLE, "%s: %s cannot be reached, so it certainly did not happen: %s",
                 what_of(ask, what), ask->service, answer->why);
        cli_hint("Is it running (pawl dev starts one), and is %s right?", ask->flag);
        return CLI_UNREACHABLE;
    case HTTP_CLIENT_UNKNOWN: return tell_unknown(ask, answer);
    case HTTP_CLIENT_ANSWERED:
        return answer->status >= 200 && answer->status < 300 ? CLI_GO_ON : tell_refusal(ask, answer);
    }
    abort();
}

/* -- reading */

struct json *ask_json(const struct ask *ask, const struct http_client_answer *answer)
{
    const char *why = NULL;
    struct json *json = json_parse((struct bytes){answer->body, answer->len}, JSON_LEVELS, &why);
    char what[WHAT_SIZE];

    if (json == NULL) {
        cli_fail(CLI_BUG, "%s: the answer of %s cannot be read: %s", what_of(ask, what), ask->service, why);
        cli_hint("Is %s right?", ask->flag);
    }
    return json;
}

int64_t ask_int(const struct json *json, const char *name)
{
    int64_t value = 0;

    return json_get_int(json, name, &value) == JSON_FOUND ? value : 0;
}

struct bytes ask_text(const struct json *json, const char *name)
{
    struct bytes value = {NULL, 0};

    return json_get_text(json, name, &value) == JSON_FOUND ? value : (struct bytes){NULL, 0};
}
