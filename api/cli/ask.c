/* ask.c - one question to one of the services: where it goes, and what can be read in the answer. */
#include "api/cli/ask.h"

#include <stdlib.h>

#include "api/cli/cli.h"
#include "shared/record/name.h"

enum { JSON_LEVELS = 16, DEED_PATH_SIZE = NAME_MAX_BYTES + 32 };

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
    if (strncmp(base, "http://", 7) != 0 && strncmp(base, "https://", 8) != 0) {
        return "it must begin with http:// or https:// and a host";
    }
    return http_client_is_base(base) ? NULL : "it must be a plain address, like http://127.0.0.1:8700";
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

/* -- reading */

struct json *ask_json(const struct ask *ask, const struct http_client_answer *answer)
{
    const char *why = NULL;
    struct json *json = json_parse((struct bytes){answer->body, answer->len}, JSON_LEVELS, &why);

    if (json == NULL) {
        cli_fail(CLI_BUG, "%s: the answer of %s cannot be read: %s", ask->what, ask->service, why);
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
