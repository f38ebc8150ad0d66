/* client_body.c - the small JSON object that a request carries. */
#include "api/client/client_body.h"

#include <inttypes.h>

static void put(struct client_body *body, const char *text, size_t len)
{
    if (len > sizeof(body->at) - body->len) {
        body->full = true;
        return;
    }
    memcpy(body->at + body->len, text, len);
    body->len += len;
}

static void put_quoted(struct client_body *body, const char *text)
{
    put(body, "\"", 1);
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        char escape[8];

        if (c == '"' || c == '\\') {
            put(body, "\\", 1);
            put(body, text, 1);
        } else if (c < 0x20) {
            put(body, escape, (size_t)snprintf(escape, sizeof(escape), "\\u%04x", c));
        } else {
            put(body, text, 1);
        }
    }
    put(body, "\"", 1);
}

static void put_name(struct client_body *body, const char *name)
{
    if (body->len > 1) {
        put(body, ",", 1);
    }
    put_quoted(body, name);
    put(body, ":", 1);
}

void body_begin(struct client_body *body)
{
    body->len = 0;
    body->full = false;
    put(body, "{", 1);
}

void body_text(struct client_body *body, const char *name, const char *value)
{
    if (value != NULL) {
        put_name(body, name);
        put_quoted(body, value);
    }
}

void body_number(struct client_body *body, const char *name, uint64_t value)
{
    char digits[24];

    put_name(body, name);
    put(body, digits, (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, value));
}

void body_raw(struct client_body *body, const char *name, const char *value)
{
    if (value != NULL) {
        put_name(body, name);
        put(body, value, strlen(value));
    }
}

void body_end(struct client_body *body)
{
    put(body, "}", 1);
}
