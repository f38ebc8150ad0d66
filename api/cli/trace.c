/* trace.c - a request as the curl command that would send the same. */
#include "api/cli/trace.h"

#include <string.h>
#include <strings.h>

#include "api/cli/print.h"

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
    for (unsigned i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++) {
        if (strcasecmp(secrets[i].header, header) == 0) {
            return secrets[i].variable;
        }
    }
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

static void print_headers(FILE *out, const struct http_client_request *request)
{
    const struct http_client_header *header = request->headers;
    bool typed = false;

    for (unsigned i = 0; i < HTTP_CLIENT_HEADERS_MAX && header[i].name != NULL; i++) {
        const char *variable = variable_of(header[i].name);

        if (header[i].value.len == 0) {
            continue;
        }
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
    fprintf(out, "curl -sS --noproxy '*' --path-as-is -X %s", request->method);
    print_headers(out, request);
    if (request->body.at != NULL && body_from != NULL) {
        fputs(" --data-binary '@", out);
        print_quoted(out, bytes_of(body_from));
        fputc('\'', out);
    } else if (request->body.at != NULL) {
        print_body(out, request->body);
    }
    fputs(" '", out);
    print_quoted(out, bytes_of(request->url));
    fputs("'\n", out);
}
